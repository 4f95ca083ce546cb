"""From the statements of a file to a run in the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgbias.graph.profiles import ProfilePart, Profile
from kgbias.graph.store import Store
from kgbias.graph.types import Category, Generation, Group, Run
from kgbias.ids import content_id
from kgbias.ingest.read import Read
from kgbias.ingest.tables import Statement
from kgbias.models.base import ModelInfo

DEFAULT_CATEGORY = "imported"


@dataclass(frozen=True, slots=True)
class Imported:
    """The run, with the number of its statements (each counted as often as it was said), of its
    distinct triples, of the file's rows left out because they lacked a part and, for a corpus, of
    its passages and their relations."""

    run: Run
    statements: int
    triples: int
    left_out: int
    passages: int = 0
    relations: int = 0


def import_file(
    store: Store,
    path: Path,
    read: Read,
    *,
    name: str | None = None,
    model: str = "unknown",
    category: str = DEFAULT_CATEGORY,
) -> Imported:
    """Make a run from what was read from the file at `path`. The run's id is computed from the
    file's content, how it was read, and the model, so importing again changes nothing.

    A group belongs to the category that its first statement names, or else to `category`."""
    statements = read.statements
    groups: dict[str, Group] = {}
    for s in statements:
        groups.setdefault(s.triple.group_id, Group(s.triple.group, s.category or category))
    config = {"file": path.name, "sha256": read.sha256, "category": category, **read.settings}
    info = ModelInfo(model)
    run = store.begin_run(
        Run(
            name or f"{path.stem}-{content_id('name', model, repr(sorted(config.items())))[:4]}",
            info,
            config,
            tuple(groups.values()),
            categories=tuple(Category(c) for c in sorted({g.category for g in groups.values()})),
            kind="import",
        )
    )
    store.load_import(run.id, (_generation(run, n, s) for n, s in enumerate(statements)))
    if profiles := _profiles(run, statements):
        store.save_profiles(run.id, profiles)
    store.set_status(run.id, "complete")
    return Imported(
        store.find_run(run.name),
        sum(s.count for s in statements),
        len({s.triple.id for s in statements}),
        read.left_out,
    )


def _profiles(run: Run, statements: Sequence[Statement]) -> list[Profile]:
    """The profiles that the statements belong to, one for each row of the file."""
    rows: dict[int, list[tuple[int, Statement]]] = {}
    for number, s in enumerate(statements):
        if s.character is not None:
            rows.setdefault(s.character.row, []).append((number, s))
    found = []
    for row, own in rows.items():
        first = own[0][1]
        assert first.character is not None
        parts = tuple(ProfilePart(s.attribute, _generation(run, n, s).id) for n, s in own)
        found.append(
            Profile(
                run.id,
                f"{row:08d}",
                first.character.name,
                first.triple.group_id,
                first.character.labels,
                parts,
            )
        )
    return found


def _generation(run: Run, number: int, statement: Statement) -> Generation:
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
