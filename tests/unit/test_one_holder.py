"""One process works on a run; what it leaves when it dies keeps nobody out."""

import os
from pathlib import Path
from typing import Any

import pytest

from kgbias.crawl.configure import configure
from kgbias.crawl.crawler import crawl
from kgbias.errors import RunConflict
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.sqlite.holding import held, is_held
from kgbias.models.base import Request
from tests.scripted import ScriptedModel


def test_a_second_process_is_told_who_is_at_work(tmp_path: Path) -> None:
    path = str(tmp_path / "k.db")
    with held(path, "r1", "mine"):
        assert is_held(path, "r1") and not is_held(path, "r2")
        told = f"process {os.getpid()} on .* is at work on run mine: wait"
        with pytest.raises(RunConflict, match=told), held(path, "r1", "mine"):
            pass
        with held(path, "r2", "other"):
            pass
    assert not is_held(path, "r1") and list(tmp_path.iterdir()) == []


def test_a_holder_that_died_keeps_nobody_out(tmp_path: Path) -> None:
    path = str(tmp_path / "k.db")
    Path(f"{path}-run-r1").write_text("process 1 on elsewhere")
    assert not is_held(path, "r1")
    with held(path, "r1", "mine"):
        assert is_held(path, "r1")


def test_a_crawl_is_held_while_it_asks_and_given_up_after(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "k.db")
    config = configure("smollm2", group=["Bakers", "Cooks"], samples=2, iterations=1)
    seen: list[Any] = []

    def reply(request: Request) -> str:
        run = store.find_run()
        seen.append(store.is_held(run.id))
        with pytest.raises(RunConflict):
            crawl(config, ScriptedModel(lambda _: " are kind."), SQLiteStore(tmp_path / "k.db"))
        return " are kind."

    run = crawl(config, ScriptedModel(reply), store).run
    assert seen and all(seen) and not store.is_held(run.id)
    assert {p.name for p in tmp_path.iterdir()} <= {"k.db", "k.db-wal", "k.db-shm"}
