"""Faults that people reported of tools like this: each is called what it is."""

import errno
import gc
import gzip
import json
import os
import re
import resource
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias import cli
from kgbias.cli import show
from kgbias.crawl.seeds import read_seeds
from kgbias.errors import DataError, ModelError, StoreError, UsageError
from kgbias.graph.sqlite.connection import translate_errors
from kgbias.ingest.statement_file import open_rereadable
from kgbias.io import reading
from kgbias.io.files import write_text
from kgbias.io.text import is_plain, printable
from kgbias.models import open_model
from kgbias.models.base import Request
from kgbias.models.http import (
    Secrets,
    describe_body,
    describe_proxy,
    read_secrets,
    reason,
    server_url,
    show_urls,
    shown_url,
    warn_unencrypted,
    without_password,
)
from tests.conftest import require_modules
from tests.fault_server import FaultServer
from tests.server_kinds import without_waiting
from tests.texts import Texts
from tests.waiting import DEADLINE_SECONDS

require_modules("openai")


@contextmanager
def chatty_server(early_count: int = 0, late_seconds: float = 0.0) -> Iterator[str]:
    """A server that answers each request with its prompt, and every third time sends another answer
    that nobody asked for, in the same breath or so many seconds later. To its first `early_count`
    connections it sends one before anything is asked."""
    listening = socket.create_server(("127.0.0.1", 0))
    count, connections = iter(range(1, 1_000_000)), iter(range(1, 1_000_000))

    def response(text: str) -> bytes:
        body = {
            "choices": [{"text": text, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }
        data = json.dumps(body).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
        return head.encode() + b"\r\nconnection: keep-alive\r\n\r\n" + data

    def serve(connection: socket.socket) -> None:
        # The client hangs up.
        with suppress(OSError), connection, connection.makefile("rb") as file:
            if next(connections) <= early_count:
                connection.sendall(response("a stray answer"))
            while line := file.readline():
                length = 0
                while line not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                    line = file.readline()
                asked = json.loads(file.read(length))
                stray = response("a stray answer") if next(count) % 3 == 0 else b""
                answer = response(f" {asked['prompt']}")
                connection.sendall(answer if late_seconds else answer + stray)
                if late_seconds:
                    time.sleep(late_seconds)
                    connection.sendall(stray)

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        listening.close()


@pytest.mark.parametrize("late_seconds", [0.0, 0.02])
def test_no_answer_of_another_request_is_taken(late_seconds: float) -> None:
    with chatty_server(late_seconds=late_seconds) as url:
        model = open_model(
            "openai:m", base_url=url, notify=print, concurrency=2, timeout=DEADLINE_SECONDS
        )
        requests = [Request(f"prompt {n}", seed=n) for n in range(30)]
        found = {n: c.text for batch in model.complete(requests) for n, c in batch}
        model.close()
    assert found == {n: f" prompt {n}" for n in range(30)}


def test_what_comes_before_anything_is_asked_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """However late it comes on a busy machine: a connection that stays quiet is waited for."""
    monkeypatch.setattr("kgbias.models.http.MIN_LISTEN_SECONDS", 1.0)
    monkeypatch.setattr("kgbias.models.http.MAX_LISTEN_SECONDS", 1.0)
    with chatty_server(early_count=2) as url, without_waiting():
        model = open_model(
            "openai:m", base_url=url, notify=print, concurrency=2, timeout=DEADLINE_SECONDS
        )
        requests = [Request(f"prompt {n}", seed=n) for n in range(2)]
        found = {n: c.text for batch in model.complete(requests) for n, c in batch}
        model.close()
    assert found == {n: f" prompt {n}" for n in range(2)}


def test_an_address_is_shown_to_whoever_asked_for_it_alone() -> None:
    """Another thread of the same process has settings of its own."""
    url = "https://host:8/tenant-a81fe3c09b7d/v1"
    with show_urls():
        shown = shown_url(url)
        with ThreadPoolExecutor(1) as thread:
            elsewhere = thread.submit(shown_url, url).result()
    assert shown == url and elsewhere == shown_url(url) == without_password(url) != url


def test_what_a_url_hides_is_neither_shown_nor_stored() -> None:
    url = "https://u:pass-word-1@host:8/tenant-a81fe3c09b7d/v1?api-version=1&token=abcd1234efgh"
    shown = without_password(url)
    assert shown.startswith("https://host:8/[") and shown.endswith("]/v1")
    echo = read_secrets(url).clean("GET /tenant-a81fe3c09b7d/v1?token=abcd1234efgh HTTP/1.1")
    assert "a81fe3c09b7d" not in echo and "abcd1234efgh" not in echo
    assert without_password("http://h:1/v1") == "http://h:1/v1"
    other = without_password(url.replace("tenant-a", "tenant-b"))
    assert other != shown  # two tenants are two servers
    azure = "https://h/openai/deployments/gpt-4o-mini/v1?api-version=2024-10-21"
    assert read_secrets(azure).clean("I am gpt-4o-mini, of 2024") == "I am gpt-4o-mini, of 2024"


def test_without_a_thread_to_ask_from_nothing_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    model = open_model("openai:m", base_url="http://127.0.0.1:9/v1")
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="new thread"):
            list(model.complete([Request("Bakers are", seed=1)]))
        model.close()
        gc.collect()
    assert not [warning for warning in warned if "never awaited" in str(warning.message)]


def test_a_whole_address_is_shown_and_stored_where_that_is_asked(tmp_path: Path) -> None:
    asked = ["crawl", "--model", "openai:m", "--group", "Bakers", "--iterations", "0", "--samples"]
    asked += ["2", "--form", "completion", "--run", "r", "--store", str(tmp_path / "k.db")]
    with FaultServer(lambda body, number: " are kind people.\n") as server:
        url = server.url.replace("://", "://u:pass-word-1@").replace(
            "/v1", "/tenant-1/v1?x=abcd1234"
        )
        runner = CliRunner()
        for show in ([], ["--show-url"], ["--show-url", "--run", "shown", "--samples", "4"]):
            done = runner.invoke(cli.cli, [*asked, "--base-url", url, *show])
            assert done.exit_code == 0, done.output
            if show == ["--show-url"]:  # the address is no part of what tells answers apart
                assert "asked 0" in done.output
    with kgbias.open(str(tmp_path / "k.db")) as study:
        first, shown = (dict(study.run(name).stored.record.settings) for name in ("r", "shown"))
    assert "tenant-1" not in str(first) and "address" not in first
    assert shown["address"].endswith("/tenant-1/v1?x=abcd1234") and "pass-word" not in str(shown)
    assert shown["base_url"] == first["base_url"]


@pytest.mark.parametrize("name", ["می‌خواهم", "ක්‍ෂ", "👩‍👧 people"])
def test_joiners_are_part_of_names(name: str, tmp_path: Path) -> None:
    assert is_plain(name) and printable(name) == name
    (tmp_path / "g.txt").write_text(f"{name}\n", "utf-8")
    assert read_seeds(str(tmp_path / "g.txt"))[0].groups == (name,)
    assert not is_plain("a\u202eb") and printable("a\x1b[31m") == "a\ufffd[31m"


def test_an_argument_in_utf_8_is_taken_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    as_ascii = "Köche".encode().decode("ascii", "surrogateescape")
    monkeypatch.setattr("sys.argv", ["kgbias", as_ascii])
    show.prepare_streams()
    import sys

    assert sys.argv[1] == "Köche"


def test_a_pipe_by_its_name_is_written_to(tmp_path: Path) -> None:
    read, write = os.pipe()
    try:
        path = Path(f"/dev/fd/{write}")
        if not path.exists():
            pytest.skip("this system names no open files")
        write_text(path, "a,b\n")
        assert os.read(read, 100) == b"a,b\n"
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.parametrize("said", ["redirects to gone.invalid: ", "speaks no TLS: http://"])
def test_what_is_out_of_reach_is_named(said: str) -> None:
    moved = ("raw", (307, {"location": "http://gone.invalid/login"}, b""))
    with FaultServer(lambda body, number: moved) as server:
        url = server.url.replace("http:", "https:") if "TLS" in said else server.url
        model = open_model("openai:m", base_url=url, notify=lambda _: None)
        with without_waiting(), pytest.raises(ModelError, match=said):
            list(model.complete([Request("a", seed=1)]))
        model.close()


def test_an_address_in_the_place_of_a_file_is_not_called_missing(tmp_path: Path) -> None:
    with kgbias.open(tmp_path / "k.db") as study, pytest.raises(DataError, match="download it"):
        study.import_file("https://example.org/t.csv")


def test_the_address_of_an_endpoint_is_none_of_a_server() -> None:
    for path in ("/v1/chat/completions", "/v1/completions/", "/v1/messages", "/v1/embeddings"):
        with pytest.raises(UsageError, match="leave that out"):
            server_url(f"http://h{path}")
    assert server_url("http://h/v1/messages-api") == "http://h/v1/messages-api"


_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def read_request(connection: socket.socket) -> None:
    """Read a whole request: a socket closed over unread bytes resets, and loses what was sent."""
    with connection.makefile("rb") as stream:
        length = 0
        for line in iter(stream.readline, b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        stream.read(length)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", "ended|disconnected|reset"),
        (_HEAD + b"content-length: 99\r\n\r\n{}", "without sending complete message body"),
        (_HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n", "incomplete chunked read"),
        (_HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}", "conflicting"),
        (_HEAD + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}", "is compressed"),
        (b'{"choices": []}\r\n\r\n', "illegal.*speaks no HTTP"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "ended before an answer came$"),
        (_HEAD + b"x: " + b"y" * 200_000, "the head of its answer is too long"),
    ],
)
def test_a_server_that_breaks_off_was_reached(sent: bytes, said: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def break_off() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            read_request(connection)
            connection.sendall(sent)
            connection.close()

    threading.Thread(target=break_off, daemon=True).start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    model = open_model("openai:m", base_url=url, notify=lambda _: None, timeout=DEADLINE_SECONDS)
    with pytest.raises(ModelError, match=f"^no answer from {url}: .*({said})") as told:
        list(model.complete([Request("a", seed=1)]))
    model.close()
    listening.close()
    assert "Error" not in str(told.value)


@pytest.mark.parametrize(
    ("encoding", "mark"), [("identity", "\ufeff"), ("utf-8", ""), ("identity, identity", "")]
)
def test_an_answer_as_other_servers_frame_it_is_read(encoding: str, mark: str) -> None:
    body = mark + json.dumps({"choices": [{"text": " kind", "finish_reason": "stop"}]})
    answer = ("raw", (200, {"content-encoding": encoding}, body.encode()))
    with FaultServer(lambda *_: answer) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        found = [c.text for batch in model.complete([Request("a", seed=1)]) for _, c in batch]
        model.close()
    assert found == [" kind"]


def test_an_error_of_ours_is_not_put_down_to_the_server(
    monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    with FaultServer(lambda *_: " kind people.") as server, without_waiting():
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        monkeypatch.setattr("kgbias.models.server.parse_body", lambda body: body[1_000_000])
        with texts.raises(ModelError):
            list(model.complete([Request("a", seed=1)]))
        model.close()


def test_a_server_that_never_answers_in_time_is_given_up(texts: Texts) -> None:
    """Not once for each request: with a limit of two minutes that would take hours."""
    with FaultServer(lambda *_: ("hang", 1)) as server, without_waiting():
        model = open_model(
            "openai:m", base_url=server.url, notify=lambda _: None, timeout=0.05, concurrency=4
        )
        with texts.raises(ModelError):
            list(model.complete([Request(str(n), seed=n) for n in range(100)]))
        model.close()
    assert len(server.request_counts) < 50  # of a hundred; how many depends on the machine


def test_a_page_in_the_place_of_an_answer_is_called_one(texts: Texts) -> None:
    page = "<!DOCTYPE html><html><head><title>Just a  moment&hellip;</title></head>policy</html>"
    with FaultServer(lambda *_: ("raw", (403, {}, page.encode()))) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        with texts.raises(ModelError):
            list(model.complete([Request("a", seed=1)]))
        model.close()


@pytest.mark.parametrize(
    ("code", "said"), [(407, "407 through the proxy .*: Proxy Auth"), (524, "524: no reason given")]
)
def test_a_status_without_words(code: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer(lambda *_: ("raw", (code, {}, b""))) as server:
        address = server.url.removesuffix("/v1")
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, address)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        model = open_model("openai:m", base_url="http://models.invalid/v1", notify=lambda _: None)
        with pytest.raises(ModelError, match=said):
            list(model.complete([Request(str(n), seed=n) for n in range(9)]))
        model.close()


def test_of_several_answers_the_first_by_its_number_is_taken() -> None:
    choices = [{"index": n, "text": f" {n}", "finish_reason": "stop"} for n in (1, 0)]
    with FaultServer(lambda *_: ("body", json.dumps({"choices": choices}))) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        [[(_, found)]] = model.complete([Request("a", seed=1)])
        model.close()
    assert found.text == " 0"


def test_what_is_no_text_is_not_shown(texts: Texts) -> None:
    secrets = Secrets("a-secret-key")
    texts.check(describe_body(gzip.compress(b"{}" * 999), secrets))
    assert describe_body(b"", secrets) == "it is empty"
    page = b"<!DOCTYPE html><title>Sign in</title><input name=csrf value=9f8e7d>"
    texts.check(describe_body(page, secrets))
    assert describe_body("Zugriff für a-secret-key".encode("cp1252"), secrets) == (
        "'Zugriff f\ufffdr [key]'"
    )


def test_an_open_file_by_its_name_is_added_to(tmp_path: Path, texts: Texts) -> None:
    """As `kgbias export -o /dev/stdout >> all.csv` has it: what the file holds stays."""
    path = tmp_path / "all.csv"
    path.write_text("before\n")
    with path.open("ab") as file:
        for name in (f"/dev/fd/{file.fileno()}", f"/proc/self/fd/{file.fileno()}"):
            write_text(Path(name), "a,b\n")
    assert path.read_text() == "before\na,b\na,b\n"
    with texts.raises(DataError):
        write_text(Path("/dev/fd/999999"), "a,b\n")


def test_a_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert describe_proxy("http://h/v1") == ""
    monkeypatch.setenv("http_proxy", "http://me:secret@proxy:1")
    assert "proxy http://proxy:1" in describe_proxy(
        "http://h/v1"
    ) and "secret" not in describe_proxy("http://h")
    monkeypatch.setenv("no_proxy", "h")
    assert describe_proxy("http://h/v1") == ""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("SQLITE_IOERR_LOCK", "has no locks"),
        ("SQLITE_IOERR_SHMMAP", "no shared memory"),
        ("SQLITE_IOERR_WRITE", "check the disk"),
    ],
)
def test_what_the_file_system_lacks_is_said(code: str, said: str) -> None:
    import sqlite3

    error: Any = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = code
    with pytest.raises(StoreError, match=f"disk I/O error.*{said}"), translate_errors("k.db"):
        raise error


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("certificate has expired", r"; by the clock of this machine it is \d{4}-"),
        ("certificate is not yet valid", r"; by the clock of this machine it is \d{4}-"),
        ("self-signed certificate", "; if you trust it, name the file"),
        ("Hostname mismatch, certificate is not valid for 'h'", "$"),
    ],
)
def test_advice_on_a_certificate_is_given_where_it_helps(said: str, advice: str) -> None:
    text = f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {said}"
    assert re.match(re.escape(text) + advice, reason(OSError(text)))


@pytest.mark.parametrize("has_torch", [False, True])
def test_a_command_with_a_model_ends_without_a_list_of_leaks(
    has_torch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kgbias.__main__ import main

    def end() -> None:
        raise SystemExit(0)

    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(cli, "main", end)
    with monkeypatch.context() as modules, pytest.raises(SystemExit):
        modules.delitem(sys.modules, "torch", raising=False)
        if has_torch:
            modules.setitem(sys.modules, "torch", SimpleNamespace())
        main()
    assert frozen == [True] * (not has_torch)


def test_a_folder_that_was_removed_under_the_command_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    texts: Texts,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    os.chdir("gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr("sys.argv", ["kgbias", "runs"])
    with pytest.raises(SystemExit):
        cli.main()
    texts.check(capsys.readouterr().err)


def test_what_the_system_says_of_a_disk_is_in_the_line(tmp_path: Path, texts: Texts) -> None:
    """SQLite calls a quota that is used up, as any other error in writing, a disk I/O error."""
    import sqlite3

    error: Any = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_WRITE"
    (store := tmp_path / "k.db").write_bytes(b"x" * 100)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with (
            texts.raises(StoreError),
            translate_errors(str(store)),
        ):
            raise error
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(StoreError, match=r"\(disk I/O error\)"), translate_errors(str(store)):
        raise error


def test_a_pipe_that_nobody_writes_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    pipe = tmp_path / "p.csv"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_text, args=("a,b\n",), daemon=True)
    writing.start()
    assert reading.read_bytes(pipe) == b"a,b\n"
    monkeypatch.setattr(reading, "_MAX_WRITER_SECONDS", 0.05)
    with texts.raises(DataError):
        reading.read_bytes(pipe)
    with (
        texts.raises(DataError),
        open_rereadable(pipe),
    ):
        pass


def test_a_key_that_goes_unencrypted_to_a_public_server_is_remarked_once(
    monkeypatch: pytest.MonkeyPatch,
    texts: Texts,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijkl")
    for url in (
        "https://models.example.com/v1",
        "http://127.0.0.1:8000/v1",
        "http://10.1.2.3/v1",
        "http://[::1]:8/v1",
        "http://gpu:8000/v1",
        "http://gpu.lan/v1",
    ):
        assert warn_unencrypted(url, read_secrets(url)) == ""
    for url in ("http://models.example.com/v1", "http://8.8.8.8:1/v1"):
        assert "without encryption" in warn_unencrypted(url, read_secrets(url))
    said: list[str] = []
    url = "http://models.example.com/v1"
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # nothing leaves this machine
    model = open_model("openai:m", base_url=url, notify=said.append, timeout=DEADLINE_SECONDS)
    for _ in range(2):
        with pytest.raises(ModelError, match="proxy"):
            list(model.complete([Request("a prompt", seed=0)]))
    model.close()
    texts.check("\n".join([line for line in said if "without encryption" in line]))
    monkeypatch.delenv("OPENAI_API_KEY")
    assert warn_unencrypted(url, read_secrets(url)) == ""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.EAGAIN, "Resource temporarily unavailable: the system allows no more processes"),
        (errno.EMFILE, "Too many open files: the system allows no more open files"),
        (errno.ENOSPC, "cannot write the output: No space left on device"),
        (errno.ENODEV, "the system says: No such device"),
        (errno.EIO, "the system says: Input/output error"),  # of reading as well
    ],
)
def test_what_the_system_refuses_is_not_put_down_to_the_output(
    code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(cli.cli, "main", refuse)
    monkeypatch.setattr("sys.argv", ["kgbias", "runs"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2 and capsys.readouterr().err.startswith(f"kgbias: {said}")
