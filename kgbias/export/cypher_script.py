"""A Cypher script that makes a few thousand triples in any Neo4j, with the labels and properties
that kgbias writes: the library in `cypher/` runs on the result."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgbias.export.content import Content
from kgbias.export.graph_passes import decided, generation_row
from kgbias.graph import shape
from kgbias.graph.graph_tables import property_values
from kgbias.graph.decisions import Decision, decision_row
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
_LABELS = (
    "Category", "SocialGroup", "Predicate", "Object", "Triple", "Model", "Run", "Generation",
    "Decision", "Rater",
)  # fmt: skip
_ROWS = 100  # per statement


def literal(value: Any) -> str:
    """A value as Cypher writes it."""
    if value is None:
        return "null"
    if isinstance(value, str):
        text = _ESCAPED.sub(lambda m: _ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04X}", value)
        return f"'{text}'"
    return json.dumps(value)


def write_script(content: Content, path: Path) -> None:
    """Write one statement per line: the run, its triples, a hundred at a time, the reviewed
    answers with the decisions about them, and the labels that raters gave. Running the script twice
    changes nothing."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for line in content.heading:
            file.write(f"// {line}\n")
        for label in _LABELS:
            file.write(f"{shape.constraint_query(shape.get_node(label))};\n")
        file.write(_run(content.run.record))
        file.writelines(_statements(content.run.record, content.triples))
        for generation, found in decided(content.run, {t.id for t in content.triples}):
            file.write(_generation(content.run.record, generation))
            for decision in found:
                file.write(_decision(content.run.record, decision))
        there = {t.id for t in content.triples}
        labels = [x for x in content.run.store.labels() if x.triple_id in there]
        for start in range(0, len(labels), _ROWS):
            file.write(_labels(labels[start : start + _ROWS]))


def _run(run: Run) -> str:
    """The run with its model and seeds."""
    model = run.model
    lines = [
        f"MERGE (m:Model {{uid: {literal(model.id)}}}) SET m.name = {literal(model.title)}, "
        f"m.revision = {literal(model.revision)} "
        f"MERGE (r:Run {{uid: {literal(run.id)}}}) ON CREATE SET r.seq = 0 "
        f"SET {_properties('r', property_values('Run', run))} "
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


def _statements(run: Run, triples: Iterable[TripleView]) -> Iterator[str]:
    """Many triples per statement: a server takes longer to plan a statement than to run it."""
    of_tone: dict[str, list[TripleView]] = {}
    for t in triples:
        label = t.scores["regard"].label if "regard" in t.scores else ""
        of_tone.setdefault(label.upper() if label in TONES else "", []).append(t)
    for tone, found in of_tone.items():
        text = _statement(run, tone)
        for start in range(0, len(found), _ROWS):
            rows = ", ".join(_row(t) for t in found[start : start + _ROWS])
            yield f"UNWIND [{rows}] AS row {text};\n"


def _row(t: TripleView) -> str:
    row = {
        "uid": t.id, "text": f"{t.group} {t.predicate} {t.object}", "arm": t.arm, "count": t.count,
        "group_uid": t.group_id, "group": t.group,
        "predicate_uid": node_id("predicate", t.predicate), "predicate": t.predicate,
        "object_uid": node_id("object", t.object), "object": t.object,
    } | {m: t.scores[m].value if m in t.scores else None for m in DERIVED_MEASURES}  # fmt: skip
    return _map(row)


def _statement(run: Run, tone: str) -> str:
    ends = (("g", "SocialGroup", "group", "name"), ("p", "Predicate", "predicate", "text"),
            ("o", "Object", "object", "text"))  # fmt: skip
    merged = " ".join(
        f"MERGE ({v}:{label} {{uid: row.{name}_uid}}) "
        f"ON CREATE SET {v}.{key} = row.{name}, {v}.name = row.{name}"
        for v, label, name, key in ends
    )
    return (
        f"{merged} MERGE (t:Triple {{uid: row.uid}}) "
        "ON CREATE SET t.group_uid = row.group_uid, t.text = row.text, t.name = row.text "
        "MERGE (t)-[:SUBJECT]->(g) MERGE (t)-[:PREDICATE]->(p) MERGE (t)-[:OBJECT]->(o) "
        + " ".join(
            f"MERGE (g)-[{v}:{kind} {{run: {literal(run.name)}, triple: row.uid, "
            f"arm: row.arm}}]->(o) SET {v}.predicate = row.predicate, "
            f"{v}.count = row.count, {', '.join(f'{v}.{m} = row.{m}' for m in DERIVED_MEASURES)}"
            for v, kind in (("s", "STEREOTYPE"), ("e", tone))
            if kind
        )
    )


def _generation(run: Run, g: Generation) -> str:
    """A reviewed answer, and the triple that it counts as."""
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


def _labels(labels: Sequence[Label]) -> str:
    """What raters said of the triples, every label with its rater."""
    rows = [
        {"triple": x.triple_id, "uid": x.uid, "rater": property_values("Rater", x.by, uid=x.by.id),
         "own": property_values("LABELLED", x)}
        for x in labels
    ]  # fmt: skip
    return (
        f"UNWIND [{', '.join(_map(row) for row in rows)}] AS row "
        "MATCH (t:Triple {uid: row.triple}) "
        "MERGE (r:Rater {uid: row.rater.uid}) SET r += row.rater "
        "MERGE (r)-[e:LABELLED {uid: row.uid}]->(t) SET e += row.own;\n"
    )


def _map(row: Mapping[str, Any]) -> str:
    cells = ((k, _map(v) if isinstance(v, Mapping) else literal(v)) for k, v in row.items())
    return f"{{{', '.join(f'{name}: {value}' for name, value in cells)}}}"


def _properties(variable: str, row: Mapping[str, Any]) -> str:
    return ", ".join(f"{variable}.{name} = {literal(value)}" for name, value in row.items())
