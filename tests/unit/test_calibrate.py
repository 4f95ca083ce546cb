"""Calibration rows on runs whose answer is known."""

from random import Random

import pytest

from kgbias.calibrate import Calibration
from kgbias.calibrate.calibration_rows import (
    entropy_rank_correlation,
    false_positive_rate,
    in_world,
    null_false_positives,
    probability_found,
    regard_rank_correlation,
    topic_rank_correlation,
    well_formed,
)
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, Metric, Run, Score, Triple
from kgbias.models.base import ModelInfo
from kgbias.reference import load_truth
from tests.conftest import require_modules
from tests.texts import Texts

require_modules("scipy")

TRUTH = load_truth()


def world_run(store: SQLiteStore, *, shuffled: bool = False, each: int = 150) -> Calibration:
    """A run that says exactly what the world plants, or, shuffled, what it plants of others."""
    groups = tuple(Group(name, g.category) for name, g in TRUTH.groups.items())
    run = Run("world", ModelInfo("world"), {"temperature": 1.0}, groups)
    store.begin_run(run)
    rng = Random(0)
    names = list(TRUTH.groups)
    beliefs = dict(zip(names, rng.sample(names, len(names)) if shuffled else names, strict=True))
    generations = []
    for group in groups:
        joint = TRUTH.joint_distribution(beliefs[group.name])
        for n, (predicate, object) in enumerate(rng.choices(list(joint), joint.values(), k=each)):
            generations.append(
                Generation(
                    run.id,
                    f"{group.name}/{n}",
                    group.id,
                    "none",
                    "predicate",
                    1,
                    0,
                    "ok",
                    triple=Triple(group.name, predicate, object),
                )
            )
    store.load_import(run.id, generations)
    regard, toxicity = [], []
    for t in store.triples(run.id):
        said = TRUTH.find_statement(t.predicate, t.object)
        assert said is not None
        label = TRUTH.regard_of[TRUTH.statements[said]]
        value = {"positive": 0.9, "negative": -0.9}.get(label, 0.0)
        regard.append(Score(t.id, value, label))
        toxicity.append(Score(t.id, 0.5 - value / 2))
    store.save_scores(run.id, Metric("regard", "truth", "1"), regard)
    store.save_scores(run.id, Metric("toxicity", "truth", "1"), toxicity)
    return Calibration(TRUTH, StoredRun(store, run))


def test_a_run_that_says_the_truth_passes(store: SQLiteStore, texts: Texts) -> None:
    c = world_run(store)
    assert well_formed(c).estimate.value == 1
    assert in_world(c).estimate.value == 1
    assert topic_rank_correlation(c).estimate.value > 0.9  # the noise of 150 draws
    assert regard_rank_correlation(c).estimate.value > 0.97
    assert null_false_positives(c).estimate.value <= 0.25
    texts.check(null_false_positives(c).target)
    found = probability_found(c).estimate
    assert 0.6 < found.low < found.value < found.high < 1


def test_a_run_that_mixes_the_groups_up_does_not(store: SQLiteStore) -> None:
    c = world_run(store, shuffled=True, each=600)
    assert in_world(c).estimate.value < 0.95  # the signatures of others are not true of a group
    assert regard_rank_correlation(c).estimate.value < 0.6
    assert null_false_positives(c).estimate.value >= 0.5


def test_relative_entropy_ranks_the_groups_where_there_is_enough_to_read(
    store: SQLiteStore,
) -> None:
    c = world_run(store, each=1500)
    row = entropy_rank_correlation(c)
    assert row.estimate.value > 0.9 and row.estimate.n == len(TRUTH.groups)
    mean, low = c.entropy_ceiling
    assert 0.9 < mean <= 1 and 0.8 < low < mean
    for pairs in c.relative_entropies.values():
        assert abs(pairs[:, 0] - pairs[:, 1]).max() < 0.08  # bits, of about 0.1 to 1.0


def test_the_tests_hold_their_level(store: SQLiteStore) -> None:
    row = false_positive_rate(world_run(store))
    assert row.estimate.n == 4 * 250 * len(TRUTH.nulls)
    # Kolmogorov-Smirnov stays far below its level where, as here, scores have three values.
    assert 0.015 <= row.estimate.value <= 0.055


def test_coverage_is_the_planted_probability_of_what_was_found(store: SQLiteStore) -> None:
    c = world_run(store, each=1)
    name = next(iter(c.by_group))
    masses = []
    for group, triples in c.by_group.items():
        ((t),) = triples
        masses.append(TRUTH.joint_distribution(group)[t.predicate, t.object])
    assert name and probability_found(c).estimate.value == pytest.approx(sum(masses) / len(masses))


def test_what_no_crawl_changes_counts_once() -> None:
    """Of several crawls a row of the model is that of one, not several times its cases."""
    from kgbias.calibrate.calibration_rows import RowResult
    from kgbias.calibrate.run import _combine_results
    from kgbias.stats.inference import proportion

    of_model = RowResult("beliefs", "beliefs", "", proportion(9, 10), of_model=True)
    of_crawls = RowResult("true", "true", "", proportion(9, 10))
    assert _combine_results([of_model] * 3) == of_model
    assert _combine_results([of_crawls] * 3).estimate.n == 30
