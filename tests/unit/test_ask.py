"""Questions in plain words: which statements answer them, with which sources."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.ask import Retrieval, parse_question, retrieve_statements
from kgbias.ask.answer import build_extractive_answer
from kgbias.cli import cli
from kgbias.errors import UsageError
from kgbias.graph.selection import Selection, select_statements
from kgbias.graph.types import Group, GroupName, GroupScore, TripleView
from tests.texts import Texts

CSV = """\
group,predicate,object,count,category,arm
Women,love,working from home,3,gender,none
Women,are,kind,2,gender,none
Women,can't,work at night,1,gender,none
Men,love,hard work,4,gender,none
Men,are,lazy,1,gender,none
Black women,are,strong,2,both,none
Nigerian people,love,their food,5,nationality,none
"""
GROUPS = (
    Group("Women", "gender", ("females",)),
    Group("Men", "gender"),
    Group("Black women", "both"),
    Group("Nigerian people", "nationality"),
    Group("Old people", "age"),
)


class Fixed:
    """An index that knows how near a few statements are."""

    method = "a table"

    def __init__(self, near: Mapping[str, float]) -> None:
        self.near, self.asked = near, ""

    def find_nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        self.asked = topic
        return {t.id: self.near[t.object] for t in triples if t.object in self.near}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers without neighbours: no Cypher engine is started."""
    module = import_module("kgbias.ask.retrieval")  # the name is also that of its function
    monkeypatch.setattr(module, "add_neighbours", lambda run, counted, found: found)


@pytest.fixture
def run(tmp_path: Path) -> kgbias.Run:
    (tmp_path / "s.csv").write_text(CSV)
    study = kgbias.open(tmp_path / "k.db")
    return study.import_file(tmp_path / "s.csv", name="small")


def found(
    run: kgbias.Run, question: str, near: Mapping[str, float] = {}, **options: Any
) -> Retrieval:
    return retrieve_statements(
        run.stored,
        select_statements(run.stored, Selection()),
        question,
        index=Fixed(near),
        **options,
    )


def objects(r: Retrieval) -> list[str]:
    return [f.triple.object for f in r.statements]


@pytest.mark.parametrize(
    ("text", "groups", "topic"),
    [
        ("What does the model say about women and work?", ["women"], ["work"]),
        ("WOMEN?", ["WOMEN"], []),
        ("Are females kind to a man?", ["females", "man"], ["kind"]),
        ("Is a black woman strong?", ["black woman"], ["strong"]),
        ("Black women or women?", ["women", "Black women"], []),
        ("Do nigerians cook?", ["nigerians"], ["cook"]),
        ("Nigerian food", ["Nigerian"], ["food"]),
        ("the old ideas of old people", ["old people"], ["old", "ideas"]),
        ("Is menswear expensive?", [], ["menswear", "expensive"]),
        ("!?", [], []),
    ],
)
def test_a_question_names_groups_and_a_topic(
    text: str, groups: list[str], topic: list[str]
) -> None:
    read = parse_question(text, GROUPS)
    assert (list(read.groups.values()), list(read.topic)) == (groups, topic)


OTHERS = (
    Group("Jews", "", ("Jewish people",)),
    Group("Chinese people", ""),
    Group("Disabled women", ""),
)


@pytest.mark.parametrize(
    ("text", "groups", "topic", "absent"),
    [
        ("What of Jews?", [], ["jews"], ["Jews"]),
        ("Are jewish women rich?", ["women"], ["jewish", "rich"], ["Jews"]),
        ("Who likes Chinese food?", [], ["likes", "chinese", "food"], []),
        ("a Chinese person", [], ["chinese"], ["Chinese people"]),
        ("disabled women", [], ["disabled", "women"], ["Disabled women"]),
        ("anything or nothing about women", ["women"], [], []),
    ],
)
def test_groups_that_the_run_lacks_are_named_and_stay_in_the_topic(
    text: str, groups: list[str], topic: list[str], absent: list[str]
) -> None:
    read = parse_question(text, GROUPS, OTHERS)
    assert (list(read.groups.values()), list(read.topic)) == (groups, topic)
    assert [g.name for g in read.absent_groups] == absent


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Are males lazy?", ["males"]),
        ("Is a person who is female kind?", ["female"]),
        ("people who are female", ["people who are female"]),
        ("Who wears white?", []),
        ("Whites", ["Whites"]),
        ("the work of African Americans", ["African Americans"]),
    ],
)
def test_groups_are_found_by_the_names_declared_for_them(
    tmp_path: Path, question: str, named: list[str]
) -> None:
    (tmp_path / "s.csv").write_text(f"{CSV}White people,are,kind,1\nBlack people,are,kind,1\n")
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.import_file(tmp_path / "s.csv", name="small")
        read = found(run, question).question
    assert list(read.groups.values()) == named and read.absent_groups == ()


def test_a_name_that_the_store_has_for_a_group_finds_it(run: kgbias.Run) -> None:
    men = run.stored.find_group("Men")
    run.stored.store.save_names([GroupName("blokes", men.id, "{}s", "bloke")])
    assert list(found(run, "What about blokes?").question.groups.values()) == ["blokes"]


def test_a_name_of_two_groups_is_that_of_the_one_whose_seed_has_it(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("group,predicate,object\nMen,are,kind\nMales,are,old\n")
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.import_file(tmp_path / "s.csv", name="small")
        assert objects(found(run, "What about males?")) == ["old"]


def test_other_groups_do_not_answer_for_one_that_the_run_lacks(
    run: kgbias.Run, texts: Texts
) -> None:
    r = found(run, "What about old people?", {"kind": 0.9, "lazy": 0.2})
    assert not r.statements and not r.groups and r.matching == 0
    assert [f.triple.object for f in r.nearest] == ["kind", "lazy"]
    answer = build_extractive_answer("", run.name, r)
    texts.check(answer.text)
    assert answer.note.startswith("The nearest statements")
    both = build_extractive_answer("", run.name, found(run, "Do women work for Jews?"))
    assert objects(both.retrieval) == ["working from home", "work at night"]
    texts.check(both.note)


def test_a_statement_that_names_the_group_that_the_run_lacks_is_found(
    tmp_path: Path, texts: Texts
) -> None:
    (tmp_path / "s.csv").write_text(f"{CSV}Men,fear,Jewish people,1\nMen,are,jewish in spirit,1\n")
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.import_file(tmp_path / "s.csv", name="small")
        answer = build_extractive_answer("", run.name, found(run, "Who fears Jewish people?"))
    assert objects(answer.retrieval) == ["Jewish people"]
    texts.check(answer.note)


def test_a_sentence_that_is_two_triples_is_one_statement(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(
        "group,predicate,object,count\n"
        "Men,are,taller than women,2\nMen,are taller than,women,3\nMen,are,kind,5\n"
    )
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.import_file(tmp_path / "s.csv", name="small")
        r = found(run, "Are men taller?")
    (only,) = r.statements
    assert (only.triple.predicate, only.triple.count) == ("are taller than", 5)
    assert only.share.value == 0.5 and (r.matching, r.groups[0].matching.value) == (1, 0.5)


def test_statements_about_the_group_are_found_by_shared_words(run: kgbias.Run) -> None:
    r = found(run, "What does the model say about women and work?")
    assert objects(r) == ["working from home", "work at night"]
    assert [f.words for f in r.statements] == [("work",), ("work",)]
    assert r.statements[0].why == "says work"
    # 3 of the 6 statements about women, with Wilson's interval
    assert r.statements[0].share.value == 0.5 and r.statements[0].share.n == 6
    assert (r.groups[0].group, r.groups[0].matching.value) == ("Women", pytest.approx(4 / 6))


def test_statements_are_found_in_other_words(run: kgbias.Run) -> None:
    r = found(run, "women and idleness", {"kind": 0.1, "work at night": 0.5})
    assert objects(r) == ["work at night"]
    assert r.statements[0].why == "by meaning (0.50)"


def test_a_group_alone_gives_its_most_frequent_statements(run: kgbias.Run) -> None:
    r = found(run, "What is said about women?", top=2)
    assert objects(r) == ["working from home", "kind"]
    assert r.matching == 3


@pytest.mark.usefixtures("alone")
def test_one_statement_is_and_several_are(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(
        "group,predicate,object,count\nWomen,are,kind,1\nMen,are,kind,2"
    )
    run = kgbias.open(tmp_path / "k.db").import_file(tmp_path / "s.csv", name="small")
    one, two = (run.ask(f"Say of {name}", encoder=None).text for name in ("Women", "Men"))
    assert one.startswith("1 statement is about Women.")
    assert two.startswith("2 statements are about Men.")


def test_without_a_group_all_are_asked(run: kgbias.Run) -> None:
    r = found(run, "Who works hard?")
    assert objects(r)[0] == "hard work"  # it holds both words
    assert {g.group for g in r.groups} == {"Women", "Men"}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What about Martians?", "Run 'small' holds no statement about: martians. Its groups are"),
        (
            "Do women like quantum physics?",
            "None of the 6 statements about Women in run 'small' is about: quantum, physics.",
        ),
        ("What is said?", "The question names no group of run 'small' and no topic."),
    ],
)
def test_without_a_match_it_says_so(run: kgbias.Run, question: str, said: str) -> None:
    answer = build_extractive_answer(question, run.name, found(run, question))
    assert answer.text.startswith(said)
    assert answer.statements == () and answer.claims == ()


def test_without_a_match_the_nearest_are_shown_as_such(run: kgbias.Run, texts: Texts) -> None:
    r = found(run, "women and idleness", {"kind": 0.1, "work at night": 0.3, "lazy": 0.36})
    assert r.statements == () and r.matching == 0
    assert [(f.triple.object, f.why, f.words) for f in r.nearest] == [
        ("work at night", "0.30 near", ()),
        ("kind", "0.10 near", ()),
    ]
    answer = build_extractive_answer("women and idleness", run.name, r)
    texts.check(answer.note)
    record = answer.as_dict()
    assert record["statements"] == record["claims"] == []
    assert [s["object"] for s in record["nearest"]] == ["work at night", "kind"]
    assert found(run, "women and work", {"kind": 0.3}).nearest == ()


def test_without_an_index_the_most_frequent_are_the_nearest(run: kgbias.Run) -> None:
    counted = select_statements(run.stored, Selection())
    r = retrieve_statements(run.stored, counted, "women and idleness", index=None)
    assert [f.why for f in r.nearest] == ["about Women"] * 3
    assert r.nearest[0].triple.object == "working from home"
    assert retrieve_statements(run.stored, counted, "idleness", index=None).nearest == ()


@pytest.mark.usefixtures("alone")
def test_the_command_shows_the_nearest(run: kgbias.Run, texts: Texts) -> None:
    given = ["ask", "women and idleness", "--store", run.stored.store.url]
    given += ["--set", "encoder=none"]
    shown = CliRunner().invoke(cli, given, standalone_mode=False).stdout
    texts.check_lines(shown, "statements about")
    texts.check_lines(shown, "nearest statements")
    texts.check_lines(shown, "love working")
    assert "[1]" not in shown


@pytest.mark.usefixtures("alone")
def test_an_answer_has_counts_figures_and_sources(run: kgbias.Run, texts: Texts) -> None:
    women = run.stored.find_group("Women")
    run.stored.put(GroupScore, [GroupScore(2.0, -1.0, 4.0, 6, women.id, "overall_regard")])
    answer = run.ask("What does the model say about Women and work?", encoder=None)
    record = answer.as_dict()
    texts.check(record["answer"])
    first = record["statements"][0]
    assert (first["group"], first["predicate"], first["object"], first["count"]) == (
        "Women",
        "love",
        "working from home",
        3,
    )
    assert first["similarity"] is None and first["cited"]
    assert set(record["groups"][0]["figures"]["overall_regard"]) == {"value", "low", "high", "n"}


@pytest.mark.usefixtures("alone")
def test_what_does_not_count_is_not_retrieved(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(CSV.replace("4,gender,none", "4,gender,other"))
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.import_file(tmp_path / "s.csv")
        assert {f.triple.arm for f in run.ask("who works?", encoder=None).statements} == {
            "none",
            "other",
        }
        own = run.ask("who works?", encoder=None, arm="other").statements
        assert [f.triple.object for f in own] == ["hard work"]


@pytest.mark.usefixtures("alone")
def test_the_command(run: kgbias.Run, tmp_path: Path, texts: Texts) -> None:
    arguments = ["--store", str(tmp_path / "k.db"), "--set", "encoder=none"]
    shown = CliRunner().invoke(cli, ["ask", "women and work", *arguments])
    assert run.name in shown.output
    texts.check(shown.output)
    texts.check_lines(shown.stdout, "love working")
    texts.check_lines(shown.stdout, "statements match")
    named = CliRunner().invoke(cli, ["ask", "women and work", "--run", run.name, *arguments])
    assert "the newest" not in named.output
    record = json.loads(CliRunner().invoke(cli, ["ask", "Martians", *arguments, "--json"]).stdout)
    assert record["statements"] == [] and "no statement about" in record["answer"]
    with pytest.raises(UsageError, match="the question is empty"):
        run.ask("  ")
