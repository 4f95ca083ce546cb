"""The dataset card: README.md with the metadata that Hugging Face reads."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from kgbias.graph.types import GroupScore
from kgbias.io.files import NAME as CHECKSUMS
from kgbias.io.text import CONTENT_WARNING, markdown, xml_safe
from kgbias.measures import figures
from kgbias.publish.recipe import NAME as RECIPE
from kgbias.publish.recipe import STATEMENTS
from kgbias.publish.statement import IMPACT, LIMITS, NO_USES, PERSONAL, USES, Source

PARQUET = "data/statements.parquet"
_IDENTIFIER = re.compile(r"[A-Za-z]+[A-Za-z0-9]*([.-][A-Za-z0-9]+)*")
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"))
_SHOWN = ("overall_regard", "toxicity_mean")


def card(source: Source) -> str:
    """The whole card."""
    metadata = "\n".join(f"{name}: {_yaml(value)}" for name, value in _metadata(source).items())
    return f"---\n{metadata}\n---\n\n" + "\n".join(_text(source))


def _metadata(source: Source) -> dict[str, Any]:
    size = len(source.content.triples)
    return {
        "pretty_name": source.title,
        "language": [source.language],
        **_license(source.license),
        "tags": ["bias", "stereotypes", "fairness", "language-models", "kgbias",
                 "not-for-all-audiences"],
        "annotations_creators": ["machine-generated"],
        "language_creators": ["machine-generated"],
        "source_datasets": ["original"],
        "size_categories": [next((name for most, name in _SIZES if size < most), "n>1M")],
        "configs": [{
            "config_name": "statements",
            "default": True,
            "data_files": [{"split": "train", "path": PARQUET}],
        }],
    }  # fmt: skip


def _license(license: str) -> dict[str, str]:
    """Hugging Face knows licences by short names; any other is "other", in its own words."""
    if not license:
        return {"license": "unknown"}
    if _IDENTIFIER.fullmatch(license):
        return {"license": license.lower()}
    link = {"license_link": license} if license.startswith(("https://", "http://")) else {}
    return {"license": "other", "license_name": license, **link}


def _yaml(value: Any) -> str:
    """A value on one line: JSON without the characters that YAML forbids is YAML."""
    return xml_safe(json.dumps(value, ensure_ascii=False))


def _text(source: Source) -> Iterator[str]:
    yield f"# {markdown(source.title)}\n"
    yield f"> **{CONTENT_WARNING}**\n"
    yield f"{markdown(source.summary)} Made with kgbias.\n"
    yield "```python\nfrom datasets import load_dataset\n"
    yield 'statements = load_dataset("FOLDER-OR-ID", split="train")\n```\n'
    yield "## Files\n\n| file | contents |\n|---|---|"
    yield f"| `{PARQUET}`, `{STATEMENTS}` | the statements, one row for each arm that made one |"
    yield "| `results.json` | figures of each group, in the Every Eval Ever schema |"
    yield f"| `{RECIPE}` | the configuration, to make the data again |"
    yield "| `croissant.json` | metadata in the Croissant 1.1 format |"
    yield f"| `CITATION.cff`, `{CHECKSUMS}` | how to cite the data, and checksums of all files |\n"
    yield "| column | contents |\n|---|---|"
    for name, meaning in source.columns.items():
        yield f"| `{name}` | {meaning} |"
    yield "\n## Groups\n"
    yield from _groups(source)
    yield "\n## Data statement\n"
    for head, body in (
        ("Model", source.model),
        ("Method", source.collection),
        ("What was left out", source.preprocessing),
        ("Scores", source.annotation),
        ("Language", source.language),
        ("Biases", source.biases),
        ("Personal data", PERSONAL),
        ("What it is for", USES),
        ("What it is not for", NO_USES),
        ("Harm", IMPACT),
        ("Licence of the model's outputs", source.license_said),
    ):
        yield f"**{head}.** {markdown(body)}\n"
    yield "**Limits.**\n"
    for limit in LIMITS:
        yield f"- {limit}"
    yield "\n## Make it again\n"
    yield from _again(source)
    yield "\n## Cite it\n\n`CITATION.cff` says how. Cite the model and the methods too.\n"


def _groups(source: Source) -> Iterator[str]:
    content, known = source.content, figures()
    values = {(f.group_id, f.arm, f.measure): f for f in source.figures}
    shown = [name for name in _SHOWN if any(f.measure == name for f in source.figures)]
    heads = ["group", "category", "arm", "statements", "distinct"]
    heads += [f"{known[name].title} (95% interval)" for name in shown]
    yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
    for group in content.run.groups:
        for arm in content.counted.arms:
            own = [t for t in content.triples if t.group_id == group.id and t.arm == arm]
            cells = [markdown(group.name), markdown(group.category), markdown(arm)]
            cells += [str(sum(t.count for t in own)), str(len(own))]
            for name in shown:
                found = values.get((group.id, content.counted.label(arm), name))
                cells.append(_figure(found, known[name].form) if found else "")
            yield f"| {' | '.join(cells)} |"


def _figure(figure: GroupScore, form: str) -> str:
    if not math.isfinite(figure.value):
        return ""
    interval = figure.interval(form, none="")
    return f"{figure.value:{form}}{interval and f' ({interval})'}"


def _again(source: Source) -> Iterator[str]:
    if source.recipe.kind != "crawl":
        yield (
            "These statements cannot be made again: they are not from a crawl. "
            "`kgbias reproduce . --check` checks the files against their checksums."
        )
        return
    yield (
        "```console\n$ kgbias reproduce .\n```\n\n"
        f"reads `{RECIPE}`, checks the files against `{CHECKSUMS}`, asks the model again, and says "
        "what differs."
    )
