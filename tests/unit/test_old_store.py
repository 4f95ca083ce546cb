"""A store that an earlier kgbias wrote opens with the same figures, its models joined."""

import gzip
import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import open_store
from kgbias.graph.stored import StoredRun

DATA = Path(__file__).parent.parent / "data"
THEN: dict[str, Any] = json.loads((DATA / "store_of_schema_7.json").read_text("utf-8"))


@pytest.fixture
def old(tmp_path: Path) -> StoredRun:
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress((DATA / "store_of_schema_7.db.gz").read_bytes()))
    return StoredRun.find(open_store(str(path), create=False), "old")


def test_the_run_is_as_it_was(old: StoredRun) -> None:
    assert old.id == THEN["run"]["id"] == old.record.id
    assert [
        [t.group, t.predicate, t.object, t.count,
         round(t.scores["regard"].value, 6), round(t.scores["toxicity"].value, 6)]
        for t in old.triples()
    ] == THEN["triples"]  # fmt: skip
    assert [
        [f.group_id, f.measure, f.value, f.low, f.high, f.n]
        for f in old.group_scores()
        if f.low == f.low
    ] == [row for row in THEN["group_scores"] if row[3] == row[3]]
    generations = list(old.generations())
    assert len(generations) == THEN["generations"]
    assert len(old.answers([g.answer_key for g in generations])) > 100
    assert [[t.number, list(t.words)] for m in old.topics() for t in m.topics] == THEN["topics"]
    assert len(old.attributions()) == THEN["attributions"]
    assert len(old.places()) == THEN["places"]


def test_what_was_probed_and_tested_is_as_it_was(old: StoredRun) -> None:
    found = [
        [p.model.name, dict(p.settings), p.record["mrr"], len(old.probes(p))]
        for p in old.probings()
    ]
    assert sorted(found, key=str) == THEN["probings"]
    assert [
        [a.test, a.method, a.model.name, a.effect_size, a.p_published if a.method == "lpbs"
         else a.p_value, len(a.edges)]
        for a in old.associations()
    ] == THEN["associations"]  # fmt: skip
    lpbs, seat = old.associations()  # the p-value is that of the permutation test, for every method
    assert lpbs.p_value == lpbs.record["p_permutation"] and math.isnan(seat.p_published)
    assert (lpbs.p_holm, seat.n_x, seat.n_y) == (lpbs.record["p_holm"], 8, 8)


def test_sqlite_finds_nothing_wrong_with_it(old: StoredRun) -> None:
    """Its check wants the columns of a key first in a table without row ids."""
    assert isinstance(old.store, SQLiteStore)
    old.save_group_scores(old.group_scores())  # the first write brings it up to date
    with closing(sqlite3.connect(old.store.url)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
