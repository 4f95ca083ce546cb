"""The served explorer: what it answers, whom it answers, and that it is the page of the file."""

import asyncio
import json
import re
import socket
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

from kgbias.errors import StoreError, UsageError
from kgbias.explore import render_page, server
from kgbias.explore.origins import read_origin
from kgbias.explore.server import Application, resolve_token
from kgbias.explore.store_watch import StoreWatch
from kgbias.graph.selection import Selection
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Answer as Said
from kgbias.graph.types import Generation, Group, GroupScore, Triple
from kgbias.graph.vectors import StatementVectors
from kgbias.measure.semantic_search import statement_texts
from kgbias.models.gguf import cache_folder
from tests.hostile import HOSTILE_TEXTS
from tests.report_data import measured_run
from tests.texts import Texts
from tests.waiting import DEADLINE_SECONDS, wait_until

GROUPS = (Group("Women", "gender"), Group("Men", "gender"), Group("</script>", "religion"))
TOKEN = "0123456789abcdef"
Answer = tuple[int, dict[str, str], bytes]


async def at_once(read: Callable[[], Any]) -> Any:
    return read()


async def away(read: Callable[[], Any]) -> Any:
    raise TimeoutError


def application(view: server.ServedPage, read: Any, token: str | None = None) -> Application:
    app = Application(read, at_once, token=token)
    app.show_page(view)
    return app


def asked(app: Any, path: str = "/", method: str = "GET", **headers: str) -> Answer:
    """The status, headers and body that the application gives, as a server would ask it."""
    where, _, query = path.partition("?")
    sent: list[dict[str, Any]] = []
    lines = {"host": "127.0.0.1:8765", **{k.replace("_", "-"): v for k, v in headers.items()}}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": where,
        "raw_path": quote(where).encode(),
        "root_path": "",
        "query_string": query.encode(),
        "server": ("127.0.0.1", 8765),
        "headers": [(k.encode(), v.encode("utf-8")) for k, v in lines.items()],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    with pytest.raises(StopIteration):  # it never waits here, and needs no loop, of which a browser
        app(scope, receive, send).send(
            None
        )  # that other tests hold open may run one in this thread
    head = {k.decode().lower(): v.decode() for k, v in sent[0]["headers"]}
    return sent[0]["status"], head, b"".join(m.get("body", b"") for m in sent[1:])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredRun]:
    objects = ["food", "rain", *HOSTILE_TEXTS[:4], HOSTILE_TEXTS[0] * 20, "half \ud83d"]
    with SQLiteStore(str(tmp_path_factory.mktemp("served") / "kgbias.db")) as store:
        yield StoredRun(store, measured_run(store, GROUPS, objects))


@pytest.fixture(scope="module")
def view(run: StoredRun) -> server.ServedPage:
    return server.render_served_page([run])


@pytest.fixture(scope="module")
def app(view: server.ServedPage) -> Any:
    return application(view, at_once)


def test_it_gives_the_columns_of_the_file(
    run: StoredRun, view: server.ServedPage, app: Any
) -> None:
    written, _ = render_page([run])
    status, head, page = asked(app)
    assert status == 200 and head["content-type"].startswith("text/html")
    about = json.loads(page.split(b'id="about">')[1].split(b"</script>")[0])
    assert about["served"] and about["rows"] == view.row_index.rows
    of_file = json.loads(written.split('id="about">')[1].split("</script>")[0])
    for name in ("core", "maps", "ids"):
        status, _, body = asked(app, f"/data/{name}")
        assert status == 200 and about["columns"][name] == of_file["columns"][name]
        *_, (_, offset, length) = about["columns"][name].values()
        assert offset + length <= len(zlib.decompress(body))
    scripts = [re.findall("<script>(.*?)</script>", p, re.S) for p in (page.decode(), written)]
    assert len(scripts[0]) == 2 and scripts[0] == scripts[1]


def test_what_is_near_a_text(
    run: StoredRun, view: server.ServedPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what the store keeps vectors of is found, by an encoder of two axes here."""

    class Axes:
        name, version = "axes", "1"

        def embed(self, texts: list[str]) -> Any:
            assert where[-1:] != ["store"], "others would wait"
            return np.eye(2)[[int("rain" in t or "wet" in t) for t in texts]]

    where: list[str] = []

    async def read(work: Callable[[], Any]) -> Any:
        where.append("store")
        return work()

    async def apart(work: Callable[[], Any]) -> Any:
        where.append("apart")
        return work()

    def near(path: str) -> Any:
        app = Application(read, apart)
        app.show_page(view)
        status, _, body = asked(app, path)
        return json.loads(body)["found"] if status == 200 else status

    encoder = Axes()
    monkeypatch.setattr("kgbias.explore.similar.load_vectors", lambda _: encoder)
    assert near("/near?text=wet") == []
    texts = statement_texts(run)
    kept = StatementVectors(list(texts), Axes().embed(list(texts.values())))
    run.store.save_vectors("axes 1", kept)
    found, said = near("/near?text=never%20wet&source=0"), {t.id: t for t in run.triples()}
    triples = [said[view.row_index.triple_id(hit["row"])] for hit in found]
    assert {t.object for t in triples} == {"rain"}
    for hit, triple in zip(found, triples, strict=True):
        assert hit["cosine"] == 1.0 and hit["opposed"] == (triple.predicate != "can't")
    # By a form of its word too: the page leaves out what it holds as it was typed.
    assert {hit["row"] for hit in near("/near?text=rained")} == {hit["row"] for hit in found}
    alike = near(f"/near?row={found[0]['row']}")  # the others with rain
    assert len(alike) == len(found) - 1 and all(hit["cosine"] == 1.0 for hit in alike)
    assert near("/near?row=99999") == near("/near?row=-1") == near("/near?row=") == 404
    assert where == ["store", "apart"] * 4
    assert near("/near?text=wet&source=99") == near("/near?text=wet&source=x") == 404


def test_the_first_search_waits_for_the_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MAX_WAIT_SECONDS", 0.01)
    with server.ExplorerServer(port=0) as running, ThreadPoolExecutor(1) as thread:

        async def found() -> Any:
            return await running._run_apart(lambda: Event().wait(0.1))

        assert thread.submit(asyncio.run, found()).result() is False


def test_a_statement_comes_with_its_prompts_and_answers(
    run: StoredRun, view: server.ServedPage, app: Any
) -> None:
    found = view.row_index
    most = max(run.triples(), key=lambda t: t.count)
    row = next(n for n in range(found.rows) if found.triple_id(n) == most.id)
    status, _, body = asked(app, f"/statement/{row}")
    own = [g for g in run.generations() if g.triple and g.triple.id == found.triple_id(row)]
    answers = json.loads(body)["answers"]
    assert status == 200 and [a["asked"] for a in answers] == [g.prompt for g in own[:20]]
    rest = json.loads(asked(app, f"/statement/{row}?first=1")[2])
    assert rest["answers"] == answers[1:] and rest["probes"] == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "GETX"])
@pytest.mark.parametrize("path", ["/", "/data/core", "/statement/0", "/nowhere"])
def test_it_only_reads(app: Any, method: str, path: str) -> None:
    status, head, _ = asked(app, path, method)
    assert status == 405 and head["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path",
    [
        "/data/../page.html",
        "/data/..%2f..%2fetc/passwd",
        "/data//etc/passwd",
        "/data/",
        "/../../../../etc/passwd",
        "/data/core/../../kgbias.db",
        "/kgbias.db",
        "/static/app.js",
        "/data/\x00",
        "/statement/-1",
        "/statement/999999999",
        f"/statement/{'9' * 5000}",
        "/statement/1e3",
        "/statement/٣",
        "/statement/0?first=-1",
        "/statement/0?first=x",
        "/statement/0/../../data",
        "/data/core%00",
    ],
)
def test_no_address_is_a_path(app: Any, path: str) -> None:
    status, _, body = asked(app, path)
    assert status == 404 and body == b"Not Found"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "127.0.0.2",
        "[::1",
        "localhost:8765@evil.example",
        "127.0.0.1:8765, evil.example",
    ],
)
def test_a_foreign_name_for_this_machine_is_refused(app: Any, host: str) -> None:
    for path in ("/", "/data/core", "/statement/0"):
        status, _, body = asked(app, path, host=host)
        assert status == 403 and b"script" not in body


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8765", "[::1]:8765"])
def test_names_of_this_machine_are_answered(app: Any, host: str) -> None:
    assert asked(app, host=host)[0] == 200


def test_a_token_opens_everything_and_nothing_else_does(view: server.ServedPage) -> None:
    app = application(view, at_once, token=TOKEN)
    for path in ("/", "/data/core", "/statement/0", "/nowhere"):
        for wrong in ("", TOKEN[:-1], TOKEN + "0", "x" * 5000, "é" * 16):
            assert asked(app, path, authorization=f"Bearer {wrong}")[0] == 401
            assert asked(app, f"{path}?token={quote(wrong)}")[0] == 401
            assert asked(app, path, cookie=f"kgbias={quote(wrong)}")[0] == 401
        assert asked(app, path, cookie=f"kgbias={TOKEN}")[0] == 401  # it is no cookie
    assert asked(app, "/data/core", authorization=f"Bearer {TOKEN}")[0] == 200
    status, head, _ = asked(app, f"/?token={TOKEN}", host="team.example")
    assert status == 303 and head["location"] == "/" and TOKEN not in head["set-cookie"]
    cookie = head["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie
    inside = asked(app, "/data/core", host="team.example", cookie=cookie.split(";")[0])
    assert inside[0] == 200
    another = application(view, at_once, token=TOKEN)
    assert asked(another, "/", cookie=cookie.split(";")[0])[0] == 401  # another server


def test_secrets_are_compared_in_constant_time(
    view: server.ServedPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[int, int]] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return a == b

    monkeypatch.setattr("kgbias.explore.server.hmac.compare_digest", compare)
    app = application(view, at_once, token=TOKEN)
    for wrong in ("a", "a" * 1000):
        asked(app, "/", authorization=f"Bearer {wrong}")
    assert len(compared) == 4 and set(compared) == {(32, 32)}


def test_every_answer_has_its_headers(view: server.ServedPage) -> None:
    app = application(view, at_once, token=TOKEN)
    for headers in ({}, {"authorization": f"Bearer {TOKEN}"}):
        for path in ("/", "/data/core", "/statement/0", "/nowhere"):
            _, head, _ = asked(app, path, **headers)
            policy = head["content-security-policy"]
            assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
            assert "connect-src 'self'" in policy and "unsafe-eval" not in policy
            script = policy.split("script-src")[1].split(";")[0]
            assert "unsafe-inline" not in script and script.count("sha256-") == 2
            assert head["x-content-type-options"] == "nosniff"
            assert head["cross-origin-resource-policy"] == "same-origin"
            assert head["referrer-policy"] == "no-referrer"
            assert "access-control-allow-origin" not in head


def test_what_is_known_is_not_sent_again(app: Any) -> None:
    for path in ("/", "/data/core"):
        _, head, _ = asked(app, path)
        status, _, body = asked(app, path, if_none_match=head["etag"])
        assert status == 304 and body == b""


def test_it_says_that_it_reads(view: server.ServedPage) -> None:
    app = Application(at_once, at_once)
    for path in ("/", "/data/core", "/statement/0"):
        status, head, body = asked(app, path)
        assert status == 503 and head["refresh"] == "2" and b"being read" in body
        assert asked(app, path, "POST")[0] == 405 and asked(app, path, host="evil")[0] == 403
    assert asked(Application(at_once, at_once, token=TOKEN))[0] == 401
    app.show_page(view)
    assert asked(app)[0] == 200


def test_a_store_that_does_not_answer(view: server.ServedPage) -> None:
    status, _, body = asked(application(view, away), "/statement/0")
    assert status == 503 and body == b"the store cannot be read now"


@pytest.fixture
def listening(
    view: server.ServedPage, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, int]]:
    """The address of a server that shows the view; it may have 20 connections."""
    monkeypatch.setattr(server, "_MAX_CONNECTIONS", 20)
    with server.ExplorerServer(port=0) as running:
        running._app.show_page(view)
        yield ("127.0.0.1", urlsplit(running.url).port or 0)


def test_idle_connections_shut_nobody_out(listening: tuple[str, int]) -> None:
    held = []
    try:
        for number in range(60):
            held.append(socket.create_connection(listening, timeout=DEADLINE_SECONDS))
            if number % 2:
                held[-1].sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        asking = [HTTPConnection(*listening, timeout=DEADLINE_SECONDS) for _ in range(15)]
        for client in asking:
            client.request("GET", "/data/core")
        assert {client.getresponse().status for client in asking} == {200}
        for client in asking:
            client.close()
    finally:
        for one in held:
            one.close()


def test_a_connection_has_a_time_for_its_request(
    listening: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MAX_HEAD_SECONDS", 0.2)
    for begun in (b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"):
        # On a busy machine it may be closed before what was sent is read: then it is reset.
        with (
            socket.create_connection(listening, timeout=DEADLINE_SECONDS) as held,
            suppress(ConnectionError),
        ):
            held.sendall(begun)
            assert held.recv(1000) == b""


def test_one_that_asks_keeps_its_connection(
    listening: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server looks after each request, instead of every ten seconds."""
    looks: list[Callable[[], object]] = []

    def keep_look(connections: Any, connection: Any) -> None:
        loop = asyncio.get_running_loop()
        looks.append(lambda: loop.call_soon_threadsafe(connections._close_if_idle, connection))

    monkeypatch.setattr(server._Connections, "_schedule_check", keep_look)
    client = HTTPConnection(*listening, timeout=DEADLINE_SECONDS)
    for _ in range(3):
        client.request("GET", "/statement/9999")
        assert client.getresponse().read() == b"Not Found" and client.sock is not None
        looks.pop()()
        wait_until(lambda: looks)  # it will look again: the connection is kept
    client.close()


def test_an_answer_leaves_at_once(
    listening: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = server._Connections.add
    delayed: list[int] = []

    def seen(self: Any, connection: Any) -> None:
        own = connection.transport.get_extra_info("socket")
        delayed.append(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        opened(self, connection)

    monkeypatch.setattr(server._Connections, "add", seen)
    client = HTTPConnection(*listening, timeout=DEADLINE_SECONDS)
    client.request("GET", "/data/core")
    assert client.getresponse().status == 200 and len(delayed) == 1 and delayed[0]
    client.close()


def test_listening_elsewhere_needs_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGBIAS_SERVE_TOKEN", raising=False)
    for host in ("127.0.0.1", "::1", "localhost"):
        assert resolve_token(host, None) is None
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""):
        with pytest.raises(UsageError, match="KGBIAS_SERVE_TOKEN"):
            resolve_token(host, None)
        assert resolve_token(host, TOKEN) == TOKEN
    with pytest.raises(UsageError, match="16 characters"):
        resolve_token("127.0.0.1", "short")
    monkeypatch.setenv("KGBIAS_SERVE_TOKEN", TOKEN)
    assert resolve_token("0.0.0.0", None) == TOKEN


def test_large_graphs_leave_out_what_takes_minutes(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_COMPLETE_STATEMENTS", 3)
    about = server.render_served_page([run]).page.split('id="about">')[1].split("</script>")[0]
    assert "community" not in json.loads(about)["maps"]
    assert "said.echo" not in json.loads(about)["columns"]["core"]
    asked_for = server.render_served_page([run], selection=Selection(exclude_echoes=True))
    assert '"said.echo"' in asked_for.page


@pytest.fixture
def keeping(
    run: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[StoredRun, list[str]]]:
    """A run whose page is kept, and what was read of its store so far."""
    monkeypatch.setattr(server, "MIN_CACHED_STATEMENTS", 0)
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path / "cache"))
    readings: list[str] = []
    read = server.statements.read_statement_table
    monkeypatch.setattr(
        server.statements,
        "read_statement_table",
        lambda *given: (readings.append("read"), read(*given))[1],
    )
    with SQLiteStore(str(tmp_path / "kgbias.db")) as store:
        yield (
            StoredRun(store, measured_run(store, GROUPS, ["food", "rain", HOSTILE_TEXTS[0]])),
            readings,
        )


def kept() -> list[Path]:
    return sorted((cache_folder() / "explorer").glob("*"))


def test_what_was_read_is_kept_while_the_store_stays_as_it_is(
    keeping: tuple[StoredRun, list[str]],
) -> None:
    run, readings = keeping
    first, second = server.render_served_page([run]), server.render_served_page([run])
    assert readings == ["read"] and len(kept()) == 1
    assert first.page == second.page and first.blocks == second.blocks
    for row in range(first.row_index.rows):
        assert read_origin(second.row_index, row) == read_origin(first.row_index, row)
    server.render_served_page([run], selection=Selection(exclude_echoes=True))
    assert len(readings) == 2 and len(kept()) == 2, "another selection is another page"
    run.store.keep_triples([Triple("Women", "like", "snow")])
    server.render_served_page([run])
    assert len(readings) == 3 and len(kept()) == 1, "of another state nothing is kept"


def test_a_damaged_page_is_made_again(keeping: tuple[StoredRun, list[str]]) -> None:
    run, readings = keeping
    whole = server.render_served_page([run])
    (file,) = kept()
    right = file.read_bytes()
    places = [0, 40, len(right) // 2, len(right) - 1]
    flips = [right[:p] + bytes([right[p] ^ 16]) + right[p + 1 :] for p in places]
    for number, wrong in enumerate([b"", right[:-1], *flips], 2):
        file.write_bytes(wrong)
        again = server.render_served_page([run])
        assert len(readings) == number and again.blocks == whole.blocks
        assert file.read_bytes() == right


def test_a_store_that_changes_meanwhile_is_not_kept(
    keeping: tuple[StoredRun, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = keeping
    read = server.statements.read_statement_table

    def changing(*given: Any) -> Any:
        with SQLiteStore(run.store.url) as other:
            other.keep_triples([Triple("Women", "like", "snow")])
        return read(*given)

    monkeypatch.setattr(server.statements, "read_statement_table", changing)
    server.render_served_page([run])
    assert kept() == []


def test_where_nothing_can_be_written_nothing_is_kept(
    keeping: tuple[StoredRun, list[str]],
) -> None:
    run, readings = keeping
    cache_folder().write_text("in the way")
    assert server.render_served_page([run]).page == server.render_served_page([run]).page
    assert len(readings) == 2


def test_runs_are_read_again_when_they_have_changed(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    store, live = run.store, StoreWatch([run])

    def look() -> bool:
        live._next_look = 0.0
        return live.has_changed()

    store.set_status(run.id, "running")
    assert not look() and not look() and len(live.running_lines) == 1
    assert "more answer" not in live.running_lines[0]
    store.keep_answers([Said("new", "m", "snow", "stop", 1, 1)])
    assert not look()
    texts.check_lines(live.running_lines[0], "more answer")  # no statements yet
    store.put(run.id, GroupScore, [GroupScore(0.0, -1.0, 1.0, 9, GROUPS[0].id, "overall_regard")])
    assert look() and look()  # measured, whether or not its crawl goes on
    live.mark_read(0.0)
    assert not live.has_changed() and not look()
    group, said = GROUPS[0], Triple("Women", "love", "snow")
    store.load_import(
        run.id,
        [
            Generation(
                run.id, "new", group.id, "none", "object", 2, 0, "ok", answer_key="new", triple=said
            )
        ],
    )
    with monkeypatch.context() as away:
        away.setattr(StoredRun, "summary", lambda _: (_ for _ in ()).throw(StoreError("away")))
        with pytest.raises(StoreError):
            look()
        assert not live.has_changed()  # not at once
    assert look() and "more answer" not in live.running_lines[0]  # nothing is missed
    live.mark_read(0.0)
    store.set_status(run.id, "complete")
    assert look() and live.running_lines == []


def test_answers_that_come_while_a_run_is_read_wait_for_the_next_reading(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated, before = type(run.store).iter_statement_rows, server.render_served_page([run])

    def then_more(store: SQLiteStore, run_id: str) -> Iterator[Any]:
        yield from stated(store, run_id)
        store.load_import(
            run_id,
            [
                Generation(
                    run_id,
                    f"new/{n}",
                    GROUPS[0].id,
                    "none",
                    "object",
                    2,
                    0,
                    "ok",
                    triple=Triple("Women", "love", f"snow {n}"),
                )
                for n in range(40)
            ],
        )

    monkeypatch.setattr(type(run.store), "iter_statement_rows", then_more)
    during = server.render_served_page([run])
    assert during.blocks == before.blocks
    monkeypatch.undo()
    assert server.render_served_page([run]).row_index.rows == before.row_index.rows + 40


def test_until_there_is_something_to_show() -> None:
    app = Application(at_once, at_once)
    assert b"being read" in asked(app, "/")[2]
    app.set_running(["a is running"])
    assert b"a is running" in asked(app, "/")[2]
    app.set_running([])  # it ended without a statement
    status, _, body = asked(app, "/")
    assert status == 503 and b"running" not in body and b"no statements yet" in body


@pytest.mark.parametrize(("host", "port", "other"), [("203.0.113.9", 0, "host"), ("", -1, "port")])
def test_what_cannot_be_listened_on_is_named(
    host: str, port: int, other: str, texts: Texts
) -> None:
    """The address is of another machine: another port would not help (RFC 5737)."""
    with texts.raises(UsageError):
        server._open_socket(host, port)
