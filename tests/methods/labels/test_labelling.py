"""Labelling: who is shown what, what is kept, sheets, and the requests of the page."""

import asyncio
import csv
import json
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import pytest

from kgbias.errors import DataError, UsageError
from kgbias.explore.server import Application, ServedPage, render_served_page
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group
from kgbias.ids import content_id
from kgbias.measures import MEASURES
from kgbias.methods.labels.desk import LabelDesk
from kgbias.methods.labels.labelling import Labelling, read_guide, read_label_sheet
from tests.report_data import measured_run
from tests.texts import Texts

GROUPS = (Group("Women", "gender"), Group("Men", "gender"))
OBJECTS = [*(f"thing {n}" for n in range(9)), "men and the woman"]
TOKEN = "0123456789abcdef"
GUIDES = {  # a guide whose text changes needs another version: labels carry it
    "regard@1": "2811f188768d548b8201",
    "toxicity@1": "f906288880c0fc0cf41f",
    "identity_attack@1": "f6136506219904dfb5c6",
    "acceptability@1": "b946b2b003fbd6007044",
}


@pytest.fixture
def run(store: SQLiteStore) -> StoredRun:
    return StoredRun(store, measured_run(store, GROUPS, OBJECTS))


def test_guides_have_the_labels_of_their_measures_and_keep_their_text(texts: Texts) -> None:
    found = {}
    for name in ("regard", "toxicity", "identity_attack", "acceptability"):
        guide = read_guide(name)
        assert {x.name for x in guide.labels} <= MEASURES.own_entries[name].labels.keys()
        assert len(guide.labels) <= 5 and all(x.meaning and x.examples for x in guide.labels)
        found[guide.id] = content_id("guide", repr(guide))
    assert found == GUIDES
    with texts.raises(UsageError):
        read_guide("warmth")


def test_raters_share_the_work_and_one_in_five_is_for_two(run: StoredRun) -> None:
    ana = Labelling(run, "regard", "Ana")
    ben, cem = ana.for_rater("Ben"), ana.for_rater("Cem")
    assert [x.id for x in ana.next_tasks(1000)] == list(ana.sample.order)
    for x in ana.next_tasks(1000):
        ana.label_statement(x, "neutral")
    assert ana.next_tasks() == []
    shared = [id for id in ana.sample.order if ana.sample.is_shared(id)]
    assert shared and [x.id for x in ben.next_tasks(1000)] == shared
    held = {shared[0]: {"Ben"}}
    assert [x.id for x in cem.next_tasks(1000, held_statements=held)] == shared[1:]
    for x in ben.next_tasks(1000):
        ben.skip_statement(x)
    assert cem.next_tasks() == []
    progress = ben.read_progress()
    assert (progress.labelled, progress.skipped, progress.raters) == (0, len(shared), 1)


def test_labels_are_read_again_only_if_others_have_written(run: StoredRun) -> None:
    reads: list[str] = []
    kept = run.store.labels
    run.store.labels = lambda m=None: reads.append(m) or kept(m)  # type: ignore[method-assign]
    ana = Labelling(run, "regard", "Ana")
    desk, elsewhere = LabelDesk([ana]), Labelling(run, "regard", "Ben")
    asked = {"measure": "regard", "rater": "Ana", "statement": "", "label": "", "note": ""}
    answer = desk.handle_request({**asked, "do": "next"})
    for n in range(1, 4):
        own = {"do": "label", "statement": answer["statement"]["id"], "label": "neutral"}
        answer = desk.handle_request({**asked, **own})
        assert (answer["progress"]["labelled"], answer["latest"]) == (n, own["statement"])
    assert reads == []
    (by_ben,) = elsewhere.next_tasks()
    elsewhere.label_statement(by_ben, "positive")
    assert reads == ["regard"]  # Ben's labelling is one of another process, say
    answer = desk.handle_request({**asked, "do": "next"})
    assert reads == ["regard"] * 2
    assert answer["progress"] | {"statements": 0} == {
        "labelled": 3,
        "skipped": 0,
        "by_all": 4,
        "raters": 2,
        "statements": 0,
    }
    ana.undo_label()
    assert [x.label for x in kept("regard")][-1] == "undo"
    assert desk.handle_request({**asked, "do": "next"})["progress"]["labelled"] == 2


def test_a_label_that_is_sent_again_changes_nothing(run: StoredRun, texts: Texts) -> None:
    ana = Labelling(run, "regard", "  Ana\n Bee ")
    (first,) = ana.next_tasks()
    kept = ana.label_statement(first, "1", "a sneer")
    assert (kept.label, kept.rater, kept.kind, kept.sample) == (
        "negative",
        "Ana Bee",
        "person",
        ana.sample.id,
    )
    assert ana.label_statement(first.id, "negative", "a sneer") == kept
    assert len(run.store.labels()) == 1
    assert (
        ana.undo_label(first.id) == first
        and ana.undo_label(first.id) is None
        and ana.undo_label() is None
    )
    assert ana.next_tasks() == [first] and len(run.store.labels()) == 2
    with texts.raises(UsageError):
        ana.label_statement(first, "bad")
    with pytest.raises(UsageError, match="has no statement 'x'"):
        ana.skip_statement("x")


def test_a_masked_statement_does_not_name_the_group(run: StoredRun) -> None:
    shown = Labelling(run, "regard", "Ana", masked=True).next_tasks(1000)
    for x in shown:
        assert x.text.startswith("These people ")
        assert not {"women", "woman", "men", "man"} & set(x.text.lower().strip(".").split())


def filled(path: Path, change: Any) -> None:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    change(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_a_sheet_is_read_back_whole(run: StoredRun, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    assert Labelling(run, "regard", "Ana", masked=True).write_sheet(sheet, 4) == 4

    def change(rows: list[dict[str, str]]) -> None:
        for row, label in zip(rows, ("1", "Positive", "skip", ""), strict=True):
            row["label"] = label
        rows[2]["note"] = "cannot tell"

    filled(sheet, change)
    for _ in range(2):
        found = read_label_sheet(run, sheet)
        assert [(x.label, x.note) for x in found] == [
            ("negative", ""),
            ("positive", ""),
            ("", "cannot tell"),
        ]
        assert all(x.rater == "Ana" and x.masked and x.sample for x in found)
    assert len(run.store.labels()) == 3
    assert {x.rater for x in read_label_sheet(run, sheet, rater="Ben")} == {"Ben"}


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("id", "sfff", "line 3: run .* has no statement 'fff'"),
        ("label", "bad", r"line 3: no label 'bad' of regard; use negative \(1\)"),
        ("id", None, "line 3: this statement has a second label by the same rater"),
        ("measure", "warmth", "line 3: there is no guide for labelling warmth"),
        ("masked", "perhaps", "line 3: masked is yes or no, not 'perhaps'"),
        ("rater", "x" * 99, "line 3: the name of a rater is one line of at most 80 characters"),
    ],
)
def test_a_wrong_row_of_a_sheet_is_one_line_and_nothing_is_kept(
    run: StoredRun, tmp_path: Path, column: str, value: str | None, said: str
) -> None:
    sheet = tmp_path / "sheet.csv"
    Labelling(run, "regard", "Ana").write_sheet(sheet, 2)

    def change(rows: list[dict[str, str]]) -> None:
        for row in rows:
            row["label"] = "neutral"
        rows[1][column] = rows[0][column] if value is None else value

    filled(sheet, change)
    with pytest.raises(DataError, match=said):
        read_label_sheet(run, sheet)
    assert run.store.labels() == []


JOBS: SimpleQueue[tuple[Any, Future[Any]]] = SimpleQueue()


async def in_turn(read: Any) -> Any:
    """Have the thread that opened the store read it, as the server does."""
    answer: Future[Any] = Future()
    JOBS.put((read, answer))
    return await asyncio.wrap_future(answer)


@pytest.fixture
def app(run: StoredRun) -> Application:
    made = Application(in_turn, in_turn, token=TOKEN)
    made.show_page(render_served_page([run]), LabelDesk([Labelling(run, "regard", "server")]))
    return made


SENT = {
    "host": "127.0.0.1:8765",
    "origin": "http://127.0.0.1:8765",
    "x-kgbias": "label",
    "content-type": "application/json",
    "authorization": f"Bearer {TOKEN}",
}
NEXT = {"measure": "regard", "rater": "Ana", "do": "next", "statement": "", "label": "", "note": ""}


def posted(
    app: Application, body: Any = NEXT, path: str = "/label", method: str = "POST", **other: Any
) -> tuple[int, Any]:
    head = {k: v for k, v in (SENT | {k.replace("_", "-"): v for k, v in other.items()}).items()}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "server": ("127.0.0.1", 8765),
        "headers": [(k.encode(), v.encode()) for k, v in head.items() if v is not None],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    # In a thread of its own: a browser that other tests hold open may run a loop in this one.
    asking = Thread(target=lambda: asyncio.run(app(scope, receive, send)))
    asking.start()
    while asking.is_alive():
        with suppress(Empty):
            read, answer = JOBS.get(timeout=0.01)
            try:
                answer.set_result(read())
            except Exception as error:
                answer.set_exception(error)
    text = b"".join(m.get("body", b"") for m in sent[1:])
    try:
        return sent[0]["status"], json.loads(text)
    except ValueError:
        return sent[0]["status"], text.decode()


def test_the_page_keeps_labels_and_gives_raters_different_statements(
    run: StoredRun, app: Application
) -> None:
    status, ana = posted(app)
    _, ben = posted(app, NEXT | {"rater": "Ben"})
    assert status == 200 and "score" not in json.dumps(ana)
    first = ana["statement"]["id"]
    shared = Labelling(run, "regard", "Ana").sample.is_shared(first)
    assert (ben["statement"]["id"] == first) == shared
    for _ in range(2):  # the answer was lost, and it is sent again
        status, after = posted(app, NEXT | {"do": "label", "statement": first, "label": "neutral"})
        assert status == 200 and after["latest"] == first
    assert [(x.label, x.rater) for x in run.store.labels()] == [("neutral", "Ana")]
    for _ in range(2):
        posted(app, NEXT | {"do": "undo", "statement": first})
    assert [x.label for x in run.store.labels()] == ["neutral", "undo"]


@pytest.mark.parametrize(
    ("status", "change"),
    [
        (401, {"authorization": None}),
        (401, {"authorization": "Bearer 0123456789abcdeF"}),
        (403, {"origin": "http://evil.example"}),
        (403, {"origin": "null"}),
        (403, {"sec_fetch_site": "cross-site"}),
        (403, {"x_kgbias": None}),
        (403, {"content_type": "text/plain"}),
        (405, {"path": "/"}),
        (405, {"method": "PUT"}),
        (405, {"method": "DELETE"}),
        (413, {"body": b" " * 20_000}),
        (400, {"body": b"\xff"}),
        (400, {"body": b"[" * 9_000}),
        (400, {"body": []}),
        (400, {"body": NEXT | {"note": 3}}),
        (400, {"body": NEXT | {"rater": " "}}),
        (400, {"body": NEXT | {"measure": "toxicity"}}),
        (400, {"body": NEXT | {"do": "drop"}}),
        (400, {"body": NEXT | {"do": "label", "statement": "x", "label": "neutral"}}),
    ],
)
def test_a_request_that_is_not_the_pages_own_writes_nothing(
    run: StoredRun, app: Application, status: int, change: dict[str, Any]
) -> None:
    assert posted(app, **change)[0] == status
    assert run.store.labels() == []


def test_a_program_may_send_labels_with_the_token_but_no_cookie_without_its_origin(
    app: Application,
) -> None:
    assert posted(app, origin=None)[0] == 200
    assert posted(app, origin=None, authorization=None, cookie=f"kgbias={app._session}")[0] == 403
    assert posted(app, authorization=None, cookie=f"kgbias={app._session}")[0] == 200


def test_without_a_desk_the_server_only_reads(run: StoredRun) -> None:
    plain = Application(in_turn, in_turn, token=TOKEN)
    view: ServedPage = render_served_page([run])
    plain.show_page(view)
    assert posted(plain)[0] == 405 and posted(plain, method="GET")[0] == 404
