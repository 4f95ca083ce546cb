"""The first section of the report in a real browser: said against believed."""

from pathlib import Path
from typing import Any

import pytest

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import BelievedEdge, Believing, Group, ProbedEdge, Probing, node_id
from kgbias.models.base import ModelInfo
from kgbias.report import write_report
from tests.conftest import needs
from tests.integration.test_report_browser import Window
from tests.report_data import measured_run

pytestmark = pytest.mark.integration
needs("matplotlib")

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
                    node_id("predicate", predicate), node_id("object", object), group.id,
                    value - 2, 4, value, 3, -2.0, 1, 1 if own else 3, ("a", "<b>"), (1.0, 2.0),
                )
            )  # fmt: skip
    probing = Probing(ModelInfo("<i>tiny</i>"), record={"measure": "conditional", "mrr": 1.0,
                      "mrr_expected": 0.5, "p_value": 0.01})  # fmt: skip
    store.save_probes(run.id, probing, edges)
    believing = Believing(ModelInfo("<i>tiny</i>"), record={"categories": [], "floor": []})
    store.save_beliefs(
        run.id,
        believing,
        [
            BelievedEdge(
                e.predicate_id, e.object_id, e.group_id, 5.0 if e.rank == 1 else -2.0, -3.0, 6.0, 8,
                0.001, 0.01, 0.0001, 0.001, 4.0, "<b>", "believed" if e.rank == 1 else "",
            )
            for e in edges
        ],
    )  # fmt: skip
    store.save_believing(run.id, believing)
    store.save_probing(run.id, probing)
    path = tmp_path / "report.html"
    write_report(StoredRun(store, run), path)
    return path


def test_every_point_opens_its_provenance(chromium: Any, report: Path) -> None:
    window = Window(chromium, report)
    page = window.page
    sections = page.locator("main > section").evaluate_all("all => all.map((s) => s.id)")
    assert sections[:2] == ["beliefs", "evidence"]
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
    assert "Never said of this group; said of Women" in told and "Asked" not in told
    page.keyboard.press("Escape")
    page.select_option("#evidence-group", label="Men")
    assert 0 < points.count() < len(GROUPS) * 20
    assert window.complaints == []
    page.close()


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
    assert "kgbias evidence" in window.page.locator("#evidence").inner_text()
    assert window.page.locator("#quadrants").count() == 0
    assert window.complaints == []
    window.page.close()
