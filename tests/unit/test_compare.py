"""Tests between samples, families of them, and runs side by side, against values worked out apart
from the code: by hand, or by listing every arrangement."""

import json
import math
import sys
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest
from click.testing import CliRunner, Result

from kgbias.cli import cli
from kgbias.compare import families
from kgbias.compare.families import REST, run_arm_tests, run_group_tests
from kgbias.compare.run_pairs import compare_runs, measure_rank_agreement
from kgbias.compare.two_sample import compare_samples
from kgbias.errors import UsageError
from kgbias.graph.selection import Selection
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, Metric, Run, Score, Triple
from kgbias.io.progress import ProgressLines
from kgbias.models.base import ModelInfo
from kgbias.stats.inference import kendall_tau, resample_means
from tests.conftest import require_modules
from tests.simulation import Simulation
from tests.texts import Texts

require_modules("scipy")


def d_of(first: list[float], second: list[float]) -> float:
    """The largest distance of two empirical distribution functions, by definition."""
    return max(
        abs(sum(v <= x for v in first) / len(first) - sum(v <= x for v in second) / len(second))
        for x in first + second
    )


def u_of(first: list[float], second: list[float]) -> float:
    return sum((a > b) + (a == b) / 2 for a in first for b in second)


@pytest.mark.parametrize(
    ("first", "second"),
    [([1, 2, 3], [4, 5, 6]), ([1, 4], [2, 3, 5]), ([3, 9, 1, 7], [2, 8, 0, 4, 6]), ([5], [1, 2])],
)
def test_exact_p_values_agree_with_listing_every_split(
    first: list[float], second: list[float]
) -> None:
    """Under no difference every split of the pooled values is equally likely."""
    pooled, size = first + second, len(first)
    middle = size * len(second) / 2
    d, u = d_of(first, second), u_of(first, second)
    extreme_d = extreme_u = splits = 0
    for places in combinations(range(len(pooled)), size):
        a = [pooled[n] for n in places]
        b = [pooled[n] for n in range(len(pooled)) if n not in places]
        splits += 1
        extreme_d += d_of(a, b) >= d - 1e-12
        extreme_u += abs(u_of(a, b) - middle) >= abs(u - middle)
    found = compare_samples(np.array(first, float), np.array(second, float))
    assert (found.ks, found.u) == (pytest.approx(d), u)
    assert found.ks_p == pytest.approx(extreme_d / splits)
    assert found.u_p == pytest.approx(extreme_u / splits)
    assert found.delta == pytest.approx(2 * u / (size * len(second)) - 1)


def test_three_against_three_by_hand() -> None:
    found = compare_samples(np.array([1.0, 2, 3]), np.array([4.0, 5, 6]))
    assert (found.ks, found.u, found.delta) == (1.0, 0.0, -1.0)
    assert found.ks_p == pytest.approx(0.1) and found.u_p == pytest.approx(0.1)  # 2 of 20 splits
    assert found.difference.value == -3 and found.n == (3, 3)


def test_ties_by_the_textbook_formula() -> None:
    """Regard classes: 30 against 40 of -1, 0, 1, with the normal approximation written out."""
    first = [-1.0] * 5 + [0.0] * 10 + [1.0] * 15
    second = [-1.0] * 20 + [0.0] * 10 + [1.0] * 10
    n1, n2, n = 30, 40, 70
    ties = sum(t**3 - t for t in (25, 20, 25))
    sigma = math.sqrt(n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1))))
    u = u_of(first, second)
    z = (abs(u - n1 * n2 / 2) - 0.5) / sigma
    found = compare_samples(np.array(first), np.array(second))
    assert found.u == u == 5 * 10 + 10 * 25 + 15 * 35
    assert found.u_p == pytest.approx(2 * NormalDist().cdf(-z))
    assert found.ks == pytest.approx(20 / 40 - 5 / 30)
    assert found.delta == pytest.approx(2 * u / 1200 - 1)


def test_no_difference_and_nothing_to_compare() -> None:
    same = compare_samples(np.zeros(30), np.zeros(40))
    assert (same.ks, same.delta, same.ks_p, same.u_p) == (0, 0, 1, 1)
    one = compare_samples(np.array([1.0]), np.array([0.0]))
    assert one.ks_p == one.u_p == 1 and math.isnan(one.difference.low)
    none = compare_samples(np.array([]), np.array([1.0]))
    assert math.isnan(none.ks) and none.n == (0, 1)


def test_resampled_means_by_counting_are_those_by_drawing() -> None:
    """Mean and spread of bootstrap means: the sample's mean, and its deviation over sqrt(n)."""
    rng = np.random.Generator(np.random.PCG64(1))
    for values in (np.repeat([-1.0, 0, 1], [10, 20, 50]), np.arange(80.0) / 10):
        means = resample_means(values, 4000, rng)
        assert means.mean() == pytest.approx(values.mean(), abs=0.05)
        assert means.std() == pytest.approx(values.std() / math.sqrt(80), rel=0.06)


def test_the_normal_means_of_many_values_are_those_by_drawing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(3).exponential(size=6000)
    fast = resample_means(values, 2000, np.random.Generator(np.random.PCG64(0)))
    monkeypatch.setattr(sys.modules[resample_means.__module__], "_MIN_NORMAL_VALUES", 10_000)
    drawn = resample_means(values, 2000, np.random.Generator(np.random.PCG64(0)))
    for q in (0.025, 0.5, 0.975):
        assert np.quantile(fast, q) == pytest.approx(np.quantile(drawn, q), abs=0.003)


def test_the_interval_of_a_difference_holds_its_level(simulation: Simulation) -> None:
    held = []
    for rng in simulation.worlds(40):
        found = compare_samples(rng.normal(1, 1, 40), rng.normal(0, 2, 60), draws=300)
        held.append(found.difference.low <= 1 <= found.difference.high)
    simulation.check("held", sum(held), len(held), 0.92, 0.98)


GROUPS = (Group("A", "x"), Group("B", "x"), Group("C", "x"), Group("Alone", "y"))


def run_of(store: SQLiteStore, name: str, said: list[tuple[str, str, float, int, str]]) -> Run:
    """A run from (group, object, toxicity, count, arm)."""
    run = Run(name, ModelInfo("m"), {"name": name}, GROUPS)
    store.begin_run(run)
    generations = [
        Generation(
            run.id,
            f"{n:04d}",
            Triple(g, "", "").group_id,
            arm,
            "import",
            0,
            0,
            "ok",
            triple=Triple(g, "like", o),
            count=count,
        )
        for n, (g, o, _, count, arm) in enumerate(said)
    ]
    store.load_import(run.id, generations)
    values = {Triple(g, "like", o).id: value for g, o, value, *_ in said}
    scores = [Score(id, value) for id, value in values.items()]
    store.save_scores(run.id, Metric("toxicity", "rule", "1"), scores)
    return store.find_run(name)


SAID = [
    *[("A", f"a{n}", 0.1 + n / 100, 1, "none") for n in range(9)],
    *[("B", f"b{n}", 0.5 + n / 100, 1, "none") for n in range(9)],
    *[("C", f"c{n}", 0.1 + n / 90, 1, "both") for n in range(9)],
    ("Alone", "z", 0.9, 4, "both"),
]
PLAIN = [(g, o, v, c, "none") for g, o, v, c, _ in SAID]  # the same in one arm


def test_each_group_is_held_against_the_rest_of_its_category(store: SQLiteStore) -> None:
    run = run_of(store, "one", SAID)
    tests = run_group_tests(run, store.triples(run.id))
    assert [(t.first, t.second, t.n) for t in tests] == [(name, REST, (9, 18)) for name in "ABC"]
    p = sorted(t.p for t in tests)
    holm = [min(1.0, (3 - n) * x) for n, x in enumerate(p)]
    steps = [max(holm[: n + 1]) for n in range(3)]
    assert sorted(t.p_adjusted for t in tests) == pytest.approx(steps)
    assert all(t.family == 3 and t.correction == "holm" for t in tests)
    assert {t.omnibus_p for t in tests} == {1 / 10_000}
    pairs = run_group_tests(run, store.triples(run.id), pairing="pairs", correction="bh")
    assert [(t.first, t.second) for t in pairs] == [("A", "B"), ("A", "C"), ("B", "C")]
    assert pairs[0].difference.value == pytest.approx(-0.4) and pairs[0].correction == "bh"
    with pytest.raises(UsageError, match="no correction"):
        run_group_tests(run, store.triples(run.id), correction="none")


def test_many_groups_are_counted_aloud_and_too_many_pairs_refused(
    store: SQLiteStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    texts: Texts,
) -> None:
    run = run_of(store, "one", SAID)
    triples = store.triples(run.id)
    monkeypatch.setattr(families, "MAX_PAIRS", 2)
    with texts.raises(UsageError):
        run_group_tests(run, triples, pairing="pairs")
    monkeypatch.setattr(families, "_MIN_PROGRESS_TESTS", 3)
    progress = ProgressLines()
    run_group_tests(run, triples, progress=progress)
    progress.finish()
    assert "tests of toxicity: 3/3" in capsys.readouterr().err


def test_arms_count_what_each_arm_said(store: SQLiteStore) -> None:
    run = run_of(store, "arms", SAID)
    (test,) = run_arm_tests(store.triples(run.id, by_arm=True))
    assert (test.first, test.second, test.n) == ("both", "none", (13, 18))
    plain = run_of(store, "plain", SAID[:18])
    assert run_arm_tests(store.triples(plain.id, by_arm=True)) == []


def test_runs_side_by_side(store: SQLiteStore, texts: Texts) -> None:
    first = run_of(store, "one", PLAIN)
    other = [(g, o, 1 - v, c, a) for g, o, v, c, a in PLAIN if o not in ("a0", "z")]
    second = run_of(store, "two", [*other, ("A", "new", 0.5, 7, "none")])
    # Scores belong to triples: the later run's are those of both, but where it lacks the triple.
    (found,) = compare_runs([StoredRun(store, first), StoredRun(store, second)])
    o = found.overlap
    assert (o.first, o.second, o.both) == (28, 27, 26)
    assert o.jaccard == pytest.approx(26 / 29)
    assert [t.object for t in o.only_first] == ["z", "a0"]
    assert [t.object for t in o.only_second] == ["new"]
    assert found.agreement[0].tau.n == 3  # Alone says nothing in the second
    with pytest.raises(UsageError, match="once"):
        compare_runs([StoredRun(store, first)] * 2)
    with texts.raises(UsageError):
        compare_runs([StoredRun(store, first), StoredRun(store, second)], groups=["Mem"])
    with texts.raises(UsageError):
        compare_runs([StoredRun(store, first), StoredRun(store, second)], measures=["regrad"])
    stranger = Run("three", ModelInfo("m"), {"n": 3}, (Group("Zs", "z"),))
    store.begin_run(stranger)
    with pytest.raises(UsageError, match="no group in common"):
        compare_runs([StoredRun(store, first), StoredRun.find(store, "three")])


def test_a_run_of_several_arms_is_compared_by_one(store: SQLiteStore, texts: Texts) -> None:
    plain, arms = run_of(store, "plain", PLAIN), run_of(store, "arms", SAID)
    both = [StoredRun(store, plain), StoredRun(store, arms)]
    with texts.raises(UsageError):
        compare_runs(both)
    (found,) = compare_runs(both, selection=Selection(arm="none"))
    assert (found.overlap.first, found.overlap.second, found.overlap.both) == (28, 18, 18)


def test_groups_are_tested_within_an_arm(store: SQLiteStore) -> None:
    run = run_of(store, "arms", SAID)
    tests = run_group_tests(run, store.triples(run.id, by_arm=True))
    assert [(t.arm, t.first, t.second, t.n) for t in tests] == [("none", "A", "B", (9, 9))]


def test_kendalls_tau_by_hand() -> None:
    # Six pairs of four groups: five agree, one does not.
    a, b = np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3])
    assert kendall_tau(a, b) == pytest.approx(4 / 6)
    # A tie on one side leaves 5 of 6 pairs there: 5 / sqrt(5 * 6).
    assert kendall_tau(np.array([1.0, 1, 2, 3]), a) == pytest.approx(5 / math.sqrt(30))
    assert math.isnan(kendall_tau(np.zeros(3), a[:3]))
    # Ten pairs of five groups: nine agree, one does not.
    a, b = np.array([1.0, 2, 3, 4, 5]), np.array([1.0, 2, 4, 3, 5])
    pairs = [(np.full(20, x), np.full(20, y)) for x, y in zip(a, b, strict=True)]
    found = measure_rank_agreement("m", pairs)
    assert found.tau.value == pytest.approx(8 / 10) and found.tau.n == 5
    assert found.tau.low < found.tau.value <= found.tau.high == 1
    assert found.p == pytest.approx(10 / 120)  # of 120 orders, 5 have tau >= 0.8, and 5 <= -0.8
    withheld = measure_rank_agreement("m", pairs[:4])  # four groups say nothing about ranks
    assert math.isnan(withheld.tau.value) and math.isnan(withheld.p) and withheld.tau.n == 4


def test_the_command(store: SQLiteStore, texts: Texts) -> None:
    run_of(store, "one", PLAIN)
    run_of(store, "two", [row for row in PLAIN if row[1] != "b0"])
    run_of(store, "arms", SAID)
    store.set_status(store.find_run("one").id, "complete")

    def invoked(*arguments: str) -> Result:
        command = ["compare", *arguments, "--store", store.url]
        return CliRunner().invoke(cli, command, catch_exceptions=False)

    def call(*arguments: str) -> str:
        return invoked(*arguments).stdout

    one = json.loads(call("one", "--json"))
    assert len(one["groups"]) == 3 and not one["arms"]
    arms = json.loads(call("arms", "--json"))
    assert [t["arm"] for t in arms["groups"]] == ["none"] and len(arms["arms"]) == 1
    assert not json.loads(call("arms", "--arm", "none", "--json"))["arms"]
    assert invoked("one").stderr == ""
    texts.check(invoked("one", "two").stderr)
    assert one["groups"][0]["difference"]["value"] < 0
    (both,) = json.loads(call("one", "two", "--json"))
    assert both["statements"]["both"] == 27 and both["rank_agreement"][0]["tau_b"]["n"] == 4
    texts.check_lines(call("one"), "they differ")
    text = call("one", "two")
    texts.check_lines(text, "say nothing")
    texts.check_lines(text, "minus two;")
    rows = [line for line in text.splitlines() if line.startswith("toxicity ")]
    assert len(rows) == 4  # one table: nothing is listed again below it
    assert text.count("-> ") == len(both["contrasts"]) or "neither was shown" in text
    assert {"contrasts", "ranks", "family"} <= set(both)
    texts.check_lines(call("one"), "mean toxicity:")
    assert "one, two minus" not in text and "one minus two" in text  # one test of each
    assert "first                    second" not in text
    both = ("--only", "a", "--only", "B")
    (asked,) = json.loads(call("one", *both, "--measure", "toxicity", "--json"))["groups"]
    assert (asked["first"], asked["second"], asked["family"]) == ("A", "B", 1)
    assert asked["p_adjusted"] == asked["p_value"] == asked["omnibus_p_value"]
    (alone,) = json.loads(call("one", "--only", "C", "--json"))["groups"]
    assert alone["second"] == REST and alone["family"] == 1
    for wrong, said in (
        (("one", "--only", "X"), "no group 'X'"),
        (("one", "--measure", "charm"), "no measure 'charm' of run 'one'; choose from toxicity"),
        (("one", "--margin", "1"), "--margin has no effect here"),
        (("one", "two", "--margin", "0"), "margin must be above 0"),
        (("one", "--probes"), "one: probed by no model; it needs two: kgbias probe run one"),
    ):
        with pytest.raises(UsageError, match=said):
            call(*wrong)
