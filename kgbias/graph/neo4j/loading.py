"""Creating what a server lacks, without looking for each node and edge as MERGE does. Rows are
lists, since the keys of a map would be sent with each; what many rows share is sent once, and found
by its place; ids, which have no spaces, are sent as one text."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from kgbias.graph.neo4j.session import Row
from kgbias.graph.types import Generation, Triple, statement_id, storable, triple_id

_OWN = ("path", "answer_key", "prompt")  # of each generation; the rest is shared by many
_SHARED = (
    "group_uid", "arm", "strategy", "iteration", "attempt", "outcome", "reason", "template",
    "template_hash", "count",
)  # fmt: skip
_PLACED = ", ".join(
    (
        "uid: row[0]",
        *(f"{name}: row[{place}]" for place, name in enumerate(_OWN, 2)),
        *(f"{name}: shared[{place}]" for place, name in enumerate(_SHARED)),
    )
)

_NODES = {
    "SocialGroup": "CREATE (n:SocialGroup {uid: row[0], name: row[1]})",
    "Predicate": "CREATE (n:Predicate {uid: row[0], text: row[1], name: row[1]})",
}

# For triples of new objects and of existing ones. Groups and predicates are few: they are found
# once. If one is gone by then, the places of the others would shift, so nothing is created (see
# `Incomplete`).
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
WITH row, g, p, o, g.name + ' ' + p.text + ' ' + o.text AS text
CREATE (t:Triple {{uid: row[0], group_uid: g.uid, text: text, name: text}})
CREATE (t)-[:SUBJECT]->(g)
CREATE (t)-[:PREDICATE]->(p)
CREATE (t)-[:OBJECT]->(o)"""
_NEW_OBJECTS = _OBJECTS.format(
    found="CREATE (o:Object {uid: object[0], text: object[1], name: object[1]})\n"
    "WITH groups, predicates, o, object"
)
_OLD_OBJECTS = _OBJECTS.format(found="MATCH (o:Object {uid: object[0]})")

_STATES = """
UNWIND $rows AS row
MATCH (s:Statement {uid: row[4]})
MATCH (t:Triple {uid: row[0]})
CREATE (t)-[:STATES]->(s)"""

_GENERATIONS = f"""
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
WITH run, row, $shared[row[1]] AS shared
CREATE (n:Generation {{{_PLACED}}})
CREATE (n)-[:IN]->(run)"""

_YIELDING = f"""
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
MATCH (t:Triple {{uid: row[5]}})
WITH run, row, t, $shared[row[1]] AS shared
CREATE (n:Generation {{{_PLACED}}})
CREATE (n)-[:IN]->(run)
CREATE (n)-[:YIELDED {{count: shared[{_SHARED.index("count")}], predicate: row[6],
                       object: row[7]}}]->(t)"""

TripleRow = tuple[str, str, str, str, str]
"""The ids of a triple, its group, predicate, object and statement."""
TripleRows = tuple[dict[str, dict[str, str]], list[TripleRow]]
"""The texts of nodes, by label and id, and triples."""


def triple_rows(triples: Sequence[Triple]) -> TripleRows:
    """The distinct nodes of triples, by label and id, and the triples, all in order of id: two
    writers then never wait for each other."""
    texts: dict[str, dict[str, str]] = {"SocialGroup": {}, "Predicate": {}, "Object": {}}
    rows: dict[str, TripleRow] = {}
    for t in triples:
        ids = (t.group_id, t.predicate_id, t.object_id)
        for nodes, uid, text in zip(
            texts.values(), ids, (t.group, t.predicate, t.object), strict=True
        ):
            if uid not in nodes:
                nodes[uid] = storable(text)
        uid = triple_id(*ids)
        if uid not in rows:
            rows[uid] = (uid, *ids, statement_id(ids[1], ids[2]))
    ordered = {label: dict(sorted(nodes.items())) for label, nodes in texts.items()}
    return ordered, sorted(rows.values())


def lacking(found: TripleRows, known: Collection[str]) -> TripleRows:
    """The triples that are not `known`, without the nodes that only known ones have."""
    texts, rows = found
    rows = [row for row in rows if row[0] not in known]
    ends = {uid for row in rows for uid in row[1:4]}
    return {
        label: {uid: text for uid, text in nodes.items() if uid in ends}
        for label, nodes in texts.items()
    }, rows


class Created(NamedTuple):
    """Statements that create, how many nodes they create, and which of these others may create
    too."""

    statements: list[tuple[str, Row]]
    nodes: int
    shared: frozenset[str] = frozenset()


def created_triples(found: TripleRows, known: Collection[str]) -> Created:
    """The writes of triples that a server lacks, and of those of their nodes whose ids are not
    `known`."""
    texts, new = found
    nodes = {
        label: [[uid, texts[label][uid]] for uid in texts[label] if uid not in known]
        for label in _NODES
    }
    statements: list[tuple[str, Row]] = [
        (f"UNWIND $rows AS row {_NODES[label]}", {"rows": own})
        for label, own in nodes.items()
        if own
    ]
    groups, predicates = _Places(), _Places()
    of_object: dict[str, list[list[str | int]]] = {}
    for uid, group, predicate, object, _ in new:
        of_object.setdefault(object, []).append([uid, groups[group], predicates[predicate]])
    parameters = {
        "groups": " ".join(groups),
        "predicates": " ".join(predicates),
        "counts": [len(groups), len(predicates)],
    }
    fresh = [uid for uid in texts["Object"] if uid not in known]
    there = sorted(uid for uid in of_object if uid in known)
    ends = [[uid, texts["Object"][uid], of_object.get(uid, [])] for uid in fresh]
    old = [[uid, "", of_object[uid]] for uid in there]
    statements += [
        (query, {"rows": own, **parameters})
        for query, own in ((_NEW_OBJECTS, ends), (_OLD_OBJECTS, old))
        if own
    ]
    if states := [row for row in new if row[4] in known]:
        statements.append((_STATES, {"rows": states}))
    made: list[Sequence[Any]] = [*ends, *new, *(row for own in nodes.values() for row in own)]
    uids = [row[0] for row in made]
    return Created(statements, len(uids), frozenset(uids))


def created_generations(run_id: str, batch: Sequence[Generation]) -> Created:
    """The writes of new generations, whose triples exist."""
    shared = _Places()
    silent, yielding = [], []
    for g in batch:
        common = (
            g.group_id, storable(g.arm), storable(g.strategy), g.iteration, g.attempt,
            storable(g.outcome), storable(g.reason), storable(g.template),
            storable(g.template_hash), g.count,
        )  # fmt: skip
        row = [g.id, shared[common], storable(g.path), storable(g.answer_key), storable(g.prompt)]
        if (t := g.triple) is None:
            silent.append(row)
        else:
            yielding.append([*row, t.id, storable(t.predicate), storable(t.object)])
    own = {"run": run_id, "shared": [list(common) for common in shared]}
    statements: list[tuple[str, Row]] = [
        (query, {"rows": rows, **own})
        for query, rows in ((_GENERATIONS, silent), (_YIELDING, yielding))
        if rows
    ]
    return Created(statements, len(batch))


class _Places(dict[Any, int]):
    """The place of each key, in order of first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = place = len(self)
        return place
