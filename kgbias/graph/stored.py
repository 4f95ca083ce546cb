"""A run together with the store that holds it: what functions that work on a run take."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgbias.errors import UsageError
from kgbias.graph.believed import BelievedEdge, Believing, GroupName, NameProbe
from kgbias.graph.decisions import Decision
from kgbias.graph.keeping import Corpus
from kgbias.graph.probed import Choosing, ChosenEdge
from kgbias.graph.profiles import Profile
from kgbias.graph.said import Drawn, Shown, Stated, Told, Valued
from kgbias.graph.sofa import SofaResult
from kgbias.graph.store import Store
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    Attribution,
    Category,
    Generation,
    Group,
    GroupScore,
    Metric,
    NearDuplicate,
    NodePlace,
    ProbedEdge,
    Probing,
    Run,
    Score,
    Status,
    TopicModel,
    TripleView,
    node_id,
)
from kgbias.models.base import ModelInfo


class Watch:
    """Says how long a model was asked for a run. `note` adds the time that has passed since the
    last note, so that a process that is killed loses no more; time in which nothing was asked is
    left out, so that reading a finished run back from the answer log adds nothing. The clock is
    monotonic: setting the computer's own does not move it."""

    def __init__(self) -> None:
        self._noted, self._asked = time.monotonic(), 0

    def note(self, store: Store, run_id: str, asked: int) -> None:
        """Add the time since the last note, if more requests were `asked` by now than then."""
        now = time.monotonic()
        if asked > self._asked:
            store.add_work(run_id, now - self._noted)
        self._noted, self._asked = now, asked


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run (`record`) in its `store`. Nothing is cached: each method reads the store, or writes to
    it, when it is called. `kgbias.graph.store.Store` describes them."""

    store: Store
    record: Run

    @classmethod
    def find(cls, store: Store, name: str | None = None) -> "StoredRun":
        """The run of that name, or the newest. Raises RunNotFound, listing the runs there are."""
        return cls(store, store.find_run(name))

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def model(self) -> ModelInfo:
        return self.record.model

    @property
    def config(self) -> Mapping[str, Any]:
        return self.record.config

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.record.groups

    @property
    def categories(self) -> tuple[Category, ...]:
        return self.record.categories

    @property
    def status(self) -> Status:
        return self.record.status

    def group(self, name: str) -> Group:
        """The group of that name, in any case, or of which it is another name. Raises UsageError,
        naming those there are."""
        wanted = node_id("group", name)
        for group in self.groups:
            if wanted in (group.id, *(node_id("group", other) for other in group.variants)):
                return group
        there = ", ".join(group.name for group in self.groups)
        raise UsageError(f"run {self.name!r} has no group {name!r}; there is {there}")

    def triples(self, *, by_arm: bool = False) -> list[TripleView]:
        return self.store.triples(self.id, by_arm=by_arm)

    def arms(self) -> list[str]:
        return self.store.arms(self.id)

    def of_arm(self, arm: str) -> Iterator[TripleView]:
        return self.store.of_arm(self.id, arm)

    def said(self) -> list[tuple[str, str, str, str]]:
        return self.store.said(self.id)

    def shown(self) -> Iterator[Shown]:
        return self.store.shown(self.id)

    def drawn(self) -> Iterator[Drawn]:
        return self.store.drawn(self.id)

    def stated(self) -> Iterator[Stated]:
        return self.store.stated(self.id)

    def told(self) -> Iterator[Told]:
        return self.store.told(self.id)

    def valued(self) -> Iterator[Valued]:
        return self.store.valued(self.id)

    def answered(self, triple_id: str, arm: str, *, first: int, most: int) -> list[Generation]:
        return self.store.answered(self.id, triple_id, arm, first=first, most=most)

    def generations(self) -> Iterator[Generation]:
        return self.store.generations(self.id)

    def decide(self, decisions: Sequence[Decision]) -> None:
        self.store.decide(self.id, decisions)

    def decisions(self) -> list[Decision]:
        return self.store.decisions(self.id)

    def answers(self, keys: Sequence[str]) -> dict[str, Answer]:
        return self.store.answers(keys)

    def metrics(self) -> dict[str, Metric]:
        return self.store.metrics(self.id)

    def save_scores(self, metric: Metric, scores: Sequence[Score]) -> None:
        self.store.save_scores(self.id, metric, scores)

    def scored(self, metric: Metric, triple_ids: Sequence[str]) -> set[str]:
        return self.store.scored(metric, triple_ids)

    def scores(self, metric: Metric, triple_ids: Sequence[str]) -> dict[str, Score]:
        return self.store.scores(metric, triple_ids)

    def scorers(self) -> list[Metric]:
        return self.store.scorers(self.id)

    def derive(self) -> None:
        self.store.derive(self.id)

    def group_scores(self) -> list[GroupScore]:
        return self.store.group_scores(self.id)

    def save_group_scores(
        self, scores: Sequence[GroupScore], *, replacing: Collection[str] = ()
    ) -> None:
        self.store.save_group_scores(self.id, scores, replacing=replacing)

    def topics(self) -> list[TopicModel]:
        return self.store.topics(self.id)

    def save_topics(self, models: Sequence[TopicModel]) -> None:
        self.store.save_topics(self.id, models)

    def name_topic(self, topic_id: str, given: str) -> None:
        self.store.name_topic(topic_id, given)

    def attributions(self) -> list[Attribution]:
        return self.store.attributions(self.id)

    def save_attributions(self, attributions: Sequence[Attribution]) -> None:
        self.store.save_attributions(attributions)

    def probings(self) -> list[Probing]:
        return self.store.probings(self.id)

    def probes(self, probing: Probing, statement_id: str | None = None) -> list[ProbedEdge]:
        return self.store.probes(self.id, probing.id, statement_id)

    def save_probes(self, probing: Probing, edges: Sequence[ProbedEdge]) -> None:
        self.store.save_probes(self.id, probing, edges)

    def save_probing(self, probing: Probing) -> None:
        self.store.save_probing(self.id, probing)

    def choosings(self) -> list[Choosing]:
        return self.store.choosings(self.id)

    def choices(self, choosing: Choosing, statement_id: str | None = None) -> list[ChosenEdge]:
        return self.store.choices(self.id, choosing.id, statement_id)

    def save_choices(self, choosing: Choosing, edges: Sequence[ChosenEdge]) -> None:
        self.store.save_choices(self.id, choosing, edges)

    def names(self, believing: Believing) -> list[GroupName]:
        return self.store.names(self.id, believing.id)

    def save_names(self, names: Sequence[GroupName]) -> None:
        self.store.save_names(names)

    def keep_statements(self, statements: Sequence[tuple[str, str]]) -> None:
        self.store.keep_statements(statements)

    def statements(self, believing: Believing) -> list[tuple[str, str]]:
        return self.store.statements(self.id, believing.id)

    def believings(self) -> list[Believing]:
        return self.store.believings(self.id)

    def save_believing(self, believing: Believing) -> None:
        self.store.save_believing(self.id, believing)

    def name_probes(self, believing: Believing, statement_id: str | None = None) -> list[NameProbe]:
        return self.store.name_probes(self.id, believing.id, statement_id)

    def save_name_probes(self, believing: Believing, probes: Sequence[NameProbe]) -> None:
        self.store.save_name_probes(self.id, believing, probes)

    def beliefs(self, believing: Believing, statement_id: str | None = None) -> list[BelievedEdge]:
        return self.store.beliefs(self.id, believing.id, statement_id)

    def save_beliefs(self, believing: Believing, edges: Sequence[BelievedEdge]) -> None:
        self.store.save_beliefs(self.id, believing, edges)

    def sofa(self) -> list[SofaResult]:
        return self.store.sofa(self.id)

    def save_sofa(self, results: Sequence[SofaResult]) -> None:
        self.store.save_sofa(self.id, results)

    def associations(self) -> list[AssociationNode]:
        return self.store.associations(self.id)

    def save_associations(self, nodes: Sequence[AssociationNode]) -> None:
        self.store.save_associations(self.id, nodes)

    def near_duplicates(self) -> list[NearDuplicate]:
        return self.store.near_duplicates(self.id)

    def save_near_duplicates(self, links: Sequence[NearDuplicate]) -> None:
        self.store.save_near_duplicates(self.id, links)

    def places(self) -> list[NodePlace]:
        return self.store.places(self.id)

    def save_places(self, places: Sequence[NodePlace]) -> None:
        self.store.save_places(self.id, places)

    def corpus(self) -> Corpus:
        return self.store.corpus(self.id)

    def save_corpus(self, corpus: Corpus) -> None:
        self.store.save_corpus(self.id, corpus)

    def profiles(self) -> list[Profile]:
        return self.store.profiles(self.id)

    def save_profiles(self, profiles: Sequence[Profile]) -> None:
        self.store.save_profiles(self.id, profiles)
