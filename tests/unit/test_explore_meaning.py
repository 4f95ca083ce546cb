"""The map by meaning, from vectors whose subjects are known."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgbias.errors import MissingExtra
from kgbias.explore import meaning_map, unit_maps
from kgbias.explore.statements import StatementTable, read_statement_table
from kgbias.graph.selection import Selection
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, node_id
from kgbias.graph.vectors import StatementVectors
from kgbias.io.progress import SilentProgress
from kgbias.measure.semantic_search import SHIPPED_ENCODER
from tests.report_data import measured_run

GROUPS = (Group("Women", "gender"), Group("Men", "gender"))
SUBJECTS = {"food": ["soup", "bread"], "sport": ["match", "ball"], "rain": ["storm", "cloud"]}
OBJECTS = [
    f"{subject} of {own} {n}"
    for subject, words in SUBJECTS.items()
    for own in words
    for n in "abcdefgh"
]


@pytest.fixture(autouse=True)
def without_umap(monkeypatch: pytest.MonkeyPatch) -> None:
    """By principal components: quick, and what a small installation has."""

    def missing() -> None:
        raise MissingExtra("umap", extra="topics")

    monkeypatch.setattr(meaning_map, "load_umap", missing)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[StoredRun]:
    with SQLiteStore(str(tmp_path / "kgbias.db")) as store:
        yield StoredRun(store, measured_run(store, GROUPS, OBJECTS, per_group=80))


def keep(run: StoredRun, objects: list[str]) -> StatementTable:
    """Vectors of what is said with these objects, near the point of their subject."""
    rng = np.random.default_rng(0)
    at = {subject: 4 * row for subject, row in zip(SUBJECTS, np.eye(3, 16), strict=True)}
    ends, rows = [], []
    for _, _, predicate, thing in run.distinct_triples():
        if thing in objects:
            ends.append((node_id("predicate", predicate), node_id("object", thing)))
            row = at[thing.split()[0]] + 0.5 * rng.normal(size=16)
            rows.append(row / np.linalg.norm(row))
    run.store.save_vectors(SHIPPED_ENCODER, StatementVectors(ends, np.array(rows, np.float32)))
    return read_statement_table([run], Selection(), SilentProgress())


def test_what_is_about_the_same_lies_together(run: StoredRun) -> None:
    found = keep(run, OBJECTS)
    made = meaning_map.build_meaning_map(found, seed=0)
    assert made is not None and made.placing == "pca"
    things = np.flatnonzero(made.layout.home >= 0)
    subject = np.array([found.objects.texts[n].split()[0] for n in things])
    points = made.layout.objects[things]
    for name in SUBJECTS:
        own, others = points[subject == name], points[subject != name]
        centre = own.mean(axis=0)
        away = np.linalg.norm(own - centre, axis=1), np.linalg.norm(others - centre, axis=1)
        assert away[0].max() < away[1].min()
    regions = {
        name: {made.names[n] for n in made.layout.home[things][subject == name]}
        for name in SUBJECTS
    }
    for name, words in regions.items():  # a region is of one subject, and named by its words
        assert all(set(r.split(", ")) & {name, *SUBJECTS[name]} for r in words)
        assert not any(words & other for of, other in regions.items() if of != name)


def test_the_same_statements_give_the_same_map(run: StoredRun) -> None:
    found = keep(run, OBJECTS)
    one, other = (meaning_map.build_meaning_map(found, seed=0) for _ in range(2))
    assert one is not None and other is not None
    assert unit_maps.build_block([one]).encode() == unit_maps.build_block([other]).encode()


def test_what_has_no_vector_is_not_on_the_map(run: StoredRun) -> None:
    found = keep(run, OBJECTS[:40])
    made = meaning_map.build_meaning_map(found, seed=0)
    assert made is not None
    on = {found.objects.texts[n] for n in np.flatnonzero(made.layout.home >= 0)}
    assert on == set(OBJECTS[:40]) & set(found.objects.texts)


def test_few_objects_have_no_map(run: StoredRun) -> None:
    assert (
        meaning_map.build_meaning_map(
            read_statement_table([run], Selection(), SilentProgress()), seed=0
        )
        is None
    )
    assert meaning_map.build_meaning_map(keep(run, OBJECTS[:10]), seed=0) is None


def test_what_cannot_be_told_apart_has_no_map(run: StoredRun) -> None:
    ends = [
        (node_id("predicate", p), node_id("object", o)) for _, _, p, o in run.distinct_triples()
    ]
    same = np.tile(np.eye(1, 16, dtype=np.float32), (len(ends), 1))
    run.store.save_vectors(SHIPPED_ENCODER, StatementVectors(ends, same))
    assert (
        meaning_map.build_meaning_map(
            read_statement_table([run], Selection(), SilentProgress()), seed=0
        )
        is None
    )


def test_of_many_only_the_most_frequent_are_laid_out(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go to those near them, so subjects stay apart."""
    monkeypatch.setattr(meaning_map, "MAX_ANCHORS", 24)
    found = keep(run, OBJECTS)
    made = meaning_map.build_meaning_map(found, seed=0)
    assert made is not None
    things = np.flatnonzero(made.layout.home >= 0)
    subject = np.array([found.objects.texts[n].split()[0] for n in things])
    centres = [made.layout.objects[things][subject == name].mean(axis=0) for name in SUBJECTS]
    for point, own in zip(made.layout.objects[things], subject, strict=True):
        nearest = int(np.argmin([np.linalg.norm(point - centre) for centre in centres]))
        assert list(SUBJECTS)[nearest] == own


def test_what_umap_found_is_kept_for_the_same_vectors(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Importing UMAP takes longer than a small map; a damaged file is made again."""
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path / "cache"))
    loads: list[str] = []

    class Spread:
        def __init__(self, **how: Any) -> None:
            self.start = how["init"]

        def fit_transform(self, rows: Any) -> Any:
            return self.start * 3.0

    def load() -> Any:
        loads.append("umap")
        return Spread

    monkeypatch.setattr(meaning_map, "load_umap", load)
    monkeypatch.setattr(meaning_map, "version", lambda _: "1")
    found = keep(run, OBJECTS)

    def made(seed: int = 0) -> Any:
        own = meaning_map.build_meaning_map(found, seed=seed)
        assert own is not None and own.placing == "umap"
        return own.layout.objects

    first = made()
    assert np.array_equal(made(), first, equal_nan=True) and len(loads) == 1
    (file,) = (tmp_path / "cache" / "layouts").iterdir()
    file.write_bytes(file.read_bytes()[:-3])
    assert np.array_equal(made(), first, equal_nan=True) and len(loads) == 2
    made(seed=1)
    assert len(loads) == 3
    found = keep(run, OBJECTS[1:])
    made()
    assert len(loads) == 4


def test_of_very_many_statements_there_is_no_map(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = keep(run, OBJECTS)
    monkeypatch.setattr(meaning_map, "MAX_STATEMENTS", found.rows)
    assert meaning_map.build_meaning_map(found, seed=0) is not None
    monkeypatch.setattr(meaning_map, "MAX_STATEMENTS", found.rows - 1)
    assert meaning_map.build_meaning_map(found, seed=0) is None
