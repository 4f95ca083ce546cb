"""How the statements of each group spread over the topics, and how far that is from the average
group's (relative entropy).

With p the group's topic shares and q the mean of all groups' shares,

    D(p || q) = sum over topics k of p_k log2(p_k / q_k)    [bits]

which is 0 if the group is like the average and grows as it differs (Kullback and Leibler 1951).
The paper's Eq. 1 has a minus sign, so its values are never above 0, and names no base; its Figure 9
is read the other way ("higher indicates more uniqueness"). Both forms are computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kgbias.graph.draws import Draws
from kgbias.graph.types import Group, Run, TopicModel, TripleView
from kgbias.measure.topics.model import FEWEST
from kgbias.stats.inference import (
    DEFAULT_DRAWS,
    Estimate,
    Sample,
    Values,
    bootstrap,
    proportion,
    student_quantile,
    total,
)

STABLE = 0.5  # the lowest acceptable mean adjusted Rand index over seeds
STEADY = 0.6  # the lowest stability (Hennig 2007), and share of pairs kept, of a topic to rely on
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


def steady(model: TopicModel) -> str:
    """Which topics stand with other seeds and with fewer statements, as a sentence without its full
    stop; "" if that was not measured."""
    share, chance = model.settings.get("kept"), model.settings.get("kept_by_chance")
    if not model.topics or share is None or chance is None:
        return ""
    found = [
        str(t.number) for t in model.topics if min(t.stability or 0.0, t.kept or 0.0) >= STEADY
    ]
    rest = len(model.topics) - len(found)
    return (
        f"without a fifth of the statements, {share:.0%} of the pairs that share a topic still do "
        f"(by chance {chance:.0%}); {len(found)} of {len(model.topics)} topics hold up "
        f"(stability and kept both at least {STEADY:g}){': ' if found else ''}{', '.join(found)}"
        + ("; do not rely on the others" if rest and found else "")
    )


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
        drawn: the topic number of each statement, -1 for none, with how they were drawn; None if
            that is not known.
    """

    group: Group
    counts: Values
    outliers: int
    drawn: Sample | None = None

    @property
    def n(self) -> int:
        """The number of statements about a topic."""
        return int(self.counts.sum())

    def share(self, number: int) -> Estimate:
        """The share of topic `number` among all statements of the group, outliers included; the
        paper's Figure 3. Its interval is Wilson's; statements of one prompt tend to share a topic,
        so it is that of as many independent statements as vary as much."""
        n, found = self.n + self.outliers, int(self.counts[number])
        if self.drawn is None:
            return proportion(found, n)
        having = replace(self.drawn, values=(self.drawn.values == number).astype(np.float64))
        counted = bootstrap(having, total)
        return Estimate(found / n, counted.low / n, min(1.0, counted.high / n), n)


def topic_shares(
    run: Run,
    triples: Sequence[TripleView],
    model: TopicModel,
    draws: Draws | None = None,
) -> list[GroupShares]:
    """The shares of each group in the model's category that has statements; `draws` is how these
    were drawn."""
    place = {topic.id: topic.number for topic in model.topics}
    numbers = {a.triple_id: -1 if a.topic_id is None else place[a.topic_id] for a in model.about}
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
            own = [t for t in triples if t.group_id == group.id]
            drawn = draws.labelled_sample(own, numbers) if draws and draws.is_known else None
            found.append(GroupShares(group, counts, outliers, drawn))
    return found


@dataclass(frozen=True, slots=True)
class RelativeEntropy:
    """A group's relative entropy in both forms.

    Attributes:
        estimate: D(p || q) in bits, corrected for its upward bias, never below 0, with its 95%
            interval.
        plug_in: D of the shares as counted, in bits, at least 0.
        published: the paper's form: minus D of the shares as counted, in nats, at most 0.
    """

    estimate: Estimate
    plug_in: float
    published: float


def _redealt(shares: Values, sizes: Sequence[int], rng: np.random.Generator, draws: int) -> Values:
    """The divergence of groups from their mean, [draws, groups], over samples of these sizes from
    these shares, [groups, k]."""
    drawn = np.stack(
        [rng.multinomial(n, p / p.sum(), draws) / n for n, p in zip(sizes, shares, strict=True)],
        axis=1,
    )
    return divergence(drawn, drawn.mean(axis=1, keepdims=True))


def _independent(shares: Values, sizes: Sequence[int], drawn: Values) -> list[int]:
    """How many statements of each group, drawn one by one, vary as much as its resamples do."""
    found = []
    for place, size in enumerate(sizes):
        varies = float(drawn[:, place].var(axis=0).sum())
        alone = 1.0 - float(shares[place] @ shares[place])
        found.append(size if not varies else min(size, max(2, round(alone / varies))))
    return found


_ADDED = 0.5  # statements, to each topic of each group
_FEWEST = 5  # statements with a topic; of fewer, their spread is not known


def relative_entropies(
    counts: Sequence[Values],
    samples: Sequence[Sample | None] = (),
    *,
    draws: int = DEFAULT_DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> list[RelativeEntropy]:
    """The relative entropy of each group, given its topic counts ([k] each) and, if it is known how
    they were drawn, the topic number of each statement with its design.

    q is the mean of the groups' shares: every group has the same weight, whatever its size (with
    equal sizes, q is the share among all triples). With n statements over k topics, D of the counts
    is too high by about (k - 1) / (2 n ln 2) bits; a bootstrap from the counts repeats the error,
    and so measures it. The estimate is 2 D - mean of the replicates. A bootstrap from few counts
    does not draw what they lack, though, and its spread is too small; so the interval is Student's,
    by the larger of that spread and the spread of samples from the shares with half a statement
    added to each topic, about D less the bias of those samples. Both are cut at 0. It begins at 0
    unless the counts diverge more than 97.5% of counts of groups that are alike would. All
    groups are resampled, so q varies too; the topics are held fixed. Statements of one
    prompt tend to share a topic: they are drawn together (`kgbias.stats.designs`). A group without
    counts has NaN and n = 0 and takes no part in q. The interval is NaN below five statements.
    """
    nan = float("nan")
    filled = [n for n, c in enumerate(counts) if c.sum() > 0]
    results = [RelativeEntropy(Estimate.missing(), nan, nan)] * len(counts)
    if not filled:
        return results
    rng = np.random.Generator(np.random.PCG64(seed))
    shares = np.array([counts[n] / counts[n].sum() for n in filled])
    sizes = [int(counts[n].sum()) for n in filled]
    values = divergence(shares, shares.mean(axis=0))
    drawn = np.stack(
        [
            _redrawn(p, size, samples[n] if samples else None, draws, rng)
            for n, size, p in zip(filled, sizes, shares, strict=True)
        ],
        axis=1,
    )
    replicates = divergence(drawn, drawn.mean(axis=1, keepdims=True))
    many, whole = _independent(shares, sizes, drawn), shares.mean(axis=0)
    alike = np.quantile(
        _redealt(np.broadcast_to(whole, shares.shape), many, rng, draws), (1 + level) / 2, axis=0
    )
    smooth = shares * np.array(many)[:, None] + _ADDED
    smooth /= smooth.sum(axis=1, keepdims=True)
    others = _redealt(smooth, many, rng, draws)
    bias = others.mean(axis=0) - divergence(smooth, smooth.mean(axis=0))
    spread = np.maximum(replicates.std(axis=0), others.std(axis=0))
    for place, n in enumerate(filled):
        d, own = float(values[place]), replicates[:, place]
        value = max(0.0, 2 * d - float(own.mean()))
        low = high = nan
        if sizes[place] >= _FEWEST:
            half = student_quantile((1 + level) / 2, max(_FEWEST, many[place]) - 1) * float(
                spread[place]
            )
            middle = d - float(bias[place])
            # A value cut at 0 must not fall outside its interval.
            low, high = min(max(0.0, middle - half), value), max(middle + half, value)
            if d <= alike[place]:
                low = 0.0
        estimate = Estimate(value, low, high, sizes[place])
        results[n] = RelativeEntropy(estimate, d, -d * float(np.log(2)))
    return results


def _redrawn(
    shares: Values, n: int, sample: Sample | None, draws: int, rng: np.random.Generator
) -> Values:
    """A group's topic shares over resamples, [draws, k]."""
    if sample is None or sample.design is None or sample.places is None:
        return np.asarray(rng.multinomial(n, shares, size=draws) / n)
    k, design = len(shares), sample.design
    cells = design.clusters[sample.places] * k + sample.values.astype(np.int64)
    held = np.bincount(cells, sample.counts, len(design.strata) * k).reshape(-1, k)
    found = np.concatenate([often @ held for often in design.weights(draws, rng, k)])
    total = found.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, found / np.where(total > 0, total, 1.0), shares))


def divergence(p: Values, q: Values) -> Values:
    """D(p || q) in bits along the last axis; 0 log 0 is 0. q must be positive where p is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * (np.log2(p) - np.log2(np.broadcast_to(q, p.shape))), 0.0)
    return np.asarray(np.maximum(terms.sum(axis=-1), 0.0), dtype=np.float64)
