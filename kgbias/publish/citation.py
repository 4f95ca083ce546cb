"""CITATION.cff: how a data set is cited (Citation File Format 1.2.0)."""

import json
import re

from kgbias import __version__
from kgbias.publish.statement import Source
from kgbias.text import xml_safe

# The format takes SPDX identifiers and nothing else; other licences stand in the card alone.
_SPDX = re.compile(r"[A-Z][A-Za-z0-9]*([.-][A-Za-z0-9]+)+|MIT|Unlicense|ISC|Zlib")


def citation(source: Source) -> str:
    """The file. A data set whose authors are not stated is cited under that name."""
    authors = [{"name": name} for name in source.authors or ("Not stated",)]
    lines = {
        "cff-version": "1.2.0",
        "message": "If you use these statements, please cite them, the model and the methods.",
        "type": "dataset",
        "title": source.title,
        "abstract": source.summary,
        "date-released": source.created[:10],
        **({"license": source.license} if _SPDX.fullmatch(source.license) else {}),
        "authors": authors,
        "keywords": ["bias", "stereotypes", "language models"],
        "references": [
            {
                "type": "software",
                "title": "kgbias: a map of what a language model says about groups of people",
                "version": __version__,
                "repository-code": "https://github.com/kgbias/kgbias",
                "authors": [{"name": "The kgbias contributors"}],
            },
            {
                "type": "article",
                "title": '"I\'m not Racist but...": Discovering Bias in the Internal Knowledge of '
                "Large Language Models",
                "year": 2023,
                "authors": [
                    {"family-names": "Salinas", "given-names": "Abel"},
                    {"family-names": "Penafiel", "given-names": "Louis"},
                    {"family-names": "McCormack", "given-names": "Robert"},
                    {"family-names": "Morstatter", "given-names": "Fred"},
                ],
            },
        ],
    }
    # JSON is YAML, but for a date, which stands bare.
    return "".join(
        f"{name}: {value if name == 'date-released' else _yaml(value)}\n"
        for name, value in lines.items()
    )


def _yaml(value: object) -> str:
    return xml_safe(json.dumps(value, ensure_ascii=False))
