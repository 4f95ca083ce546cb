"""Labelling as raters do it: in a real browser, by keyboard, several at once, and interrupted."""

import os
import shutil
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.graph.labels import labels_in_effect
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stores import open_store
from kgbias.graph.types import Group
from kgbias.methods import labels as labels_of
from kgbias.report.tables import minus_signs
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
    return begun(page, address, rater, wrong)


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
        assert '<a id="label" href="/label">' in ana.request.get(address).text()
        ana.context.close()
        ben.context.close()
    with open_store(url) as store:
        every = store.labels("regard")
    assert [x.label for x in every if x.rater == "Ana"] == [
        "negative",
        "positive",
        "neutral",
        "negative",
        "undo",
        "neutral",
    ]
    assert [(x.label, x.note) for x in every if x.rater == "Ben"][-1] == ("", "1 cannot tell")
    assert all(x.masked and x.sample and x.guide == "regard@1" for x in every)
    raters: dict[str, set[str]] = {}
    for x in labels_in_effect(every):
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
        page.wait_for_selector('html[data-ready="2"]', state="attached")
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
        labels = labels_of.list_labels(run, "regard")
        assert {x.rater for x in labels} == {"Ana", "Ben"}
        of_all = next(a for a in labels_of.compare_raters(run) if not a.group)
        assert of_all.raters == ("Ana", "Ben") and of_all.alpha.n > 0 and not of_all.disputed
    assert wrong == []


def test_from_the_keyboard_of_two_raters_to_the_corrected_figures_of_the_report(
    chromium: Any, tmp_path: Path
) -> None:
    """Sixty labels by two raters at once; the browser of one is killed in the middle. Raters find
    everything negative but what groups "can't", and the scorer knows nothing of it."""
    path, wrong = str(tmp_path / "kgbias.db"), list[str]()
    with SQLiteStore(path) as store:
        measured_run(store, GROUPS, [f"thing {n}" for n in range(40)], 60)
    options = {"executable_path": shutil.which("chromium") or shutil.which("chromium-browser")}
    profile = tmp_path / "profile"
    with serving(path, "--label", "regard", KGBIAS_SERVE_TOKEN=TOKEN) as address:
        doomed = chromium.browser_type.launch_persistent_context(
            str(profile), headless=True, args=["--no-sandbox", "--disable-gpu"], **options
        )
        ana = begun(doomed.new_page(), address, "Ana", wrong)
        ben = opened(chromium, address, "Ben", wrong)
        for _ in range(15):
            label(ana)
            label(ben)
        ana.keyboard.press(key_for(ana))  # on its way, or not
        killed = kill_browser(profile)
        with suppress(Exception):  # its browser is gone
            doomed.close()
        assert killed
        ana = opened(chromium, address, "Ana", wrong)
        done = int(ana.text_content("#progress").split("You: ")[1].split()[0])
        assert done in (15, 16)
        for _ in range(30 - done):
            label(ana)
        for _ in range(15):
            label(ben)
        ana.context.close()
        ben.context.close()
    with kgbias.open(path) as study:
        run = study.run()
        labels = labels_of.list_labels(run, "regard")
        assert Counter(x.rater for x in labels) == {"Ana": 30, "Ben": 30}
        (of_all, *_) = labels_of.compare_raters(run)
        twice = len(labels) - len({x.triple_id for x in labels})
        assert of_all.alpha.value == 1 and of_all.alpha.n == twice > 0
        truth: dict[str, list[int]] = {}
        for t in run.triples():
            truth.setdefault(t.group, []).extend([-("can't" not in t.sentence)] * t.count)
        page = run.report(tmp_path / "report.html").read_text(encoding="utf-8")
        for group in run.groups():
            raw, corrected = (group.figures[f"overall_regard{end}"] for end in ("", "_corrected"))
            own = sum(truth[group.group])
            assert corrected.low <= own <= corrected.high < 0 and own < raw.low
            assert "by 2 people" in corrected.method
            assert minus_signs(corrected.format_interval("+.0f")) in page
        assert "p, corrected" in page and "+nan" not in page
    assert wrong == []


def key_for(page: Any) -> str:
    return "2" if "can't" in page.text_content("#statement") else "1"


def label(page: Any) -> None:
    press(page, key_for(page))


def begun(page: Any, address: str, rater: str, wrong: list[str]) -> Any:
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{address}label?token={TOKEN}")
    assert page.url == f"{address}label"
    page.fill("#rater", rater)
    page.keyboard.press("Enter")
    page.wait_for_selector('html[data-ready="1"]', state="attached")
    return page


def kill_browser(profile: Path) -> bool:
    """Kill the browser that has this profile, as the system would."""
    found = False
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (each / "cmdline").read_bytes().split(b"\0")
            if f"--user-data-dir={profile}".encode() in words:
                os.kill(int(each.name), signal.SIGKILL)
                found = True
    return found
