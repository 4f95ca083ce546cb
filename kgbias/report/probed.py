"""The probes as the page's scripts read them: the tokens of each with their surprisal."""

from collections.abc import Sequence
from typing import Any

from kgbias.graph.types import TripleView, node_id, statement_id
from kgbias.report.run_data import RunData

MAX_PROBES = 20_000  # in a page, of one model


def statement_of(triple: TripleView) -> str:
    return statement_id(node_id("predicate", triple.predicate), node_id("object", triple.object))


def probed(data: RunData, triples: Sequence[TripleView]) -> list[dict[str, Any]]:
    """For each model that the run was probed with, its name and, by statement, the probes of the
    triples' statements as [place of the group in the run, rank, tokens, bits], the likeliest group
    first. Where there are too many, those of the first `triples` are kept."""
    places = {g.id: n for n, g in enumerate(data.run.groups)}
    wanted = dict.fromkeys(statement_of(t) for t in triples)
    found = []
    for probing, edges in data.probes:
        by_statement: dict[str, list[list[Any]]] = {}
        for edge in edges:
            if edge.pieces and edge.group_id in places and edge.statement_id in wanted:
                row = [places[edge.group_id], edge.rank, edge.pieces, edge.bits]
                by_statement.setdefault(edge.statement_id, []).append(row)
        kept: dict[str, list[list[Any]]] = {}
        room = MAX_PROBES
        for statement in wanted:
            rows = by_statement.get(statement, [])
            if rows and len(rows) <= room:
                kept[statement] = sorted(rows, key=lambda row: (row[1], row[0]))
                room -= len(rows)
        if kept:
            found.append({"model": probing.model.name, "statements": kept})
    return found
