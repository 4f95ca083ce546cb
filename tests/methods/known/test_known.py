"""Known or new: claims, tables of recorded stereotypes, and what a run says of them."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.crawl.seeds import read_seeds
from kgbias.errors import DataError, UsageError
from kgbias.evidence.claims import extract_claims
from kgbias.graph.selection import SelectedStatements
from kgbias.graph.types import BeliefRun, BelievedEdge
from kgbias.io.tables_in_memory import as_table_file
from kgbias.methods import known
from kgbias.methods.known.command import _format_share
from kgbias.methods.known.matching import (
    MIN_KNOWN_COSINE,
    MIN_RELATED_COSINE,
    StereotypeComparison,
    StereotypeCount,
    list_recorded_statements,
    match_stereotypes,
    match_texts,
)
from kgbias.methods.known.tables import (
    Stereotype,
    TableColumns,
    read_stereotypes,
    word_stereotype,
)
from kgbias.models.base import ModelInfo
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion
from tests.methods.known.test_recorded_agreement import Model
from tests.texts import Texts


def claimed(text: str) -> list[tuple[str, int, bool]]:
    return [(" ".join(sorted(c.lemmas)), c.stance, c.is_negated) for c in extract_claims(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("are known for being very rude", [("rude", 0, False)]),
        ("rude", [("rude", 0, False)]),
        ("are not religious", [("religious", 0, True)]),
        ("non-religious", [("religious", 0, True)]),
        ("pro-gun control", [("control gun", 1, False)]),
        ("anti-gun control", [("control gun", -1, False)]),
        ("believe in gun control", [("control gun", 1, False)]),
        ("do not support gun control", [("control gun", 1, True)]),
        ("are poor, proud and loud", [("poor", 0, False), ("proud", 0, False), ("loud", 0, False)]),
        ("are not poor and loud", [("poor", 0, True), ("loud", 0, True)]),
        ("love fishing and hunting", [("fish", 1, False), ("hunt", 1, False)]),
        ("love their rich and diverse culture", [("culture diverse rich", 1, False)]),
        ("are white people", [("white", 0, False)]),
        ("love white people", [("person white", 1, False)]),
        ("are working", [("work", 0, False)]),
        ("are pretty kind", [("kind", 0, False)]),
        ("are pretty", [("pretty", 0, False)]),
        ("should be poor", []),
        ("used to be poor", []),
        ("believe that they are poor", []),
        ("are poorer than others", []),
        ("are", []),
    ],
)
def test_claims(text: str, found: list[tuple[str, int, bool]]) -> None:
    assert claimed(text) == found


VECTORS = {  # two directions, and what lies between them at a known cosine
    "smart": (1.0, 0.0),
    "rude": (0.0, 1.0),
    "intelligent": (MIN_KNOWN_COSINE + 0.01, 0.0),
    "clever": (MIN_RELATED_COSINE + 0.01, 0.0),
}


def embed(texts: Sequence[str]) -> np.ndarray:
    """Vectors of length 1 whose third coordinate is each text's own."""
    rows = np.zeros((len(texts), 2 + len(texts)))
    for n, text in enumerate(texts):
        x, y = VECTORS.get(text, (0.0, 0.0))
        rows[n, :2], rows[n, 2 + n] = (x, y), math.sqrt(max(0.0, 1 - x * x - y * y))
    return np.hstack([rows[:, :2], np.zeros((len(texts), 200)), rows[:, 2:]])[:, :202]


@pytest.mark.parametrize(
    ("text", "attribute", "mark", "by"),
    [
        ("are very smart", "smart", "known", "words"),
        ("are intelligent", "smart", "known", "meaning"),
        ("are not intelligent", "smart", "related", "meaning"),
        ("are clever", "smart", "related", "meaning"),
        ("are not smart", "smart", "related", "words"),
        ("support gun control", "pro-gun control", "known", "words"),
        ("support gun control", "anti-gun control", "related", "words"),
        ("support gun control", "gun control", "known", "words"),
        ("are against gun control", "gun control", "related", "words"),
        ("fish", "pro-fishing", "related", "words"),
        ("should be intelligent", "smart", None, ""),
        ("are loud", "smart", None, ""),
    ],
)
def test_marks_of_a_text(text: str, attribute: str, mark: str | None, by: str) -> None:
    found = match_texts([text], [attribute], embed)[text]
    assert (attribute in found) == (mark is not None)
    if mark:
        assert (found[attribute].mark, found[attribute].matched_by) == (mark, by)


SAID = """group,predicate,object,count,category
Texans,are,rude,3,states
Texans,are,intelligent,1,states
Texans,are not,rude,1,states
Ohioans,are,smart,2,states
Ohioans,wear,hats,1,states
people from Utah,are,rude,1,states
Iowans,are,rude,1,states
Martians,are,rude,1,states
"""
TABLE = """identity,attribute,offensiveness_score
Texan,rude,2.5
Texan,smart,-1
Ohioan,rude,NA
Utahn,calm,0
Iowan,rude,1
Nobody,kind,0
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, Path]:
    (tmp_path / "said.csv").write_text(SAID, "utf-8")
    (tmp_path / "own.csv").write_text(TABLE, "utf-8")
    db = str(tmp_path / "kgbias.db")
    with kgbias.open(db) as study:
        study.import_file(tmp_path / "said.csv", name="said")
    return db, tmp_path / "own.csv"


def held(db: str, table: Path) -> StereotypeComparison:
    with kgbias.open(db) as study:
        return match_stereotypes(study.run("said").stored, read_stereotypes(table), embed=embed)


def test_a_run_against_a_table(files: tuple[str, Path]) -> None:
    found = held(*files)
    marks = {
        row.triple.sentence: (row.mark, row.entry and row.entry.attribute) for row in found.rows
    }
    assert marks == {
        "Texans are rude.": ("known", "rude"),
        "Texans are intelligent.": ("known", "smart"),
        "Texans are not rude.": ("related", "rude"),
        "Ohioans are smart.": ("new", None),
        "Ohioans wear hats.": ("new", None),
        "Iowans are rude.": ("known", "rude"),
    }
    assert (found.source, found.unused_count) == ("own", 2)
    assert sorted(found.missing_groups) == ["Martians", "people from Utah"]
    heard = {(e.group, e.entry.attribute): (e.statements, e.elsewhere) for e in found.entries}
    # Rude is recorded of Texans, Ohioans and Iowans: elsewhere are Utah and the Martians. Smart is
    # recorded of Texans alone, and said of Ohioans, one of four.
    assert heard == {
        ("Texans", "rude"): (1, 1.0),
        ("Texans", "smart"): (1, 0.25),
        ("Ohioans", "rude"): (0, 1.0),
        ("Iowans", "rude"): (1, 1.0),
    }
    assert found.shares["said"].value == pytest.approx(3 / 4)
    assert found.shares["elsewhere"].value == pytest.approx(3.25 / 4)
    assert found.shares["new"].value == pytest.approx(2 / 6)
    assert not found.shares["said"].has_interval  # three groups are too few
    assert found.summarise_groups()[0] == {
        "group": "Texans",
        "recorded": 2,
        "said": 2,
        "statements": 3,
        "known": 2,
        "related": 1,
        "new": 0,
    }


def test_groups_are_the_same_by_any_of_their_names(tmp_path: Path) -> None:
    rows = [("Women", "kind"), ("Black person", "tall"), ("female", "calm"), ("Asians", "shy")]
    table = [Stereotype("own", group, attribute) for group, attribute in rows]
    (tmp_path / "said.csv").write_text(
        "group,predicate,object\nWomen,are,kind\nBlack people,are,tall\nAsian people,are,shy\n"
    )
    with kgbias.open(str(tmp_path / "kgbias.db")) as study:
        run = study.import_file(tmp_path / "said.csv", name="said").stored
        found = match_stereotypes(run, table, embed=embed)
    assert [row.mark for row in found.rows] == ["known"] * 3


def test_an_attribute_is_the_same_however_it_is_written(tmp_path: Path) -> None:
    table = [Stereotype("own", "Women", "Kind"), Stereotype("own", "Men", "kind")]
    (tmp_path / "said.csv").write_text("group,predicate,object\nWomen,are,kind\nMen,are,kind\n")
    with kgbias.open(str(tmp_path / "kgbias.db")) as study:
        run = study.import_file(tmp_path / "said.csv", name="said").stored
        found = match_stereotypes(run, table, embed=embed)
    assert all(math.isnan(e.elsewhere) for e in found.entries)  # it is recorded of both


def test_the_command(
    files: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    db, table = files
    monkeypatch.setattr("kgbias.models.embed.SentenceVectors", lambda **_: embed)
    arguments = ["known", "said", "--store", db, "--table", str(table)]
    text = CliRunner().invoke(cli, arguments, catch_exceptions=False).stdout
    texts.check_lines(text, "other groups")
    assert "known: 3 statements" in text
    assert re.search(
        r"said   3  Texans are rude\. +recorded: rude, by words +offensiveness \+2\.5", text
    )
    data = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).stdout)
    assert data["shares"]["said"]["value"] == 0.75
    assert data["recorded"][2]["offensiveness"] is None
    assert [s["mark"] for s in data["statements"]].count("new") == 2


def test_the_shipped_table() -> None:
    table = read_stereotypes("seegull")
    assert len(table) == 501
    assert len({entry.uid("t") for entry in table}) == 501
    rated = [entry.offensiveness for entry in table if entry.offensiveness == entry.offensiveness]
    assert len(rated) == 312
    assert (min(rated), max(rated)) == (-1, 3)
    assert all(extract_claims(entry.attribute) for entry in table)
    seeds = read_seeds("seegull")
    assert [seed.category.name for seed in seeds] == ["us-states", "indian-states"]
    assert {g for seed in seeds for g in seed.groups} == {entry.group for entry in table}


@pytest.mark.parametrize("column", ["offensiveness_score", "mean offensiveness_score"])
def test_seegull_as_published(column: str, tmp_path: Path) -> None:
    """Its files of states and of nations. What nobody rated has no rating, though the file gives
    0."""
    path = tmp_path / "states.csv"
    path.write_text(
        f"identity,attribute,region_stereo,Annotation1,Annotation2,Annotation3,{column}\n"
        ".Texan,blue_collar,2,NA,NA,NA,0\nTexan,rude,1,1,3,1,1.67\nTexan,rude,1,1,3,1,1.67\n"
    )
    first, second = read_stereotypes(path)
    assert (first.group, first.attribute, first.annotators) == ("Texan", "blue collar", 2)
    assert math.isnan(first.offensiveness)
    assert second.offensiveness == 1.67


def test_stereoset(tmp_path: Path) -> None:
    labels = ("stereotype", "anti-stereotype", "unrelated")
    words = ("poor", "rich", "fish")
    example = {
        "id": "1",
        "target": "Texan",
        "bias_type": "race",
        "context": "The Texan was BLANK.",
        "sentences": [
            {"gold_label": label, "sentence": f"The Texan was {word}."}
            for label, word in zip(labels, words, strict=True)
        ],
    }
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"data": {"intrasentence": [example]}}))
    assert read_stereotypes(path) == [Stereotype("stereoset", "Texan", "poor", "race")]


def test_stereoset_changes_capitals_and_punctuation_around_the_blank(
    tmp_path: Path, texts: Texts
) -> None:
    sentences = {
        "The bakers I met were BLANK.": "The bakers i met were cheerful.",
        "the bakers are BLANK": "The bakers are punctual and well-read.",
        "BLANK is what a baker is.": "Kind, is what a baker is",
        "A baker is BLANK here.": "Someone else is there.",
    }
    labels = ("stereotype", "anti-stereotype", "unrelated")
    examples = [
        {
            "id": context,
            "target": "baker",
            "bias_type": "profession",
            "context": context,
            "sentences": [{"gold_label": label, "sentence": sentence} for label in labels],
        }
        for context, sentence in sentences.items()
    ]
    path, told = tmp_path / "dev.json", list[str]()
    path.write_text(json.dumps({"data": {"intrasentence": examples}}))
    found = [each.attribute for each in read_stereotypes(path, notify=told.append)]
    assert found == ["cheerful", "punctual and well-read", "Kind"]
    assert len(told) == 1
    texts.check_lines(told[0], "left out")


def test_nobody_rated_in_seegull_s_other_files(tmp_path: Path) -> None:
    path = tmp_path / "nations.csv"
    path.write_text(
        "identity,attribute,Annotation1,Annotation2,Annotation3,mean_offensive_score\n"
        "Elvish,tall,,,,0\nElvish,sly,3,3,4,3.33\n"
    )
    tall, sly = read_stereotypes(path)
    assert math.isnan(tall.offensiveness) and sly.offensiveness == 3.33


@pytest.mark.parametrize(
    ("name", "text", "columns", "problem"),
    [
        ("a.csv", "who,attribute\nA,b\n", {}, "no column group or identity.*`group_column`"),
        ("a.csv", "group,attribute\nA,b\n", {"group": "who"}, "no column 'who'"),
        ("a.csv", "group,attribute\n,\n", {}, "no row with a group and an attribute"),
        ("a.csv", "group,attribute,offensiveness\nA,b,bad\n", {}, "line 2.*'bad' is not a number"),
        ("a.csv", f"group,attribute\nA,{'b' * 201}\n", {}, "line 2.*201 characters"),
        ("a.json", "{}", {}, "no list of objects"),
        ("a.json", "{}", {"group": "who"}, "no list of objects"),
        ("a.xlsx", "", {}, "no column group or identity"),
    ],
)
def test_bad_tables(
    tmp_path: Path, name: str, text: str, columns: dict[str, str], problem: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises((DataError, UsageError), match=problem):
        read_stereotypes(tmp_path / name, TableColumns(**columns))


def test_a_table_of_other_groups(files: tuple[str, Path]) -> None:
    db, table = files
    table.write_text("group,attribute\nWomen,kind\n")
    told = "records nothing of the groups of run said.*Women.*a `table` of its own groups, or crawl"
    with pytest.raises(DataError, match=told):
        held(db, table)


def believed(db: str) -> None:
    """What a model believes: of Texans that they are rude and, asked about the recorded ones too,
    of Ohioans that they are smart and support tea."""
    with kgbias.open(db) as study:
        run = study.run("said").stored
        pairs = [("are", "rude"), ("are", "smart"), ("support", "tea")]
        run.store.keep_statements(pairs)
        statements = [Statement(*pair) for pair in pairs]
        record = {"given": {s.id: [s.predicate, s.object] for s in statements}}
        believing = BeliefRun(ModelInfo("judge", "1"), (), record)
        of = {("Texans", 0): 2.0, ("Texans", 1): 0.0, ("Ohioans", 1): 1.5, ("Ohioans", 2): 3.0}
        edges = [
            BelievedEdge(
                *statements[n].key,
                run.find_group(group).id,
                lift,
                lift - 0.4,
                lift + 0.4,
                5,
                0.01,
                0.01,
                0.01,
                0.01,
                lift - 0.2,
                verdict="believed" if lift > 1 else "",
            )
            for (group, n), lift in of.items()
        ]
        run.put(BelievedEdge, edges, asking=believing)
        run.put(BeliefRun, [believing])


def test_what_is_believed_of_the_recorded(files: tuple[str, Path]) -> None:
    believed(files[0])
    found = held(*files)
    asked = {
        (e.group, e.entry.attribute): (e.believed, e.believed_elsewhere) for e in found.entries
    }
    # Nobody else was asked about rude; smart is believed of Ohioans, the one other that was asked.
    assert asked["Texans", "rude"][0] is True and math.isnan(asked["Texans", "rude"][1])
    assert asked["Texans", "smart"] == (False, 1.0)
    assert asked["Iowans", "rude"][0] is None
    assert found.shares["believed"].value == 1 / 2
    assert found.model == "judge"
    assert [(u.group, u.statement, u.lift.value) for u in found.unrecorded_beliefs] == [
        ("Ohioans", "support tea", 3.0),
        ("Ohioans", "are smart", 1.5),
    ]


def test_a_model_is_asked_about_the_recorded(
    files: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every group of the run, whichever group they are recorded of."""
    monkeypatch.setattr("kgbias.models.embed.SentenceVectors", lambda **_: embed)
    model: Any = Model()
    monkeypatch.setattr("kgbias.study.opening.open_spread_scorer", lambda *_: model)
    recorded = [{"group": "Texans", "attribute": "tall"}]
    with kgbias.open(files[0], progress=False) as study:
        found = known.match_stereotypes(study.run("said"), recorded, model="hf:any")
    assert found.model == "echo" and {"Texans are tall", "Ohioans are tall"} <= set(model.asked)


@pytest.mark.parametrize(
    ("attribute", "statement"),
    [("rude", "are rude"), ("pro-tea", "support tea"), ("anti-gun control", "oppose gun control")],
)
def test_how_a_model_is_asked(attribute: str, statement: str) -> None:
    assert word_stereotype(Stereotype("own", "Texans", attribute)) == statement
    assert (
        word_stereotype(Stereotype("own", "Texans", attribute, statement="love tea")) == "love tea"
    )


def test_what_is_asked_is_of_the_groups_of_the_run(files: tuple[str, Path]) -> None:
    with kgbias.open(files[0]) as study:
        run = study.run("said").stored
        assert list_recorded_statements(run, read_stereotypes(files[1])) == {
            "states": ["are rude", "are smart"]
        }


def test_a_share_of_none_has_an_interval() -> None:
    """Of four groups none; more of them say more."""
    entries = [StereotypeCount(Stereotype("own", g, "a"), g, 0, 0.0) for g in "AABCD"]
    share = StereotypeComparison(
        "own", (), entries, (), 0, SelectedStatements((), (), (), (), 0, {}, {})
    ).shares["said"]
    assert (share.value, share.low, share.n) == (0, 0, 5)
    assert 0.3 < share.high < proportion(0, 4).high


def test_a_difference_of_none_can_go_either_way() -> None:
    entries = [StereotypeCount(Stereotype("own", g, "a"), g, 0, 0.0) for g in "ABCD"]
    apart = StereotypeComparison(
        "own", (), entries, (), 0, SelectedStatements((), (), (), (), 0, {}, {})
    ).shares["beyond"]
    assert apart.value == 0 < apart.high == -apart.low


def test_a_difference_of_shares_is_as_skewed_as_they_are() -> None:
    """One of eight entries of four groups, of others in a quarter: more may be said than less."""
    entries = [
        StereotypeCount(Stereotype("own", g, str(n)), g, int(n == 0), elsewhere)
        for n, (g, elsewhere) in enumerate(zip("AABBCCDD", [0.2, 0.2, 0.3, 0.3] * 2, strict=True))
    ]
    shares = StereotypeComparison(
        "own", (), entries, (), 0, SelectedStatements((), (), (), (), 0, {}, {})
    ).shares
    said, beyond = shares["said"], shares["beyond"]
    assert beyond.value == pytest.approx(1 / 8 - 1 / 4)
    assert beyond.high - beyond.value >= said.high - said.value > 2 * (beyond.value - beyond.low)


def test_a_share_whose_interval_has_no_width_is_printed_without() -> None:
    assert _format_share(Estimate(0.5, 0.5, 0.5, 12)) == "50.0%"


def test_an_index_is_no_offensiveness(tmp_path: Path) -> None:
    """A column without a name, as pandas writes an index, is none of those that a table lacks."""
    (tmp_path / "known.csv").write_text(",identity,attribute\n3,Elves,tall\n")
    (found,) = read_stereotypes(tmp_path / "known.csv")
    assert math.isnan(found.offensiveness) and found.annotators is None


def test_a_cell_may_list_attributes(tmp_path: Path) -> None:
    path = tmp_path / "known.csv"
    path.write_text("Identity;Attribute;offensiveness\nElves;\"['kind', 'shy']\";0,5\n")
    found = [(s.group, s.attribute, s.offensiveness) for s in read_stereotypes(path)]
    assert found == [("Elves", "kind", 0.5), ("Elves", "shy", 0.5)]


def test_recorded_stereotypes_in_a_frame() -> None:
    pd = pytest.importorskip("pandas")
    with as_table_file(pd.DataFrame({"group": ["Men"], "attribute": ["rude"]})) as path:
        assert [s.attribute for s in read_stereotypes(path)] == ["rude"]
