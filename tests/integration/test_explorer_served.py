"""`kgbias serve` as it is started, in a real browser: it shows what the file shows."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from kgbias.graph.push import push_run
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.types import Group
from kgbias.graph.vectors import StatementVectors
from kgbias.measure.semantic_search import SHIPPED_ENCODER, statement_texts
from tests import waiting
from tests.fault_server import FaultServer
from tests.hostile import HOSTILE_TEXTS
from tests.report_data import measured_run

pytestmark = pytest.mark.integration

GROUPS = (Group("Women", "gender"), Group("Men", "gender"), Group("Sikhs", "religion"))
DRIVER = "GPU stall due to ReadPixels"  # what software rendering says of itself
TOKEN = "0123456789abcdef"


@contextmanager
def serving(url: str, *options: str, **environment: str) -> Iterator[str]:
    """The address of a server, which is stopped as a person would stop it."""
    server = subprocess.Popen(
        [sys.executable, "-m", "kgbias", "serve", "--store", url, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    assert server.stdout and server.stderr
    try:
        address = server.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), server.stderr.read()
        assert read_at(address, environment.get("KGBIAS_SERVE_TOKEN", "")) == 200
        yield address
    finally:
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=waiting.DEADLINE_SECONDS)
    assert server.returncode == 0 and "Traceback" not in errors, errors


def read_at(address: str, token: str) -> int:
    """What the server answers when it has read the statements."""
    request = Request(address, headers={"Authorization": f"Bearer {token}"})

    def answer() -> int:
        try:
            return int(urlopen(request).status)
        except HTTPError as error:
            return error.code if error.code != 503 else 0

    return waiting.wait_until(answer)


@contextmanager
def opened(chromium: Any, address: str, start: str = "") -> Iterator[Any]:
    """The page; nothing may go wrong in it, and nobody else be asked."""
    wrong: list[str] = []
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda m: None if DRIVER in m.text else wrong.append(m.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda r: None if r.url.startswith((address, "blob:", "data:")) else wrong.append(r.url),
    )
    page.goto(address + start)
    page.wait_for_selector("html[data-ready]", state="attached")
    page.click("#show")
    yield page
    page.close()
    assert wrong == []


def until(page: Any, condition: str) -> None:
    """Wait for a condition in the page (its policy lets no text become code, so it is asked)."""
    from playwright.sync_api import Error

    def met() -> bool:
        page.wait_for_timeout(1)  # the page's own events
        try:
            return bool(page.evaluate(condition))
        except Error as error:  # it is being loaded again
            if "context was destroyed" not in str(error):
                raise
            return False

    waiting.wait_until(met)


def walked(page: Any) -> list[Any]:
    """What the page says along a walk: filters, a search, a group, and a statement with its prompt
    and answer."""
    told = [page.inner_text("#found")]
    page.uncheck("#regard-filter label:has-text('positive') input")
    told.append(page.inner_text("#found"))
    page.click("#reset")
    page.fill("#search", "musi")
    until(page, "kgbias.state.words === 'musi'")
    told.append(page.locator("#options li").all_inner_texts())
    page.fill("#search", "")
    until(page, "kgbias.state.words === ''")
    page.click('[data-tab="group"]')
    page.select_option("#group", label="Sikhs")
    told.append(page.locator("#body tr").all_inner_texts())
    page.locator("#body tr").first.click()
    page.wait_for_selector("#details h4:has-text('Answered')")
    page.wait_for_selector("#details h3:has-text('Similar statements')")
    told.append(page.inner_text("#details"))
    page.click('[data-tab="two"]')
    told.append(page.inner_text("#caption"))
    page.click("#export summary")
    page.uncheck("#regard-filter label:has-text('neutral') input")
    until(page, "document.querySelector('#cypher').textContent.includes('s.triple IN')")
    told.append(page.inner_text("#cypher"))
    return told


@pytest.fixture
def run(store: SQLiteStore) -> StoredRun:
    run = StoredRun(store, measured_run(store, GROUPS, ["food", "rain", "music", "families"]))
    ends = list(statement_texts(run))
    near = np.zeros((len(ends), 384), np.float32)  # as long as those of the encoder
    near[:, :2] = [(1.0, n / 9) / np.hypot(1, n / 9) for n in range(len(ends))]
    store.save_vectors(SHIPPED_ENCODER, StatementVectors(ends, near))
    return run


@pytest.fixture
def of_file(chromium: Any, run: StoredRun, tmp_path: Path) -> list[Any]:
    """What the page says that is written as a file."""
    from kgbias.explore import write_explorer

    path = tmp_path / "explorer.html"
    write_explorer([run], path)
    with opened(chromium, path.as_uri()) as page:
        return walked(page)


def test_the_server_shows_what_the_file_shows(
    chromium: Any, run: StoredRun, of_file: list[Any]
) -> None:
    with serving(run.store.url) as address, opened(chromium, address) as page:
        assert walked(page) == of_file


@pytest.mark.slow
def test_a_neo4j_store_is_served_as_a_file_is(
    chromium: Any, run: StoredRun, of_file: list[Any], empty_neo4j: str
) -> None:
    with open_store(empty_neo4j) as target:
        push_run(run, target)
    with serving(empty_neo4j) as address, opened(chromium, address) as page:
        assert walked(page) == of_file


def test_a_token_is_shown_once(chromium: Any, run: StoredRun) -> None:
    with serving(run.store.url, KGBIAS_SERVE_TOKEN=TOKEN) as address:
        page = chromium.new_page()
        assert page.goto(address).status == 401
        page.close()
        with opened(chromium, address, f"?token={TOKEN}#view=group&group=Men") as page:
            assert page.url == f"{address}#view=group&group=Men"
            assert {line[:3] for line in page.locator("#body tr").all_inner_texts()} == {"Men"}
            page.reload()
            page.wait_for_selector("html[data-ready]", state="attached")


def test_hostile_text_from_a_server_is_inert(chromium: Any, store: SQLiteStore) -> None:
    objects = [text for text in HOSTILE_TEXTS if text.strip()]
    run = measured_run(
        store, (Group(HOSTILE_TEXTS[0], HOSTILE_TEXTS[1]), Group("Men", "gender")), objects
    )
    store.close()
    with serving(store.url, run.name) as address, opened(chromium, address) as page:
        for row in range(0, page.evaluate("kgbias.selection().rows.length"), 7):
            page.evaluate(f"kgbias.set({{ row: {row} }})")
            page.wait_for_selector("#details h3:has-text('answer')")
        page.fill("#search", "<img")
        assert page.evaluate("window.pwned === undefined")


def test_a_crawl_is_watched_while_it_runs(chromium: Any, tmp_path: Path) -> None:
    url, expanding, on = str(tmp_path / "kgbias.db"), threading.Event(), threading.Event()

    def answers(body: dict[str, Any], _: int) -> str:
        if "smart" in body["prompt"]:  # an example: the first round has been read
            expanding.set()
            on.wait(waiting.DEADLINE_SECONDS)
        return f"smart and {body['seed'] % 97}"

    with FaultServer(answers) as model:
        crawl = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "kgbias",
                "crawl",
                "--model",
                "openai:m",
                "--base-url",
                model.url,
                "--store",
                url,
                "--run",
                "watched",
                "--group",
                "Women",
                "--samples",
                "2",
                "--iterations",
                "1",
                "--form",
                "completion",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert expanding.wait(waiting.DEADLINE_SECONDS)
        with serving(url, "watched") as address, opened(chromium, address) as page:
            page.click('[data-tab="group"]')
            page.wait_for_selector("#live:has-text('watched is running')")
            few = page.evaluate("kgbias.about.rows")
            page.evaluate("kgbias.set({ row: 0 })")  # somebody reads: the page waits
            page.wait_for_selector("#details h4:has-text('Answered')")
            on.set()
            assert crawl.wait(waiting.DEADLINE_SECONDS) == 0
            page.wait_for_selector("#live button:has-text('Show them now')")
            assert page.evaluate("kgbias.about.rows") == few
            read = page.inner_text("#details-title")
            page.focus("#live button")
            with page.expect_response(
                "**/live*"
            ):  # the server is asked again, and the button stays
                pass
            page.wait_for_timeout(100)
            assert page.evaluate("document.activeElement.textContent") == "Show them now"
            page.keyboard.press("Enter")
            with SQLiteStore(url) as store:
                (summary,) = store.summaries()
            until(page, f"window.kgbias?.about.rows === {summary.triples}")
            page.wait_for_selector("#live", state="hidden")
            assert summary.triples > few > 0
            assert "view=group" in page.url and not page.is_visible("#warning")
            assert page.inner_text("#details-title") == read  # wherever its row is now
