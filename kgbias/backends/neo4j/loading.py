"""Creating what a server lacks, without looking for each node and edge as MERGE does. Rows are
lists, since the keys of a map would be sent with each; what many rows share is sent once, and found
by its place; ids, which have no spaces, are sent as one text."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from kgbias.backends.neo4j.session import Row
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

_NODES = {
    "SocialGroup": "CREATE (n:SocialGroup {uid: row[0], name: row[1]})",
    "Predicate": "CREATE (n:Predicate {uid: row[0], text: row[1], name: row[1]})",
}

# For triples of new objects and of existing ones. Groups and predicates are few: they are found
# once. If one is gone by then, the places of the others would shift, so nothing is created (see
# `IncompleteWrite`).
_OBJECTS = """
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
_NEW_OBJECTS = _OBJECTS.format(
    edges=shape.write_triple_edges("CREATE"),
    found="CREATE (o:Object {uid: object[0], text: object[1], name: object[1]})\n"
    "WITH groups, predicates, o, object",
)
_OLD_OBJECTS = _OBJECTS.format(
    edges=shape.write_triple_edges("CREATE"), found="MATCH (o:Object {uid: object[0]})"
)

_STATES = """
UNWIND $rows AS row
MATCH (s:Statement {uid: row[4]})
MATCH (t:Triple {uid: row[0]})
CREATE (t)-[:STATES]->(s)"""

_GENERATIONS = f"""
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
WITH run, row, $shared[row[1]] AS shared
CREATE (n:Generation {{{_PROPERTY_MAP}}})
CREATE (n)-[:IN]->(run)"""

_YIELDING_GENERATIONS = f"""
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
MATCH (t:Triple {{uid: row[5]}})
WITH run, row, t, $shared[row[1]] AS shared
CREATE (n:Generation {{{_PROPERTY_MAP}}})
CREATE (n)-[:IN]->(run)
CREATE (n)-[:YIELDED {{count: shared[{_SHARED_PROPERTIES.index("count")}], predicate: row[6],
                       object: row[7]}}]->(t)"""

TripleRow = tuple[str, str, str, str, str, str | None]
"""The ids of a triple, its group, predicate, object and statement; and the group's name in it, if
that is another than the node's."""
TripleRows = tuple[dict[str, dict[str, str]], list[TripleRow]]
"""The texts of nodes, by label and id, and triples."""


def triple_rows(triples: Sequence[Triple]) -> TripleRows:
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
            said = storable(triple.group) if triple.english else None
            rows[uid] = (uid, *ids, statement_id(ids[1], ids[2]), said)
    ordered = {label: dict(sorted(nodes.items())) for label, nodes in texts.items()}
    return ordered, [rows[uid] for uid in sorted(rows)]


def select_lacking(all_rows: TripleRows, known_ids: Collection[str]) -> TripleRows:
    """The triples that are not `known_ids`, without the nodes that only known ones have."""
    texts, rows = all_rows
    rows = [row for row in rows if row[0] not in known_ids]
    ends = {uid for row in rows for uid in row[1:4]}
    return {
        label: {uid: text for uid, text in nodes.items() if uid in ends}
        for label, nodes in texts.items()
    }, rows


class CreateBatch(NamedTuple):
    """Statements that create, how many nodes they create, and which of these others may create
    too."""

    statements: list[tuple[str, Row]]
    nodes: int
    shared: frozenset[str] = frozenset()


def create_triples(lacking_rows: TripleRows, known_ids: Collection[str]) -> CreateBatch:
    """The writes of triples that a server lacks, and of those of their nodes whose ids are not
    `known_ids`."""
    texts, new_triples = lacking_rows
    nodes = {
        label: [[uid, texts[label][uid]] for uid in texts[label] if uid not in known_ids]
        for label in _NODES
    }
    statements: list[tuple[str, Row]] = [
        (f"UNWIND $rows AS row {_NODES[label]}", {"rows": group_rows})
        for label, group_rows in nodes.items()
        if group_rows
    ]
    groups, predicates = _KeyPlaces(), _KeyPlaces()
    of_object: dict[str, list[list[str | int | None]]] = {}
    for uid, group, predicate, object, _, said in new_triples:
        of_object.setdefault(object, []).append([uid, groups[group], predicates[predicate], said])
    parameters = {
        "groups": " ".join(groups),
        "predicates": " ".join(predicates),
        "counts": [len(groups), len(predicates)],
    }
    new_objects = [uid for uid in texts["Object"] if uid not in known_ids]
    known_objects = sorted(uid for uid in of_object if uid in known_ids)
    new_object_rows = [[uid, texts["Object"][uid], of_object.get(uid, [])] for uid in new_objects]
    known_object_rows = [[uid, "", of_object[uid]] for uid in known_objects]
    statements += [
        (query, {"rows": group_rows, **parameters})
        for query, group_rows in (
            (_NEW_OBJECTS, new_object_rows),
            (_OLD_OBJECTS, known_object_rows),
        )
        if group_rows
    ]
    if stated_rows := [row for row in new_triples if row[4] in known_ids]:
        statements.append((_STATES, {"rows": stated_rows}))
    created_rows: list[Sequence[Any]] = [
        *new_object_rows,
        *new_triples,
        *(row for group_rows in nodes.values() for row in group_rows),
    ]
    uids = [row[0] for row in created_rows]
    return CreateBatch(statements, len(uids), frozenset(uids))


def create_generations(run_id: str, batch: Sequence[Generation]) -> CreateBatch:
    """The writes of new generations, whose triples exist."""
    shared = _KeyPlaces()
    silent_rows, yielding_rows = [], []
    for generation in batch:
        shared_values = tuple(get(generation) for get in _GET_SHARED)
        own_values = [get(generation) for get in _GET_OWN]
        row = [generation.id, shared[shared_values], *own_values]
        if (triple := generation.triple) is None:
            silent_rows.append(row)
        else:
            yielding_rows.append([*row, triple.id, *said_words(triple).values()])
    parameters = {"run": run_id, "shared": [list(shared_values) for shared_values in shared]}
    statements: list[tuple[str, Row]] = [
        (query, {"rows": rows, **parameters})
        for query, rows in ((_GENERATIONS, silent_rows), (_YIELDING_GENERATIONS, yielding_rows))
        if rows
    ]
    return CreateBatch(statements, len(batch))


class _KeyPlaces(dict[Any, int]):
    """The place of each key, in order of first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = place = len(self)
        return place
