"""Scores that were computed elsewhere, read from a file."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError, list_columns
from kgbias.ids import normalise
from kgbias.io.reading import read_bytes
from kgbias.io.tables import TableFormat, as_text, is_missing, parse_number, read_sheet
from kgbias.io.wording import how
from kgbias.measure.scorers._base import Judgement, probability_judgement
from kgbias.measures import Measure, get_measure

SCORE_TABLE = TableFormat(
    "scores: `scores:FILE`",
    (("sentence", "text", "comment_text"), ("score", "value")),
    ("label",),
    "a score in a column named after the measure",
)
_TEXT_COLUMNS, _VALUE_COLUMNS = SCORE_TABLE.needed_columns


class FileScorer:
    """Scores by text from a table, such as old Perspective scores or those of
    `kgbias export`. The text's column is sentence, text or comment_text. The value's is the one
    that the specification names, or one called like the measure, score or value (for toxicity also
    identity_attack), in the range of the measure. Regard reads regard_label or label (positive,
    neutral, negative, other) and a value if present; a label alone counts as 1, 0 or -1.

    Texts are matched by their normalised form. A text that is not in the file is an error, because
    measuring only some of the triples would mislead."""

    name: str
    language = None

    def __init__(self, measure: str, spec: str) -> None:
        path, _, column = spec.partition("::")
        self.measure: str = measure
        self._path = Path(path)
        content = read_bytes(self._path)
        self.name = f"scores:{self._path.name}"
        self.version = hashlib.sha256(content + column.encode()).hexdigest()[:16]
        rows = _read_rows(self._path)
        read_judgements = _read_classes if get_measure(measure).ends else _read_values
        self._judgements = _judgements_by_text(
            self._path, read_judgements(self._path, rows, get_measure(measure), column)
        )

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        self.need_scores(texts)
        return [self._judgements[normalise(text)] for text in texts]

    def need_scores(self, texts: Sequence[str]) -> None:
        """Raise DataError if the file has no score for one of these texts."""
        missing_texts = [text for text in texts if normalise(text) not in self._judgements]
        if missing_texts:
            all_of_run = how("run.export(PATH)", "kgbias export")
            raise DataError(
                f"{self._path} has no score for {len(missing_texts)} of {len(texts)} sentences, "
                f"for example {missing_texts[0][:80]!r}; {all_of_run} writes all sentences "
                "of a run"
            )


def _read_rows(path: Path) -> list[Mapping[str, Any]]:
    sheet = read_sheet(path, SCORE_TABLE.known_columns)
    # The objects of JSON lines need not share their keys.
    rows: list[Mapping[str, Any]] = [
        {name: row.get(name) for name in sheet.columns} for _, row in sheet.rows
    ]
    if not rows:
        raise DataError(f"{path} holds no rows of scores")
    return rows


def _judgements_by_text(
    path: Path, judgements: Iterable[tuple[str, Judgement]]
) -> dict[str, Judgement]:
    """The judgements by text. Raises DataError for a text with two that differ."""
    judgements_by_text: dict[str, Judgement] = {}
    for text, judgement in judgements:
        if judgements_by_text.setdefault(text, judgement) != judgement:
            raise DataError(
                f"{path} has two scores of {text[:80]!r}, {judgements_by_text[text].value:g} and "
                f"{judgement.value:g}: keep one of them"
            )
    return judgements_by_text


def _read_values(
    path: Path, rows: Sequence[Mapping[str, Any]], measure: Measure, column: str
) -> Iterator[tuple[str, Judgement]]:
    columns_present = [name for name in rows[0] if name]
    text = _find_column(path, columns_present, _TEXT_COLUMNS, "text")
    names = (column,) if column else (measure.name, *measure.columns, *_VALUE_COLUMNS)
    value_column = _find_column(path, columns_present, names, "score")
    for number, row in enumerate(rows, 1):
        if is_missing(as_text(row.get(value_column))):
            continue  # a text without a score: missed only if it is asked for
        value = _read_number(path, number, row, value_column, measure)
        if measure.sides:
            judgement = probability_judgement(measure.name, value, {measure.sides[0]: value})
        else:
            judgement = Judgement(value, str(row.get(measure.label_column) or "").strip(), {})
        yield _text_key(row, text), judgement


def _read_classes(
    path: Path, rows: Sequence[Mapping[str, Any]], measure: Measure, column: str
) -> Iterator[tuple[str, Judgement]]:
    columns_present = [name for name in rows[0] if name]
    text = _find_column(path, columns_present, _TEXT_COLUMNS, "text")
    label = _find_column(
        path, columns_present, (column,) if column else (measure.label_column, "label"), "label"
    )
    numeric = next(
        (name for name in (measure.name, *_VALUE_COLUMNS) if name in columns_present), None
    )
    for number, row in enumerate(rows, 1):
        class_label = str(row.get(label) or "").strip().lower()
        if class_label not in measure.labels:
            raise DataError(
                f"{path}, row {number}: {class_label[:40]!r} is not a {measure.name} label"
            )
        sign = measure.signs.get(class_label, 0.0)
        value = _read_number(path, number, row, numeric, measure) if numeric else sign
        yield _text_key(row, text), Judgement(value, class_label, {})


def _text_key(row: Mapping[str, Any], column: str) -> str:
    return normalise(str(row.get(column) or ""))


def _find_column(
    path: Path, columns_present: Sequence[str], wanted_columns: Sequence[str], content: str
) -> str:
    column = next((name for name in wanted_columns if name in columns_present), None)
    if column is None:
        raise UsageError(
            f"{path} has no column for the {content}: looked for {', '.join(wanted_columns)}; it "
            f"has {list_columns(columns_present)}. Name one as scores:FILE::COLUMN"
        )
    return column


def _read_number(
    path: Path, number: int, row: Mapping[str, Any], column: str, measure: Measure
) -> float:
    try:
        value = parse_number(row.get(column))
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    lowest, highest = measure.range or (-math.inf, math.inf)
    if not (lowest <= value <= highest and math.isfinite(value)):
        bounds = f" from {lowest:g} to {highest:g}" if measure.range else ""
        raise DataError(
            f"{path}, row {number}: {column} {str(row.get(column))[:40]!r} is not a number{bounds}"
        )
    return value
