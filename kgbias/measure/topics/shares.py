"""How the statements of each group spread over the topics."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.graph.types import Group, Run, TopicModel, TripleView
from kgbias.statistics import Estimate, Values, proportion


@dataclass(frozen=True, slots=True)
class GroupShares:
    """One group's statements by topic, each counted as often as it was said.

    Attributes:
        group: the group.
        counts: how many statements are about each topic, in the order of the model's topics; [k].
        outliers: how many are about none.
    """

    group: Group
    counts: Values
    outliers: int

    @property
    def n(self) -> int:
        """Statements about a topic."""
        return int(self.counts.sum())

    def share(self, number: int) -> Estimate:
        """The share of topic `number` among all statements of the group, outliers included, with
        its Wilson interval; the paper's Figure 3."""
        return proportion(int(self.counts[number]), self.n + self.outliers)


def topic_shares(run: Run, triples: Sequence[TripleView], model: TopicModel) -> list[GroupShares]:
    """The shares of each group of the model's category that said something."""
    place = {topic.id: topic.number for topic in model.topics}
    topic_of = {a.triple_id: a.topic_id for a in model.about}
    found = []
    for group in run.groups:
        if group.category != model.category:
            continue
        counts = np.zeros(len(model.topics))
        outliers = 0
        for t in triples:
            if t.group_id != group.id or t.id not in topic_of:
                continue
            topic = topic_of[t.id]
            if topic is None:
                outliers += t.count
            else:
                counts[place[topic]] += t.count
        if counts.sum() or outliers:
            found.append(GroupShares(group, counts, outliers))
    return found
