"""A Cypher script that makes a few thousand triples in any Neo4j, with the labels and properties
that kgbias writes: the library in `cypher/` runs on the result."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgbias.export.content import ExportContent
from kgbias.export.neo4j_passes import iter_reviewed_generations
from kgbias.graph import shape
from kgbias.graph.decisions import Decision, decision_properties
from kgbias.graph.graph_tables import (
    generation_node,
    property_values,
    seed_edges,
    triple_node,
    yielded_edge,
)
from kgbias.graph.labels import Label
from kgbias.graph.shape import DERIVED_MEASURES, TONES
from kgbias.graph.types import (
    Generation,
    Run,
    TripleView,
    node_id,
)

_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile("[\\\\'\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONSTRAINED_LABELS = (
    "Category",
    "SocialGroup",
    "Predicate",
    "Object",
    "Triple",
    "Model",
    "Run",
    "Generation",
    "Decision",
    "Rater",
)
_ROWS_PER_STATEMENT = 100  # per statement


def cypher_literal(value: Any) -> str:
    """A value as Cypher writes it."""
    if value is None:
        return "null"
    if isinstance(value, str):
        text = _ESCAPED.sub(lambda m: _ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04X}", value)
        return f"'{text}'"
    return json.dumps(value)


def write_cypher(content: ExportContent, path: Path) -> None:
    """Write one statement per line: the run, its triples, a hundred at a time, the reviewed
    answers with the decisions about them, and the labels that raters gave. Running the script twice
    changes nothing."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for line in content.heading:
            file.write(f"// {line}\n")
        for label in _CONSTRAINED_LABELS:
            file.write(f"{shape.constraint_query(shape.get_node(label))};\n")
        file.write(_run_statements(content.run.record))
        file.writelines(_triple_statements(content.run.record, content.triples))
        for generation, decisions in iter_reviewed_generations(
            content.run, {t.id for t in content.triples}
        ):
            file.write(_generation_statements(content.run.record, generation))
            for decision in decisions:
                file.write(_decision_statement(content.run.record, decision))
        triple_ids = {t.id for t in content.triples}
        labels = [x for x in content.run.store.labels() if x.triple_id in triple_ids]
        for start in range(0, len(labels), _ROWS_PER_STATEMENT):
            file.write(_labels_statement(labels[start : start + _ROWS_PER_STATEMENT]))


def _run_statements(run: Run) -> str:
    """The run with its model and seeds."""
    model = run.model
    lines = [
        f"MERGE (m:Model {{uid: {cypher_literal(model.id)}}}) SET m.name = "
        f"{cypher_literal(model.title)}, "
        f"m.revision = {cypher_literal(model.revision)} "
        f"MERGE (r:Run {{uid: {cypher_literal(run.id)}}}) ON CREATE SET r.seq = 0 "
        f"SET {_set_properties('r', property_values('Run', run))} "
        "MERGE (r)-[:OF]->(m);\n"
    ]
    *_, seed_rows = seed_edges(run)
    for group, (_, uid, values) in zip(run.groups, seed_rows, strict=True):
        own_values = {
            name: value
            for name, value in values.items()
            if name != "position" and value is not None
        }
        lines.append(
            f"MATCH (r:Run {{uid: {cypher_literal(run.id)}}}) "
            f"MERGE (g:SocialGroup {{uid: {cypher_literal(uid)}}}) "
            f"ON CREATE SET g.name = {cypher_literal(group.node_name)} "
            f"MERGE (r)-[s:SEEDED {{position: {values['position']}}}]->(g) "
            f"SET {_set_properties('s', own_values)};\n"
        )
    return "".join(lines)


def _triple_statements(run: Run, triples: Iterable[TripleView]) -> Iterator[str]:
    """Many triples per statement: a server takes longer to plan a statement than to run it."""
    triples_by_tone: dict[str, list[TripleView]] = {}
    for triple in triples:
        label = triple.scores["regard"].label if "regard" in triple.scores else ""
        triples_by_tone.setdefault(label.upper() if label in TONES else "", []).append(triple)
    for tone, tone_triples in triples_by_tone.items():
        text = _triple_merge_clauses(run, tone)
        for start in range(0, len(tone_triples), _ROWS_PER_STATEMENT):
            rows = ", ".join(
                _triple_row(triple) for triple in tone_triples[start : start + _ROWS_PER_STATEMENT]
            )
            yield f"UNWIND [{rows}] AS row {text};\n"


def _triple_row(triple: TripleView) -> str:
    node = triple_node(triple)
    row = {
        "uid": node["uid"],
        "text": node["text"],
        "arm": triple.arm,
        "count": triple.count,
        "group_uid": node["group_uid"],
        "group": triple.group,
        "predicate_uid": node_id("predicate", triple.predicate),
        "predicate": triple.predicate,
        "object_uid": node_id("object", triple.object),
        "object": triple.object,
    } | {m: triple.scores[m].value if m in triple.scores else None for m in DERIVED_MEASURES}
    return _cypher_map(row)


def _triple_merge_clauses(run: Run, tone: str) -> str:
    merge_nodes = " ".join(
        shape.merge_text(p.variable, p.label, f"row.{p.field}_uid", f"row.{p.field}")
        for p in shape.TRIPLE_PARTS
    )
    return (
        f"{merge_nodes} MERGE (t:Triple {{uid: row.uid}}) "
        "ON CREATE SET t.group_uid = row.group_uid, t.text = row.text, t.name = row.text "
        f"{shape.write_triple_edges('MERGE')} "
        + " ".join(
            f"MERGE (g)-[{variable}:{kind} {{run: {cypher_literal(run.name)}, triple: row.uid, "
            f"arm: row.arm}}]->(o) SET {variable}.predicate = row.predicate, "
            f"{variable}.count = row.count, {variable}.language = {cypher_literal(run.language)}, "
            f"{', '.join(f'{variable}.{m} = row.{m}' for m in DERIVED_MEASURES)}"
            for variable, kind in (("s", "STEREOTYPE"), ("e", tone))
            if kind
        )
    )


def _generation_statements(run: Run, generation: Generation) -> str:
    """A reviewed answer, and the triple that it counts as."""
    node = f"(n:Generation {{uid: {cypher_literal(generation.id)}}})"
    ids = {"uid": generation.id, "group_uid": generation.group_id}  # first in the statement
    lines = [
        f"MATCH (r:Run {{uid: {cypher_literal(run.id)}}}) MERGE {node} "
        f"SET {_set_properties('n', ids | generation_node(generation))} MERGE (n)-[:IN]->(r);\n"
    ]
    if (triple := generation.triple) is not None:
        _, triple_id, values = yielded_edge(generation, generation.id, triple.id)
        lines.append(
            f"MATCH {node}, (t:Triple {{uid: {cypher_literal(triple_id)}}}) MERGE "
            f"(n)-[y:YIELDED]->(t) SET {_set_properties('y', values)};\n"
        )
    return "".join(lines)


def _decision_statement(run: Run, decision: Decision) -> str:
    return (
        f"MATCH (r:Run {{uid: {cypher_literal(run.id)}}}), "
        f"(n:Generation {{uid: {cypher_literal(decision.generation_id)}}}) "
        f"MERGE (d:Decision {{uid: {cypher_literal(decision.id)}}}) "
        f"SET {_set_properties('d', decision_properties(decision))} "
        "MERGE (r)-[:REVIEWED]->(d) MERGE (d)-[:DECIDES]->(n);\n"
    )


def _labels_statement(labels: Sequence[Label]) -> str:
    """What raters said of the triples, every label with its rater."""
    rows = [
        {
            "triple": x.triple_id,
            "uid": x.uid,
            "rater": property_values("Rater", x.by, uid=x.by.id),
            "own": property_values("LABELLED", x),
        }
        for x in labels
    ]
    return (
        f"UNWIND [{', '.join(_cypher_map(row) for row in rows)}] AS row "
        "MATCH (t:Triple {uid: row.triple}) "
        "MERGE (r:Rater {uid: row.rater.uid}) SET r += row.rater "
        "MERGE (r)-[e:LABELLED {uid: row.uid}]->(t) SET e += row.own;\n"
    )


def _cypher_map(row: Mapping[str, Any]) -> str:
    cells = (
        (k, _cypher_map(v) if isinstance(v, Mapping) else cypher_literal(v)) for k, v in row.items()
    )
    return f"{{{', '.join(f'{name}: {value}' for name, value in cells)}}}"


def _set_properties(variable: str, row: Mapping[str, Any]) -> str:
    return ", ".join(f"{variable}.{name} = {cypher_literal(value)}" for name, value in row.items())
