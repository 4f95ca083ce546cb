"""How the statements of each group spread over the topics."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.graph.types import Group, Run, TopicModel, TripleView
from kgbias.measure.topics.model import FEWEST
from kgbias.stats.inference import Estimate, Values, proportion

STABLE = 0.5  # the lowest acceptable mean adjusted Rand index over seeds
LARGEST = 0.5  # the largest share that one topic may hold of statements with a topic


def unfit(model: TopicModel) -> str:
    """Why relative entropy over these topics would mean nothing; "" if it means something.

    There must be at least two topics; they must come up again with other seeds (a mean adjusted
    Rand index of at least 0.5); and none may hold more than half of the statements that have a
    topic. What was not measured does not count against them."""
    rand, largest = model.settings.get("adjusted_rand"), model.settings.get("largest_share")
    if not model.topics:
        return "no topics were found"
    if len(model.topics) < 2:
        return "there is a single topic"
    if rand is not None and rand < STABLE:
        return (
            "the topics are others with other seeds (adjusted Rand index "
            f"{rand:.2f}, below {STABLE:g})"
        )
    if largest is not None and largest > LARGEST:
        return f"one topic holds {100 * largest:.0f}% of the statements that have one"
    return ""


def verdict(model: TopicModel) -> str:
    """What follows for relative entropy, as a sentence without its full stop; "" for nothing."""
    reason = unfit(model)
    if reason and model.settings.get("entropy") == "as_published":
        return f"Eq. 1 is shown as it was published, but means little: {reason}"
    return f"relative entropy is withheld: {reason}" if reason else ""


def advice(model: TopicModel) -> str:
    """What to try if topics are unfit, in the parameters of `measure`; "" if they are fit."""
    reason, s = unfit(model), model.settings
    if not reason:
        return ""
    size = s.get("min_cluster_size", 0)
    if s.get("distinct", FEWEST) < FEWEST:
        return f"crawl more: topics need at least {FEWEST} different statements"
    if not model.topics:
        tries = [f"a `min_topic_size` below {size}", "another `embedding`", "a larger crawl"]
    elif "seeds" in reason:
        tries = ["a larger crawl", f"a `min_topic_size` above {size}", "another `embedding`"]
    else:
        tries = [f"a `min_topic_size` below {size}", "another `embedding`"]
        if s.get("cluster_selection") == "eom":
            tries.insert(0, "`topic_clusters` leaf")
        if s.get("outlier_rule") == "assign":
            tries.insert(0, "`outliers` keep")
    return f"try {', '.join(tries[:-1])} or {tries[-1]}"


@dataclass(frozen=True, slots=True)
class GroupShares:
    """One group's statements by topic, each counted as often as it was said.

    Attributes:
        group: the group.
        counts: how many statements are about each topic, in the order of the model's topics; [k].
        outliers: how many are about no topic.
    """

    group: Group
    counts: Values
    outliers: int

    @property
    def n(self) -> int:
        """The number of statements about a topic."""
        return int(self.counts.sum())

    def share(self, number: int) -> Estimate:
        """The share of topic `number` among all statements of the group, outliers included, with
        its Wilson interval; the paper's Figure 3."""
        return proportion(int(self.counts[number]), self.n + self.outliers)


def topic_shares(run: Run, triples: Sequence[TripleView], model: TopicModel) -> list[GroupShares]:
    """The shares of each group in the model's category that has statements."""
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
