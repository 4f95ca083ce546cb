"""Coverage and richness, against values worked out by hand and against a known population."""

import math
from collections import Counter
from random import Random

import pytest

from kgbias.crawl.coverage import chao1, good_turing_coverage


@pytest.mark.parametrize(
    ("counts", "coverage", "richness"),
    [
        ([4, 2, 2, 1, 1], 1 - 2 / 10, 5 + 0.9 * 4 / 4),  # n = 10, f1 = 2, f2 = 2
        ([5, 2, 1, 1, 1], 0.7, 5 + 0.9 * 9 / 2),  # n = 10, f1 = 3, f2 = 1
        ([1, 1, 1], 0.0, 3 + 2 / 3 * 3),  # f2 = 0: f1 (f1 - 1) / 2 = 3
        ([3, 4], 1.0, 2.0),
        ([1], 0.0, 1.0),
        ([2, 2, 1, 1], 1 - 2 / 6, 4 + 5 / 6 * 4 / 4),
    ],
)
def test_golden(counts: list[int], coverage: float, richness: float) -> None:
    assert good_turing_coverage(counts) == pytest.approx(coverage)
    assert chao1(counts) == pytest.approx(richness)


def test_nothing_seen() -> None:
    assert math.isnan(good_turing_coverage([])) and chao1([]) == 0


def test_on_a_known_population() -> None:
    """Draws from 200 things with shares 1/1 ... 1/200: the coverage is known exactly, the richness
    is at most 200."""
    shares = [1 / rank for rank in range(1, 201)]
    total = sum(shares)
    estimated, true, richness = [], [], []
    for seed in range(200):
        drawn = Counter(Random(seed).choices(range(200), shares, k=150))
        estimated.append(good_turing_coverage(drawn.values()))
        true.append(sum(shares[thing] for thing in drawn) / total)
        richness.append(chao1(drawn.values()))
    mean = sum(estimated) / 200
    assert mean == pytest.approx(sum(true) / 200, abs=0.01)  # a standard error is about 0.003
    assert 100 < sum(richness) / 200 <= 200
