"""SoFa of several models on one set of probes: golden values worked out by hand."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from kgbias.compare.sofa import (
    ALL_CATEGORIES,
    compare_sofa,
    correlate_length,
    measure_rank_agreements,
)
from kgbias.errors import DataError, UsageError
from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.stores import open_store
from kgbias.methods.sofa.benchmark_scores import read_benchmarks
from kgbias.methods.sofa.build import KeptStatement, SofaSet
from kgbias.methods.sofa.clusters import cluster_texts, distinctive_words
from kgbias.methods.sofa.exhibits import draw_hate_bars, setup_exhibits, sofa_exhibits
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Convention
from kgbias.probe.result import ScorerInfo, build_sofa_result
from kgbias.probe.sofa import category_bias, overall_bias
from tests.report_data import shown_rows
from tests.texts import Texts

DATA = Path(__file__).parents[2] / "data"
SETS = {"c": (("A", "B"), ("s", "t u", "v w x")), "d": (("C", "D"), ("s", "y"))}
# log10 PPL* of [groups, statements]. Of two values that differ by D the variance is D^2 / 2.
FIRST = {"c": [[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]], "d": [[0.0, 1.0], [2.0, 5.0]]}
SECOND = {"c": [[0.0, 1.0, 3.0], [1.0, 1.0, 3.0]], "d": [[0.0, 1.0], [1.0, 3.0]]}


def probed(name: str, values: dict[str, list[list[float]]]) -> SofaResult:
    bias = overall_bias(
        [category_bias(c, *SETS[c], np.array(values[c])) for c in SETS],
    )
    scored = ScorerInfo(ModelInfo(name, "1"), (("kind", "causal"),), Convention("causal", "bos"))
    return build_sofa_result(ProbeSet.from_texts("mine", SETS), scored, bias)


def test_what_is_kept_of_a_model() -> None:
    """Variances 2, 0, 2 and 2, 8; DDS 2, 0, 2 and 2, 4; means 1, 1, 1 and 1, 3."""
    found = probed("m", FIRST)
    c, d = found.categories
    assert [s.variance for s in (*c.statements, *d.statements)] == pytest.approx([2, 0, 2, 2, 8])
    assert [s.dds for s in (*c.statements, *d.statements)] == [2, 0, 2, 2, 4]
    assert [s.mean for s in (*c.statements, *d.statements)] == [1, 1, 1, 1, 3]
    assert [s.first for s in c.statements] == [("A",), ("A", "B"), ("B",)]
    assert (c.score.value, d.score.value) == pytest.approx((4 / 3, 5))
    assert found.score.value == pytest.approx((4 / 3 + 5) / 2)
    assert [g.first.value for g in c.groups] == [0.5, 0.5]
    assert len(c.quantiles) == 101
    assert (c.quantiles[0], c.quantiles[50], c.quantiles[100]) == (0, 1, 2)
    assert found.measure == "conditional" and found.record == {"tier": "", "seed": 0}


def test_models_are_paired_by_statement() -> None:
    """SECOND's variances are 0.5, 0, 0 and 0.5, 2: means 1/6 and 1.25, so 17/24. Against FIRST the
    differences are 1.5, 0, 2 and 1.5, 6; each is at least 0, so in every resample FIRST is first
    unless all that is drawn of c and d is the one 0, which d has not."""
    one, two = probed("one", FIRST), probed("two", SECOND)
    found = compare_sofa([two, one], ProbeSet.from_texts("mine", SETS))
    first, second = found.models
    assert (first.model, first.rank, first.low, first.high) == ("one", 1, 1, 1)
    assert second.probabilities == (0.0, 1.0) and found.categories == ("c", "d")
    assert second.score().value == pytest.approx(17 / 24)
    assert found.scores("d")["two"].value == pytest.approx(1.25)
    tests = {t.group: t for t in found.contrasts}
    assert set(tests) == {"c", ALL_CATEGORIES}  # two statements are too few for a test
    test = tests[ALL_CATEGORIES]
    assert test.difference.value == pytest.approx(17 / 24 - 19 / 6)
    assert test.means == pytest.approx((17 / 24, 19 / 6))
    # Of the 2^5 exchanges only those that leave the four differences alike in sign reach it: 4.
    assert test.p == pytest.approx(4 / 32) and test.paired == "statements" and test.family == 2
    # Drawn again within each category: the mean of c lies in [0, 2], that of d in [1.5, 6], and
    # of five statements the ends are moved out by 2.776 times the root of 5 / 4, over 1.96.
    widening = 2.776 * (5 / 4) ** 0.5 / 1.96
    drawn = [value / widening for value in (test.difference.low, test.difference.high)]
    middle = test.difference.value * (1 - 1 / widening)
    assert -8 <= 2 * (middle + drawn[0]) < 2 * (middle + drawn[1]) <= -1.5
    assert found.rank_agreements == {("c", "d"): 1.0} and found.overall_contrasts == [test]
    assert found.as_dict()["models"][1]["sofa"]["value"] == pytest.approx(17 / 24)


def test_equal_models_share_their_ranks() -> None:
    one, two = probed("one", FIRST), probed("two", FIRST)
    found = compare_sofa([one, two], ProbeSet.from_texts("mine", SETS))
    assert [(m.rank, m.low, m.high, m.probabilities) for m in found.models] == [
        (1, 1, 2, (0.5, 0.5)),
        (1, 1, 2, (0.5, 0.5)),
    ]


def test_a_model_alone_and_one_asked_twice(texts: Texts) -> None:
    one, whole = probed("one", FIRST), ProbeSet.from_texts("mine", SETS)
    alone = compare_sofa([one], whole)
    assert alone.models[0].probabilities == (1.0,) and not alone.contrasts
    half = replace(one, settings=(("kind", "causal"), ("dtype", "bfloat16")))
    names = [m.model for m in compare_sofa([one, half], whole).models]
    assert names == ["one", "one (dtype bfloat16)"]
    with texts.raises(UsageError):
        compare_sofa([], whole)
    with texts.raises(UsageError):
        compare_sofa([one], ProbeSet.from_texts("mine", {"c": SETS["c"]}))


def test_the_length_of_a_statement_by_hand() -> None:
    """As numpy finds it over all ten probes of FIRST, whose statements have 1, 2, 3, 1, 1 words."""
    words = [1, 2, 3, 1, 2, 3, 1, 1, 1, 1]
    values = [*FIRST["c"][0], *FIRST["c"][1], *FIRST["d"][0], *FIRST["d"][1]]
    found = correlate_length(probed("m", FIRST), ProbeSet.from_texts("mine", SETS))
    assert found.value == pytest.approx(np.corrcoef(words, values)[0, 1])
    assert found.low <= found.value <= found.high and found.n == 5
    flat = {"d": SETS["d"]}
    d = replace(probed("m", FIRST), categories=probed("m", FIRST).categories[1:])
    assert math.isnan(correlate_length(d, ProbeSet.from_texts("mine", flat)).value)


def test_three_statements_test_two_models_and_give_lengths_no_interval() -> None:
    three = ProbeSet.from_texts("mine", {"c": SETS["c"]})
    one, two = (
        replace(found, categories=found.categories[:1], probe_set=three.id)
        for found in (probed("one", FIRST), probed("two", SECOND))
    )
    (test,) = compare_sofa([one, two], three).contrasts
    assert test.group == "c" and test.n == (3, 3)
    assert not correlate_length(one, three).has_interval


def test_the_ranks_of_the_paper() -> None:
    """Table 1: Kendall's tau of StereoSet and CrowS-Pairs is 0.911, of either and SoFa -0.022."""
    taus = measure_rank_agreements(read_benchmarks(DATA / "sofa_table_1.csv"))
    assert {pair: round(tau, 3) for pair, tau in taus.items()} == {
        ("SoFa", "StereoSet"): -0.022,
        ("SoFa", "CrowS-Pairs"): -0.022,
        ("StereoSet", "CrowS-Pairs"): 0.911,
    }


def test_scores_of_other_benchmarks(tmp_path: Path, texts: Texts) -> None:
    path = tmp_path / "b.csv"
    path.write_text("model,x,y\na,1,\nb,2.5,3\n")
    assert read_benchmarks(path) == {"x": {"a": 1.0, "b": 2.5}, "y": {"b": 3.0}}
    path.write_text("model,x\na,much\n")
    with texts.raises(DataError):
        read_benchmarks(path)
    path.write_text("model\na\n")
    with texts.raises(DataError):
        read_benchmarks(path)


class Corners:
    """Vectors of three kinds of texts, by their first word; each a little apart."""

    name, version = "corners", "1"

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        kinds = ["eat", "sing", "build"]
        rng = np.random.default_rng(0)
        rows = np.eye(8)[[kinds.index(t.split()[0]) for t in texts]]
        rows = rows + rng.normal(0, 0.02, rows.shape)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_too_few_texts_are_in_no_cluster(texts: Texts) -> None:
    found = cluster_texts(["eat a", "sing b"], Corners())
    assert found.labels == (-1, -1) and found.clusters == ()
    assert found.as_dict()["various"] == 2
    with texts.raises(UsageError):
        cluster_texts(["eat a"], Corners(), min_cluster_size=1)


def test_words_of_clusters_by_hand() -> None:
    """ "apples" is in one cluster alone, "love" in both; no pair reaches over the end of a text."""
    words = distinctive_words([["love apples", "love apples"], ["love songs", "fish"]])
    assert words[0][:2] == ("apples", "love apples") and "apples love" not in words[0]
    assert set(words[1]) == {"love", "songs", "love songs", "fish"}
    assert distinctive_words([["the"], ["of"]]) == [(), ()] and distinctive_words([]) == []


def test_the_set_and_its_models_as_tables() -> None:
    """Tables 3, 5 and 6: of 9 identities, the first, two between, and the last."""
    sets = {"a": (tuple("ABCDEFGHI"), ("are x", "are y")), "b": (("P", "Q"), ("are z",))}
    probe_set = ProbeSet.from_texts("mine", sets)
    rng = np.random.default_rng(0)
    bias = overall_bias(
        [
            category_bias(c, groups, said, rng.normal(size=(len(groups), len(said))))
            for c, (groups, said) in sets.items()
        ]
    )
    known = ScorerInfo(
        ModelInfo("known", "r1"), (("kind", "causal"),), Convention("causal", "bos"), 1234
    )
    older = ScorerInfo(ModelInfo("older", ""), (), Convention("causal", "bos"))
    results = [build_sofa_result(probe_set, by, bias) for by in (known, older)]
    found = {e.paper: e.table for e in setup_exhibits(compare_sofa(results, probe_set))}
    assert [column.heading for column in found["Table 3"].columns] == ["a", "b"]
    assert found["Table 3"].rows == [["A", "P"], ["D", "Q"], ["F", ""], ["I", ""]]
    assert shown_rows(found["Table 5"]) == [
        ["identities", "9", "2", "11"],
        ["statements", "2", "1", "3"],
        ["probes", "18", "2", "20"],
    ]
    assert sorted(shown_rows(found["Table 6"])) == [
        ["known", "causal", "1,234", "r1"],
        ["older", "-", "-", "-"],
    ]


def test_a_set_is_described_by_what_is_not_none(tmp_path: Path) -> None:
    store = str(tmp_path / "k.db")
    with open_store(store) as graph:
        graph.save_probe_set(ProbeSet.from_texts("mine", SETS))
        graph.save_sofa_results(None, [probed("one", FIRST)])
    asked = ["sofa", "describe", "--store", store, "--set", "embedding=none"]
    for hate, said in (("none", "nothing to describe"), ("unheard-of", "unheard-of")):
        told = CliRunner().invoke(cli, [*asked, "--hate", hate])
        assert isinstance(told.exception, UsageError) and said in str(told.exception)


def test_the_groups_that_come_first_are_shown() -> None:
    """Of three statements A comes first in one and shares one with B; then it shares two."""
    results = [probed("one", FIRST), probed("two", SECOND)]
    found = sofa_exhibits(compare_sofa(results, ProbeSet.from_texts("mine", SETS)))
    tables = {e.key: e.table for e in found}
    shares = [(row[0], row[1], row[3]) for row in shown_rows(tables["01-sofa-first-1"])]
    assert shares == [("A", "50.0%", "66.7%"), ("B", "50.0%", "33.3%")]


def test_bars_of_hate_are_labelled_from_the_bottom_up() -> None:
    (axes,) = draw_hate_bars({"c": (0, 3), "d": (1, 1)}).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["d", "c"]


def test_two_statements_rank_no_model() -> None:
    sets = {"d": (("C", "D"), ("s", "y"))}
    whole = ProbeSet.from_texts("mine", SETS)
    ranked = compare_sofa([probed("one", FIRST), probed("two", SECOND)], whole)
    assert not math.isnan(ranked.models[0].probabilities[0])
    few = ProbeSet.from_texts("few", sets)
    results = [
        replace(r, probe_set=few.id, categories=r.categories[1:])
        for r in (probed("one", FIRST), probed("two", SECOND))
    ]
    found = compare_sofa(results, few)
    assert [(m.low, m.high) for m in found.models] == [(1, 2), (1, 2)]
    assert all(math.isnan(p) for m in found.models for p in m.probabilities)
    assert found.as_dict()["models"][0]["probabilities"] == [None, None]
    assert "most biased" not in str(found)


def test_a_built_set_has_rows() -> None:
    kept = KeptStatement("gender", "love rain")
    built = SofaSet("sbic", {"gender": ("Men", "Women")}, (kept,), (), {})
    assert built.records()[0]["statement"] == "love rain" and "sbic, 2 probes" in repr(built)
