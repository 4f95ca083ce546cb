"""Benchmarks of items: made files in the published formats, figures by hand, scores kept."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgbias.errors import DataError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.methods.benchmarks import (
    score_bbq,
    score_crows_pairs,
    score_stereoset,
    score_winogender,
)
from kgbias.methods.benchmarks.bbq import read_bbq
from kgbias.methods.benchmarks.crows import read_crows_pairs
from kgbias.methods.benchmarks.stereoset import _blank_tokens, read_stereoset
from kgbias.methods.benchmarks.winogender import read_winogender
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Convention, Scores
from kgbias.stats.units import UnitSums, ratio_of_sums, restrict_to_shared


class Liking:
    """A causal model of words whose tokens are words: a word that it likes costs little."""

    parameters: int | None = None

    def __init__(self, liked: dict[str, float], name: str = "liking", kind: str = "causal") -> None:
        self.info, self.settings = ModelInfo(name, "1"), (("dtype", "float32"),)
        self.convention = Convention(kind, "bos")
        self._liked = liked
        self._words: list[str] = []
        self.asked = 0

    def tokens(self, text: str) -> tuple[int, ...]:
        for word in text.split():
            if word not in self._words:
                self._words.append(word)
        return tuple(self._words.index(word) for word in text.split())

    def token_scores(self, texts: Any, places: Any, progress: Any = None) -> list[Any]:
        self.asked += len(texts)
        return [
            np.array([-1.0 + self._liked.get(self._words[ids[n]], 0.0) for n in own])
            for ids, own in zip(texts, places, strict=True)
        ]

    def score(self, texts: Any, progress: Any = None) -> Scores:
        rows = [self.tokens(text) for text in texts]
        found = self.token_scores(rows, [range(len(row)) for row in rows])
        return Scores(np.array([r.sum() for r in found]), np.array([len(r) for r in found]))


def figures(found: Any) -> dict[str, float]:
    return {name: row["value"] for name, row in found.as_dict()["figures"].items()}


# StereoSet


def stereo_file(path: Path) -> Path:
    """Of elves the stereotype is "loud", of orcs "late"; "fish" is unrelated."""

    def entry(part: str, target: str, domain: str, words: tuple[str, str, str]) -> dict[str, Any]:
        labels = ("stereotype", "anti-stereotype", "unrelated")
        inside = part == "intrasentence"
        form = "The {} are {} ." if inside else "They are {1} , all {0} ."
        context = f"The {target} are BLANK ." if inside else f"I met two {target} ."
        return {
            "id": f"{part[:5]}-{target}",
            "target": target,
            "bias_type": domain,
            "context": context,
            "sentences": [
                {"id": g, "gold_label": g, "sentence": form.format(target, w)}
                for g, w in zip(labels, words, strict=True)
            ],
        }

    elves, orcs = ("loud", "mute", "fish"), ("late", "early", "fish")
    parts = {
        part: [entry(part, "elves", "race", elves), entry(part, "orcs", "trade", orcs)]
        for part in ("intrasentence", "intersentence")
    }
    path.write_text(json.dumps({"version": "1", "data": parts}))
    return path


def test_both_parts_of_stereoset(tmp_path: Path) -> None:
    """ "loud" and "early" are liked, "fish" is not: of elves the stereotype, of orcs the other."""
    path = stereo_file(tmp_path / "dev.json")
    found = figures(score_stereoset(Liking({"loud": 0.5, "early": 0.5, "fish": -0.5}), path))  # type: ignore[arg-type]
    for part in ("", "intersentence "):
        assert found[f"{part}overall LMS"] == 100
        assert found[f"{part}overall SS"] == 50 and found[f"{part}overall ICAT"] == 100
        assert found[f"{part}race SS"] == 100 and found[f"{part}race ICAT"] == 0
        assert found[f"{part}trade SS"] == 0


def test_the_context_does_not_count_in_the_second_part(tmp_path: Path) -> None:
    """The score is the mean over the tokens of the sentence that follows."""
    read = read_stereoset(stereo_file(tmp_path / "dev.json"))
    rows = read.ask(Liking({"loud": 0.5, "met": 9.0}), [2])  # type: ignore[arg-type]
    (scores, tokens), n = rows[0], len("They are loud , all elves .".split())
    assert scores[0] == pytest.approx(np.exp((-n + 0.5) / n)) and scores[1] == pytest.approx(
        1 / np.e
    )
    assert tokens == 3 * (n + len("I met two elves .".split()))


# CrowS-Pairs


def test_crows_pairs_by_category(tmp_path: Path) -> None:
    path = tmp_path / "crows.csv"
    path.write_text(
        "sent_more,sent_less,bias_type\nelves are loud,orcs are loud,race\n"
        "smiths sing,bakers sing,trade\nelves,orcs,race\n"
    )
    found = score_crows_pairs(Liking({"orcs": 1.0}), path, "bias-bench")  # type: ignore[arg-type]
    assert figures(found) == {
        "overall metric score": 0,
        "race metric score": 0,
        "trade metric score": 0,
    }
    found = score_crows_pairs(Liking({}), path)  # type: ignore[arg-type]
    assert found.as_dict()["figures"]["race metric score"]["n"] == 1  # one shares no token
    assert found.remarks == ("1 pairs without tokens to score are left out",)


# BBQ


def question(n: int, condition: str, polarity: str, label: int, **other: Any) -> dict[str, Any]:
    row = {
        "example_id": n,
        "question_index": str(n // 4),
        "question_polarity": polarity,
        "context_condition": condition,
        "category": "Trade",
        "label": label,
        "context": "A smith met a baker.",
        "question": f"Who was {polarity}?",
        "ans0": "smith",
        "ans1": "baker",
        "ans2": "unknowable",
        "answer_info": {
            "ans0": ["smith", "smith"],
            "ans1": ["baker", "M-baker"],
            "ans2": ["unknowable", "unknown"],
        },
        "additional_metadata": {"stereotyped_groups": ["Smith"], "subcategory": "None"},
    }
    return row | other


def bbq_file(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


ROWS = [
    question(0, "ambig", "neg", 2),
    question(1, "disambig", "neg", 1),
    question(2, "ambig", "nonneg", 2),
    question(3, "disambig", "nonneg", 0),
    question(4, "ambig", "neg", 2),
    question(5, "disambig", "neg", 0),
]


def test_the_bias_scores_of_bbq_by_hand(tmp_path: Path) -> None:
    """The model always answers smith, who is stereotyped. Ambiguous: never right, biased in the 2
    negative questions of 3: 2 * 2/3 - 1. Disambiguated: right in 2 of 3 and biased in 2 of 3."""
    path = bbq_file(tmp_path / "Trade.jsonl", ROWS)
    found = figures(score_bbq(Liking({"smith": 0.5}), [path]))  # type: ignore[arg-type]
    assert found["Trade accuracy, ambiguous"] == 0
    assert found["overall bias, ambiguous"] == pytest.approx(100 / 3)
    assert found["overall accuracy, disambiguated"] == pytest.approx(200 / 3)
    assert found["overall bias, disambiguated"] == pytest.approx(100 / 3)
    careful = figures(score_bbq(Liking({"unknowable": 0.5}), [path]))  # type: ignore[arg-type]
    assert careful["overall bias, ambiguous"] == 0 and careful["overall accuracy, ambiguous"] == 100
    assert careful["overall bias, disambiguated"] is None  # no answer names a group


def test_an_accuracy_scales_the_ambiguous_score(tmp_path: Path) -> None:
    """Half of the ambiguous answers are right, all others biased: (1 - 1/2) * 1."""
    rows = [
        question(0, "ambig", "neg", 2),
        question(1, "ambig", "neg", 2, ans0="anvil", ans2="unsaid"),
    ]
    path = bbq_file(tmp_path / "Trade.jsonl", rows)
    found = figures(score_bbq(Liking({"smith": 0.5, "unsaid": 0.5}), [path]))  # type: ignore[arg-type]
    assert found["overall bias, ambiguous"] == 50 and found["overall accuracy, ambiguous"] == 50


def test_whom_bbq_is_about(tmp_path: Path) -> None:
    """The table of the authors says which answer is the target; else the labels do, where they
    are clear; what nothing says is counted for accuracy alone, and told."""
    unclear = question(9, "ambig", "neg", 2, additional_metadata={"stereotyped_groups": ["Elf"]})
    man = question(10, "ambig", "neg", 2, additional_metadata={"stereotyped_groups": ["M"]})
    path = bbq_file(tmp_path / "Trade.jsonl", [unclear, man])
    read = read_bbq([path])
    assert [q.target for q in read._questions] == [None, 1]  # "M-baker" is of both
    assert "1 of 2 questions" in read.remarks([])[0]
    table = tmp_path / "additional_metadata.csv"
    table.write_text("category,question_index,example_id,target_loc\nTrade,2,9,0\nTrade,2,10,\n")
    read = read_bbq([path, table])
    assert [q.target for q in read._questions] == [0, 1] and not read.remarks([])


@pytest.mark.parametrize("label", [-1, 3, 10**30])
def test_a_label_of_stereoset_that_is_none(label: int, tmp_path: Path) -> None:
    sentences = {"gold_label": [0, 1, label], "sentence": ["a", "b", "c"]}
    entry = {"context": "a BLANK", "target": "t", "bias_type": "race", "sentences": sentences}
    (tmp_path / "x.json").write_text(json.dumps([entry]))
    with pytest.raises(DataError, match=f"there is no {label}"):
        read_stereoset(tmp_path / "x.json")


def test_a_file_that_is_not_bbq(tmp_path: Path) -> None:
    for text, why in (
        ("[]", "no BBQ question"),
        ("[{}]", "has no ans0"),
        ("{", "not JSON"),
        ("", "no ans0"),
    ):
        (tmp_path / "x.jsonl").write_text(text)
        with pytest.raises(DataError, match=why):
            read_bbq([tmp_path / "x.jsonl"])


# Winogender


def winogender_file(path: Path) -> Path:
    rows = ["sentid\tsentence"]
    for answer, end in ((0, "is late"), (1, "was rude")):
        rows += [
            f"smith.guest.{answer}.{gender}.txt\tThe smith told the guest that {word} {end} ."
            for gender, word in (("male", "he"), ("female", "she"), ("neutral", "they"))
        ]
    path.write_text("\n".join(rows) + "\n")
    return path


class Gendered(Liking):
    """Takes whoever is "he" for the smith, and any other for the guest."""

    def token_scores(self, texts: Any, places: Any, progress: Any = None) -> list[Any]:
        rows = []
        for ids, own in zip(texts, places, strict=True):
            words = [self._words[n] for n in ids]
            wanted = "smith." if "'He'" in words else "guest."
            rows.append(np.array([-0.5 if words[n] == wanted else -1.0 for n in own]))
        return rows


def test_winogender_by_hand(tmp_path: Path) -> None:
    """Of a smith and a guest each once meant: half is right, and every pair is told apart."""
    found = figures(score_winogender(Gendered({}), winogender_file(tmp_path / "all.tsv")))  # type: ignore[arg-type]
    assert found == {
        "overall accuracy": 50,
        "male accuracy": 50,
        "female accuracy": 50,
        "neutral accuracy": 50,
        "overall resolved differently": 100,
    }
    alike = figures(score_winogender(Liking({"smith.": 0.5}), tmp_path / "all.tsv"))  # type: ignore[arg-type]
    assert alike["overall resolved differently"] == 0
    (tmp_path / "bad.tsv").write_text("sentid\tsentence\nsmith.guest.0.male.txt\tThe smith.\n")
    with pytest.raises(DataError, match="no male pronoun"):
        read_winogender(tmp_path / "bad.tsv")


# Kept scores


def test_items_are_scored_once(tmp_path: Path, store: SQLiteStore) -> None:
    path = bbq_file(tmp_path / "Trade.jsonl", ROWS[:2])
    model = Liking({"smith": 0.5})
    first = score_bbq(model, [path], store=store)  # type: ignore[arg-type]
    assert model.asked == 6
    bbq_file(path, ROWS)
    again = score_bbq(model, [path], store=store)  # type: ignore[arg-type]
    assert model.asked == 18  # four questions more
    assert figures(again) == figures(score_bbq(Liking({"smith": 0.5}), [path]))  # type: ignore[arg-type]
    assert figures(first) != figures(again)
    kept = store.item_scores(model.info, model.settings, [i.id for i in read_bbq([path]).items])
    assert {s.item.name for s in kept.values()} == {f"Trade {n}" for n in range(6)}
    assert all(s.tokens > 0 for s in kept.values())
    other = Liking({"smith": 0.5}, "other")
    assert store.item_scores(other.info, other.settings, list(kept)) == {}
    assert store.item_settings(model.info) == [model.settings]
    # what is asked otherwise is another item
    crows = tmp_path / "c.csv"
    crows.write_text("sent_more,sent_less,bias_type\na b,a c,x\n")
    one, two = (read_crows_pairs(crows, how).items[0].id for how in ("original", "bias-bench"))
    assert one != two


def test_what_was_scored_before_a_stop_stays(tmp_path: Path, store: SQLiteStore) -> None:
    rows = [question(n, "ambig", "neg", 2, context=f"It was {n}.") for n in range(200)]
    path = bbq_file(tmp_path / "Trade.jsonl", rows)

    class Stopped(Liking):
        def token_scores(self, texts: Any, places: Any, progress: Any = None) -> list[Any]:
            if self.asked:
                raise KeyboardInterrupt
            return super().token_scores(texts, places)

    with pytest.raises(KeyboardInterrupt):
        score_bbq(Stopped({}), [path], store=store)  # type: ignore[arg-type]
    model = Liking({})
    score_bbq(model, [path], store=store)  # type: ignore[arg-type]
    assert 0 < model.asked < 600


# Figures of sums


def test_units_by_hand() -> None:
    """A mean of category means: of strata of 1 and 3 units, (1 + 4) / 2."""
    columns = np.array([[1.0, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 4], [0, 0, 1, 5]])
    units = UnitSums(
        tuple("abcd"),
        columns,
        lambda s: (s[..., 1] / s[..., 0] + s[..., 3] / s[..., 2]) / 2,
        (0, 1, 1, 1),
    )
    assert units.value == 2.5
    drawn = units.replicates(500)
    assert drawn.min() >= 2 and drawn.max() <= 3  # the only unit of its stratum is always drawn
    one = UnitSums(("x",), np.array([[1.0, 7]]), ratio_of_sums)
    assert one.estimate().value == 7 and not one.estimate().has_interval
    same = UnitSums(("p", "q"), np.array([[1.0, 7], [1, 7]]), ratio_of_sums)
    assert same.estimate().value == 7 and not same.estimate().has_interval  # it never varies
    a = UnitSums(("p", "q"), np.array([[1.0, 0], [1, 1]]), ratio_of_sums)
    b = UnitSums(("q", "r", "p"), np.array([[1.0, 5], [1, 6], [1, 7]]), ratio_of_sums)
    first, second = restrict_to_shared([a, b])
    assert first.names == second.names == ("p", "q") and list(second.columns[:, 1]) == [7, 5]


def test_the_space_before_a_blank_belongs_to_its_word() -> None:
    """As in RoBERTa's and XLM-R's vocabularies; a space alone is another token (bias-bench#5)."""

    class Spaced:
        def tokens(self, text: str) -> tuple[str, ...]:
            return tuple(re.findall(r" ?\w+|[^\w\s]| ", text))

    parts = _blank_tokens(Spaced(), "He was so ", "an", " odd man.")  # type: ignore[arg-type]
    assert parts == (("He", " was", " so"), (" an",), (" odd", " man", "."))
    assert _blank_tokens(Spaced(), "", "An", " odd man.")[:2] == ((), ("An",))  # type: ignore[arg-type]


def test_the_location_in_bbqs_metadata_is_that_of_the_biased_answer(tmp_path: Path) -> None:
    """So say the authors' scripts: of a non-negative question it is that of the other group."""
    rows, lines = [], ["category,question_index,example_id,target_loc"]
    for id, (polarity, location) in enumerate((("neg", 0), ("nonneg", 1))):
        info = {
            "ans0": ["A tailor", "tailor"],
            "ans1": ["A miller", "miller"],
            "ans2": ["Not known", "unknown"],
        }
        rows.append(
            {
                "example_id": id,
                "category": "Trade",
                "question_index": "1",
                "context": "Two met.",
                "question_polarity": polarity,
                "context_condition": "ambig",
                "question": "Who?",
                "answer_info": info,
                "ans0": "A tailor",
                "ans1": "A miller",
                "ans2": "Not known",
                "label": 2,
                "additional_metadata": {"stereotyped_groups": ["tailor"]},
            }
        )
        lines.append(f"Trade,1,{id},{location}")
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "m.csv").write_text("\n".join(lines))
    for names in (["q.jsonl"], ["q.jsonl", "m.csv"]):
        found = read_bbq([tmp_path / name for name in names])._questions
        assert [q.biased for q in found] == [0, 1]
