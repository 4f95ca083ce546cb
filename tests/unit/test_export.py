"""Exports: the filters, the manifest, and hostile text through every format that needs no tool."""

import csv
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path

import networkx as nx
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli.outputs import export
from kgbias.errors import UsageError
from kgbias.evidence.picture import MAX_EDGES
from kgbias.export import FORMATS, Filters, write_export
from kgbias.export.cypher_script import cypher_literal
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.structure import to_networkx
from kgbias.graph.types import (
    CONTENT_WARNING,
    Group,
    Metric,
    ProbedEdge,
    ProbeRun,
    Run,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    node_id,
)
from kgbias.io.text import latex, printable, replace_non_xml, shorten
from kgbias.models.base import ModelInfo
from tests.conftest import require_modules
from tests.export_data import hostile_run
from tests.report_data import measured_run
from tests.texts import Texts

GROUPS = (Group("Women", "gender"), Group("Men", "gender"))


@pytest.fixture
def run(store: SQLiteStore) -> Run:
    return measured_run(store, GROUPS, ["food", "rain", "music"])


@pytest.fixture
def hostile(store: SQLiteStore) -> Run:
    return hostile_run(store)


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_filters(store: SQLiteStore, run: Run, texts: Texts) -> None:
    triples = store.triples(run.id)
    keep = lambda **given: Filters(**given).apply(StoredRun(store, run), triples)  # noqa: E731
    assert keep() == triples
    assert {t.group for t in keep(groups=("women",))} == {"Women"}
    assert {t.predicate for t in keep(predicate="Love")} == {"love"}
    twice = keep(min_count=2)
    assert twice and all(t.count >= 2 for t in twice) and len(twice) < len(triples)
    most = keep(limit=3)
    assert sum(t.count for t in most) == sum(sorted(t.count for t in triples)[-3:])
    assert most == [t for t in triples if t in most]  # in their order
    assert keep(groups=("Men",), predicate="love", min_count=999) == []  # the run has it
    with texts.raises(UsageError):
        keep(groups=("Men",), predicate="lve")
    with pytest.raises(UsageError, match=r"has no topics: run.measure\(topics=True\)"):
        keep(topic="rain")
    with texts.raises(UsageError):
        keep(groups=("Elves",))


def test_networkx(store: SQLiteStore, run: Run) -> None:
    triples = store.triples(run.id)
    graph = to_networkx(triples, {g.id: g.category for g in GROUPS})
    assert graph.number_of_edges() == len(triples)
    assert {d["label"] for _, d in graph.nodes(data=True)} == {
        "Women",
        "Men",
        "food",
        "rain",
        "music",
    }
    (data,) = [d for _, _, k, d in graph.edges(keys=True, data=True) if k == triples[0].id]
    assert (data["predicate"], data["count"]) == (triples[0].predicate, triples[0].count)
    assert data["regard"] == triples[0].scores["regard"].value
    assert graph.nodes[GROUPS[0].id]["category"] == "gender"


def test_what_was_left_out_is_of_the_groups_that_are_there(
    store: SQLiteStore, run: Run, tmp_path: Path
) -> None:
    """Neither the file nor its manifest counts what was left out of other groups."""
    said = {g.name: 0 for g in GROUPS}
    for t in store.triples(run.id):
        said[t.group] += t.count
    held = StoredRun.find(store, run.name)
    for form in ("csv", "neo4j-admin"):  # read at once, or one statement at a time
        out = tmp_path / form
        write_export(held, out, form, Filters(groups=("Men",)))
        manifest = json.loads((tmp_path / f"{form}.manifest.json").read_text())
        assert manifest["selection"]["statements"] == said["Men"] < sum(said.values())


def test_the_manifest_says_what_the_file_is(store: SQLiteStore, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.graphml"
    assert write_export(StoredRun(store, run), path, filters=Filters(("Men",), limit=2)) == 2
    manifest = json.loads((tmp_path / "x.graphml.manifest.json").read_text())
    assert manifest["warning"] == CONTENT_WARNING and "sample" in manifest["statement"]
    assert manifest["run"] == run.name and manifest["model"]["name"] == "test <model>"
    assert manifest["filters"] == {"groups": ["Men"], "limit": 2} and manifest["triples"] == 2
    assert sorted(p.name for p in tmp_path.glob("x.*")) == ["x.graphml", "x.graphml.manifest.json"]


def test_every_measure_of_the_run_is_exported(store: SQLiteStore, run: Run, tmp_path: Path) -> None:
    triples = store.triples(run.id)
    scores = [Score(t.id, 0.5, "warm") for t in triples]
    store.save_scores(run.id, Metric("warmth", "rule", "1"), scores)
    write_export(StoredRun(store, run), tmp_path / "t.csv")
    (row, *_) = read_rows(tmp_path / "t.csv")
    assert list(row)[-8:] == [
        "regard",
        "regard_label",
        "toxicity",
        "toxicity_label",
        "warmth",
        "warmth_label",
        "strategy",
        "iteration",
    ]
    assert (row["warmth"], row["warmth_label"]) == ("0.5", "warm")
    write_export(StoredRun(store, run), tmp_path / "t.ttl")
    assert 'kg:warmth "0.5"^^xsd:double' in (tmp_path / "t.ttl").read_text()
    write_export(StoredRun(store, run), tmp_path / "pair", "csv-pair")
    (edge, *_) = read_rows(tmp_path / "pair.edges.csv")
    assert edge["warmth"] == "0.5"
    write_export(StoredRun(store, run), Path("/dev/null"), "csv")
    assert Path("/dev/null").is_char_device() and not Path("/dev/null.manifest.json").exists()


def test_a_stream_gets_what_a_file_gets(store: SQLiteStore, run: Run, tmp_path: Path) -> None:
    stored = StoredRun(store, run)
    for name in (None, "csv", "turtle"):
        stream = StringIO()
        written = write_export(stored, stream, name)
        assert written == write_export(stored, tmp_path / "file", name or "jsonl")
        assert stream.getvalue() == (tmp_path / "file").read_bytes().decode()


def test_bad_requests_are_one_line(
    store: SQLiteStore, run: Run, tmp_path: Path, texts: Texts
) -> None:
    with pytest.raises(UsageError, match="no export format 'xyz'"):
        write_export(StoredRun(store, run), tmp_path / "a.xyz")
    with texts.raises(UsageError):
        write_export(StoredRun(store, run), StringIO(), "parquet")
    with pytest.raises(UsageError, match="nothing to draw"):
        write_export(StoredRun(store, run), tmp_path / "a.svg", filters=Filters(min_count=999))
    assert list(tmp_path.glob("*a.*")) == []
    asked = CliRunner().invoke(
        export, ["--store", store.url, "--limit", "2", "--format", "cypher"], catch_exceptions=False
    )
    assert asked.stdout.count(":STEREOTYPE") == 2


def test_too_much_for_a_picture(
    store: SQLiteStore, hostile: Run, tmp_path: Path, texts: Texts
) -> None:
    with texts.raises(UsageError):
        write_export(StoredRun(store, hostile), tmp_path / "a.tex", filters=Filters(limit=999))


def test_hostile_text_in_tables(store: SQLiteStore, hostile: Run, tmp_path: Path) -> None:
    triples = store.triples(hostile.id)
    assert len(triples) >= 200
    write_export(StoredRun(store, hostile), tmp_path / "t.jsonl")
    lines = (tmp_path / "t.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["object"] for line in lines[:-1]] == [t.object for t in triples]
    write_export(StoredRun(store, hostile), tmp_path / "t.csv")
    write_export(StoredRun(store, hostile), tmp_path / "pair", "csv-pair")
    cells = read_rows(tmp_path / "t.csv")
    edges = read_rows(tmp_path / "pair.edges.csv")
    nodes = {row["id"]: row for row in read_rows(tmp_path / "pair.nodes.csv")}
    for t, row, edge in zip(triples, cells, sorted(edges, key=lambda r: r["id"]), strict=True):
        assert row["object"] in (t.object, "'" + t.object)
        assert row["object"][:1] not in tuple("=+-@\t\r\n") or row["object"][:1] == "'"
        assert nodes[edge["source"]]["kind"] == "group"
        assert edge["predicate"][:1] not in tuple("=+-@\t\r\n")
    assert {row["id"] for row in edges} == {t.id for t in triples}


@pytest.mark.parametrize("name", ["graphml", "gexf", "json"])
def test_hostile_text_in_graph_files(
    store: SQLiteStore, hostile: Run, tmp_path: Path, name: str
) -> None:
    path = tmp_path / f"g.{name}"
    write_export(StoredRun(store, hostile), path)
    if name == "graphml":
        graph = nx.read_graphml(path, force_multigraph=True)
    elif name == "gexf":
        graph = nx.read_gexf(path, version="1.3")
    else:
        data = json.loads(path.read_text(encoding="utf-8"))
        graph = nx.node_link_graph(data, edges="edges")
    triples = store.triples(hostile.id)
    assert graph.number_of_edges() == len(triples)
    expected = {t.object if name == "json" else replace_non_xml(t.object) for t in triples}
    found = {d["label"] for _, d in graph.nodes(data=True) if d["kind"] == "object"}
    # A reader of XML may make every line end a line feed.
    ends = lambda texts: {t.replace("\r\n", "\n").replace("\r", "\n").strip() for t in texts}  # noqa: E731
    assert ends(found) == ends(expected)
    assert sum(d["count"] for *_, d in graph.edges(data=True)) == sum(t.count for t in triples)


def test_gexf_keeps_statements_between_the_same_nodes_apart(tmp_path: Path) -> None:
    """Gephi merges parallel edges without a kind, and shows an edge's label and weight."""
    table = tmp_path / "s.csv"
    table.write_text("group,predicate,object,count\nWomen,like,music,3\nWomen,fear,music,1\n")
    with kgbias.open(tmp_path / "k.db") as study:
        study.import_file(table, name="r").export(tmp_path / "g.gexf")
    root = ElementTree.parse(tmp_path / "g.gexf").getroot()
    space = {"g": "http://gexf.net/1.3"}
    assert root.get("version") == "1.3"
    assert CONTENT_WARNING in (root.findtext("g:meta/g:description", namespaces=space) or "")
    edges = {
        (e.get("kind"), e.get("label"), e.get("weight")) for e in root.iterfind(".//g:edge", space)
    }
    assert edges == {("like", "like", "3"), ("fear", "fear", "1")}


def test_hostile_text_in_parquet(store: SQLiteStore, hostile: Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_export(StoredRun(store, hostile), tmp_path / "t.parquet")
    table = parquet.read_table(tmp_path / "t.parquet")
    triples = store.triples(hostile.id)
    assert table["object"].to_pylist() == [t.object for t in triples]
    assert table["regard"].to_pylist() == [t.scores["regard"].value for t in triples]
    assert table.schema.metadata[b"warning"].decode() == CONTENT_WARNING


def test_hostile_text_in_pictures(store: SQLiteStore, hostile: Run, tmp_path: Path) -> None:
    require_modules("matplotlib")
    path = tmp_path / "f.svg"
    write_export(StoredRun(store, hostile), path, filters=Filters(limit=60))
    root = ElementTree.parse(path).getroot()
    assert root.tag.endswith("svg")
    tags = {str(element.tag).rpartition("}")[2] for element in root.iter()}
    assert not tags & {"script", "foreignObject", "text"}
    again = tmp_path / "again.svg"
    write_export(StoredRun(store, hostile), again, filters=Filters(limit=60))
    assert again.read_bytes() == path.read_bytes()


def latex_codes(text: str) -> str:
    return "".join(f"{{\\tiny U+{ord(character):04X}}}" for character in text)


def test_text_for_latex_terminals_and_cypher() -> None:
    assert latex(r"50% of $x_1 & \input{a}") == (r"50\% of \$x\_1 \& \textbackslash{}input\{a\}")
    assert latex("é漢") == r"\'{e}\kgbiasscript{漢}{{\tiny U+6F22}}"
    assert latex("كل شيء!") == (
        r"\kgbiasscript{كل شيء}{" + latex_codes("كل") + " " + latex_codes("شيء") + "}!"
    )
    assert latex("[a]--b\n−1") == r"{[}a{]}-{}-b $-$1"
    assert latex(shorten("a" * 90, 10)) == "a" * 9 + r"\ldots{}"
    assert printable("a\x1b[2Jb\u202ec") == "a�[2Jb�c"
    assert cypher_literal("it's\n\\ \x00") == r"'it\'s\n\\ \u0000'"
    assert [cypher_literal(v) for v in (None, True, 1.5)] == ["null", "true", "1.5"]


def test_the_script_has_every_triple_once(store: SQLiteStore, hostile: Run, tmp_path: Path) -> None:
    write_export(StoredRun(store, hostile), tmp_path / "g.cypher")
    lines = (tmp_path / "g.cypher").read_text("utf-8").split("\n")
    statements = [line for line in lines if line.startswith("UNWIND ")]
    ids = [t.id for t in store.triples(hostile.id)]
    assert re.findall(r"\{uid: '(\w+)', text: '", "".join(statements)) == ids
    assert [line.count("{uid: '") for line in statements] == [100, 100, len(ids) - 200]


def test_every_format_is_in_the_help() -> None:
    text = CliRunner().invoke(export, ["--help"]).output
    assert all(name in "".join(text.split()) for name in FORMATS)


def test_ties_are_dealt_evenly_over_groups(store: SQLiteStore, run: Run) -> None:
    """Every group has statements that were said once: a limit takes of each in turn."""
    triples = [replace(t, count=1) for t in store.triples(run.id)]
    keep = lambda **given: Filters(**given).apply(StoredRun(store, run), triples)  # noqa: E731
    assert Counter(t.group for t in keep(limit=4)) == {g.name: 2 for g in GROUPS}
    assert Counter(t.group for t in keep(per_group=2)) == {g.name: 2 for g in GROUPS}
    assert Counter(t.group for t in keep(per_group=2, limit=2)) == {g.name: 1 for g in GROUPS}
    often = [replace(t, count=9) if t.group == "Men" else t for t in triples]
    men = Filters(limit=2).apply(StoredRun(store, run), often)
    assert {t.group for t in men} == {"Men"}  # what was said more often comes first


def test_a_picture_has_room_for_every_group(store: SQLiteStore, tmp_path: Path) -> None:
    many = measured_run(store, GROUPS, [f"thing {n}" for n in range(40)], per_group=40)
    stored = StoredRun(store, many)
    written = write_export(stored, tmp_path / "a.dot")
    assert written == MAX_EDGES // len(GROUPS) * len(GROUPS)
    filters = json.loads((tmp_path / "a.dot.manifest.json").read_text())["filters"]
    assert filters == {"per_group": MAX_EDGES // len(GROUPS)}
    assert write_export(stored, tmp_path / "b.dot", filters=Filters(("Men",))) == len(
        [t for t in store.triples(many.id) if t.group == "Men"][:MAX_EDGES]
    )


def test_tables_say_where_a_statement_came_from(store: SQLiteStore, run: Run, texts: Texts) -> None:
    triples = store.triples(run.id)
    topic = Topic(GROUPS[0].category, 0, ("food", "rain"), 3)
    about = (TopicAssignment(triples[0].id, topic.id, 1.0),)
    store.save_topics(run.id, [TopicModel(GROUPS[0].category, (topic,), about, {})])
    model = ModelInfo("lm")
    probing = ProbeRun(model, record={"measure": "conditional"})
    t = triples[0]
    edges = [
        ProbedEdge(
            node_id("predicate", t.predicate),
            node_id("object", t.object),
            g.id,
            -9.0,
            4,
            -5.0,
            2,
            -4.0,
            2,
            rank,
        )
        for rank, g in enumerate(GROUPS, 1)
    ]
    store.put(run.id, ProbedEdge, edges, asking=probing)
    store.put(run.id, ProbeRun, [probing])
    out = StringIO()
    write_export(StoredRun(store, run), out)
    first = json.loads(out.getvalue().splitlines()[0])
    own = next(e.rank for e in edges if e.group_id == t.group_id)
    assert first["id"] == t.id and first["topic"] == topic.name
    held = StoredRun(store, run)
    assert Filters(topic="FOOD").apply(held, triples) == [t]
    with texts.raises(UsageError):
        Filters(topic="snow").apply(held, triples)
    assert (first["strategy"], first["iteration"]) == ("object", 1)
    assert (first["rank"], first["groups_ranked"]) == (own, len(edges))
