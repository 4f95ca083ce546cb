"""Near-duplicates: what is linked, that links can be taken back, and what counts as one."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import crawl
from kgbias.crawl.seeds import choose_seeds
from kgbias.errors import UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import MIN_SAME_COSINE, NearDuplicate, Score, TripleView, node_id, triple_id
from kgbias.graph.vectors import StatementVectors
from kgbias.measure.merge import EmbeddedStatements, link_near_duplicates, merge_triples
from kgbias.measure.semantic_search import SHIPPED_ENCODER, statement_texts
from kgbias.models.base import Request
from tests.scripted_model import ScriptedModel


def at(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32) * 3


def linked(
    said: dict[str, int], vectors: np.ndarray, threshold: float
) -> dict[str, tuple[str, float]]:
    """What each text, as the object of "are", is linked to, and their cosine."""
    ids = [view("are", text, 1).statement_id for text in said]
    placed = EmbeddedStatements(dict(zip(ids, vectors, strict=True)), "by hand")
    found = link_near_duplicates(
        {("are", text): count for text, count in said.items()}, placed, threshold
    )
    return {link.said[1]: (link.head[1], round(link.similarity, 3)) for link in found}


def test_the_rarer_goes_to_the_more_frequent_and_there_are_no_chains() -> None:
    said = {"a": 1, "b": 5, "c": 2, "d": 1}
    # Neighbours are 20 degrees apart: cos 20 = 0.94, cos 40 = 0.77.
    found = linked(said, at(0, 20, 40, 60), 0.9)
    # d is near c alone, which stands for nothing
    assert found == {"a": ("b", 0.940), "c": ("b", 0.940)}
    backwards = dict(reversed(said.items()))
    assert linked(backwards, at(60, 40, 20, 0), 0.9) == found
    assert linked(said, at(0, 20, 40, 60), 0.95) == {}
    assert link_near_duplicates({}, EmbeddedStatements({}, ""), 0.9) == []


def test_links_are_the_same_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"x" * (n + 1): 40 - n for n in range(40)}
    vectors = at(*(7 * n % 90 for n in range(40)))
    whole = linked(said, vectors, 0.99)
    monkeypatch.setattr("kgbias.measure.merge._BLOCK_STATEMENTS", 3)
    assert linked(said, vectors, 0.99) == whole != {}


def test_negations_are_never_linked() -> None:
    said = {"be trusted": 5, "not be trusted": 2, "never be trusted": 1, "knot": 1}
    found = linked(said, at(0, 1, 2, 50), 0.9)
    assert found == {"never be trusted": ("not be trusted", 1.0)}
    assert linked({"can swim": 2, "can't swim": 1}, at(0, 0), 0.5) == {}


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("better than women", "better than men"),
        ("a car every 2 years", "a car every 10 years"),
        ("better than white people", "better than black people"),
        ("a good idea", "a bad idea"),
        ("speak Spanish", "speak English"),
    ],
)
def test_opposites_that_embeddings_take_for_the_same_are_not_linked(text: str, other: str) -> None:
    assert linked({text: 2, other: 1}, at(0, 0), MIN_SAME_COSINE) == {}
    assert len(linked({text: 2, f"{text} too": 1}, at(0, 0), MIN_SAME_COSINE)) == 1


def view(predicate: str, object: str, count: int, toxicity: float | None = None) -> TripleView:
    group = node_id("group", "Men")
    id = triple_id(group, node_id("predicate", predicate), node_id("object", object))
    scores = {} if toxicity is None else {"toxicity": Score(id, toxicity)}
    return TripleView(id, group, "Men", predicate, object, count, scores)


def test_merged_counts_add_up() -> None:
    views = [
        view("love", "swimming", 3, 0.1),
        view("like", "swim", 4, 0.9),
        view("hate", "swim", 1),
    ]
    link = NearDuplicate(("like", "Swim"), ("love", "swimming"), 0.95)  # ids are of words
    found = merge_triples(views, [link])
    assert [(v.predicate, v.object, v.count) for v in found] == [
        ("love", "swimming", 7),
        ("hate", "swim", 1),
    ]
    assert found[0].scores["toxicity"].value == 0.1  # of the one said in those words
    assert (
        merge_triples(views[1:], [link])[0].id == views[0].id
    )  # also if nobody said it of this group
    assert merge_triples(views, []) == views


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A store with a crawl that says the same in two ways, and the vectors of what it says."""
    path = str(tmp_path / "kgbias.db")
    with SQLiteStore(path) as store:

        def reply(request: Request) -> str:
            thing = ["swim", "swimming", "zebras"][request.seed % 3]
            return f" make\nA: {thing}" if str(request.prompt).endswith("#") else f" {thing}."

        crawl(
            CrawlConfig(seeds=tuple(choose_seeds("any", ["gender"]))), ScriptedModel(reply), store
        )
        texts = statement_texts(StoredRun(store, store.find_run()))
        rows = at(*(40 * text.endswith("zebras") for text in texts.values()))
        store.save_vectors(SHIPPED_ENCODER, StatementVectors([*texts], np.float32(1 / 3) * rows))
    return path


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)
    return done.stdout


def test_link_export_undo(db: str) -> None:
    before = run("export", "--store", db)
    done = json.loads(run("merge", "--store", db, "--threshold", "0.999", "--json"))
    for link in done["links"]:
        (_, one), (_, other) = link["said"], link["head"]
        assert (one == "zebras") == (other == "zebras")
    assert done["triples_merged"] < done["triples"]
    assert run("export", "--store", db) == before  # nothing was merged
    rows = [json.loads(x) for x in run("export", "--store", db, "--merged").splitlines()]
    said = [json.loads(x) for x in before.splitlines()]
    assert len(rows) == done["triples_merged"]
    assert sum(r["count"] for r in rows) == sum(r["count"] for r in said)
    heads = {tuple(link["said"]) for link in done["links"]}
    assert not heads & {(r["predicate"], r["object"]) for r in rows}
    assert "->" in run("merge", "--store", db, "--threshold", "0.999")
    assert json.loads(run("merge", "--store", db, "--undo", "--json"))["links"] == []
    assert run("export", "--store", db, "--merged") == before


def test_linking_again_replaces(db: str) -> None:
    with kgbias.open(db) as study:
        found = study.run()
        for _ in range(2):
            made = found.merge(threshold=0.999)
            assert found.stored.near_duplicates() == sorted(
                made.links, key=lambda x: (x.head, x.said)
            )
            assert made.links
        with pytest.raises(UsageError, match="threshold"):
            found.merge(threshold=1.5)
        assert found.stored.near_duplicates()
