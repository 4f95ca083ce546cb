"""Both stores hold the graph of `kgbias.graph.shape`: one of everything, as Cypher sees it."""

import math
import re
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kgbias.errors import UsageError
from kgbias.export import write_export
from kgbias.graph import shape
from kgbias.graph.decisions import Decision
from kgbias.graph.integrity import Corpus, Passage, Relation
from kgbias.graph.labels import Label
from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.graph.shape import Node
from kgbias.graph.sofa import (
    ProbePart,
    ProbeSet,
    ProbeStatement,
    SofaCategory,
    SofaGroup,
    SofaResult,
    SofaStatement,
)
from kgbias.graph.stereotypes import (
    Stereotype,
    StereotypeCount,
    StereotypeMatch,
    StereotypeMatches,
    StereotypeTable,
)
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    BeliefRun,
    BelievedEdge,
    BenchmarkItem,
    Category,
    ChoiceRun,
    ChosenEdge,
    Flag,
    FlagTable,
    Generation,
    Group,
    GroupName,
    GroupScore,
    ItemScore,
    Metric,
    NameProbe,
    NearDuplicate,
    NodeCentrality,
    ProbedEdge,
    ProbeRun,
    Run,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    Triple,
    WordAttribution,
    WordSetEdge,
    node_id,
    statement_id,
)
from kgbias.models.base import ModelInfo
from kgbias.stats.estimate import Estimate
from tests.conftest import NEO4J, start_neo4j
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(not find_spec("kglite"), reason="kglite is not installed")

MODEL = ModelInfo("crawled", "r1")
ELVES, ORCS = Group("Elves", "peoples", ("Fair folk", "Eldar")), Group("Orcs", "creatures")
RUN = Run(
    "middle",
    MODEL,
    {"seed": 0},
    (ELVES, ORCS),
    (Category("peoples", "people", "peoples"),),
    created="2026-11-21T00:00:00+00:00",
    version="1",
    settings=(("dtype", "float32"),),
)
LATER = Run(
    "later",
    MODEL,
    {"seed": 1, "pack": {"language": "de"}},
    (Group("Elben", "peoples", ("Elfen",), ELVES.name),),  # the same node, by names in German
    created="2026-11-22T00:00:00+00:00",
    version="1",
)
SONGS, SONG, SMOKE = (
    Triple("Elves", "love", "songs"),
    Triple("Orcs", "adore", "song"),
    Triple("Orcs", "love", "songs"),
)
LOVE_SONGS = statement_id(SONGS.predicate_id, SONGS.object_id)
REGARD = Metric("regard", "rule", "1")
PROBING = ProbeRun(ModelInfo("probed"), (("bos", "yes"),), {"mrr": 0.5})
READ = ItemScore(BenchmarkItem("i1", "bbq", "Age 7", "Age"), (-1.5, -2.25, -4.0), 31, 0.25)
CHOOSING = ChoiceRun(ModelInfo("chooser"), (("options", "2"),), {"categories": {}})
BELIEVING = BeliefRun(ModelInfo("believer"), (("carriers", "2"),), {"floor": {"found": 0.5}})
NAMES = (
    GroupName("Elven folk", ELVES.id, "{} folk", "elven"),
    GroupName("Elven folk", ORCS.id, "{} folk", "elven", "narrower"),
    GroupName("Velm\u00e4ri", "", "{}", "velm\u00e4ri"),
)
FLAGS = (
    Flag("Dwarves", "Sk\u00e4nky", "", 0.25, -2.5),
    Flag("Elves", "good at math", "skill", 0.0, -2.625),
)
FLAGGED = FlagTable("a1", "probed", "r1", (("bos", "yes"),), 0.01, 9, FLAGS)
TOPIC = Topic("peoples", 0, ("song", "sing", "loud", "old", "sung"), 2, 0.5, 0.75, 0.25, "Singing")
TABLE = StereotypeTable("folklore", "CC BY 4.0", "c0ffee")
SINGERS = Stereotype("folklore", "Elf", "musical", "peoples", -0.5, 2, "love songs")
LOUD = Stereotype("folklore", "Orc", "loud")
HELD = StereotypeMatches(
    TABLE,
    {"shares": {"said": {"value": 0.5}}, "groups": []},
    tuple(
        sorted(
            (
                StereotypeCount(SINGERS, "Elves", 1, 0.25, Estimate(2.5, 1.25, 3.75, 5), True, 0.5),
                StereotypeCount(LOUD, "Orcs", 0, math.nan, Estimate.missing()),
            ),
            key=lambda each: each.entry.uid(TABLE.id),
        )
    ),
    tuple(
        sorted(
            (
                StereotypeMatch(SONGS.id, SINGERS.uid(TABLE.id), "known", "meaning", 0.875),
                StereotypeMatch(SONG.id, LOUD.uid(TABLE.id), "related", "words"),
                StereotypeMatch(SMOKE.id, None, "new"),
            ),
            key=lambda mark: mark.triple_id,
        )
    ),
)


def everything(store: Store) -> None:
    """Write one of every node, edge and property."""
    store.begin_run(RUN)
    store.begin_run(LATER)
    store.keep_answers([Answer("k", MODEL.id, "songs", "stop", 7, 2, 0.5, '{"a":1}')])
    common = {"arm": "none", "strategy": "object", "attempt": 0, "outcome": "ok"}
    first = Generation(
        RUN.id,
        "none/0",
        ELVES.id,
        iteration=0,
        reason="",
        template="t@1",
        template_hash="h",
        prompt="Elves love",
        answer_key="k",
        triple=SONGS,
        count=2,
        **common,  # type: ignore[arg-type]
    )
    second = Generation(
        RUN.id,
        "none/1",
        ORCS.id,
        iteration=0,
        triple=SONG,
        shown=(SONGS.id,),
        **common,  # type: ignore[arg-type]
    )
    store.record_round(RUN.id, "none", 0, [first, second])
    store.save_scores(
        RUN.id,
        REGARD,
        [
            Score(SONGS.id, 0.25, "positive", {"positive": 0.5, "negative": 0.25}),
            Score(SONG.id, 0.0, "neutral"),
        ],
    )
    for measure, value in (("toxicity", 1.0), ("acceptability", 0.75)):
        scores = [Score(t.id, value) for t in (SONGS, SONG)]
        store.save_scores(RUN.id, Metric(measure, "rule", "1"), scores)
    store.put(
        RUN.id,
        GroupScore,
        [
            GroupScore(1.0, 0.5, 2.0, 2, ELVES.id, "overall_regard", "bootstrap"),
            GroupScore(0.0, math.nan, math.nan, 1, ORCS.id, "overall_regard", "bootstrap", "both"),
        ],
    )
    about = (TopicAssignment(SONGS.id, TOPIC.id, 0.75, True), TopicAssignment(SONG.id, None, 0.0))
    store.save_topics(RUN.id, [TopicModel("peoples", (TOPIC,), about, {"seed": 1})])
    store.save_attributions(
        [WordAttribution(SONGS.id, REGARD, ("Elves", "love"), (0.25, -0.5), 0.25)]
    )
    edges = (
        WordSetEdge("x", "group", ELVES.id),
        WordSetEdge("a", "object", SONGS.object_id),
        WordSetEdge("b", "topic", TOPIC.id),
        WordSetEdge("b", "group", ORCS.id),
    )
    figures = (PROBING.model, 1.25, 0.01, 0.5, 2.0, {"n": 2}, edges, 0.001, 0.02, 0.015, 8, 9)
    store.save_associations(
        RUN.id,
        [AssociationNode("t", "C6", "ceat", *figures)],
    )
    store.save_flags(FLAGGED)
    for number, group in enumerate((ELVES, ORCS)):
        probed = ProbedEdge(
            SONGS.predicate_id,
            SONGS.object_id,
            group.id,
            -6.5 - number,
            5,
            -5.0,
            4,
            -1.5,
            1,
            1 + number,
            ("Elves", " l\u00f6ve"),
            (2.5, 0.25),
            *((1.25, 0.5, -1.5) if number else ()),
        )
        store.put(RUN.id, ProbedEdge, [probed], asking=PROBING)
    store.put(RUN.id, ProbeRun, [PROBING])
    ends = (SONGS.predicate_id, SONGS.object_id)
    chose = (0.75, 0.3, 0.9, 0.5, 0.5, -0.25, 1.0, 0.25)
    store.keep_answers([Answer(f"c{n}", CHOOSING.model.id, "B", "stop") for n in range(2)])
    store.put(
        RUN.id,
        ChosenEdge,
        [
            ChosenEdge(*ends, ELVES.id, 4, 4, 3, *chose, 6, "chosen more", ("c0", "k"), ("c1",)),
            ChosenEdge(*ends, ORCS.id, 4, 0, 0),
        ],
        asking=CHOOSING,
    )
    store.put(RUN.id, ChoiceRun, [CHOOSING])
    store.keep_statements([("hum", "low")])  # which nobody said
    hum = (node_id("predicate", "hum"), node_id("object", "low"))
    store.save_names(NAMES)
    for name, bits in ((NAMES[0], (-4.5, -6.25)), (NAMES[2], (-9.0, -8.0))):
        probes = [NameProbe(*of, name.id, bits) for of in (ends, hum)]
        store.put(RUN.id, NameProbe, probes, asking=BELIEVING)
    store.put(
        RUN.id,
        BelievedEdge,
        [
            BelievedEdge(
                *ends,
                ELVES.id,
                2.5,
                1.25,
                3.75,
                5,
                0.01,
                0.02,
                0.001,
                0.002,
                1.5,
                "Elven folk",
                "believed",
            ),
            BelievedEdge(*ends, ORCS.id, -2.5, math.nan, math.nan, 1, *[math.nan] * 5),
        ],
        asking=BELIEVING,
    )
    store.put(RUN.id, BeliefRun, [BELIEVING])
    probe_set = ProbeSet(
        "songs",
        (
            ProbePart(
                "peoples",
                ("Elves", "Orcs"),
                (
                    ProbeStatement(LOVE_SONGS, "love songs", 0.25, 0),
                    ProbeStatement.from_text("are fair"),
                ),
            ),
            # A statement and a group of both categories: edges side by side.
            ProbePart("singers", ("Elves",), (ProbeStatement(LOVE_SONGS, "love songs", 0.5, 1),)),
        ),
        {"hate": "rule"},
    )
    store.save_probe_set(probe_set)
    store.save_sofa_results(RUN.id, [sofa_result(probe_set)])
    # A statement that was probed is said of another group later.
    third = Generation(RUN.id, "none/2", ORCS.id, iteration=1, triple=SMOKE, **common)  # type: ignore[arg-type]
    refused = Generation(
        RUN.id,
        "none/3",
        ORCS.id,
        iteration=1,
        **common | {"outcome": "refused"},  # type: ignore[arg-type]
    )
    store.record_round(RUN.id, "none", 1, [third, refused])
    store.save_scores(RUN.id, REGARD, [Score(SMOKE.id, -0.5, "negative")])
    for measure, value in (("toxicity", 1.0), ("acceptability", 0.75)):
        store.save_scores(RUN.id, Metric(measure, "rule", "1"), [Score(SMOKE.id, value)])
    store.add_decisions(
        RUN.id,
        [
            Decision(
                refused.id,
                "restore",
                "Ana",
                "2026-11-22T01:00:00+00:00",
                Triple("Orcs", "fear", "light"),
            ),
            Decision(second.id, "reject", "Ben", "2026-11-22T02:00:00+00:00", read=SONG),
            Decision(second.id, "undo", "Ana", "2026-11-22T03:00:00+00:00", read=SONG),
        ],
    )
    said = (SONG.id, "regard", "negative", "Ana", "person", "regard@1")
    store.add_labels([Label(*said, "2026-11-24T01:00:00+00:00", True, "s1", "a sneer")])
    parts = (ProfilePart("hobbies", first.id, "", 4, 9), ProfilePart("traits", refused.id))
    labels = {"group": "ELF F", "gender": "F"}
    store.save_profiles(RUN.id, [Profile(RUN.id, "Ana/0", "Ána", ELVES.id, labels, parts)])
    store.save_near_duplicates(
        RUN.id,
        [NearDuplicate(("adore", "song"), ("love", "songs"), 0.97, "m@1")],
    )
    places = [
        NodeCentrality("group", ELVES.id, "Elves", 2, 0.5, 0, 1),
        NodeCentrality("object", SONGS.object_id, "songs", 2, 0.25, 1, 2),
    ]
    store.save_centralities(LATER.id, places[:1])
    store.save_centralities(
        RUN.id, [NodeCentrality("group", ELVES.id, "Elves", 9, 0.0, 3, 3), *places[1:]]
    )
    store.save_stereotype_matches(RUN.id, HELD)
    assert store.stereotype_matches(RUN.id) == [HELD]
    assert store.stereotype_matches(LATER.id) == []
    story = Passage("p1", "document", "Elves sing. Orcs love songs.", {"source": "a.txt"})
    chunk = Passage("p2", "chunk", "Elves sing.", {"entities": ["Elves"]})
    child = Relation("r1", "child", "p1", "p2", False, {"score": 0.5})
    store.save_corpus(RUN.id, Corpus((story, chunk), (child,)))
    assert store.corpus(RUN.id) == Corpus((story, chunk), (child,))
    assert store.corpus(LATER.id) == Corpus()
    store.save_item_scores(PROBING.model, PROBING.settings, [READ])
    for seconds in (1.5, 0.75):
        store.add_work(RUN.id, seconds)
    for run in (RUN, LATER):
        store.set_status(run.id, "complete")


def sofa_result(probe_set: ProbeSet) -> SofaResult:
    """Of the first statement of a category the variance is 2, of another 0.5; one group is always
    first."""
    score = Estimate(1.25, 0.5, 2.0, 2)
    categories = tuple(sofa_category(part, score) for part in probe_set.parts)
    return SofaResult(
        probe_set.id,
        PROBING.model,
        PROBING.settings,
        "conditional",
        score,
        categories,
        {"tier": "tree"},
    )


def sofa_category(part: ProbePart, score: Estimate) -> SofaCategory:
    figures = ((2.0, 2.0, 1.5, ("Elves",)), (1.0, 0.5, -0.5, ("Elves",)))
    own_figures = zip(part.statements, figures[: len(part.statements)], strict=True)
    statements = tuple(SofaStatement(s.id, s.text, *own) for s, own in own_figures)
    groups = (
        SofaGroup("Elves", Estimate(1.0, 1.0, 1.0, 2), Estimate(0.5, 0.0, 1.0, 2)),
        SofaGroup("Orcs", Estimate(0.0, 0.0, 0.0, 2), Estimate(0.5, 0.0, 1.0, 2)),
    )
    return SofaCategory(
        part.category, score, (-1.0, 0.5, 2.5), groups[: len(part.groups)], statements
    )


def seen(store: Store, *, narrow: bool) -> dict[str, Any]:
    """The whole graph, label by label and edge by edge."""
    found: dict[str, Any] = {}

    def ask(text: str, *names: str) -> list[Any]:
        return sorted(store.query(text, names=names if narrow else None).rows, key=repr)

    for node in shape.NODES:
        found[node.label] = ask(f"MATCH (n:{node.label}) RETURN n", node.label)
    for edge in shape.EDGES:
        for start, end in edge.ends:
            a, b = shape.get_node(start).key, shape.get_node(end).key
            found[f"{start}-{edge.type}-{end}"] = ask(
                f"MATCH (a:{start})-[e:{edge.type}]->(b:{end}) RETURN a.{a} AS a, e, b.{b} AS b",
                edge.type,
            )
    return found


def held_to_the_shape(graph: dict[str, Any]) -> None:
    """Every label and edge is there, and every property of the shape, each of its type."""
    types = {"text": str, "integer": int, "number": float, "boolean": bool}
    for thing in (*shape.NODES, *shape.EDGES):
        if isinstance(thing, Node):
            values = [row[0] for row in graph[thing.label]]
        else:
            pairs = [graph[f"{start}-{thing.type}-{end}"] for start, end in thing.ends]
            assert all(pairs), thing
            values = [row[1] for rows in pairs for row in rows]
        given = {name for value in values for name in value} - {":label", ":type"}
        assert given == {p.name for p in thing.properties}, thing
        for p in thing.properties:
            some = [v[p.name] for v in values if p.name in v]
            if p.type in types:
                assert all(type(v) is types[p.type] for v in some), (thing, p)
            else:
                one = str if p.type == "texts" else float
                assert all(type(item) is one for v in some for item in v), (thing, p)


def test_a_store_holds_the_shape(store: Store) -> None:
    everything(store)
    held_to_the_shape(seen(store, narrow=False))
    assert seen(store, narrow=True) == seen(store, narrow=False)
    rows = store.query(
        "MATCH (r:Run)-[:MODELLED_BY]->(:TopicModel)-[:FOUND]->(t:Topic)<-[:ATTRIBUTE]-(test) "
        "RETURN r.name AS run, t.words AS words, test.name AS test"
    ).rows
    assert rows == [("middle", list(TOPIC.words), "C6")]


@pytest.mark.integration
def test_both_stores_hold_the_same_graph_as_neo4j(tmp_path: Path, empty_neo4j: str) -> None:
    graphs = []
    for url in (str(tmp_path / "kgbias.db"), empty_neo4j):
        with open_store(url) as store:
            everything(store)
            graphs.append(seen(store, narrow=False))
            labels = store.query("MATCH (n) RETURN DISTINCT labels(n) AS labels").rows
            beside = {"Spec"} if "://" in url else set()  # what models were named by
            assert {label for (found,) in labels for label in found} - beside == {
                n.label for n in shape.NODES
            }
    for name, rows in graphs[0].items():
        assert rows == graphs[1][name], name


ODD = ('", \\"', "two\r\nlines", " spaces ", "-", "Ünï", "'=1+1", "")


def odd_values(store: Store) -> None:
    """Lists without items, with an empty one and with what a table could take for its own; numbers
    that are none."""
    metric = Metric("warmth", "rule", "1")
    parts = [{}, {" ": 0.5}, dict.fromkeys(ODD, 1e-300), {"a": math.nan, "b": math.inf}]
    triples = (SONGS, SONG, SMOKE)
    for number, (triple, one) in enumerate(zip(triples, parts, strict=False)):
        store.save_scores(RUN.id, metric, [Score(triple.id, number / 3, "", one)])
    other = Metric("competence", "rule", "1")
    store.save_scores(RUN.id, other, [Score(SONGS.id, -0.0, ODD[0], parts[3])])
    tokens = [WordAttribution(SONGS.id, metric, ODD, tuple(map(float, range(len(ODD)))), 0.5)]
    store.save_attributions([*tokens, WordAttribution(SONG.id, metric, (), (), 0.25)])


LEFT_OUT = {  # what the other run alone has, or no run
    "Run": 1,
    "Run-OF-Model": 1,
    "Run-SEEDED-SocialGroup": 1,
    "Run-PLACED-SocialGroup": 1,
    "SocialGroup": 1,
    "Predicate": 1,
    "Object": 1,
    "Statement": 1,
    "Descriptor": 1,
    "Name-PROBED_BEFORE-Statement": 2,
    "BenchmarkItem": 1,
    "BenchmarkItem-READ_BY-Model": 1,
    "SocialGroup-FLAGGED-Descriptor": 1,
}


def stored(row: Any) -> Any:
    """A row as neo4j-admin can write it: a list without items is no property."""
    return tuple(
        {k: v for k, v in cell.items() if v != []} if isinstance(cell, dict) else cell
        for cell in row
    )


@pytest.mark.integration
def test_what_neo4j_admin_imports_is_the_graph_row_by_row(
    tmp_path: Path, neo4j_server: dict[str, str], empty_neo4j: str
) -> None:
    home = neo4j_server["HOME"]
    with open_store(str(tmp_path / "kgbias.db")) as store:
        everything(store)
        odd_values(store)
        before = seen(store, narrow=False)
        write_export(
            StoredRun(store, store.find_run(RUN.name)), tmp_path / "written", "neo4j-admin"
        )
    subprocess.run([NEO4J, "stop", home], check=True)
    readme = (tmp_path / "written" / "README.txt").read_text()
    words = re.sub(r"\\\n", " ", readme[readme.index("neo4j-admin ") :]).split()[1:]
    # It clears a buffer for each file, of four megabytes if nothing is said.
    done = subprocess.run(
        [NEO4J, "admin", home, *words, "--overwrite-destination", "--read-buffer-size=256k"],
        cwd=tmp_path / "written",
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    start_neo4j(home)
    with open_store(empty_neo4j) as server:
        after = seen(server, narrow=False)
        # What kgbias reads of it is what was written: every row of every file.
        write_export(StoredRun(server, server.find_run(RUN.name)), tmp_path / "read", "neo4j-admin")
    files = {path.name for path in (tmp_path / "read").iterdir()}
    assert files == {path.name for path in (tmp_path / "written").iterdir()} - {"import.report"}
    lines = {
        name: [
            sorted((tmp_path / side / name).read_text().split("\n")) for side in ("written", "read")
        ]
        for name in files
    }
    assert {name: both for name, both in lines.items() if both[0] != both[1]} == {}
    changed = {}
    for thing, rows in after.items():
        there = repr([stored(row) for row in before[thing]])  # nan is not itself
        changed[thing] = [row for row in rows if repr(stored(row)) not in there]
    placed = [row[0] for row in changed.pop("SocialGroup")]  # by the run, and not by a later one
    assert [(node["name"], node["placed_by"]) for node in placed] == [("Elves", RUN.name)]
    assert {thing: rows for thing, rows in changed.items() if rows} == {}
    left_out = {thing: len(before[thing]) - len(rows) for thing, rows in after.items()}
    assert {thing: count for thing, count in left_out.items() if count} == LEFT_OUT


def test_a_model_has_one_name_wherever_it_is_shown(store: Store) -> None:
    """The spec, which may be a path, is nowhere in the graph; a person's own name is everywhere."""
    everything(store)
    hidden = ModelInfo("hf:/telltale/tiny", "sha256:0123456789")
    local = store.begin_run(Run("local", hidden, {}, (ELVES,)))
    assert local.model == hidden and local.model.title == "tiny (012345)"
    own = {kind.model: f"Model {n}" for n, kind in enumerate((PROBING, CHOOSING, BELIEVING))}
    for model, name in (own | {hidden: "Model B"}).items():
        store.set_display_name(replace(model, display_name=name))
    for again in (
        PROBING.model,
        replace(hidden, display_name="Model C"),
    ):  # a known one keeps its name
        store.put(RUN.id, ProbeRun, [ProbeRun(again, (), {"mrr": 0.5})])
    graph = seen(store, narrow=False)
    names = {row[0]["name"] for row in graph["Model"]}
    assert {MODEL.title, "Model B", *own.values()} <= names
    assert "telltale" not in repr(graph) and names.isdisjoint(m.title for m in own)
    for edge, asking in (("PROBED", PROBING), ("CHOSEN", CHOOSING), ("BELIEVED", BELIEVING)):
        rows = graph[f"Statement-{edge}-SocialGroup"]
        assert {row[1]["model"] for row in rows} == {own[asking.model]}
    (test,) = graph["AssociationTest"]
    assert test[0]["model"] == own[PROBING.model] and not store.find_faults()
    assert store.find_run("local").model.title == "Model B"
    assert {p.model.title for p in store.find_all(RUN.id, ProbeRun)} == {
        own[PROBING.model],
        "Model B",
    }
    for taken in ("Model 0", MODEL.title):
        with pytest.raises(UsageError, match=f"two models of the store would be called '{taken}'"):
            store.set_display_name(replace(hidden, display_name=taken))
    with pytest.raises(UsageError, match="would be called 'Model 0'"):
        store.begin_run(Run("third", ModelInfo("Model 0"), {"n": 3}, (ELVES,)))
    store.set_display_name(replace(hidden, display_name=""))
    assert [m.title for m in store.models() if m == hidden] == ["tiny (012345)"]
