"""Draw the labelled statements that ship, with which `kgbias.measure.precision` checks a judge."""

import csv
import io
import random
from collections.abc import Mapping
from pathlib import Path

from kgbias.graph.types import verbalise
from kgbias.io.files import write_text
from kgbias.io.reading import read_text
from kgbias.io.tables import parse_table
from kgbias.measure.precision import SAMPLE_SIZE

# The file, the column of its label, and what a label there is called here; "": none.
_FILES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "regard": ("crawled.tsv", "regard", {"none": ""}),
    "toxicity": ("sentences.tsv", "toxic", {"1": "toxic", "0": "not toxic"}),
    "identity_attack": ("attack_crawled.tsv", "attack", {"1": "attack", "0": "no attack"}),
    "acceptability": (
        "acceptability.tsv",
        "label",
        {"m": "meaningful", "p": "not meaningful", "n": "not meaningful"},
    ),
}
_WARNING = (
    "# Content warning: stereotypes and insults, written or collected to check a scorer. They are "
    "nobody's opinion.\n"
)


def run(path: Path) -> None:
    """Write the table of `kgbias.measure.precision` to `path`."""
    text = io.StringIO()
    rows = csv.writer(text, delimiter="\t", lineterminator="\n")
    rows.writerow(("measure", "label", "text"))
    for measure in _FILES:
        rows.writerows((measure, label, said) for said, label in draw(measure))
    write_text(path, _WARNING + text.getvalue())


def draw(measure: str) -> list[tuple[str, str]]:
    """A balanced sample of (sentence, label), with as many of each label as are available."""
    file, column, names = _FILES[measure]
    path = Path(__file__).with_name(file)
    lines = (line for line in read_text(path).splitlines(keepends=True) if line[:1] != "#")
    by_label: dict[str, list[str]] = {}
    for _, row in parse_table(lines, str(path), (column,), delimiter="\t").rows:
        if not (label := names.get(row[column], row[column])):
            continue
        text = row.get("text") or verbalise(row["group"], row["predicate"], row["object"])
        by_label.setdefault(label, []).append(text)
    rng = random.Random(f"labelled:{measure}")
    each = SAMPLE_SIZE // len(by_label)
    sample = [
        (text, label)
        for label, texts in sorted(by_label.items())
        for text in rng.sample(sorted(set(texts)), min(each, len(set(texts))))
    ]
    rng.shuffle(sample)
    return sample
