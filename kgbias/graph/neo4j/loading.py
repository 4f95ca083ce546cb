"""What a server lacks, created: no node and no edge is looked for, as MERGE does for each. Rows are
lists, since the keys of a map would be sent with each."""

import threading
from collections.abc import Callable, Collection, Sequence
from queue import SimpleQueue

from kgbias.graph.neo4j.session import Row
from kgbias.graph.types import Generation, Triple, statement_id, storable, triple_id

FIELDS = (
    "path", "arm", "strategy", "iteration", "attempt", "outcome", "reason", "template",
    "template_hash", "answer_key",
)  # fmt: skip
_NUMBERS = ("iteration", "attempt", "count")
_TEXTS = (*(field for field in FIELDS if field not in _NUMBERS), "prompt")
_PROPERTIES = ("uid", "group_uid", *_TEXTS, *_NUMBERS)
_PLACED = ", ".join(f"{name}: row[{place}]" for place, name in enumerate(_PROPERTIES))
_YIELD = len(_PROPERTIES)

_NODES = {
    "SocialGroup": "CREATE (n:SocialGroup {uid: row[0], name: row[1]})",
    "Predicate": "CREATE (n:Predicate {uid: row[0], text: row[1], name: row[1]})",
    "Object": "CREATE (n:Object {uid: row[0], text: row[1], name: row[1]})",
}

_TRIPLES = """
UNWIND $rows AS row
MATCH (g:SocialGroup {uid: row[1]})
MATCH (p:Predicate {uid: row[2]})
MATCH (o:Object {uid: row[3]})
WITH row, g, p, o, g.name + ' ' + p.text + ' ' + o.text AS text
CREATE (t:Triple {uid: row[0], group_uid: row[1], text: text, name: text})
CREATE (t)-[:SUBJECT]->(g)
CREATE (t)-[:PREDICATE]->(p)
CREATE (t)-[:OBJECT]->(o)"""

_STATES = """
UNWIND $rows AS row
MATCH (s:Statement {uid: row[4]})
MATCH (t:Triple {uid: row[0]})
CREATE (t)-[:STATES]->(s)"""

_GENERATIONS = f"""
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
CREATE (n:Generation {{{_PLACED}}})
CREATE (n)-[:IN]->(run)"""

_YIELDING = f"""
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
MATCH (t:Triple {{uid: row[{_YIELD}]}})
CREATE (n:Generation {{{_PLACED}}})
CREATE (n)-[:IN]->(run)
CREATE (n)-[:YIELDED {{count: n.count, predicate: row[{_YIELD + 1}], object: row[{_YIELD + 2}]}}]
       ->(t)"""

TripleRow = tuple[str, str, str, str, str]
"""The ids of a triple, its group, predicate, object and statement."""
TripleRows = tuple[dict[str, dict[str, str]], list[TripleRow]]
"""The texts of nodes, by label and id, and triples."""


def triple_rows(triples: Sequence[Triple]) -> TripleRows:
    """The distinct nodes of triples, by label and id, and the triples. In the order of their ids,
    so that two writers never wait for each other."""
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


def triple_uids(found: TripleRows) -> dict[str, Collection[str]]:
    """The ids of all nodes of triples, by label."""
    texts, rows = found
    return {**texts, "Triple": [row[0] for row in rows], "Statement": {row[4] for row in rows}}


def created_triples(found: TripleRows, known: Collection[str]) -> list[tuple[str, Row]]:
    """The writes of those triples and nodes that are not `known`, by their ids."""
    texts, rows = found
    new = [row for row in rows if row[0] not in known]
    nodes = {
        label: [[uid, text] for uid, text in own.items() if uid not in known]
        for label, own in texts.items()
    }
    statements: list[tuple[str, Row]] = [
        (f"UNWIND $rows AS row {_NODES[label]}", {"rows": own}) for label, own in nodes.items()
    ]
    statements += [
        (_TRIPLES, {"rows": new}),
        (_STATES, {"rows": [row for row in new if row[4] in known]}),
    ]
    return [statement for statement in statements if statement[1]["rows"]]


def created_generations(run_id: str, batch: Sequence[Generation]) -> list[tuple[str, Row]]:
    """The writes of generations that are new, whose triples are there."""
    silent, yielding = [], []
    for g in batch:
        row = [
            g.id,
            g.group_id,
            *(storable(str(getattr(g, name))) for name in _TEXTS),
            *(getattr(g, name) for name in _NUMBERS),
        ]
        if (t := g.triple) is None:
            silent.append(row)
        else:
            yielding.append([*row, t.id, storable(t.predicate), storable(t.object)])
    return [
        (query, {"run": run_id, "rows": rows})
        for query, rows in ((_GENERATIONS, silent), (_YIELDING, yielding))
        if rows
    ]


class Behind:
    """Does one thing at a time in a thread, while the next one is prepared. What was begun when the
    program is stopped may or may not be done."""

    def __init__(self) -> None:
        self._outcome: SimpleQueue[Exception | None] | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Begin, when what was begun before is done. Raises what that raised."""
        self.wait()
        outcome: SimpleQueue[Exception | None] = SimpleQueue()

        def run() -> None:
            try:
                work()
            except Exception as error:
                outcome.put(error)
            else:
                outcome.put(None)

        threading.Thread(target=run, daemon=True).start()
        self._outcome = outcome

    def wait(self) -> None:
        """Wait for what was begun. Raises what it raised."""
        outcome, self._outcome = self._outcome, None
        if outcome is not None and (error := outcome.get()) is not None:
            raise error
