"""Where stereotypes come from: the user's copy of SBIC, another table, or a text file."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgbias.errors import DataError, UsageError
from kgbias.io.reading import read_table, read_text

# SBIC's categories as SoFa names them (section 3.2); its victim, social and body have no lexicon.
SBIC: Mapping[str, str] = {
    "gender": "gender",
    "race": "nationality",
    "culture": "religion",
    "disabled": "disability",
}
# The categories of a crawl as SoFa names them: race and country are one.
CRAWLED: Mapping[str, str] = {"ethnicity": "nationality", "race": "nationality"}
_SBIC_COLUMNS = ("targetStereotype", "targetCategory")
_STATEMENTS = ("statement", "stereotype", "text")


@dataclass(frozen=True, slots=True)
class Stereotypes:
    """Stereotypes as (category, text), "" for a category that all share; `unmapped` counts those
    whose category has no identities, by category."""

    rows: Sequence[tuple[str, str]]
    unmapped: Mapping[str, int]
    name: str


def read_stereotypes(path: Path, column: str | None = None) -> Stereotypes:
    """The stereotypes of a file: SBIC as it is published (CSV, one annotation or the list of them
    in a row), a CSV or TSV with a column statement (or `column`) and optionally category, or a text
    file with one in each line.

    Raises DataError for a file that cannot be read, UsageError for a column that is not there.
    """
    if path.suffix.lower() not in (".csv", ".tsv"):
        if column is not None:
            raise UsageError(f"`column` is of a table, and {path} is none")
        lines = [line.strip() for line in read_text(path).splitlines()]
        return Stereotypes([("", line) for line in lines if line], {}, path.name)
    header, rows = read_table(path, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    if column is None and set(_SBIC_COLUMNS) <= set(header):
        said = ((row["targetCategory"], row["targetStereotype"]) for _, row in rows)
        return mapped(_annotations(said), SBIC, path.name, others=False)
    chosen = column or next((name for name in _STATEMENTS if name in header), None)
    if chosen is None or chosen not in header:
        raise UsageError(
            f"{path} has no column {column or 'statement'!r}: name the one that holds the "
            f"statements in `column`; there is {', '.join(header)}"
        )
    return Stereotypes(
        [(row.get("category", "").strip(), row[chosen]) for _, row in rows if row[chosen].strip()],
        {},
        path.name,
    )


def mapped(
    rows: Iterable[tuple[str, str]], names: Mapping[str, str], source: str, *, others: bool
) -> Stereotypes:
    """Stereotypes with their categories renamed; a category without a name here is kept as it is
    (`others`) or left out and counted."""
    kept, unmapped = [], dict[str, int]()
    for category, text in rows:
        key = category.strip().lower()
        if key in names or others:
            kept.append((names.get(key, category), text))
        else:
            unmapped[key] = unmapped.get(key, 0) + 1
    return Stereotypes(kept, unmapped, source)


def _annotations(rows: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """Each stereotype of SBIC; its aggregated file holds lists, written as JSON."""
    for category, text in rows:
        categories, texts = _listed(category), _listed(text)
        for one in categories or [""] if any(texts) else []:
            yield from ((one, t) for t in texts if t.strip())


def _listed(cell: str) -> list[str]:
    if not cell.startswith("["):
        return [cell] if cell.strip() else []
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise DataError(f"a list of SBIC cannot be read: {cell[:60]!r}") from error
    return [str(text) for text in found]
