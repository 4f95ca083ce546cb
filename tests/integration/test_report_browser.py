"""The report in a real browser: it works, it asks no one, and hostile text stays text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, ProbedEdge, ProbeRun, node_id
from kgbias.models.base import ModelInfo
from kgbias.report import write_report
from tests import waiting
from tests.conftest import require_modules
from tests.hostile import HOSTILE_TEXTS
from tests.report_data import measured_run

pytestmark = pytest.mark.integration
require_modules("matplotlib")

GROUPS = (Group("Women", "gender"), Group("Men", "gender"), Group("Sikhs", "religion"))


class Window:
    """A page, and all that went wrong or out while it was open."""

    def __init__(self, browser: Any, path: Path, width: int = 1200) -> None:
        self.complaints: list[str] = []
        self.page = browser.new_page(viewport={"width": width, "height": 900})
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self._request(r.url, path))
        self.page.goto(path.as_uri())

    def unfold(self) -> None:
        """Open everything that is folded."""
        self.page.evaluate(
            "document.querySelectorAll('details').forEach((d) => { d.open = true; })"
        )

    def _request(self, url: str, path: Path) -> None:
        if url.split("#")[0] != path.as_uri():
            self.complaints.append(f"request of {url}")


def until(page: Any, expression: str) -> Any:
    """The value of a JavaScript expression as soon as it is true."""

    def found() -> Any:
        page.wait_for_timeout(1)  # the page's own events
        return page.evaluate(expression)

    return waiting.wait_until(found)


@pytest.fixture
def report(store: SQLiteStore, tmp_path: Path) -> Path:
    objects = ["food", "rain", "music", "their families"]
    path = tmp_path / "report.html"
    write_report(StoredRun(store, measured_run(store, GROUPS, objects)), path)
    return path


@pytest.fixture
def window(chromium: Any, report: Path) -> Iterator[Window]:
    window = Window(chromium, report)
    yield window
    window.page.close()


def test_search_sort_and_provenance(window: Window) -> None:
    page = window.page
    rows = page.locator("#table tbody tr")
    everything = rows.count()
    page.fill("#search", "women music")
    assert 0 < rows.count() < everything
    assert "Women" in rows.first.inner_text() and "music" in rows.first.inner_text()
    page.fill("#search", "")
    page.click("#table th[data-sort=toxicity] button")
    values = [float(text) for text in page.locator("#table td:nth-child(6)").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    page.select_option("#filter-label", "positive")
    assert set(
        page.locator("#table td:nth-child(5)").evaluate_all("cells => cells.map(c => c.className)")
    ) == {"number positive"}
    rows.first.press("Enter")
    assert page.locator("#provenance").is_visible()
    told = page.locator("#origins").inner_text()
    assert "Asked" in told and "Q: " in told and "Answered" in told and "Examples shown" in told
    page.keyboard.press("Escape")
    assert not page.locator("#provenance").is_visible()
    assert window.complaints == []


def test_the_tokens_of_each_probe(chromium: Any, store: SQLiteStore, tmp_path: Path) -> None:
    """A statement's dialog has the groups, the likeliest first, and each token's bits, as text."""
    path = tmp_path / "report.html"
    run = measured_run(store, GROUPS, ["food", "rain"])
    model = ModelInfo("<i>tiny</i>")
    edges = [
        ProbedEdge(
            node_id("predicate", t.predicate),
            node_id("object", t.object),
            group.id,
            -9.0,
            2,
            -5.0,
            1,
            -4.0,
            1,
            3 - n,
            (group.name, *[" and"] * 40, " </script><b>x"),
            (n + 0.25, *[1.0] * 40, 40.0),
        )
        for t in store.triples(run.id)
        for n, group in enumerate(GROUPS)
    ]
    record = {"measure": "sofa", "mrr": 0.6, "mrr_expected": 0.6, "p_value": 0.2}
    probing = ProbeRun(model, record=record)
    store.put(run.id, ProbedEdge, edges, asking=probing)
    store.put(run.id, ProbeRun, [probing])
    write_report(StoredRun(store, run), path)
    window = Window(chromium, path)
    window.page.fill("#search", "men food")
    window.page.locator("#table tbody tr").first.press("Enter")
    rows = window.page.locator("#origins .probes tr")
    assert [r.split()[:2] for r in rows.all_inner_texts()] == [
        ["1", "Sikhs"],
        ["2", "Men"],
        ["3", "Women"],
    ]
    assert window.page.locator("#origins .own").count() == 1
    told = window.page.locator("#origins summary").inner_text()
    assert told == "Before this statement, <i>tiny</i> ranks Men 2 of 3"
    bits = rows.first.locator("rt").all_inner_texts()
    assert (bits[0], bits[-1], len(bits)) == ("2.3", "40.0", 42)
    # Forty tokens and more wrap, and leave the group's name a word.
    scroll = window.page.locator("#origins .scroll").first
    assert scroll.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert rows.first.locator("th").bounding_box()["width"] >= 90
    piece = rows.first.locator("ruby").last
    assert piece.evaluate("e => e.firstChild.textContent") == " </script><b>x"
    assert window.complaints == []
    window.page.close()


def test_the_graph_shows_a_group_and_what_two_share(window: Window) -> None:
    page = window.page
    groups, others = page.locator("#picture .pill"), page.locator("#picture .node:not(.pill)")
    names = page.locator("#picture .pill text")
    assert names.all_text_contents() == ["Women"]
    assert others.count() == page.locator("#picture path").count() > 5
    assert all(node.is_visible() for node in others.all())
    page.fill("#graph-limit", "6")
    assert others.count() == 6
    others.first.focus()  # the keyboard reaches what is drawn
    page.keyboard.press("Enter")
    assert page.locator("#provenance").is_visible()
    assert page.inner_text("#provenance-title").startswith("Women ")
    page.keyboard.press("Escape")
    page.select_option("#graph-group", label="Sikhs")
    page.select_option("#graph-other", label="Men")
    assert sorted(names.all_text_contents()) == ["Men", "Sikhs"]
    shared = others.filter(has_text="music").first
    told = shared.get_attribute("aria-label") or ""
    assert "Sikhs" in told and "Men" in told
    shared.hover()
    assert shared.locator("title").text_content() == told
    shared.click()
    page.locator("#chosen li button").first.click()
    assert page.locator("#provenance").is_visible()
    page.keyboard.press("Escape")
    groups.filter(has_text="Men").click()
    assert names.all_text_contents() == ["Men"]
    assert page.input_value("#graph-other") == ""
    assert window.complaints == []


def test_a_sentence_is_drawn_once_however_it_was_cut(chromium: Any, tmp_path: Path) -> None:
    said = "Men,are,taller than women,2\nMen,are taller than,women,1\nMen,love,rain,2\n"
    (tmp_path / "said.csv").write_text(f"group,predicate,object,count\n{said}", "utf-8")
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        study.import_file(tmp_path / "said.csv").report(tmp_path / "report.html")
    window = Window(chromium, tmp_path / "report.html")
    drawn = window.page.locator("#picture .node:not(.pill)")
    assert drawn.count() == 2
    # Without regard, no side is the more negative one.
    assert window.page.inner_text("#caption") == "2 statements of 2, the most often said."
    tall = drawn.filter(has_text="taller")
    assert "said 3×" in (tall.get_attribute("aria-label") or "")
    tall.click()
    assert window.page.locator("#chosen li button").count() == 2  # where each triple comes from
    assert window.complaints == []
    window.page.close()


def test_a_narrow_window_needs_no_sideways_scroll(chromium: Any, report: Path) -> None:
    window = Window(chromium, report, width=390)
    assert window.page.evaluate("document.documentElement.scrollWidth") == 390
    picture = window.page.locator(".opening .picture")
    assert picture.evaluate("e => e.scrollWidth <= e.clientWidth")  # whole, and not cut off
    window.unfold()
    assert window.page.evaluate("document.documentElement.scrollWidth") == 390
    window.page.close()


def test_hostile_text_is_inert(chromium: Any, store: SQLiteStore, tmp_path: Path) -> None:
    groups = tuple(Group(text[:200], "<b>category</b>") for text in HOSTILE_TEXTS[:12])
    path = tmp_path / "report.html"
    run = measured_run(store, groups, HOSTILE_TEXTS, per_group=len(HOSTILE_TEXTS))
    write_report(StoredRun(store, run), path)
    window = Window(chromium, path)
    page = window.page
    for number in range(0, len(groups), 4):
        page.select_option("#graph-group", str(number))
        page.select_option("#graph-other", str((number + 1) % len(groups)))
    page.fill("#search", "onerror")
    page.locator("#table tbody tr").first.click()
    assert "<img src=x onerror=window.pwned=1>" in page.locator("#origins").inner_text()
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0
    assert window.complaints == []
    page.close()


def test_a_bar_leads_to_its_statements(window: Window) -> None:
    page = window.page
    everything = page.locator("#table tbody tr").count()
    page.locator("#figures figure svg a").first.click(force=True)
    until(page, "location.hash.startsWith('#statements?group=')")
    rows = page.locator("#table tbody tr td:first-child").all_inner_texts()
    assert 0 < len(rows) < everything and len(set(rows)) == 1
    page.click("#clear")
    assert page.locator("#table tbody tr").count() == everything
    page.evaluate("location.hash = '#statements?group=Nobody&label=wrong&arm=x'")
    assert page.locator("#table tbody tr").count() == everything
    # As a finding of the first screen links to them.
    page.evaluate("location.hash = '#statements?label=negative'")
    until(page, "document.getElementById('filter-label').value === 'negative'")
    assert 0 < page.locator("#table tbody tr").count() < everything
    assert not window.complaints


def test_exhibits_are_copied_without_a_network(chromium: Any, report: Path) -> None:
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(report.as_uri())
    told = page.locator("#figures .copies [role=status]").first
    copied = {}
    for form in ("latex", "csv"):
        page.locator(f"#figures [data-copy={form}]").first.click()
        copied[form] = until(page, "navigator.clipboard.readText()")
        assert told.inner_text() == "Copied."
        page.evaluate("navigator.clipboard.writeText('')")
    assert copied["latex"].count("\\\\") >= 3 and "\\label{tab:by-hand-" in copied["latex"]
    assert copied["csv"].startswith("Group,n,") and "Women" in copied["csv"]
    page.locator("#figures .fold > summary").first.click()
    for place in ("figure [data-copy=png]", "div.exhibit [data-copy=png]"):
        page.locator(f"#figures {place}").first.click()
        width = until(
            page,
            """(async () => {
                const [item] = await navigator.clipboard.read();
                if (!item?.types.includes("image/png")) return 0;
                return (await createImageBitmap(await item.getType("image/png"))).width;
            })()""",
        )
        assert width > 500
        page.evaluate("navigator.clipboard.writeText('')")
    context.close()


def test_no_table_is_cut_off(chromium: Any, report: Path) -> None:
    window = Window(chromium, report, width=1180)
    window.unfold()
    cut = window.page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1)"
        ".map((e) => e.textContent.trim().slice(0, 60))"
    )
    window.page.close()
    assert cut == []


def test_every_section_is_in_reach(window: Window) -> None:
    """The list of sections stays in sight, marks the one that is read, and opens what is folded."""
    page = window.page
    links = page.locator("#sections a")
    for link in links.all():
        target = (link.get_attribute("href") or "")[1:]
        assert page.locator(f"[id='{target}']").count() == 1, target
    page.evaluate("scrollTo({ top: document.body.scrollHeight, behavior: 'instant' })")
    assert links.first.is_visible() and (links.first.bounding_box() or {"y": -1})["y"] >= 0
    assert not page.locator("#method .scroll").first.is_visible()
    links.last.click()
    until(page, "document.querySelector('#method details').open")
    assert page.locator("#method .scroll").first.is_visible()
    page.evaluate("location.hash = '#%E0%A4%A'")  # nothing, and no complaint
    page.locator("#sections a[href='#statements']").click()
    until(page, "document.querySelector('#sections a[href=\"#statements\"][aria-current]')")
    assert page.locator("#sections [aria-current]").count() == 1
    assert window.complaints == []


def test_the_keyboard_skips_the_list_and_opens_a_fold(window: Window) -> None:
    page = window.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'main'")
    fold = page.locator("#figures .fold > summary").first
    fold.focus()
    page.keyboard.press("Enter")
    assert page.locator("#figures .fold table").first.is_visible()


def test_a_long_table_is_searched(chromium: Any, store: SQLiteStore, tmp_path: Path) -> None:
    groups = tuple(Group(f"Group {n}", "many") for n in range(20))
    path = tmp_path / "report.html"
    write_report(StoredRun(store, measured_run(store, groups, ["food", "rain"])), path)
    window = Window(chromium, path)
    page = window.page
    page.locator("#figures .fold > summary").first.click()
    exhibit = page.locator("#figures .fold .exhibit", has=page.locator("table")).first
    rows = exhibit.locator("tbody tr:visible")
    everything = rows.count()
    exhibit.locator("input[type=search]").fill("group 7")
    assert 0 < rows.count() < everything
    assert all("Group" in text and "7" in text for text in rows.all_inner_texts())
    told = exhibit.locator("[role=status]").first.inner_text()
    assert told == f"{rows.count()} of {everything} rows"
    exhibit.locator("input[type=search]").fill("")
    assert rows.count() == everything
    assert window.complaints == []
    page.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_print_has_everything(chromium: Any, report: Path, scripts: bool) -> None:
    context = chromium.new_context(java_script_enabled=scripts)
    page = context.new_page()
    page.goto(report.as_uri())
    table = page.locator("#figures .fold table").first
    assert table.bounding_box()["height"] == 0 or not table.is_visible()
    page.emulate_media(media="print")
    for place in ("#figures .fold table", "#method details p", "#findings details :is(p, li)"):
        for part in page.locator(place).all():
            box = part.bounding_box()
            assert box is not None and box["height"] > 10 and part.is_visible(), place
    context.close()
