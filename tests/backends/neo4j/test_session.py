"""What a user is told when a Neo4j server does not do what is asked, without a server."""

import functools
import os
import signal
import socket
import threading
from contextlib import nullcontext
from typing import Any

import pytest

from kgbias.backends.neo4j import Neo4jStore, session
from kgbias.errors import StoreError
from kgbias.graph.stores import open_store
from kgbias.io import stopping
from tests.conftest import require_modules
from tests.silent_bolt import SilentBolt
from tests.texts import Texts
from tests.waiting import DEADLINE_SECONDS, end_hangs

require_modules("neo4j")


class Driver:
    """A driver whose work always fails with one error."""

    agent = "Neo4j/5.26.21"

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def verify_connectivity(self) -> None: ...

    def get_server_info(self) -> Any:
        return type("Info", (), {"agent": self.agent})

    def session(self, **_: Any) -> Any:
        raise self._error or AssertionError


def opened(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> Neo4jStore:
    monkeypatch.setattr("neo4j.GraphDatabase.driver", lambda *_, **__: driver)
    return Neo4jStore("bolt://127.0.0.1:7687", create=False)


def test_an_old_server(monkeypatch: pytest.MonkeyPatch, texts: Texts) -> None:
    old = Driver()
    old.agent = "Neo4j/4.2.19"
    with texts.raises(StoreError):
        opened(monkeypatch, old)
    recent = Driver()
    recent.agent = "Neo4j/2026.04.0"
    opened(monkeypatch, recent)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("Neo.ClientError.Security.Unauthorized", "refused the user or password"),
        ("Neo.ClientError.Security.AuthenticationRateLimit", "too many wrong passwords"),
        ("Neo.ClientError.Security.CredentialsExpired", "has expired"),
        ("Neo.ClientError.Security.Forbidden", "give it the role editor"),
        ("Neo.ClientError.General.WriteOnReadOnlyAccessDatabase", "is read-only"),
        ("Neo.ClientError.Database.DatabaseNotFound", "has no database"),
        ("Neo.DatabaseError.General.UnknownError", "why it failed"),
    ],
)
def test_errors_are_one_line(monkeypatch: pytest.MonkeyPatch, code: str, said: str) -> None:
    from neo4j.exceptions import Neo4jError

    error = Neo4jError._hydrate_neo4j(code=code, message="why it failed\nand more")
    store = opened(monkeypatch, Driver(error))
    with pytest.raises(StoreError, match=said) as found:
        store.read("RETURN 1")
    assert "\n" not in str(found.value)


def test_waiting_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from neo4j.exceptions import ServiceUnavailable

    monkeypatch.setattr("kgbias.backends.neo4j.session._MAX_WAIT_SECONDS", 0.0)
    monkeypatch.setattr("time.sleep", lambda _: None)
    store = opened(monkeypatch, Driver(ServiceUnavailable("gone")))
    with pytest.raises(StoreError, match=r"cannot reach bolt://127\.0\.0\.1:7687: gone"):
        store.read("RETURN 1")


def test_ctrl_c_leaves_a_server_that_became_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the driver, what it does last would wait for an answer: to roll back, to read the rest."""
    press = functools.partial(os.kill, os.getpid(), signal.SIGINT)
    with end_hangs():
        silent = SilentBolt(press)
        store = Neo4jStore(silent.url, create=False)
        with pytest.raises(KeyboardInterrupt):
            store.read("RETURN 1")
        with pytest.raises(KeyboardInterrupt):
            list(store.stream("RETURN 1"))

        # A command that is ending finds out once that nothing is answered, and asks no more.
        silent.when_asked = lambda: None
        monkeypatch.setattr(stopping, "_is_stopping", True)
        with pytest.raises(KeyboardInterrupt):
            store.set_status("r", "stopped")
        asked = silent.asked
        with pytest.raises(KeyboardInterrupt):
            store.set_status("r", "stopped")
        store.close()
        assert silent.asked == asked


def test_a_database_that_has_become_silent_is_said_to_be_waited_for(
    monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    told, is_told = [], threading.Event()

    def notify(text: str) -> None:
        told.append(text)
        is_told.set()

    monkeypatch.setattr(session, "_SILENT_WAIT_SECONDS", 0.0)
    silent: Any = session.Neo4jSession.__new__(session.Neo4jSession)
    silent.url, silent._notify = "neo4j://h:1", notify
    monkeypatch.setattr(silent, "_session", lambda _: nullcontext())
    for _ in range(2):
        silent._run_work(lambda _: is_told.wait(DEADLINE_SECONDS))
    texts.check("\n".join(told))


def test_a_server_that_says_nothing_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    monkeypatch.setattr(session, "_MAX_FIRST_ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with texts.raises(StoreError):
            open_store(f"neo4j://127.0.0.1:{port}")
