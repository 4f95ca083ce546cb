"""Creating what a server lacks, without looking for each node and edge as MERGE does. Rows are
lists, since the keys of a map would be sent with each; what many rows share is sent once, and found
by its place; ids, which have no spaces, are sent as one text."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from kgbias.backends.neo4j.session import ParametrisedQuery
from kgbias.graph import shape
from kgbias.graph.graph_tables import said_words
from kgbias.graph.record import property_getters
from kgbias.graph.types import Generation, Triple, statement_id, storable, triple_id

_OWN_PROPERTIES = ("path", "answer_key", "prompt")  # of each generation; the rest is shared by many
_SHARED_PROPERTIES = tuple(
    p.name
    for p in shape.get_node("Generation").properties
    if p.name not in ("uid", *_OWN_PROPERTIES)
)
_GET_PROPERTY = property_getters(Generation)
_GET_SHARED = [_GET_PROPERTY[name] for name in _SHARED_PROPERTIES]
_GET_OWN = [_GET_PROPERTY[name] for name in _OWN_PROPERTIES]
_PROPERTY_MAP = ", ".join(
    (
        "uid: row[0]",
        *(f"{name}: row[{place}]" for place, name in enumerate(_OWN_PROPERTIES, 2)),
        *(f"{name}: shared[{place}]" for place, name in enumerate(_SHARED_PROPERTIES)),
    )
)

_CREATE_NODES = {
    "SocialGroup": "CREATE (n:SocialGroup {uid: row[0], name: row[1]})",
    "Predicate": "CREATE (n:Predicate {uid: row[0], text: row[1], name: row[1]})",
}

# For triples of new objects and of existing ones. Groups and predicates are few: they are found
# once. If one is gone by then, the places of the others would shift, so nothing is created (see
# `MissingNodes`).
_CREATE_TRIPLES = """
CALL () {{
    UNWIND split($groups, ' ') AS uid MATCH (g:SocialGroup {{uid: uid}}) RETURN collect(g) AS groups
}}
CALL () {{
    UNWIND split($predicates, ' ') AS uid MATCH (p:Predicate {{uid: uid}})
    RETURN collect(p) AS predicates
}}
WITH groups, predicates WHERE size(groups) = $counts[0] AND size(predicates) = $counts[1]
UNWIND $rows AS object
{found}
UNWIND object[2] AS row
WITH row, o, groups[row[1]] AS g, predicates[row[2]] AS p
WITH row, g, p, o, coalesce(row[3], g.name) + ' ' + p.text + ' ' + o.text AS text
CREATE (t:Triple {{uid: row[0], group_uid: g.uid, text: text, name: text}})
{edges}"""
_CREATE_WITH_NEW_OBJECTS = _CREATE_TRIPLES.format(
    edges=shape.write_triple_edges("CREATE"),
    found="CREATE (o:Object {uid: object[0], text: object[1], name: object[1]})\n"
    "WITH groups, predicates, o, object",
)
_CREATE_WITH_KNOWN_OBJECTS = _CREATE_TRIPLES.format(
    edges=shape.write_triple_edges("CREATE"), found="MATCH (o:Object {uid: object[0]})"
)

_CREATE_STATES = """
UNWIND $rows AS row
MATCH (t:Triple {uid: row[0]})
MATCH (s:Statement {uid: row[1]})
CREATE (t)-[:STATES]->(s)"""

_CREATE_SILENT_GENERATIONS = f"""
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
WITH run, row, $shared[row[1]] AS shared
CREATE (n:Generation {{{_PROPERTY_MAP}}})
CREATE (n)-[:IN]->(run)"""

_CREATE_YIELDING_GENERATIONS = f"""
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
MATCH (t:Triple {{uid: row[5]}})
WITH run, row, t, $shared[row[1]] AS shared
CREATE (n:Generation {{{_PROPERTY_MAP}}})
CREATE (n)-[:IN]->(run)
CREATE (n)-[:YIELDED {{count: shared[{_SHARED_PROPERTIES.index("count")}], predicate: row[6],
                       object: row[7]}}]->(t)"""


class TripleRow(NamedTuple):
    """The ids of a triple, its group, predicate, object and statement; and the group's name in it,
    if that is another than the node's. The driver sends no records: rows are lists made of it."""

    uid: str
    group: str
    predicate: str
    object: str
    statement: str
    group_said: str | None


class TripleRows(NamedTuple):
    """The texts of nodes, by label and id, and triples."""

    texts_by_label: dict[str, dict[str, str]]
    triples: list[TripleRow]


def collect_triple_rows(triples: Sequence[Triple]) -> TripleRows:
    """The distinct nodes of triples, by label and id, and the triples, all in order of id: two
    writers then never wait for each other."""
    texts: dict[str, dict[str, str]] = {"SocialGroup": {}, "Predicate": {}, "Object": {}}
    rows: dict[str, TripleRow] = {}
    for triple in triples:
        ids = (triple.group_id, triple.predicate_id, triple.object_id)
        for nodes, uid, text in zip(
            texts.values(), ids, (triple.subject, triple.predicate, triple.object), strict=True
        ):
            if uid not in nodes:
                nodes[uid] = storable(text)
        uid = triple_id(*ids)
        if uid not in rows:
            group_said = storable(triple.group) if triple.english else None
            rows[uid] = TripleRow(uid, *ids, statement_id(ids[1], ids[2]), group_said)
    ordered = {label: dict(sorted(nodes.items())) for label, nodes in texts.items()}
    return TripleRows(ordered, [rows[uid] for uid in sorted(rows)])


def select_lacking(all_rows: TripleRows, known_ids: Collection[str]) -> TripleRows:
    """The triples that are not `known_ids`, without the nodes that only known ones have."""
    rows = [row for row in all_rows.triples if row.uid not in known_ids]
    ends = {uid for row in rows for uid in (row.group, row.predicate, row.object)}
    texts_by_label = {
        label: {uid: text for uid, text in nodes.items() if uid in ends}
        for label, nodes in all_rows.texts_by_label.items()
    }
    return TripleRows(texts_by_label, rows)


class Creation(NamedTuple):
    """Queries that create, how many nodes they create, and which of these others may create too."""

    queries: list[ParametrisedQuery]
    node_count: int
    shared_ids: frozenset[str] = frozenset()


def build_triple_creation(lacking_rows: TripleRows, known_ids: Collection[str]) -> Creation:
    """The writes of triples that a server lacks, and of those of their nodes whose ids are not
    `known_ids`."""
    texts = lacking_rows.texts_by_label
    nodes = {
        label: [[uid, texts[label][uid]] for uid in texts[label] if uid not in known_ids]
        for label in _CREATE_NODES
    }
    queries: list[ParametrisedQuery] = [
        (f"UNWIND $rows AS row {_CREATE_NODES[label]}", {"rows": group_rows})
        for label, group_rows in nodes.items()
        if group_rows
    ]
    groups, predicates = _KeyPlaces(), _KeyPlaces()
    of_object: dict[str, list[list[str | int | None]]] = {}
    for row in lacking_rows.triples:
        of_object.setdefault(row.object, []).append(
            [row.uid, groups[row.group], predicates[row.predicate], row.group_said]
        )
    parameters = {
        "groups": " ".join(groups),
        "predicates": " ".join(predicates),
        "counts": [len(groups), len(predicates)],
    }
    new_objects = [uid for uid in texts["Object"] if uid not in known_ids]
    known_objects = sorted(uid for uid in of_object if uid in known_ids)
    new_object_rows = [[uid, texts["Object"][uid], of_object.get(uid, [])] for uid in new_objects]
    known_object_rows = [[uid, "", of_object[uid]] for uid in known_objects]
    queries += [
        (query, {"rows": group_rows, **parameters})
        for query, group_rows in (
            (_CREATE_WITH_NEW_OBJECTS, new_object_rows),
            (_CREATE_WITH_KNOWN_OBJECTS, known_object_rows),
        )
        if group_rows
    ]
    # A statement is a node only if more than triples holds it, such as a probe.
    stated_rows = [
        [row.uid, row.statement] for row in lacking_rows.triples if row.statement in known_ids
    ]
    if stated_rows:
        queries.append((_CREATE_STATES, {"rows": stated_rows}))
    uids = [
        *new_objects,
        *(row.uid for row in lacking_rows.triples),
        *(uid for label_rows in nodes.values() for uid, _ in label_rows),
    ]
    return Creation(queries, len(uids), frozenset(uids))


def build_generation_creation(run_id: str, batch: Sequence[Generation]) -> Creation:
    """The writes of new generations, whose triples exist."""
    shared = _KeyPlaces()
    silent_rows, yielding_rows = [], []
    for generation in batch:
        shared_values = tuple(get(generation) for get in _GET_SHARED)
        own_values = [get(generation) for get in _GET_OWN]
        row = [generation.id, shared[shared_values], *own_values]
        triple = generation.triple
        if triple is None:
            silent_rows.append(row)
        else:
            yielding_rows.append([*row, triple.id, *said_words(triple).values()])
    parameters = {"run": run_id, "shared": [list(shared_values) for shared_values in shared]}
    queries: list[ParametrisedQuery] = [
        (query, {"rows": rows, **parameters})
        for query, rows in (
            (_CREATE_SILENT_GENERATIONS, silent_rows),
            (_CREATE_YIELDING_GENERATIONS, yielding_rows),
        )
        if rows
    ]
    return Creation(queries, len(batch))


class _KeyPlaces(dict[Any, int]):
    """The place of each key, in order of first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = place = len(self)
        return place
