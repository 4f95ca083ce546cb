"""Mean maps: which part of a statement a score lies in, by label, group and confusion."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kgbias
from kgbias.graph.types import Metric, Score, TripleView, WordAttribution
from kgbias.methods.attribution import list_attributions
from kgbias.methods.attribution.word_effects import STATEMENT_PARTS, mean_maps, part_effects
from kgbias.methods.attribution.word_maps import word_maps
from tests.report_data import shown_rows
from tests.texts import Texts

METRIC, OTHER = Metric("regard", "ours", "1"), Metric("regard", "theirs", "1")


def attribution(id: str, words: str, effects: tuple[float, ...]) -> WordAttribution:
    return WordAttribution(id, METRIC, tuple(words.split()), effects, 0.5, "occlusion@2")


def triple(id: str, group: str, predicate: str, object: str) -> TripleView:
    return TripleView(id, group, group, predicate, object, 1)


def test_words_are_told_apart_by_part() -> None:
    told = triple("1", "Asian people", "tend to love", "a b c d e")
    words = "Asian people tend to love a b c d e."
    own = part_effects(attribution("1", words, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)), told)
    assert own == [3, 12, 6, 7, 8, 19]
    merged = "They tend to loves a b c d e."  # a mention that the scorer reads as one word
    assert part_effects(attribution("1", merged, (1, 3, 4, 5, 6, 7, 8, 9, 10)), told) == [
        1,
        12,
        6,
        7,
        8,
        19,
    ]
    short = part_effects(attribution("2", "Men sing.", (1, 2)), triple("2", "Men", "do", "sing"))
    assert short is None  # no word is left for the group
    two = part_effects(
        attribution("2", "Men do sing.", (1, 2, 3)), triple("2", "Men", "do", "sing")
    )
    assert two is not None and two[:3] == [1, 2, 3] and all(map(math.isnan, two[3:]))
    cut = attribution("1", "Asian people tend to love a b", (1, 2, 3, 4, 5, 6, 7))
    assert part_effects(cut, told) is None  # the effects stop before the statement does


def test_what_was_attributed_is_listed(tmp_path: Path) -> None:
    (tmp_path / "said.csv").write_text("group,predicate,object\nMen,sing,songs\n")
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(tmp_path / "said.csv")
        store, (sung,) = run.stored.store, run.triples()
        store.save_scores(run.id, METRIC, [Score(sung.id, 0.5)])
        store.save_attributions([attribution(sung.id, "Men sing songs.", (0.1, 0.0, -0.2))])
        (row,) = list_attributions(run).records()
    assert (row["sentence"], row["measure"]) == ("Men sing songs.", "regard")
    assert (row["tokens"], row["effects"]) == (("Men", "sing", "songs."), (0.1, 0.0, -0.2))


def test_the_mean_of_each_part() -> None:
    triples = {str(n): triple(str(n), "Men", "do", "sing") for n in range(4)}
    found = [attribution(str(n), "Men do sing.", (n, -n, 1)) for n in range(4)]
    (a, b) = mean_maps(found, triples, {"0": "x", "2": "x", "1": "y"})
    assert (a.cell, a.statements, b.cell, b.statements) == ("x", 2, "y", 1)
    assert [e.value for e in a.parts[:3]] == [1, -1, 1]
    assert a.parts[0].n == 2 and math.isnan(a.parts[5].value)
    assert a.distance_to(a) == a.distance_to(b) == 0
    (flat,) = mean_maps([attribution("0", "Men do sing.", (0, 0, 3))], triples, {"0": "z"})
    assert a.distance_to(flat) == pytest.approx(math.sqrt((1 + 1 + 4) / 3))


def data(attributed: int = 20) -> Any:
    """Twenty statements: ten that both scorers call negative, five positive, and five that only the
    first calls negative, whose effects are like those of the positive ones."""
    ids = [str(n) for n in range(20)]
    effects = {n: (0.0, -1.0, 0.0) if n < 10 else (0.0, 0.5, 1.0) for n in range(20)}
    own = {id: "negative" if int(id) < 15 else "positive" for id in ids}
    theirs = {id: "negative" if int(id) < 10 else "positive" for id in ids}
    found = [attribution(id, "Men do sing.", effects[int(id)]) for id in ids[:attributed]]
    return SimpleNamespace(
        triples=[triple(id, "Men" if int(id) % 2 else "Women", "do", "sing") for id in ids],
        attributions=found,
        labels=lambda metric: own if metric == METRIC else theirs,
        scorers=[METRIC, OTHER, Metric("toxicity", "ours", "1")],
    )


def test_maps_by_label_group_and_error() -> None:
    found = {e.key: e for e in word_maps(data(), "09")}
    assert list(found) == [
        "09-word-map-regard-occlusion-labels",
        "09-word-map-regard-occlusion-groups",
        "09-word-map-regard-occlusion-errors-1",
    ]
    labels, groups, errors = (e.table for e in found.values())
    label_rows = shown_rows(labels)
    assert [column.name for column in labels.columns] == ["Cell", "n", *STATEMENT_PARTS]
    assert [row[:2] for row in label_rows] == [["negative", "15"], ["positive", "5"]]
    assert label_rows[1][4] == "+0.50"
    assert label_rows[1][-2:] == ["-", ""]  # no statement has more than one word of an object
    assert [row[0] for row in groups.rows] == ["Men", "Women"]
    assert [column.name for column in errors.columns[2:5]] == [
        "from the first",
        "from the second",
        "between them",
    ]
    assert [
        row[:5] for row in shown_rows(errors)
    ] == [  # 1.04: of 1.5 in one part and 1 in another of 3
        ["negative / negative", "10", "-", "-", "-"],
        ["negative / positive", "5", "1.04", "0.00", "1.04"],
        ["positive / positive", "5", "-", "-", "-"],
    ]
    assert "Only" not in labels.note
    for exhibit in found.values():
        assert exhibit.draw is not None and exhibit.draw().axes


def test_what_was_not_attributed_is_said(texts: Texts) -> None:
    labels = next(word_maps(data(19), "09"), None)
    assert labels is not None and labels.key.endswith("groups")  # four positive ones are too few
    texts.check(labels.title)
    texts.check_lines(labels.table.note, "20 statements")
    assert not list(word_maps(data(0), "09"))
