"""What only the Neo4j store does: derived edges, and servers that an earlier kgbias wrote to."""

from collections.abc import Iterator, Sequence

import pytest

from kgbias.graph.neo4j import Neo4jStore
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.measure.scorers import Judgement
from kgbias.measure.scoring import measure
from kgbias.models.base import ModelInfo

pytestmark = pytest.mark.integration

GROUPS = (Group("Elves", "peoples"), Group("Orcs", "peoples"))
RUN = Run("middle", ModelInfo("crawled", "r1"), {"seed": 0}, GROUPS, kind="import")


@pytest.fixture
def server(empty_neo4j: str) -> Iterator[Neo4jStore]:
    with Neo4jStore(empty_neo4j) as store:
        yield store


class Ruled:
    """Scores by the length of a text."""

    name, version = "rule", "1"

    def __init__(self, measure: str) -> None:
        self.measure = measure

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        return [Judgement(len(text) / 100, "neutral", {}) for text in texts]


def loaded(store: Neo4jStore, count: int) -> StoredRun:
    store.begin(RUN)
    triples = [Triple(GROUPS[n % 2].name, "love", f"song {n}") for n in range(count)]
    store.load(
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
    derive = Neo4jStore.derive
    monkeypatch.setattr(Neo4jStore, "derive", lambda s, id: (derived.append(id), derive(s, id)))
    statements = []
    alone = Neo4jStore.write_alone
    monkeypatch.setattr(
        Neo4jStore, "write_alone", lambda s, q, **p: (statements.append(q), alone(s, q, **p))
    )
    measure(run, [Ruled("regard"), Ruled("toxicity")])
    assert derived == [RUN.id] and len(statements) == 2
    rows = server.query(
        "MATCH ()-[s:STEREOTYPE {run: 'middle'}]->() "
        "RETURN count(s) AS n, count(s.regard) AS regard, count(s.toxicity) AS toxicity"
    ).rows
    assert rows == [(600, 600, 600)]
