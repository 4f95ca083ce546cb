"""What is made of the graph keeps to the one table of its shape."""

import csv
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgbias.export import Filters, write_export
from kgbias.graph import shape
from kgbias.graph.decisions import Decision
from kgbias.graph.selection import Selection
from kgbias.graph.sqlite import SQLiteStore, selects
from kgbias.graph.store import StoredRun
from kgbias.io.progress import ProgressLines
from kgbias.query import load_query, query_names
from kgbias.query.library import find_names
from tests.arms_data import arms_run
from tests.contract.test_shape import RUN, everything
from tests.texts import Texts

ROOT = Path(__file__).parent.parent.parent
LABELS = {n.label: n for n in shape.NODES}
TYPES = {e.type: e for e in shape.EDGES}

OF_NO_RUN = ("BenchmarkItem", "READ_BY")  # they belong to a model, and no export of a run has them


def test_the_table_is_sound() -> None:
    assert len(LABELS) == len(shape.NODES) and len(TYPES) == len(shape.EDGES)
    for thing in (*shape.NODES, *shape.EDGES):
        names = [p.name for p in thing.properties]
        assert len(set(names)) == len(names), thing
        assert thing.meaning and all(p.meaning for p in thing.properties), thing
    for node in shape.NODES:
        assert {node.key, node.title} <= {p.name for p in node.properties}
    for edge in shape.EDGES:
        assert edge.ends and all(label in LABELS for pair in edge.ends for label in pair)
    assert shape.with_end_labels(["ABOUT", "nonsense", "Run"]) == {
        "ABOUT",
        "Triple",
        "Topic",
        "Run",
    }


def selected_columns(store: SQLiteStore, query: str) -> list[str]:
    return [column[0] for column in store._db.execute(query).description]


def test_the_view_selects_what_the_table_says(store: SQLiteStore) -> None:
    assert list(selects.NODE_SELECTS) == [n.label for n in shape.NODES]
    assert set(selects.EDGE_SELECTS) == {(e.type, *pair) for e in shape.EDGES for pair in e.ends}
    for node in shape.NODES:
        columns = selected_columns(store, selects.NODE_SELECTS[node.label])
        assert set(columns) == {p.name for p in node.properties}, node.label
    for (kind, *_), query in selects.EDGE_SELECTS.items():
        columns = selected_columns(store, query)
        assert columns[:2] == ["a", "b"]
        assert set(columns[2:]) == {p.name for p in TYPES[kind].properties}, kind


def test_no_part_of_the_view_compares_all_rows_of_two_tables(store: SQLiteStore) -> None:
    """A join that SQLite has no index for reads one table again for each row of another."""
    for of, query in [*selects.NODE_SELECTS.items(), *selects.EDGE_SELECTS.items()]:
        plan = store._db.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
        loops = Counter(parent for _, parent, _, step in plan if step.startswith("SCAN"))
        assert max(loops.values(), default=0) <= 1, of


def test_the_library_asks_for_what_there_is() -> None:
    for name in query_names():
        assert load_query(name).kinds <= LABELS.keys() | TYPES.keys(), name


def test_the_library_names_the_properties_that_it_reads() -> None:
    lineage = find_names(load_query("lineage").kinds)
    assert lineage >= {"Generation", "Answer", "prompt", "answer_key", "text", "position"}
    assert not lineage & {"reason", "degree", "predicate"}  # the last is a parameter there
    shows_paths = load_query("picture").kinds
    assert find_names(shows_paths) == shows_paths | shape.PROPERTY_NAMES


def test_the_description_has_all_there_is() -> None:
    """What docs/graph-shape.md becomes when the site is built."""
    described = shape.describe_shape()
    for part in [n.label for n in shape.NODES] + [e.type for e in shape.EDGES]:
        assert f"### {part}\n" in described
    for part in [*shape.NODES, *shape.EDGES]:
        assert all(f"- `{p.name}`: {p.meaning}" in described for p in part.properties)


def cells(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_the_admin_export_holds_all_of_a_run(store: SQLiteStore, tmp_path: Path) -> None:
    everything(store)
    write_export(StoredRun.find(store, RUN.name), tmp_path / "import", "neo4j-admin")
    readme = (tmp_path / "import" / "README.txt").read_text()
    of_run = [n for n in shape.NODES if n.label not in OF_NO_RUN]
    for node in of_run:
        header, *found = cells(tmp_path / "import" / f"nodes-{node.label}.csv")
        assert header[0] == f"{node.key}:ID({node.label})" and found, node.label
        names = {node.key} | {name.partition(":")[0] for name in header[1:]}
        assert names == {p.name for p in node.properties}
        assert f"--nodes={node.label}=./nodes-{node.label}.csv" in readme
    ids = {
        label: {row[0] for row in cells(tmp_path / "import" / f"nodes-{label}.csv")[1:]}
        for label in LABELS.keys() - set(OF_NO_RUN)
    }
    for edge in (e for e in shape.EDGES if e.type not in OF_NO_RUN):
        for start, end in edge.ends:
            several = f"-{start}-{end}" if len(edge.ends) > 1 else ""
            header, *found = cells(tmp_path / "import" / f"edges-{edge.type}{several}.csv")
            assert header[:2] == [f":START_ID({start})", f":END_ID({end})"]
            assert {h.partition(":")[0] for h in header[2:]} == {p.name for p in edge.properties}
            assert found, edge
            for a, b, *_ in found:
                assert a in ids[start] and b in ids[end], edge


def test_a_part_of_a_run_is_closed(store: SQLiteStore, tmp_path: Path) -> None:
    """An export of some triples has no edge to what it leaves out."""
    everything(store)
    run = StoredRun.find(store, RUN.name)
    write_export(run, tmp_path / "import", "neo4j-admin", Filters(groups=("Elves",)))
    ids = {
        label: {row[0] for row in cells(tmp_path / "import" / f"nodes-{label}.csv")[1:]}
        for label in LABELS.keys() - set(OF_NO_RUN)
    }
    for path in (tmp_path / "import").glob("edges-*.csv"):
        header, *found = cells(path)
        start, end = (re.findall(r"\((\w+)\)", name)[0] for name in header[:2])
        for a, b, *_ in found:
            assert a in ids[start] and b in ids[end], path.name


def test_an_arm_of_a_run_is_closed(store: SQLiteStore, tmp_path: Path) -> None:
    """What people decided about the answers of another arm stays with these."""
    run = arms_run(store)
    answers = list(run.generations())
    run.add_decisions(
        [
            Decision(g.id, "reject", "Ana", f"2026-11-23T0{n}:00:00+00:00", read=g.triple)
            for n, g in enumerate(answers)
        ]
    )
    write_export(run, tmp_path / "import", "neo4j-admin", selection=Selection(arm="prefix"))
    found = {row[0] for row in cells(tmp_path / "import" / "nodes-Generation.csv")[1:]}
    assert found == {g.id for g in answers if g.arm == "prefix"}
    decided = {row[1] for row in cells(tmp_path / "import" / "edges-DECIDES.csv")[1:]}
    assert decided == found


def _counted(method: Callable[..., Any], calls: Counter[str]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        calls[method.__name__] += 1
        return method(*given, **named)

    return call


def test_the_admin_export_reads_a_run_once(
    store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statements and generations come one at a time, and never all."""
    run = arms_run(store)
    read: Counter[str] = Counter()
    for name in (
        "generations",
        "triples_of_arm",
        "triples",
        "iter_yield_rows",
        "iter_statement_rows",
        "distinct_triples",
        "summary",
    ):
        monkeypatch.setattr(store, name, _counted(getattr(store, name), read))
    write_export(run, tmp_path / "import", "neo4j-admin")
    # The run has two arms; it is counted once, to say how far the export is.
    assert read == {"generations": 1, "triples_of_arm": 2, "summary": 1}


def test_the_admin_export_says_how_far_it_is(
    store: SQLiteStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], texts: Texts
) -> None:
    run = arms_run(store)
    lines = ProgressLines()
    said = write_export(run, tmp_path / "import", "neo4j-admin", progress=lines)
    lines.finish()
    told = [line.partition(" (")[0] for line in capsys.readouterr().err.splitlines()]
    count = len(cells(tmp_path / "import" / "nodes-Generation.csv")) - 1
    assert told[:2] == [f"statements: {said}/{said}", f"generations: {count}/{count}"]
    texts.check(told[2])
    assert len(told) == 3


def test_the_script_writes_what_there_is(store: SQLiteStore, tmp_path: Path) -> None:
    everything(store)
    path = tmp_path / "graph.cypher"
    write_export(StoredRun.find(store, RUN.name), path, "cypher")
    text = re.sub(r"'(?:\\.|[^'\\])*'", "''", path.read_text(encoding="utf-8"))
    constraint = r"^CREATE CONSTRAINT \w+ .*\(n:(\w+)\) REQUIRE n\.\w+ IS UNIQUE;$"
    unique_labels = set(re.findall(constraint, text, re.MULTILINE))
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("//", "CREATE")))
    assert "MERGE (d)-[:DECIDES]->(n)" in text and text.count("(d:Decision") == 3
    variables = dict(re.findall(r"\((\w+):(\w+)", text)) | dict(re.findall(r"\[(\w+):(\w+)", text))
    assert set(variables.values()) <= LABELS.keys() | TYPES.keys()
    assert set(variables.values()) & LABELS.keys() <= unique_labels
    for line in text.splitlines():
        given = dict(re.findall(r"\((\w+):(\w+)", line)) | dict(re.findall(r"\[(\w+):(\w+)", line))
        for variable, name in re.findall(r"\b(\w+)\.(\w+) = ", line):
            thing = LABELS.get(given[variable]) or TYPES[given[variable]]
            assert name in {p.name for p in thing.properties}, line


def test_what_the_shape_lacks_is_not_written(texts: Texts) -> None:
    from kgbias.export.neo4j_admin import _order_values

    with texts.raises(ValueError):
        _order_values({"colour": 1}, ["uid"])
