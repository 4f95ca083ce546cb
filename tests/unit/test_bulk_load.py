"""A large load into a file goes through memory, and leaves what a small one would."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kgbias.graph.sqlite import SQLiteStore, crawls
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.models.base import ModelInfo


def said(run: Run) -> list[Generation]:
    """Each thing twice, in two forms, of which nodes keep the first; some with nothing to say."""
    triples = [
        Triple(f"Group {n % 7}", ("are", "Are")[n // 50], f"thing {n % 50}") for n in range(100)
    ]
    return [
        Generation(
            run_id=run.id,
            path=f"import/{n:03d}",
            group_id=t.group_id,
            arm="none",
            strategy="import",
            iteration=0,
            attempt=0,
            outcome="ok" if n % 9 else "unparsable",
            triple=t if n % 9 else None,
            shown=tuple(other.id for other in triples[: n % 3]),
        )
        for n, t in enumerate(triples)
    ]


def loaded(path: Path) -> tuple[Run, list[tuple[object, ...]]]:
    groups = tuple(Group(f"Group {n}", "test") for n in range(7))
    with closing(SQLiteStore(str(path))) as store:
        run = store.begin_run(Run("test", ModelInfo("none"), {}, groups, kind="import"))
        assert store.load_import(run.id, iter(said(run))) == 100
        assert store.load_import(run.id, iter(said(run))) == 100  # which changes nothing
    with closing(sqlite3.connect(path)) as db:
        return run, [
            row
            for table in crawls._STAGED_KEYS
            for row in sorted(db.execute(f"SELECT * FROM {table}"), key=repr)
        ]


@pytest.mark.parametrize("pages", [0, 10**6])
def test_a_large_load_is_what_a_small_one_is(
    pages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, small = loaded(tmp_path / "small.db")
    monkeypatch.setattr(crawls, "_MAX_BULK_ROWS", 8)
    # moved after each batch, or at the end
    monkeypatch.setattr(crawls, "_MAX_STAGED_PAGES", pages)
    _, large = loaded(tmp_path / "large.db")
    assert large == small


def test_a_load_that_breaks_off_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, small = loaded(tmp_path / "small.db")
    monkeypatch.setattr(crawls, "_MAX_BULK_ROWS", 8)
    with closing(SQLiteStore(str(tmp_path / "large.db"))) as store:

        def broken() -> Iterator[Generation]:
            yield from said(run)[:30]
            raise OSError("the pipe broke")

        groups = tuple(Group(f"Group {n}", "test") for n in range(7))
        store.begin_run(Run("test", ModelInfo("none"), {}, groups, kind="import"))
        with pytest.raises(OSError, match="pipe"):
            store.load_import(run.id, broken())
        store.load_import(run.id, iter(said(run)))
    _, large = loaded(tmp_path / "large.db")
    assert large == small
