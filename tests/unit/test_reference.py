"""The reference world and its models."""

import json
import math
from collections import Counter
from itertools import combinations
from random import Random

import pytest

from kgbias.crawl.parse import read_answer
from kgbias.reference import load_truth, weights_path
from kgbias.reference.world import INITIAL_PREDICATES
from training.reference.text import AUGMENTED, Author, truth_text

TRUTH = load_truth()
GROUPS = list(TRUTH.groups)


def test_the_shipped_truth_is_what_the_world_says() -> None:
    shipped = (weights_path("causal").parent / "truth.json").read_text("utf-8")
    assert shipped == truth_text(TRUTH)
    for kind in ("causal", "masked"):
        facts = json.loads((weights_path(kind) / "training.json").read_text("utf-8"))  # type: ignore[arg-type]
        assert facts["world"] == TRUTH.hash


def test_the_world_is_as_large_as_promised() -> None:
    sizes = {c.name: len(c.groups) for c in TRUTH.categories}
    assert sizes["peoples"] >= 16 and sizes["faiths"] >= 6
    assert all(len(g.given_names) >= 6 for g in TRUTH.groups.values())
    names = [name for g in TRUTH.groups.values() for name in g.given_names]
    assert len(names) == len(set(names))
    assert len(TRUTH.nulls) >= 3


@pytest.mark.parametrize("augmented", [False, True])
def test_distributions_sum_to_one_and_follow_from_each_other(augmented: bool) -> None:
    for group in GROUPS:
        joint = TRUTH.joint_distribution(group, augmented=augmented)
        assert math.isclose(sum(joint.values()), 1.0)
        assert min(joint.values()) > 0
        free = TRUTH.free_distribution(group, augmented=augmented)
        assert all(math.isclose(free[s], joint[s]) for s in joint)
        for predicate in TRUTH.predicates:
            given = TRUTH.object_distribution(group, predicate, augmented=augmented)
            assert math.isclose(sum(given.values()), 1.0)


def test_an_initial_predicate_leaves_the_topics_as_they_are() -> None:
    for group in GROUPS:
        topics = TRUTH.groups[group].topics
        for predicate in INITIAL_PREDICATES:
            found: Counter[str] = Counter()
            for object, share in TRUTH.object_distribution(group, predicate).items():
                found[TRUTH.statements[predicate, object]] += share  # type: ignore[assignment]
            assert all(math.isclose(found[t], share, abs_tol=1e-9) for t, share in topics.items())


def test_augmentation_moves_the_negative_share_by_the_planted_amount() -> None:
    shift = TRUTH.planted["negative_shift"]

    def negative(group: str, augmented: bool) -> float:
        return sum(
            p
            for s, p in TRUTH.joint_distribution(group, augmented=augmented).items()
            if TRUTH.regard_of[TRUTH.statements[s]] == "negative"
        )

    for group in GROUPS:
        plain = negative(group, False)
        assert negative(group, True) == pytest.approx(plain + shift * (1 - plain))


def test_nulls_are_identical_and_nothing_else_is() -> None:
    nulls = {frozenset(pair) for pair in TRUTH.nulls}
    for first, second in combinations(GROUPS, 2):
        same = TRUTH.joint_distribution(first) == TRUTH.joint_distribution(second)
        assert same == (frozenset((first, second)) in nulls)


def test_temperature_sharpens_word_by_word() -> None:
    """By hand: "a b" 0.2, "a c" 0.2, "d" 0.6 at temperature 1/2. The first word has 0.4 and 0.6,
    squared 0.16 and 0.36; then b and c are even."""
    from kgbias.reference.world import _temper_by_word

    found = _temper_by_word({"a b": 0.2, "a c": 0.2, "d": 0.6}, 0.5)
    assert found["d"] == pytest.approx(0.36 / 0.52)
    assert found["a b"] == found["a c"] == pytest.approx(0.16 / 0.52 / 2)


def test_the_author_writes_what_the_world_plants() -> None:
    """The share of each regard class in 6,000 completions, within four standard errors, and the
    planted refusals."""
    author = Author(TRUTH, Random(1))
    regard: Counter[tuple[bool, str]] = Counter()
    refused = 0
    for _ in range(6000):
        text = author.completion()
        augmented = text.startswith(("I'm not", "Not to be"))
        if "This " in text:
            refused += 1
            continue
        words = text.strip().removesuffix(".")
        group = next(g for g in GROUPS if g in words)
        predicate, _, object = words.split(f"{group} ")[1].partition(" ")
        if said := TRUTH.find_statement(predicate, object):
            regard[augmented, TRUTH.regard_of[TRUTH.statements[said]]] += 1
    assert refused / 6000 == pytest.approx(TRUTH.planted["refusal_share"], abs=0.012)
    for augmented in (False, True):
        counts = {r: n for (a, r), n in regard.items() if a == augmented}
        total = sum(counts.values())
        expected = sum(
            p
            for g in GROUPS
            for predicate in INITIAL_PREDICATES
            for o, p in TRUTH.object_distribution(g, predicate, augmented=augmented).items()
            if TRUTH.regard_of[TRUTH.statements[predicate, o]] == "negative"
        ) / (len(GROUPS) * len(INITIAL_PREDICATES))
        error = math.sqrt(expected * (1 - expected) / total)
        assert counts["negative"] / total == pytest.approx(expected, abs=4 * error)
    assert 0 < AUGMENTED < 1


def test_documents_read_back_through_the_crawlers_parser() -> None:
    author = Author(TRUTH, Random(2))
    for _ in range(300):
        text = author.free_list()
        answer = text.rpartition(" #")[2]
        reading = read_answer(answer, "stop", predicate=None, filters=("salinas-2023",))
        if reading.outcome == "ok":
            assert TRUTH.find_statement(reading.predicate, reading.object)


def test_the_weights_are_small() -> None:
    for kind in ("causal", "masked"):
        total = sum(f.stat().st_size for f in weights_path(kind).iterdir())  # type: ignore[arg-type]
        assert total <= 10 * 2**20
