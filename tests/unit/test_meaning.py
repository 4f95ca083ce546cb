"""Statements by what they mean: which vectors are near, worked out by hand."""

from typing import Any, cast

import numpy as np
import pytest

from kgbias.errors import StoreError
from kgbias.graph.store import StoredRun
from kgbias.graph.vectors import (
    StatementVectors,
    find_nearest,
    find_neighbours,
    pack_vectors,
    unpack_vectors,
)
from kgbias.measure.semantic_search import StatementIndex

ROWS = np.array([[1, 0], [0.8, 0.6], [0, 1], [0.6, 0.8], [-1, 0]], dtype=np.float32)


def test_the_nearest_rows() -> None:
    to = np.array([1, 0], dtype=np.float32)
    assert find_nearest(ROWS, to, 3) == [(0, 1.0), (1, 0.8), (3, 0.6)]
    assert find_nearest(ROWS, to, 9, 0.7) == [(0, 1.0), (1, 0.8)]
    twice = np.concatenate([ROWS, ROWS[1:2]])
    assert find_nearest(twice, to, 2, 0.7) == [(0, 1.0), (1, 0.8)]  # of equals, the first
    assert find_nearest(ROWS[:0], to, 3) == []


def test_the_neighbours_of_each() -> None:
    """0 is .8 from 1 and .6 from 3; 1 and 3 are .48 + .48 = .96 from each other."""
    assert find_neighbours(ROWS, 2, 0.6) == [
        [(1, 0.8), (3, 0.6)],
        [(3, 0.96), (0, 0.8)],
        [(3, 0.8), (1, 0.6)],
        [(1, 0.96), (2, 0.8)],
        [],
    ]
    assert [[n for n, _ in own] for own in find_neighbours(ROWS, 1, 0.9)] == [[], [3], [], [1], []]


def test_neighbours_are_those_found_one_by_one() -> None:
    """Over more rows than are compared at once."""
    rows = np.random.default_rng(0).normal(size=(700, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = find_neighbours(rows, 5, 0.5)
    for n in (0, 255, 256, 699):
        alone = [pair for pair in find_nearest(rows, rows[n], 6, 0.5) if pair[0] != n][:5]
        assert [other for other, _ in found[n]] == [other for other, _ in alone]


def test_ids_are_computed_once() -> None:
    """A report looks one up for each row: computed anew, they would take a square of time."""
    said = StatementVectors([("love", "tea"), ("are", "kind")], ROWS[:2])
    assert said.ids is said.ids and len(set(said.ids)) == 2


def test_vectors_are_kept_in_half_precision() -> None:
    rows = np.array([[1 / 3, -0.5], [0, 1]], dtype=np.float32)
    kept = pack_vectors(rows)
    assert [len(row) for row in kept] == [4, 4]
    assert np.array_equal(unpack_vectors(kept), rows.astype(np.float16)) and unpack_vectors(
        []
    ).shape == (0, 0)


@pytest.mark.parametrize(
    "found", [[b"\0\0", b"\0\0\0\0"], [b"\0"], [b""], ["text"], [np.float16("nan").tobytes()]]
)
def test_damaged_vectors_end_in_a_line(found: list[Any]) -> None:
    with pytest.raises(StoreError, match="damaged"):
        unpack_vectors(found)


def test_neighbours_among_some_rows_and_of_many() -> None:
    assert find_neighbours(ROWS, 2, 0.6, np.array([0, 2])) == [
        [],
        [(0, 0.8), (2, 0.6)],
        [],
        [(2, 0.8), (0, 0.6)],
        [],
    ]
    many = np.tile(np.array([[1, 0]], dtype=np.float32), (1_500, 1))
    assert all(
        len(own) == 3 and n not in dict(own) for n, own in enumerate(find_neighbours(many, 3, 0.9))
    )
    assert find_neighbours(ROWS[:0], 3, 0.5) == []


def test_a_run_that_says_nothing_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Encoder:
        name, version, size = "axes", "1", 2

        def __init__(self, _: str) -> None: ...

        def forget(self) -> None: ...

        def embed(self, texts: list[str]) -> Any:
            return np.ones((len(texts), 2)) / np.sqrt(2)

    class Silent:
        def distinct_triples(self) -> list[Any]:
            return []

        def vectors(self, _: str) -> StatementVectors:
            return StatementVectors([], unpack_vectors([]))

    monkeypatch.setattr("kgbias.measure.semantic_search.MiniLM", Encoder)
    assert StatementIndex.build(cast(StoredRun, Silent())).search("rain", 5) == []
