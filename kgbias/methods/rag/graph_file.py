"""RAGAS knowledge graphs as JSON: nodes (documents and chunks) and relationships among them.

The layout is what `KnowledgeGraph.save` of ragas 0.4 writes. All of it is kept, in order, for an
export to give it back unchanged. This does not need ragas.
"""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from kgbias.errors import DataError
from kgbias.graph.integrity import Corpus, Passage, Relation
from kgbias.graph.store import Store
from kgbias.ingest.corpus import import_corpus
from kgbias.ingest.formats import ImportFormat
from kgbias.ingest.import_run import ImportResult
from kgbias.io.progress import Progress
from kgbias.io.reading import read_bytes, read_json

_TEXT_PROPERTY = "page_content"  # the property that holds a node's text


def import_ragas(
    store: Store,
    path: Path,
    *,
    name: str | None = None,
    model: str = "unknown",
    progress: Progress | None = None,
) -> ImportResult:
    """Make a run from a knowledge graph of RAGAS. Raises DataError if it is none."""
    corpus, digest = read_ragas(path), sha256(read_bytes(path)).hexdigest()
    settings: dict[str, object] = {"format": "ragas"}
    return import_corpus(
        store, path, corpus, digest=digest, settings=settings, name=name, model=model
    )


IMPORT = ImportFormat(import_ragas, "a knowledge graph from RAGAS")


def read_ragas(path: Path) -> Corpus:
    """The nodes and relationships of a file. Raises DataError if it is not such a graph."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise DataError(f"{path} is not a RAGAS knowledge graph: it needs nodes and relationships")
    passages = [
        _parse_passage(path, number, row)
        for number, row in enumerate(_need_rows(path, data, "nodes"))
    ]
    ids = {passage.id for passage in passages}
    if len(ids) < len(passages):
        raise DataError(f"{path}: two nodes have the same id")
    relations = [
        _parse_relation(path, number, row, ids)
        for number, row in enumerate(_need_rows(path, data, "relationships"))
    ]
    if not passages:
        raise DataError(f"{path} has no nodes")
    return Corpus(tuple(passages), tuple(relations))


def to_ragas(corpus: Corpus) -> dict[str, Any]:
    """A corpus as ragas reads it."""
    return {
        "nodes": [
            {
                "id": passage.id,
                "properties": ({} if passage.text is None else {_TEXT_PROPERTY: passage.text})
                | dict(passage.properties),
                "type": passage.kind,
            }
            for passage in corpus.passages
        ],
        "relationships": [
            {
                "id": relation.id,
                "type": relation.kind,
                "source": relation.source,
                "target": relation.target,
                "bidirectional": relation.bidirectional,
                "properties": dict(relation.properties),
            }
            for relation in corpus.relations
        ],
    }


def _need_rows(path: Path, data: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    rows = data.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(
            f"{path} is not a RAGAS knowledge graph: {name!r} must be a list of objects"
        )
    return rows


def _parse_passage(path: Path, number: int, row: Mapping[str, Any]) -> Passage:
    position = f"{path}, node {number}"
    properties = _need_properties(position, row)
    text = properties.get(_TEXT_PROPERTY)
    other_properties = {name: value for name, value in properties.items() if name != _TEXT_PROPERTY}
    if not isinstance(text, str):
        text, other_properties = None, properties
    return Passage(
        _need_text(position, row, "id"), _need_text(position, row, "type"), text, other_properties
    )


def _parse_relation(path: Path, number: int, row: Mapping[str, Any], ids: set[str]) -> Relation:
    position = f"{path}, relationship {number}"
    source, target = _need_text(position, row, "source"), _need_text(position, row, "target")
    for node_id in (source, target):
        if node_id not in ids:
            raise DataError(f"{position}: there is no node {node_id[:60]!r}")
    is_bidirectional = row.get("bidirectional", False)
    if not isinstance(is_bidirectional, bool):
        raise DataError(f"{position}: 'bidirectional' must be true or false")
    return Relation(
        _need_text(position, row, "id"),
        _need_text(position, row, "type"),
        source,
        target,
        is_bidirectional,
        _need_properties(position, row),
    )


def _need_text(position: str, row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise DataError(f"{position} needs {name!r}, as text")
    return value


def _need_properties(position: str, row: Mapping[str, Any]) -> dict[str, Any]:
    properties = row.get("properties") or {}
    if not isinstance(properties, dict):
        raise DataError(f"{position}: 'properties' must be an object")
    return properties
