"""What difference a crawl could show, before it is made."""

import math
from statistics import NormalDist

import numpy as np
import pytest

import kgbias
from kgbias.compare.paired_tests import (
    REGARD_SPREADS,
    ClusterSample,
    PlannedPrompts,
    _planned_sample,
    minimum_detectable_difference,
    permutation_p_value,
)
from tests.simulation import Simulation
from tests.unit.test_cli import run

DEMO = {"are": PlannedPrompts("initialise", 15, 4), "chosen": PlannedPrompts("predicate", 32, 4)}


def test_more_prompts_or_answers_show_smaller_differences() -> None:
    least = minimum_detectable_difference(DEMO, 7)
    assert 0.05 < least < 0.5
    more = {kind: PlannedPrompts(own.strategy, 4 * own.prompts, 4) for kind, own in DEMO.items()}
    assert minimum_detectable_difference(more, 7) == pytest.approx(least / 2, rel=0.1)
    once = {kind: PlannedPrompts(own.strategy, own.prompts, 1) for kind, own in DEMO.items()}
    assert (
        least < minimum_detectable_difference(once, 7) < 2 * least
    )  # four answers to a prompt are not four prompts


def test_it_is_near_the_normal_approximation() -> None:
    """Of one kind of prompts: the variance of a mean of n prompts of m values each is that of one
    value times (1 + (m - 1) rho) / n m."""
    spread, n, groups = REGARD_SPREADS["predicate"], 200, 5
    m = 4 * spread.answered_share
    variance = spread.variance * (1 + (m - 1) * spread.prompt_share) / (n * m)
    error = math.sqrt(variance * (1 + 1 / (groups - 1)))
    z = NormalDist().inv_cdf(1 - 0.05 / groups / 2) + NormalDist().inv_cdf(0.8)
    assert minimum_detectable_difference(
        {"x": PlannedPrompts("predicate", n, 4)}, groups
    ) == pytest.approx(z * error, rel=0.06)


def test_the_decision_finds_it_as_often_as_it_says(simulation: Simulation) -> None:
    least, found = minimum_detectable_difference(DEMO, 2), []
    own = _planned_sample(DEMO)
    for rng in simulation.worlds(50):
        sides = []
        for shift in (least, 0.0):
            sums = np.concatenate(
                [
                    rng.choice(own.sums[[s == kind for s in own.strata]], n)
                    for kind, n in (("are", 15), ("chosen", 32))
                ]
            )
            sides.append(ClusterSample(own.strata, sums + shift * own.counts, own.counts))
        found.append(permutation_p_value(sides[0], sides[1], permutations=499) <= 0.05)
    simulation.check("found", sum(found), len(found), 0.72, 0.88)


def test_a_category_of_one_group_shows_nothing() -> None:
    assert math.isnan(minimum_detectable_difference(DEMO, 1))
    assert kgbias.price("smollm2", group="Cats").detectable_differences == {}


def test_a_dry_run_says_what_it_could_show() -> None:
    priced = kgbias.price("smollm2", category=["gender", "ethnicity"])
    assert set(priced.detectable_differences) == {"gender", "ethnicity"}
    assert 0.05 < priced.detectable_differences["ethnicity"] < 0.4
    said = run("crawl", "--model", "smollm2", "--category", "gender", "--dry-run").output
    assert f"from {priced.detectable_differences['gender']:.2f} (gender) on" in said
    assert (
        kgbias.price("smollm2", category="gender", target_ci_width=0.2).detectable_differences == {}
    )
    assert (
        "finds a difference"
        not in run(
            "crawl",
            "--model",
            "smollm2",
            "--category",
            "gender",
            "--target-ci-width",
            "0.2",
            "--dry-run",
        ).output
    )
