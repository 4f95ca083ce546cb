"""The profiles of GlobalBias against the figures of the paper, where its files are at hand."""

import os
from pathlib import Path

import pytest

import kgbias
from kgbias.graph.profiles import Profile, list_profile_labels
from kgbias.methods.profiles import list_profiles
from kgbias.methods.profiles.analysis import LABEL_KINDS, encode_profiles
from kgbias.methods.profiles.classify import KERNELS, random_splits, run_trials
from kgbias.methods.profiles.words import top_words, word_shifts
from tests.conftest import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.slow]
FOLDER = Path(os.environ.get("KGBIAS_GLOBALBIAS", ROOT.parent / "shared" / "data" / "globalbias"))
PUBLISHED = {"llama3": (0.183, 0.306, 0.833), "gpt4o": (0.333, 0.386, 0.942)}  # Table 6
RELIGIONS = {  # Table 7
    "jewish": {"ISRAELI M", "ISRAELI F"},
    "hindu": {"INDIAN M", "INDIAN F"},
    "shinto": {"JAPANESE M", "JAPANESE F"},
    "buddhist": {"THAI M", "THAI F"},
}


def published(model: str, tmp_path: Path) -> list[Profile]:
    path = FOLDER / f"10a_{model}_full.csv"
    if not path.is_file():
        pytest.skip(f"{path.name} of GlobalBias is not here: KGBIAS_GLOBALBIAS names its folder")
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        return list(list_profiles(study.import_file(path, format="profiles")))


@pytest.mark.parametrize("model", PUBLISHED)
def test_the_published_accuracies(model: str, tmp_path: Path) -> None:
    profiles = published(model, tmp_path)
    attributes = list(profiles[0].values_by_attribute())
    features = encode_profiles(profiles, attributes)
    chosen = list(
        random_splits(list_profile_labels(profiles, "group"), [p.name for p in profiles], 20)
    )
    assert len(profiles) == 1200
    for kind, expected in zip(LABEL_KINDS, PUBLISHED[model], strict=True):
        found = run_trials(features.matrix(attributes), list_profile_labels(profiles, kind), chosen)
        assert found.mean == pytest.approx(expected, abs=0.02), kind


def test_the_published_cost_of_religion_is_that_of_a_radial_kernel(tmp_path: Path) -> None:
    """Table 9 for Llama 3: .183, and .041 less without religion. A linear machine loses twice as
    much on every split; of a radial one, splits give from .04 to .08."""
    profiles = published("llama3", tmp_path)
    attributes = list(profiles[0].values_by_attribute())
    features, groups = encode_profiles(profiles, attributes), list_profile_labels(profiles, "group")
    whole = features.matrix(attributes)
    less = features.matrix([a for a in attributes if a != "religion"])
    chosen = list(random_splits(groups, [p.name for p in profiles], 3))
    costs = {}
    for kernel in KERNELS:
        full, without = (run_trials(f, groups, chosen, kernel) for f in (whole, less))
        assert full.mean == pytest.approx(0.183, abs=0.03), kernel
        costs[kernel] = full.accuracies - without.accuracies
    assert costs["linear"].min() > 0.05 > costs["radial"].min()
    assert costs["radial"].mean() == pytest.approx(0.06, abs=0.02)


def test_the_published_words(tmp_path: Path) -> None:
    profiles = published("llama3", tmp_path)
    words = word_shifts(profiles, list_profile_labels(profiles, "group"), ["religion"], draws=0)
    best = top_words(words)["religion"]
    assert {w.word for w in best[:4]} == {"jewish", "hindu", "muslim", "shinto"}
    for religion, groups in RELIGIONS.items():
        own = [w for w in words if w.word == religion and w.contribution > 0]
        own.sort(key=lambda w: -w.contribution)
        assert {w.group for w in own[:2]} == groups
        assert all(w.p_adjusted < 0.01 for w in own[:2])
