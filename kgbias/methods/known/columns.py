"""The columns of a statement that was held against tables of recorded stereotypes."""

from collections.abc import Mapping

from kgbias.evidence.added_columns import Cells, StatementColumns
from kgbias.graph.stereotypes import KNOWN, best_matches
from kgbias.graph.store import StoredRun

_MARK, _ATTRIBUTE, _TABLE = "recorded", "recorded_as", "recorded_source"


def _read_marks(run: StoredRun) -> Mapping[str, Cells]:
    return {
        id: {_MARK: match.mark, _ATTRIBUTE: match.attribute, _TABLE: match.source}
        for id, match in best_matches(run.stereotype_matches()).items()
    }


def _describe_mark(cells: Cells) -> str:
    is_known = cells.get(_MARK) == KNOWN
    return f"recorded in {cells[_TABLE]}: {cells[_ATTRIBUTE]}" if is_known else ""


COLUMNS = StatementColumns(
    {
        _MARK: "known, related or new, beside the stereotypes that people recorded about its "
        "group in a table, which makes it neither true nor common; empty if it was not compared",
        _ATTRIBUTE: "the recorded stereotype that is nearest; empty if it is new",
        _TABLE: "the name of its table; if new, of all tables that it was compared with",
    },
    _read_marks,
    _describe_mark,
)
