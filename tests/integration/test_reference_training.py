"""A short training of the reference models still learns."""

import io
import math
from collections import Counter
from random import Random

import pytest

from kgbias.reference import load_truth
from training.reference.text import Author, build_tokenizer, vocabulary
from training.reference.train import BATCH, train

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TRUTH = load_truth()


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_short_training_still_learns(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty steps of small batches take more than a nat off the loss of the first; the causal
    model by then beats the best model that ignores context, the unigram entropy of the text."""
    monkeypatch.setattr("training.reference.train._POOL", 30)  # batches drawn ahead
    for of, size in BATCH.items():
        monkeypatch.setitem(BATCH, of, size * 3 // 8)
    _, _, facts = train(kind, TRUTH, steps=30, log=io.StringIO(), held_out=2)
    assert facts["fresh_text_loss"] < facts["loss_curve"][0][1] - 1
    if kind == "masked":
        return  # it predicts fewer tokens a step, and learns more slowly
    tokenizer = build_tokenizer(vocabulary(TRUTH), masked=False)
    author = Author(TRUTH, Random(4))
    counts: Counter[int] = Counter()
    for _ in range(1000):
        counts.update(tokenizer(author.document())["input_ids"][1:])
    total = sum(counts.values())
    unigram = -sum(n / total * math.log(n / total) for n in counts.values())
    assert facts["fresh_text_loss"] < unigram - 0.3
