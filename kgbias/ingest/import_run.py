"""From the statements of a file to a run in the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.graph.store import Store
from kgbias.graph.types import Category, Generation, Group, Run
from kgbias.ids import content_id
from kgbias.ingest.statement_file import StatementFile
from kgbias.ingest.statement_table import ImportedStatement
from kgbias.io.columns import Column, columns_of
from kgbias.io.rows import Result, Rows
from kgbias.models.base import ModelInfo

DEFAULT_CATEGORY = "imported"  # of groups whose file names none


@dataclass(frozen=True, slots=True, repr=False)
class ImportResult(Result):
    """The run, with the number of its statements (each counted as often as it was said), of its
    distinct triples, of the file's rows left out because they lacked a part and, for a corpus, of
    its passages and their relations."""

    run: Run
    statements: int
    triples: int
    left_out: int
    passages: int = 0
    relations: int = 0

    def as_rows(self) -> Rows["ImportResult"]:
        """Itself. Columns: run (its name), and the counts."""
        _, *counts = columns_of(ImportResult)
        return Rows([self], (Column("run", get=attrgetter("run.name")), *counts))


def import_file(
    store: Store,
    path: Path,
    read: StatementFile,
    *,
    name: str | None = None,
    model: str = "unknown",
    category: str = DEFAULT_CATEGORY,
) -> ImportResult:
    """Make a run from what was read from the file at `path`. The run's id is computed from the
    file's content, how it was read, and the model, so importing again changes nothing.

    A group belongs to the category that its first statement names, or else to `category`."""
    statements = read.statements
    groups: dict[str, Group] = {}
    for statement in statements:
        groups.setdefault(
            statement.triple.group_id, Group(statement.triple.group, statement.category or category)
        )
    config = {"file": path.name, "sha256": read.sha256, "category": category, **read.settings}
    info = ModelInfo(model)
    run = store.begin_run(
        Run(
            name or f"{path.stem}-{content_id('name', model, repr(sorted(config.items())))[:4]}",
            info,
            config,
            tuple(groups.values()),
            categories=tuple(
                Category(name_) for name_ in sorted({group.category for group in groups.values()})
            ),
            kind="import",
        )
    )
    store.load_import(
        run.id,
        (_make_generation(run, number, statement) for number, statement in enumerate(statements)),
    )
    profiles = _make_profiles(run, statements)
    if profiles:
        store.save_profiles(run.id, profiles)
    store.set_status(run.id, "complete")
    return ImportResult(
        store.find_run(run.name),
        sum(statement.count for statement in statements),
        len({statement.triple.id for statement in statements}),
        read.incomplete_rows,
    )


def _make_profiles(run: Run, statements: Sequence[ImportedStatement]) -> list[Profile]:
    """The profiles that the statements belong to, one for each row of the file."""
    statements_by_row: dict[int, list[tuple[int, ImportedStatement]]] = {}
    for number, statement in enumerate(statements):
        if statement.character is not None:
            statements_by_row.setdefault(statement.character.row, []).append((number, statement))
    profiles = []
    for row, row_statements in statements_by_row.items():
        first_statement = row_statements[0][1]
        assert first_statement.character is not None
        parts = tuple(
            ProfilePart(statement.attribute, _make_generation(run, index, statement).id)
            for index, statement in row_statements
        )
        profiles.append(
            Profile(
                run.id,
                f"{row:08d}",
                first_statement.character.name,
                first_statement.triple.group_id,
                first_statement.character.labels,
                parts,
            )
        )
    return profiles


def _make_generation(run: Run, number: int, statement: ImportedStatement) -> Generation:
    return Generation(
        run_id=run.id,
        path=f"{statement.arm}/import/{number:08d}",
        group_id=statement.triple.group_id,
        arm=statement.arm,
        strategy="import",
        iteration=0,
        attempt=0,
        outcome="ok",
        triple=statement.triple,
        count=statement.count,
    )
