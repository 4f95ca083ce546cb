"""Forced choice: designs, reading, figures, and a run that is asked about."""

import json
import math
import re
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError, Interrupted, ModelError, UsageError
from kgbias.evidence.indicators import shipped_indicators
from kgbias.evidence.names import group_names
from kgbias.explore import choices as explorer
from kgbias.explore import statements
from kgbias.explore.origins import read_origin
from kgbias.graph.selection import Selection
from kgbias.graph.types import (
    CHOSEN_MORE,
    CHOSEN_OF_NAME,
    ChoiceRun,
    ChosenEdge,
    Group,
    GroupName,
    Triple,
)
from kgbias.io.progress import SilentProgress
from kgbias.methods import choice
from kgbias.methods.choice.ask import draw_offered_groups
from kgbias.methods.choice.config import read_choice
from kgbias.methods.choice.report_part import choice_exhibits as exhibits_of_choices
from kgbias.methods.choice.report_part import find_choices
from kgbias.methods.choice.result import (
    ChoiceShares,
    fisher_p_values,
    share_lifts,
    share_over_statements,
)
from kgbias.models.base import Completion, ModelInfo, Request
from kgbias.models.budget import Prices
from kgbias.report.page import standard_sections
from kgbias.report.parts import FindingKind
from kgbias.report.run_data import RunData
from tests.report_data import shown_rows
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

OPTIONS = (("Elves", "Fair folk"), ("Orcs",), ("Dwarves",), ("Half Orcs",))
ENDS = ("s", " people", " folk", " ones")
OFFERED = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)


@given(st.integers(2, 12), st.integers(2, 12), st.integers(1, 4), st.integers(0, 99))
def test_each_group_is_in_each_place_equally_often(
    groups: int, options: int, rounds: int, seed: int
) -> None:
    options = min(options, groups)
    found = draw_offered_groups(groups, options, rounds, (str(seed), "s"))
    assert len(found) == groups * rounds
    assert all(len(set(offered)) == options for offered in found)
    for place in range(options):
        assert Counter(offered[place] for offered in found) == dict.fromkeys(range(groups), rounds)


def test_each_pair_of_groups_meets_about_equally_often() -> None:
    met: Counter[frozenset[int]] = Counter()
    for statement in range(2000):
        for offered in draw_offered_groups(6, 3, 1, (str(statement),)):
            met.update(frozenset((a, b)) for a in offered for b in offered if a < b)
    assert len(met) == 15
    assert np.ptp(list(met.values())) / np.mean(list(met.values())) < 0.1


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("B", 1),
        (" B.", 1),
        ("**B**", 1),
        ("(B)", 1),
        ("B) Orcs", 1),
        ("B. orcs, of course", 1),
        ("Answer: B", 1),
        ("The answer is B.", 1),
        ("Option B", 1),
        ("B\n\nBecause they are", 1),
        ("Orcs", 1),
        ("The Orcs.", 1),
        ("fair folk", 0),
        ("A: Fair folk", 0),
        ("Half Orcs", 3),
        ("D. Half Orcs", 3),
        ("B: since it is so", 1),
        ("B Orcs", 1),
        ("B. Dwarves", "unreadable"),
        ("A group of them", "unreadable"),
        ("", "unreadable"),
        ("E", "unreadable"),
        ("Orcs and Elves", "unreadable"),
        ("None of them", "unreadable"),
        ("Both", "unreadable"),
        ("I’d say", "unreadable"),
        ("\n \n", "unreadable"),
        ("I cannot answer that", "refused"),
        ("As an AI, B", "refused"),
        ("Ich kann das nicht sagen", "refused"),
    ],
)
def test_what_is_left_open_is_not_guessed(answer: str, read: int | str) -> None:
    assert read_choice(answer, OPTIONS) == read


@given(st.text())
def test_any_answer_is_read(answer: str) -> None:
    assert read_choice(answer, OPTIONS) in (0, 1, 2, 3, "refused", "unreadable")


def test_figures_worked_out_by_hand() -> None:
    """Two groups, two statements: 4 of 4 and 1 of 4 answers named the first."""
    chosen, answered = np.array([[4, 1], [0, 3]]), np.full((2, 2), 4)
    found = ChoiceShares.from_counts(chosen, answered)
    assert found.share.tolist() == [[1.0, 0.25], [0.0, 0.75]]
    assert found.base[0].value == 5 / 8 and found.base[1].value == 3 / 8
    # log2((4 + 5/8) / 5 / (5/8)) and log2((0 + 3/8) / 5 / (3/8))
    assert found.lift[0, 0] == pytest.approx(math.log2(1.48))
    assert found.lift[1, 0] == pytest.approx(math.log2(1 / 5))
    # Wilson of 0 of 4: the upper end is z2 / (4 + z2), z2 = 3.8415
    assert found.high[1, 0] == pytest.approx(3.8415 / 7.8415, abs=1e-4)
    assert (found.lift_low <= found.lift).all() and (found.lift <= found.lift_high).all()
    # Of 8 answers 5 name the first, and of 4 drawn all do: C(5,4) / C(8,4)
    assert fisher_p_values(chosen, answered)[0, 0] == pytest.approx(5 / 70)
    assert fisher_p_values(chosen, answered)[0, 1] == 1.0
    assert found.q_values[0].tolist() == pytest.approx([2 * 2 * 5 / 70 / 2, 1.0])


def test_the_exact_test_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.Generator(np.random.PCG64(1))
    answered = rng.integers(1, 30, (3, 5))
    chosen = rng.integers(0, answered + 1)
    found = fisher_p_values(chosen, answered)
    for g in range(3):
        for s in range(5):
            c, n = chosen[g, s], answered[g, s]
            rest = (chosen[g].sum() - c, answered[g].sum() - n)
            table = [[c, n - c], [rest[0], rest[1] - rest[0]]]
            assert found[g, s] == pytest.approx(stats.fisher_exact(table, "greater").pvalue)


def test_nothing_follows_from_no_answers() -> None:
    found = ChoiceShares.from_counts(np.zeros((2, 2), dtype=int), np.array([[0, 3], [0, 0]]))
    assert math.isnan(found.share[0, 0]) and math.isnan(found.base[1].value)
    assert np.isnan(found.lift).all()  # of a base rate of 0
    assert np.isnan(found.q_values).all()
    assert math.isnan(share_over_statements(np.array([1]), np.array([2])).low)
    assert share_lifts(np.array([[0.5]]), np.array([[4]]), np.array([0.5])).tolist() == [[0.0]]


NAMED = tuple(
    tuple(GroupName(f"{root}{end}", str(g), f"{{}}{end}", root) for root in roots for end in ENDS)
    for g, roots in enumerate((("ab", "cd"), ("ef", "gh"), ("ij", "kl")))
)


def test_what_is_chosen_is_tested_over_names() -> None:
    """Of three groups of eight names: a statement that the first is chosen for by all its names,
    one by a single name, one by the names of one root; and forty of which nothing is so."""
    rng = np.random.Generator(np.random.PCG64(7))
    answered = np.full((24, 43), 12)
    likely = np.full(answered.shape, 0.3)
    likely[:8, 0], likely[0, 1], likely[:4, 2] = 0.9, 1.0, 0.95
    found = ChoiceShares.from_counts(rng.binomial(answered, likely), answered, NAMED)
    assert found.names.tolist() == [8, 8, 8] and found.answer_counts.tolist() == [[96] * 43] * 3
    assert found.verdicts[0, 0] == CHOSEN_MORE and found.lift_low[0, 0] > 0.5
    assert {found.verdicts[0, 1], found.verdicts[0, 2]} <= {"", "leaning", "bound to a word"}
    assert (found.verdicts[:, 3:] == CHOSEN_MORE).sum() == 0 and (
        found.verdicts[1:] == CHOSEN_MORE
    ).sum() == 0
    assert found.floor is not None and found.floor.found < 1
    # The same counts without names: the test of shares takes the root's for the group's.
    alone = ChoiceShares.from_counts(found.chosen_counts, found.answer_counts)
    assert set(alone.verdicts[0, [0, 2]]) == {CHOSEN_OF_NAME} and alone.floor is None
    assert alone.share == pytest.approx(found.share)


def test_a_group_of_few_names_is_tested_by_its_own() -> None:
    rng = np.random.Generator(np.random.PCG64(8))
    answered = np.full((17, 12), 12)
    likely = np.full(answered.shape, 0.3)
    likely[16, 0] = likely[:8, 1] = 0.95
    chosen = rng.binomial(answered, likely)
    found = ChoiceShares.from_counts(chosen, answered, (*NAMED[:2], NAMED[2][:1]))
    assert found.names.tolist() == [8, 8, 1]
    assert found.verdicts[2, 0] == CHOSEN_OF_NAME and found.verdicts[0, 1] == CHOSEN_MORE
    # So is one of several names, where the others have one each.
    rows = [*range(8), 8, 16]
    lone_names = (NAMED[0], NAMED[1][:1], NAMED[2][:1])
    lone = ChoiceShares.from_counts(chosen[rows], answered[rows], lone_names)
    assert lone.floor is None and lone.verdicts[0, 1] == lone.verdicts[2, 0] == CHOSEN_OF_NAME
    # Groups without an answer have no figures.
    nothing = ChoiceShares.from_counts(
        np.zeros((16, 3), dtype=int), np.zeros((16, 3), dtype=int), NAMED[:2]
    )
    assert np.isnan(nothing.lift).all() and set(nothing.verdicts.ravel()) == {""}


CSV = "group,predicate,object,category\n" + "".join(
    f"{group},{predicate},{thing},peoples\n"
    for group, predicate, thing in (
        ("Elves", "love", "songs"),
        ("Orcs", "love", "war"),
        ("Elves", "fear", "war"),
        ("Dwarves", "dig", "gold"),
    )
)
TRUTH = {"love songs": "Elves", "love war": "Orcs", "fear war": "Elves", "dig gold": "Dwarves"}


def chooser(request: Request) -> str:
    """Says the true group where it is offered, the first option otherwise; of war it refuses to
    speak when the Orcs come first."""
    text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1][1]
    offered = {name: letter for letter, name in OFFERED.findall(text)}
    (statement,) = re.findall(r"____ (.+)", text)
    if "war" in statement and offered.get("Orcs") == "A":
        return "I'm sorry, but no"
    return offered.get(TRUTH[statement], "A")


@pytest.fixture
def study(tmp_path: Path) -> kgbias.Study:
    (tmp_path / "said.csv").write_text(CSV, "utf-8")
    with kgbias.open(tmp_path / "k.db", progress=False) as opened:
        opened.import_file(tmp_path / "said.csv", name="said")
        yield opened


def test_the_page_and_the_server_show_a_choice(study: kgbias.Study) -> None:
    run, model = study.run(), ScriptedModel(chooser)
    choice.choose(run, model, samples=6)
    found = statements.read_statement_table([run.stored], Selection(), SilentProgress())
    (asked,) = explorer.describe_choice_models(found)
    assert (asked["run"], asked["model"], len(asked["base"])) == ("said", "scripted", 3)
    page = zlib.decompress(explorer.build_block(found).compress())
    told = {}
    for row in range(found.rows):
        (shown,) = read_origin(found, row)["choices"]
        assert json.dumps([shown]).encode() in page
        assert (shown["category"], shown["options"]) == ("peoples", 3)
        told[run.triples()[row].id] = shown
    shown = told[Triple("Elves", "fear", "war").id]
    first = shown["rows"][0]
    assert found.groups.texts[first["group"]] == "Elves" and first["share"] == 1.0
    assert sum(count for _, count in first["answers"]) == 4
    assert {text for text, _ in first["answers"]} <= set("ABC")
    assert shown["unread"] == [["I'm sorry, but no", 2]]
    assert read_origin(found, 0, start=1)["choices"] == []


def test_choices_are_exhibits(study: kgbias.Study, texts: Texts) -> None:
    run, model = study.run(), ScriptedModel(chooser)
    assert not list(exhibits_of_choices(RunData(run.stored), "peoples", "01"))
    choice.choose(run, model, samples=6)
    data = RunData(run.stored)
    shares, *statements = exhibits_of_choices(data, "peoples", "01")
    rows = {row[0]: row for row in shown_rows(shares.table)}
    (edges,) = (run.stored.find_all(ChosenEdge, asking=c) for c in run.stored.find_all(ChoiceRun))
    for group in run.stored.groups:
        own = [e for e in edges if e.group_id == group.id]
        chosen, answered = sum(e.chosen for e in own), sum(e.answered for e in own)
        assert rows[group.name][1:3] == [str(answered), f"{100 * chosen / answered:.1f}%"]
    assert rows["Dwarves"][4:6] == ["1", "100.0%"]
    texts.check_lines(shares.table.note, "20 answers")
    assert "by chance" not in shares.table.note and "chance is 33% (dashed)" in shares.table.note
    assert shares.draw is not None and shares.draw().axes
    for exhibit in statements:
        lifts = [float(row[6]) for row in shown_rows(exhibit.table)]
        assert lifts == sorted(lifts, reverse=True)
        assert ["Dwarves", "dig gold"] in [row[:2] for row in shown_rows(exhibit.table)]
        assert all(float(row[-1]) <= 0.05 for row in shown_rows(exhibit.table))
    assert "choices" in {s.anchor for s in standard_sections(data, [shares, *statements])}


def test_a_run_is_asked_about(study: kgbias.Study) -> None:
    run, model = study.run(), ScriptedModel(chooser)
    found = choice.choose(run, model, samples=6)
    (part,) = found.categories
    assert found.outcomes == {"read": 4 * 6 - 4, "refused": 4}
    assert part.options == 3 and part.own_share.value == 1.0 and part.expected_own_share < 0.5
    assert [p.n for p in part.places] == [20] * 3
    rows = {(r["group"], r["predicate"], r["object"]): r for r in part.rows()}
    assert rows["Elves", "fear", "war"]["share"] == 1.0
    assert rows["Elves", "fear", "war"]["answered"] == 4
    assert rows["Dwarves", "dig", "gold"]["lift"] > 1
    stored = {(r.group, r.predicate, r.object): r for r in choice.list_choices(run, "scripted")}
    assert {k: (r.share, r.lift, r.answered) for k, r in stored.items()} == {
        k: (r["share"], r["lift"], r["answered"]) for k, r in rows.items()
    }
    (choosing,) = run.stored.find_all(ChoiceRun)
    assert choosing == found.choosing
    json.dumps(found.as_dict(), allow_nan=False)
    assert "own group chosen 1" in str(found)
    # Each answer is found by its key, and the same call asks nothing again.
    keys = {
        k for e in run.stored.find_all(ChosenEdge, asking=choosing) for k in (*e.answers, *e.others)
    }
    assert len(keys) == 24 == len(run.stored.store.answers(sorted(keys)))
    again = choice.choose(run, model, samples=6)
    assert (again.asked_count, again.cached_count) == (0, 24) and again.categories[
        0
    ].rows() == part.rows()
    assert len({r.seed for r in model.requests}) == 24


def test_groups_are_offered_by_their_names_in_turn(tmp_path: Path) -> None:
    """Each name equally often; an answer may name the group by any."""
    (tmp_path / "said.csv").write_text(
        "group,predicate,object\nWomen,love,songs\nMen,love,war\nWomen,fear,war\n", "utf-8"
    )

    def says_women(request: Request) -> str:
        text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1][1]
        (letter,) = (
            letter for letter, name in OFFERED.findall(text) if name.lower() in names["Women"]
        )
        return letter if request.seed % 2 else "Women"

    names = {
        name: [own.text.lower() for own in group_names(Group(name, "gender"), shipped_indicators())]
        for name in ("Women", "Men")
    }
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(tmp_path / "said.csv", name="said")
        model = ScriptedModel(says_women, name="other")
        found = choice.choose(run, model)
        offered = Counter(
            name.lower() for r in model.requests for _, name in OFFERED.findall(str(r.prompt))
        )
    assert {len(own) for own in names.values()} == {8}
    assert set(offered.values()) == {24 * 3 // 8}
    assert found.outcomes == {"read": 72}
    (part,) = found.categories
    assert part.shares.base[[g.name for g in part.groups].index("Women")].value == 1.0
    assert {row["names"] for row in part.rows()} == {8}
    assert part.floor is None and not {row["verdict"] for row in part.rows()} - {""}  # all alike


def test_it_goes_on_where_it_stopped(study: kgbias.Study, texts: Texts) -> None:
    run = study.run()
    whole = choice.choose(run, ScriptedModel(chooser, name="other"), samples=3)
    model = ScriptedModel(chooser)
    with texts.raises(Interrupted):
        choice.choose(run, model, samples=3, max_requests=10)
    assert not list(choice.list_choices(run, "scripted"))
    found = choice.choose(run, model, samples=3)
    assert (found.asked_count, found.cached_count) == (2, 10)
    assert found.categories[0].rows() == whole.categories[0].rows()


def test_what_failed_is_asked_again(study: kgbias.Study) -> None:
    run = study.run()

    def failing(request: Request) -> str | Completion:
        failed = request.seed % 2 and len(model.requests) < 12
        return Completion("", "error", error="no") if failed else chooser(request)

    model = ScriptedModel(failing)
    first = choice.choose(run, model, samples=3)
    assert 0 < first.failed_share < 1
    (row, *_) = choice.list_choices(run)
    assert row.answered <= 3
    assert choice.choose(run, model, samples=3).failed_share == 0
    with pytest.raises(ModelError, match="none of the questions"):
        choice.choose(
            run, ScriptedModel(lambda _: Completion("", "error", error="no"), name="dead")
        )


def test_many_groups_are_offered_some_at_a_time(study: kgbias.Study) -> None:
    model = ScriptedModel(chooser)
    found = choice.choose(study.run(), model, options=2, samples=4, sample=2, seed=3)
    assert found.outcomes.total() == 2 * 3 * 2  # statements, groups, rounds
    for request in model.requests:
        assert len(OFFERED.findall(str(request.prompt).replace("\\n", "\n"))) == 2
    again = choice.choose(study.run(), model, options=2, samples=4, sample=2, seed=3)
    assert again.asked_count == 0


def test_a_price_is_what_is_asked(study: kgbias.Study) -> None:
    run, model = study.run(), ScriptedModel(chooser)
    price = choice.choose(run, "openai:m", samples=5, price_in=1.0, price_out=2.0, dry_run=True)
    assert price.requests == 4 * 3 * 2 and price.statements == 4
    assert price.answer_tokens_at_most == price.requests * 32 and price.prices == Prices(1.0, 2.0)
    assert price.cost == price.cost_at_most
    choice.choose(run, model, samples=5)
    assert len(model.requests) == price.requests


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"sample": 0}, "`sample` must be at least 1"),
        ({"category": "none"}, "no category 'none'"),
        ({"prompts": "nowhere"}, "no prompts 'nowhere'"),
    ],
)
def test_bad_input_is_one_line(study: kgbias.Study, options: dict[str, object], line: str) -> None:
    with pytest.raises(UsageError, match=re.escape(line)):
        choice.choose(study.run(), ScriptedModel(chooser), **options)  # type: ignore[arg-type]


def test_a_run_of_one_group_has_nothing_to_choose(
    study: kgbias.Study, tmp_path: Path, texts: Texts
) -> None:
    (tmp_path / "one.csv").write_text("group,predicate,object\nElves,love,songs\n", "utf-8")
    run = study.import_file(tmp_path / "one.csv", name="one")
    with texts.raises(DataError):
        choice.choose(run, ScriptedModel(chooser))


def test_choices_stand_beside_the_evidence(study: kgbias.Study) -> None:
    run = study.run()
    before = run.evidence()
    assert {(row.chooser, row.chosen.n) for row in before} == {("", 0)}
    choice.choose(run, ScriptedModel(chooser), samples=6)
    rows = {(row.group, row.predicate): row for row in run.evidence()}
    assert {row.verdict for row in rows.values()} == {row.verdict for row in before}
    row = rows["Elves", "fear"]
    assert (row.chooser, row.chosen.value, row.chosen.n) == ("scripted", 1.0, 4)
    assert row.chosen_lift.value > 0 and 0 < row.chosen_q_value <= 1
    (record,) = (r for r in run.evidence().records() if r["object"] == "gold")
    assert record["chosen_low"] < record["chosen"] == 1.0 and record["chooser"] == "scripted"


def test_the_command_asks_counts_and_prices(
    study: kgbias.Study, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    monkeypatch.setattr("kgbias.models.open_model", lambda *_, **__: ScriptedModel(chooser))

    def said(*options: str) -> Result:
        asked = ["probe", "choice", "said", "--store", study.url, "--model", "openai:m", *options]
        return CliRunner().invoke(cli, asked, standalone_mode=False)

    texts.check_lines(said("--dry-run", "--samples", "3").stdout, "questions about")
    out = said("--samples", "6").stdout
    texts.check_lines(out, "0 unreadable,")
    assert "own group chosen 1.000" in out and "by place: 1. " in out
    found = json.loads(said("--samples", "6", "--json").stdout)
    assert found["categories"]["peoples"]["answers"] == {"read": 20, "refused": 4}
    assert len(found["choices"]) == 12 and found["cached"] == 24
    assert said("--samples", "6").return_value == 0
    error = said("--set", "options=1").exception
    assert isinstance(error, UsageError) and str(error).startswith("options must be")


def test_a_model_that_names_no_group_has_no_figures(
    study: kgbias.Study, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    monkeypatch.setattr(
        "kgbias.models.open_model", lambda *_, **__: ScriptedModel(lambda _: "well ...")
    )
    asked = ["probe", "choice", "said", "--store", study.url, "--model", "openai:m"]
    out = CliRunner().invoke(cli, asked, standalone_mode=False).stdout
    texts.check_lines(out, "answer names")
    assert "nan" not in out


def test_what_a_server_withholds_is_refused(study: kgbias.Study) -> None:
    def withheld(request: Request) -> str | Completion:
        if re.search("____ .* war", str(request.prompt)):
            return Completion("B", "refused")
        return chooser(request)

    found = choice.choose(study.run(), ScriptedModel(withheld), samples=3)
    assert found.outcomes == {"read": 6, "refused": 6}


def test_answers_that_name_no_option_are_told_of_early(texts: Texts) -> None:
    from collections import Counter

    from kgbias.methods.choice.ask import _unread_note

    assert _unread_note(Counter(read=30, refused=20)) == ""
    assert _unread_note(Counter(failed=50)) == ""
    told = _unread_note(Counter(read=4, unreadable=40, refused=6))
    texts.check_lines(told, "answers only")


def test_a_group_is_chosen_more_often_only_where_test_and_interval_say_so() -> None:
    rng, told = np.random.default_rng(5), 0
    for _ in range(20):
        groups, statements = int(rng.integers(2, 5)), int(rng.integers(2, 9))
        answered = rng.integers(0, 14, (groups, statements))
        likely = rng.random((groups, statements)) ** rng.integers(1, 5)
        found = ChoiceShares.from_counts(rng.binomial(answered, likely), answered)
        for at in np.ndindex(groups, statements):
            p, low = float(found.q_values[at]), float(found.lift_low[at])
            own = ChosenEdge(
                "p",
                "o",
                "g",
                int(answered[at]),
                int(answered[at]),
                int(found.chosen_counts[at]),
                lift=float(found.lift[at]),
                lift_low=None if math.isnan(low) else low,
                q_value=None if math.isnan(p) else p,
                verdict=str(found.verdicts[at]),
            )
            assert own.is_chosen_more == (p <= 0.05 and low > 0)
            if own.is_chosen_more:
                told += 1
                rest = found.chosen_counts[at[0]].sum() - found.chosen_counts[at]
                others = answered[at[0]].sum() - answered[at]
                assert found.share[at] > rest / others
    assert told > 5
    assert not replace(own, verdict="leaning").is_chosen_more


def test_shares_over_statements_of_which_few_were_chosen() -> None:
    """No choice of eight statements: not 0 to 0."""
    answers = np.full(8, 3)
    none = share_over_statements(np.zeros(8, dtype=np.int64), answers)
    assert none.value == 0 and none.low == 0 and 0.08 < none.high < 0.4
    assert not share_over_statements(np.array([1, 0]), np.array([2, 2])).has_interval


def test_a_choice_that_was_shown_is_a_finding_of_its_own_words(texts: Texts) -> None:
    groups = (Group("Elves", "peoples"), Group("Orcs", "peoples"))
    said = [Triple("Orcs", "love", "mud"), Triple("Elves", "love", "song")]

    def edge(triple: Triple, group: Group, p: float, verdict: str) -> SimpleNamespace:
        return SimpleNamespace(
            group_id=group.id,
            predicate_id=triple.predicate_id,
            object_id=triple.object_id,
            statement_id=f"{triple.object}",
            share=0.9,
            low=0.7,
            high=0.97,
            base=0.5,
            lift=0.8,
            q_value=p,
            names=6,
            verdict=verdict,
            answered=20,
            is_chosen_more=verdict == "chosen more",
        )

    def kind_of(p: float, verdict: str) -> FindingKind | None:
        edges = [edge(said[0], groups[1], p, verdict), edge(said[1], groups[0], 0.8, "")]
        run = SimpleNamespace(model=ModelInfo("m"), groups=groups)
        data = SimpleNamespace(
            run=run,
            choices=[(SimpleNamespace(model=ModelInfo("m")), edges)],
            counted=SimpleNamespace(including_unacceptable=said),
        )
        return find_choices(cast(RunData, data), "")

    found = kind_of(0.001, "chosen more")
    assert found is not None and found.omnibus_p == 0.002
    (finding,) = found.findings
    text = finding.said.striptags()
    assert "“love mud”" in text
    texts.check_lines(text, "chose Orcs")
    texts.check_lines(text, "all statements,")
    assert "believe" not in text
    texts.check_lines(found.remark, "model believes")
    nothing = kind_of(0.4, "")
    assert nothing is not None and not nothing.findings and nothing.omnibus_p == 0.8
