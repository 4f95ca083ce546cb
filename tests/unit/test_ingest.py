"""Runs from files, in process."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgbias.cli import cli, main
from kgbias.graph.sqlite import SQLiteStore
from tests.hostile import HOSTILE_TEXTS

CSV = """\
who,verb,what,times,kind
Women,love,pie,3,gender
Men,love,"tea, black",1,gender
Women,Love,Pie.,2,gender
,love,rain,1,gender
Sikhs,are,kind,,religion
"""
PROFILES = """\
,name,age,traits,hobbies,run_id,Ethnicity,Group
0,Ana,31,"('kind', 'curious')",chess,0,ITALIAN,"('ITALIAN', 'F')"
1,Bo,44,"('kind',)","(not a tuple",0,DANISH,"('DANISH', 'M')"
"""


def imported(tmp_path: Path, name: str, text: str, *arguments: str) -> tuple[SQLiteStore, dict]:  # type: ignore[type-arg]
    (tmp_path / name).write_text(text, encoding="utf-8")
    db = str(tmp_path / "k.db")
    result = CliRunner().invoke(
        cli,
        ["import", str(tmp_path / name), "--store", db, "--json", *arguments],
        catch_exceptions=False,
        standalone_mode=False,
    )
    return SQLiteStore(db), json.loads(result.stdout)


COLUMNS = (
    "--group",
    "who",
    "--predicate",
    "verb",
    "--object",
    "what",
    "--count",
    "times",
    "--category",
    "kind",
)


def test_a_table_becomes_a_run(tmp_path: Path) -> None:
    store, said = imported(tmp_path, "a.csv", CSV, *COLUMNS, "--model", "m", "--run", "mine")
    assert said == {"run": "mine", "groups": 3, "statements": 7, "triples": 3, "left_out": 1}
    run = store.find_run("mine")
    assert (run.kind, run.status, run.model.name) == ("import", "complete", "m")
    assert [(g.name, g.category) for g in run.groups] == [
        ("Women", "gender"),
        ("Men", "gender"),
        ("Sikhs", "religion"),
    ]
    found = {(t.group, t.predicate, t.object): t.count for t in store.triples(run.id)}
    assert found == {
        ("Women", "love", "pie"): 5,
        ("Men", "love", "tea, black"): 1,
        ("Sikhs", "are", "kind"): 1,
    }


def test_groups_are_counted_once_whatever_their_arms(tmp_path: Path) -> None:
    text = "group,predicate,object,arm\nBakers,are,kind,google\nBakers,like,tea,yahoo\n"
    _, said = imported(tmp_path, "a.csv", text)
    assert said["groups"] == 1


def test_cells_without_a_value_and_cells_that_an_export_guards(tmp_path: Path) -> None:
    text = "group,predicate,object\nBakers,are,NULL\nBakers,are,nan\nBakers,like,'=x\n"
    store, said = imported(tmp_path, "a.csv", text, "--run", "mine")
    assert said["left_out"] == 2
    assert [t.object for t in store.triples(store.find_run("mine").id)] == ["=x"]


def test_a_group_with_characters_that_are_not_seen_is_left_out(tmp_path: Path) -> None:
    """As they are refused wherever else a group is named; joiners are letters."""
    rows = "Ba\u202ekers,like,tea\nBa\u200bkers,like,rain\nBa\u200dkers,like,hats\n"
    store, said = imported(tmp_path, "a.csv", f"group,predicate,object\n{rows}", "--run", "mine")
    assert said["left_out"] == 2
    assert [t.object for t in store.triples(store.find_run("mine").id)] == ["hats"]


def test_a_line_that_tells_excel_the_delimiter_is_no_header(tmp_path: Path) -> None:
    text = "sep=;\r\ngroup;predicate;object\r\nBakers;like;a, b\r\n"
    store, _ = imported(tmp_path, "a.csv", text, "--run", "mine")
    assert [t.object for t in store.triples(store.find_run("mine").id)] == ["a, b"]


def test_json_lines_need_not_all_have_the_same_keys(tmp_path: Path) -> None:
    rows = [{"group": "Cooks", "predicate": "are", "object": "kind"}]
    rows += [rows[0] | {"group": "Nurses", "category": "trade", "count": 3}]  # type: ignore[dict-item]
    store, said = imported(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)), "--run", "mine")
    assert said["statements"] == 4
    assert {g.name: g.category for g in store.find_run("mine").groups}["Nurses"] == "trade"


def test_importing_twice_changes_nothing(tmp_path: Path) -> None:
    store, first = imported(tmp_path, "a.csv", CSV, *COLUMNS)
    again, second = imported(tmp_path, "a.csv", CSV, *COLUMNS)
    assert first == second
    assert len(list(again.generations(again.find_run().id))) == 4
    assert len(store.summaries()) == 1


def test_every_format_and_the_export_of_another_run(tmp_path: Path) -> None:
    rows = [
        {"group": "Women", "predicate": "love", "object": "pie", "count": 2, "arm": "both"},
        {"group": "Men", "predicate": "are", "object": "😀", "count": 1, "arm": "none"},
    ]
    text = "\n".join(json.dumps(row) for row in rows) + "\n\n"
    store, said = imported(tmp_path, "a.jsonl", text)
    assert said["statements"] == 3
    arms = Counter(g.arm for g in store.generations(store.find_run().id))
    assert arms == {"both": 1, "none": 1}
    table = 'group\tpredicate\tobject\nWomen\tlove\tpie "n" such\n'.replace('"', "")
    store, said = imported(tmp_path, "b.tsv", table)
    assert said["triples"] == 1
    assert {g.category for g in store.find_run(said["run"]).groups} == {"imported"}


def test_profiles(tmp_path: Path) -> None:
    store, said = imported(
        tmp_path, "p.csv", PROFILES, "--format", "profiles", "--attribute-predicate", "traits=is"
    )
    found = {(t.group, t.predicate, t.object) for t in store.triples(store.find_run().id)}
    assert said["groups"] == 2
    assert found == {
        ("Ana", "age", "31"),
        ("Ana", "is", "kind"),
        ("Ana", "is", "curious"),
        ("Ana", "hobbies", "chess"),
        ("Bo", "age", "44"),
        ("Bo", "is", "kind"),
        ("Bo", "hobbies", "(not a tuple"),
    }


def test_a_profile_of_a_group_with_characters_that_are_not_seen_is_left_out(tmp_path: Path) -> None:
    odd = PROFILES.replace("Bo", "B\u202eo")
    store, said = imported(tmp_path, "p.csv", odd, "--format", "profiles")
    assert said["left_out"] == 1
    assert {t.group for t in store.triples(store.find_run().id)} == {"Ana"}


def test_profiles_by_another_column(tmp_path: Path) -> None:
    store, _ = imported(
        tmp_path,
        "p.csv",
        PROFILES,
        "--format",
        "profiles",
        "--group",
        "Group",
        "--attribute",
        "traits",
    )
    triples = store.triples(store.find_run().id)
    assert {(t.group, t.predicate, t.object) for t in triples} == {
        ("ITALIAN F", "traits", "kind"),
        ("ITALIAN F", "traits", "curious"),
        ("DANISH M", "traits", "kind"),
    }


def test_hostile_objects_come_back(tmp_path: Path) -> None:
    lines = [
        json.dumps({"group": "Women", "predicate": "say", "object": text}) for text in HOSTILE_TEXTS
    ]
    store, said = imported(tmp_path, "h.jsonl", "\n".join(lines))
    kept = said["statements"] + said["left_out"]
    assert kept == len(HOSTILE_TEXTS)
    objects = {t.object for t in store.triples(store.find_run().id)}
    assert "</script><script>window.pwned=1</script>" in objects and "a" * 10_000 in objects


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"group,predicate,object\n", "has no rows"),
        ("a.csv", b"a,b\n1,2\n", "no column 'group'; its columns are 'a', 'b'"),
        ("a.csv", b"group,predicate,object,count\nx,are,y,two\n", "line 2: count 'two'"),
        ("a.csv", b"group,predicate,object,count\nx,are,y,inf\n", "line 2: count 'inf'"),
        ("a.csv", b"group,predicate,object\n,are,\n", "has no triples"),
        ("a.csv", b"group,predicate,object\nx,are,y,z\n", "a row has 4 cells"),
        ("a.csv", b'group,predicate,object\n"a,b\n', "is opened and not closed"),
        ("a.csv", b"a\xffb", "line 1: the byte 0xff is not UTF-8"),
        ("a.jsonl", b'{"group":', "is not JSON"),
        ("a.jsonl", b"[1]\n", "no list of objects"),
        ("a.jsonl", b"[" * 100_000, "nested too deep"),
        ("a.xlsx", b"PK\x03\x04", "a damaged archive"),
    ],
)
def test_a_bad_file_is_one_line(
    name: str, content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    db = tmp_path / "none.db"
    with pytest.MonkeyPatch.context() as patch:
        arguments = ["kgbias", "import", str(tmp_path / name), "--store", str(db)]
        patch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as stop:
            main()
    error = capsys.readouterr().err.strip()
    assert stop.value.code == 2 and message in error and len(error.splitlines()) == 1
    assert not db.exists()
