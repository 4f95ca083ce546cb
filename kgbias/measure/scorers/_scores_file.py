"""Scores that were computed elsewhere, read from a file."""

import hashlib
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError
from kgbias.ids import normalise
from kgbias.io.reading import json_value, read_bytes, table
from kgbias.measure.scorers._base import (
    PROBABILITIES,
    REGARD,
    Judgement,
    probability_judgement,
)
from kgbias.measures import MEASURES

_TEXT = ("sentence", "text", "comment_text")
_PROBABILITY = {
    "toxicity": ("toxicity", "identity_attack", "score", "value"),
    "identity_attack": ("identity_attack", "score", "value"),
    "acceptability": ("acceptability", "score", "value"),
}
_REGARD = ("regard", "score", "value")
_REGARD_LABEL = ("regard_label", "label")


class FileScorer:
    """Scores by text from a CSV, TSV or JSON-lines file, such as old Perspective scores or those of
    `kgbias export`. The text's column is sentence, text or comment_text. Toxicity reads the column
    that the specification names, or toxicity, identity_attack, score or value: a probability.
    Identity attack and acceptability likewise: the column of that name, score or value.
    Regard reads regard_label or label (positive, neutral, negative, other) and, where it is there,
    regard, score or value in [-1, 1]; a label alone counts as 1, 0 or -1.

    Texts are matched by their normalised form. A text that is not in the file is an error, since a
    measure of some of the triples would mislead."""

    name: str
    language = None

    def __init__(self, measure: str, spec: str) -> None:
        path, _, column = spec.partition("::")
        self.measure: str = measure
        self._path = Path(path)
        content = read_bytes(self._path)
        self.name = f"scores:{self._path.name}"
        self.version = hashlib.sha256(content + column.encode()).hexdigest()[:16]
        rows = _rows(self._path, content)
        self._judgements = dict(_judgements(self._path, rows, measure, column))

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        keys = [normalise(text) for text in texts]
        missing = [t for t, key in zip(texts, keys, strict=True) if key not in self._judgements]
        if missing:
            raise DataError(
                f"{self._path} has no score for {len(missing)} of {len(texts)} sentences, for "
                f"example {missing[0][:80]!r}; kgbias export writes all sentences of a run"
            )
        return [self._judgements[key] for key in keys]


def _rows(path: Path, content: bytes) -> list[Mapping[str, Any]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error.reason}") from error
    rows: list[Any]
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        rows = [
            json_value(line, f"{path}, line {number}")
            for number, line in enumerate(io.StringIO(text), 1)
            if line.strip()
        ]
    else:
        delimiter = "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
        rows = [row for _, row in table(io.StringIO(text, newline=""), str(path), (), delimiter)[1]]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path} holds no rows of scores")
    return rows


def _judgements(
    path: Path, rows: Sequence[Mapping[str, Any]], measure: str, column: str
) -> Iterator[tuple[str, Judgement]]:
    there = [name for name in rows[0] if name]
    text = _first(path, there, _TEXT, "text")
    if measure in PROBABILITIES:
        wanted = _first(path, there, (column,) if column else _PROBABILITY[measure], "score")
        for number, row in enumerate(rows, 1):
            value = _number(path, number, row, wanted, 0.0)
            own = {PROBABILITIES[measure][0]: value}
            yield _key(row, text), probability_judgement(measure, value, own)
        return
    label = _first(path, there, (column,) if column else _REGARD_LABEL, "label")
    numeric = next((name for name in _REGARD if name in there), None)
    for number, row in enumerate(rows, 1):
        said = str(row.get(label) or "").strip().lower()
        if said not in (*REGARD, "other"):
            raise DataError(f"{path}, row {number}: {said[:40]!r} is not a regard label")
        sign = MEASURES["regard"].signs.get(said, 0.0)
        value = _number(path, number, row, numeric, -1.0) if numeric else sign
        yield _key(row, text), Judgement(value, said, {})


def _key(row: Mapping[str, Any], column: str) -> str:
    return normalise(str(row.get(column) or ""))


def _first(path: Path, there: Sequence[str], wanted: Sequence[str], what: str) -> str:
    found = next((name for name in wanted if name in there), None)
    if found is None:
        raise UsageError(
            f"{path} has no column for the {what}: looked for {', '.join(wanted)}; it has "
            f"{', '.join(there)}. Name one as scores:FILE::COLUMN"
        )
    return found


def _number(path: Path, number: int, row: Mapping[str, Any], column: str, lowest: float) -> float:
    try:
        value = float(row.get(column))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not lowest <= value <= 1:
        raise DataError(
            f"{path}, row {number}: {column} {str(row.get(column))[:40]!r} is not a number from "
            f"{lowest:g} to 1"
        )
    return value
