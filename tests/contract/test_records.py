"""Whatever the records that declare themselves as edges or nodes of runs hold, both stores give it
back."""

import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from itertools import count
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgbias.graph.edge_records import (
    ASKING_RECORDS,
    EDGE_RECORDS,
    EdgeRecord,
    edges_by_asking,
    plain_edges,
)
from kgbias.graph.node_records import NodeRecord, held_nodes
from kgbias.graph.record import OrNaN, to_properties
from kgbias.graph.store import Store
from kgbias.graph.types import (
    Generation,
    Group,
    GroupName,
    ProbeRun,
    Run,
    Triple,
    name_id,
    node_id,
)
from kgbias.models.base import ModelInfo

GROUPS = tuple(Group(name, "peoples") for name in ("Elves", "Orcs", "Ents"))
STATEMENTS = (("love", "songs"), ("fear", "light"))
NAMES = tuple(GroupName(f"{g.name} folk", g.id, "{} folk", g.name.lower()) for g in GROUPS)
NUMBERS = count()

IDS = {  # the fields that hold ids, and which nodes there are
    "group_id": [g.id for g in GROUPS],
    "name_id": [name_id(n.text) for n in NAMES],
    "predicate_id": [node_id("predicate", p) for p, _ in STATEMENTS],
    "object_id": [node_id("object", o) for _, o in STATEMENTS],
}
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
KEYS = st.sampled_from(["", "a", "b c"])  # in one order in every store
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers(-9, 9) | TEXTS, max_size=3)
VALUES: Mapping[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: st.integers(-(2**62), 2**62),
    bool: st.booleans(),
    float: FINITE,
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field, from its type."""
    if hint == OrNaN:
        return FINITE | st.just(math.nan)
    if get_origin(hint) is Annotated:
        inner, *markers = get_args(hint)
        if any(type(m).__name__ == "_MayBeNaN" for m in markers):
            return FINITE | st.just(math.nan)
        return values_of(inner)
    if get_origin(hint) in (Union, UnionType):
        return st.one_of(*(st.none() if t is type(None) else values_of(t) for t in get_args(hint)))
    if get_origin(hint) is tuple:
        return st.lists(values_of(get_args(hint)[0]), min_size=1, max_size=3).map(tuple)
    return VALUES[hint]


def nodes_of(node: NodeRecord) -> st.SearchStrategy[list[Any]]:
    """Records of a kind of nodes, by id, of which no two are the same."""
    hints = get_type_hints(node.record, include_extras=True)
    by_field = {f.name: values_of(hints[f.name]) for f in fields(node.record)}
    nodes = st.builds(node.record, **by_field)
    several = st.lists(nodes, min_size=1, max_size=4, unique_by=lambda record: record.id)
    return several.map(lambda records: sorted(records, key=lambda record: record.id))


def node_content(records: list[Any]) -> list[Any]:
    return [(record.id, to_properties(record)) for record in records]


def records_of(edge: EdgeRecord, ids: Mapping[str, list[str]]) -> st.SearchStrategy[list[Any]]:
    """Records of a kind of edges, of which no two are the same; `ids` are those of nodes."""
    hints = get_type_hints(edge.record, include_extras=True)
    by_field = {
        f.name: st.sampled_from(ids[f.name])
        if f.name in ids
        else KEYS
        if f.name in edge.keys
        else values_of(hints[f.name])
        for f in fields(edge.record)
    }
    return st.lists(
        st.builds(edge.record, **by_field),
        min_size=1,
        max_size=5,
        unique_by=lambda record: edge_key(edge, record),
    )


def edge_key(edge: EdgeRecord, record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in (*edge.id_columns, *edge.keys))


def content(edge: EdgeRecord, records: list[Any]) -> list[Any]:
    """What two lists of records are compared by: NaN is not itself."""
    return [(edge_key(edge, record), to_properties(record)) for record in records]


def in_order(edge: EdgeRecord, records: list[Any]) -> list[Any]:
    return sorted(records, key=lambda r: tuple(getattr(r, name) for name in edge.read_order))


def begin(store: Store, number: int) -> Run:
    """A run in which every group was said to do everything."""
    run = store.begin_run(Run(f"run {number}", ModelInfo("crawled"), {"n": number}, GROUPS))
    triples = [Triple(g.name, *words) for g in GROUPS for words in STATEMENTS]
    generations = [
        Generation(run.id, f"{n}", t.group_id, "none", "object", 0, 0, "ok", triple=t)
        for n, t in enumerate(triples)
    ]
    store.record_round(run.id, "none", 0, generations)
    store.save_names(NAMES)
    return run


def check(store: Store, data: st.DataObject) -> None:
    run, other_run = (begin(store, next(NUMBERS)) for _ in range(2))
    askings: dict[type, ProbeRun] = {
        kind: kind(ModelInfo("asked"), (("n", "1"),), data.draw(JSON) | {"found": True})
        for kind in ASKING_RECORDS
    }
    held = [(node, data.draw(nodes_of(node))) for node in held_nodes()]
    for node, records in held:
        for _ in range(2):
            store.put(run.id, node.record, records)
        found = store.find_all(run.id, node.record)
        assert node_content(found) == node_content(records), node.label
        store.put(other_run.id, node.record, records[:1])
    ids = IDS | {f"{node.table}_id": [r.id for r in records] for node, records in held}
    put: list[tuple[EdgeRecord, ProbeRun | None, list[Any]]] = [
        *((edge, None, data.draw(records_of(edge, ids))) for edge in plain_edges()),
        *(
            (edge, askings[asking.record], data.draw(records_of(edge, ids)))
            for asking, edges in edges_by_asking().items()
            for edge in edges
        ),
    ]
    assert {edge for edge, _, _ in put} == {e for e in EDGE_RECORDS.values() if not e.of_node}
    for edge, asking, records in put:
        for _ in range(2):
            store.put(run.id, edge.record, records, asking=asking)
        found = store.find_all(run.id, edge.record, asking=asking)
        assert content(edge, found) == content(edge, in_order(edge, records)), edge.type
        store.put(other_run.id, edge.record, records[:1], asking=asking)
    for kind, asking in askings.items():
        assert store.find_all(run.id, kind) == []  # not finished
        store.put(run.id, kind, [asking])
        assert store.find_all(run.id, kind) == [asking]
        assert store.find_all(other_run.id, kind) == []
    for edge, asking, records in put:
        first = records[0]
        ends = {name: getattr(first, name) for name in edge.id_columns}
        found = store.find_all(run.id, edge.record, asking=asking, **ends)
        same_ends = [r for r in records if all(getattr(r, n) == id for n, id in ends.items())]
        assert content(edge, found) == content(edge, in_order(edge, same_ends)), edge.type
        store.put(run.id, edge.record, records[1:], asking=asking)
        left = records[1:] if edge.whole else records
        found = store.find_all(run.id, edge.record, asking=asking)
        assert content(edge, found) == content(edge, in_order(edge, left)), edge.type
        for name in edge.keys:
            replaced = {name: {getattr(first, name)}}
            store.put(run.id, edge.record, [], asking=asking, replacing=replaced)
            left = [r for r in left if getattr(r, name) not in replaced[name]]
            found = store.find_all(run.id, edge.record, asking=asking)
            assert content(edge, found) == content(edge, in_order(edge, left)), edge.type
    store.delete(run.id)
    for edge, asking, records in put:
        assert store.find_all(run.id, edge.record, asking=asking) == []
        found = store.find_all(other_run.id, edge.record, asking=asking)
        assert content(edge, found) == content(edge, records[:1]), edge.type
    for node, records in held:
        assert store.find_all(run.id, node.record) == []
        found = store.find_all(other_run.id, node.record)
        assert node_content(found) == node_content(records[:1]), node.label
    store.delete(other_run.id)


def test_records_come_back_as_they_were_put(store: Store) -> None:
    check_records(store, 3 if "://" in store.url else 12)


def check_records(store: Store, examples: int) -> None:
    """Put, find, replace and delete records of each kind that is declared."""

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run_check(data: st.DataObject) -> None:
        check(store, data)

    run_check()
    assert not store.find_faults()


@pytest.mark.slow  # a process of its own
@pytest.mark.integration
@pytest.mark.parametrize("script", ["new_edge.py", "new_node.py"])
def test_a_new_kind_is_its_declaration(store: Store, tmp_path: Path, script: str) -> None:
    command = [sys.executable, str(Path(__file__).parent / script), store.url, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
