"""The published file of StereoSet (Nadeem et al. 2021), which is a benchmark and a table of
stereotypes that people recorded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kgbias.errors import DataError
from kgbias.io.reading import read_head, read_json
from kgbias.io.tables import PARQUET_MAGIC, TableFormat, parse_literal, read_sheet

TABLE_FORMAT = TableFormat(
    "StereoSet: `--stereoset`",
    (("context",), ("target",), ("bias_type",), ("sentences",)),
    ("id",),
    "the authors' JSON",
)
LABELS = ("stereotype", "anti-stereotype", "unrelated")
PARTS = ("intrasentence", "intersentence")


@dataclass(frozen=True, slots=True)
class StereoSetExample:
    """An example: `sentences` in the order of `LABELS`; `part` is one of `PARTS`."""

    name: str
    part: str
    target: str
    domain: str
    context: str
    sentences: tuple[str, ...]


class StereoSetExamples(NamedTuple):
    """The examples of a file, and how many are left out."""

    examples: list[StereoSetExample]
    left_out: int


def read_examples(path: Path) -> StereoSetExamples:
    """The examples of the published file (JSON with data.intrasentence, data.intersentence, or
    both), or of a table with one example a row (a JSON list, JSON lines or Parquet, as the Hugging
    Face hub has it); and how many are left out as they lack a text."""
    examples: list[StereoSetExample] = []
    left_out = 0
    try:
        for number, (part, entry) in enumerate(_entries(path)):
            example = _build_example(path, part, entry, number)
            examples += [example] if example else []
            left_out += not example
    except KeyError as error:
        raise DataError(
            f"{path} is not a StereoSet file: there is no {error} in an example"
        ) from error
    except (TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{path} is not a StereoSet file: it needs the examples of dev.json, or a list of "
            f"objects with {', '.join(TABLE_FORMAT.columns)}"
        ) from error
    if not examples:
        raise DataError(f"{path} has neither intrasentence nor intersentence examples")
    return StereoSetExamples(examples, left_out)


def is_stereoset(path: Path) -> bool:
    """Whether a file begins as StereoSet does, in JSON: of data, or a table with its columns; or is
    such a table in Parquet."""
    head = read_head(path, _HEAD_BYTES).lstrip()
    if head.startswith(PARQUET_MAGIC):
        return set(TABLE_FORMAT.columns) <= set(read_sheet(path, TABLE_FORMAT.columns).columns)
    return head[:1] in (b"{", b"[") and b'"sentences"' in head and b'"context"' in head


_HEAD_BYTES = 1 << 16  # bytes
# Labels on the hub, by number; a dict, since a file may have any number.
_LABEL_CODES = dict(enumerate(("anti-stereotype", "stereotype", "unrelated")))


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """The examples as they stand in the file, each with its part."""
    data = _read_whole_json(path)
    if isinstance(data, dict) and isinstance(data.get("data"), dict):
        for part in PARTS:
            for entry in data["data"].get(part) or ():
                yield part, entry
        return
    rows = (
        data
        if isinstance(data, list)
        else [row for _, row in read_sheet(path, TABLE_FORMAT.columns).rows]
    )
    for row in rows:
        sentences = parse_literal(row["sentences"])  # as pandas writes what the hub holds
        yield PARTS["BLANK" not in row["context"]], {**row, "sentences": sentences}


def _read_whole_json(path: Path) -> Any:
    """The value of a file of JSON; None for JSON lines and Parquet."""
    try:
        return read_json(path)
    except DataError:
        return None


def _sentences_by_label(sentences: Any) -> dict[str, str]:
    """The sentences by label: of a list of objects, or of an object of lists."""
    if isinstance(sentences, Mapping):
        labels, texts = sentences["gold_label"], sentences["sentence"]
    else:
        labels = [one["gold_label"] for one in sentences]
        texts = [one["sentence"] for one in sentences]
    names = (_LABEL_CODES[label] if isinstance(label, int) else label for label in labels)
    return dict(zip(names, texts, strict=True))


def _build_example(path: Path, part: str, entry: Any, number: int) -> StereoSetExample | None:
    """An example as it stands in the file; None for one without a text."""
    by_label = _sentences_by_label(entry["sentences"])
    sentences = tuple(by_label[label] for label in LABELS)
    name = str(entry.get("id") or number)
    example = StereoSetExample(
        name, part, entry["target"], entry["bias_type"], entry["context"], sentences
    )
    texts = (example.target, example.domain, example.context, *sentences)
    if not all(isinstance(text, str | None) for text in texts):
        raise DataError(f"{path}: a field of example {number + 1} is not text")
    if not all(text and text.strip() for text in texts):
        return None
    if part == PARTS[0] and "BLANK" not in example.context:
        raise DataError(f"{path}: no BLANK in {example.context!r}")
    return example
