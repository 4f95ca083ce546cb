"""Near-duplicates: which texts are linked, that links can be taken back, and what counts as one."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kgbias.cli import cli
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import crawl
from kgbias.crawl.merge import link_run, links, merged
from kgbias.crawl.seeds import choose_seeds
from kgbias.errors import UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import SAME, NearDuplicate, Score, TripleView, node_id, triple_id
from kgbias.models.base import ModelInfo, Request
from tests.scripted import ScriptedModel


def at(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32) * 3


def pairs(found: list[NearDuplicate]) -> set[tuple[str, str]]:
    return {(link.text, link.head_text) for link in found}


def test_the_rarer_goes_to_the_more_frequent_and_there_are_no_chains() -> None:
    texts = [("a", 1), ("b", 5), ("c", 2), ("d", 1)]
    # Neighbours are 20 degrees apart: cos 20 = 0.94, cos 40 = 0.77.
    found = links(texts, at(0, 20, 40, 60), 0.9)
    assert pairs(found) == {("a", "b"), ("c", "b")}  # d is near c alone, which stands for nothing
    assert {round(link.similarity, 3) for link in found} == {0.940}
    backwards = links(texts[::-1], at(60, 40, 20, 0), 0.9)
    assert pairs(backwards) == pairs(found)
    assert links(texts, at(0, 20, 40, 60), 0.95) == []
    assert links([], np.zeros((0, 2), dtype=np.float32), 0.9) == []


def test_negations_are_never_linked() -> None:
    texts = [("be trusted", 5), ("not be trusted", 2), ("never be trusted", 1), ("knot", 1)]
    found = links(texts, at(0, 1, 2, 50), 0.9)
    assert pairs(found) == {("never be trusted", "not be trusted")}
    assert links([("can swim", 2), ("can't swim", 1)], at(0, 0), 0.5) == []


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
    assert links([(text, 2), (other, 1)], at(0, 0), SAME) == []
    assert len(links([(text, 2), (f"{text} too", 1)], at(0, 0), SAME)) == 1


def view(predicate: str, object: str, count: int, toxicity: float | None = None) -> TripleView:
    group = node_id("group", "Men")
    id = triple_id(group, node_id("predicate", predicate), node_id("object", object))
    scores = {} if toxicity is None else {"toxicity": Score(id, toxicity)}
    return TripleView(id, group, "Men", predicate, object, count, scores)


def link(kind: str, text: str, head: str) -> NearDuplicate:
    return NearDuplicate(kind, node_id(kind, text), node_id(kind, head), text, head, 0.95)


def test_merged_counts_add_up() -> None:
    views = [
        view("love", "swimming", 3, 0.1),
        view("love", "swim", 4, 0.9),
        view("hate", "swim", 1),
    ]
    found = merged(views, [link("object", "swim", "swimming")])
    assert [(v.predicate, v.object, v.count) for v in found] == [
        ("love", "swimming", 7), ("hate", "swimming", 1),
    ]  # fmt: skip
    assert found[0].scores["toxicity"].value == 0.1  # of the one said in those words
    assert found[1].id == view("hate", "swimming", 1).id
    assert merged(views, []) == views


class Spelling:
    """An encoder for which words that begin alike are alike."""

    info = ModelInfo("spelling", "1")

    def embed(self, spans: list, encoding: str, layer: int = -1) -> np.ndarray:
        rows = [[ord(c) for c in span.text[:4].ljust(4)] for span in spans]
        return np.array(rows, dtype=np.float32) - 100


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A store with a crawl that says the same in two ways."""
    path = str(tmp_path / "kgbias.db")
    store = SQLiteStore(path)

    def reply(request: Request) -> str:
        thing = ["swim", "swimming", "zebras"][request.seed % 3]
        return f" make\nA: {thing}" if str(request.prompt).endswith("#") else f" {thing}."

    crawl(CrawlConfig(seeds=tuple(choose_seeds("any", ["gender"]))), ScriptedModel(reply), store)
    store.close()
    return path


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)
    return done.stdout


def test_link_export_undo(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.models.embed.open_encoder", lambda spec, **_: Spelling())
    before = run("export", "--store", db)
    done = json.loads(run("merge", "--store", db, "--threshold", "0.999", "--json"))
    (one,) = [x for x in done["links"] if x["kind"] == "object"]
    assert {one["text"], one["head_text"]} == {"swim", "swimming"}
    assert done["triples_merged"] < done["triples"]
    assert run("export", "--store", db) == before  # nothing was merged
    rows = [json.loads(x) for x in run("export", "--store", db, "--merged").splitlines()]
    said = [json.loads(x) for x in before.splitlines()]
    assert len(rows) == done["triples_merged"]
    assert sum(r["count"] for r in rows) == sum(r["count"] for r in said)
    assert one["text"] not in {r["object"] for r in rows}
    assert "->" in run("merge", "--store", db, "--threshold", "0.999")
    assert json.loads(run("merge", "--store", db, "--undo", "--json"))["links"] == []
    assert run("export", "--store", db, "--merged") == before


def test_linking_again_replaces(db: str) -> None:
    store = SQLiteStore(db)
    found = store.find_run()
    for _ in range(2):
        made = link_run(StoredRun(store, found), Spelling(), 0.999)  # type: ignore[arg-type]
        assert store.near_duplicates(found.id) == made != []
    with pytest.raises(UsageError, match="threshold"):
        link_run(StoredRun(store, found), Spelling(), 1.5)  # type: ignore[arg-type]
    store.close()
