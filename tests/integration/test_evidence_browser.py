"""The first section of the report in a real browser: said against believed."""

from pathlib import Path
from typing import Any

import pytest

from kgbias.evidence import probe_beliefs
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BeliefRun, BelievedEdge, Group, ProbedEdge, ProbeRun, node_id
from kgbias.models.base import ModelInfo
from kgbias.report import write_report
from tests.conftest import require_modules
from tests.integration.test_report_browser import Window
from tests.report_data import measured_run
from tests.unit.test_evidence import GROUPS as PEOPLES
from tests.unit.test_evidence import Believer

pytestmark = pytest.mark.integration
require_modules("matplotlib")

GROUPS = (Group("Women", "gender"), Group("Men", "gender"), Group("</script><b>x", "gender"))


@pytest.fixture
def report(store: SQLiteStore, tmp_path: Path) -> Path:
    """What was said of a group is 18 nats likelier of it; of everything said of women one thing
    more was left out of what men said."""
    run = measured_run(store, GROUPS, [f"thing {n}" for n in range(24)])
    triples = store.triples(run.id)
    said = {(t.group_id, t.predicate, t.object) for t in triples}
    never = next((t.predicate, t.object) for t in triples if t.group == "Women")
    edges = []
    for predicate, object in dict.fromkeys((t.predicate, t.object) for t in triples):
        for group in GROUPS:
            own = (group.id, predicate, object) in said
            own |= (predicate, object) == never and group.name == "Men"
            value = -2.0 if own else -20.0
            edges.append(
                ProbedEdge(
                    node_id("predicate", predicate),
                    node_id("object", object),
                    group.id,
                    value - 2,
                    4,
                    value,
                    3,
                    -2.0,
                    1,
                    1 if own else 3,
                    ("a", "<b>"),
                    (1.0, 2.0),
                )
            )
    probing = ProbeRun(
        ModelInfo("<i>tiny</i>"),
        record={"measure": "conditional", "mrr": 1.0, "mrr_expected": 0.5, "p_value": 0.01},
    )
    store.put(run.id, ProbedEdge, edges, asking=probing)
    believing = BeliefRun(ModelInfo("<i>tiny</i>"), record={"categories": [], "floor": []})
    store.put(
        run.id,
        BelievedEdge,
        [
            BelievedEdge(
                e.predicate_id,
                e.object_id,
                e.group_id,
                5.0 if e.rank == 1 else -2.0,
                -3.0,
                6.0,
                8,
                0.001,
                0.01,
                0.0001,
                0.001,
                4.0,
                "<b>",
                "believed" if e.rank == 1 else "",
            )
            for e in edges
        ],
        asking=believing,
    )
    store.put(run.id, BeliefRun, [believing])
    store.put(run.id, ProbeRun, [probing])
    path = tmp_path / "report.html"
    write_report(StoredRun(store, run), path)
    return path


def test_every_point_opens_its_provenance(chromium: Any, report: Path) -> None:
    window = Window(chromium, report)
    page = window.page
    window.unfold()
    sections = page.locator("main > section").evaluate_all("all => all.map((s) => s.id)")
    assert sections[:3] == ["graph", "beliefs", "evidence"]
    points = page.locator("#quadrants path")
    believed = page.locator("#quadrants path.held").count()
    assert 0 < believed <= points.count()
    points.last.scroll_into_view_if_needed()
    points.last.dispatch_event("click")
    told = page.locator("#origins").inner_text()
    assert " · lift +5.0 (-3.0 to +6.0) bits, 8 names" in told
    page.keyboard.press("Escape")
    page.locator("[data-evidence]").first.click()
    assert page.locator("#provenance").is_visible()
    told = page.locator("#origins").inner_text()
    assert "said and believed · lift +" in told and "Asked" in told
    page.keyboard.press("Escape")
    page.focus("#quadrants svg")
    page.keyboard.press("ArrowRight")
    assert "said" in page.locator("#quadrant-point").inner_text()
    page.keyboard.press("Enter")
    assert page.locator("#provenance").is_visible()
    page.keyboard.press("Escape")
    never = page.locator("#evidence .lists > div", has_text="Believed but never said")
    never.locator("[data-evidence]").first.click()
    told = page.locator("#origins").inner_text()
    assert "Never said about this group; said about Women" in told and "Asked" not in told
    page.keyboard.press("Escape")
    page.select_option("#evidence-group", label="Men")
    assert 0 < points.count() < len(GROUPS) * 20
    assert window.complaints == []
    page.close()


@pytest.fixture
def believed(store: SQLiteStore, tmp_path: Path) -> Path:
    """Things go by threes with the groups, by all of their names."""
    run = StoredRun(store, measured_run(store, PEOPLES, [f"thing{n}" for n in range(12)]))
    scorer: Any = Believer()
    probe_beliefs(run, scorer)
    path = tmp_path / "believed.html"
    write_report(run, path)
    return path


@pytest.mark.parametrize("width", [1280, 400])
def test_a_belief_opens_to_its_names_and_carriers(
    chromium: Any, believed: Path, width: int
) -> None:
    """From a row of the table, by mouse or keyboard; the lift of a name is the mean of its lifts
    after the carriers, and that of the group the mean over names."""
    window = Window(chromium, believed, width=width)
    page = window.page
    window.unfold()
    row = page.locator("#beliefs tr[data-opens]").first
    group = row.locator("th").inner_text()
    row.focus()
    page.keyboard.press("Enter")
    assert page.locator("#provenance-title").inner_text().startswith(group)
    told = page.locator("#origins").inner_text()
    assert "believed · lift +" in told
    heads = page.locator("#origins .names thead th").all_inner_texts()
    assert heads == [
        "Name",
        "lift",
        "after nothing",
        "after “I think that”",
        "after “People say that”",
        "log2 p",
    ]
    rows = page.locator("#origins .names tbody tr")
    found = [r.locator("td").all_inner_texts() for r in rows.all()]
    cells = [[float(x) for x in own] for own in found]
    names = rows.locator("th").all_inner_texts()
    own = next(g for g in PEOPLES if g.name == group)
    assert len(cells) == 6 and set(names) == {own.name, *own.variants}
    assert [c[0] for c in cells] == sorted((c[0] for c in cells), reverse=True)
    assert all(abs(lift - sum(after) / 3) < 0.15 for lift, *after, _ in cells)
    assert all(-60 < bits < 0 < lift for lift, *_, bits in cells)
    lift = float(told.partition("lift +")[2].partition(" ")[0])
    assert sum(own[0] for own in cells) / 6 == pytest.approx(lift, abs=0.15)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    page.keyboard.press("Escape")
    page.locator("#beliefs tr[data-opens]").nth(1).click()
    assert page.locator("#provenance").is_visible()
    assert window.complaints == []
    page.close()


class Second(Believer):
    info = ModelInfo("doubter", "1")


def test_eight_screens_before_anything_is_unfolded(
    chromium: Any, store: SQLiteStore, tmp_path: Path
) -> None:
    """A run of four categories, measured, with the beliefs of two models."""
    more = [Group(f"{kind} {n}", kind) for kind in ("one", "two", "three") for n in range(12)]
    run = StoredRun(store, measured_run(store, (*PEOPLES, *more), [f"thing{n}" for n in range(24)]))
    for scorer in (Believer(), Second()):
        probe_beliefs(run, scorer)  # type: ignore[arg-type]
    path = tmp_path / "report.html"
    write_report(run, path)
    window = Window(chromium, path, width=1280)
    window.page.set_viewport_size({"width": 1280, "height": 800})
    height = window.page.evaluate("document.documentElement.scrollHeight")
    assert 2 * 800 < height <= 8 * 800
    # What is said first, and the picture, are on the first screen.
    for part in ("h1", ".warning", ".opening figure svg"):
        box = window.page.locator(part).first.bounding_box()
        assert box is not None and box["y"] + box["height"] <= 800, part
    window.unfold()
    assert window.page.evaluate("document.documentElement.scrollHeight") > 2 * height
    assert window.complaints == []
    window.page.close()


def test_a_narrow_window_holds_it(chromium: Any, report: Path) -> None:
    window = Window(chromium, report, width=420)
    page = window.page
    assert page.locator("#quadrants svg").bounding_box()["width"] <= 420
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 420
    assert window.complaints == []
    page.close()


def test_a_run_that_was_not_probed_says_how(
    chromium: Any, store: SQLiteStore, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    write_report(StoredRun(store, measured_run(store, GROUPS, ["food"])), path)
    window = Window(chromium, path)
    assert "run.evidence(MODEL)" in window.page.locator("#evidence").inner_text()
    assert window.page.locator("#quadrants").count() == 0
    assert window.complaints == []
    window.page.close()
