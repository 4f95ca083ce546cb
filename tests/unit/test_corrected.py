"""The random sample that people label, and a run's figures corrected by it."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.graph.cross_mentions import exclude_cross_mentions
from kgbias.graph.labels import Label, RaterKind
from kgbias.graph.selection import Selection, select_statements
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, GroupScore, Score
from kgbias.measure.figures import read_figures
from kgbias.measure.ppi_figures import (
    MIN_OWN_LABELS,
    SampleLabels,
    corrections_by_measure,
    read_sample_labels,
)
from kgbias.measure.sampling import LabelSample, draw_sample
from tests.conftest import require_modules
from tests.report_data import measured_run
from tests.texts import Texts

require_modules("scipy")
GROUPS = tuple(Group(name, "size") for name in ("Tall people", "Small people", "Wide people"))
OBJECTS = [f"thing {n}" for n in range(30)]
TIME = "2025-01-01T00:00:00Z"


@pytest.fixture
def run(store: SQLiteStore) -> StoredRun:
    return StoredRun(store, measured_run(store, GROUPS, OBJECTS, 80))


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "kgbias.db")


def labels(
    run: StoredRun,
    sample: LabelSample,
    ids: Iterable[str],
    *,
    of: str | None = None,
    rater: str = "ada",
    kind: RaterKind = "person",
    drawn: bool = True,
) -> list[Label]:
    """Labels of these statements: all `of` one kind, or as the scorer says."""
    said = {t.id: t.scores["regard"].label for t in run.triples()}
    return [
        Label(
            id,
            "regard",
            said[id] if of is None else of,
            rater,
            kind,
            "regard@1",
            TIME,
            False,
            sample.id if drawn else "",
        )
        for id in ids
    ]


def corrected(run: StoredRun, name: str = "overall_regard") -> dict[str, GroupScore]:
    return {s.group_id: s for s in read_figures(run) if s.measure == f"{name}_corrected"}


def test_the_sample_is_stratified_and_goes_on(run: StoredRun) -> None:
    sample = draw_sample(run, "regard")
    counted = exclude_cross_mentions(run, select_statements(run)).triples
    assert sorted(sample.order) == sorted({t.id for t in counted})
    of = {t.id: (t.group_id, t.scores["regard"].label) for t in counted}
    for stratum, ids in sample.strata.items():
        assert [id for id in sample.order if of[id] == stratum] == list(ids)
    early = Counter(of[id] for id in sample.order[: len(sample.strata)])
    assert len(early) >= len(sample.strata) - 1  # every stratum early
    by_group = Counter(of[id][0] for id in sample.order[:40])
    assert set(by_group.values()) <= {12, 13, 14, 15}
    assert draw_sample(run, "regard") == sample
    again = draw_sample(run, "regard", seed=1)
    assert again.id != sample.id and again.order != sample.order
    assert draw_sample(run, "toxicity").id != sample.id
    assert 0.1 < np.mean([sample.is_shared(id) for id in sample.order]) < 0.35


def test_within_a_stratum_the_order_is_random(run: StoredRun) -> None:
    """Over seeds, each statement of a stratum is equally often among the first half."""
    stratum, ids = max(draw_sample(run, "regard").strata.items(), key=lambda s: len(s[1]))
    half = len(ids) // 2
    orders = [draw_sample(run, "regard", seed=seed).strata[stratum] for seed in range(200)]
    seen = Counter(id for order in orders for id in order[:half])
    expected = 200 * half / len(ids)
    assert all(abs(seen[id] - expected) < 5 * np.sqrt(expected / 2) for id in ids)


def test_only_the_unbroken_beginning_counts(run: StoredRun) -> None:
    sample = draw_sample(run, "regard")
    ids = max(sample.strata.values(), key=len)
    assert sample.find_reached(ids[:4], ids[:4]) == set(ids[:4])
    assert sample.find_reached([*ids[:2], *ids[3:6]], ids) == set(ids[:2])
    # A picked statement within the beginning counts; one after it does not lengthen it.
    assert sample.find_reached(ids[:4], {ids[0], ids[2]}) == set(ids[:3])
    assert sample.find_reached(ids[:4], ()) == set()


def test_without_labels_nothing_changes(run: StoredRun) -> None:
    assert not [s for s in read_figures(run) if "corrected" in s.measure]


def test_all_labelled_as_scored_is_the_raw_figure(run: StoredRun) -> None:
    sample = draw_sample(run, "regard")
    run.store.add_labels(labels(run, sample, sample.order))
    raw = {s.group_id: s for s in read_figures(run) if s.measure == "overall_regard"}
    for id, found in corrected(run).items():
        assert found.value == pytest.approx(raw[id].value)
        assert found.method.startswith("corrected by ")


def test_all_labelled_otherwise_is_what_people_say(run: StoredRun) -> None:
    sample = draw_sample(run, "regard")
    run.store.add_labels(labels(run, sample, sample.order, of="negative"))
    negative = corrected(run, "regard_negative")
    assert {id: s.value for id, s in negative.items()} == {g.id: pytest.approx(80) for g in GROUPS}
    for s in corrected(run, "regard_standardised").values():
        assert s.value == pytest.approx(-1)


def test_few_labels_correct_all_groups_alike(run: StoredRun, texts: Texts) -> None:
    sample = draw_sample(run, "regard")
    run.store.add_labels(labels(run, sample, sample.order[: MIN_OWN_LABELS - 2], of="negative"))
    assert not corrected(run)
    run.store.add_labels(labels(run, sample, sample.order[: MIN_OWN_LABELS + 4], of="negative"))
    found = corrected(run)
    assert len(found) == 3
    for s in found.values():
        texts.check_lines(s.method, "statements about")
    run.store.add_labels(labels(run, sample, sample.order[: 3 * MIN_OWN_LABELS + 9], of="negative"))
    assert all("of the group's" in s.method for s in corrected(run).values())


def test_raters_are_averaged_and_models_are_not_people(run: StoredRun) -> None:
    sample = draw_sample(run, "regard")
    first = sample.order[:60]
    counted = exclude_cross_mentions(run, select_statements(run))

    def found() -> SampleLabels:
        made = read_sample_labels(run, "regard", counted, Selection())
        assert made is not None
        return made

    run.store.add_labels(labels(run, sample, first, of="negative", rater="gpt", kind="model"))
    assert found().kind == "model" and found().labelled_by == "by the model gpt"
    run.store.add_labels(labels(run, sample, first, of="positive"))
    assert found().kind == "person" and found().labelled_by == "by one person"
    run.store.add_labels(labels(run, sample, first[:1], of="negative", rater="bea"))
    run.store.add_labels(labels(run, sample, first[1:2], of="", rater="bea"))
    assert found().shares[first[0]] == {"positive": 0.5, "negative": 0.5}
    assert found().shares[first[1]] == {"positive": 1.0}
    assert found().skipped == 0 and found().raters == ("ada", "bea")


def test_picked_labels_correct_nothing(run: StoredRun) -> None:
    sample = draw_sample(run, "regard")
    run.store.add_labels(labels(run, sample, sample.order, of="negative", drawn=False))
    assert not corrected(run)


def test_errors_against_one_group_are_seen(run: StoredRun) -> None:
    sample = draw_sample(run, "regard")
    own = {t.id: t.group_id for t in run.triples()}
    first = sample.order[:150]
    counted = exclude_cross_mentions(run, select_statements(run))
    run.store.add_labels(labels(run, sample, first))
    assert (
        corrections_by_measure(run, counted, Selection(), "none")["regard"].equal_error_p_value == 1
    )
    tall = [id for id in first if own[id] == GROUPS[0].id]
    run.store.add_labels(labels(run, sample, tall, of="negative", rater="bea"))
    assert (
        corrections_by_measure(run, counted, Selection(), "none")["regard"].equal_error_p_value
        < 0.01
    )


def test_shown_beside_the_raw_figure(run: StoredRun, path: str, texts: Texts) -> None:
    sample = draw_sample(run, "regard")
    run.store.add_labels(labels(run, sample, sample.order[:100], of="negative"))
    found = kgbias.open(path).run("by hand")
    figure = found.groups()[0].figures["overall_regard_corrected"]
    assert figure.labels in (str(figure.n), f"{figure.n} of all") and figure.n > MIN_OWN_LABELS
    assert "the scorer's errors" in figure.covers
    columns = set(next(iter(found.groups().records())))
    assert {f"overall_regard{end}" for end in ("", "_corrected", "_corrected_n")} <= columns
    tests = [t for t in found.compare_groups() if t.measure == "regard"]
    assert all(abs(t.forms["corrected"].value) < 0.2 for t in tests)
    assert all(
        0 < t.label_corrected_difference.p <= t.label_corrected_difference.p_adjusted <= 1
        and not t.headline_differs
        for t in tests
    )
    shown = CliRunner().invoke(cli, ["compare", "by hand", "--store", path])
    assert shown.exit_code == 0
    texts.check_lines(shown.output, "raters label")
    assert "p of it, adj." in shown.output
    texts.check_lines(shown.output, "no difference")


def test_a_scorer_that_wrongs_a_group_is_told_by_the_corrected_test(
    store: SQLiteStore, path: str, texts: Texts
) -> None:
    """The scorer calls most that is said of tall people negative; to raters, groups are alike."""
    run = StoredRun(store, measured_run(store, GROUPS, OBJECTS, 80))
    tall = {t.id for t in run.triples() if t.group_id == GROUPS[0].id}
    wrong = [
        Score(id, -1.0, "negative", {}) if n % 6 else Score(id, 1.0, "positive", {})
        for n, id in enumerate(sorted(tall))
    ]
    store.save_scores(run.id, run.metrics()["regard"], wrong)
    sample = draw_sample(run, "regard")
    store.add_labels(
        [
            Label(
                id,
                "regard",
                "positive" if n % 2 else "negative",
                "ada",
                "person",
                "regard@1",
                TIME,
                False,
                sample.id,
            )
            for n, id in enumerate(sample.order)
        ]
    )
    found = kgbias.open(path).run("by hand")
    (test,) = (t for t in found.compare_groups(measures="regard") if t.first == "Tall people")
    assert test.differs and test.label_corrected_difference.is_tested and not test.headline_differs
    texts.check_lines(test.verdict, "says; corrected")
    frame = found.compare_groups(measures="regard").to_frame()
    assert frame["corrected_p_value"].between(0.05, 1).all()


def test_models_are_tested_by_labels_too(store: SQLiteStore, path: str, texts: Texts) -> None:
    for name, label in (("one", "negative"), ("other", "neutral")):
        objects = [f"{name} {n}" for n in range(30)]
        run = StoredRun(store, measured_run(store, GROUPS, objects, 80, name=name))
        sample = draw_sample(run, "regard")
        run.store.add_labels(labels(run, sample, sample.order[:120], of=label))
    found = kgbias.open(path).compare_models("one", "other", measures="regard")
    for t in found.tests:
        assert t.corrected.p <= t.corrected.p_adjusted < 1e-6 and t.headline_differs
        texts.check_lines(t.verdict, "labels: one")
    first = found.tests.records()[0]
    assert first["corrected_p_adjusted"] == found.tests[0].corrected.p_adjusted


def test_labels_of_other_groups_give_a_difference_and_no_test(run: StoredRun, path: str) -> None:
    sample = draw_sample(run, "regard")
    run.store.add_labels(labels(run, sample, sample.order[: MIN_OWN_LABELS + 4]))
    for t in kgbias.open(path).run("by hand").compare_groups(measures="regard"):
        assert (
            t.label_corrected_difference.has_interval and not t.label_corrected_difference.is_tested
        )
        assert np.isnan(t.label_corrected_difference.p_adjusted) and t.headline_differs == t.differs


def test_models_are_compared_by_labels_too(store: SQLiteStore, path: str, texts: Texts) -> None:
    """Of two models, the first says what raters find negative."""
    for name, label in (("one", "negative"), ("other", "neutral")):
        objects = [f"{name} {n}" for n in range(30)]
        run = StoredRun(store, measured_run(store, GROUPS, objects, 80, name=name))
        sample = draw_sample(run, "regard")
        run.store.add_labels(labels(run, sample, sample.order, of=label))
    found = kgbias.open(path).compare_models("one", "other", measures="regard")
    assert len(found.tests) == 3
    for t in found.tests:
        assert t.corrected.value == pytest.approx(-1) and t.corrected.high < -0.9
        assert t.corrected.n > 100
        assert not t.corrected.is_tested  # every label is known, and none differs
    shown = CliRunner().invoke(cli, ["compare", "one", "other", "--store", path])
    assert shown.exit_code == 0
    texts.check_lines(shown.output, "raters label")
