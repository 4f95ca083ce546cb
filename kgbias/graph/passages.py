"""Passages: documents and their chunks that a run was read from, and the relations among them.

The model is that of a RAGAS knowledge graph (`kgbias.ingest.ragas`): a passage has a kind, such as
"document" or "chunk", and properties; a relation has a kind, such as "child", "next" or
"entities_overlap", and properties. Both belong to one run and keep the ids they came with.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgbias.ids import content_id


@dataclass(frozen=True, slots=True)
class Passage:
    """A document, a chunk of one, or another node of a corpus: `text` is None for one that has no
    text of its own; `properties` are all others, as JSON holds them."""

    id: str
    kind: str
    text: str | None
    properties: Mapping[str, Any] = field(default_factory=dict)

    def uid(self, run_id: str) -> str:
        """Its id in the graph, where passages of several runs may have one id."""
        return passage_uid(run_id, self.id)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from one passage to another; `source` and `target` are their ids."""

    id: str
    kind: str
    source: str
    target: str
    bidirectional: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The passages that a run was read from, and their relations, each in a fixed order."""

    passages: tuple[Passage, ...] = ()
    relations: tuple[Relation, ...] = ()


def passage_uid(run_id: str, id: str) -> str:
    return content_id("passage", run_id, id)


def as_json(properties: Mapping[str, Any]) -> str:
    """Properties as stores keep them: in their order, so that they come back as they were."""
    return json.dumps(dict(properties), ensure_ascii=False)
