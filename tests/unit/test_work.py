"""How long asking for a run takes: added up over sessions, and not by reading it back."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import Interrupted
from kgbias.graph.push import push_run
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import AskTimer, StoredRun
from kgbias.graph.types import Run
from kgbias.io.text import format_duration
from kgbias.models.base import ModelInfo
from tests.scripted_model import ScriptedModel


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("kgbias.graph.store.time.monotonic", lambda: now[0])
    return now


def test_time_is_that_of_asking(clock: list[float]) -> None:
    noted: list[tuple[str, float]] = []

    class Noting:
        def add_work(self, run: str, seconds: float) -> None:
            noted.append((run, seconds))

    watch, store = AskTimer(), Noting()
    for now, asked in ((103.0, 5), (110.0, 5), (111.5, 6)):
        clock[0] = now
        watch.note(store, "r", asked)  # type: ignore[arg-type]
    assert noted == [("r", 3.0), ("r", 1.5)]  # nothing was asked in between
    assert watch.asked_seconds == 4.5


def test_a_crawl_adds_up_what_its_sessions_took(tmp_path: Path, clock: list[float]) -> None:
    def slow(_: object) -> str:
        clock[0] += 2.0
        return "love tea"

    options = {"category": "gender", "samples": 1, "iterations": 1, "name": "r"}
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        with pytest.raises(Interrupted):
            study.crawl(ScriptedModel(slow, batch=1), max_requests=3, **options)  # type: ignore[call-overload]
        assert study.run().summary.seconds == 6.0
        model = ScriptedModel(slow, batch=1)
        run = study.crawl(model, **options)  # type: ignore[call-overload]
        took = 6.0 + 2.0 * len(model.requests)
        assert run.summary.seconds == took
        study.crawl(ScriptedModel(slow), **options)  # type: ignore[call-overload]
        assert run.summary.seconds == took
        assert run.cost()[-1].seconds == took and run.cost()[0].seconds is None
        (row,) = study.runs().records()
        assert row["seconds"] == took
        told = f"and {format_duration(took)} to ask"
        assert told in run.report(tmp_path / "r.html").read_text("utf-8")
        with SQLiteStore(str(tmp_path / "other.db")) as other:
            for _ in range(2):
                push_run(StoredRun.find(study.graph), other)
            assert [s.seconds for s in other.summaries()] == [took]
    for command, line in (("cost", "asking took"), ("runs", "asked in")):
        shown = CliRunner().invoke(cli, [command, "--store", str(tmp_path / "k.db")])
        assert re.search(rf"{line} {re.escape(format_duration(took))}", shown.stdout)


def test_times_as_text() -> None:
    assert [format_duration(s) for s in (0.2, 89, 90, 5399, 5400)] == [
        "0 s",
        "89 s",
        "2 min",
        "90 min",
        "1.5 h",
    ]


def test_counts_of_a_run_are_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.db"
    with kgbias.open(path, progress=False) as study:
        study.crawl(ScriptedModel(lambda _: "love tea"), category="gender", samples=1, iterations=0)
    store = SQLiteStore(str(path))
    (before,) = store.summaries()
    count_tokens = store._count_tokens

    def count_after_a_write(run_id: str) -> tuple[int, int]:
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE answer SET prompt_tokens = prompt_tokens + 1")
        return count_tokens(run_id)

    monkeypatch.setattr(store, "_count_tokens", count_after_a_write)
    (during,) = store.summaries()
    assert during == before
    monkeypatch.undo()
    (after,) = store.summaries()
    store.close()
    assert after.prompt_tokens > before.prompt_tokens


def test_counts_of_a_large_file_are_kept_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("kgbias.graph.sqlite.database.MIN_LARGE_FILE_BYTES", 0)
    path = tmp_path / "k.db"
    with kgbias.open(path, progress=False) as study:
        study.crawl(ScriptedModel(lambda _: "love tea"), category="gender", samples=1, iterations=0)
    times_counted = []
    count_triples = SQLiteStore._count_triples

    def note(store: SQLiteStore, run_id: str) -> int:
        times_counted.append(run_id)
        return count_triples(store, run_id)

    monkeypatch.setattr(SQLiteStore, "_count_triples", note)
    with closing(SQLiteStore(str(path))) as store:
        first = store.summaries()
        assert store.summaries() == first and len(times_counted) == 1
    with closing(SQLiteStore(str(path))) as another:
        assert another.summaries() == first and len(times_counted) == 1
        with closing(sqlite3.connect(path)) as other_program, other_program:
            other_program.execute("UPDATE answer SET prompt_tokens = prompt_tokens + 1")
        (counted_again,) = another.summaries()
    assert counted_again.prompt_tokens > first[0].prompt_tokens


def test_a_run_begun_while_kept_counts_are_read_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("kgbias.graph.sqlite.database.MIN_LARGE_FILE_BYTES", 0)
    path, model = str(tmp_path / "k.db"), ModelInfo("m")
    list_runs = SQLiteStore.runs

    def list_after_another_began(store: SQLiteStore) -> list[Run]:
        with closing(SQLiteStore(path)) as other:
            other.begin_run(Run("second", model, {"seed": 2}, ()))
        return list_runs(store)

    with closing(SQLiteStore(path)) as store:
        store.begin_run(Run("first", model, {"seed": 1}, ()))
        assert [s.run.name for s in store.summaries()] == ["first"]
        monkeypatch.setattr(SQLiteStore, "runs", list_after_another_began)
        assert [s.run.name for s in store.summaries()] == ["first", "second"]


def test_runs_are_counted_where_there_is_no_file(tmp_path: Path) -> None:
    with closing(SQLiteStore(":memory:")) as in_memory:
        assert in_memory.summaries() == []
    path = tmp_path / "k.db"
    with closing(SQLiteStore(str(path))) as store:
        store.begin_run(Run("first", ModelInfo("m"), {}, ()))
        path.unlink()
        assert [s.run.name for s in store.summaries()] == ["first"]
