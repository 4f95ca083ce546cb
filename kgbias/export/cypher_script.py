"""A Cypher script that makes a few thousand triples in any Neo4j, with the labels and properties
that kgbias writes, so that the library in `cypher/` runs on the result."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgbias.export.content import Content
from kgbias.export.decisions import decided, generation_row
from kgbias.graph import shape
from kgbias.graph.decisions import Decision, decision_row
from kgbias.graph.shape import DERIVED, TONES
from kgbias.graph.types import (
    Generation,
    Run,
    TripleView,
    canonical_json,
    node_id,
)

_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile("[\\\\'\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LABELS = (
    "Category", "SocialGroup", "Predicate", "Object", "Triple", "Model", "Run", "Generation",
    "Decision",
)  # fmt: skip


def literal(value: Any) -> str:
    """A value as Cypher writes it."""
    if value is None:
        return "null"
    if isinstance(value, str):
        text = _ESCAPED.sub(lambda m: _ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04X}", value)
        return f"'{text}'"
    return json.dumps(value)


def write_script(content: Content, path: Path) -> None:
    """One statement a line: the run, its triples, and the answers that people decided about with
    their decisions. Running it twice changes nothing."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for line in content.heading:
            file.write(f"// {line}\n")
        for label in _LABELS:
            file.write(f"{shape.constraint(shape.node(label))};\n")
        file.write(_run(content.run.record))
        for t in content.triples:
            file.write(_statement(content, t))
        for generation, found in decided(content.run, {t.id for t in content.triples}):
            file.write(_generation(content.run.record, generation))
            for decision in found:
                file.write(_decision(content.run.record, decision))


def _run(run: Run) -> str:
    """The run with its model and seeds."""
    model, config = run.model, canonical_json(run.config)
    lines = [
        f"MERGE (m:Model {{uid: {literal(model.id)}}}) SET m.name = {literal(model.name)}, "
        f"m.revision = {literal(model.revision)} "
        f"MERGE (r:Run {{uid: {literal(run.id)}}}) ON CREATE SET r.seq = 0 "
        f"SET r.name = {literal(run.name)}, r.kind = {literal(run.kind)}, "
        f"r.config = {literal(config)}, "
        f"r.settings = {literal(canonical_json(run.settings))}, r.status = {literal(run.status)}, "
        f"r.created = {literal(run.created)}, r.version = {literal(run.version)} "
        "MERGE (r)-[:OF]->(m);\n"
    ]
    for place, group in enumerate(run.groups):
        lines.append(
            f"MATCH (r:Run {{uid: {literal(run.id)}}}) "
            f"MERGE (g:SocialGroup {{uid: {literal(group.id)}}}) "
            f"ON CREATE SET g.name = {literal(group.name)} "
            f"MERGE (r)-[s:SEEDED {{position: {place}}}]->(g) "
            f"SET s.category = {literal(group.category)};\n"
        )
    return "".join(lines)


def _statement(content: Content, t: TripleView) -> str:
    scores = {m: literal(t.scores[m].value if m in t.scores else None) for m in DERIVED}
    label = t.scores["regard"].label if "regard" in t.scores else ""
    tone = label.upper() if label in TONES else ""
    ends = (
        ("g", "SocialGroup", t.group_id, "name", t.group),
        ("p", "Predicate", node_id("predicate", t.predicate), "text", t.predicate),
        ("o", "Object", node_id("object", t.object), "text", t.object),
    )
    merged = " ".join(
        f"MERGE ({v}:{label} {{uid: {literal(uid)}}}) "
        f"ON CREATE SET {v}.{key} = {literal(text)}, {v}.name = {literal(text)}"
        for v, label, uid, key, text in ends
    )
    text = f"{t.group} {t.predicate} {t.object}"
    return (
        f"{merged} MERGE (t:Triple {{uid: {literal(t.id)}}}) "
        f"ON CREATE SET t.group_uid = {literal(t.group_id)}, t.text = {literal(text)}, "
        f"t.name = {literal(text)} "
        "MERGE (t)-[:SUBJECT]->(g) MERGE (t)-[:PREDICATE]->(p) MERGE (t)-[:OBJECT]->(o) "
        + " ".join(
            f"MERGE (g)-[{v}:{kind} {{run: {literal(content.run.name)}, triple: {literal(t.id)}, "
            f"arm: {literal(t.arm)}}}]->(o) SET {v}.predicate = {literal(t.predicate)}, "
            f"{v}.count = {t.count}, {', '.join(f'{v}.{m} = {n}' for m, n in scores.items())}"
            for v, kind in (("s", "STEREOTYPE"), ("e", tone))
            if kind
        )
        + ";\n"
    )


def _generation(run: Run, g: Generation) -> str:
    """An answer that was reviewed, and the triple that it counts as."""
    node = f"(n:Generation {{uid: {literal(g.id)}}})"
    lines = [
        f"MATCH (r:Run {{uid: {literal(run.id)}}}) MERGE {node} "
        f"SET {_properties('n', generation_row(g))} MERGE (n)-[:IN]->(r);\n"
    ]
    if (t := g.triple) is not None:
        lines.append(
            f"MATCH {node}, (t:Triple {{uid: {literal(t.id)}}}) MERGE (n)-[y:YIELDED]->(t) "
            f"SET y.count = {g.count}, y.predicate = {literal(t.predicate)}, "
            f"y.object = {literal(t.object)};\n"
        )
    return "".join(lines)


def _decision(run: Run, decision: Decision) -> str:
    return (
        f"MATCH (r:Run {{uid: {literal(run.id)}}}), "
        f"(n:Generation {{uid: {literal(decision.generation_id)}}}) "
        f"MERGE (d:Decision {{uid: {literal(decision.id)}}}) "
        f"SET {_properties('d', decision_row(decision))} "
        "MERGE (r)-[:REVIEWED]->(d) MERGE (d)-[:DECIDES]->(n);\n"
    )


def _properties(variable: str, row: Mapping[str, Any]) -> str:
    return ", ".join(f"{variable}.{name} = {literal(value)}" for name, value in row.items())
