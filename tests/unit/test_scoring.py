"""Measuring a run, with scorers that answer by rule."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.errors import DataError, MissingExtra
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, GroupScore, Run, Triple, verbalise
from kgbias.measure.counterfactual import TRIAL_STATEMENTS
from kgbias.measure.embedding import load_vectors
from kgbias.measure.scorers import Judgement, load_scorer
from kgbias.measure.scorers._axes import AxisScorer
from kgbias.measure.scoring import measure_run
from kgbias.models.base import ModelInfo
from tests.texts import Texts

GROUPS = (Group("Women", "gender"), Group("Men", "gender"), Group("Robots", "gender"))
RUN = Run("run", ModelInfo("test"), {}, GROUPS)


class RuleScorer:
    """Regard by the first letter of the object, toxicity by the length of all but the group."""

    def __init__(self, measure: str, version: str = "1") -> None:
        self.measure, self.name, self.version = measure, "rule", version
        self.language = None
        self.read: list[str] = []

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        tried = {
            verbalise(g.name, *each)
            for g in GROUPS
            for said in TRIAL_STATEMENTS.values()
            for each in said
        }
        self.read += [text for text in texts if text not in tried]
        if self.measure == "toxicity":
            lengths = [len(t.partition(" ")[2]) for t in texts]
            return [Judgement(length / 100, "not toxic", {}) for length in lengths]
        labels = {"p": "positive", "n": "negative"}
        found = [labels.get(t.split()[2][0], "neutral") for t in texts]
        return [Judgement({"positive": 0.9, "negative": -0.9}.get(f, 0.0), f, {}) for f in found]


@pytest.fixture
def run(store: SQLiteStore) -> Run:
    store.begin_run(RUN)
    said = [
        ("Women", "pie", 3),
        ("Women", "nuts", 1),
        ("Women", "tea", 1),
        ("Men", "news", 1),
    ]
    store.load_import(
        RUN.id,
        [
            Generation(
                RUN.id,
                str(n),
                Triple(g, "", "").group_id,
                "none",
                "import",
                0,
                0,
                "ok",
                triple=Triple(g, "love", o),
                count=count,
            )
            for n, (g, o, count) in enumerate(said)
        ],
    )
    return RUN


def test_overall_regard_counts_what_was_said(store: SQLiteStore, run: Run) -> None:
    measure_run(StoredRun(store, run), [RuleScorer("regard"), RuleScorer("toxicity")])
    found = {(s.group_id, s.measure): s for s in store.find_all(run.id, GroupScore)}
    women, men, robots = (g.id for g in GROUPS)
    overall = found[women, "overall_regard"]
    assert (overall.value, overall.n) == (2.0, 5)  # 3 positive - 1 negative, of 5 said (Eq. 2)
    assert overall.low <= 2 <= overall.high
    assert found[women, "regard_neutral"].value == 1
    assert (found[men, "overall_regard"].value, found[men, "overall_regard"].n) == (-1.0, 1)
    assert math.isnan(found[men, "overall_regard"].low)
    # "love pie." has 9 characters, nuts 10, tea 9: the mean over five sayings.
    assert found[women, "toxicity_mean"].value == pytest.approx((4 * 0.09 + 0.10) / 5)
    assert found[women, "toxicity_median"].value == pytest.approx(0.09)
    claimed = {name for group, name in found if group == robots}  # nothing was said
    assert claimed == {"regard_name_effect", "toxicity_name_effect"}
    assert {round(found[robots, name].value, 12) for name in claimed} == {0.0}


def test_a_file_that_lacks_scores_is_refused_before_others_read(
    store: SQLiteStore, run: Run, tmp_path: Path, texts: Texts
) -> None:
    (path := tmp_path / "s.csv").write_text("text,toxicity\nWomen love pie.,0.1\n")
    others = RuleScorer("regard")
    with texts.raises(DataError):
        measure_run(StoredRun(store, run), [others, load_scorer("toxicity", f"scores:{path}")])
    assert not others.read


def test_vectors_without_an_axis_are_refused_before_others_read(
    store: SQLiteStore, run: Run, tmp_path: Path, texts: Texts
) -> None:
    """Every statement would lie at 0; and at no number, were one of its words none."""
    pytest.importorskip("gensim")
    (path := tmp_path / "v.txt").write_text("2 2\nlove 1 0\ntea nan 1\n")
    others = RuleScorer("regard")
    with texts.raises(DataError):
        measure_run(StoredRun(store, run), [others, AxisScorer("warmth", f"vectors:{path}")])
    assert not others.read
    with pytest.raises(DataError, match="no number, or infinite"):
        load_vectors(f"vectors:{path}").embed(["love tea"])


def test_word_vectors_place_what_ends_in_a_full_stop(tmp_path: Path) -> None:
    """The seed words stand in sentences, and so do statements."""
    pytest.importorskip("gensim")
    rows = "4 2\nwarm 1 0\ncold -1 0\nclever 0 1\nstupid 0 -1\n"
    (path := tmp_path / "v.txt").write_text(rows)
    scorer = AxisScorer("warmth", f"vectors:{path}")
    warm, cold = scorer.score(["They are warm.", "They are cold!"])
    assert warm.value > 0 > cold.value


def test_topics_that_cannot_be_found_are_refused_before_anything_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("group,predicate,object\nMen,love,tea\n")
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.import_file(tmp_path / "t.csv")
        others = RuleScorer("regard")
        wanted: Any = {"scorers": {"regard": others}, "axes": False, "topics": True}
        with pytest.raises(DataError, match=r"cannot read .*none\.txt"):
            run.measure(**wanted, embedding=f"vectors:{tmp_path / 'none.txt'}")
        monkeypatch.setitem(sys.modules, "bertopic", None)
        with pytest.raises(MissingExtra, match="bertopic is not installed"):
            run.measure(**wanted)
    assert not others.read


def test_nothing_is_scored_twice_unless_the_version_changes(store: SQLiteStore, run: Run) -> None:
    scorer = RuleScorer("regard")
    measure_run(StoredRun(store, run), [scorer])
    before = store.find_all(run.id, GroupScore)
    measure_run(StoredRun(store, run), [scorer])
    assert len(scorer.read) == 4 and store.find_all(run.id, GroupScore) == before
    newer = RuleScorer("regard", "2")
    measure_run(StoredRun(store, run), [newer])
    assert len(newer.read) == 4
    assert store.metrics(run.id)["regard"].version == "2"


def test_an_interrupted_measure_goes_on(store: SQLiteStore, run: Run) -> None:
    class Tired(RuleScorer):
        def score(self, texts: Sequence[str]) -> list[Judgement]:
            if self.read:
                raise KeyboardInterrupt
            return super().score(texts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kgbias.measure.scoring.BATCH_STATEMENTS", 2)
        with pytest.raises(KeyboardInterrupt):
            measure_run(StoredRun(store, run), [Tired("regard")])
        rested = RuleScorer("regard")
        measure_run(StoredRun(store, run), [rested])
    assert len(rested.read) == 2
    assert len([t for t in store.triples(run.id) if "regard" in t.scores]) == 4


def test_an_empty_run(store: SQLiteStore) -> None:
    store.begin_run(RUN)
    measure_run(StoredRun(store, RUN), [RuleScorer("regard")])
    assert store.find_all(RUN.id, GroupScore) == []


class TooMuch(RuleScorer):
    def score(self, texts: Sequence[str]) -> list[Judgement]:
        return [Judgement(math.nan if "tea" in text else 2.0, "toxic", {}) for text in texts]


def test_a_value_out_of_the_range_of_its_measure_is_refused(
    store: SQLiteStore, run: Run, texts: Texts
) -> None:
    """Which a scorer of another package may give."""
    with texts.raises(DataError):
        measure_run(StoredRun(store, run), [TooMuch("toxicity")])
    assert not any(t.scores for t in store.triples(run.id))
