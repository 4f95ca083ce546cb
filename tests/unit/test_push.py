"""Copying a run asks little of the target and holds little of the source."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

import kgbias
from kgbias.errors import UsageError
from kgbias.graph import push as module
from kgbias.graph.profiles import READING_STRATEGY
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Answer, Generation, Group, Run, Triple
from kgbias.io.progress import SilentProgress
from kgbias.models.base import ModelInfo

GROUPS = (Group("Elves", "peoples"),)


class Counting(SQLiteStore):
    """A store that counts what it is asked."""

    asked = 0

    def answers(self, keys: Sequence[str]) -> dict[str, Answer]:
        self.asked += 1
        return super().answers(keys)


def begun(store: SQLiteStore, kind: str, count: int) -> StoredRun:
    run = Run("r", ModelInfo("m"), {}, GROUPS, kind=kind)
    store.begin_run(run)
    for iteration in range(2):
        batch = [
            Generation(
                run.id,
                f"none/{iteration}/{n:05d}",
                GROUPS[0].id,
                "none",
                "object",
                iteration,
                0,
                "ok",
                answer_key=f"k{iteration}-{n}",
                triple=Triple("Elves", "love", f"song {n}"),
            )
            for n in range(count)
        ]
        store.keep_answers([Answer(g.answer_key, run.model.id, "x", "stop") for g in batch])
        store.record_round(run.id, "none", iteration, batch)
    return StoredRun(store, store.find_run("r"))


@pytest.mark.parametrize(("kind", "questions"), [("crawl", 6), ("import", 5)])
def test_the_answer_log_is_asked_once_a_chunk(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, questions: int
) -> None:
    monkeypatch.setattr(module, "_CHUNK_ROWS", 100)
    run = begun(store, kind, 250)
    with Counting(str(tmp_path / "copy.db")) as target:
        assert module.push_run(run, target) == 500
        assert target.asked == questions
        assert len(target.answers([g.answer_key for g in run.generations()])) == 500
        assert list(target.generations(run.id)) == list(run.generations())
        assert module.push_run(run, target) == 0


@pytest.mark.parametrize("kind", ["crawl", "import"])
def test_generations_of_a_run_that_the_target_lacks_are_not_looked_up(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    run, looked = begun(store, kind, 3), 0
    known = SQLiteStore.known_generations

    def counted(self: SQLiteStore, ids: Sequence[str]) -> set[str]:
        nonlocal looked
        looked += len(ids)
        return known(self, ids)

    monkeypatch.setattr(SQLiteStore, "known_generations", counted)
    with SQLiteStore(str(tmp_path / "copy.db")) as target:
        target.begin_run(Run("another", ModelInfo("m"), {"seed": 1}, GROUPS, kind="import"))
        assert (module.push_run(run, target), looked) == (6, 0)
        assert (module.push_run(run, target), looked) == (0, 6)


def test_no_other_run_is_counted(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(store, "import", 3)
    store.add_work(run.id, 1.5)
    monkeypatch.setattr(SQLiteStore, "summaries", None)
    with SQLiteStore(str(tmp_path / "copy.db")) as target:
        target.begin_run(Run("another", ModelInfo("m"), {"seed": 1}, GROUPS, kind="import"))
        assert module.push_run(run, target) == 6
        assert module.push_run(run, target) == 0
        assert target.summary(run.id).seconds == 1.5


def test_an_import_is_streamed(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK_ROWS", 100)
    run = begun(store, "import", 250)
    read = 0
    generations = SQLiteStore.generations

    def counted(self: SQLiteStore, run_id: str) -> Iterator[Generation]:
        nonlocal read
        for generation in generations(self, run_id):
            read += 1
            yield generation

    monkeypatch.setattr(SQLiteStore, "generations", counted)
    ahead = []
    load = SQLiteStore.load_import

    def loaded(self: SQLiteStore, run_id: str, given: Iterable[Generation]) -> int:
        def told() -> Iterator[Generation]:
            for number, generation in enumerate(given):
                ahead.append(read - number)
                yield generation

        return load(self, run_id, told())

    monkeypatch.setattr(SQLiteStore, "load_import", loaded)
    with SQLiteStore(str(tmp_path / "copy.db")) as target:
        module.push_run(run, target)
        assert len(ahead) == 500 and max(ahead) == 100


class Bar(SilentProgress):
    """How far each stage came, and its total."""

    def __init__(self) -> None:
        self.stages: dict[str, list[int]] = {}

    def stage(self, name: str, total: int) -> None:
        self._now = self.stages[name] = [0, total]

    def grow(self, steps: int) -> None:
        self._now[1] += steps

    def advance(self, steps: int = 1, **counts: float) -> None:
        self._now[0] += steps


def test_progress_ends_at_its_total(store: SQLiteStore, tmp_path: Path) -> None:
    run, bar = begun(store, "crawl", 3), Bar()
    read = [
        Generation(run.id, f"r{n}", GROUPS[0].id, "none", READING_STRATEGY, 2, 0, "refused")
        for n in range(5)
    ]
    store.record_round(run.id, "none", 2, read)  # by the model that read stories
    with SQLiteStore(str(tmp_path / "copy.db")) as target:
        module.push_run(run, target, bar)
    assert bar.stages["generations"] == [11, 11]
    assert all(done == total for done, total in bar.stages.values())


def test_a_store_is_not_pushed_to_a_link_to_itself(tmp_path: Path) -> None:
    SQLiteStore(tmp_path / "kgbias.db").begin_run(Run("r", ModelInfo("m"), {}, GROUPS))
    (tmp_path / "link.db").symlink_to("kgbias.db")
    with kgbias.open(tmp_path / "kgbias.db") as study, pytest.raises(UsageError, match="the same"):
        study.store.push(tmp_path / "link.db")
