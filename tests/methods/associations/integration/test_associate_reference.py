"""Association tests on the reference models, where it is known what there is to find."""

from pathlib import Path

import numpy as np
import pytest

from kgbias.methods.associations.ceat import ceat
from kgbias.methods.associations.contexts import TemplateContexts, embed_contexts
from kgbias.methods.associations.grid import EmbeddingCache, PredictionCache
from kgbias.methods.associations.lpbs import lpbs
from kgbias.methods.associations.result import Statistics
from kgbias.methods.associations.search import search_seat
from kgbias.methods.associations.sets import AssociationTest, WordSet
from kgbias.methods.associations.weat import SeatMethod, seat
from kgbias.models.embed import open_encoder
from kgbias.models.predict import open_predictor
from kgbias.reference import load_truth, weights_path
from tests.conftest import skip_or_fail

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TRUTH = load_truth()
POSITIVE = ("kind", "friendly", "generous", "skilled", "clever", "hardworking")
NEGATIVE = ("cruel", "rude", "selfish", "lazy", "stupid", "careless")
FRAMES = ("{t} is {a}.", "{t} was {a}.")
PLANTED = 0.4  # a difference in regard balance, of at most 0.83
REGROUPINGS = 60
LEVEL = 0.05


def names_test(name: str, x: tuple[str, ...], y: tuple[str, ...]) -> AssociationTest:
    return AssociationTest(
        name,
        WordSet("x", x, "name"),
        WordSet("y", y, "name"),
        WordSet("positive", POSITIVE, "quality"),
        WordSet("negative", NEGATIVE, "quality"),
        frames=FRAMES,
    )


def planted() -> list[AssociationTest]:
    """Pairs of groups of which the first is planted the more positive, by given names."""
    balance = {g: TRUTH.regard_balance(g) for g in TRUTH.groups if TRUTH.groups[g].root == g}
    return [
        names_test(f"{g}|{h}", TRUTH.groups[g].given_names, TRUTH.groups[h].given_names)
        for g in balance
        for h in balance
        if balance[g] - balance[h] >= PLANTED
    ]


def nulls() -> list[AssociationTest]:
    """Names of two groups with the same beliefs, dealt anew: no deal differs from another."""
    tests = []
    rng = np.random.default_rng(0)
    for g, h in TRUTH.nulls:
        names = np.array([*TRUTH.groups[g].given_names, *TRUTH.groups[h].given_names])
        for number in range(REGROUPINGS):
            dealt = names if number == 0 else rng.permutation(names)
            tests.append(names_test(f"{g}|{h}|{number}", tuple(dealt[:6]), tuple(dealt[6:])))
    return tests


def within_level(p: list[float]) -> bool:
    return len(p) >= 200 and np.mean(np.array(p) <= LEVEL) <= LEVEL + 2 * np.sqrt(
        LEVEL * (1 - LEVEL) / len(p)
    )


@pytest.mark.parametrize("spec", ["reference", "reference-masked"])
def test_lpbs_finds_what_is_planted_and_nothing_else(spec: str) -> None:
    if not weights_path("masked" if spec.endswith("masked") else "causal").is_dir():
        skip_or_fail(f"the weights of {spec} are not there")
    predictor = PredictionCache(open_predictor(spec))
    found = [lpbs(test, predictor) for test in planted()]
    power = np.mean([r.test_p_value.value <= LEVEL and r.effect_size > 0 for r in found])
    p = [lpbs(test, predictor).test_p_value.value for test in nulls()]
    print(
        f"{spec}: power {power:.3f} of {len(found)}, false positives "
        f"{np.mean(np.array(p) <= LEVEL):.3f} of {len(p)}"
    )
    assert power >= 0.95 and within_level(p)


def test_vectors_keep_their_level(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    if not weights_path("causal").is_dir():
        skip_or_fail("the weights of the reference model are not there")
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path))
    encoder = open_encoder("reference")
    two = Statistics(tails="two")
    p: dict[str, list[float]] = {"w-seat": [], "s-seat": [], "ceat": [], "ceat published": []}
    for test in nulls():
        p["w-seat"].append(seat(test, encoder, "w-seat", two).p_value.value)
        p["s-seat"].append(seat(test, encoder, "s-seat", two).p_value.value)
        contexts, _ = embed_contexts(test, encoder, TemplateContexts(), "word-average", -1)
        result = ceat(test, contexts, encoder.info, draws=500)
        p["ceat"].append(result.test_p_value.value)
        p["ceat published"].append(result.p_value.value)
    for method, values in p.items():
        print(f"{method}: false positives {np.mean(np.array(values) <= LEVEL):.3f}")
    for method in ("w-seat", "s-seat", "ceat"):
        assert within_level(p[method]), method
    assert (
        np.mean(np.array(p["ceat published"]) <= LEVEL) > 4 * LEVEL
    )  # what docs/methods/associate.md warns of


@pytest.mark.parametrize("method", ["w-seat", "s-seat"])
def test_a_search_over_layers_finds_what_is_planted(
    method: SeatMethod, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a p-value that is corrected for having searched, and no more false positives."""
    if not weights_path("causal").is_dir():
        skip_or_fail("the weights of the reference model are not there")
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path))
    model = EmbeddingCache(open_encoder("reference"))
    one, two = (Statistics(tails=tails) for tails in ("one", "two"))
    found = [search_seat(test, model, method, one) for test in planted()]
    power = np.mean([r.p_value.value <= LEVEL and r.effect_size > 0 for r in found])
    p = [search_seat(test, model, method, two).p_value.value for test in nulls()]
    print(f"{method}: power {power:.3f}, false positives {np.mean(np.array(p) <= LEVEL):.3f}")
    assert power >= 0.8 and within_level(p)  # 0.92 and 0.95; 0.05 where nothing is
