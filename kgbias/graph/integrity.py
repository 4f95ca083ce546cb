"""Keeping a store sound: what can be wrong with one, and the ids that its content must have.

Passages are the documents that a run was read from, and their chunks, with the relations among
them, modelled as in a RAGAS knowledge graph: a passage has a kind, such as
"document" or "chunk", and properties; a relation has a kind, such as "child", "next" or
"entities_overlap", and properties. Both belong to one run and keep the ids they came with.

Passages are kept whole and in order, so that an export gives them back as they came. In the log,
the answer of each statement is the sentence that it was read from.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any
from uuid import NAMESPACE_URL, uuid5

from kgbias.errors import RunConflict, UsageError
from kgbias.graph.decisions import DECISION_COLUMNS, read_decision
from kgbias.graph.labels import label_id
from kgbias.graph.node_records import NodeRecord, checked_nodes
from kgbias.graph.record import KeepsOrder, StoredAs, build_record, read_settings
from kgbias.graph.stereotypes import stereotype_id
from kgbias.graph.types import (
    Run,
    Topic,
    name_id,
    node_id,
    statement_id,
    topic_model_id,
    triple_id,
)
from kgbias.ids import content_id
from kgbias.models.base import ModelInfo


@dataclass(frozen=True, slots=True)
class Passage:
    """A document, a chunk of one, or another node of a corpus. `text` is None if it has no text of
    its own; `properties` are all its other properties, as in JSON."""

    id: Annotated[str, "the id that it came with", StoredAs("name")]
    kind: Annotated[str, "document or chunk"]
    text: Annotated[str | None, "its text"]
    properties: Annotated[
        Mapping[str, Any], "all else that it came with, as JSON", KeepsOrder()
    ] = field(default_factory=dict)

    def uid(self, run_id: str) -> str:
        """Its id in the graph, where passages of several runs may share an `id`."""
        return passage_uid(run_id, self.id)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from one passage to another; `source` and `target` are their ids."""

    id: Annotated[str, "the id that it came with", StoredAs("name")]
    kind: Annotated[str, "child, next or entities_overlap"]
    source: str
    target: str
    bidirectional: Annotated[bool, "whether it holds both ways"] = False
    properties: Annotated[Mapping[str, Any], "what it came with, as JSON", KeepsOrder()] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class Corpus:
    """The passages that a run was read from, and their relations, each in a fixed order."""

    passages: tuple[Passage, ...] = ()
    relations: tuple[Relation, ...] = ()


def passage_uid(run_id: str, id: str) -> str:
    return content_id("passage", run_id, id)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a store.

    Attributes:
        kind: "file" (the database itself), "checksum" (a backup is not what was written), "value"
            (not of its column's type, not finite, or out of range), "id" (an id that does not match
            its content) or "reference" (an id that refers to nothing).
        what: what is wrong, in words.
        count: how many times.
        example: one case, such as an id; "" if there is none to name.
    """

    kind: str
    what: str
    count: int = 1
    example: str = ""

    def __str__(self) -> str:
        times = f" ({self.count:,})" if self.count > 1 else ""
        return (
            f"{self.kind}: {self.what}{times}{f', such as {self.example}' if self.example else ''}"
        )


def _run_id(kind: str, config: str, settings: str, model: str, revision: str) -> str:
    model_info = ModelInfo(model, revision)
    return Run(
        "", model_info, json.loads(config), (), kind=kind, settings=read_settings(settings)
    ).id


def _topic_id(category: str, words: str | Sequence[str]) -> str:
    words = json.loads(words) if isinstance(words, str) else words
    return Topic(category, 0, tuple(words), 0).id


def _record_id(node: NodeRecord, *values: Any) -> str:
    """The id of a record that is a node, from the values that it is computed from."""
    record = build_record(node.record, dict(zip(node.checked, values, strict=True)))
    return str(record.id)


# label -> what computes its id, from the columns that a store selects for it in this order
ID_BUILDERS: Mapping[str, Callable[..., str]] = {
    "SocialGroup": lambda name: node_id("group", name),
    "Predicate": lambda text: node_id("predicate", text),
    "Object": lambda text: node_id("object", text),
    "Triple": triple_id,
    "Statement": statement_id,
    "Model": lambda name, revision: ModelInfo(name, revision).id,
    "Run": _run_id,
    "Generation": lambda run, path: content_id("generation", run, path),
    "Topic": _topic_id,
    "TopicModel": topic_model_id,
    "Passage": passage_uid,
    "GivenName": lambda name: content_id("given name", name),
    "Descriptor": lambda text: node_id("descriptor", text),
    "Name": name_id,
    "Profile": lambda run, path: content_id("profile", run, path),
    "Label": label_id,
    "Stereotype": stereotype_id,
    "Decision": lambda *values: read_decision(dict(zip(DECISION_COLUMNS, values, strict=True))).id,
    **{node.label: partial(_record_id, node) for node in checked_nodes()},
}


def check_name_unique(model: ModelInfo, all_models: Iterable[ModelInfo]) -> None:
    """Raise UsageError if a person gave this model or another one a name that both would go by."""
    for other_model in all_models:
        if other_model.id == model.id:
            continue
        for named_model, unnamed_model in ((model, other_model), (other_model, model)):
            if named_model.display_name and unnamed_model.goes_by(named_model.display_name):
                raise UsageError(
                    f"two models of the store would be called {named_model.display_name!r}: "
                    f"{model.public_name} and "
                    f"{other_model.public_name}; choose another name"
                )


def check_run_unique(run: Run, known_runs: Iterable[tuple[str, str]]) -> None:
    """Raise RunConflict if one of the store's runs (name and id) has this run's name or id, but not
    both."""
    ids = dict(known_runs)
    if ids.get(run.name, run.id) != run.id:
        raise RunConflict(
            f"run {run.name!r} exists with other settings: choose another name, or give the "
            "settings it was started with"
        )
    for name, id in ids.items():
        if id == run.id and name != run.name:
            raise RunConflict(
                f"the store has this already, as run {name!r}: leave out the name, or give that one"
            )


def find_wrong_ids(label: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[Fault]:
    """The fault of a label's ids that do not match their content, if any; each row is an id and
    what it is computed from."""
    compute_id = ID_BUILDERS[label]
    wrong_count, example = 0, ""
    for id, *parts in rows:
        try:
            is_right = compute_id(*parts) == id
        except (ValueError, TypeError, KeyError, AttributeError):  # a damaged value
            is_right = False
        if not is_right:
            wrong_count, example = wrong_count + 1, example or str(id)
    if wrong_count:
        yield Fault("id", f"{label} whose id does not match its content", wrong_count, example)


def make_relation(
    kind: str, source: Passage, target: Passage, properties: dict[str, object] | None = None
) -> Relation:
    """The relation of two passages, under an id by content."""
    id = content_uuid(kind, source.id, target.id)
    return Relation(id, kind, source.id, target.id, False, properties or {})


def content_uuid(kind: str, *parts: str) -> str:
    """A UUID, which ragas requires, computed from content."""
    return str(uuid5(NAMESPACE_URL, "\0".join(("kgbias", kind, *parts))))
