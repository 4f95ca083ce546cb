"""The scores of models on other benchmarks, from a table, to stand beside SoFa."""

from pathlib import Path

from kgbias.errors import DataError
from kgbias.io.tables import TableFormat, read_table
from kgbias.io.tables_in_memory import Table, as_table_file

BENCHMARKS_FORMAT = TableFormat(
    "scores of models on benchmarks: `sofa results --beside`",
    (("model",),),
    other_forms="a column for each benchmark",
)


def read_benchmarks(table: Table) -> dict[str, dict[str, float]]:
    """The models' scores by benchmark, from a table with the column model and a column for each
    benchmark; an empty cell means that a model was not scored. Raises DataError."""
    with as_table_file(table, BENCHMARKS_FORMAT.columns, name="benchmarks") as path:
        return _parse_benchmarks(path)


def _parse_benchmarks(path: Path) -> dict[str, dict[str, float]]:
    columns, rows = read_table(path, BENCHMARKS_FORMAT.columns)
    names = [name for name in columns if name != "model"]
    scores: dict[str, dict[str, float]] = {name: {} for name in names}
    for line, row in rows:
        for name in names:
            if cell := row[name].strip():
                try:
                    scores[name][row["model"]] = float(cell)
                except ValueError:
                    raise DataError(f"{path}, line {line}: {name} is not a number") from None
    if not names:
        raise DataError(f"{path} has no benchmarks: add a column for each beside the column model")
    return scores
