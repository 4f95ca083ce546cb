"""The explorer in a real browser: all it offers is done, it asks no one, and text stays text."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kgbias.explore import write_explorer
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Group
from tests.hostile import HOSTILE
from tests.report_data import measured_run

pytestmark = pytest.mark.integration

GROUPS = (Group("Women", "gender"), Group("Men", "gender"), Group("Sikhs", "religion"))
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


def test_hostile_text_is_inert(chromium: Any, store: SQLiteStore, tmp_path: Path) -> None:
    groups = tuple(Group(text[:200], "<b>category</b>") for text in HOSTILE[:12])
    path = tmp_path / "explorer.html"
    run = measured_run(store, groups, HOSTILE, each=len(HOSTILE))
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
