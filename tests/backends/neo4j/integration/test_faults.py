"""What can go wrong with a real server: one line each, and nothing lost."""

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import crawl
from kgbias.crawl.seeds import choose_seeds
from kgbias.errors import StoreError
from kgbias.graph.store import Store
from kgbias.graph.stores import open_store
from kgbias.io.progress import SilentProgress
from kgbias.models.base import Request
from tests.conftest import NEO4J, start_neo4j
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.integration


@pytest.mark.slow  # see tests/contract/conftest.py
def test_a_wrong_password_and_a_missing_database(
    empty_neo4j: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match="has no database 'nowhere'"):
        open_store(f"{empty_neo4j}/nowhere").summaries()
    with pytest.raises(StoreError, match="leave the password out of the URL"):
        open_store(empty_neo4j.replace("://", "://neo4j:secret@"))
    monkeypatch.setenv("NEO4J_PASSWORD", "not it")
    with pytest.raises(StoreError, match="refused the user or password: set NEO4J_PASSWORD") as no:
        open_store(empty_neo4j)
    assert "\n" not in str(no.value) and "not it" not in str(no.value)


class Notes(SilentProgress):
    def __init__(self, when_waiting: Callable[[], None]) -> None:
        self.notes: list[str] = []
        self._when_waiting = when_waiting

    def note(self, text: str) -> None:
        self.notes.append(text)
        if "waiting up to" in text:  # not where a slow server is waited for
            self._when_waiting()


def model(at: dict[int, Callable[[], None]] | None = None) -> ScriptedModel:
    """Answers from the request alone; `at` is called before the answer of that number."""
    asked = 0

    def reply(request: Request) -> str:
        nonlocal asked
        asked += 1
        if at and asked in at:
            at[asked]()
        return (" music", " rain", " like food", " are tall")[request.seed % 4] + "\n"

    return ScriptedModel(reply, batch=1)


def graph_of(store: Store, run_id: str) -> tuple[object, object]:
    return sorted(store.generations(run_id), key=lambda g: g.id), store.triples(run_id)


@pytest.mark.slow
def test_a_server_that_stops_and_starts_again(
    neo4j_server: dict[str, str], empty_neo4j: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is stopped twice in the middle of a crawl, and started again while the crawl
    waits: it says so, goes on, and the graph is that of a crawl without the stop."""
    home = neo4j_server["HOME"]
    config = CrawlConfig(
        seeds=tuple(choose_seeds("pure", ("gender",), ())),
        iterations=1,
        samples=2,
        predicate_prompts=3,
        object_prompts=3,
    )
    quiet = open_store(str(tmp_path / "quiet.db"))
    expected = crawl(config, model(), quiet, name="r")
    starting: list[threading.Thread] = []

    def stop() -> None:
        subprocess.run([NEO4J, "stop", home], check=True)

    def start_meanwhile() -> None:
        starting.append(threading.Thread(target=start_neo4j, args=(home,)))
        starting[-1].start()

    notes = Notes(start_meanwhile)
    store = open_store(empty_neo4j, notify=notes.note)
    try:
        result = crawl(config, model({9: stop, 30: stop}), store, name="r", progress=notes)
    finally:
        for thread in starting:
            thread.join()
    assert len(starting) == 2
    of_store = [note for note in notes.notes if not note.startswith(("coverage", "for example"))]
    said = [note.partition(" (")[0].split(": ")[-1] for note in of_store]
    # A slow machine is told of as well.
    said = [note for note in said if note != "waiting for it"]
    assert said == ["waiting up to 10 minutes for it", "continuing"] * 2
    assert result.outcomes == expected.outcomes and result.asked_count == expected.asked_count
    assert graph_of(store, result.run.id) == graph_of(quiet, expected.run.id)
    again = crawl(config, model(), store, name="r")
    assert (again.asked_count, again.cached_count) == (0, expected.asked_count)

    # And a read-only database.
    store.close()
    stop()
    conf = Path(home) / "conf" / "neo4j.conf"
    before = conf.read_text()
    conf.write_text(before + "server.databases.default_to_read_only=true\n")
    try:
        start_neo4j(home)
        store = open_store(empty_neo4j, create=False)
        assert store.find_run("r").status == "complete"
        with pytest.raises(StoreError, match="is read-only"):
            store.set_status(result.run.id, "running")
        store.close()
    finally:
        stop()
        conf.write_text(before)
    assert os.environ["NEO4J_PASSWORD"] not in "".join(notes.notes)
