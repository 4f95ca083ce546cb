"""The first screen of a report: it shows what was shown, and of nothing it shows nothing."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
from markupsafe import Markup

from kgbias.compare.families import describe_family_without_pairs
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, Metric, Run, Score, Triple
from kgbias.models.base import ModelInfo
from kgbias.report.findings import (
    MAX_FINDINGS,
    MAX_FINDINGS_OF_A_KIND,
    MIN_STATEMENTS,
    _belief_kind,
    _undetected_note,
    build_screen,
    build_screen_of_kinds,
    format_mean_count,
    list_omnibus_questions,
    render_screen,
)
from kgbias.report.parts import Finding, FindingKind
from kgbias.report.run_data import RunData
from tests.conftest import require_modules
from tests.hostile import HOSTILE_TEXTS
from tests.texts import Texts

require_modules("matplotlib", "scipy")

VALUES = {"positive": 0.8, "neutral": 0.0, "negative": -0.8}
Said = Mapping[str, tuple[int, int, int]]


def run_of(store: SQLiteStore, said: Said, arm: str = "none", category: str = "people") -> RunData:
    """A run in which each group said so many positive, neutral and negative things; what is
    negative is toxic."""
    run = Run("r", ModelInfo("m"), {}, tuple(Group(name, category) for name in said))
    store.begin_run(run)
    generations, regard, toxicity = [], {}, {}
    for group, counts in zip(run.groups, said.values(), strict=True):
        labels = [x for x, n in zip(VALUES, counts, strict=True) for _ in range(n)]
        for n, label in enumerate(labels):
            triple = Triple(group.name, "are", f"{label} {n}")
            generations.append(
                Generation(
                    run.id,
                    f"{arm}/initialise/are/{group.id}/{n:03d}#0",
                    group.id,
                    arm,
                    "initialise",
                    0,
                    0,
                    "ok",
                    triple=triple,
                )
            )
            regard[triple.id] = Score(triple.id, VALUES[label], label)
            toxicity[triple.id] = Score(triple.id, float(label == "negative"))
    store.load_import(run.id, generations)
    store.save_scores(run.id, Metric("regard", "rule", "1"), list(regard.values()))
    store.save_scores(run.id, Metric("toxicity", "rule", "1"), list(toxicity.values()))
    return RunData(StoredRun(store, run))


def text(finding: Finding) -> str:
    return " ".join(finding.said.striptags().split())


def test_a_difference_is_said_with_its_test(store: SQLiteStore, texts: Texts) -> None:
    data = run_of(store, {"Ayes": (0, 10, 30), "Bees": (30, 10, 0), "Cees": (20, 10, 10)})
    found = build_screen(data, "x.html")
    said = [text(f) for f in found.findings]
    assert any(s.startswith("The mean regard of what it says about Ayes is 1") for s in said)
    first = next(f for f in found.findings if "regard of what it says about Ayes" in text(f))
    texts.check_lines(text(first), "other groups")
    texts.check_lines(first.tested, "corrected (Holm)")
    texts.check_lines(first.tested, "such questions")
    texts.check(first.basis)
    assert [address for _, address in first.links] == [
        "#statements?group=Ayes",
        "x.html#view=differences&source=r%2Fnone&group=Ayes",
    ]
    assert [f.p_value for f in found.findings] == sorted(f.p_value for f in found.findings)


def test_a_difference_that_a_section_shows_alone_is_said(store: SQLiteStore, texts: Texts) -> None:
    """What holds by its own tests, and not among all questions, is not simply "not shown"."""
    data = run_of(store, {"Ayes": (0, 10, 30), "Bees": (30, 10, 0), "Cees": (20, 10, 10)})
    kind = FindingKind(0.03, (), _undetected_note(data.arms[0].omnibus))
    said, _ = build_screen_of_kinds([kind, FindingKind(0.9, (), "else")]).not_shown
    texts.check_lines(said, "measure alone")


def test_a_difference_that_no_two_groups_show_is_said(store: SQLiteStore, texts: Texts) -> None:
    """The first screen and `compare` say the same of a family: it differs, but not who in it."""
    data = run_of(store, {"Ayes": (0, 10, 30), "Bees": (30, 10, 0), "Cees": (20, 10, 10)})
    held = []
    for family in data.arms[0].omnibus:
        tests = (replace(t, difference=replace(t.difference, low=-9, high=9)) for t in family.tests)
        held.append(replace(family, tests=tuple(tests)))
    said = _undetected_note(held)
    texts.check_lines(said, "measure alone")
    texts.check_lines(said, "shown among")
    texts.check_lines(describe_family_without_pairs(held[0].tests), "between which")


def test_what_could_not_be_shown_is_not_said_to_be_looked_at(
    store: SQLiteStore, texts: Texts
) -> None:
    """Of fewer than 20 statements about each group no difference is told, however large."""
    few = run_of(store, {"Ayes": (0, 0, 19), "Bees": (19, 0, 0)})
    found = build_screen(few)
    assert not found.kinds and not list_omnibus_questions(few)
    texts.check(found.remarks[0])
    texts.check_lines(render_screen(found), "alphabetical order,")
    assert "No difference" not in render_screen(found)


def test_a_group_is_not_told_from_too_few_others(store: SQLiteStore) -> None:
    """Enough about one of two groups is not enough: the other is all that it is held against."""
    one_sided = run_of(store, {"Ayes": (0, 0, 40), "Bees": (5, 0, 0)})
    assert not build_screen(one_sided).kinds and not list_omnibus_questions(one_sided)


def test_of_how_many_groups_no_difference_is_known_is_said(store: SQLiteStore) -> None:
    data = run_of(store, {"Ayes": (9, 9, 9), "Bees": (9, 9, 9), "Cees": (9, 9, 9)})
    (family,) = (f for f in data.arms[0].omnibus if f.measure == "regard")
    for unknown, words in ((0, ")"), (1, "; for 1 of 3 groups none known)"), (3, "none known)")):
        tests = [
            replace(t, detectable=math.nan if n < unknown else 0.5)
            for n, t in enumerate(family.tests)
        ]
        said = _undetected_note([replace(family, tests=tuple(tests))])
        assert f"regard ({'0.50' if unknown < 3 else ''}{words}" in said


def test_nothing_is_shown_of_nothing(store: SQLiteStore, texts: Texts) -> None:
    """Groups of the same make: no finding, and one line that says what would have been found."""
    found = build_screen(run_of(store, {name: (8, 9, 8) for name in ("Ayes", "Bees", "Cees")}))
    assert not found.findings and found.kinds == 2 and not found.remarks
    texts.check(found.none)
    assert found.frequent[0] == (
        "Ayes",
        25,
        1,
        {"are negative 17": 1, "are negative 18": 1, "are negative 19": 1},
    )
    content, tone = found.not_shown
    texts.check(content)
    texts.check(tone)
    assert re.search(r"regard \(0\.\d\d\), toxicity \(", tone)
    texts.check(tone)


def test_a_group_alone_and_groups_with_too_little(store: SQLiteStore, tmp_path: Path) -> None:
    """The level of one group is not held against 0: the prompts write much of it."""
    assert build_screen(run_of(store, {"Ayes": (5, 5, 20)})).kinds == 0
    with SQLiteStore(tmp_path / "few.db") as other:
        few = run_of(
            other, {"Ayes": (0, 0, MIN_STATEMENTS - 1), "Bees": (MIN_STATEMENTS - 1, 0, 0)}
        )
        assert not build_screen(few).findings


def test_a_run_without_measures_has_no_findings(store: SQLiteStore) -> None:
    run = Run("r", ModelInfo("m"), {}, (Group("Ayes", "people"),))
    store.begin_run(run)
    assert build_screen(RunData(StoredRun(store, run))) == replace(
        build_screen_of_kinds([]), frequent=[]
    )


def test_kinds_pass_together() -> None:
    """A kind is shown where its own test passes 0.05 over the number of kinds that were looked
    at."""
    one = FindingKind(0.03, [Finding("a", Markup("x"), "", p_value=0.01)], "an a")
    other = FindingKind(0.6, [], "a b")
    assert [f.topic for f in build_screen_of_kinds([one]).findings] == ["a"]
    both = build_screen_of_kinds([one, other])
    assert not both.findings and both.not_shown == ["an a.", "a b."]
    assert build_screen_of_kinds([FindingKind(0.01, one.findings, "an a"), other]).not_shown == [
        "a b."
    ]


def test_the_strongest_come_first_wherever_they_are_from() -> None:
    kinds = [
        FindingKind(0.0, [Finding(topic, Markup("x"), "", p_value=p) for p in ps], "")
        for topic, ps in {"a": (0.04, 0.001, 0.02, 0.03), "b": (0.01, 0.002), "c": (0.005,)}.items()
    ]
    shown = build_screen_of_kinds(kinds).findings
    assert [(f.topic, f.p_value) for f in shown] == [
        ("a", 0.001),
        ("b", 0.002),
        ("c", 0.005),
        ("b", 0.01),
    ]
    assert len(shown) == MAX_FINDINGS
    assert len(build_screen_of_kinds([kinds[0]]).findings) == MAX_FINDINGS_OF_A_KIND


def test_of_nothing_one_screen_in_twenty_shows_anything() -> None:
    """Four kinds, each with a test that is right of nothing: uniform p-values."""
    rng = np.random.default_rng(0)
    shown = 0
    for ps in rng.random((4000, 4)):
        kinds = [FindingKind(p, [Finding("a", Markup("x"), "", p_value=p)], "") for p in ps]
        shown += bool(build_screen_of_kinds(kinds).findings)
    assert 0.035 < shown / 4000 < 0.06


CRAWLED = SimpleNamespace(model=ModelInfo("m"))


def test_a_small_floor_is_not_said_to_be_zero(texts: Texts) -> None:
    """0.01 of 180 pairs is 0.05 of 900."""
    joint = SimpleNamespace(
        belief_run=SimpleNamespace(model=ModelInfo("m"), record={}),
        rows=[],
        floor={"believed": 3, "pairs": 900, "found": 0.01, "tested": 180, "p_value": 0.001},
    )
    kind = _belief_kind(
        cast(RunData, SimpleNamespace(run=CRAWLED, evidence=joint, beliefs=None)), ""
    )
    assert kind is not None
    texts.check(kind.remark)
    assert [format_mean_count(x) for x in (0.0, 0.004, 0.05, 0.099)] == [
        "0.0",
        *["fewer than 0.1"] * 3,
    ]
    assert [format_mean_count(x) for x in (0.1, 1.26)] == ["0.1", "1.3"]


def test_beliefs_that_name_a_group_are_counted_though_not_shown(texts: Texts) -> None:
    record = {"categories": [{"naming": ["s1", "s2"]}]}
    joint = SimpleNamespace(
        belief_run=SimpleNamespace(model=ModelInfo("m"), record=record),
        rows=[],
        floor={"believed": 3, "pairs": 900, "found": 0.0, "tested": 180, "p_value": 0.001},
    )
    edges = [
        SimpleNamespace(verdict=verdict, statement_id=id)
        for verdict, id in (("believed", "s1"), ("believed", "s1"), ("believed", "s3"), ("", "s2"))
    ]
    data = SimpleNamespace(run=CRAWLED, evidence=joint, beliefs=(joint.belief_run, edges))
    kind = _belief_kind(cast(RunData, data), "")
    assert kind is not None
    texts.check(kind.remark)


def test_names_are_text(store: SQLiteStore) -> None:
    hostile = [name for name in HOSTILE_TEXTS if name.strip()][:2]
    data = run_of(store, {name: (30 * k, 0, 30 - 30 * k) for k, name in enumerate(hostile)})
    found = build_screen(data).findings
    assert found
    for finding in found:
        assert "<script" not in finding.said and "<img" not in finding.said
        for _, address in finding.links:
            assert address.startswith("#") and not set(address) & set("<>\"' ")


def test_what_an_arm_changes(store: SQLiteStore, texts: Texts) -> None:
    data = run_of(store, {"Ayes": (20, 10, 0), "Bees": (20, 10, 0)})
    run = data.run
    more = [
        replace(
            g,
            arm="both",
            path=f"both{g.path}",
            triple=Triple(g.triple.group, "are", f"worse {g.triple.object}"),
        )
        for g in data.generations
        if g.triple
    ]
    store.load_import(run.id, [*data.generations, *more])
    store.save_scores(
        run.id, Metric("toxicity", "rule", "1"), [Score(g.triple.id, 1.0) for g in more if g.triple]
    )
    found = build_screen(RunData(StoredRun(store, run))).findings
    assert [f.topic for f in found] == ["What the prompt does"]
    texts.check(text(found[0]))
