"""Labelling as raters do it: in a real browser, by keyboard, several at once, and interrupted."""

from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.graph.labels import in_effect
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import open_store
from kgbias.graph.types import Group
from tests.integration.test_explorer_served import TOKEN, serving
from tests.report_data import measured_run

pytestmark = pytest.mark.integration

GROUPS = (Group("Women", "gender"), Group("Men", "gender"))
OBJECTS = ["food", "rain", "<img src=x onerror=alert(1)>", *(f"thing {n}" for n in range(9))]


@pytest.fixture
def url(tmp_path: Path) -> str:
    path = str(tmp_path / "kgbias.db")
    with SQLiteStore(path) as store:
        measured_run(store, GROUPS, OBJECTS)
    return path


def opened(chromium: Any, address: str, rater: str, wrong: list[str], width: int = 1280) -> Any:
    """The page to label on, begun by a rater in a browser of their own."""
    page = chromium.new_context(viewport={"width": width, "height": 900}).new_page()
    page.on("console", lambda m: wrong.append(m.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{address}label?token={TOKEN}")
    assert page.url == f"{address}label"
    page.fill("#rater", rater)
    page.keyboard.press("Enter")
    page.wait_for_selector('html[data-ready="1"]', state="attached")
    return page


def press(page: Any, key: str) -> None:
    """Press a key, and wait until the server has what it did."""
    before = int(page.get_attribute("html", "data-ready"))
    page.keyboard.press(key)
    page.wait_for_selector(f'html[data-ready="{before + 1}"]', state="attached")


def test_two_raters_label_at_once_by_keyboard(chromium: Any, url: str) -> None:
    wrong: list[str] = []
    with serving(url, "--label", "regard", "--masked", KGBIAS_SERVE_TOKEN=TOKEN) as address:
        ana = opened(chromium, address, "Ana", wrong)
        ben = opened(chromium, address, "Ben", wrong, width=390)
        assert ana.text_content("#statement").startswith("These people ")
        assert ben.evaluate("document.documentElement.scrollWidth") <= 390
        for key in ("1", "3", "2", "1"):
            press(ana, key)
            press(ben, key)
        press(ana, "u")
        press(ana, "2")
        ben.keyboard.press("n")
        ben.keyboard.type("1 cannot tell")
        ben.keyboard.press("Escape")
        press(ben, "s")
        assert "4 labelled, 0 skipped" in ana.text_content("#progress")
        ana.context.close()
        ben.context.close()
    with open_store(url) as store:
        every = store.labels("regard")
    assert [x.label for x in every if x.rater == "Ana"] == [
        "negative", "positive", "neutral", "negative", "undo", "neutral",
    ]  # fmt: skip
    assert [(x.label, x.note) for x in every if x.rater == "Ben"][-1] == ("", "1 cannot tell")
    assert all(x.masked and x.sample and x.guide == "regard@1" for x in every)
    raters: dict[str, set[str]] = {}
    for x in in_effect(every):
        raters.setdefault(x.triple_id, set()).add(x.rater)
    assert len(raters) >= 6, "few statements are for two raters"
    assert wrong == []


def test_a_killed_browser_and_a_lost_connection_lose_nothing(chromium: Any, url: str) -> None:
    wrong: list[str] = []
    with serving(url, "--label", "regard", KGBIAS_SERVE_TOKEN=TOKEN) as address:
        page = opened(chromium, address, "Ana", wrong)
        press(page, "1")
        page.context.close()
        page = opened(chromium, address, "Ana", wrong)
        assert "You: 1 labelled" in page.text_content("#progress")
        lost = {"n": 0}

        def lose(route: Any) -> None:
            """The first answer is lost after the label was kept; then a request is."""
            lost["n"] += 1
            if lost["n"] == 1:
                route.fetch()
                route.abort()
            elif lost["n"] == 2:
                route.abort()
            else:
                route.continue_()

        page.route("**/label", lose)
        page.keyboard.press("3")
        page.wait_for_selector("#told:not(:empty)")
        assert "Not saved yet" in page.text_content("#told")
        page.wait_for_selector('html[data-ready="2"]', state="attached", timeout=20_000)
        assert lost["n"] == 3 and page.text_content("#told") == ""
        page.context.close()
    with open_store(url) as store:
        assert [x.label for x in store.labels("regard")] == ["negative", "positive"]
    assert all("ERR_FAILED" in text for text in wrong)


def test_raters_who_say_the_same_agree(chromium: Any, url: str) -> None:
    wrong: list[str] = []
    with serving(url, "--label", "regard", KGBIAS_SERVE_TOKEN=TOKEN) as address:
        raters = [opened(chromium, address, name, wrong) for name in ("Ana", "Ben")]
        for page in raters:
            while "Nothing is left" not in page.text_content("#statement"):
                press(page, "1" if "food" in page.text_content("#statement") else "3")
            page.context.close()
    with kgbias.open(url) as study:
        run = study.run()
        labels = run.labels("regard")
        assert {x.rater for x in labels} == {"Ana", "Ben"}
        of_all = next(a for a in run.rater_agreement() if not a.group)
        assert of_all.raters == ("Ana", "Ben") and of_all.alpha.n > 0 and not of_all.disputed
    assert wrong == []
