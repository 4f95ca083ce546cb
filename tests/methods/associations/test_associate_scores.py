"""RND, RNSB, MAC, ECT and RIPA: values by hand, and WEFE's own examples (version 0.4)."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from kgbias.errors import DataError, UsageError
from kgbias.methods.associations.family import associate
from kgbias.methods.associations.methods import (
    SCORES,
    ect,
    jackknife_interval,
    mac,
    ripa,
    rnd,
    rnsb,
    score_vectors,
)
from kgbias.methods.associations.sets import AssociationTest, WordSet
from kgbias.models.base import ModelInfo
from kgbias.models.vectors import VectorLookup, load_static_vectors
from kgbias.stats.inference import student_quantile
from tests.conftest import ROOT, require_modules
from tests.texts import Texts

X, Y = np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 3.0]])
A, B = np.array([[2.0, 1.0], [2.0, -1.0]]), np.array([[0.0, 4.0]])
MALE = ("male", "man", "boy", "brother", "he", "him", "his", "son")
FEMALE = ("female", "woman", "girl", "sister", "she", "her", "hers", "daughter")
FAMILY = ("home", "parents", "children", "family", "cousins", "marriage", "wedding", "relatives")


def test_rnd_by_hand() -> None:
    # means (2, 0) and (0, 2): the attributes are 1 and 1 from one, sqrt 5, sqrt 13 from the other
    assert rnd(X, Y, A) == pytest.approx(1 - (math.sqrt(5) + math.sqrt(13)) / 2)
    assert rnd(X, Y, B) == pytest.approx(math.sqrt(20) - 2)


def test_mac_by_hand() -> None:
    # cosines with A: 2 / sqrt 5 for X, (1 - 1) / sqrt 5 for Y; with B: 0 for X, 1 for Y
    expected = ((1 - 2 / math.sqrt(5)) + 1 + 1 + 0) / 4
    assert mac(X, Y, A, B) == pytest.approx(expected)


def test_ect_by_hand() -> None:
    # nearest to X: A2 = A1 > B (tied ranks 2.5, 2.5, 1); to Y: B, A1, A2 (3, 2, 1)
    assert ect(X, Y, np.concatenate([A, B])) == pytest.approx(
        np.corrcoef([2.5, 2.5, 1], [2, 1, 3])[0, 1]
    )
    assert ect(X, X, np.concatenate([A, B])) == pytest.approx(1)


def test_ripa_by_hand() -> None:
    # both pairs point along (1, -1) / sqrt 2; the inner products with A are 1 and 3 over sqrt 2
    assert ripa(X, Y, A) == pytest.approx(2 / math.sqrt(2))
    assert ripa(X, Y, B) == pytest.approx(-4 / math.sqrt(2))


def test_rnsb_by_hand() -> None:
    positive, negative = np.array([[1.0], [2.0]]), np.array([[-1.0], [-2.0]])
    # targets that are all alike are equally negative; else the divergence by its definition
    same = np.array([[0.5]])
    assert rnsb(same, same, positive, negative) == pytest.approx(0, abs=1e-12)
    # the slope w solves w = sum over the data of |z| / (1 + exp(|z| w)) (C = 1); the offset is 0
    w = 0.0
    for _ in range(200):
        w = (w + 2 * sum(z / (1 + math.exp(z * w)) for z in (1, 2))) / 2
    p = [1 / (1 + math.exp(w * z)) for z in (0.5, -0.5)]
    expected = sum(q / sum(p) * math.log(2 * q / sum(p)) for q in p)
    assert rnsb(same, -same, positive, negative) == pytest.approx(expected, rel=1e-3)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_modules("gensim")
    path = tmp_path_factory.mktemp("vectors") / "word2vec.txt"
    packed = ROOT / "tests" / "data" / "word2vec_347x300.txt.gz"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


def test_wefes_own_examples(vectors: Path) -> None:
    """The results that WEFE's documentation prints for these vectors."""
    table = load_static_vectors(vectors)
    female, male, family = (table.find(words).vectors for words in (FEMALE, MALE, FAMILY))
    assert len(family) == 8
    assert rnd(female, male, family) == pytest.approx(0.030381828546524048, abs=1e-6)
    # its example of RIPA was computed without the last pair, daughter and son
    assert ripa(female[:7], male[:7], family) == pytest.approx(0.18600442, abs=1e-6)


def test_scores_are_methods_without_a_p_value(vectors: Path, texts: Texts) -> None:
    found = associate(["weat6"], ["weat", *SCORES], vectors=vectors)
    rows = {row["method"]: row for row in found.records()}
    assert rows["weat"]["family"] == 1 and rows["weat"]["p_holm"] == rows["weat"]["p_value"]
    assert rows["weat"]["effect_size"] == pytest.approx(1.8899, abs=1e-4)
    for name in SCORES:
        row = rows[name]
        assert math.isnan(row["p_value"]) and math.isnan(row["p_holm"])
        assert row["settings"]["score"] == SCORES[name].meaning
        assert (row["low"] < row["high"]) == (name != "ect")
    assert rows["rnd"]["effect_size"] < 0 < rows["ripa"]["effect_size"]  # career is nearer to men
    with texts.raises(UsageError):
        associate(["weat6"], ["rnd"], vectors=vectors, tails="two")


def test_a_pair_with_a_word_missing_is_left_out() -> None:
    class Table:
        info = ModelInfo("table")

        def find(self, words: object) -> VectorLookup:
            known = [w for w in words if w != "him"]  # type: ignore[attr-defined]
            rows = np.array([[len(w), w.count("e") + 1.0] for w in known]).reshape(-1, 2)
            return VectorLookup({w: w for w in known}, rows, ())

    sets = (WordSet("x", MALE), WordSet("y", FEMALE), WordSet("a", FAMILY), WordSet("b", FAMILY))
    test = AssociationTest("t", *sets)
    result = score_vectors(test, Table(), "ripa")
    assert "him" not in result.sets["x"].known and "her" not in result.sets["y"].known
    assert result.sets["y"].missing == ("her",)
    assert len(score_vectors(test, Table(), "rnd").sets["y"].known) == 8
    nothing = AssociationTest("t", WordSet("x", ("him",)), *sets[1:])
    with pytest.raises(DataError, match="knows none"):
        score_vectors(nothing, Table(), "ripa")


def test_intervals_of_scores_by_hand() -> None:
    """Of a mean over pairs it is Student's; a divergence stays above 0; below the words that a
    score needs, and where nothing varies, there is none."""
    rng = np.random.default_rng(3)
    tables = {
        "x": rng.normal(size=(9, 5)) + 1,
        "y": rng.normal(size=(8, 5)),
        "a": rng.normal(size=(6, 5)) + 1,
        "b": rng.normal(size=(6, 5)),
    }
    directions = tables["x"][:8] - tables["y"]
    products = directions / np.linalg.norm(directions, axis=1)[:, None] @ tables["a"].mean(axis=0)
    half = student_quantile(0.975, 7) * products.std(ddof=1) / math.sqrt(8)
    ends = jackknife_interval("ripa", tables | {"x": tables["x"][:8]})
    assert ends == pytest.approx((products.mean() - half, products.mean() + half))
    low, high = jackknife_interval("rnsb", tables)
    assert 0 < low < SCORES["rnsb"].compute(tables) < high
    few = {role: rows[:3] for role, rows in tables.items()}
    same = tables | {"x": tables["x"][[0] * 9], "y": tables["y"][[0] * 8]}
    for name, given in (("rnd", few), ("ect", tables), ("rnd", same), ("rnsb", same)):
        assert all(map(math.isnan, jackknife_interval(name, given)))
