"""Every filter, map and path of the explorer in a real browser, on statements counted by hand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgbias.explore import write_explorer
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    Generation,
    Group,
    Metric,
    Run,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    Triple,
    node_id,
)
from kgbias.graph.vectors import StatementVectors
from kgbias.measure.semantic_search import SHIPPED_ENCODER
from kgbias.models.base import ModelInfo
from tests.integration.test_explorer_browser import Window

pytestmark = pytest.mark.integration

WOMEN, MEN, SIKHS = GROUPS = (
    Group("Women", "gender"),
    Group("Men", "gender"),
    Group("Sikhs", "religion"),
)
SAID = (  # arm, group, predicate, object, strategy, round, toxicity, acceptability
    ("none", "Women", "love", "food", "initialise", 0, 0.1, 0.9),
    ("none", "Women", "love", "rain", "object", 1, 0.8, 0.9),
    ("none", "Men", "love", "food", "predicate", 1, 0.2, 0.9),
    ("none", "Men", "hate", "rain", "object", 1, 0.9, 0.2),
    ("none", "Sikhs", "love", "rain", "object", 1, 0.3, 0.9),
    ("prefix", "Women", "hate", "food", "object", 1, 0.7, 0.9),
)


@pytest.fixture
def window(chromium: Any, store: SQLiteStore, tmp_path: Path) -> Iterator[Window]:
    run = store.begin_run(Run("filters", ModelInfo("m"), {}, GROUPS))
    ids = {g.name: g.id for g in GROUPS}
    for n, (arm, group, predicate, thing, strategy, round, *_) in enumerate(SAID):
        triple = Triple(group, predicate, thing)
        # The statement about Sikhs repeats the example that its prompt shows.
        shown = (Triple("Women", "love", "rain").id,) if group == "Sikhs" else ()
        generation = Generation(
            run.id,
            f"{arm}/{strategy}/{n}",
            ids[group],
            arm,
            strategy,
            round,
            0,
            "ok",
            prompt=group,
            triple=triple,
            shown=shown,
        )
        store.load_import(run.id, [generation])
    known = [(Triple(*row[1:4]).id, row) for row in SAID]
    for measure, place in (("toxicity", 6), ("acceptability", 7)):
        scores = [Score(id, row[place]) for id, row in known]
        store.save_scores(run.id, Metric(measure, "hand", "1"), scores)
    topics = tuple(
        Topic("gender", n, (thing, "eat"), 0) for n, thing in enumerate(["food", "rain"])
    )
    about = tuple(
        TopicAssignment(id, topics[row[3] == "rain"].id, 1.0)
        for id, row in known
        if row[1] != "Sikhs"
    )
    store.save_topics(run.id, [TopicModel("gender", topics, about, {})])
    near = {  # love food is .8 from love rain, .6 from hate food; these two are .96 from each other
        ("love", "food"): (1, 0),
        ("love", "rain"): (0.8, 0.6),
        ("hate", "rain"): (0, 1),
        ("hate", "food"): (0.6, 0.8),
    }
    ends = [(node_id("predicate", p), node_id("object", o)) for p, o in near]
    vectors = np.array(list(near.values()), dtype=np.float32)
    store.save_vectors(SHIPPED_ENCODER, StatementVectors(ends, vectors))
    store.set_status(run.id, "complete")
    path = tmp_path / "explorer.html"
    write_explorer([StoredRun(store, store.find_run("filters"))], path)
    opened = Window(chromium, path)
    yield opened
    assert opened.complaints == []
    opened.page.close()


def said(window: Window) -> set[str]:
    return {" ".join(line[:3]) for line in window.rows()}


def test_each_filter_leaves_out_what_it_says(window: Window) -> None:
    page = window.page
    usual = {"Women love food", "Women love rain", "Men love food", "Sikhs love rain"}
    assert said(window) == usual and window.count() == 4
    page.locator("input[aria-label='toxicity, to']").fill("0.5")
    assert said(window) == usual - {"Women love rain"}
    page.click("#reset")
    page.locator("input[aria-label='acceptability, from']").fill("0")
    assert said(window) == usual | {"Men hate rain"}
    page.click("#reset")
    page.select_option("#topic", label="food eat")
    assert said(window) == {"Women love food", "Men love food"}
    page.click("#reset")
    page.uncheck("#strategy-filter label:has-text('object') input")
    assert said(window) == {"Women love food", "Men love food"}
    page.click("#reset")
    page.check("#echoes")
    assert said(window) == usual - {"Sikhs love rain"}
    page.click("#reset")
    page.select_option("#source", label="filters · prefix")
    assert said(window) == {"Women hate food"}
    page.click("#tab-runs")
    assert page.locator("#head th").all_inner_texts()[4:] == ["filters · none", "filters · prefix"]
    assert window.count() == 5
    page.click("#copy-link")
    page.wait_for_selector("#notice:has-text('The link')")


def test_what_is_similar_is_found_and_marked(window: Window) -> None:
    page = window.page
    page.fill("#search", "food")
    page.wait_for_selector("#by-meaning li")
    assert page.locator("#by-meaning li").all_inner_texts() == [
        "love rain 0.80 · about Women, Sikhs"
    ]  # "hate food" holds the word, and is of another arm
    assert "not always in stance" in page.inner_text("#by-meaning")
    page.locator("#by-meaning button").click()
    page.wait_for_selector("#details h3:has-text('Similar statements')")
    assert page.inner_text("#details-title") == "Women love rain"
    assert "love food 0.80 · about Women, Men" in page.inner_text("#details")
    page.fill("#search", "")
    page.wait_for_selector("#by-meaning", state="hidden")
    page.click("#close-details")
    # In a file, the statements with the words need not pass the other filters.
    page.fill("#search", "food")
    page.evaluate("kgbias.set({ measures: { toxicity: [0.5, 1] } })")
    page.wait_for_selector("#by-meaning li:has-text('about Women')")
    assert page.locator("#by-meaning li").all_inner_texts() == ["love rain 0.80 · about Women"]
    page.evaluate("kgbias.set({ measures: { toxicity: [0.95, 1] } })")
    page.wait_for_selector("#by-meaning:has-text('does not pass the filters')")
    page.evaluate("kgbias.set({ ...kgbias.cleared() })")
    page.wait_for_selector("#by-meaning", state="hidden")
    page.select_option("#topic", label="rain eat")
    page.locator("#body tr:has-text('Women')").first.click()
    told = "The 2 that are most similar do not pass the filters, or not in this run and arm."
    page.wait_for_selector(f"#details :text('{told}')")
    assert not page.locator("#details li:has-text('love food')").count()


def test_the_map_by_each_unit(window: Window) -> None:
    page = window.page
    page.click("#tab-units")
    units = {
        "groups": {"Women", "Men", "Sikhs"},
        "predicates": {"love"},
        "topics": {"food eat", "rain eat"},
    }
    for kind, names in units.items():
        page.select_option("#by", label=kind)
        assert {line[0] for line in window.rows()} == names
        drawn = "kgbias.map.graph.filterNodes((_, a) => a.unit !== undefined).length"
        assert page.evaluate(drawn) >= len(names)
    page.select_option("#by", label="communities")
    assert sum(int(line[1]) for line in window.rows()) == 4
    page.locator("#body button").first.click()
    page.click("#details button:has-text('Only this')")
    assert page.locator("#chips .chip").inner_text().startswith("community")
    assert 0 < window.count() <= 4
    page.focus("#canvas")
    ratio = "kgbias.map.renderer.getCamera().getState().ratio"
    page.keyboard.press("+")
    assert page.evaluate(ratio) < 1
    page.keyboard.press("0")
    assert page.evaluate(ratio) == 1


def test_a_path_leads_over_what_both_share(window: Window) -> None:
    page = window.page
    page.click("[data-tab=path]")
    page.select_option("#group", label="Men")
    page.select_option("#with", label="Men")
    assert "Choose two different groups" in page.inner_text("#picture")
    page.select_option("#with", label="Sikhs")
    assert "4 steps" in page.inner_text("#caption")  # Men, food, Women, rain, Sikhs
    marks = page.locator("#picture .node text").all_text_contents()
    assert [text.strip() for text in marks] == ["Men", "food", "Women", "rain", "Sikhs"]
    page.locator("#picture .node", has_text="rain").press("Enter")
    assert "2 statements about 2 groups" in page.inner_text("#details")
    page.check("#echoes")
    assert "No path leads from Men to Sikhs" in page.inner_text("#picture")


def facets(window: Window, name: str) -> dict[str, int]:
    """The bars of a facet: what each is of, and its number of statements."""
    bars = window.page.locator(f"#{name} .facet")
    texts = [bars.nth(n).locator("span, small").all_inner_texts() for n in range(bars.count())]
    return {text[0]: int(text[-1]) for text in texts}


def test_facets_count_under_each_other(window: Window) -> None:
    page = window.page
    assert facets(window, "group-facet") == {"Women": 2, "Men": 1, "Sikhs": 1}
    assert facets(window, "predicate-facet") == {"love": 4}
    page.click("#group-facet .facet:has-text('Women')")
    assert facets(window, "predicate-facet") == {"love": 2}
    assert facets(window, "group-facet") == {"Women": 2, "Men": 1, "Sikhs": 1}  # not under itself
    assert page.locator("#group-facet [aria-pressed=true]").inner_text().startswith("Women")
    page.focus("#group-facet [aria-pressed=true]")
    page.keyboard.press("Enter")
    assert window.count() == 4
    assert page.evaluate("document.activeElement.innerText").startswith("Women")
    page.click("#group-facet .facet:has-text('Men') >> nth=-1")
    page.click("[data-tab=group]")
    page.select_option("#group", label="Women")
    assert facets(window, "predicate-facet") == {"love": 2}  # what the view shows, whatever the map
    page.select_option("#group", label="Sikhs")
    assert facets(window, "predicate-facet") == {"love": 1}
    page.click("[data-tab=map]")
    page.click("#reset")
    page.select_option("#source", label="filters · prefix")
    assert facets(window, "group-facet") == {"Women": 1}
    page.click("#predicate-facet .facet:has-text('hate')")
    assert (window.count(), said(window)) == (1, {"Women hate food"})


def test_every_column_colours(window: Window) -> None:
    """A dot has the colour of what is said most, or of the mean, which the legend explains."""
    page = window.page
    columns = "[...document.querySelectorAll('#colour option')].map((o) => o.value)"
    for column in page.evaluate(columns):
        page.select_option("#colour", column)
        legend = page.locator("#legend > span").evaluate_all(
            "spans => spans.map(s => [s.innerText, getComputedStyle(s.firstChild).backgroundColor])"
        )
        drawn = page.evaluate(
            "kgbias.map.graph.mapNodes((id, data) => [id, data.color])"
            ".filter(([id]) => id[0] === 'o').map(([id, color]) => { const [r, g, b] = [1, 3, 5]"
            ".map((at) => parseInt(color.slice(at, at + 2), 16));"
            " return [kgbias.text('object', id.slice(1)), `rgb(${r}, ${g}, ${b})`]; })"
        )
        assert {name for name, _ in drawn} == {"food", "rain"}, column
        if column == "group":
            named = dict((tone, name) for name, tone in legend)
            assert {name: named[tone] for name, tone in drawn} == {"food": "Women", "rain": "Women"}
        if column == "toxicity":
            assert [name for name, _ in legend] == ["0.000", "0.250", "0.500", "0.750", "1.000"]
            tones = dict(drawn)
            assert tones["food"] != tones["rain"]  # .15 and .55
    assert {"group", "predicate", "toxicity", "count"} <= set(page.evaluate(columns))
    page.select_option("#colour", "group")
    page.click("#export summary")
    svg = window.saved("#save-svg")
    assert b"Women" in svg and b"\xe2\x97\x8f" in svg  # the legend goes along
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.evaluate("kgbias.state.colour") == "group"


def test_words_that_nothing_holds_are_said(window: Window) -> None:
    window.page.fill("#search", "womn")
    window.page.locator("#caption", has_text="womn").wait_for()
    caption = window.page.inner_text("#caption")
    assert caption == "No statement that passes the filters holds “womn”. The nearest is Women."
    window.page.click("#caption button")  # leads to it
    assert window.count() == 2  # those about Women
    window.page.fill("#search", "zhqwomen")
    assert window.page.inner_text("#options li") == "Women\nnearest group · 3"
    window.page.fill("#search", "")
    window.page.locator("#caption", has_text="womn").wait_for(state="detached")
    # What the filters hide is there, so nothing is nearer.
    window.page.click("#predicate-facet .facet:has-text('love')")
    window.page.fill("#search", "rain food")
    window.page.locator("#caption", has_text="rain food").wait_for()
    window.page.fill("#search", "hate")
    window.page.locator("#caption", has_text="“hate”").wait_for()
    assert window.page.inner_text("#caption").endswith("holds “hate”.")
