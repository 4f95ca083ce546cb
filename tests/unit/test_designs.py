"""Resampling as a sample was drawn, against what is worked out by hand or listed in full."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kgbias.compare.two_sample import mean_difference
from kgbias.graph.draws import Draws
from kgbias.graph.row_types import DrawRow
from kgbias.graph.selection import Selection, select_statements
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, GroupScore, Metric, Run, Score, Triple, TripleView
from kgbias.measure.figures import (
    describe_intervals,
    means_by_prompt_type,
    read_figures,
    update_run_figures,
)
from kgbias.models.base import ModelInfo
from kgbias.report.run_data import RunData
from kgbias.stats.designs import Design, draw_mean_effects, resample_effects
from kgbias.stats.estimate import parse_covered_variances
from kgbias.stats.inference import STATISTICS, Sample, bootstrap, mean, total
from tests.simulation import Simulation
from tests.texts import Texts

ints = lambda *x: np.array(x, dtype=np.int64)  # noqa: E731


def sample(values: list[float], design: Design) -> Sample:
    n = len(values)
    return Sample(np.array(values), np.ones(n, dtype=np.int64), design, np.arange(n))


def test_a_total_varies_as_much_as_its_clusters_do() -> None:
    """Two strata, of cluster totals 3, 5 and 1, 4, 10: the variance of the whole is the sum over
    strata of n / (n - 1) times the squared deviations, 2 (1 + 1) + 3/2 (16 + 1 + 25) = 67."""
    design = Design(ints(0, 0, 1, 2, 3, 4, 4), ints(0, 0, 1, 1, 1))
    values = [1.0, 2, 5, 1, 4, 7, 3]
    totals = np.array([3.0, 5, 1, 4, 10])
    first, second, by_hand = totals[:2], totals[2:], 67
    listed = []
    for a in itertools.product(range(2), repeat=1):
        for b in itertools.product(range(3), repeat=2):
            listed.append(2 * first[list(a)].sum() + 1.5 * second[list(b)].sum())
    assert np.var(listed) == pytest.approx(by_hand)
    drawn = np.concatenate(list(design.weights(40_000, np.random.default_rng(0), 7)))
    assert (drawn @ totals).var() == pytest.approx(by_hand, rel=0.03)
    found = bootstrap(sample(values, design), total, draws=40_000)
    assert (found.value, found.n) == (23.0, 7)
    assert found.low == pytest.approx(np.quantile(listed, 0.025), abs=2)


def test_chunks_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    design = Design(np.arange(30) // 2, np.arange(15) // 5)
    values = sample([float(n % 7) for n in range(30)], design)
    first = bootstrap(values, mean)
    assert bootstrap(values, mean) == first != bootstrap(values, mean, seed=1)
    monkeypatch.setattr("kgbias.stats.designs._MAX_CHUNK_WEIGHTS", 30 * 7)
    chunked = bootstrap(values, mean)
    assert (chunked.low, chunked.high) == pytest.approx((first.low, first.high), abs=0.3)


def test_lone_clusters_are_drawn_together() -> None:
    alone = Design(ints(0, 1, 2, 3), ints(0, 1, 2, 2))
    (weights,) = alone.weights(500, np.random.default_rng(0), 4)
    assert set(weights[:, 0] + weights[:, 1]) == {2.0} and weights[:, 0].std() > 0
    one = Design(ints(0, 1, 1, 2), ints(0, 1, 1))
    (weights,) = one.weights(500, np.random.default_rng(0), 4)
    assert weights.sum(axis=1) == pytest.approx(3) and weights[:, 0].std() > 0
    single = bootstrap(sample([1.0, 2.0], Design(ints(0, 0), ints(0))), mean)
    assert single.value == 1.5 and math.isnan(single.low)


def test_an_empty_place_counts_for_totals() -> None:
    """Ten places of which five yield 1: the total varies as a binomial number, though every value
    is the same."""
    design = Design(np.arange(10), np.zeros(10, dtype=np.int64))
    values = Sample(np.ones(5), np.ones(5, dtype=np.int64), design, np.arange(5))
    found = bootstrap(values, total, draws=4000)
    assert found.value == 5 and 1.5 < found.low < 3 and 7 < found.high < 8.5
    # That all five had one label does not show that all would (Agresti and Coull 1998).
    always = bootstrap(values, mean)
    assert (always.value, always.high) == (1.0, 1.0) and 0.5 < always.low < 0.7


@pytest.mark.parametrize("name", ["mean", "median", "q1", "q3"])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), None])
def test_no_interval_leaves_what_is_possible(name: str, bounds: tuple[float, float] | None) -> None:
    """Wordings of which one is far off add more than there is room for below the others' values."""
    wordings = np.arange(48) % 3
    values = np.where(wordings == 2, 0.9, 0.02) + np.arange(48) / 1000
    design = Design(np.arange(48), np.zeros(48, dtype=np.int64), {"wordings": wordings})
    own = replace(sample(list(values), design), bounds=bounds)
    low, high = bounds or (values.min(), values.max())
    found = bootstrap(own, STATISTICS[name])
    if bounds is None and name == "mean":
        assert found.low < low < found.value < found.high  # a mean may lie beyond what was seen
        return
    if name == "mean":
        assert not found.has_interval  # it would hold all that is possible
    else:
        assert low <= found.low <= found.value <= found.high <= high
        assert min(found.low - low, high - found.high) == 0  # without a limit it would be beyond
    other = replace(own, values=np.full(48, 0.95))
    apart = mean_difference(own, other)
    least, most = bounds or (0.02, 0.95)
    assert least - most <= apart.low < apart.high <= most - least


def test_the_effects_of_units_by_hand() -> None:
    rng = np.random.default_rng(0)
    assert not resample_effects(np.array([0.1, 0.2, 0.3]), np.full(3, 0.02), 100, rng).any()
    # Between units 1, within 0.25: 0.75 is theirs, a third of it the variance of their mean.
    drawn = resample_effects(np.array([0.0, 1.0, 2.0]), np.full(3, 0.25), 60_000, rng)
    assert drawn.var() == pytest.approx(0.75 / 3, rel=0.03)
    assert not resample_effects(np.array([1.0, math.nan]), np.full(2, 0.1), 10, rng).any()


def test_the_likely_effects_of_three_units_by_hand() -> None:
    """Between units 1, within 0.25, of which 0.6 is taken off: 0.85 / 3 is the variance of the mean
    of three; of a t of two degrees of freedom, 4.303 is the 97.5th percentile."""
    rng = np.random.default_rng(0)
    drawn = draw_mean_effects(np.array([0.0, 1.0, 2.0]), np.full(3, 0.25), 60_000, rng)
    assert np.quantile(drawn, 0.975) == pytest.approx(4.303 * math.sqrt(0.85 / 3), rel=0.05)
    assert not draw_mean_effects(np.array([0.1, 0.2, 0.3]), np.full(3, 0.02), 100, rng).any()
    assert not draw_mean_effects(np.array([1.0, math.nan]), np.full(2, 0.1), 10, rng).any()


def test_three_wordings_hold_the_mean_of_all(simulation: Simulation) -> None:
    """Where wordings matter as much as the statements of one: resampling three falls short."""
    held = []
    wordings = np.arange(60) % 3
    design = Design(np.arange(60), np.zeros(60, dtype=np.int64), {"wordings": wordings})
    for rng in simulation.worlds(40):
        values = rng.normal(0, 1, 60) + rng.normal(0, math.sqrt(4 / 20), 3)[wordings]
        e = bootstrap(sample(list(values), design), mean, draws=300)
        held.append(e.low <= 0 <= e.high)
    simulation.check("held", sum(held), len(held), 0.92, 0.98)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_intervals_hold_where_independent_ones_do_not(
    statistic: str, simulation: Simulation
) -> None:
    """Clusters of four that share half of their variance, in two strata, and six wordings."""
    clusters, strata = np.arange(240) // 4, np.arange(60) // 30
    wordings = np.arange(240) % 6
    held = []
    for trial, rng in enumerate(simulation.worlds(40)):
        values = (
            rng.normal(0, 0.7, 60)[clusters]
            + rng.normal(0, 0.7, 240)
            + rng.normal(0, 0.4, 6)[wordings] * (trial % 2)
            + np.array([-1.0, 1.0])[strata][clusters]
        )
        levels = {"wordings": wordings} if trial % 2 else {}
        known = sample(list(values), Design(clusters, strata, levels))
        both = (known, replace(known, design=None))
        intervals = [bootstrap(s, STATISTICS[statistic], draws=200) for s in both]
        held.append([e.low <= 0 <= e.high for e in intervals])
    dependent, independent = np.sum(held, axis=0)
    simulation.check("held", dependent, len(held), 0.92, 0.98)
    simulation.check("held as if independent", independent, len(held), 0.0, 0.88)


GROUPS = (Group("Women", "gender"), Group("Men", "gender"))


def crawled(store: SQLiteStore, kind: str = "crawl") -> StoredRun:
    """Two groups; four initial prompts of one predicate, then six that ask for two predicates (two
    texts each), then three in which the model names it; the last place stays empty."""
    run = Run("r", ModelInfo("m"), {"kind": kind}, GROUPS, kind=kind)
    store.begin_run(run)
    made = []
    for g in GROUPS:
        rows = [("initialise", 0, f"love/{n:03d}", "love", "P love") for n in range(4)]
        rows += [("object", 1, f"{n:03d}", "fear" if n < 3 else "eat", f"{n} ") for n in range(6)]
        rows += [("predicate", 1, f"{n:03d}", "hold", f"{n} ?") for n in range(3)]
        for n, (strategy, round, place, predicate, prompt) in enumerate(rows):
            wording = f"{strategy}@1.{n % 2 + 1}:completion"
            path = f"none/{strategy}/{round}/{g.name}/{place}"
            said = Triple(g.name, predicate, f"thing {n}") if n < 12 else None
            if n == 5:  # a first attempt that yielded nothing
                made.append(
                    Generation(
                        run.id,
                        f"{path}#0",
                        g.id,
                        "none",
                        strategy,
                        round,
                        0,
                        "refused",
                        template=wording,
                        prompt=prompt,
                    )
                )
            made.append(
                Generation(
                    run.id,
                    f"{path}#{n == 5:d}",
                    g.id,
                    "none",
                    strategy,
                    round,
                    int(n == 5),
                    "ok" if said else "refused",
                    template=wording,
                    prompt=prompt,
                    triple=said,
                    shown=() if n != 7 else (Triple(g.name, "eat", "thing 7").id,),
                )
            )
    store.load_import(run.id, made)
    scores = [Score(t.id, float(t.object[6:]) / 12) for t in store.triples(run.id)]
    store.save_scores(run.id, Metric("toxicity", "x", "1"), scores)
    return StoredRun(store, run)


def test_an_empty_place_is_its_last_attempt_however_many_there_were() -> None:
    """The wording of the eleventh, though its path comes before that of the third."""
    rows = [
        DrawRow(
            f"{place}.{attempt}",
            f"none/predicate/1/Women/{place:03d}#{attempt}",
            GROUPS[0].id,
            "none",
            "predicate",
            1,
            attempt,
            f"predicate@1.{2 if attempt == 10 else 1}:completion",
            f"P {place}",
            "t" if place == 0 and attempt == 10 else None,
            "p" if place == 0 and attempt == 10 else None,
            int(place == 0 and attempt == 10),
        )
        for place in range(3)
        for attempt in range(11 if place < 2 else 1)
    ]
    scores = {"toxicity": Score("t", 0.1)}
    said = TripleView("t", GROUPS[0].id, "Women", "hold", "hands", 1, scores, "none")
    design = Draws.from_rows(rows).sample([said], "toxicity").design
    assert design is not None and design.levels["wordings"].tolist() == [1, 1, 0]


def test_the_design_of_a_crawl(store: SQLiteStore) -> None:
    run = crawled(store)
    counted = select_statements(run)
    women = [t for t in counted.triples if t.group == "Women"]
    found = Draws.from_run(run, counted).sample(women, "toxicity")
    assert found.design is not None and found.places is not None and found.n == 12
    by_value = dict(zip(found.values * 12, found.design.clusters[found.places], strict=True))
    ordered = [cluster for _, cluster in sorted(by_value.items())]
    initial, fear, eat, free = ordered[:4], ordered[4:7], ordered[7:10], ordered[10:]
    assert len(set(initial)) == 4  # one prompt that every crawl asks: independent answers
    assert len(set(fear)) == len(set(eat)) == 1 and fear[0] != eat[0]
    assert len(set(free)) == 2
    assert len(found.design.clusters) == 13  # the empty place too
    strata = found.design.strata
    assert len(set(strata)) == 3
    assert strata[fear[0]] == strata[eat[0]] != strata[free[0]]
    assert found.design.covers == ("statements", "wordings")


def test_answers_to_one_prompt_are_a_cluster(store: SQLiteStore) -> None:
    """Two prompts of each strategy, three answers to each; one answer has nothing."""
    run = Run("r", ModelInfo("m"), {"kind": "crawl"}, GROUPS[:1])
    store.begin_run(run)
    made = []
    for strategy, round, stratum, predicate in (
        ("initialise", 0, "love/", "love"),
        ("object", 1, "", "fear"),
        ("predicate", 1, "", "hold"),
    ):
        for n in range(6):
            path = f"none/{strategy}/{round}/Women/{stratum}{n // 3:03d}.{n % 3}#0"
            said = None if n == 4 else Triple("Women", predicate, f"{strategy} {n}")
            made.append(
                Generation(
                    run.id,
                    path,
                    GROUPS[0].id,
                    "none",
                    strategy,
                    round,
                    0,
                    "ok" if said else "refused",
                    template=f"{strategy}@1:completion",
                    prompt=f"{strategy} {n // 3}",
                    triple=said,
                )
            )
    store.load_import(run.id, made)
    scores = [Score(t.id, float(t.object[-1]) / 6) for t in store.triples(run.id)]
    store.save_scores(run.id, Metric("toxicity", "x", "1"), scores)
    read = StoredRun(store, run)
    counted = select_statements(read)
    found = Draws.from_run(read, counted).sample(counted.triples, "toxicity")
    assert found.design is not None and found.places is not None
    strata = found.design.strata[found.design.clusters]
    sizes = [
        sorted(np.unique(found.design.clusters[strata == s], return_counts=True)[1].tolist())
        for s in range(3)
    ]
    assert sizes == [[3, 3]] * 3


def test_both_groups_together_are_strata_of_their_own(store: SQLiteStore) -> None:
    run = crawled(store)
    counted = select_statements(run)
    both = Draws.from_run(run, counted).sample(counted.triples, "toxicity")
    assert both.design is not None and len(both.design.clusters) == 26
    assert len(set(both.design.strata)) == 6
    assert both.design.covers == ("statements", "wordings")
    assert both.mean == pytest.approx(sum(range(12)) / 144)


def test_figures_say_what_their_interval_covers(store: SQLiteStore) -> None:
    run = crawled(store)
    update_run_figures(run)
    mean_of = {s.group_id: s for s in run.find_all(GroupScore) if s.measure == "toxicity_mean"}
    figure = mean_of[GROUPS[0].id]
    assert parse_covered_variances(figure.method) == ("statements", "wordings")
    assert figure.n == 12 and not figure.has_interval  # too few for how rare high values are
    assert "prompts and rounds" in figure.method


def test_the_report_says_how_many_wordings_are_behind_a_mean(
    store: SQLiteStore, texts: Texts
) -> None:
    (arm,) = RunData(crawled(store)).arms
    said = arm.wordings_note(GROUPS[0].category, "toxicity")
    texts.check(said)
    assert arm.wordings_note("no such category", "toxicity") == ""


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ([[0, 0], [0]], ""),
        (
            [[0, 1], [0]],
            "are 1 to 2 wordings of the prompts; its interval allows for other "
            "wordings if it has several, and",
        ),
        (
            [[0, 1], [1, 0]],
            "are 2 wordings of the prompts; its interval allows for other wordings, and",
        ),
    ],
)
def test_a_mean_of_one_wording_allows_for_no_other(
    store: SQLiteStore, places: list[list[int]], said: str
) -> None:
    (arm,) = RunData(crawled(store)).arms
    design = SimpleNamespace(levels={"wordings": np.array([0, 1])})
    samples = iter(
        SimpleNamespace(design=design, places=np.array(own), values=own) for own in places
    )
    draws = SimpleNamespace(stratified_sample=lambda *_: SimpleNamespace(sample=next(samples)))
    arm.run_data.__dict__["draws"] = draws
    found = arm.wordings_note(GROUPS[0].category, "toxicity")
    assert (said in found) if said else found == ""


def test_each_figure_is_also_of_what_the_model_chose_and_at_one_mix(
    store: SQLiteStore, texts: Texts
) -> None:
    """Women are also asked three times more about love, of which everything is most toxic."""
    run = crawled(store)
    women = GROUPS[0]
    more = [
        Generation(
            run.id,
            f"none/initialise/0/Women/love/1{n:02d}#0",
            women.id,
            "none",
            "initialise",
            0,
            0,
            "ok",
            prompt="P love",
            triple=Triple("Women", "love", f"thing {n}"),
        )
        for n in range(12, 15)
    ]
    store.load_import(run.id, [*store.generations(run.id), *more])
    metric = Metric("toxicity", "x", "1")
    store.save_scores(run.id, metric, [Score(g.triple.id, 1.0) for g in more if g.triple])
    counted = select_statements(run)
    draws = Draws.from_run(run, counted)
    own = [t for t in counted.triples if t.group_id == women.id]
    asked = draws.stratified_sample(own, "toxicity")
    assert asked.sizes() == {"given love": 7, "another given": 6, "chosen": 2}
    assert asked.prompted_count == 13 and set(asked.blocks) == {
        "initialise/given love",
        "object/another given",
        "predicate/chosen",
    }
    update_run_figures(run)
    found = {(s.group_id, s.measure): s for s in run.find_all(GroupScore)}
    chosen = found[women.id, "toxicity_chosen"]
    assert chosen.n == 2 and chosen.value == pytest.approx((10 + 11) / 24)
    texts.check_lines(chosen.method, "predicate; covers")
    # Both groups have 27 statements: 11 of love, 12 of another predicate, 4 chosen.
    by_hand = 11 * ((0 + 1 + 2 + 3) / 12 + 3) / 7 + 12 * (4 + 5 + 6 + 7 + 8 + 9) / 72 + 4 * 21 / 24
    standard = found[women.id, "toxicity_standardised"]
    assert standard.value == pytest.approx(by_hand / 27) and standard.n == 15
    texts.check_lines(standard.method, "one mix")
    assert not standard.has_interval
    forms = {m.form: m for m in means_by_prompt_type(run) if m.group == "Women"}
    assert {form: m.n for form, m in forms.items()} == asked.sizes()
    assert forms["chosen"].value == chosen.value and forms["given love"].value > 0.4
    assert not means_by_prompt_type(run, measures=["regard"])
    raw = found[women.id, "toxicity_mean"]
    assert raw.value == pytest.approx(8.5 / 15)
    texts.check_lines(raw.method, "prompt gave")


def test_an_initial_prompt_without_a_statement_makes_no_cluster_of_the_others(
    store: SQLiteStore,
) -> None:
    run = crawled(store)
    empty = Generation(
        run.id,
        "none/initialise/0/Women/love/100#0",
        GROUPS[0].id,
        "none",
        "initialise",
        0,
        0,
        "refused",
        prompt="P love",
    )
    store.load_import(run.id, [*store.generations(run.id), empty])
    counted = select_statements(run)
    own = [t for t in counted.triples if t.group == "Women" and t.predicate == "love"]
    found = Draws.from_run(run, counted).sample(own, "toxicity")
    assert found.design is not None and found.places is not None
    assert len(set(found.design.clusters[found.places])) == 4


def test_echoes_leave_their_places_empty(store: SQLiteStore) -> None:
    run = crawled(store)
    counted = select_statements(run, Selection(exclude_echoes=True))
    found = Draws.from_run(run, counted).sample(counted.triples, "toxicity")
    assert found.n == 22 and found.design is not None and len(found.design.clusters) == 26
    figures = read_figures(run, Selection(exclude_echoes=True))
    assert {s.n for s in figures if s.measure == "toxicity_mean"} == {11}


def test_an_import_falls_back_to_its_statements(store: SQLiteStore) -> None:
    run = crawled(store, "import")
    draws = Draws.from_run(run, select_statements(run))
    assert not draws.is_known
    assert draws.sample(select_statements(run).triples, "toxicity").design is None
    update_run_figures(run)
    methods = {s.method for s in run.find_all(GroupScore)}
    assert {parse_covered_variances(m) for m in methods} == {("statements",)}
    assert all("taken for independent" in m for m in methods)
    names = {s.measure for s in run.find_all(GroupScore)}
    assert not [name for name in names if name.endswith(("_chosen", "_standardised"))]


def test_how_intervals_were_made_is_said_of_each_measure_and_of_no_single_group() -> None:
    t, percentiles = "bootstrap-t over prompts", "percentile bootstrap over prompts"
    made = {
        "acceptability_mean": f"{t}; in 87 of 212 statements the prompt gave the predicate; covers",
        "toxicity_mean": f"{t}; in 3 of 9 statements the prompt gave the predicate; covers",
        "toxicity_chosen": f"{t}; where the model chose the predicate; covers",
        "toxicity_median": f"{percentiles}; covers",
        "overall_regard": f"{percentiles}; in 3 of 9 statements the prompt gave it; covers",
        "regard_chosen": f"{percentiles}; where the model chose the predicate; covers",
        "regard_name_effect": "12 neutral statements with each name in turn",
        "sc_weat": "SC-WEAT",
    }
    figures = [GroupScore(0.5, 0.4, 0.6, 9, "g", name, how) for name, how in made.items()]
    assert describe_intervals(figures) == {
        f"{t}; covers": ["means of toxicity", "acceptability"],
        f"{percentiles}; covers": ["regard", "median toxicity"],
    }
    assert (
        describe_intervals(
            [GroupScore(1, math.nan, math.nan, 9, "g", "overall_regard", percentiles)]
        )
        == {}
    )
