"""The folder of a published run, written whole or not at all."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgbias.errors import UsageError
from kgbias.export.content import ExportContent
from kgbias.export.tables import INTEGER_COLUMNS, write_jsonl, write_parquet
from kgbias.graph.selection import Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.io.files import sha256_of, write_checksums, write_into_folder
from kgbias.io.progress import Progress
from kgbias.io.resources import __version__
from kgbias.measure.figures import read_figures
from kgbias.publish.card import (
    INTENDED_USES,
    LIMITATIONS,
    PARQUET_FILE,
    PERSONAL_DATA,
    SOCIAL_IMPACT,
    UNINTENDED_USES,
    CardSource,
    format_yaml,
    render_card,
)
from kgbias.publish.evaluations import build_evaluations
from kgbias.publish.recipe import RECIPE_FILE, STATEMENTS_FILE, Recipe

# The terms of https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html; mlcroissant wants
# the whole list, including terms that are not used.
_CROISSANT_TERMS = (
    "citeAs",
    "column",
    "containedIn",
    "equivalentProperty",
    "extract",
    "field",
    "fileProperty",
    "fileObject",
    "fileSet",
    "format",
    "includes",
    "isArray",
    "arrayShape",
    "isLiveDataset",
    "jsonPath",
    "key",
    "md5",
    "parentField",
    "path",
    "readLines",
    "recordSet",
    "references",
    "regex",
    "repeated",
    "replace",
    "samplingRate",
    "separator",
    "source",
    "subField",
    "transform",
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in _CROISSANT_TERMS},
}
# The files with data that Croissant describes, each with its media type.
_DATA_FILES = ((PARQUET_FILE, "application/x-parquet"), (STATEMENTS_FILE, "application/jsonl"))


def build_croissant(source: CardSource, folder: Path) -> dict[str, Any]:
    """The metadata of the files in `folder`."""
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [
            "http://mlcommons.org/croissant/1.1",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        "name": source.title,
        "description": f"{source.summary} {source.biases}",
        "version": "1.0.0",
        "datePublished": source.created[:10],
        "inLanguage": source.language,
        "keywords": ["bias", "stereotypes", "fairness", "language models"],
        "isLiveDataset": False,
        **({"license": source.license} if source.license else {}),
        "creator": [
            {"@type": "sc:Organization", "name": name} for name in source.authors or ("Not stated",)
        ],
        "citeAs": format_citation(source),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "contentSize": f"{(folder / name).stat().st_size} B",
                "encodingFormat": kind,
                "sha256": sha256_of(folder / name),
            }
            for name, kind in _DATA_FILES
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "statements",
                "name": "statements",
                "description": "The statements, one row for each arm that made one.",
                "key": [{"@id": "statements/id"}, {"@id": "statements/arm"}],
                "field": [
                    _build_croissant_field(source, name, meaning)
                    for name, meaning in source.columns.items()
                ],
            }
        ],
        "rai:dataCollection": source.collection,
        "rai:dataCollectionType": "Software Collection",
        "rai:dataPreprocessingProtocol": [source.preprocessing],
        "rai:dataAnnotationProtocol": source.annotation,
        "rai:machineAnnotationTools": [
            f"{m.scorer} {m.version}, through kgbias {__version__}" for m in source.recipe.metrics
        ],
        "rai:dataBiases": [source.biases],
        "rai:dataLimitations": list(LIMITATIONS),
        "rai:dataUseCases": [INTENDED_USES, UNINTENDED_USES],
        "rai:dataSocialImpact": SOCIAL_IMPACT,
        "rai:personalSensitiveInformation": [PERSONAL_DATA],
        "rai:hasSyntheticData": True,
    }


def format_citation(source: CardSource) -> str:
    """The data set as an entry in a bibliography."""
    who = ", ".join(source.authors) or "Not stated"
    return f"{who} ({source.created[:4]}). {source.title} [data set]. Made with kgbias."


def _build_croissant_field(source: CardSource, name: str, description: str) -> dict[str, Any]:
    numbers = {measure.name for measure in source.content.measures}
    data_type = "sc:Text"
    if name in INTEGER_COLUMNS:
        data_type = "sc:Integer"
    elif name in numbers:
        data_type = "sc:Float"
    return {
        "@type": "cr:Field",
        "@id": f"statements/{name}",
        "name": name,
        "description": description,
        "dataType": data_type,
        "source": {"fileObject": {"@id": PARQUET_FILE}, "extract": {"column": name}},
    }


# The format takes only SPDX identifiers; other licences are named in the card alone.
_SPDX = re.compile(r"[A-Z][A-Za-z0-9]*([.-][A-Za-z0-9]+)+|MIT|Unlicense|ISC|Zlib")


def render_citation_file(source: CardSource) -> str:
    """The content of CITATION.cff. If no authors are given, they are cited as "Not stated"."""
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
    # JSON is YAML, except for dates, which must not be quoted.
    return "".join(
        f"{name}: {value if name == 'date-released' else format_yaml(value)}\n"
        for name, value in lines.items()
    )


def publish(
    run: StoredRun,
    folder: Path,
    *,
    license: str = "",
    authors: Sequence[str] = (),
    figures: bool = False,
    selection: Selection | None = None,
    progress: Progress,
) -> list[Path]:
    """Write the statements of a run that count, with everything others need to load, judge, cite
    and reproduce them, to a new or empty folder. Returns the files, sorted.

    Raises UsageError if the folder is not empty, the run is not finished or nothing counts;
    DataError if a file cannot be written."""
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: publish to a new folder")
    if run.status != "complete":
        raise UsageError(f"run {run.name!r} is not finished: finish crawling it first")
    selection = selection or Selection()
    statements = select_statements(run, selection)
    if statements.note:
        progress.note(statements.note)
    if not statements.triples:
        raise UsageError(f"run {run.name!r} has no statements that count")
    source = CardSource(
        ExportContent(run, list(statements.triples), statements),
        Recipe.from_run(run, selection),
        tuple(read_figures(run, selection, statements)),
        " ".join(license.split()),
        tuple(" ".join(name.split()) for name in authors if name.strip()),
        datetime.now(UTC).isoformat(timespec="seconds"),
        selection,
    )
    with write_into_folder(folder) as partial:
        _write_files(source, partial)
        if figures:
            from kgbias.report.save import save_figures

            save_figures(run, partial / "figures", selection=selection, progress=progress)
        write_checksums(partial)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _write_files(source: CardSource, folder: Path) -> None:
    (folder / PARQUET_FILE).parent.mkdir()
    write_parquet(source.content, folder / PARQUET_FILE)
    write_jsonl(source.content, folder / STATEMENTS_FILE)
    record = source.recipe.as_dict(source.content.run, source.created)
    for name, value in (
        (RECIPE_FILE, record),
        ("croissant.json", build_croissant(source, folder)),
        ("results.json", build_evaluations(source)),
    ):
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        (folder / name).write_text(text + "\n", encoding="utf-8", newline="")
    for name, text in (
        ("README.md", render_card(source)),
        ("CITATION.cff", render_citation_file(source)),
    ):
        (folder / name).write_text(text, encoding="utf-8", newline="")
