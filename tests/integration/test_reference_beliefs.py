"""The causal reference model knows the names of its groups as the world plants them."""

import json
from functools import cache

import numpy as np
import pytest

from kgbias.calibrate.belief_rows import ProbedCategory, probe_category
from kgbias.models.score.load import open_scorer
from kgbias.probe.belief import Array
from kgbias.reference import weights_path
from kgbias.reference.planted_names import load_names
from tests.conftest import require_modules

pytestmark = pytest.mark.integration

require_modules("torch", "transformers")

NAMES = load_names()
EACH = 8  # names a group


@cache
def categories() -> list[ProbedCategory]:
    scorer, statements = open_scorer("reference", device="cpu"), np.arange(len(NAMES.statements))
    return [probe_category(scorer, NAMES, c.groups, statements) for c in NAMES.truth.categories]


def slope(planted: Array, found: Array) -> float:
    return float(np.polyfit(np.ravel(planted), np.ravel(found), 1)[0])


def test_the_weights_are_of_these_names() -> None:
    facts = json.loads((weights_path("causal") / "training.json").read_text("utf-8"))  # type: ignore[arg-type]
    assert facts["names"]["names"] == NAMES.hash


def test_group_beliefs_are_learned() -> None:
    planted = np.concatenate([category.lifts.ravel() for category in categories()])
    found = np.concatenate([category.run_test(EACH).lift.ravel() for category in categories()])
    assert np.corrcoef(planted, found)[0, 1] > 0.95
    assert slope(planted, found) >= 0.8


@pytest.mark.parametrize(
    ("cells", "size"), [(NAMES.name_associations, 1), (NAMES.root_associations, 4)]
)
def test_associations_of_names_and_roots_are_learned(
    cells: list[tuple[int, int]], size: int
) -> None:
    """By how much a statement is likelier after the name, or the four names of the root, than after
    the group's other names: planted and found, where one is planted, and of the same names before
    the other statements."""
    planted, found = [], []
    for n, s in cells:
        group = NAMES.names[n].group
        category = next(w for w in categories() if group in w.groups)
        first = n // EACH * EACH
        chosen_ = np.arange(n, n + size)
        others = np.setdiff1d(np.arange(first, first + EACH), chosen_)
        texts = [name.text for name in category.probed_names]
        for bits, into, place in (
            (
                NAMES.name_bits[:, category.statements],
                planted,
                {m: m for m in range(len(NAMES.names))},
            ),
            (
                category.bits.mean(axis=0),
                found,
                {m: texts.index(NAMES.names[m].text) for m in range(first, first + EACH)},
            ),
        ):
            own = bits[[place[int(m)] for m in chosen_]].mean(axis=0)
            rest = bits[[place[int(m)] for m in others]].mean(axis=0)
            column = category.statements.tolist().index(s)
            into.append((own - rest)[column])
    assert np.mean(planted) > 2.5
    assert np.mean(found) >= 0.7 * np.mean(planted)


def test_names_as_crawled_say_what_they_said() -> None:
    for n, name in enumerate(NAMES.names):
        if name.is_surface_form:
            base = NAMES.truth.joint_distribution(name.group)
            assert NAMES.joint_distribution(n) == pytest.approx(base)
