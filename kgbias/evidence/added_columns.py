"""Columns that methods have for a run's statements: in the joint view, in exports and in lists.

A method or another package adds them by an entry point of the group "kgbias.columns".
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from kgbias.graph.store import StoredRun
from kgbias.io.plugins import PluginTable

Cells = Mapping[str, str]


def _describe_nothing(cells: Cells) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class StatementColumns:
    """What a method has about each statement of a run, as texts.

    Attributes:
        columns: the names of its columns, which begin with the name of the entry, each with what
            it holds.
        read: the cells of the run's triples, by a triple's id and then by column; empty if the
            method was not applied to the run.
        describe: the cells of a statement in a few words, where statements are listed; "" for none.
    """

    columns: Mapping[str, str]
    read: Callable[[StoredRun], Mapping[str, Cells]]
    describe: Callable[[Cells], str] = _describe_nothing


def _find_fault(name: str, entry: StatementColumns) -> str:
    wrong = [column for column in entry.columns if not column.startswith(name)]
    return f"the column {wrong[0]!r} does not begin with {name!r}" if wrong else ""


STATEMENT_COLUMNS: PluginTable[StatementColumns] = PluginTable(
    "column", StatementColumns, {}, _find_fault
)
"""What each method has about statements, by how its columns begin."""


@dataclass(frozen=True, slots=True)
class MethodColumns:
    """The columns that methods have for a run.

    Attributes:
        columns: their names, each with what it holds; of the methods that were applied to the run.
        cells: by a triple's id and then by column; of the triples that have any.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[str, Cells] = field(default_factory=dict)

    @classmethod
    def read(cls, run: StoredRun) -> "MethodColumns":
        """Those of all methods that were applied to the run. Imports all of them."""
        columns: dict[str, str] = {}
        cells: dict[str, dict[str, str]] = {}
        for added in STATEMENT_COLUMNS.usable_entries().values():
            if cells_by_triple := added.read(run):
                columns |= added.columns
            for id, own_cells in cells_by_triple.items():
                cells.setdefault(id, {}).update(own_cells)
        return cls(columns, cells)


def describe_cells(cells: Cells) -> Iterator[str]:
    """What methods say of a statement with these cells, in a few words each."""
    if not cells:
        return
    for added in STATEMENT_COLUMNS.usable_entries().values():
        if words := added.describe(cells):
            yield words
