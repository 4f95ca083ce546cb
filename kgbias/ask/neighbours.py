"""The neighbourhood of an answer: what was said of other groups with the same objects, by the query
`same_object` of the library, on either kind of store."""

from collections.abc import Sequence
from dataclasses import replace

from kgbias.ask.retrieve import Neighbour, Retrieved
from kgbias.graph.selection import Counted
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import TripleView
from kgbias.query import load_query

MOST = 10  # of one answer
_ROWS = 1_000  # read of the graph, before those that do not count are left out


def with_neighbours(run: StoredRun, counted: Counted, found: Retrieved) -> Retrieved:
    """The same with its neighbours among the statements that count. Raises MissingExtra where a
    SQLite store cannot be asked in Cypher."""
    number: dict[tuple[str, str], int] = {}
    for n, statement in enumerate(found.statements, 1):
        number.setdefault((statement.triple.id, statement.triple.arm), n)
    if not number:
        return found
    ids = sorted({id for id, _ in number})
    query = load_query("same_object")
    given = {"triples": ",".join(ids), "run": run.name, "min_acceptability": 0.0, "limit": _ROWS}
    counts = {(t.id, t.arm): t for t in counted.triples}
    rows = query.run(run.store, given).records()
    return replace(found, neighbours=_first(rows, number, counts))


def _first(
    rows: Sequence[dict[str, object]],
    number: dict[tuple[str, str], int],
    counts: dict[tuple[str, str], TripleView],
) -> tuple[Neighbour, ...]:
    neighbours = []
    for row in rows:
        of = number.get((str(row["triple"]), str(row["arm"])))
        key = (str(row["neighbour"]), str(row["arm"]))
        if of is not None and key in counts and key not in number:
            neighbours.append(Neighbour(of, counts[key]))
    return tuple(sorted(neighbours, key=lambda n: n.of)[:MOST])
