"""What only the Neo4j store does: derived edges, indexes, and loading in batches."""

import json
import os
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pytest

from kgbias.backends.neo4j import Neo4jStore, crawls
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.measure.scorers import Judgement
from kgbias.measure.scoring import measure_run
from kgbias.models.base import ModelInfo
from kgbias.query import load_query
from tests.attack.cyphers import FILE, accept_query, find_side_effects, hostile_queries

# Slow: see tests/contract/conftest.py.
pytestmark = [pytest.mark.integration, pytest.mark.slow]

GROUPS = (Group("Elves", "peoples"), Group("Orcs", "peoples"))
RUN = Run("middle", ModelInfo("crawled", "r1"), {"seed": 0}, GROUPS, kind="import")


@pytest.fixture
def server(empty_neo4j: str) -> Iterator[Neo4jStore]:
    with Neo4jStore(empty_neo4j) as store:
        yield store


class Ruled:
    """Scores by the length of a text."""

    name, version, language = "rule", "1", None

    def __init__(self, measure: str) -> None:
        self.measure = measure

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        return [Judgement(len(text) / 100, "neutral", {}) for text in texts]


def loaded(store: Neo4jStore, count: int) -> StoredRun:
    return store_generations(
        store, [Triple(GROUPS[n % 2].name, "love", f"song {n}") for n in range(count)]
    )


def store_generations(store: Neo4jStore, triples: Sequence[Triple]) -> StoredRun:
    store.begin_run(RUN)
    store.load_import(
        RUN.id,
        [
            Generation(RUN.id, f"{n}", t.group_id, "none", "import", 0, 0, "ok", triple=t)
            for n, t in enumerate(triples)
        ],
    )
    return StoredRun(store, RUN)


def test_measuring_derives_the_edges_once(
    server: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = loaded(server, 600)
    derived = []
    derive = Neo4jStore.derive_edges
    monkeypatch.setattr(
        Neo4jStore, "derive_edges", lambda s, id: (derived.append(id), derive(s, id))
    )
    statements = []
    alone = Neo4jStore.write_alone
    monkeypatch.setattr(
        Neo4jStore, "write_alone", lambda s, q, **p: (statements.append(q), alone(s, q, **p))
    )
    measure_run(run, [Ruled("regard"), Ruled("toxicity")])
    assert derived == [RUN.id] and len(statements) == 2
    rows = server.query(
        "MATCH ()-[s:STEREOTYPE {run: 'middle'}]->() "
        "RETURN count(s) AS n, count(s.regard) AS regard, count(s.toxicity) AS toxicity"
    ).rows
    assert rows == [(600, 600, 600)]


def content(store: Neo4jStore) -> list[str]:
    """All nodes and edges, with their properties."""
    nodes = store.read("MATCH (n) RETURN labels(n) AS l, properties(n) AS p")
    edges = store.read(
        "MATCH (a)-[e]->(b) RETURN type(e) AS t, a.uid AS a, b.uid AS b, properties(e) AS p"
    )
    return sorted(json.dumps(row, sort_keys=True) for row in (*nodes, *edges))


def test_loading_again_adds_what_is_new_and_changes_nothing_else(
    server: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(server, 4)
    before = content(server)
    loaded(server, 4)
    assert content(server) == before
    loaded(server, 6)
    after = content(server)
    assert len([row for row in after if "YIELDED" in row]) == 6
    # Where another writer is faster than we look, or a commit was not acknowledged.
    monkeypatch.setattr(Neo4jStore, "_find_known", lambda *_: set())
    loaded(server, 6)
    assert content(server) == after
    server.keep_triples([Triple("Elves", "love", "song 0"), Triple("Elves", "love", "tea")])
    assert len([row for row in content(server) if "PREDICATE" in row]) == 7


def test_edges_of_a_statement_are_found_by_an_index(server: Neo4jStore) -> None:
    indexes = server.read(
        "SHOW INDEXES YIELD entityType, labelsOrTypes, properties "
        "WHERE entityType = 'RELATIONSHIP' AND labelsOrTypes = ['STEREOTYPE'] "
        "RETURN properties AS keys"
    )
    assert sorted(row["keys"] for row in indexes) == [
        ["run"],
        ["run", "count"],
        ["run", "regard"],
        ["run", "toxicity"],
        ["triple"],
    ]


@pytest.mark.parametrize("name", ["most_repeated", "most_negative", "most_toxic"])
def test_a_list_of_what_comes_first_is_read_from_an_index(server: Neo4jStore, name: str) -> None:
    given = {"run": "middle", "arm": None, "min_acceptability": 0.5, "limit": 25}
    with server.driver.session() as session:
        plan = session.run(f"EXPLAIN {load_query(name).text}", given).consume().plan
    steps = operators(plan)
    assert "PartialTop@neo4j" in steps and "Top@neo4j" not in steps, steps


def operators(plan: dict[str, Any]) -> list[str]:
    """The steps of a plan, the last first."""
    below = [step for child in plan.get("children", []) for step in operators(child)]
    return [plan["operatorType"], *below]


@pytest.mark.parametrize("gone", [{"Triple"}, {"SocialGroup", "Predicate"}, {"Object"}])
def test_what_is_gone_since_it_was_looked_for_is_written_again(
    server: Neo4jStore, monkeypatch: pytest.MonkeyPatch, gone: set[str]
) -> None:
    found = Neo4jStore._find_known

    def stale(store: Neo4jStore, uids: Mapping[str, Collection[str]]) -> set[str]:
        """As if another writer had deleted them since."""
        others = {label: own for label, own in uids.items() if label not in gone}
        there = found(store, others) if others else set()
        return there.union(*(own for label, own in uids.items() if label in gone))

    monkeypatch.setattr(Neo4jStore, "_find_known", stale)
    loaded(server, 4)
    for label, count in (("Generation", 4), ("Triple", 4), ("Object", 4), ("SocialGroup", 2)):
        assert server.read(f"MATCH (n:{label}) RETURN count(n) AS n") == [{"n": count}]
    for type in ("YIELDED", "SUBJECT", "PREDICATE", "OBJECT"):
        assert server.read(f"MATCH ()-[e:{type}]->() RETURN count(e) AS n") == [{"n": 4}]


def songs(count: int, *, of: int) -> list[Triple]:
    """Statements of so many songs and verbs, which each batch shares with the others."""
    return [
        Triple(GROUPS[n % 2].name, f"love {n // of} times", f"song {n % of}") for n in range(count)
    ]


def merges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of batches that are merged from now on, since they could not be created."""
    sizes: list[int] = []
    for name in ("build_generation_merges", "build_triple_merges"):
        merged = getattr(crawls, name)

        def counted(*given: Any, merged: Any = merged) -> Any:
            sizes.append(len(given[-1]))
            return merged(*given)

        monkeypatch.setattr(crawls, name, counted)
    return sizes


def test_two_writers_do_not_create_the_same(
    server: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawls, "BATCH_ROWS", 20)
    said, sizes = songs(400, of=30), merges(monkeypatch)
    server.keep_triples(said)
    store_generations(server, said)
    assert sizes == []
    for label, count in (("Triple", 400), ("Object", 30), ("Predicate", 14), ("Generation", 400)):
        assert server.read(f"MATCH (n:{label}) RETURN count(n) AS n") == [{"n": count}]
    for type in ("SUBJECT", "PREDICATE", "OBJECT", "YIELDED", "IN"):
        assert server.read(f"MATCH ()-[e:{type}]->() RETURN count(e) AS n") == [{"n": 400}]


def test_a_load_finds_some_triples_and_lacks_others(
    server: Neo4jStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawls, "BATCH_ROWS", 20)
    said = songs(200, of=30)
    server.keep_triples([*said[:60], *said[100:140]])
    sizes = merges(monkeypatch)
    store_generations(server, said)
    assert sizes == []
    for label in ("Triple", "Generation"):
        assert server.read(f"MATCH (n:{label}) RETURN count(n) AS n") == [{"n": 200}]


def test_the_server_would_only_read_the_graph(empty_neo4j: str) -> None:
    """By the server's own plan, for queries that it might read differently from us."""
    import neo4j

    auth = ("neo4j", os.environ["NEO4J_PASSWORD"])
    quiet: Any = {"notifications_min_severity": "OFF"}
    with neo4j.GraphDatabase.driver(empty_neo4j, auth=auth, **quiet) as driver:
        run = driver.execute_query
        for text, more in (
            (f"MATCH (n) WITH n // x\rLOAD CSV FROM {FILE}", "LoadCSV"),
            ("CALL dbms.queryJmx('*:*') YIELD name RETURN name", "dbms.queryJmx"),
            ("MATCH (n) SET n.x = 1", "type w"),
        ):
            assert more in find_side_effects(run, text, {}) and accept_query(text) is None
        handed = dict(
            filter(None, map(accept_query, islice(hostile_queries(random.Random(16)), 500)))
        )
        assert len(handed) > 20
        for text, values in handed.items():
            assert not find_side_effects(run, text, values), text
