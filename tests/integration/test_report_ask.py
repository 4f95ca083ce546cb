"""The report answers questions in a real browser, offline."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, node_id
from kgbias.graph.vectors import StatementVectors
from kgbias.measure.semantic_search import SHIPPED_ENCODER
from kgbias.report import write_report
from tests.report_data import measured_run

pytestmark = pytest.mark.integration
GROUPS = (
    Group("Women", "gender", ("females",)),
    Group("Men", "gender"),
    Group("Old people", "<i>age"),
)
OBJECTS = ("working hard", "<b>bread</b>", "to work at night", "cats")


def test_a_question_is_answered(store: SQLiteStore, tmp_path: Path, chromium: Any) -> None:
    record = measured_run(store, GROUPS, OBJECTS, per_group=8)
    stated = sorted({(t.predicate, t.object) for t in store.triples(record.id)})
    ends = [(node_id("predicate", p), node_id("object", o)) for p, o in stated]
    near = {"cats": (1, 0), "<b>bread</b>": (0.8, 0.6)}  # the rest is far from both
    vectors = np.array([near.get(o, (0, -1)) for _, o in stated], dtype=np.float32)
    store.save_vectors(SHIPPED_ENCODER, StatementVectors(ends, vectors))
    write_report(StoredRun(store, record), tmp_path / "r.html")
    page = chromium.new_page(offline=True)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.goto((tmp_path / "r.html").as_uri())

    def ask(question: str) -> list[str]:
        page.fill("#ask-question", question)
        page.click("#ask-form button")
        return [line.strip() for line in page.locator("#ask-answer summary").all_inner_texts()]

    said = ask("What does the model say about FEMALES and work?")
    assert said and all("work" in line and line.startswith("Women ") for line in said)
    page.locator("#ask-answer summary").first.click()  # sources are one click away
    assert "answered: " in page.locator("#ask-answer details[open] li").first.inner_text()
    assert len(ask("What about women?")) > len(said)
    assert {line.split()[0] for line in ask("Who likes bread?")} == {"Women", "Men", "Old"}
    assert page.locator("#ask-answer b").count() == 0  # what a model said stays text
    assert all(line.startswith("Old people") for line in ask("bread of old people"))
    assert ask("old bread of Martians")  # no group is named: the topic decides
    assert ask("What about males?") == ask("What about men?") != []
    for question, answer in (
        ("What about Jews?", "This run has no group Jews."),
        ("Do Arabs eat bread?", "This run has no group Arabs."),
        ("Martians?", "No statement here has a word of the question: martians."),
        ("women and physics", "No statement about Women has a word of the question: physics."),
        ("What?", "The question names no group of this run and no topic."),
    ):
        often = ask(question)  # what is said most of the groups that are named
        assert bool(often) == question.startswith("women") and len(often) <= 5
        assert all(line.startswith("Women ") for line in often)
        assert page.inner_text("#ask-answer").startswith(answer)
    by_meaning = [line for line in ask("women and cats") if "similar" in line]
    assert by_meaning and all("<b>bread</b>" in x and "similar (0.80)" in x for x in by_meaning)
    assert "not always in stance" in page.inner_text("#ask-answer")
    page.fill("#ask-question", "women and work")
    page.click("#ask-form button")
    page.locator("#ask").screenshot(path=str(tmp_path / "ask.png"))
    assert errors == []
    page.close()
