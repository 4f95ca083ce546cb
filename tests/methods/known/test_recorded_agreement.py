"""Agreement with people: whose names are known, what is a trait, and areas under the curve."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError, StoreError, UsageError
from kgbias.graph.types import Group
from kgbias.methods import known
from kgbias.methods.known.agreement import (
    BOTH,
    FORWARD,
    RecordedAgreement,
    RecordedTable,
    double_centre_lifts,
    judge_agreement,
    plan_recorded,
)
from kgbias.methods.known.groups import find_recorded_groups, recorded_group_names
from kgbias.methods.known.kinds import stereotype_kind
from kgbias.methods.known.tables import (
    Stereotype,
    TableColumns,
    read_kinds,
    read_stereotypes,
    word_stereotype,
)
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Convention, ProbeGrid, Scores
from tests.texts import Texts


@pytest.mark.parametrize(
    ("attribute", "kind"),
    [
        ("generous", "trait"),
        ("very stubborn", "trait"),
        ("hard working", "trait"),
        ("peace-loving", "trait"),
        ("they are calm", "trait"),
        ("sushi", "thing"),
        ("tango lover", "thing"),
        ("blonde", "thing"),
        ("indigenous", "thing"),
        ("they love to be very generous", "thing"),
        ("", "thing"),
    ],
)
def test_what_is_a_trait(attribute: str, kind: str) -> None:
    assert stereotype_kind(attribute) == kind


@pytest.mark.parametrize(
    ("attribute", "statement"),
    [
        ("generous", "are generous"),
        ("loves tea", "love tea"),
        ("they are tall", "are tall"),
        ("he speaks hebrew", "speak hebrew"),
        ("drinks", "are drinks"),
        ("surf lover", "are surf lovers"),
        ("beer drinker", "are beer drinkers"),
        ("snob", "are snobs"),
        ("sober", "are sober"),
        ("beer", "are beer"),
        ("they work hard", "work hard"),
        ("he drank a lot", "drink a lot"),
        ("pro-gun control", "support gun control"),
    ],
)
def test_how_an_attribute_is_worded(attribute: str, statement: str) -> None:
    assert word_stereotype(Stereotype("t", "g", attribute)) == statement


def test_whose_names_are_known() -> None:
    def found(group: str, category: str = "") -> str | None:
        named = find_recorded_groups([Stereotype("t", group, "kind", category)])
        return named[group].name if group in named else None

    assert found("Hellenes,") == "Greek people"  # translated by machine
    assert found("People of Oman,") == "Omani people"
    assert found("north korean") == "North Korean people"
    assert found("Dutchmen") == "Dutch people"
    assert found("Georgians") == "Georgian people"
    assert found("Georgians", "us-states") == "Georgians"
    assert found("Muslims") == "Muslims"
    assert found("Donut") is None  # corrected to Berliners, whose names are not known
    assert found("Martians") is None


def test_nations_have_names_of_the_same_forms() -> None:
    names = {
        group: [n.text for n in recorded_group_names(Group(group, "nationality"))]
        for group in ("Danish people", "Dutch people")
    }
    assert names["Danish people"][:3] == ["Danes", "Danish people", "people from Denmark"]
    assert names["Dutch people"][:3] == [
        "the Dutch",
        "Dutch people",
        "people from the Netherlands",
    ]


GROUPS = tuple(Group(name, "c") for name in "ABCDE")


def table_of(recorded: list[list[int]], kinds: tuple[str, ...]) -> RecordedTable:
    counts = np.array(recorded, dtype=float)
    attributes = tuple(f"a{n}" for n in range(counts.shape[1]))
    offence = np.where(counts != 0, 2.0, math.nan)
    return RecordedTable(GROUPS[: len(counts)], attributes, kinds, counts, offence)


def test_figures_by_hand() -> None:
    """Of a0, A and B are recorded, above two and one of the three others: 5 of 6 pairs, and the
    lifts of B and C are equal. Of a1, E by one annotator alone is not held against the model."""
    recorded = [[3, 0], [2, 0], [0, 2], [0, 0], [0, 1]]
    lifts = np.array([[4.0, 0.0], [2.0, 1.0], [2.0, 5.0], [3.0, 9.0], [1.0, 7.0]])
    figures = judge_agreement({FORWARD: lifts}, table_of(recorded, ("trait", "trait")))
    by = {figure.by: figure for figure in figures}
    first, second = (3 + 1.5) / 6, 2 / 4
    assert by["attribute"].auc.value == pytest.approx((first + second) / 2)
    assert by["attribute"].entries == 3
    # Placed against groups of which nothing is recorded: E is left out for a1.
    assert by["2 annotators"].auc.value == pytest.approx((1.5 / 3 + 2 / 3) / 2)
    assert by["1 annotator"].auc.value == pytest.approx(2 / 3)
    assert by["offensive"].entries == 3 and "mildly" not in by
    # A: a0 above a1; B: a0 above a1; C: a1 above a0.
    assert by["group"].auc.value == 1


def test_the_floor_is_what_a_groups_number_of_entries_gives() -> None:
    """Lifts that say only how much is recorded of a group agree with the table, and as well with
    any dealt table; lifts of the entries themselves agree beyond it."""
    rng = np.random.default_rng(0)
    recorded = (rng.random((5, 40)) < np.array([[0.9], [0.6], [0.4], [0.2], [0.1]])) * 2
    kinds = ("trait",) * 40
    totals = recorded.sum(axis=1, keepdims=True).astype(np.float64)
    popular: Any = np.repeat(totals, 40, axis=1)
    found = judge_agreement({FORWARD: popular}, table_of(recorded.tolist(), kinds))[0]
    assert found.auc.value > 0.7
    assert found.floor == pytest.approx(found.auc.value, abs=0.03)
    found = judge_agreement(
        {FORWARD: recorded.astype(np.float64)}, table_of(recorded.tolist(), kinds)
    )[0]
    assert found.auc.value == 1 and found.floor_high < 0.9
    assert found.low_over_groups <= found.auc.value <= found.high_over_groups


def test_lifts_have_no_base_rates() -> None:
    bits = np.arange(12.0).reshape(4, 3) ** 2
    lifts = double_centre_lifts(bits, ((0, 1), (2, 3)))
    assert np.allclose(lifts.mean(axis=1), 0)
    assert np.allclose(lifts[:2].mean(axis=0), 0) and np.allclose(lifts[2:].mean(axis=0), 0)


TABLE = """identity,attribute,stereotype,kind
German,punctual,3,trait
Germans,beer,3,thing
Dutch,beer,2,thing
Italian,pasta,3,thing
French,romantic,2,
Spanish,loves tapas,1,thing
Martian,green,3,thing
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "own.csv"
    path.write_text(TABLE, "utf-8")
    return path


class Model:
    """Finds what the table records probable, and nothing else."""

    info = ModelInfo("echo")
    settings = ()

    def __init__(self, kind: str = "causal") -> None:
        self.convention = Convention(kind, "bos")
        self.asked: list[str] = []

    def grid(self, groups: Any, statements: Any, progress: Any = None) -> ProbeGrid:
        self.asked += [f"{group} {statement}" for group in groups for statement in statements]
        pairs = (("german", "punctual"), ("german", "beer"), ("dutch", "beer"), ("ital", "pasta"))
        bits = [
            [
                2.0 * any(a in (text := f"{g} {s}".lower()) and b in text for a, b in pairs) - 5
                for s in statements
            ]
            for g in groups
        ]
        scores = Scores(np.array(bits), np.ones((len(groups), len(statements)), dtype=np.int64))
        return ProbeGrid(scores, scores, Scores(np.zeros(len(groups)), np.ones(len(groups), int)))


def test_a_model_is_asked_before_and_after(table: Path) -> None:
    model: Any = Model()
    with kgbias.open(None, progress=False) as study:
        found = known.recorded_agreement(study, model, table, kind_column="kind")
    assert "People say that Germans are known for being punctual" in model.asked
    assert "People say that German people are known for being punctual" in model.asked
    stem = "Everyone knows that the most punctual people in the world are"
    assert f"{stem} the Dutch" in model.asked
    assert "People say that Germans are known for beer" in model.asked
    known_for = "Everyone knows that the people in the world best known for beer are"
    assert f"{known_for} the German" in model.asked and f"{known_for} Germans" not in model.asked
    assert any(
        text.endswith("being hardworking. Germans are known for being punctual")
        for text in model.asked
    )
    assert not any("love tapas" in text for text in model.asked)  # one annotator
    assert set(found.unused_groups) == {"Martian", "Spanish"}
    assert dict(zip(found.table.attributes, found.table.kinds, strict=True)) == {
        "beer": "thing",
        "punctual": "trait",
        "pasta": "thing",
        "romantic": "trait",
    }
    things = next(f for f in found.figures if f.kind == "thing" and f.direction == BOTH)
    assert things.auc.value == 1 and things.by == "attribute"
    assert found.as_rows().records()[0]["entries"] == 2


def test_of_the_strongest_lifts_the_recorded_are_counted() -> None:
    """Of the lifts 9, 7 and 5, as many as there are entries, the last belongs to an entry; dealt
    anew, the first two may too."""
    table = table_of([[3, 0], [2, 0], [0, 2], [0, 0], [0, 1]], ("trait", "trait"))
    lifts = np.array([[4.0, 0.0], [2.0, 1.0], [2.0, 5.0], [3.0, 9.0], [1.0, 7.0]])
    (found,) = RecordedAgreement("m", "t", (), table, {BOTH: lifts}, {}).strongest
    assert (found.kind, found.entries, found.recorded) == ("trait", 3, 1)
    assert 0 < found.chance < 3 and found.chance_high <= 3


def test_probes_limit_the_attributes(table: Path) -> None:
    """Those recorded of the most groups are asked first, traits and things in turn."""
    entries = [
        Stereotype("t", group, attribute, annotators=3)
        for group, attribute in [
            ("German", "beer"), ("Dutch", "beer"), ("French", "wine"), ("Italian", "proud"),
            ("German", "proud"), ("Dutch", "rude"),
        ]
    ]  # fmt: skip
    full = plan_recorded(entries)
    assert set(full.table.attributes[:2]) == {"beer", "proud"} and full.unasked == 0
    cut = plan_recorded(entries, probes=full.probes // 2)
    assert cut.table.attributes == full.table.attributes[:2] and cut.unasked == 2


def test_forms_that_are_asked_alike_are_one_attribute() -> None:
    entries = [
        Stereotype("t", group, attribute, annotators=3)
        for group, attribute in [
            ("German", "drinks beer"), ("Dutch", "they drink beer"), ("French", "drinks beer"),
            ("Italian", "fanatics"), ("Spanish", "fanatic"), ("Greek", "fanatics"),
        ]
    ]  # fmt: skip
    plan = plan_recorded(entries)
    assert dict(zip(plan.table.attributes, plan.statements, strict=True)) == {
        "fanatics": "are fanatics",
        "drinks beer": "drink beer",
    }
    assert plan.table.strong.sum(axis=0).tolist() == [3, 3]


def test_of_a_translated_table_the_english_is_read(tmp_path: Path) -> None:
    path = tmp_path / "de-DE.csv"
    header = "identity,attribute,stereotype,translated_identity,translated_attribute_list"
    path.write_text(f"{header}\nBriten,höflich,3,British,polite\n", "utf-8")
    (entry,) = read_stereotypes(path)
    assert (entry.group, entry.attribute, entry.annotators) == ("British", "polite", 3)
    (entry,) = read_stereotypes(path, TableColumns("identity", "attribute"))
    assert (entry.group, entry.attribute) == ("Briten", "höflich")


def test_what_cannot_be_asked(table: Path, tmp_path: Path, texts: Texts) -> None:
    masked: Any = Model("masked")
    with kgbias.open(None, progress=False) as study:
        with pytest.raises(UsageError, match="masked model"):
            known.recorded_agreement(study, masked, table)
        (tmp_path / "few.csv").write_text("group,attribute\nGermans,beer\n", "utf-8")
        with pytest.raises(DataError, match="fewer than 4 groups"):
            known.recorded_agreement(study, Model(), tmp_path / "few.csv")  # type: ignore[arg-type]
    (tmp_path / "odd.csv").write_text("group,attribute,kind\nGermans,beer,drink\n", "utf-8")
    with texts.raises(DataError):
        read_kinds(tmp_path / "odd.csv", TableColumns(kind="kind"))


def test_the_command_takes_a_model(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    monkeypatch.setattr("kgbias.study.opening.open_spread_scorer", lambda *_: Model())
    store = ["--store", str(tmp_path / "k.db"), "--table", str(table)]
    result = CliRunner().invoke(cli, ["known", "hf:any", *store])
    assert result.exit_code == 0, result.output
    assert "things" in result.output and "1.00" in result.output
    record = json.loads(CliRunner().invoke(cli, ["known", "hf:any", *store, "--json"]).stdout)
    assert record["groups"]["Dutch people"][0] == "the Dutch"
    assert record["figures"][0]["floor"] is not None
    refused = CliRunner().invoke(cli, ["known", "hf:any", *store, "--arm", "x"])
    texts.check(str(refused.exception))
    unknown = CliRunner().invoke(cli, ["known", "nothing", *store])
    assert isinstance(unknown.exception, StoreError)  # neither a run nor a model


def test_a_run_prints_the_same_of_its_beliefs() -> None:
    """The figures of a run rest on what was asked of all groups of a category."""
    from kgbias.methods.known.agreement import agreement_of_beliefs

    groups = [Group(name, "c") for name in "ABCD"]
    entries = [(groups[0], Stereotype("t", "A", "rude")), (groups[1], Stereotype("t", "B", "calm"))]
    lifts = {("A", "are rude"): 3.0, ("A", "are calm"): 0.0}

    def find_lift(group: Group, statement: str) -> float:
        return (
            math.nan
            if statement == "are calm" and group.name == "D"
            else lifts.get((group.name, statement), 0.0)
        )

    found = agreement_of_beliefs(entries, {}, find_lift, groups)
    by = SimpleNamespace(**{figure.by: figure for figure in found})
    assert by.attribute.auc.value == 1 and by.attribute.auc.n == 1
    assert by.attribute.category == "c"


def test_beliefs_have_a_precision_beside_chance() -> None:
    """Four traits, each recorded of one of four groups: the model believes three of these, and two
    of a group that they are not recorded of. Dealt anew, a fourth of what it believes is
    recorded."""
    from kgbias.methods.known.agreement import precision_of_beliefs

    groups = [Group(name, "c") for name in "ABCD"]
    traits = ("rude", "calm", "lazy", "kind")
    entries = [
        (group, Stereotype("t", group.name, trait))
        for group, trait in zip(groups, traits, strict=True)
    ]
    believed = {("A", "rude"), ("B", "calm"), ("C", "lazy"), ("A", "kind"), ("B", "kind")}

    def find_belief(group: Group, statement: str) -> float:
        return float((group.name, statement.removeprefix("are ")) in believed)

    (found,) = precision_of_beliefs(entries, {}, find_belief, groups)
    assert (found.kind, found.believed, found.recorded) == ("trait", 5, 3)
    assert found.chance == pytest.approx(5 / 4, abs=0.2) and found.chance_high >= 3
    assert "precision 0.60" in str(found) and "by chance 0.2" in str(found)
    assert precision_of_beliefs(entries, {}, lambda group, statement: 0.0, groups) == []


def test_at_most_forty_groups_are_asked() -> None:
    """Those with the most entries."""
    from kgbias.methods.known.agreement import MAX_GROUPS, _choose_groups

    groups = [Group(f"g{n:02}", "c") for n in range(MAX_GROUPS + 5)]
    entries = [group for n, group in enumerate(groups) for _ in range(1 + n)]
    assert _choose_groups(entries) == set(groups[5:])
    assert _choose_groups([Group("a", "small"), Group("b", "small")]) == set()
