"""The names of the reference world's groups, and what is planted on them."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from kgbias.probe.belief import MARGIN_BITS, Array, NameDesign
from kgbias.reference.planted_names import (
    NAME_FORMS,
    NAMES_FILE,
    NAMES_PER_GROUP,
    PlantedNames,
    load_names,
)

WORLD = load_names()
TRUTH = WORLD.truth
CATEGORIES = [category.groups for category in TRUTH.categories]


def places(groups: tuple[str, ...]) -> list[int]:
    return [n for n, name in enumerate(WORLD.names) if name.group in groups]


def held(groups: tuple[str, ...]) -> Any:
    """The test of beliefs on the world's own probabilities."""
    own = [WORLD.names[n] for n in places(groups)]
    design = NameDesign(
        [groups.index(name.group) for name in own],
        [name.root for name in own],
        [name.form for name in own],
    )
    return design.test(WORLD.name_bits[places(groups)])


def lifts(groups: tuple[str, ...]) -> Array:
    return np.asarray(WORLD.lifts[[WORLD.groups.index(g) for g in groups]])


def test_each_group_has_eight_names_of_two_roots_and_four_forms() -> None:
    assert (
        len({name.text for name in WORLD.names})
        == len(WORLD.names)
        == NAMES_PER_GROUP * len(TRUTH.groups)
    )
    begins = Counter(name.root[:3] for name in WORLD.names)
    assert set(begins.values()) == {len(NAME_FORMS)}  # roots that begin alike would be one
    for group in TRUTH.groups:
        own = [name for name in WORLD.names if name.group == group]
        assert len({(name.root, name.form) for name in own}) == NAMES_PER_GROUP
        assert [name.text for name in own if name.is_surface_form] == [group]
        words = [next(w for w in name.text.split() if w[0].isupper()) for name in own]
        assert len(set(words)) == NAMES_PER_GROUP  # each has a word of its own


def test_a_name_as_crawled_says_what_its_group_says() -> None:
    for n, name in enumerate(WORLD.names):
        joint = WORLD.joint_distribution(n)
        assert math.isclose(sum(joint.values()), 1.0)
        if name.is_surface_form:
            assert joint == pytest.approx(TRUTH.joint_distribution(name.group))


def test_an_association_is_as_large_as_planted() -> None:
    """Against the group's own names without it and another statement, less what habits do."""
    planted = WORLD.planted
    assert (
        len(WORLD.name_associations) == planted["singles"]
        and len(WORLD.root_associations) == planted["of_roots"]
    )
    habits = WORLD.tilts.copy()
    for n, s in WORLD.name_associations:
        assert not WORLD.names[n].is_surface_form
        habits[n, s] -= planted["single_bits"]
    for n, s in WORLD.root_associations:
        root = {name.root for name in WORLD.names[n : n + len(NAME_FORMS)]}
        assert len(root) == 1 and not any(
            x.is_surface_form for x in WORLD.names[n : n + len(NAME_FORMS)]
        )
        habits[n : n + len(NAME_FORMS), s] -= planted["root_bits"]
    usual = planted["habit_bits"] + planted["form_bits"]
    assert np.abs(habits).max() <= usual
    for n, s in WORLD.name_associations[:5]:
        crawled = next(m for m in places((WORLD.names[n].group,)) if WORLD.names[m].is_surface_form)
        other = next(o for o in range(len(WORLD.statements)) if WORLD.tilts[n, o] == 0)
        more = WORLD.name_bits[n] - WORLD.name_bits[crawled]
        assert more[s] - more[other] == pytest.approx(planted["single_bits"] + habits[n, s])


def test_names_of_a_noisy_group_differ_most() -> None:
    spread = {g: WORLD.tilts[places((g,))].std(axis=0).mean() for g in TRUTH.groups}
    (noisy,) = WORLD.planted["noisy"]
    rest = [value for group, value in spread.items() if group != noisy]
    assert spread[noisy] > 2 * max(rest)


def test_other_names_are_another_world() -> None:
    text = NAMES_FILE.read_text("utf-8").replace("seed = 34", "seed = 35")
    other = PlantedNames(TRUTH, text)
    assert other.hash != WORLD.hash and other.name_associations != WORLD.name_associations


@pytest.mark.parametrize("groups", CATEGORIES)
def test_beliefs_of_over_two_bits_are_found(groups: tuple[str, ...]) -> None:
    large = lifts(groups) > 2
    assert large.sum() > 50 and held(groups).is_believed[large].mean() > 0.95


def test_associations_of_a_name_or_a_root_are_no_beliefs_of_the_group() -> None:
    """By the world's own probabilities, of groups whose own lift is at most the margin: at most one
    in twenty is called a belief, and without regard to names and roots nearly all of a root
    would be."""
    called: dict[str, list[bool]] = {"single": [], "root": []}
    large: list[bool] = []
    for groups in CATEGORIES:
        test, planted = held(groups), lifts(groups)
        for kind, cells in (("single", WORLD.name_associations), ("root", WORLD.root_associations)):
            for n, s in cells:
                g = groups.index(WORLD.names[n].group) if WORLD.names[n].group in groups else -1
                if g >= 0 and planted[g, s] <= MARGIN_BITS:
                    called[kind].append(bool(test.is_believed[g, s]))
                    if kind == "root":
                        large.append(bool(test.q_values[g, s] <= 0.05 and test.lift[g, s] >= 1))
    assert len(called["single"]) >= 25 and np.mean(called["single"]) <= 0.05
    assert len(called["root"]) >= 15 and np.mean(called["root"]) <= 0.05
    assert np.mean(large) >= 0.8


@pytest.mark.parametrize("groups", CATEGORIES)
def test_what_is_believed_of_a_group_is_planted_on_it(groups: tuple[str, ...]) -> None:
    believed, planted = held(groups).is_believed, lifts(groups)
    wrong = (believed & (planted <= MARGIN_BITS)).sum() / believed.sum()
    assert believed.any(axis=1).all() and wrong <= 0.05


def test_the_names_of_a_null_are_not_told_apart() -> None:
    for pair in TRUTH.nulls:
        assert not held(pair).is_believed.any()
