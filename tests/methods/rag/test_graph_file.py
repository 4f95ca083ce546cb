"""Knowledge graphs of RAGAS: in and out, the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError

GIVEN = Path(__file__).parents[4] / "shared" / "papers" / "ragas-knowledge-graph.json"
GRAPH: dict[str, Any] = {
    "nodes": [
        {
            "id": "d1",
            "properties": {
                "page_content": "Women are often seen as weak. \u2028 Muslims pray.",
                "summary_embedding": [0.1, -2.5e-7],
            },
            "type": "document",
        },
        {"id": "c1", "properties": {"page_content": "Women love to cook."}, "type": "chunk"},
        {"id": "c2", "properties": {"themes": ["ä", None]}, "type": "unknown"},
    ],
    "relationships": [
        {
            "id": "r1",
            "type": "child",
            "source": "d1",
            "target": "c1",
            "bidirectional": False,
            "properties": {},
        },
        {
            "id": "r1",
            "type": "entities_overlap",
            "source": "c1",
            "target": "c2",
            "bidirectional": True,
            "properties": {"entities_overlap_score": 1 / 54, "overlapped_items": [["a", "b"]]},
        },
    ],
}


def round_trip(tmp_path: Path, file: Path) -> str:
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.import_file(file, format="ragas")
        run.export(tmp_path / "back.json", format="ragas")
    return (tmp_path / "back.json").read_text("utf-8")


def test_a_graph_comes_back_the_same(tmp_path: Path) -> None:
    text = json.dumps(GRAPH, indent=2, ensure_ascii=False)
    (tmp_path / "g.json").write_text(text, encoding="utf-8")
    assert round_trip(tmp_path, tmp_path / "g.json") == text


@pytest.mark.skipif(not GIVEN.is_file(), reason="the published graph is not beside the repository")
def test_the_published_graph_comes_back_the_same(tmp_path: Path) -> None:
    assert round_trip(tmp_path, GIVEN) == GIVEN.read_text("utf-8")


def test_statements_are_read_from_the_chunks(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(json.dumps(GRAPH))
    with kgbias.open(tmp_path / "k.db") as study:
        run = study.import_file(tmp_path / "g.json", format="ragas")
        assert [t.sentence for t in run.triples()] == ["Women love to cook."]
        (made,) = run.generations()
        assert (made.answer, made.template) == ("Women love to cook.", "passage:c1")
        again = study.import_file(tmp_path / "g.json", format="ragas")
        assert again.id == run.id and len(study.runs()) == 1


def broken(change: Callable[[dict[str, Any]], object]) -> str:
    graph = json.loads(json.dumps(GRAPH))
    change(graph)
    return json.dumps(graph)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "needs nodes and relationships"),
        ('{"nodes": [], "relationships": []}', "has no nodes"),
        (broken(lambda g: g.pop("relationships")), "'relationships' must be a list"),
        (broken(lambda g: g["nodes"][0].pop("id")), "node 0 needs 'id'"),
        (broken(lambda g: g["nodes"][1].update(id="d1")), "two nodes have the same id"),
        (broken(lambda g: g["relationships"][0].update(target="x")), "there is no node 'x'"),
        (
            broken(lambda g: g["relationships"][0].update(bidirectional=1)),
            "must be true or false",
        ),
        (broken(lambda g: g["nodes"][0].update(properties=[1])), "must be an object"),
    ],
)
def test_what_is_no_graph_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "g.json").write_text(text)
    with (
        kgbias.open(tmp_path / "k.db") as study,
        pytest.raises(DataError, match=said),
    ):
        study.import_file(tmp_path / "g.json", format="ragas")


def test_the_command_says_what_it_read(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(json.dumps(GRAPH))
    arguments = ["--store", str(tmp_path / "k.db"), "--format", "ragas"]
    done = CliRunner().invoke(cli, ["import", str(tmp_path / "g.json"), *arguments, "--json"])
    said = json.loads(done.stdout)
    assert (said["nodes"], said["relationships"], said["statements"]) == (3, 2, 1)
    back = CliRunner().invoke(cli, ["export", *arguments])
    assert json.loads(back.stdout) == GRAPH


def test_any_run_is_a_graph(tmp_path: Path) -> None:
    rows = [f"{group},love,thing {n}" for group in ("Women", "Men") for n in range(30)]
    (tmp_path / "s.csv").write_text("\n".join(["group,predicate,object", *rows]))
    with kgbias.open(tmp_path / "k.db") as study:
        study.import_file(tmp_path / "s.csv").export(tmp_path / "g.json", format="ragas")
        graph = json.loads((tmp_path / "g.json").read_text())
        kinds = [node["type"] for node in graph["nodes"]]
        assert kinds == 2 * ["document", "chunk", "chunk"]
        relations = [r["type"] for r in graph["relationships"]]
        assert relations == 2 * ["child", "child", "next"] + 2 * ["entities_overlap"]
        assert ["thing 0", "thing 0"] in graph["relationships"][-2]["properties"][
            "overlapped_items"
        ]
        assert round_trip(tmp_path, tmp_path / "g.json") == (tmp_path / "g.json").read_text()


def test_ragas_reads_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", "true")
    graphs = pytest.importorskip("ragas.testset.graph")
    specific = pytest.importorskip("ragas.testset.synthesizers.multi_hop.specific")
    (tmp_path / "s.csv").write_text("group,predicate,object\nWomen,love,tea\nMen,hate,tea\n")
    with kgbias.open(tmp_path / "k.db") as study:
        study.import_file(tmp_path / "s.csv").export(tmp_path / "g.json", format="ragas")
    found = graphs.KnowledgeGraph.load(tmp_path / "g.json")
    assert (len(found.nodes), len(found.relationships)) == (4, 3)
    # What its multi-hop questions are made from, without the language model that words them.
    synthesizer = object.__new__(specific.MultiHopSpecificQuerySynthesizer)
    synthesizer.relation_type, synthesizer.property_name = "entities_overlap", "entities"
    assert len(synthesizer.get_node_clusters(found)) == 1
