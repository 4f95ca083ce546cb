"""Association tests from a run's graph and back onto it, and the comparison of methods."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from kgbias.crawl.seeds import published_seeds
from kgbias.errors import DataError, UsageError
from kgbias.evidence.indicators import read_indicators, shipped_indicators
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
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
from kgbias.methods.associations.attributes import read_attributes, target_sets
from kgbias.methods.associations.family import GroupTestSets
from kgbias.methods.associations.graph import (
    associate_groups,
    find_targets,
    regard_words,
    topic_attribute_sets,
)
from kgbias.methods.associations.method_agreement import measure_agreements, pearson, spearman
from kgbias.methods.associations.paper_files import to_csv, to_latex, write_comparison
from kgbias.methods.associations.weat import StaticSetVectors
from kgbias.models.base import ModelInfo
from kgbias.models.vectors import VectorLookup
from kgbias.stats.inference import ranks
from tests.conftest import require_modules
from tests.texts import Texts

CATEGORIES = ("gender", "ethnicity", "nationality", "religion")
WORDS = {"kind": "positive", "honest": "positive", "rude": "negative", "lazy": "negative"}


@pytest.fixture
def run(store: SQLiteStore) -> Run:
    """Each group is said to be each word, the first group more kindly."""
    groups = (
        Group("Elves", "peoples", ("elven folk",)),
        Group("Orcs", "peoples"),
        Group("Ents", "peoples"),
    )
    made = store.begin_run(Run("middle", ModelInfo("stub"), {}, groups))
    generations, scores = [], {}
    for number, (group, word) in enumerate((g, w) for g in groups for w in WORDS):
        triple = Triple(group.name, "are said to be", word)
        count = 9 if (group.name == "Elves") == (WORDS[word] == "positive") else 2
        generations.append(
            Generation(
                made.id,
                f"a/{number}",
                group.id,
                "base",
                "s",
                0,
                0,
                "ok",
                triple=triple,
                count=count,
            )
        )
        sign = 1.0 if WORDS[word] == "positive" else -1.0
        scores[triple.id] = Score(triple.id, sign, WORDS[word])
    store.record_round(made.id, "base", 0, generations)
    store.save_scores(made.id, Metric("regard", "stub", "1"), list(scores.values()))
    figures = {"Elves": 14.0, "Orcs": -14.0, "Ents": -13.0}
    store.put(
        made.id,
        GroupScore,
        [GroupScore(figures[g.name], -20, 20, 22, g.id, "overall_regard") for g in groups],
    )
    return store.find_run("middle")


ELVES = tuple(f"elf {n}" for n in range(8))
ORCS = tuple(f"orc {n}" for n in range(8))
KIND, RUDE = (tuple(f"{word} {n}" for n in range(8)) for word in ("kind", "rude"))
FILE = f"""
source = "made up"
[[group]]
name = "Elves"
names = {{ words = {list(ELVES)} }}
[[group]]
name = "Greenskins"
aliases = ["orcs"]
names = {{ words = {list(ORCS)} }}
[[group]]
name = "Ents"
names = {{ words = ["ent 0", "ent 1"] }}
[attributes.manners]
a = {{ concept = "kind", words = {list(KIND)} }}
b = {{ concept = "rude", words = {list(RUDE)} }}
"""


def around(words: tuple[str, ...], x: float, y: float) -> dict[str, list[float]]:
    """Vectors near a direction, no two alike."""
    return {word: [x + n / 50, y - n / 70] for n, word in enumerate(words)}


VECTORS = {
    **around(ELVES, 1.0, 0.1),
    **around(ORCS, 0.1, 1.0),
    **around(KIND, 1.0, 0.2),
    **around(RUDE, 0.0, 1.0),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "indicators.toml"
    path.write_text(FILE)
    return path


class Table:
    info = ModelInfo("table")

    def find(self, words: object) -> VectorLookup:
        known = [w for w in words if w in VECTORS]  # type: ignore[attr-defined]
        lost = tuple(w for w in words if w not in VECTORS)  # type: ignore[attr-defined]
        return VectorLookup({w: w for w in known}, np.array([VECTORS[w] for w in known]), lost)


def test_words_of_positive_and_negative_regard(store: SQLiteStore, run: Run) -> None:
    positive, negative = regard_words(store.triples(run.id))
    assert set(positive) == {"kind", "honest"}  # "said" is as common on either side
    assert set(negative) == {"rude", "lazy"}
    assert len(regard_words(store.triples(run.id), max_words=1)[0]) == 1
    with pytest.raises(DataError, match="lacks words of positive"):
        regard_words([t for t in store.triples(run.id) if t.object == "kind"])


def test_two_groups_become_a_test(store: SQLiteStore, run: Run, file: Path, texts: Texts) -> None:
    """By declared indicators: with the groups' names alone every d would be +-1.4142."""
    asked = GroupTestSets(StoredRun(store, run), attributes="manners", indicators_file=file)
    ((test,), left_out) = asked.build_tests(("elves", "Orcs"))
    assert (test.x.concept, test.x.words) == ("Elves", ELVES) and test.y.words == ORCS
    assert (test.a.words, test.b.words, left_out) == (KIND, RUDE, [])
    texts.check(test.source)
    assert not test.has_few_words
    with texts.raises(UsageError):
        asked.build_tests(("Hobbits", "Orcs"))
    everything, left_out = asked.build_tests("all")
    assert everything == [test] and len(left_out) == 1
    listed = r"no attribute sets 'food'; choose from pleasant, .*regard"
    with pytest.raises(UsageError, match=listed):
        _ = GroupTestSets(StoredRun(store, run), attributes="food").attribute_pair


def test_too_few_indicators_are_refused_never_a_d(
    store: SQLiteStore, run: Run, file: Path, texts: Texts
) -> None:
    stored = StoredRun(store, run)
    why = r"Ents has 2 indicators to test, and a test needs 8 per side: declare them in .*tors.toml"
    with pytest.raises(UsageError, match=why):
        GroupTestSets(stored, indicators_file=file).build_tests(("Elves", "Ents"))
    with texts.raises(UsageError):
        GroupTestSets(stored, indicators_file=file, targets="terms").build_tests(("Elves", "Orcs"))
    with texts.raises(UsageError):
        GroupTestSets(stored).build_tests(("Elves", "Orcs"))
    with texts.raises(UsageError):
        _ = GroupTestSets(stored, attributes="regard").attribute_pair


def test_shipped_groups_have_eight_indicators_of_one_kind(texts: Texts) -> None:
    groups = tuple(group for name in CATEGORIES for group in published_seeds()[name].as_groups())
    run = Run("seeds", ModelInfo("stub"), {}, groups)
    targets, left_out = find_targets(run, shipped_indicators())
    assert len(run.groups) == 42 and left_out == ()
    for category in CATEGORIES:
        of_it = [words for group, words in targets.items() if group.category == category]
        assert len({words.source.partition(":")[0] for words in of_it}) == 1
    assert all(len(words.words) >= 8 and words.source for words in targets.values())
    by_name = {group.name: group for group in run.groups}
    men, women = target_sets(shipped_indicators(), by_name["Men"], by_name["Women"])
    assert "uncle" in men.words and "aunt" in women.words and men.source.startswith("terms")
    white, black = target_sets(
        shipped_indicators(), by_name["White people"], by_name["Black people"]
    )
    assert "Adam" in white.words and "Jerome" in black.words
    mexican, dutch = target_sets(
        shipped_indicators(), by_name["Mexican people"], by_name["Dutch people"]
    )
    assert mexican.words[1] == "people from Mexico" and len(mexican.words) == len(dutch.words)
    with texts.raises(UsageError):  # all are Asian names, too
        target_sets(
            shipped_indicators(), by_name["Asian people"], by_name["Indian people"], "names"
        )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("source = 's'", "at least one of them"),
        ("[[groups]]\nname = 'Elves'", "no 'groups'"),
        ("[[group]]\nterms = { words = ['elf'] }", "every .* needs a name"),
        ("[[group]]\nname = 'Elves'\nterms = { words = ['elf'] }", "terms needs a source"),
        ("[[group]]\nname = 'Elves'\nterms = ['elf']", "terms must be a table"),
        (
            "[[group]]\nname = 'Elves'\nwords = ['elf']",
            "no entry 'words' .did you mean forms",
        ),
        ("[[group]]\nname = 'Elves'\nnames = { origins = ['elven'] }", "no origin 'elven'"),
        ("[[group]]\nname = 'E'\nnames = { pattern = 'p' }", "no pattern 'p' of names"),
    ],
)
def test_a_file_of_indicators_that_is_wrong_is_one_line(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=why) as error:
        read_indicators(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_pairs_of_attributes_that_are_wrong_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[attributes.good]\ntest = 'weat1'\nsides = ['a']")
    with pytest.raises(DataError, match="sides must be two") as error:
        read_attributes(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_topics_as_attributes(store: SQLiteStore, run: Run, texts: Texts) -> None:
    with pytest.raises(UsageError, match=r"has no topics: run.measure\(topics=True\)"):
        topic_attribute_sets(run, store.topics(run.id), "kind", "rude")
    found = [
        Topic("peoples", 0, ("kind", "honest", "old"), 9),
        Topic("peoples", 1, ("rude", "old"), 8),
    ]
    store.save_topics(run.id, [TopicModel("peoples", tuple(found), (), {})])
    models = store.topics(run.id)
    for names in (("kind", "rude"), ("0", "1"), ("peoples:0", "rude")):
        a, b = topic_attribute_sets(run, models, *names)
        assert a.words == ("kind", "honest") and b.words == ("rude",)  # "old" tells nothing
    assert a.concept == "topic peoples:0 (kind)"
    why = "'old' is more than one topic; choose from peoples:0 kind"
    with pytest.raises(UsageError, match=why):
        topic_attribute_sets(run, models, "old", "rude")
    with texts.raises(UsageError):
        topic_attribute_sets(run, models, "songs", "rude")
    with texts.raises(UsageError):
        topic_attribute_sets(run, models, "0", "kind")


def test_group_associations_beside_regard(store: SQLiteStore, run: Run, file: Path) -> None:
    asked = GroupTestSets(StoredRun(store, run), attributes="manners", indicators_file=file)
    targets, left_out = find_targets(run, asked.indicators)
    scores = store.find_all(run.id, GroupScore)
    agreement = associate_groups(
        targets, *asked.attribute_pair, StaticSetVectors(Table()), scores, left_out=left_out
    )
    effects = {g.group.name: g.effect.value for g in agreement.groups}
    # by hand: the cosine of each attribute with the mean of the unit vectors of the group's words
    own = np.array([VECTORS[w] / np.linalg.norm(VECTORS[w]) for w in ORCS]).mean(axis=0)
    cosines = [
        [np.dot(VECTORS[w], own) / np.linalg.norm(VECTORS[w]) / np.linalg.norm(own) for w in words]
        for words in (KIND, RUDE)
    ]
    difference = np.mean(cosines[0]) - np.mean(cosines[1])
    assert effects["Orcs"] == pytest.approx(difference / np.std(cosines, ddof=1))
    assert effects["Elves"] > effects["Orcs"]
    assert agreement.left_out == ("Ents",) and math.isnan(agreement.correlation)
    for g in agreement.groups:
        assert g.effect.low <= g.effect.value <= g.effect.high and len(g.words) == 8


def test_command_writes_to_the_graph(
    store: SQLiteStore, run: Run, tmp_path: Path, file: Path, texts: Texts
) -> None:
    require_modules("gensim")
    vectors = tmp_path / "v.txt"
    rows = [f"{w.replace(' ', '_')} {x} {y}" for w, (x, y) in VECTORS.items()]
    vectors.write_text(f"{len(rows)} 2\n" + "\n".join(rows) + "\n")
    arguments = [
        "--vectors",
        str(vectors),
        "--groups",
        "Elves,Orcs",
        "--every-group",
        "--store",
        store.url,
        "--run",
        "middle",
        "--indicators",
        str(file),
        "--attributes",
        "manners",
        "--json",
    ]
    result = CliRunner().invoke(cli, ["associate", *arguments], catch_exceptions=False)
    answer = json.loads(result.stdout)
    alone = CliRunner().invoke(
        cli, ["associate", *arguments[:2], "--test", "weat6", "--topics", "0,1"]
    )
    texts.check_lines(str(alone.exception), "effect here,")
    assert [g["group"] for g in answer["groups"]] == ["Elves", "Orcs"]
    texts.check("\n".join(answer["left_out"]))
    CliRunner().invoke(cli, ["associate", *arguments], catch_exceptions=False)  # twice is once
    (node,) = store.associations(run.id)
    assert store.associations() == [node]
    assert node.effect_size == answer["results"][0]["effect_size"]
    assert 1.4143 < node.effect_size < 2  # not what one word a side always gives
    assert (node.n_x, node.n_y, node.record["n"]["a"]) == (8, 8, 8)
    assert node.p_value == 2 / math.comb(16, 8) and math.isnan(node.p_published)  # two tails
    targets = {e.node_id for e in node.edges if e.name == "TARGET"}
    assert targets == {node_id("group", "Elves"), node_id("group", "Orcs")}
    single = {s.group_id: s for s in store.find_all(run.id, GroupScore) if s.measure == "sc_weat"}
    assert single[node_id("group", "Elves")].value == answer["groups"][0]["effect_size"]
    refused = CliRunner().invoke(
        cli, ["associate", *arguments[:2], "--groups", "Elves,Ents", *arguments[5:]]
    )
    assert "Ents has 2 indicators" in str(refused.exception) and not refused.stdout


def row(test: str, method: str, d: float, p: float = 0.01, model: str = "m") -> dict[str, object]:
    return {
        "test": test,
        "method": method,
        "model": model,
        "effect_size": d,
        "p_value": p,
        "p_holm": p,
        "p_bh": p,
        "low": d - 1,
        "high": d + 1,
        "n": dict.fromkeys("xyab", 8),
        "missing": {"x": ["=cmd"]},
        "settings": {"ddof": 1},
        "id": "-",
    }


def test_correlations_by_hand() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    assert pearson(x, y) == pytest.approx(0.5)
    assert spearman(x**3, y) == pytest.approx(0.5)
    assert math.isnan(pearson(x[:2], y[:2])) and math.isnan(pearson(x, np.ones(3)))


def test_agreement_of_methods() -> None:
    rows = [
        row(f"t{n}", m, d)
        for m, ds in (("weat", (1, 2, 3)), ("ceat", (1, 3, 2)))
        for n, d in enumerate(ds)
    ]
    rows[0]["p_holm"] = 0.5
    everything, significant = measure_agreements(rows)
    assert (everything.methods, everything.n) == (("weat", "ceat"), 3)
    assert everything.pearson == pytest.approx(0.5)
    assert significant.n == 2 and math.isnan(significant.pearson)


def test_comparison_files(tmp_path: Path, texts: Texts) -> None:
    rows = [row("a_b", "weat", 1.25, model="50%"), row("a_b", "ceat", -0.5, 0.9, model="50%")]
    latex = to_latex(rows)
    texts.check_lines(latex, "& $1.25$*")
    texts.check_lines(latex, "weat $|$")
    table = to_csv(rows)
    assert "'-" in table and "x:=cmd" in table and table.count("\n") == 3
    require_modules("matplotlib")
    for name in ("t.tex", "t.csv", "t.png", "t.svg"):
        write_comparison(rows, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(UsageError, match="cannot write the figure"):
        write_comparison(rows, tmp_path / "t.nothing")
