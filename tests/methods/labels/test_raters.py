"""Agreement of raters, against Krippendorff's published example."""

import math
from typing import Literal

import pytest

from kgbias.graph.labels import Label
from kgbias.graph.types import TripleView
from kgbias.measure.scorer_agreement import cohens_kappa
from kgbias.methods.labels.rater_agreement import compare_raters, krippendorff_alpha

# Krippendorff 2011, example with four observers and twelve units; "." was not rated.
A = "1 2 3 3 2 1 4 1 2 . . .".split()
B = "1 2 3 3 2 2 4 1 2 5 . 3".split()
C = ". 3 3 3 2 3 4 2 2 5 1 .".split()
D = "1 2 3 3 2 4 4 1 2 5 1 .".split()
UNITS = [[x for x in unit if x != "."] for unit in zip(A, B, C, D, strict=True)]


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_the_published_example(level: str, published: float) -> None:
    found = krippendorff_alpha(UNITS, "12345", level)
    assert found.value == pytest.approx(published, abs=5e-4)
    assert found.n == 11  # the last unit has one label
    assert not found.has_interval  # eleven units: none below thirty
    more = krippendorff_alpha(UNITS * 3, "12345", level)
    assert more.low < more.value < more.high <= 1


def test_the_interval_of_two_raters_is_kappas() -> None:
    """Rare labels: where all but a few units are alike, resamples of units know nothing of the
    labels that a sample happens to lack."""
    first, second = ["a"] * 36 + ["b"] * 4, ["a"] * 37 + ["b"] * 3
    units = [list(pair) for pair in zip(first, second, strict=True)]
    alpha, (_, kappa) = krippendorff_alpha(units, "ab"), cohens_kappa(first, second)
    assert (alpha.low, alpha.high) == pytest.approx((kappa.low, kappa.high), abs=0.04)
    # No disagreement was seen: how rare it is, the interval says.
    same = krippendorff_alpha([[x, x] for x in first], "ab")
    assert same.value == 1 and 0.3 < same.low < 0.9


def test_raters_who_all_say_one_thing_have_no_alpha() -> None:
    assert math.isnan(krippendorff_alpha([["a", "a"], ["a", "a"]], "ab").value)
    assert krippendorff_alpha([["a"], ["b"]], "ab").n == 0


def label(id: str, label: str, rater: str, kind: Literal["person", "model"] = "person") -> Label:
    return Label(id, "regard", label, rater, kind, "regard@1", "2025-01-01T00:00:00Z", False, "s")


def test_by_group_and_kind_with_what_is_disputed() -> None:
    triples = [
        TripleView(str(n), f"g{n % 2}", f"Group {n % 2}", "are", str(n), 1) for n in range(4)
    ]
    labels = [
        *(label(str(n), "positive", "ada") for n in range(4)),
        *(label(str(n), "negative" if n == 3 else "positive", "bea") for n in range(3, 4)),
        *(label(str(n), "positive", "bea") for n in range(3)),
        label("0", "", "cyd"),
        label("9", "negative", "bea"),
        label("0", "negative", "gpt", "model"),
    ]
    whole, *groups = compare_raters(labels, triples)
    assert (whole.group, whole.kind, whole.raters) == ("", "person", ("ada", "bea"))
    assert whole.alpha.n == 4 and whole.level == "ordinal"
    assert whole.confusion == {("positive", "positive"): 3, ("negative", "positive"): 1}
    assert [d.triple_id for d in whole.disputed] == ["3"]
    assert whole.disputed[0].labels == {"ada": "positive", "bea": "negative"}
    assert [g.group for g in groups] == ["Group 0", "Group 1"]
    assert [g.alpha.n for g in groups] == [2, 2]
