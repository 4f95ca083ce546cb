"""One process works on a run, on both stores; what it leaves when it dies keeps nobody out."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.crawl.configure import configure
from kgbias.crawl.crawler import crawl
from kgbias.errors import RunConflict
from kgbias.graph import leases
from kgbias.graph.leases import Holder, hold_lease, is_leased
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.stores import open_store
from kgbias.models.base import Request
from kgbias.models.budget import Budget
from tests.scripted_model import ScriptedModel
from tests.waiting import DEADLINE_SECONDS, wait_until

ELSEWHERE = Holder("far", 7, "another machine", "12", "theirs")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any holder elsewhere is silent at once, and watched for no time."""
    monkeypatch.setattr(leases, "MAX_SILENT_SECONDS", -1.0)
    monkeypatch.setattr(leases, "WATCH_SECONDS", 0.0)


def test_a_second_process_is_told_who_is_at_work(store: Store) -> None:
    lease = store.lease("r1")
    assert lease.holder() is None
    with hold_lease(lease, "mine"):
        assert is_leased(lease) and not is_leased(store.lease("r2"))
        with pytest.raises(
            RunConflict, match=r"process \d+ on .* is at work on run mine: stop it, or"
        ):
            hold_lease(lease, "mine").__enter__()
        with hold_lease(store.lease("r2"), "other"):
            pass
    assert lease.holder() is None


def test_a_holder_that_died_here_is_seen_at_once(store: Store) -> None:
    lease = store.lease("r1")
    code = "import os; from kgbias.graph.leases import Holder; h = Holder(); print(h.process)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert lease.take(Holder(process=int(done.stdout), started="1"), None)
    assert not is_leased(lease)
    said: list[str] = []
    with hold_lease(lease, "mine", note=said.append):
        assert lease.holder() is not None and is_leased(lease)
    assert said == []


def test_a_holder_elsewhere_is_believed_then_watched_then_dead(
    store: Store, request: pytest.FixtureRequest
) -> None:
    lease = store.lease("r1")
    assert lease.take(ELSEWHERE, None)
    with pytest.raises(RunConflict, match="process 7 on far is at work"):
        hold_lease(lease, "mine").__enter__()
    request.getfixturevalue("impatient")
    assert not is_leased(lease)
    said: list[str] = []
    with hold_lease(lease, "mine", note=said.append):
        assert lease.holder() != ELSEWHERE and not lease.renew(ELSEWHERE)
    assert said == ["nothing was heard of process 7 on far: watching for 0 s whether it still runs"]


def test_a_holder_that_renews_while_it_is_watched_lives(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = store.lease("r1")
    assert lease.take(ELSEWHERE, None)
    monkeypatch.setattr(leases, "MAX_SILENT_SECONDS", -1.0)

    def renewed(line: str) -> None:
        threading.Event().wait(0.05)  # so that its time is another
        assert lease.renew(ELSEWHERE)
        monkeypatch.undo()  # it is heard of again

    with pytest.raises(RunConflict, match="process 7 on far is at work"):
        hold_lease(lease, "mine", note=renewed).__enter__()


def test_one_of_many_gets_what_a_dead_one_left(store: Store) -> None:
    lease = store.lease("r1")
    assert lease.take(ELSEWHERE, None)
    seen = lease.holder()
    several = [Holder() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda mine: store.lease("r1").take(mine, seen), several))
    assert sum(got) == 1 and lease.holder() == several[got.index(True)]


def test_whose_lease_was_taken_stops(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.01)
    renewing, found_out = leases.OwnLease._renew, threading.Event()

    def renew(own_lease: leases.OwnLease) -> None:
        renewing(own_lease)
        found_out.set()

    monkeypatch.setattr(leases.OwnLease, "_renew", renew)
    config = configure("smollm2", group=["Bakers", "Cooks"], samples=2, iterations=1)

    def reply(request: Request) -> str:
        lease = store.lease(store.find_run().id)
        seen = lease.holder()
        if seen != ELSEWHERE:
            assert lease.take(ELSEWHERE, seen)
            assert found_out.wait(DEADLINE_SECONDS)
        return " are kind."

    with pytest.raises(RunConflict, match="process 7 on far has taken over run"):
        crawl(config, ScriptedModel(reply), store)
    assert store.lease(store.find_run().id).holder() == ELSEWHERE


def test_a_crawl_is_held_while_it_asks_and_given_up_after(store: Store, tmp_path: Path) -> None:
    config = configure("smollm2", group=["Bakers", "Cooks"], samples=2, iterations=1)
    seen: list[Any] = []

    def reply(request: Request) -> str:
        run = StoredRun(store, store.find_run())
        seen.append((run.state, is_leased(store.lease(run.id))))
        if len(seen) > 1:
            return " are kind."
        with pytest.raises(RunConflict):
            crawl(config, ScriptedModel(lambda _: " are kind."), open_store(store.url))
        with kgbias.open(store.url) as study, pytest.raises(RunConflict, match="stop it first"):
            study.store.delete(run.name)
        return " are kind."

    run = crawl(config, ScriptedModel(reply), store).run
    assert seen and set(seen) == {("running", True)} and not is_leased(store.lease(run.id))
    left = {p.name for p in tmp_path.iterdir()}
    assert left <= {"kgbias.db", "kgbias.db-wal", "kgbias.db-shm"}


def test_a_second_waits_and_asks_nothing_twice(store: Store) -> None:
    config = configure("smollm2", group=["Bakers", "Cooks"], samples=2, iterations=1)
    told, asked = threading.Event(), [0, 0]
    waiting: list[threading.Thread] = []

    class Told:
        def note(self, text: str) -> None:
            if "waiting until it is done" in text:
                told.set()

        def stage(self, name: str, total: int) -> None: ...
        def advance(self, steps: int = 1, **counts: float) -> None: ...
        def grow(self, steps: int) -> None: ...

    def second() -> None:
        with open_store(store.url) as other:
            model = ScriptedModel(lambda _: " are kind.")
            crawl(config, model, other, progress=Told(), budget=Budget(wait=True))
            asked[1] = len(model.requests)

    def reply(request: Request) -> str:
        if not waiting:
            waiting.append(threading.Thread(target=second))
            waiting[0].start()
            assert wait_until(told.is_set)
        return " are kind."

    model = ScriptedModel(reply)
    run = crawl(config, model, store).run
    waiting[0].join()
    assert model.requests and asked[1] == 0
    assert store.find_run().status == "complete" and not is_leased(store.lease(run.id))


def test_runs_are_running_stopped_or_abandoned(store: Store) -> None:
    config = configure("smollm2", group=["Bakers", "Cooks"], samples=2, iterations=1)

    def reply(request: Request) -> str:
        raise KeyboardInterrupt

    with pytest.raises(Exception, match="stopped"):
        crawl(config, ScriptedModel(reply), store)
    run = StoredRun.find(store)
    assert run.state == "stopped"
    store.set_status(run.id, "running")
    assert StoredRun.find(store).state == "abandoned"
    assert store.lease(run.id).take(ELSEWHERE, None)
    assert StoredRun.find(store).state == "running"
