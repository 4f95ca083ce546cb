"""RAGAS knowledge graphs as JSON: nodes (documents and chunks) and relationships among them.

The layout is what `KnowledgeGraph.save` of ragas 0.4 writes. All of it is kept, in order, for an
export to give it back unchanged. This does not need ragas.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgbias.errors import DataError
from kgbias.graph.integrity import Corpus, Passage, Relation
from kgbias.io.reading import read_json

_TEXT = "page_content"  # the property that holds a node's text


def read_graph(path: Path) -> Corpus:
    """The nodes and relationships of a file. Raises DataError if it is not such a graph."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise DataError(f"{path} is not a RAGAS knowledge graph: it needs nodes and relationships")
    passages = [_passage(path, n, row) for n, row in enumerate(_rows(path, data, "nodes"))]
    ids = {p.id for p in passages}
    if len(ids) < len(passages):
        raise DataError(f"{path}: two nodes have the same id")
    relations = [
        _relation(path, n, row, ids) for n, row in enumerate(_rows(path, data, "relationships"))
    ]
    if not passages:
        raise DataError(f"{path} has no nodes")
    return Corpus(tuple(passages), tuple(relations))


def as_graph(corpus: Corpus) -> dict[str, Any]:
    """A corpus as ragas reads it."""
    return {
        "nodes": [
            {
                "id": p.id,
                "properties": ({} if p.text is None else {_TEXT: p.text}) | dict(p.properties),
                "type": p.kind,
            }
            for p in corpus.passages
        ],
        "relationships": [
            {
                "id": r.id,
                "type": r.kind,
                "source": r.source,
                "target": r.target,
                "bidirectional": r.bidirectional,
                "properties": dict(r.properties),
            }
            for r in corpus.relations
        ],
    }


def _rows(path: Path, data: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    rows = data.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(
            f"{path} is not a RAGAS knowledge graph: {name!r} must be a list of objects"
        )
    return rows


def _passage(path: Path, number: int, row: Mapping[str, Any]) -> Passage:
    where = f"{path}, node {number}"
    properties = _properties(where, row)
    text = properties.get(_TEXT)
    rest = {k: v for k, v in properties.items() if k != _TEXT}
    if not isinstance(text, str):
        text, rest = None, properties
    return Passage(_text(where, row, "id"), _text(where, row, "type"), text, rest)


def _relation(path: Path, number: int, row: Mapping[str, Any], ids: set[str]) -> Relation:
    where = f"{path}, relationship {number}"
    source, target = _text(where, row, "source"), _text(where, row, "target")
    for end in (source, target):
        if end not in ids:
            raise DataError(f"{where}: there is no node {end[:60]!r}")
    both = row.get("bidirectional", False)
    if not isinstance(both, bool):
        raise DataError(f"{where}: 'bidirectional' must be true or false")
    return Relation(
        _text(where, row, "id"), _text(where, row, "type"), source, target, both,
        _properties(where, row),
    )  # fmt: skip


def _text(where: str, row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise DataError(f"{where} needs {name!r}, as text")
    return value


def _properties(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    found = row.get("properties") or {}
    if not isinstance(found, dict):
        raise DataError(f"{where}: 'properties' must be an object")
    return found
