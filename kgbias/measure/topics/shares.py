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
from kgbias.measure.topics.model import MIN_DISTINCT_VECTORS
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

MIN_ADJUSTED_RAND = 0.5  # the lowest acceptable mean adjusted Rand index over seeds
MIN_TOPIC_STABILITY = (
    0.6  # the lowest stability (Hennig 2007), and share of pairs kept, of a topic to rely on
)
MAX_TOPIC_SHARE = 0.5  # the largest share that one topic may hold of statements with a topic


def explain_unfit(model: TopicModel) -> str:
    """Why relative entropy over these topics would mean nothing; "" if it means something.

    There must be at least two topics; they must come up again with other seeds (a mean adjusted
    Rand index of at least 0.5); and none may hold more than half of the statements that have a
    topic. What was not measured does not count against them."""
    rand, largest_share = model.settings.get("adjusted_rand"), model.settings.get("largest_share")
    if not model.topics:
        return "no topics were found"
    if len(model.topics) < 2:
        return "there is a single topic"
    if rand is not None and rand < MIN_ADJUSTED_RAND:
        return (
            "the topics are others with other seeds (adjusted Rand index "
            f"{rand:.2f}, below {MIN_ADJUSTED_RAND:g})"
        )
    if largest_share is not None and largest_share > MAX_TOPIC_SHARE:
        return f"one topic holds {100 * largest_share:.0f}% of the statements that have one"
    return ""


def describe_stability(model: TopicModel) -> str:
    """Which topics stand with other seeds and with fewer statements, as a sentence without its full
    stop; "" if that was not measured."""
    kept_share, chance_share = model.settings.get("kept"), model.settings.get("kept_by_chance")
    if not model.topics or kept_share is None or chance_share is None:
        return ""
    steady_topics = [
        str(t.number)
        for t in model.topics
        if min(t.stability or 0.0, t.kept or 0.0) >= MIN_TOPIC_STABILITY
    ]
    other_count = len(model.topics) - len(steady_topics)
    return (
        f"without a fifth of the statements, {kept_share:.0%} of the pairs that share a topic "
        f"still do "
        f"(by chance {chance_share:.0%}); {len(steady_topics)} of {len(model.topics)} topics hold "
        f"up (stability and kept both at least "
        f"{MIN_TOPIC_STABILITY:g}){': ' if steady_topics else ''}{', '.join(steady_topics)}"
        + ("; do not rely on the others" if other_count and steady_topics else "")
    )


def entropy_verdict(model: TopicModel) -> str:
    """What follows for relative entropy, as a sentence without its full stop; "" for nothing."""
    reason = explain_unfit(model)
    if reason and model.settings.get("entropy") == "as_published":
        return f"Eq. 1 is shown as it was published, but means little: {reason}"
    return f"relative entropy is withheld: {reason}" if reason else ""


def suggest_remedies(model: TopicModel) -> str:
    """What to try if topics are unfit, in the parameters of `measure`; "" if they are fit."""
    reason, settings = explain_unfit(model), model.settings
    if not reason:
        return ""
    size = settings.get("min_cluster_size", 0)
    if settings.get("distinct", MIN_DISTINCT_VECTORS) < MIN_DISTINCT_VECTORS:
        return f"crawl more: topics need at least {MIN_DISTINCT_VECTORS} different statements"
    if not model.topics:
        remedies = [f"a `min_topic_size` below {size}", "another `embedding`", "a larger crawl"]
    elif "seeds" in reason:
        remedies = ["a larger crawl", f"a `min_topic_size` above {size}", "another `embedding`"]
    else:
        remedies = [f"a `min_topic_size` below {size}", "another `embedding`"]
        if settings.get("cluster_selection") == "eom":
            remedies.insert(0, "`topic_clusters` leaf")
        if settings.get("outlier_rule") == "assign":
            remedies.insert(0, "`outliers` keep")
    return f"try {', '.join(remedies[:-1])} or {remedies[-1]}"


@dataclass(frozen=True, slots=True)
class GroupShares:
    """One group's statements by topic, each counted as often as it was said.

    Attributes:
        group: the group.
        counts: how many statements are about each topic, in the order of the model's topics; [k].
        outliers: how many are about no topic.
        topic_sample: the topic number of each statement, -1 for none, with how they were drawn;
            None if that is not known.
    """

    group: Group
    counts: Values
    outliers: int
    topic_sample: Sample | None = None

    @property
    def n(self) -> int:
        """The number of statements about a topic."""
        return int(self.counts.sum())

    def share_of_topic(self, number: int) -> Estimate:
        """The share of topic `number` among all statements of the group, outliers included; the
        paper's Figure 3. Its interval is Wilson's; statements of one prompt tend to share a topic,
        so it is that of as many independent statements as vary as much."""
        n, topic_count = self.n + self.outliers, int(self.counts[number])
        if self.topic_sample is None:
            return proportion(topic_count, n)
        indicator_sample = replace(
            self.topic_sample, values=(self.topic_sample.values == number).astype(np.float64)
        )
        count_estimate = bootstrap(indicator_sample, total)
        return Estimate(
            topic_count / n, count_estimate.low / n, min(1.0, count_estimate.high / n), n
        )


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
    shares = []
    for group in run.groups:
        if group.category != model.category:
            continue
        counts = np.zeros(len(model.topics))
        outliers = 0
        for triple in triples:
            if triple.group_id != group.id or triple.id not in topic_of:
                continue
            topic = topic_of[triple.id]
            if topic is None:
                outliers += triple.count
            else:
                counts[place[topic]] += triple.count
        if counts.sum() or outliers:
            group_triples = [triple for triple in triples if triple.group_id == group.id]
            topic_sample = (
                draws.labelled_sample(group_triples, numbers) if draws and draws.is_known else None
            )
            shares.append(GroupShares(group, counts, outliers, topic_sample))
    return shares


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


def _resample_divergences(
    shares: Values, sizes: Sequence[int], rng: np.random.Generator, draws: int
) -> Values:
    """The divergence of groups from their mean, [draws, groups], over samples of these sizes from
    these shares, [groups, k]."""
    drawn_shares = np.stack(
        [rng.multinomial(n, p / p.sum(), draws) / n for n, p in zip(sizes, shares, strict=True)],
        axis=1,
    )
    return kl_divergence(drawn_shares, drawn_shares.mean(axis=1, keepdims=True))


def _effective_sizes(shares: Values, sizes: Sequence[int], drawn_shares: Values) -> list[int]:
    """How many statements of each group, drawn one by one, vary as much as its resamples do."""
    effective_sizes = []
    for place, size in enumerate(sizes):
        resample_variance = float(drawn_shares[:, place].var(axis=0).sum())
        # The variances of the shares of one multinomial draw, p (1 - p), summed.
        single_variance = 1.0 - float(shares[place] @ shares[place])
        effective_sizes.append(
            size
            if not resample_variance
            else min(size, max(2, round(single_variance / resample_variance)))
        )
    return effective_sizes


_PSEUDO_STATEMENTS = 0.5  # statements, to each topic of each group
MIN_TOPIC_STATEMENTS = 10  # statements with a topic, for an interval of relative entropy


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
    counts has NaN and n = 0 and takes no part in q. The interval is NaN below ten statements.
    """
    nan = float("nan")
    filled_groups = [group_number for group_number, c in enumerate(counts) if c.sum() > 0]
    results = [RelativeEntropy(Estimate.missing(), nan, nan)] * len(counts)
    if not filled_groups:
        return results
    rng = np.random.Generator(np.random.PCG64(seed))
    shares = np.array(
        [counts[group_number] / counts[group_number].sum() for group_number in filled_groups]
    )
    sizes = [int(counts[group_number].sum()) for group_number in filled_groups]
    values = kl_divergence(shares, shares.mean(axis=0))
    drawn_shares = np.stack(
        [
            _resample_shares(p, size, samples[group_number] if samples else None, draws, rng)
            for group_number, size, p in zip(filled_groups, sizes, shares, strict=True)
        ],
        axis=1,
    )
    replicates = kl_divergence(drawn_shares, drawn_shares.mean(axis=1, keepdims=True))
    effective_sizes, mean_shares = (
        _effective_sizes(shares, sizes, drawn_shares),
        shares.mean(axis=0),
    )
    max_chance_divergence = np.quantile(
        _resample_divergences(
            np.broadcast_to(mean_shares, shares.shape), effective_sizes, rng, draws
        ),
        (1 + level) / 2,
        axis=0,
    )
    # A topic that a group never named gets a chance to be drawn.
    smoothed_shares = shares * np.array(effective_sizes)[:, None] + _PSEUDO_STATEMENTS
    smoothed_shares /= smoothed_shares.sum(axis=1, keepdims=True)
    smoothed_divergences = _resample_divergences(smoothed_shares, effective_sizes, rng, draws)
    bias = smoothed_divergences.mean(axis=0) - kl_divergence(
        smoothed_shares, smoothed_shares.mean(axis=0)
    )
    spread = np.maximum(replicates.std(axis=0), smoothed_divergences.std(axis=0))
    for place, group_number in enumerate(filled_groups):
        raw_divergence, group_replicates = float(values[place]), replicates[:, place]
        # Bootstrap bias correction (Efron and Tibshirani 1993, section 10.6).
        value = max(0.0, 2 * raw_divergence - float(group_replicates.mean()))
        low = high = nan
        if sizes[place] >= MIN_TOPIC_STATEMENTS:
            half_width = student_quantile(
                (1 + level) / 2, max(MIN_TOPIC_STATEMENTS, effective_sizes[place]) - 1
            ) * float(spread[place])
            middle = raw_divergence - float(bias[place])
            # A value cut at 0 must not fall outside its interval.
            low, high = min(max(0.0, middle - half_width), value), max(middle + half_width, value)
            # Groups that are alike diverge as much by chance.
            if raw_divergence <= max_chance_divergence[place]:
                low = 0.0
        estimate = Estimate(value, low, high, sizes[place])
        results[group_number] = RelativeEntropy(
            estimate, raw_divergence, -raw_divergence * float(np.log(2))
        )
    return results


def _resample_shares(
    shares: Values,
    statement_count: int,
    sample: Sample | None,
    draws: int,
    rng: np.random.Generator,
) -> Values:
    """A group's topic shares over resamples, [draws, k]."""
    if sample is None or sample.design is None or sample.places is None:
        # Nothing is known of the design: statements are taken for independent.
        return np.asarray(rng.multinomial(statement_count, shares, size=draws) / statement_count)
    topic_number, design = len(shares), sample.design
    # One number for each cluster and topic, so that one `bincount` counts them all.
    cells = design.clusters[sample.places] * topic_number + sample.values.astype(np.int64)
    topic_counts = np.bincount(cells, sample.counts, len(design.strata) * topic_number).reshape(
        -1, topic_number
    )
    drawn_counts = np.concatenate(
        [
            cluster_weights @ topic_counts
            for cluster_weights in design.weights(draws, rng, topic_number)
        ]
    )
    total = drawn_counts.sum(axis=1, keepdims=True)
    # A resample may draw no statement with a topic; the inner `where` keeps the division quiet.
    return np.asarray(np.where(total > 0, drawn_counts / np.where(total > 0, total, 1.0), shares))


def kl_divergence(p: Values, q: Values) -> Values:
    """D(p || q) in bits along the last axis; 0 log 0 is 0. q must be positive where p is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * (np.log2(p) - np.log2(np.broadcast_to(q, p.shape))), 0.0)
    # Rounding may leave a sum just below 0, which D never is.
    return np.asarray(np.maximum(terms.sum(axis=-1), 0.0), dtype=np.float64)
