"""The data of a report and its exhibits: a run with its measures, read once."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kgbias.compare import GroupTest, arm_tests, group_tests
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    Attribution,
    Generation,
    Group,
    GroupScore,
    Metric,
    ProbedEdge,
    Probing,
    RunSummary,
    TopicModel,
    TripleView,
)
from kgbias.measure.topics.shares import GroupShares, topic_shares
from kgbias.measures import values_of
from kgbias.report.figures import GroupFigures
from kgbias.report.latex import Table
from kgbias.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Something to show of one category: a figure, a table or both. `key` is a safe file name;
    `paper` says which figures and tables of the paper it corresponds to."""

    key: str
    category: str
    title: str
    paper: str
    draw: Callable[[], Any] | None
    table: Table


class RunData:
    """A run with all that can be shown of it. Each part is read from the store at most once, when
    it is first asked for.

    Args:
        stored: the run in its store.
        correction: of the p-values over a family of tests, "holm" or "bh".
    """

    def __init__(self, stored: StoredRun, *, correction: str = "holm") -> None:
        self.run = stored.record
        self.correction = correction
        self._stored = stored

    @cached_property
    def summary(self) -> RunSummary:
        """The run's counts."""
        return next(s for s in self._stored.store.summaries() if s.run.id == self.run.id)

    @cached_property
    def triples(self) -> Sequence[TripleView]:
        return self._stored.triples()

    @cached_property
    def by_group(self) -> Mapping[str, list[TripleView]]:
        """The triples of each group, by its id."""
        found: dict[str, list[TripleView]] = defaultdict(list)
        for triple in self.triples:
            found[triple.group_id].append(triple)
        return found

    @cached_property
    def scores(self) -> Mapping[tuple[str, str], GroupScore]:
        """The figures of groups, by the group's id and the figure's name."""
        return {(s.group_id, s.measure): s for s in self._stored.group_scores()}

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """What each measure of the run was scored by."""
        return self._stored.metrics()

    @cached_property
    def models(self) -> Mapping[str, TopicModel]:
        """The topics of each category that has any."""
        return {m.category: m for m in self._stored.topics()}

    @cached_property
    def generations(self) -> Sequence[Generation]:
        return list(self._stored.generations())

    @cached_property
    def probes(self) -> Sequence[tuple[Probing, list[ProbedEdge]]]:
        """Each probing of the run, with its edges."""
        return [(p, self._stored.probes(p)) for p in self._stored.probings()]

    @cached_property
    def associations(self) -> Sequence[AssociationNode]:
        return self._stored.associations()

    @cached_property
    def attributions(self) -> Sequence[Attribution]:
        return self._stored.attributions()

    def answers(self, generations: Sequence[Generation]) -> Mapping[str, Answer]:
        """What the model answered in these generations, by answer key."""
        return self._stored.answers([g.answer_key for g in generations if g.answer_key])

    @property
    def categories(self) -> list[str]:
        return list(dict.fromkeys(g.category for g in self.run.groups))

    def groups(self, category: str) -> list[Group]:
        return [g for g in self.run.groups if g.category == category]

    @cached_property
    def group_tests(self) -> list[GroupTest]:
        return group_tests(self.run, self.triples, correction=self.correction)

    @cached_property
    def arm_tests(self) -> list[GroupTest]:
        if len({g.arm for g in self.generations}) < 2:
            return []
        category = {g.id: g.category for g in self.run.groups}
        return arm_tests(
            self.generations, self.triples, correction=self.correction, categories=category
        )

    def figures_of(self, category: str) -> list[GroupFigures]:
        """The groups of a category that have a regard, as the figures need them."""
        return [
            GroupFigures(g.name, overall, values_of(self.by_group.get(g.id, ()), "toxicity"))
            for g in self.groups(category)
            if (overall := self.scores.get((g.id, "overall_regard")))
        ]

    def named(self, category: str, figure: str) -> list[tuple[str, Estimate]]:
        """The groups of a category that have this figure, by name."""
        return [
            (g.name, s)
            for g in self.groups(category)
            if (s := self.scores.get((g.id, figure))) is not None
        ]

    def shares(self, category: str) -> list[GroupShares]:
        """How the statements of each group of a category spread over its topics."""
        model = self.models.get(category)
        return topic_shares(self.run, self.triples, model) if model and model.topics else []
