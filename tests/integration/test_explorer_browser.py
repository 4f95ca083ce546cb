"""The explorer in a real browser: all it offers is done, it asks no one, and text stays text."""

import csv
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.explore import write_explorer
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stereotypes import (
    Stereotype,
    StereotypeCount,
    StereotypeMatch,
    StereotypeMatches,
    StereotypeTable,
)
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    Answer,
    BeliefRun,
    BelievedEdge,
    ChoiceRun,
    ChosenEdge,
    Generation,
    Group,
    GroupScore,
    ProbedEdge,
    ProbeRun,
    Run,
    Triple,
    node_id,
)
from kgbias.graph.vectors import StatementVectors
from kgbias.measure.semantic_search import SHIPPED_ENCODER
from kgbias.models.base import ModelInfo
from tests.hostile import HOSTILE_TEXTS
from tests.report_data import measured_run

pytestmark = pytest.mark.integration

GROUPS = (Group("Women", "gender"), Group("Men", "gender"), Group("Sikhs", "religion"))
SVG = "{http://www.w3.org/2000/svg}"
DRIVER = "GPU stall due to ReadPixels"  # what software rendering says of itself


class Window:
    """A page, and all that went wrong or out while it was open."""

    def __init__(self, browser: Any, path: Path, address: str = "", **options: Any) -> None:
        self.complaints: list[str] = []
        options.setdefault("viewport", {"width": 1280, "height": 900})
        self.page = browser.new_page(**options)
        self.page.on("console", lambda m: self._complain(m.text))
        self.page.on("pageerror", lambda e: self._complain(str(e)))
        self.page.on("request", lambda r: self._request(r.url, path))
        self.page.goto(path.as_uri() + address)
        self.page.wait_for_selector("html[data-ready]", state="attached")
        self.page.click("#show")

    def _complain(self, text: str) -> None:
        if DRIVER not in text:
            self.complaints.append(text)

    def _request(self, url: str, path: Path) -> None:
        if url.split("#")[0] != path.as_uri() and not url.startswith(("blob:", "data:")):
            self.complaints.append(f"request of {url}")

    def rows(self) -> list[list[str]]:
        """The cells of the table."""
        cells = "lines => lines.map(line => [...line.cells].map(cell => cell.innerText))"
        return self.page.locator("#body tr").evaluate_all(cells)  # type: ignore[no-any-return]

    def count(self) -> int:
        """How many statements pass the filters."""
        return int(self.page.inner_text("#found").split()[0].replace(",", ""))

    def saved(self, press: str) -> bytes:
        """What a button hands over."""
        with self.page.expect_download() as download:
            self.page.click(press)
        return Path(download.value.path()).read_bytes()


@pytest.fixture
def page_of(chromium: Any, store: SQLiteStore, tmp_path: Path) -> Iterator[Callable[..., Window]]:
    """Opens the explorer of a run made by hand, at an address."""
    objects = ["food", "rain", "music", "their families"]
    path = tmp_path / "explorer.html"
    write_explorer([StoredRun(store, measured_run(store, GROUPS, objects))], path)
    windows: list[Window] = []

    def open_page(address: str = "", **options: Any) -> Window:
        windows.append(Window(chromium, path, address, **options))
        return windows[-1]

    yield open_page
    for window in windows:
        assert window.complaints == []
        window.page.close()


def test_the_map_shows_its_groups_and_leads_to_one(page_of: Callable[..., Window]) -> None:
    window = page_of()
    page = window.page
    assert page.evaluate(
        "kgbias.map.graph.filterNodes((_, a) => a.unit !== undefined)"
        ".map(n => kgbias.map.graph.getNodeAttribute(n, 'label'))"
    ) == ["Women", "Men", "Sikhs"]
    place = page.evaluate(  # near the lower edge of a disc, where no dot is
        "(() => { const { renderer, graph } = kgbias.map, disc = graph.getNodeAttributes('u1');"
        "const { x, y } = renderer.graphToViewport(disc);"
        "return [x, y + renderer.scaleSize(disc.size) * 0.94]; })()"
    )
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + place[0], box["y"] + place[1])
    page.mouse.down()
    page.mouse.up()
    page.wait_for_selector("#details")
    assert page.inner_text("#details-title") == "Men"
    page.click("#details button:has-text('Its neighbourhood')")
    assert {line[0] for line in window.rows()} == {"Men"}
    assert page.locator("#picture .node.pill").count() == 1
    assert page.locator("#picture .node").count() > 5
    page.select_option("#group", label="Sikhs")
    assert {line[0] for line in window.rows()} == {"Sikhs"}


def test_two_groups_show_what_they_share(page_of: Callable[..., Window]) -> None:
    window = page_of("#view=two&group=Women&with=Sikhs")
    page = window.page
    shown = page.locator("#caption").inner_text()
    assert "0 objects only of Women, 4 of both, 0 only of Sikhs" in shown
    page.click("#swap")
    assert page.locator("#caption").inner_text().startswith("0 objects only of Sikhs")
    assert {line[0] for line in window.rows()} <= {"Women", "Sikhs"}


def test_filters_move_pictures_and_tables_and_stay_in_the_link(
    page_of: Callable[..., Window],
) -> None:
    window = page_of()
    page = window.page
    everything = window.count()
    page.uncheck("#regard-filter label:has-text('positive') input")
    page.uncheck("#regard-filter label:has-text('neutral') input")
    negative = window.count()
    assert 0 < negative < everything
    drawn = page.evaluate("kgbias.map.graph.filterNodes((_, a) => a.object !== undefined).length")
    assert drawn == len({line[2] for line in window.rows()})
    again = page_of("#" + page.url.split("#")[1])
    assert again.count() == negative
    assert not again.page.is_checked("#regard-filter label:has-text('positive') input")
    page.click("#reset")
    assert window.count() == everything
    page.fill("#count", "3")
    page.keyboard.press("Tab")
    assert all(int(line[3]) >= 3 for line in window.rows())


def test_search_completes_and_finds(page_of: Callable[..., Window]) -> None:
    window = page_of()
    page = window.page
    page.keyboard.press("/")
    page.keyboard.type("sik")
    page.keyboard.press("ArrowDown")
    assert page.locator("#options [aria-selected=true] .said").inner_text() == "Sikhs"
    page.keyboard.press("Enter")
    assert page.evaluate("kgbias.state.view") == "group"
    assert {line[0] for line in window.rows()} == {"Sikhs"}
    page.click("[data-tab=map]")
    page.fill("#search", "women music")
    page.keyboard.press("Enter")
    assert {(line[0], line[2]) for line in window.rows()} == {("Women", "music")}
    page.click("#chips button")
    assert window.count() > 10


def test_from_an_edge_down_to_the_prompt_with_the_keyboard(page_of: Callable[..., Window]) -> None:
    window = page_of("#view=group&group=Women")
    page = window.page
    page.locator("#picture .node:not(.pill)").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#details h4:has-text('Answered')")
    told = page.inner_text("#details")
    assert told.startswith("×") or "Women" in page.inner_text("#details-title")
    assert "Asked" in told and "Q: Women #" in told
    assert "Regard" in told and "object · round 1 · template object@1:completion" in told
    page.keyboard.press("Escape")
    assert not page.is_visible("#details")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused).startswith("Women ")  # where it was before


def test_a_statement_that_names_another_group_says_so(
    chromium: Any, store: SQLiteStore, tmp_path: Path
) -> None:
    path = tmp_path / "explorer.html"
    run = measured_run(store, GROUPS, ["food", "rain", "the men"])
    write_explorer([StoredRun(store, run)], path)
    window = Window(chromium, path)
    page = window.page
    said = "It names another group (Men)"
    for words, names in (("women the men", True), ("women rain", False)):
        page.fill("#search", words)
        page.keyboard.press("Enter")
        page.locator("#body tr:has-text('Women')").first.click()
        page.wait_for_selector("#details h4:has-text('Answered')")
        assert (said in page.inner_text("#details")) == names
        page.keyboard.press("Escape")
        page.locator("#chips button").first.click()
    assert window.complaints == []
    page.close()


def test_hostile_text_is_inert(chromium: Any, store: SQLiteStore, tmp_path: Path) -> None:
    groups = tuple(Group(text[:200], "<b>category</b>") for text in HOSTILE_TEXTS[:12])
    path = tmp_path / "explorer.html"
    run = measured_run(store, groups, HOSTILE_TEXTS, per_group=len(HOSTILE_TEXTS))
    write_explorer([StoredRun(store, run)], path)
    window = Window(chromium, path)
    page = window.page
    for view in ("group", "two", "path"):
        page.click(f"[data-tab={view}]")
    page.click("[data-tab=map]")
    page.fill("#search", "onerror")
    assert "<img src=x onerror=window.pwned=1>" in page.inner_text("#body")
    page.keyboard.press("Enter")
    page.locator("#body tr").first.click()
    page.wait_for_selector("#details h4:has-text('Answered')")
    page.click("#export summary")
    assert page.evaluate("window.pwned") is None
    assert page.locator("img, iframe, b[onmouseover]").count() == 0
    window.saved("#save-svg")
    assert b"\r\n" in window.saved("#save-csv")
    for line in window.saved("#save-jsonl").decode().strip().split("\n"):
        json.loads(line)
    assert window.complaints == []
    page.close()


def test_the_lasso_chooses_what_it_surrounds(page_of: Callable[..., Window]) -> None:
    window = page_of()
    page = window.page
    x, y, r = page.evaluate(
        "(() => { const { renderer, graph } = kgbias.map, disc = graph.getNodeAttributes('u0');"
        "const { x, y } = renderer.graphToViewport(disc);"
        "return [x, y, renderer.scaleSize(disc.size) + 2]; })()"
    )
    box = page.locator("#canvas").bounding_box()
    inside = page.evaluate(
        "kgbias.map.graph.filterNodes((_, a) => a.object !== undefined"
        " && kgbias.maps().group.home[a.object] === 1).length"
    )
    page.click("#lasso-button")
    corners = [(-r, -r), (r, -r), (r, r), (-r, r)]
    page.mouse.move(box["x"] + x - r, box["y"] + y - r)
    page.mouse.down()
    for across, down in corners[1:]:
        page.mouse.move(box["x"] + x + across, box["y"] + y + down, steps=4)
    page.mouse.up()
    drawn = "kgbias.map.graph.filterNodes((_, a) => a.object !== undefined).length"
    assert page.evaluate(drawn) == inside > 0
    assert page.locator("#chips .chip").inner_text().startswith("lasso")
    again = page_of("#" + page.url.split("#")[1])
    assert again.count() == window.count()
    page.click("#export summary")
    page.wait_for_selector("#cypher:has-text('MATCH')")
    assert "s.triple IN ['" in page.inner_text("#cypher")
    assert "no option for lasso" in page.inner_text("#command-note")


def test_exports_hold_what_is_selected(page_of: Callable[..., Window], store: SQLiteStore) -> None:
    window = page_of("#view=group&group=Women")
    page = window.page
    page.fill("#count", "2")
    page.keyboard.press("Tab")
    page.click("#export summary")
    lines = [json.loads(line) for line in window.saved("#save-jsonl").decode().splitlines()]
    assert len(lines) == window.count()
    assert all(row["group"] == "Women" and row["count"] >= 2 for row in lines)
    table = window.saved("#save-csv").decode("utf-8")
    rows = list(csv.DictReader(table.splitlines()))
    assert [r["object"] for r in rows] == [r["object"] for r in lines]
    assert window.saved("#save-png").startswith(b"\x89PNG")
    picture = ElementTree.fromstring(window.saved("#save-svg"))
    texts = "".join(picture.itertext())
    assert "Women" in texts and "hurtful" in texts
    assert page.inner_text("#command") == (
        "kgbias export 'by hand' --only Women --min-count 2 -o selection.graphml"
    )
    found = store.query(page.inner_text("#cypher"), {})
    assert len(found.rows) == len(lines)


def test_what_xml_cannot_hold_breaks_no_picture_or_graph(chromium: Any, tmp_path: Path) -> None:
    table, path = tmp_path / "s.csv", tmp_path / "e.html"
    rows = "Women,love,music,3\nWomen,fear,music,1\nMen,love,non \uffff char\nMen,fear,music,2\n"
    table.write_text(f"group,predicate,object,count\n{rows}", encoding="utf-8")
    with kgbias.open(tmp_path / "k.db") as study:
        study.import_file(table, name="r").explore().save(path)
    window = Window(chromium, path)
    window.page.click("#export summary")
    picture = ElementTree.fromstring(window.saved("#save-svg"))
    assert {"Women", "Men"} <= {t.text for t in picture.iter(f"{SVG}text")}
    assert window.saved("#save-png").startswith(b"\x89PNG")
    graph = ElementTree.fromstring(window.saved("#save-gexf"))
    space = {"g": "http://gexf.net/1.3"}
    assert "hurtful" in (graph.findtext("g:meta/g:description", namespaces=space) or "")
    labels = {n.get("id"): n.get("label") for n in graph.iterfind(".//g:node", space)}
    assert sorted(labels.values()) == ["Men", "Women", "music", "non   char"]  # type: ignore[type-var]
    edges = {
        (labels[e.get("source")], e.get("kind"), labels[e.get("target")], e.get("weight"))
        for e in graph.iterfind(".//g:edge", space)
    }
    assert edges == {
        ("Women", "love", "music", "3"),
        ("Women", "fear", "music", "1"),
        ("Men", "love", "non   char", "1"),
        ("Men", "fear", "music", "2"),
    }
    assert not window.complaints


def test_the_command_of_a_selection_is_one_that_kgbias_takes(
    page_of: Callable[..., Window], store: SQLiteStore, tmp_path: Path
) -> None:
    page = page_of("#echoes=false").page
    page.click("#export summary")
    page.wait_for_selector("#command:has-text('kgbias export')")
    typed = page.inner_text("#command")
    assert "--set exclude-echoes=true" in typed
    arguments = [*shlex.split(typed)[1:-1], str(tmp_path / "x.graphml"), "--store", store.url]
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert done.exception is None and (tmp_path / "x.graphml").is_file()


def test_the_map_can_be_saved(page_of: Callable[..., Window]) -> None:
    window = page_of()
    window.page.click("#export summary")
    picture = ElementTree.fromstring(window.saved("#save-svg"))
    assert {"Women", "Men", "Sikhs"} <= {t.text for t in picture.iter(f"{SVG}text")}
    assert len(list(picture.iter(f"{SVG}circle"))) >= 7


def test_the_growth_of_the_graph(chromium: Any, store: SQLiteStore, tmp_path: Path) -> None:
    """Rounds choose statements, each as often as it was said in them."""
    path = tmp_path / "explorer.html"
    run = crawled_run(store)
    write_explorer([StoredRun(store, run)], path)
    window = Window(chromium, path)
    page = window.page
    assert [line[2:4] for line in window.rows()] == [["food", "3"], ["rain", "1"]]
    axes = page.locator("#growth text").all_text_contents()
    assert {"new statements", "all so far", "round", "first prompts"} <= set(axes)
    assert axes.count("2") >= 1  # of all so far, at the top; the most in a round was 1
    page.locator("#to").fill("0")
    assert [line[2:4] for line in window.rows()] == [["food", "1"]]
    assert page.inner_text("#rounds") == "the first prompts: 1 new statement."
    page.click("#play")  # goes on by itself, to the end, where it stops
    page.wait_for_selector("#rounds:has-text('the first prompts to round')")
    page.wait_for_selector("#play:has-text('Play')")
    assert [line[2:4] for line in window.rows()] == [["food", "3"], ["rain", "1"]]
    page.locator("#to").fill("1")
    assert [line[2:4] for line in window.rows()] == [["food", "2"]]
    assert window.complaints == []
    page.close()


def test_two_runs_differ(chromium: Any, store: SQLiteStore, tmp_path: Path) -> None:
    path = tmp_path / "explorer.html"
    first, second = crawled_run(store), crawled_run(store, "other", last="music")
    write_explorer([StoredRun(store, first), StoredRun(store, second)], path)
    window = Window(chromium, path, "#view=differences")
    page = window.page
    assert page.inner_text("#caption").startswith(
        "1 statement only in grown, 1 in both, 1 only in other"
    )
    words = page.locator("#picture .node:not(.pill) text").all_text_contents()
    assert sorted(" ".join(text.split()) for text in words) == [
        "Women love food",
        "Women love music",
        "Women love rain",
    ]
    page.locator("#picture .node", has_text="love food").press("Enter")
    page.wait_for_selector("#details h4:has-text('Answered')")
    assert "other: said 3×" in page.inner_text("#details")
    page.click("#swap")
    assert page.inner_text("#caption").startswith("1 statement only in other")
    assert window.complaints == []
    page.close()


def test_a_table_says_which_run_says_what(
    chromium: Any, store: SQLiteStore, tmp_path: Path
) -> None:
    path = tmp_path / "explorer.html"
    first, second = crawled_run(store), crawled_run(store, "other", last="food")
    write_explorer([StoredRun(store, first), StoredRun(store, second)], path)
    window = Window(chromium, path)
    page = window.page
    page.click("#tab-runs")
    assert page.locator("#head th").all_inner_texts()[3:] == ["Said by", "grown", "other"]
    assert [line[2:] for line in window.rows()] == [
        ["food", "2 of 2", "3", "4"],
        ["rain", "1 of 2", "1", "–"],
    ]
    assert page.inner_text("#found") == "2 statements of 2 runs"
    page.click("#head button:has-text('other')")
    page.click("#head button:has-text('other')")
    assert [line[2] for line in window.rows()] == ["rain", "food"]
    page.click("#export summary")
    rows = [json.loads(line) for line in window.saved("#save-jsonl").decode().splitlines()]
    assert [(r["run"], r["object"], r["count"]) for r in rows] == [
        ("grown", "food", 3),
        ("grown", "rain", 1),
        ("other", "food", 4),
    ]
    page.fill("#count", "4")
    page.keyboard.press("Tab")
    assert [line[2:] for line in window.rows()] == [["food", "1 of 2", "(3)", "4"]]
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert [line[2:] for line in window.rows()] == [["food", "1 of 2", "(3)", "4"]]
    page.click("#show")
    page.locator("#body tr").first.press("Enter")
    page.wait_for_selector("#details h4:has-text('Answered')")
    assert "grown: said 3×" in page.inner_text("#details")
    page.keyboard.press("Escape")
    page.click("#tab-statements")
    assert window.rows() == []  # of the first run nothing passes
    assert window.complaints == []
    page.close()


def test_words_are_hidden_until_they_are_asked_for(chromium: Any, page_of: Any) -> None:
    window = page_of()
    page = window.page
    blurred = "getComputedStyle(document.querySelector('#body td.said')).filter"
    assert page.evaluate(blurred) == "none"
    page.click("#blur")
    assert page.evaluate(blurred) == "blur(5px)"
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.is_visible("#warning") and "hurtful" in page.inner_text("#warning")
    assert page.evaluate(blurred) == "blur(5px)"
    page.click("#keep-blurred")
    assert page.evaluate(blurred) == "blur(5px)"


LONG = (
    "Native Hawaiian and Pacific Islander people",
    "Pacific Islanders",
    "Latinx people",
    "Asian",
)


LINES_BEHIND_WORDS = """() => {
  const within = (box) => (p) =>
    p.x > box.x && p.x < box.x + box.width && p.y > box.y && p.y < box.y + box.height;
  const boxes = document.querySelectorAll("#picture .node:not(.pill) rect");
  const words = [...boxes].map((rect) => within(rect.getBBox()));
  return [...document.querySelectorAll("#picture path")].filter((line) => {
    const at = (n) => line.getPointAtLength((n / 59) * line.getTotalLength());
    const points = Array.from({ length: 60 }, (_, n) => at(n));
    return words.some((holds) => points.some(holds));
  }).length;
}"""


@pytest.mark.parametrize("wide", [390, 1280])
def test_no_name_lies_on_another_and_two_groups_show_whole_words(
    chromium: Any, store: SQLiteStore, tmp_path: Path, wide: int
) -> None:
    groups = tuple(Group(f"{name} {n}", "many") for n in range(7) for name in LONG)
    objects = ["food", "their grandparents' recipes and the long evenings that go with them"]
    write_explorer([StoredRun(store, measured_run(store, groups, objects))], tmp_path / "e.html")
    window = Window(chromium, tmp_path / "e.html", viewport={"width": wide, "height": 844})
    page = window.page
    boxes = page.evaluate("kgbias.named()")
    assert len(boxes) >= 10
    for n, (left, top, right, low) in enumerate(boxes):
        for other in boxes[:n]:
            apart = right <= other[0] or other[2] <= left or low <= other[1] or other[3] <= top
            assert apart, (boxes[n], other)
    unnamed = page.evaluate("kgbias.map.unnamed")
    assert ("no room here" in page.inner_text("#map-note")) == (unnamed > 0)
    tall = page.locator("#canvas").bounding_box()["height"]
    page.evaluate("kgbias.set({ row: 0 })")
    assert page.locator("#canvas").bounding_box()["height"] == tall
    page.click("#close-details")
    page.evaluate("kgbias.set({ view: 'two', group: 0, with: 1 })")
    shown = " ".join(page.locator("#picture text").all_text_contents())
    assert "…" not in shown and groups[0].name in shown and objects[1] in shown
    assert "Both: 2" in shown and window.complaints == []
    assert page.locator("#picture path").count() >= 4
    assert page.evaluate(LINES_BEHIND_WORDS) == 0
    page.close()


def test_a_copied_link_says_so_and_that_a_file_must_go_along(page_of: Any) -> None:
    page = page_of("#view=group&group=Men").page
    assert not page.is_visible("#notice")
    page.click("#copy-link")
    page.wait_for_selector("#notice", state="visible")
    told = page.inner_text("#notice")
    assert told.startswith("The link was copied.") and "send explorer.html along" in told


@pytest.mark.parametrize("view", ["map", "group", "two", "path"])
def test_a_narrow_window_needs_no_sideways_scroll(page_of: Any, view: str) -> None:
    page = page_of(f"#view={view}", viewport={"width": 360, "height": 740}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    if view == "map":  # a frame far taller than wide would be empty above and below
        assert page.locator("#canvas").bounding_box()["height"] <= 1.11 * 360


def test_an_address_of_something_else_is_left_out(page_of: Any) -> None:
    named = "statement=[1,{}]&statement=<b>&sort=__proto__"
    window = page_of(f"#view=x&group=Nobody&lasso=1~2_<b>&m.toxicity=a~b&{named}")
    assert window.page.evaluate("[kgbias.state.view, kgbias.state.row, kgbias.state.sort]") == [
        "map",
        -1,
        "count",
    ]
    assert window.count() > 10


@pytest.mark.parametrize("view", ["map", "group", "path"])
def test_a_run_of_nothing(chromium: Any, store: SQLiteStore, tmp_path: Path, view: str) -> None:
    path = tmp_path / "explorer.html"
    run = store.begin_run(Run("nothing", ModelInfo("m"), {}, ()))
    write_explorer([StoredRun(store, run)], path)
    window = Window(chromium, path, f"#view={view}")
    assert window.count() == 0 and window.rows() == []
    assert window.complaints == []
    window.page.close()


def test_verdicts_are_a_filter(chromium: Any, store: SQLiteStore, tmp_path: Path) -> None:
    """Of a probed run; the tokens of each probe stand below the answers. So are the marks of a run
    that was held against a table."""
    path = tmp_path / "explorer.html"
    run = measured_run(store, GROUPS, ["food", "rain"])
    edges = [
        ProbedEdge(
            node_id("predicate", t.predicate),
            node_id("object", t.object),
            group.id,
            -9.0,
            2,
            -5.0 - n,
            1,
            -4.0,
            1,
            n + 1,
            (group.name, " </script><b>x"),
            (n + 0.25, 7.0),
        )
        for t in store.triples(run.id)
        for n, group in enumerate(GROUPS)
    ]
    probing = ProbeRun(ModelInfo("<i>tiny</i>"), record={"measure": "sofa"})
    store.put(run.id, ProbedEdge, edges, asking=probing)
    store.put(run.id, ProbeRun, [probing])
    beliefs = [
        BelievedEdge(
            node_id("predicate", t.predicate),
            node_id("object", t.object),
            t.group_id,
            2.0,
            1.0,
            3.0,
            8,
            0.01,
            0.01,
            0.01,
            0.01,
            1.0,
            "<i>names</i>",
            "believed" if n % 2 else "",
        )
        for n, t in enumerate(store.triples(run.id))
    ]
    believing = BeliefRun(ModelInfo("<i>tiny</i>"))
    store.put(run.id, BeliefRun, [believing])
    store.put(run.id, BelievedEdge, beliefs, asking=believing)
    entry, table = (
        Stereotype("tales", "woman", "<b>hungry</b>", "", 2.5, 1),
        StereotypeTable("tales"),
    )
    marks = [
        StereotypeMatch(t.id, entry.uid(table.id), "known", "meaning", 0.9)
        if "food" in t.object
        else StereotypeMatch(t.id, None, "new")
        for t in store.triples(run.id)
        if t.group == "Women"
    ]
    store.save_stereotype_matches(
        run.id,
        StereotypeMatches(table, {}, (StereotypeCount(entry, "Women", 1, 0.0),), tuple(marks)),
    )
    write_explorer([StoredRun(store, run)], path)
    window = Window(chromium, path)
    page = window.page
    everything = window.count()
    names = page.locator("#verdict-filter span").all_inner_texts()
    assert "only said" in names
    page.uncheck("#verdict-filter label:has-text('only said') input")
    assert window.count() < everything
    page.click("#reset")
    names = page.locator("#mark-filter span").all_inner_texts()
    assert names == ["not compared", "known", "new"]
    for name in ("not compared", "new"):
        page.uncheck(f"#mark-filter label:has-text('{name}') input")
    assert window.count() == sum(mark.mark == "known" for mark in marks)
    page.reload()  # the address has the filter, by its name
    page.wait_for_selector("html[data-ready]", state="attached")
    page.click("#show")
    assert window.count() == sum(mark.mark == "known" for mark in marks)
    page.locator("#body tr").first.press("Enter")
    page.wait_for_selector("#details dd >> text=tales, of woman")
    assert "<b>hungry</b> (tales, of woman; matched by meaning" in page.inner_text("#details")
    page.keyboard.press("Escape")
    page.click("#reset")
    assert window.count() == everything
    page.fill("#search", "men food")
    page.keyboard.press("Enter")
    page.locator("#body tr").first.press("Enter")
    page.wait_for_selector("#details .probes")
    ranked = page.locator("#details .probes tbody th").all_inner_texts()
    assert ranked[:2] == ["Women", "Men"]
    piece = page.locator("#details .probes ruby").last
    assert piece.evaluate("e => e.firstChild.textContent") == " </script><b>x"
    own = page.locator("#details table.shares tbody tr.own")
    told = " ".join(own.inner_text().split())
    assert "+2.0 [+1.0 to +3.0] 8 0.010" in told
    assert own.locator("td[title='without <i>names</i>: +1.0 bits']").count() == 1
    assert "What <i>tiny</i> believes" in page.inner_text("#details")
    assert window.complaints == []
    page.close()


def test_a_group_and_a_statement_lead_to_forced_choices(
    chromium: Any, store: SQLiteStore, tmp_path: Path
) -> None:
    path = tmp_path / "explorer.html"
    run = measured_run(store, GROUPS, ["food", "rain"])
    triple = next(t for t in store.triples(run.id) if t.group == "Women")
    ends = node_id("predicate", triple.predicate), node_id("object", triple.object)
    texts = {"a": "A", "b": "B. Women", "c": "C", "d": "<b>neither</b>"}
    store.keep_answers([Answer(key, "m", text, "stop") for key, text in texts.items()])
    figures = (0.75, 0.3, 0.95, 0.5, 0.5, 0.25, 1.0, 0.01)
    edges = [
        ChosenEdge(
            *ends, GROUPS[0].id, 5, 4, 3, *figures, 1, "of this name", ("a", "b"), ("c", "d")
        ),
        ChosenEdge(*ends, GROUPS[1].id, 5, 4, 1, 0.25, answers=("c",), others=("a", "b", "d")),
    ]
    rates = {g.name: {"value": 0.5, "low": 0.4, "high": 0.6, "n": 40} for g in GROUPS[:2]}
    record = {"categories": {"gender": {"options": 2, "base": rates}}}
    store.put(
        run.id,
        ChosenEdge,
        edges,
        asking=ChoiceRun(ModelInfo("<i>chooser</i>"), (("options", "2"),), record),
    )
    store.put(
        run.id, ChoiceRun, [ChoiceRun(ModelInfo("<i>chooser</i>"), (("options", "2"),), record)]
    )
    regard = GroupScore(-1.0, -1.5, 0.25, 2, GROUPS[0].id, "overall_regard")
    store.put(run.id, GroupScore, [regard])
    write_explorer([StoredRun(store, run)], path)
    window = Window(chromium, path, "#table=units")
    page = window.page
    assert "In the report, with 95% interval" in page.inner_text("#head")
    assert "−0.50 (−0.75 to +0.13), n = 2" in page.inner_text("#body tr:has-text('Women')")
    page.fill("#search", "food")
    page.press("#search", "Enter")
    page.click("#tab-units")
    assert "In the report" not in page.inner_text("#head")  # the figure is of all statements
    page.click("#chips button")
    page.wait_for_selector("#head:has-text('In the report')")
    page.click("#body button:has-text('Women')")
    told = page.inner_text("#details")
    assert "When <i>chooser</i> has to choose" in told
    assert "50% [40 to 60] of the statements" in told and "chance is 50%" in told
    page.click("#details li:has-text('75% [30 to 95], +0.5 bits') button")
    page.wait_for_selector("#details table.shares")
    rows = page.locator("#details table.shares tbody tr").all_inner_texts()
    assert [" ".join(row.split()) for row in rows] == [
        "Women 75% [30 to 95] +0.5 0.010",
        "Men 25% – –",
    ]
    told = page.inner_text("#details")
    assert "“A” 1×, “B. Women” 1×" in told and "“<b>neither</b>” 1×" in told
    assert window.complaints == []
    page.close()


def crawled_run(store: SQLiteStore, name: str = "grown", last: str = "rain") -> Run:
    """Women love food, in three rounds, and in the last also something else."""
    run = store.begin_run(Run(name, ModelInfo(name), {"name": name}, GROUPS))
    for number, (round, thing) in enumerate([(0, "food"), (1, "food"), (2, "food"), (2, last)]):
        key = f"{name}{number}"
        store.keep_answers([Answer(key, "m", f" {thing}.", "stop")])
        triple = Triple("Women", "love", thing)
        generation = Generation(
            run.id,
            f"none/object/{round}/{number}",
            triple.group_id,
            "none",
            "object",
            round,
            0,
            "ok",
            prompt="Women love",
            answer_key=key,
            triple=triple,
        )
        store.load_import(run.id, [generation])
    store.set_status(run.id, "complete")
    return store.find_run(name)


def test_the_map_by_meaning_filters_as_the_others_do(
    chromium: Any, store: SQLiteStore, tmp_path: Path
) -> None:
    objects = [f"{thing} {n}" for thing in ("soup", "storm", "match") for n in "abcdefghijkl"]
    run = StoredRun(store, measured_run(store, GROUPS, objects, per_group=90))
    rng, said = np.random.default_rng(0), list(run.distinct_triples())
    at = {"soup": 0, "storm": 1, "match": 2}
    rows = [np.eye(3, 16)[at[o.split()[0]]] + 0.1 * rng.normal(size=16) for *_, o in said]
    ends = [(node_id("predicate", p), node_id("object", o)) for _, _, p, o in said]
    unit = [row / np.linalg.norm(row) for row in rows]
    store.save_vectors(SHIPPED_ENCODER, StatementVectors(ends, np.array(unit, np.float32)))
    path = tmp_path / "explorer.html"
    write_explorer([run], path)
    window = Window(chromium, path)
    page = window.page
    page.select_option("#by", "meaning")
    assert "by UMAP" in page.inner_text("#caption") and "36 objects" in page.inner_text("#map-note")
    everything = window.count()
    page.click("#tab-units")
    regions = window.rows()
    assert sum(int(region[1]) for region in regions) == everything
    page.locator("#body tr button").first.click()
    page.click("#details button:has-text('Only this')")
    assert window.count() == int(regions[0][1]) < everything
    page.click("#tab-statements")
    things = {line[2].split()[0] for line in window.rows()}
    assert things == {regions[0][0].split(", ")[0]}  # a region is of one subject, as its name says
    address = page.evaluate("location.hash")
    again = Window(chromium, path, address)
    assert again.count() == window.count()
    assert window.complaints == again.complaints == []
