"""What exhibits are made of: a run with its measures, read once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kgbias.compare import GroupTest, arm_tests, group_tests
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import (
    AssociationNode,
    Group,
    ProbedEdge,
    Probing,
    TopicModel,
    TripleView,
)
from kgbias.measure.topics.shares import GroupShares, topic_shares
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
    """A run with all that its exhibits need, read once."""

    def __init__(self, run: StoredRun, *, correction: str = "holm") -> None:
        self.run = run.record
        self.correction = correction
        self.triples: Sequence[TripleView] = run.triples()
        self.scores = {(s.group_id, s.measure): s for s in run.group_scores()}
        self.models: dict[str, TopicModel] = {m.category: m for m in run.topics()}
        self._stored = run

    @property
    def categories(self) -> list[str]:
        return list(dict.fromkeys(g.category for g in self.run.groups))

    def groups(self, category: str) -> list[Group]:
        return [g for g in self.run.groups if g.category == category]

    @cached_property
    def generations(self) -> list[Any]:
        return list(self._stored.generations())

    @cached_property
    def probes(self) -> list[tuple[Probing, list[ProbedEdge]]]:
        """Each probing of the run, with its edges."""
        return [(p, self._stored.probes(p)) for p in self._stored.probings()]

    @cached_property
    def associations(self) -> list[AssociationNode]:
        return self._stored.associations()

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
        found = []
        for g in self.groups(category):
            if overall := self.scores.get((g.id, "overall_regard")):
                toxicity = [
                    t.scores["toxicity"].value
                    for t in self.triples
                    if t.group_id == g.id and "toxicity" in t.scores
                    for _ in range(t.count)
                ]
                found.append(
                    GroupFigures(
                        g.name, overall.n, overall.value, overall.low, overall.high, toxicity
                    )
                )
        return found

    def named(self, category: str, measure: str) -> list[tuple[str, Estimate]]:
        return [
            (g.name, Estimate(s.value, s.low, s.high, s.n))
            for g in self.groups(category)
            if (s := self.scores.get((g.id, measure)))
        ]

    def shares(self, category: str) -> list[GroupShares]:
        model = self.models.get(category)
        return topic_shares(self.run, self.triples, model) if model and model.topics else []
