"""Association tests from a run's graph and back onto it, and the comparison of methods."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kgbias.associate.compare import agreements, pearson, spearman
from kgbias.associate.from_graph import (
    group_associations,
    groups_test,
    regard_sets,
    regard_words,
    topic_sets,
)
from kgbias.cli.associate import associate
from kgbias.errors import DataError, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import (
    Generation,
    Group,
    GroupScore,
    Metric,
    Run,
    Score,
    Topic,
    TopicModel,
    Triple,
    node_id,
)
from kgbias.models.base import ModelInfo
from kgbias.models.vectors import Found
from kgbias.report.associations import to_csv, to_latex, write
from kgbias.statistics import ranks

WORDS = {"kind": "positive", "honest": "positive", "rude": "negative", "lazy": "negative"}


@pytest.fixture
def run(store: SQLiteStore) -> Run:
    """Each group is said to be each word, the first group more kindly."""
    groups = (
        Group("Elves", "peoples", ("elven folk",)),
        Group("Orcs", "peoples"),
        Group("Ents", "peoples"),
    )
    made = store.begin(Run("middle", ModelInfo("stub"), {}, groups))
    generations, scores = [], {}
    for number, (group, word) in enumerate((g, w) for g in groups for w in WORDS):
        triple = Triple(group.name, "are said to be", word)
        count = 9 if (group.name == "Elves") == (WORDS[word] == "positive") else 2
        generations.append(
            Generation(
                made.id, f"a/{number}", group.id, "base", "s", 0, 0, "ok", triple=triple,
                count=count,
            )
        )  # fmt: skip
        sign = 1.0 if WORDS[word] == "positive" else -1.0
        scores[triple.id] = Score(triple.id, sign, WORDS[word])
    store.record(made.id, "base", 0, generations)
    store.save_scores(made.id, Metric("regard", "stub", "1"), list(scores.values()))
    figures = {"Elves": 14.0, "Orcs": -14.0, "Ents": -13.0}
    store.save_group_scores(
        made.id,
        [GroupScore(figures[g.name], -20, 20, 22, g.id, "overall_regard") for g in groups],
    )
    return store.find_run("middle")


VECTORS = {
    "Elves": [1.0, 0.1], "elven folk": [1.0, 0.2], "Orcs": [0.1, 1.0], "Ents": [0.5, 0.6],
    "kind": [1.0, 0.0], "honest": [0.9, 0.1], "rude": [0.0, 1.0], "lazy": [0.1, 0.8],
}  # fmt: skip


class Table:
    info = ModelInfo("table")

    def find(self, words: object) -> Found:
        known = [w for w in words if w in VECTORS]  # type: ignore[attr-defined]
        lost = tuple(w for w in words if w not in VECTORS)  # type: ignore[attr-defined]
        return Found({w: w for w in known}, np.array([VECTORS[w] for w in known]), lost)


def test_words_of_positive_and_negative_regard(store: SQLiteStore, run: Run) -> None:
    positive, negative = regard_words(store.triples(run.id))
    assert set(positive) == {"kind", "honest"}  # "said" is as common on either side
    assert set(negative) == {"rude", "lazy"}
    assert len(regard_words(store.triples(run.id), most=1)[0]) == 1
    with pytest.raises(DataError, match="no words of positive"):
        regard_words([t for t in store.triples(run.id) if t.object == "kind"])


def test_two_groups_become_a_test(store: SQLiteStore, run: Run) -> None:
    a, b = regard_sets(store.triples(run.id))
    test = groups_test(run, "elves", "Orcs", a, b)
    assert test.x.words == ("Elves", "elven folk") and test.y.words == ("Orcs",)
    with pytest.raises(UsageError, match="no group 'Hobbits'; there is Elves, Orcs, Ents"):
        groups_test(run, "Hobbits", "Orcs", a, b)


def test_topics_as_attributes(store: SQLiteStore, run: Run) -> None:
    with pytest.raises(UsageError, match="has no topics: kgbias measure middle --topics"):
        topic_sets(run, store.topics(run.id), "kind", "rude")
    found = [
        Topic("peoples", 0, ("kind", "honest", "old"), 9),
        Topic("peoples", 1, ("rude", "old"), 8),
    ]
    store.save_topics(run.id, [TopicModel("peoples", tuple(found), (), {})])
    models = store.topics(run.id)
    for names in (("kind", "rude"), ("0", "1"), ("peoples:0", "rude")):
        a, b = topic_sets(run, models, *names)
        assert a.words == ("kind", "honest") and b.words == ("rude",)  # "old" tells nothing
    assert a.concept == "topic peoples:0 (kind)"
    with pytest.raises(UsageError, match="'old' is more than one topic; there is peoples:0 kind"):
        topic_sets(run, models, "old", "rude")
    with pytest.raises(UsageError, match="'songs' is no topic of the run; there is peoples:0"):
        topic_sets(run, models, "songs", "rude")
    with pytest.raises(UsageError, match="the same words: name two different ones"):
        topic_sets(run, models, "0", "kind")


def test_group_associations_beside_regard(store: SQLiteStore, run: Run) -> None:
    scores = store.group_scores(run.id)
    agreement = group_associations(run, store.triples(run.id), Table(), scores)
    effects = {g.group.name: g.effect.value for g in agreement.groups}
    # Orcs (0.1, 1): cosines by hand, with r the length
    r, h, z = math.hypot(0.1, 1), math.hypot(0.9, 0.1), math.hypot(0.1, 0.8)
    a = np.array([0.1 / r, (0.09 + 0.1) / r / h])
    b = np.array([1 / r, (0.01 + 0.8) / r / z])
    both = np.concatenate([a, b])
    assert effects["Orcs"] == pytest.approx((a.mean() - b.mean()) / both.std(ddof=1))
    assert effects["Elves"] > effects["Ents"] > effects["Orcs"]
    assert agreement.correlation == 1
    for g in agreement.groups:
        assert g.effect.low <= g.effect.value <= g.effect.high


def test_command_writes_to_the_graph(store: SQLiteStore, run: Run, tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    vectors = tmp_path / "v.txt"
    rows = [f"{w.replace(' ', '_')} {x} {y}" for w, (x, y) in VECTORS.items()]
    vectors.write_text(f"{len(rows)} 2\n" + "\n".join(rows) + "\n")
    arguments = [
        "--vectors", str(vectors), "--groups", "Elves,Orcs", "--every-group", "--store", store.url,
        "--run", "middle", "--json",
    ]  # fmt: skip
    result = CliRunner().invoke(associate, arguments, catch_exceptions=False)
    answer = json.loads(result.stdout)
    alone = CliRunner().invoke(associate, [*arguments[:2], "--test", "weat6", "--topics", "0,1"])
    assert "--topics has no effect here, only with --groups" in str(alone.exception)
    assert [g["group"] for g in answer["groups"]] == ["Elves", "Orcs", "Ents"]
    assert answer["groups"][0]["rank_correlation"] == 1
    CliRunner().invoke(associate, arguments, catch_exceptions=False)  # twice is once
    (node,) = store.associations(run.id)
    assert store.associations() == [node]
    assert node.effect_size == answer["results"][0]["effect_size"]
    assert node.record["sets" if "sets" in node.record else "n"]["x"] == 2
    targets = {e.node_id for e in node.edges if e.name == "TARGET"}
    assert targets == {node_id("group", "Elves"), node_id("group", "Orcs")}
    attributes = {e.node_id for e in node.edges if e.name == "ATTRIBUTE"}
    assert attributes == {node_id("object", w) for w in WORDS}
    single = {s.group_id: s for s in store.group_scores(run.id) if s.measure == "sc_weat"}
    assert single[node_id("group", "Elves")].value == answer["groups"][0]["effect_size"]


def row(test: str, method: str, d: float, p: float = 0.01, model: str = "m") -> dict[str, object]:
    return {
        "test": test, "method": method, "model": model, "effect_size": d, "p_value": p,
        "p_holm": p, "p_bh": p, "low": d - 1, "high": d + 1, "n": dict.fromkeys("xyab", 8),
        "missing": {"x": ["=cmd"]}, "settings": {"ddof": 1}, "id": "-",
    }  # fmt: skip


def test_correlations_by_hand() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    assert pearson(x, y) == pytest.approx(0.5)
    assert spearman(x**3, y) == pytest.approx(0.5)
    assert math.isnan(pearson(x[:2], y[:2])) and math.isnan(pearson(x, np.ones(3)))


def test_agreement_of_methods() -> None:
    rows = [row(f"t{n}", m, d) for m, ds in (("weat", (1, 2, 3)), ("ceat", (1, 3, 2)))
            for n, d in enumerate(ds)]  # fmt: skip
    rows[0]["p_holm"] = 0.5
    everything, significant = agreements(rows)
    assert (everything.methods, everything.n) == (("weat", "ceat"), 3)
    assert everything.pearson == pytest.approx(0.5)
    assert significant.n == 2 and math.isnan(significant.pearson)


def test_comparison_files(tmp_path: Path) -> None:
    rows = [row("a_b", "weat", 1.25, model="50%"), row("a_b", "ceat", -0.5, 0.9, model="50%")]
    latex = to_latex(rows)
    assert r"50\% & a\_b & $1.25$* & $-0.50$ \\" in latex
    assert r"weat $|$ ceat & all & 1 & n/a & n/a \\" in latex
    table = to_csv(rows)
    assert "'-" in table and "x:=cmd" in table and table.count("\n") == 3
    pytest.importorskip("matplotlib")
    for name in ("t.tex", "t.csv", "t.png", "t.svg"):
        write(rows, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(UsageError, match="cannot write the figure"):
        write(rows, tmp_path / "t.nothing")
