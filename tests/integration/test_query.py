"""kgbias query, push and structure from the command line, on the embedded store."""

import csv
import io
import json
import re
import sqlite3
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kgbias.cli.inspect import structure
from kgbias.cli.outputs import export
from kgbias.cli.query import query
from kgbias.cli.store import push
from kgbias.errors import KgbiasError, MissingExtra, UsageError
from kgbias.graph.cypher import QueryResult, inline_limits
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Group, Run, Topic, TopicAssignment, TopicModel
from kgbias.io.text import printable_if_terminal
from kgbias.query import (
    browser_parameters,
    format_result,
    load_query,
    query_names,
    write_favourites,
)
from tests.conftest import require_modules
from tests.report_data import measured_run
from tests.texts import Texts

require_modules("kglite")
pytestmark = pytest.mark.integration
GROUPS = (Group("Women", "gender"), Group("Men", "gender", ("Males",)))


@pytest.fixture
def run(store: SQLiteStore) -> Run:
    return measured_run(store, GROUPS, ["=1+1", "\x1b[31mred", "music, loud"])


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(query, arguments, catch_exceptions=False)


def test_a_named_query_as_table_csv_and_json(store: SQLiteStore, run: Run) -> None:
    call = ("neighbourhood", "--param", "group=Women", "--store", store.url)
    records = json.loads(asked(*call, "--json").stdout)
    assert {r["object"] for r in records} == {"=1+1", "\x1b[31mred", "music, loud"}
    assert sum(r["count"] for r in records) == 20
    cells = list(csv.DictReader(io.StringIO(asked(*call, "--format", "csv").stdout)))
    assert {c["object"] for c in cells} == {"'=1+1", "\x1b[31mred", "music, loud"}
    table = asked(*call).stdout
    assert "\x1b" not in table and "�[31mred" in table
    assert table.splitlines()[0].split() == [
        "predicate",
        "object",
        "count",
        "regard",
        "toxicity",
        "arm",
    ]
    assert len(asked(*call, "--param", "limit=2").stdout.splitlines()) == 4


def test_a_list_of_what_hurts_says_how_far_it_can_be_believed(store: SQLiteStore, run: Run) -> None:
    for name, label in (("most_toxic", "toxic"), ("most_negative", "negative")):
        found = asked(name, "--store", store.url, "--json")
        assert f'On the label "{label}": ' in found.stderr and json.loads(found.stdout)
    assert "On the label" not in asked("most_repeated", "--store", store.url).stderr


def test_groups_are_found_in_any_case(store: SQLiteStore, run: Run, texts: Texts) -> None:
    rows = load_query("neighbourhood").run(store, {"group": "Men"}).rows
    assert rows
    for name in ("men", " MALES"):
        assert load_query("neighbourhood").run(store, {"group": name}).rows == rows
    assert load_query("shared").run(store, {"group": "women", "other": "males"}).rows
    with texts.raises(UsageError):
        load_query("neighbourhood").run(store, {"group": "Elves"})


def test_a_terminal_is_shown_no_escapes() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert printable_if_terminal("a\x1b[2J\x9b2J\nb\n", Terminal()) == "a�[2J�2J\nb\n"
    assert printable_if_terminal("a\x1b[2J\n", io.StringIO()) == "a\x1b[2J\n"


def test_own_cypher(store: SQLiteStore, run: Run) -> None:
    text = "MATCH (g:SocialGroup) WHERE g.name <> $not RETURN g.name AS name, $n AS n, [1, $x] AS l"
    call = ("--cypher", text, "--param", "not=Men", "--param", "n=2", "--param", "x=true")
    rows = json.loads(asked(*call, "--json", "--store", store.url).stdout)
    assert rows == [{"name": "Women", "n": 2, "l": [1, True]}]
    before = store.triples(run.id)
    with pytest.raises(UsageError, match="cannot be run"):
        asked("--cypher", "MATCH (n) DETACH DELETE n", "--store", store.url)
    assert store.triples(run.id) == before


@pytest.mark.parametrize(
    ("text", "parameters", "asked"),
    [
        ("RETURN 1 LIMIT toInteger($n)", {"n": 25}, "RETURN 1 LIMIT 25"),
        ("RETURN 1 limit $n SKIP 1", {"n": 0}, "RETURN 1 LIMIT 0 SKIP 1"),
        (
            "RETURN 1 LIMIT toInteger( $n ) UNION RETURN 2 LIMIT $m",
            {"n": 1, "m": 2},
            "RETURN 1 LIMIT 1 UNION RETURN 2 LIMIT 2",
        ),
        *[
            (same, {"n": 25}, same)
            for same in (
                "RETURN 'LIMIT $n'",
                'RETURN "LIMIT $n"',
                "RETURN 1 AS `LIMIT $n`",
                "RETURN 1 // LIMIT $n",
                "RETURN /* LIMIT $n */ 1",
                "RETURN $n AS LIMIT_n",
                "RETURN 1 LIMIT $m",
                "RETURN 1 LIMIT 3",
            )
        ],
        *[
            ("RETURN 1 LIMIT $n", {"n": n}, "RETURN 1 LIMIT $n")
            for n in (-1, 2.5, True, "25", None, 2**63)
        ],
    ],
)
def test_a_limit_is_written_out_for_the_embedded_engine(
    text: str, parameters: dict[str, object], asked: str
) -> None:
    assert inline_limits(text, parameters) == asked


def test_only_the_rows_of_the_answer_are_kept_while_they_are_sorted(
    store: SQLiteStore, run: Run
) -> None:
    """A list of all statements of a run, sorted, is what takes long on a large one."""
    for name in ("most_repeated", "most_negative", "most_toxic", "predicates", "bridges"):
        query = load_query(name)
        plan = replace(query, text=f"EXPLAIN {query.text}").run(store, {}).records()
        steps = [step["operation"] for step in plan]
        assert "FusedOrderByTopK" in steps and "Limit" not in steps, name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name one query"),
        (("bridges", "--cypher", "RETURN 1"), "name one query"),
        (("bridges", "--param", "limit"), "--param takes NAME=VALUE"),
        (("lineage",), "lineage needs the parameter group"),
        (("lineage", "a"), "no parameter 'run' of lineage"),
        (("refusals", "nowhere"), "no run 'nowhere'"),
        (("--cypher", "RETRUN 1"), "the query cannot be run"),
    ],
)
def test_bad_questions(store: SQLiteStore, run: Run, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(KgbiasError, match=said):
        asked(*arguments, "--store", store.url)


def test_the_list_names_every_query_with_its_help() -> None:
    text = asked("--list").output
    for name in query_names():
        found = load_query(name)
        assert name in text and found.help in text
        assert found.help.endswith(".") and "MATCH" in found.text
        # What the text uses is what the head says, and nothing else.
        used = set(re.findall(r"\$(\w+)", found.text))
        assert used == {p.name for p in found.parameters}, name


def test_tables_of_wide_text_and_paths() -> None:
    group = {":label": "SocialGroup", "name": "Women"}
    edge = {":type": "STEREOTYPE", "predicate": "love"}
    food = {":label": "Object", "text": "漢字"}
    result = QueryResult(("p", "n"), [([group, edge, food], 1), (None, None), ("x" * 99, 10)])
    lines = format_result(result, "table").splitlines()
    assert lines[2].startswith("(Women)-[love]-(漢字)")
    assert lines[2].endswith(" 1") and lines[4].endswith("…  10")
    assert lines[3] == ""


def test_a_missing_engine_is_named(
    store: SQLiteStore, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kglite", None)
    with pytest.raises(MissingExtra, match=r"pip install 'kgbias\[cypher\]'"):
        asked("bridges", "--store", store.url)


def test_push_and_structure(store: SQLiteStore, run: Run, tmp_path: Path, texts: Texts) -> None:
    shown = CliRunner().invoke(structure, ["--store", store.url], catch_exceptions=False)
    assert "5 nodes in" in shown.stdout and "\x1b" not in shown.stdout
    target = str(tmp_path / "copy.db")
    call = ["--from", store.url, "--to", target]
    first = CliRunner().invoke(push, call, catch_exceptions=False)
    again = CliRunner().invoke(push, call, catch_exceptions=False)
    assert "40 generations were new" in first.stderr and "0 generations were new" in again.stderr
    copy = SQLiteStore(target)
    assert copy.triples(run.id) == store.triples(run.id)
    assert copy.centralities(run.id) == store.centralities(run.id) != []
    with sqlite3.connect(target) as db:
        assert db.execute("SELECT count(*) FROM generation").fetchone() == (40,)
    with texts.raises(UsageError):
        CliRunner().invoke(push, ["--from", target, "--to", target], catch_exceptions=False)


def test_export_of_a_topic(store: SQLiteStore, run: Run) -> None:
    triples = store.triples(run.id)
    loud = Topic("gender", 0, ("music", "loud"), 1)
    store.save_topics(
        run.id, [TopicModel("gender", (loud,), (TopicAssignment(triples[0].id, loud.id, 1.0),), {})]
    )
    call = ["--store", store.url, "--topic", "Loud"]
    lines = CliRunner().invoke(export, call, catch_exceptions=False).stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [triples[0].id]


def test_the_library_is_written_as_saved_queries(tmp_path: Path) -> None:
    """A zip with a .cypher file for each query, which Neo4j Browser names by its first line, and
    one that gives all their parameters a value."""
    path = tmp_path / "queries.zip"
    assert CliRunner().invoke(query, ["--favourites", str(path)]).exit_code == 0
    with zipfile.ZipFile(path) as file:
        texts = {name: file.read(name).decode("utf-8") for name in file.namelist()}
    assert list(texts) == [f"kgbias/{name}.cypher" for name in ("_parameters", *query_names())]
    titles = [text.splitlines()[0].removeprefix("// ") for text in texts.values()]
    assert len(set(titles)) == len(titles) and max(map(len, titles[1:])) <= 25
    given = texts["kgbias/_parameters.cypher"].replace("{", " ")
    for name in query_names():
        assert load_query(name).text in texts[f"kgbias/{name}.cypher"]
        assert all(f" {p.name}: " in given for p in load_query(name).parameters)
    page = Path(__file__).parents[2] / "docs" / "how-to" / "store.md"
    assert browser_parameters() in page.read_text("utf-8")
    first = path.read_bytes()
    write_favourites(path)
    assert path.read_bytes() == first
