"""The part of a run that an export holds."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from kgbias.errors import UsageError, no_such
from kgbias.evidence.added_columns import MethodColumns
from kgbias.graph.cross_mentions import MentionIndex
from kgbias.graph.selection import SelectedStatements
from kgbias.graph.store import StoredRun
from kgbias.graph.structure import to_networkx
from kgbias.graph.types import (
    CONTENT_WARNING,
    SAMPLE_CAVEAT,
    Metric,
    ProbedEdge,
    ProbeRun,
    TripleView,
    node_id,
    statement_id,
)
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.wording import how
from kgbias.measure import merge
from kgbias.measures import Measure, column_measures

if TYPE_CHECKING:
    from kgbias.evidence.picture import PicturePair


class TripleInArm(NamedTuple):
    """A triple of an arm: several arms may have said it."""

    id: str
    arm: str


class _RankedTriple(NamedTuple):
    """How often a triple was said, and its place among those of its group, from 1."""

    times_said: int
    place_in_group: int
    key: TripleInArm


class Origin(NamedTuple):
    """The strategy and round that first elicited a triple."""

    strategy: str
    iteration: int


class GroupRank(NamedTuple):
    """The rank of a triple's group before the statement, and how many groups were ranked."""

    rank: int
    groups_ranked: int


@dataclass(frozen=True, slots=True)
class Filters:
    """Which triples to keep: those about `groups`, with `predicate`, on a topic whose name contains
    `topic`, said at least `min_count` times; from what remains, the `per_group` most frequent of
    each group, then the `limit` most frequent of all. Ties are shared evenly among the groups.
    With `merged`, near-duplicates count as one (`kgbias.measure.merge`)."""

    groups: tuple[str, ...] = ()
    predicate: str | None = None
    topic: str | None = None
    min_count: int = 1
    limit: int | None = None
    merged: bool = False
    per_group: int | None = None

    def apply(self, run: StoredRun, triples: Iterable[TripleView]) -> list[TripleView]:
        """The triples to keep, in their order. Raises UsageError for a group that the run lacks,
        and for a predicate or topic that no statement has."""
        group_ids = {run.find_group(name).id for name in self.groups}
        remaining = list(triples)
        if self.topic is not None:
            topic_triples = self._triples_on_topic(run)
            remaining = [triple for triple in remaining if triple.id in topic_triples]
        if self.merged:
            remaining = merge.merge_triples(remaining, run.near_duplicates())
        remaining = [triple for triple in remaining if triple.count >= self.min_count]
        if group_ids:
            remaining = [triple for triple in remaining if triple.group_id in group_ids]
        if self.predicate is not None:
            remaining = self._keep_predicate(run, remaining)
        if self.per_group is None and self.limit is None:
            return remaining
        counts_by_group: Counter[str] = Counter()
        ranked: list[_RankedTriple] = []
        for triple in sorted(remaining, key=lambda triple: -triple.count):
            counts_by_group[triple.group_id] += 1
            place_in_group = counts_by_group[triple.group_id]
            if self.per_group is None or place_in_group <= self.per_group:
                key = TripleInArm(triple.id, triple.arm)
                ranked.append(_RankedTriple(triple.count, place_in_group, key))
        # Equal counts are ordered by the place within the group: the groups take turns.
        ranked.sort(key=lambda each: (-each.times_said, each.place_in_group))
        chosen_keys = {each.key for each in ranked[: self.limit]}
        return [triple for triple in remaining if TripleInArm(triple.id, triple.arm) in chosen_keys]

    def _keep_predicate(self, run: StoredRun, remaining: list[TripleView]) -> list[TripleView]:
        """Those with the predicate; none if the run says it only where other filters leave out."""
        predicate_id = node_id("predicate", str(self.predicate))
        if matching := [t for t in remaining if node_id("predicate", t.predicate) == predicate_id]:
            return matching
        counts: Counter[str] = Counter()
        for t in run.triples():
            counts[t.predicate] += t.count
        predicates_said = [predicate for predicate, _ in counts.most_common()]
        if predicate_id not in {node_id("predicate", predicate) for predicate in predicates_said}:
            raise UsageError(
                no_such("predicate", self.predicate, predicates_said, f" in run {run.name!r}")
            )
        return []

    def _triples_on_topic(self, run: StoredRun) -> set[str]:
        """The ids of the triples on a topic whose name contains `topic`."""
        models = run.topics()
        names = {topic.id: topic.name for model in models for topic in model.topics}
        name_part = str(self.topic).casefold()
        topic_ids = {id for id, name in names.items() if name_part in name.casefold()}
        if not names:
            todo = how("run.measure(topics=True)", f"kgbias measure {run.name} --topics")
            raise UsageError(f"run {run.name!r} has no topics: {todo}")
        if not topic_ids:
            raise UsageError(no_such("topic", self.topic, names.values(), f" in run {run.name!r}"))
        return {a.triple_id for model in models for a in model.about if a.topic_id in topic_ids}

    def as_dict(self) -> dict[str, Any]:
        """The filters that were given."""
        default = asdict(Filters())
        return {k: v for k, v in asdict(self).items() if v != default[k]}


@dataclass(frozen=True)
class ExportContent:
    """The triples of a run that an export writes, and what else it may need. `statements` says what
    was left out before filtering; long work reports to `progress`. A picture is `width` inches
    wide; `picture_pair` is what a picture of two groups shows."""

    run: StoredRun
    triples: Collection[TripleView]
    statements: SelectedStatements
    progress: Progress = field(default_factory=SilentProgress)
    width: float = 7.0
    picture_pair: "PicturePair | None" = None

    @property
    def heading(self) -> list[str]:
        """The lines above the triples, in formats that have comments."""
        return [CONTENT_WARNING, SAMPLE_CAVEAT, *filter(None, [self.statements.note])]

    @cached_property
    def category_by_group(self) -> dict[str, str]:
        """The category of each group, by the group's id."""
        return {group.id: group.category for group in self.run.groups}

    @cached_property
    def names_other(self) -> dict[str, str]:
        """The other groups of the run that a triple names, by the triple's id; triples that name
        none are left out."""
        mention_index = MentionIndex(self.run.groups)
        return {
            t.id: ", ".join(others)
            for t in self.triples
            if (others := mention_index.other_groups(t))
        }

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The metric that scored each measure of the run."""
        return self.run.metrics()

    @cached_property
    def measures(self) -> list[Measure]:
        """The measures that a table of the triples has columns for."""
        return column_measures(self.metrics)

    @cached_property
    def origins(self) -> dict[TripleInArm, Origin]:
        """What first elicited each triple; empty for runs that were not crawled."""
        first_origins: dict[TripleInArm, Origin] = {}
        for generation in sorted(
            self.run.generations(), key=lambda generation: generation.iteration
        ):
            if generation.triple is not None and generation.strategy:
                first_origins.setdefault(
                    TripleInArm(generation.triple.id, generation.arm),
                    Origin(generation.strategy, generation.iteration),
                )
        return first_origins

    @cached_property
    def topics(self) -> dict[str, str]:
        """The name of each triple's topic, by the triple's id; those without one are left out."""
        names = {topic.id: topic.name for model in self.run.topics() for topic in model.topics}
        return {
            about.triple_id: names[about.topic_id]
            for model in self.run.topics()
            for about in model.about
            if about.topic_id in names
        }

    @cached_property
    def added(self) -> MethodColumns:
        """What methods have about the triples."""
        return MethodColumns.read(self.run)

    @cached_property
    def ranks(self) -> dict[str, GroupRank]:
        """The rank of its group, by a triple's id; from the probing of the run's own model or, if
        it has none, from the first."""
        probe_runs = self.run.find_all(ProbeRun)
        if not probe_runs:
            return {}
        probe_run = next((p for p in probe_runs if p.model == self.run.model), probe_runs[0])
        places: dict[tuple[str, str], dict[str, int]] = {}
        for edge in self.run.find_all(ProbedEdge, asking=probe_run):
            statement_place = (
                statement_id(edge.predicate_id, edge.object_id),
                self.category_by_group.get(edge.group_id, ""),
            )
            places.setdefault(statement_place, {})[edge.group_id] = edge.rank
        ranks_found = {}
        for triple in self.triples:
            statement = triple.statement_id
            ranked = places.get((statement, self.category_by_group.get(triple.group_id, "")), {})
            if triple.group_id in ranked:
                ranks_found[triple.id] = GroupRank(ranked[triple.group_id], len(ranked))
        return ranks_found

    @cached_property
    def has_several_arms(self) -> bool:
        """Whether the triples come from several arms, so that one may occur once for each."""
        return self.statements.has_several_arms

    @cached_property
    def graph(self) -> Any:
        """The triples as a networkx graph, its edges with what methods have about it."""
        graph = to_networkx(self.triples, self.category_by_group)
        for _, _, key, data in graph.edges(keys=True, data=True):
            data["language"] = self.run.record.language
            data |= self.added.cells.get(key.partition(" ")[0], {})
        return graph
