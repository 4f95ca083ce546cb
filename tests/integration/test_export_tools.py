"""Each export opened by a tool that is not ours, with hostile text in every part of it."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kgbias.export import Filters, write_export
from kgbias.graph.integrity import Corpus, Passage, Relation
from kgbias.graph.labels import Label
from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stereotypes import (
    Stereotype,
    StereotypeCount,
    StereotypeMatch,
    StereotypeMatches,
    StereotypeTable,
)
from kgbias.graph.store import StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.types import (
    AssociationNode,
    GroupScore,
    Metric,
    NodeCentrality,
    ProbedEdge,
    ProbeRun,
    Run,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    WordAttribution,
    WordSetEdge,
)
from kgbias.models.base import ModelInfo
from kgbias.query import load_query
from tests.conftest import NEO4J, require_modules, skip_or_fail, start_neo4j
from tests.export_data import TEXTS, hostile_run
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.integration


@pytest.fixture
def hostile(store: SQLiteStore) -> Run:
    return hostile_run(store)


def tool(name: str) -> str:
    found = shutil.which(name)
    if not found:
        skip_or_fail(f"{name} is not installed")
    return found or ""


def slices() -> list[Filters]:
    """Every triple of the run, as many as fit a picture at a time (the groups have a quarter)."""
    return [Filters(groups=(name,), limit=60) for name in TEXTS[:4]]


def test_pandas(store: SQLiteStore, hostile: Run, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    require_modules("pyarrow")
    triples = store.triples(hostile.id)
    for name, read in (("csv", pandas.read_csv), ("parquet", pandas.read_parquet)):
        path = tmp_path / f"t.{name}"
        write_export(StoredRun(store, hostile), path)
        frame = read(path)
        assert list(frame["id"]) == [t.id for t in triples]
        assert frame["count"].sum() == sum(t.count for t in triples)
    lines = pandas.read_json(
        _written(store, hostile, tmp_path / "t.jsonl"), lines=True, dtype=False
    )
    assert list(lines["object"]) == [t.object for t in triples]


def _written(store: SQLiteStore, run: Run, path: Path, filters: Filters | None = None) -> Path:
    write_export(StoredRun(store, run), path, filters=filters)
    return path


def test_rdflib(store: SQLiteStore, hostile: Run, tmp_path: Path) -> None:
    rdflib = pytest.importorskip("rdflib")
    graph = rdflib.Graph().parse(_written(store, hostile, tmp_path / "g.ttl"), format="turtle")
    found = graph.query(
        "PREFIX kg: <urn:kgbias:schema:> SELECT ?id ?label ?n ?r WHERE { ?id a rdf:Statement ; "
        "rdf:object ?o ; kg:count ?n ; kg:regard ?r . ?o rdfs:label ?label }"
    )
    rows = {str(id): (str(label), int(n), float(r)) for id, label, n, r in found}
    assert rows == {
        f"urn:kgbias:triple:{t.id}": (t.object, t.count, t.scores["regard"].value)
        for t in store.triples(hostile.id)
    }


def test_graphviz(store: SQLiteStore, hostile: Run, tmp_path: Path) -> None:
    dot = tool("dot")
    path = _written(store, hostile, tmp_path / "g.dot", Filters(limit=1000))
    done = subprocess.run(
        [dot, "-Tplain", str(path)], capture_output=True, text=True, timeout=DEADLINE_SECONDS
    )
    assert (done.returncode, done.stderr) == (0, "")
    edges = [line for line in done.stdout.splitlines() if line.startswith("edge ")]
    assert len(edges) == len(store.triples(hostile.id))
    nodes = [line for line in done.stdout.splitlines() if line.startswith("node ")]
    assert len(nodes) == len({t.object for t in store.triples(hostile.id)}) + 4


def test_pdflatex(store: SQLiteStore, hostile: Run, tmp_path: Path) -> None:
    pdflatex = tool("pdflatex")
    drawn = 0
    for number, filters in enumerate(slices()):
        path = tmp_path / f"f{number}.tex"
        drawn += write_export(StoredRun(store, hostile), path, filters=filters)
        done = subprocess.run(
            [pdflatex, "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", path.name],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE_SECONDS,
        )
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Missing character" not in done.stdout
        assert path.with_suffix(".pdf").read_bytes()[:5] == b"%PDF-"
    assert drawn >= 200


def test_svg_and_pdf(store: SQLiteStore, hostile: Run, tmp_path: Path, chromium: Any) -> None:
    require_modules("matplotlib")
    complaints: list[str] = []
    page = chromium.new_page()
    page.on("console", lambda m: complaints.append(m.text))
    page.on("pageerror", lambda e: complaints.append(str(e)))
    for number, filters in enumerate(slices()):
        path = _written(store, hostile, tmp_path / f"f{number}.svg", filters)
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.tagName") == "svg"
        assert page.evaluate("window.pwned") is None
        pdf = _written(store, hostile, tmp_path / f"f{number}.pdf", filters)
        assert pdf.read_bytes()[:5] == b"%PDF-"
    page.close()
    assert complaints == []


@pytest.mark.slow  # see tests/contract/conftest.py
def test_the_script_runs_in_neo4j(
    store: SQLiteStore, hostile: Run, tmp_path: Path, empty_neo4j: str
) -> None:
    import neo4j

    first, *_ = store.triples(hostile.id)
    labels = [
        Label(
            first.id,
            "regard",
            label,
            rater,
            "person",
            "regard@1",
            "2026-11-25T10:00:00+00:00",
            True,
            "",
            TEXTS[1],
        )
        for label, rater in (("negative", TEXTS[0]), ("neutral", "Ben"))
    ]
    store.add_labels(labels)
    path = _written(store, hostile, tmp_path / "g.cypher")
    lines = path.read_text(encoding="utf-8").split("\n")
    statements = [line.rstrip(";") for line in lines if line and not line.startswith("//")]
    auth = ("neo4j", os.environ["NEO4J_PASSWORD"])
    with neo4j.GraphDatabase.driver(empty_neo4j, auth=auth) as driver, driver.session() as session:
        schema = [s for s in statements if s.startswith("CREATE CONSTRAINT")]
        for statement in schema:
            session.run(statement).consume()  # type: ignore[arg-type]
        for _ in range(2):  # twice is once
            with session.begin_transaction() as tx:
                for statement in statements[len(schema) :]:
                    tx.run(statement).consume()  # type: ignore[arg-type]
                tx.commit()
    server = open_store(empty_neo4j)
    for name in ("most_repeated", "most_negative", "bridges", "disputed"):
        given = {"limit": "1000"}
        found = load_query(name).run(server, given)
        assert found.rows and found == load_query(name).run(store, given)
    assert server.labels() == store.labels()


def findings(store: SQLiteStore, run: Run) -> None:
    """Some of everything that can be found out about a run, evidence included."""
    first, second, *_ = store.triples(run.id)
    scores = [Score(first.id, 0.5), Score(second.id, -0.25)]  # without parts, as most measures
    store.save_scores(run.id, Metric("warmth", "rule", "1"), scores)
    topic = Topic("c", 0, ("words", TEXTS[0]), 1, 0.5, 0.75, given=TEXTS[1])
    about = tuple(
        sorted(
            (
                TopicAssignment(first.id, topic.id, 0.75, True),
                TopicAssignment(second.id, None, 0.0),
            ),
            key=lambda a: a.triple_id,
        )
    )
    store.save_topics(run.id, [TopicModel("c", (topic,), about, {"seed": 1})])
    metric = store.metrics(run.id)["regard"]
    store.save_attributions(
        [WordAttribution(first.id, metric, ("a", TEXTS[2]), (0.25, -0.5), 0.25)]
    )
    store.put(
        run.id,
        GroupScore,
        [GroupScore(1.0, 0.5, 2.0, 2, first.group_id, "overall_regard", "bootstrap")],
    )
    edges = (WordSetEdge("b", "topic", topic.id), WordSetEdge("x", "group", first.group_id))
    figures = (ModelInfo("probed"), 1.25, 0.01, 0.5, 2.0, {"n": 2}, edges, 0.001, 0.02, 0.015, 8, 9)
    store.save_associations(run.id, [AssociationNode("t", TEXTS[3], "ceat", *figures)])
    triple = next(g.triple for g in store.generations(run.id) if g.triple)
    probing = ProbeRun(ModelInfo("probed"), (("bos", "yes"),), {"mrr": 0.5})
    evidence = (1.25, 0.5, -1.5)
    probed = ProbedEdge(
        triple.predicate_id,
        triple.object_id,
        triple.group_id,
        -6.5,
        5,
        -5.0,
        4,
        -1.5,
        1,
        1,
        ("Elves", TEXTS[0]),
        (2.5, 0.25),
        *evidence,
    )
    store.put(run.id, ProbedEdge, [probed], asking=probing)
    store.put(run.id, ProbeRun, [probing])
    store.save_centralities(
        run.id, [NodeCentrality("group", first.group_id, first.group, 2, 0.5, 0, 1)]
    )
    table = StereotypeTable("tales", "CC0", "c0ffee")
    entry = Stereotype("tales", TEXTS[0], TEXTS[1], offensiveness=0.5)
    heard = StereotypeCount(entry, first.group, 1, 0.5)  # nobody was asked whether it is believed
    recorded = (
        StereotypeMatch(first.id, entry.uid(table.id), "known", "words", 1.0),
        StereotypeMatch(second.id, None, "new"),
    )
    marks = tuple(sorted(recorded, key=lambda mark: mark.triple_id))
    store.save_stereotype_matches(run.id, StereotypeMatches(table, {"unused": 2}, (heard,), marks))
    story = Passage("p1", "document", TEXTS[0], {"source": TEXTS[1]})
    store.save_corpus(run.id, Corpus((story,), (Relation("r1", "next", "p1", "p1"),)))
    generation = next(g for g in store.generations(run.id) if g.triple)
    part = ProfilePart("hobbies", generation.id)
    store.save_profiles(
        run.id, [Profile(run.id, "Ana/0", TEXTS[1], generation.group_id, {}, (part,))]
    )


@pytest.mark.slow
def test_neo4j_admin_imports_a_whole_store(
    store: SQLiteStore,
    hostile: Run,
    tmp_path: Path,
    neo4j_server: dict[str, str],
    empty_neo4j: str,
) -> None:
    findings(store, hostile)
    folder, home = tmp_path / "import", neo4j_server["HOME"]
    write_export(StoredRun(store, hostile), folder, "neo4j-admin")
    subprocess.run([NEO4J, "stop", home], check=True)
    readme = (folder / "README.txt").read_text()
    words = re.sub(r"\\\n", " ", readme[readme.index("neo4j-admin ") :]).split()[1:]
    # It clears a buffer for each of 77 files, of four megabytes if nothing is said.
    done = subprocess.run(
        [NEO4J, "admin", home, *words, "--overwrite-destination", "--read-buffer-size=256k"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    start_neo4j(home)
    with open_store(empty_neo4j) as server:
        assert server.find_run() == hostile
        assert server.triples(hostile.id) == store.triples(hostile.id)
        assert list(server.generations(hostile.id)) == list(store.generations(hostile.id))
        for read in (
            "metrics",
            "topics",
            "attributions",
            "associations",
            "centralities",
            "corpus",
            "profiles",
            "decisions",
            "near_duplicates",
            "stereotype_matches",
        ):
            assert getattr(server, read)(hostile.id) == getattr(store, read)(hostile.id), read
        assert server.find_all(hostile.id, GroupScore) == store.find_all(hostile.id, GroupScore)
        assert server.find_all(hostile.id, ProbeRun) == store.find_all(hostile.id, ProbeRun)
        (probing,) = store.find_all(hostile.id, ProbeRun)
        assert server.find_all(hostile.id, ProbedEdge, asking=probing) == store.find_all(
            hostile.id, ProbedEdge, asking=probing
        )
        assert server.find_faults() == []
        given = {"limit": "1000"}
        for name in ("most_negative", "bridges", "refusals"):
            query = load_query(name)
            values = given if "limit" in {p.name for p in query.parameters} else {}
            assert query.run(server, values) == query.run(store, values)
