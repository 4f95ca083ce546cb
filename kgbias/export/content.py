"""What an export holds of a run."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from kgbias.crawl import merge
from kgbias.graph.selection import Counted
from kgbias.graph.stored import StoredRun
from kgbias.graph.to_networkx import to_networkx
from kgbias.graph.types import (
    CONTENT_WARNING,
    SAMPLE_STATEMENT,
    Metric,
    TripleView,
    node_id,
)
from kgbias.measures import Measure, columns

_TOPIC = """
MATCH (t:Triple)-[:ABOUT {run: $run}]->(topic:Topic)
WHERE toLower(topic.name) CONTAINS toLower($topic)
RETURN DISTINCT t.uid AS uid"""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which triples to keep: those about these groups, with this predicate, on a topic whose name
    contains this text, said at least `min_count` times; and of these the `limit` most frequent.
    With `merged`, near-duplicates count as one (`kgbias.crawl.merge`)."""

    groups: tuple[str, ...] = ()
    predicate: str | None = None
    topic: str | None = None
    min_count: int = 1
    limit: int | None = None
    merged: bool = False

    def apply(self, run: StoredRun, triples: Sequence[TripleView]) -> list[TripleView]:
        """The triples to keep, in their order. Raises UsageError for a group that the run does not
        have."""
        wanted = {run.group(name).id for name in self.groups}
        kept = list(triples)
        if self.topic is not None:
            found = run.store.query(
                _TOPIC, {"run": run.name, "topic": self.topic}, names={"Triple", "ABOUT", "Topic"}
            )
            about = {uid for (uid,) in found.rows}
            kept = [t for t in kept if t.id in about]
        if self.merged:
            kept = merge.merged(kept, run.near_duplicates())
        kept = [t for t in kept if t.count >= self.min_count]
        if wanted:
            kept = [t for t in kept if t.group_id in wanted]
        if self.predicate is not None:
            predicate = node_id("predicate", self.predicate)
            kept = [t for t in kept if node_id("predicate", t.predicate) == predicate]
        if self.limit is not None:
            most = sorted(kept, key=lambda t: -t.count)[: self.limit]
            chosen = {(t.id, t.arm) for t in most}
            kept = [t for t in kept if (t.id, t.arm) in chosen]
        return kept

    def as_dict(self) -> dict[str, Any]:
        """The filters that were given."""
        default = asdict(Filters())
        return {k: v for k, v in asdict(self).items() if v != default[k]}


@dataclass(frozen=True)
class Content:
    """The triples of a run that an export writes, and what it may need besides. `counted` says what
    was left out before the filters."""

    run: StoredRun
    triples: list[TripleView]
    counted: Counted

    @property
    def heading(self) -> list[str]:
        """The lines that stand above the triples in formats that have comments."""
        return [CONTENT_WARNING, SAMPLE_STATEMENT, *filter(None, [self.counted.note])]

    @cached_property
    def category(self) -> dict[str, str]:
        """The category of each group, by the group's id."""
        return {group.id: group.category for group in self.run.groups}

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """What each measure of the run was scored by."""
        return self.run.metrics()

    @cached_property
    def measures(self) -> list[Measure]:
        """The measures that a table of the triples has columns for."""
        return columns(self.metrics)

    @cached_property
    def of_arms(self) -> bool:
        """Whether the triples are of several arms, and may be there once for each."""
        return self.counted.several

    @cached_property
    def graph(self) -> Any:
        """The triples as a networkx graph."""
        return to_networkx(self.triples, self.category)
