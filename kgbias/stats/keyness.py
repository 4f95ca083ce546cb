"""Which features go with which group: keyness by dealing whole prompts anew.

A prompt and its answers either have a feature (a word, a topic, what a story's character does) or
not. For a group with y of n prompts that have it, the others with y' of n', and a prior worth
`PRIOR_PROMPTS` prompts that have it as often as all prompts do, a = PRIOR_PROMPTS (y + y') / (n +
n'), features are ranked by the log-odds with an informative Dirichlet prior (Monroe, Colaresi and
Quinn 2008, equations 15 to 22),

    log (y + a)/(n + PRIOR_PROMPTS - y - a) - log (y' + a)/(n' + PRIOR_PROMPTS - y' - a).

The prior ranks, and enters nothing else: an interval about a shrunken value would not be about the
group. They are tested without it. If groups do not differ, a prompt could just as well have
belonged to another group that was asked in the same way, in the same block. Dealt anew within their
blocks, the number of a group's prompts with the feature is a sum of hypergeometric variables, whose
distribution is exact; with one block, this is Fisher's exact test. The groups together are tested
by the smallest corrected p-value among them, against that of whole tables dealt anew, which also
show how many features would be found by chance.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.stats.designs import NORMAL_95
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import hybrid_interval, share_interval, wilson_interval

PRIOR_PROMPTS = 10.0  # prompts
SIGNIFICANCE_LEVEL = 0.05
DEFAULT_DEALS = 999
MIN_PROMPTS = 3  # of all groups, that have a feature, for it to be tested
_CONTINUITY_PROMPTS = 0.5  # prompts, to each of the four numbers of a log-odds ratio
_BISECTIONS = 50  # of where an end of an interval may lie

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Feature = tuple[str, str]  # of which kind, and which


@dataclass(frozen=True, eq=False, slots=True)
class FeatureTable:
    """Which prompts have which features.

    Attributes:
        group_count: how many groups there are.
        prompt_groups: [n], the number of each prompt's group.
        prompt_blocks: [n], the number of its block: prompts of one block could be dealt to any
            group that has one there.
        feature_count: how many features there are.
        rows, columns: [m], the prompt and the feature of each pair that goes together, once each.
    """

    group_count: int
    prompt_groups: Ints
    prompt_blocks: Ints
    feature_count: int
    rows: Ints
    columns: Ints

    @property
    def sizes(self) -> Ints:
        """How many prompts each group has, [g]."""
        return np.bincount(self.prompt_groups, minlength=self.group_count)

    def counts(self, group: Ints) -> Ints:
        """How many prompts of each group have each feature, [g, f], with prompts dealt so."""
        cells = group[self.rows] * self.feature_count + self.columns
        totals = np.bincount(cells, minlength=self.group_count * self.feature_count)
        return totals.reshape(self.group_count, self.feature_count)


@dataclass(frozen=True, eq=False, slots=True)
class Keyness:
    """How features go with groups.

    Attributes:
        table: the prompts.
        counts: [g, f], prompts of the group that have the feature.
        sizes: [g], prompts of the group.
        log_odds: [g, f], shrunken by the prior; above 0, the group has the feature more often.
        p_values: [g, f], exact and two-sided: twice the smaller tail, at most 1.
        q_values: [g, f], the same, corrected over the features of the group (Benjamini and Hochberg
            1995).
        overall_p: the p-value of no group differing from the others in any feature.
        null_discoveries: [deals], how many q-values were at most 0.05 in each table dealt anew.
    """

    table: FeatureTable
    counts: Ints
    sizes: Ints
    log_odds: Floats
    p_values: Floats
    q_values: Floats
    overall_p: float
    null_discoveries: Ints

    @property
    def floor(self) -> float:
        """The mean number of q-values of at most 0.05 in tables dealt anew; NaN without deals."""
        return float(self.null_discoveries.mean()) if len(self.null_discoveries) else float("nan")

    def other_counts(self, group: int, feature: int) -> "PromptCount":
        """How many prompts of the other groups have the feature, of how many."""
        return PromptCount(
            int(self.counts[:, feature].sum() - self.counts[group, feature]),
            int(self.sizes.sum() - self.sizes[group]),
        )

    def ratios(self) -> "LogOddsRatio":
        """The log-odds ratios of the groups' prompts to the others', [g, f], with the ends of their
        95% intervals (`log_odds_ratio`)."""
        others = self.counts.sum(axis=0) - self.counts
        sizes = self.sizes[:, None]
        return log_odds_ratio(self.counts, sizes, others, self.sizes.sum() - sizes)

    def difference(self, group: int, feature: int) -> Estimate:
        """The share of the group's prompts that have the feature, less the share of the others'
        (`mantel_haenszel_difference`)."""
        having = np.zeros(len(self.table.prompt_groups))
        having[self.table.rows[self.table.columns == feature]] = 1
        return mantel_haenszel_difference(
            self.table.prompt_groups == group, self.table.prompt_blocks, having
        )


def mantel_haenszel_difference(
    in_group: NDArray[np.bool_], block: Ints, shares: Floats
) -> Estimate:
    """The mean share of a group's prompts less that of the others', at one mix of blocks: with the
    weights of Mantel and Haenszel (1959), which use the blocks in which both were asked. The
    interval is Newcombe's hybrid score interval (1998, method 10), from Wilson's intervals of both
    means at their effective sizes; for shares of 0 and 1 in one block, this is Newcombe's own.
    Missing if there is no such block."""
    blocks = int(block.max(initial=-1)) + 1
    group_sizes, other_sizes = (
        np.bincount(block[side], minlength=blocks) for side in (in_group, ~in_group)
    )
    shared = (group_sizes > 0) & (other_sizes > 0)
    if not shared.any():
        return Estimate.missing(len(block))
    mix = (group_sizes * other_sizes / np.maximum(group_sizes + other_sizes, 1))[shared]
    own, other = (
        _share_at_mix(mix, shared, block[side], shares[side]) for side in (in_group, ~in_group)
    )
    value = own.value - other.value
    return Estimate(value, *hybrid_interval(own, other), len(block))


def _share_at_mix(mix: Floats, shared: NDArray[Any], block: Ints, shares: Floats) -> Estimate:
    """A mean share at a mix of the shared blocks, with Wilson's interval at its effective number of
    prompts."""
    sizes = np.bincount(block, minlength=len(shared))[shared]
    sums = np.bincount(block, shares, len(shared))[shared]
    weights = mix / mix.sum()
    effective = 1 / float((weights**2 / sizes).sum())
    share, prompts = min(1.0, float((weights * sums / sizes).sum())), int(sizes.sum())
    if np.isin(shares, (0.0, 1.0)).all() or prompts < 2:
        return Estimate(share, *wilson_interval(share, effective, NORMAL_95), prompts)
    # Shares between 0 and 1 vary less than prompts that have the feature or not.
    variance = float(shares[shared[block]].var(ddof=1)) / effective
    return Estimate(share, *share_interval(share, variance, prompts, prompts - 1), prompts)


class LogOddsRatio(NamedTuple):
    """Log-odds ratios with the ends of their 95% intervals: numbers, or arrays of one shape."""

    value: Any
    low: Any
    high: Any


class PromptCount(NamedTuple):
    """How many prompts have a feature, of how many."""

    having: int
    total: int


def log_odds_ratio(having: Any, total: Any, other_having: Any, other_total: Any) -> LogOddsRatio:
    """The natural logarithm of the odds of `having` of `total` prompts over those of `other_having`
    of `other_total`, with half a prompt added to each of the four numbers so that none is 0
    (Haldane 1956; Anscombe 1956), and the ends of its 95% interval; of arrays, in each cell.

    The interval holds the log-odds ratios that the score test does not reject (Cornfield 1956;
    Miettinen and Nurminen 1985). Where none or all of the prompts on one side have the feature, the
    score test rejects nothing on one side, and that end is by the variance that is the sum of the
    inverses of the four terms (Gart and Zweifel 1967)."""
    first, second, third, fourth = (
        count + _CONTINUITY_PROMPTS
        for count in (having, total - having, other_having, other_total - other_having)
    )
    value = np.log(first / second) - np.log(third / fourth)
    margin = NORMAL_95 * np.sqrt(1 / first + 1 / second + 1 / third + 1 / fourth)
    all_having, n = having + other_having, total + other_total
    ends = []
    for limit, end in (
        (np.maximum(0, all_having - other_total), value - margin),
        (np.minimum(total, all_having), value + margin),
    ):
        inside, outside = np.asarray(having, np.float64), np.asarray(limit, np.float64)
        # Both ends by bisection: `inside` is never rejected, `outside` always is.
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            cells = (middle, total - middle, all_having - middle, other_total - all_having + middle)
            # Under the odds ratio at which `middle` is expected, the four numbers have this
            # variance (Cornfield 1956), n / (n - 1) times (Miettinen and Nurminen 1985).
            with np.errstate(divide="ignore"):
                variance = 1 / sum(1 / cell for cell in cells)
            rejected = (having - middle) ** 2 * (n - 1) / n > NORMAL_95**2 * variance
            outside = np.where(rejected, middle, outside)
            inside = np.where(rejected, inside, middle)
        with np.errstate(divide="ignore", invalid="ignore"):
            score_end = np.log(cells[0] / cells[1]) - np.log(cells[2] / cells[3])
        ends.append(np.where(np.equal(having, limit), end, score_end))
    return LogOddsRatio(value, ends[0], ends[1])


@dataclass(slots=True)
class PromptFeatures:
    """Prompts with the features of their answers. An answer has a wording, of the question or of
    the person asked about; a prompt that has only one may be asked in several, and then has what
    any of them brought.

    Attributes:
        groups, blocks: the number of each prompt's group, and of its block (`FeatureTable`).
        features: of each prompt, by wording.
    """

    groups: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    features: list[dict[Hashable, set[Feature]]] = field(default_factory=list)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _blocks: dict[Hashable, int] = field(default_factory=dict)

    def add(
        self,
        prompt: Hashable,
        group: int,
        wording: Hashable,
        features: Iterable[Feature],
        block: Hashable = None,
    ) -> None:
        """Add an answer to a prompt of a group; `prompt` need only be unique within the group."""
        key = group, prompt
        if key not in self._numbers:
            self._numbers[key] = len(self.groups)
            self.groups.append(group)
            self.blocks.append(self._blocks.setdefault(block, len(self._blocks)))
            self.features.append(defaultdict(set))
        self.features[self._numbers[key]][wording] |= set(features)

    @property
    def wordings(self) -> set[Hashable]:
        """All wordings."""
        return {wording for own in self.features for wording in own}

    def frequent_features(self) -> list[Feature]:
        """The features that enough prompts have to be tested, in order."""
        prompt_counts: Counter[Feature] = Counter()
        for own in self.features:
            prompt_counts.update(set().union(*own.values()))
        return sorted(f for f, n in prompt_counts.items() if n >= MIN_PROMPTS)

    def build_table(
        self, features: Sequence[Feature], *, groups: int, without: Hashable = None
    ) -> FeatureTable:
        """The prompts and which of these features they have; `without` a wording: what is left of
        them then."""
        numbers = {feature: n for n, feature in enumerate(features)}
        kept_prompts: list[int] = []
        pairs: list[tuple[int, int]] = []
        for n, by_wording in enumerate(self.features):
            feature_sets = [own for wording, own in by_wording.items() if wording != without]
            if feature_sets:
                pairs += [
                    (len(kept_prompts), numbers[f])
                    for f in set().union(*feature_sets)
                    if f in numbers
                ]
                kept_prompts.append(n)
        rows, columns = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
        group, block = (
            np.array([of[n] for n in kept_prompts], dtype=np.int64)
            for of in (self.groups, self.blocks)
        )
        return FeatureTable(groups, group, block, len(features), rows, columns)

    def leave_one_out_p(
        self, features: Sequence[Feature], keyness: Keyness
    ) -> Mapping[tuple[int, int], float]:
        """For each group and feature that go together more or less often (q of at most 0.05), by
        number: the largest p-value with the answers of one wording left out; 1 where the sign then
        turns, or nothing is left of the group. Empty if there is only one wording."""
        significant = [
            (int(g), int(f)) for g, f in np.argwhere(keyness.q_values <= SIGNIFICANCE_LEVEL)
        ]
        wordings = self.wordings
        if len(wordings) < 2 or not significant:
            return {}
        tried = sorted({f for _, f in significant})
        place = {f: n for n, f in enumerate(tried)}
        tried_features, groups = [features[f] for f in tried], keyness.table.group_count
        largest_p = dict.fromkeys(significant, 0.0)
        for wording in wordings:
            refitted = measure_keyness(
                self.build_table(tried_features, groups=groups, without=wording), deals=0
            )
            for g, f in significant:
                same_sign = refitted.log_odds[g, place[f]] * keyness.log_odds[g, f] > 0
                p = (
                    float(refitted.p_values[g, place[f]])
                    if same_sign and refitted.sizes[g]
                    else 1.0
                )
                largest_p[g, f] = max(largest_p[g, f], p)
        return largest_p


def measure_keyness(
    table: FeatureTable, *, deals: int = DEFAULT_DEALS, seed: int | Sequence[int] = 0
) -> Keyness:
    """Test each feature of each group against the other groups. `deals` is how often whole tables
    are dealt anew, from the `seed`."""
    counts, sizes = table.counts(table.prompt_groups), table.sizes
    null = _NullDistribution(table)
    p_values = null.p_values(counts)
    q_values = _adjust_rows(p_values)
    rng = np.random.Generator(np.random.PCG64(seed))
    min_q, reached, discoveries = float(q_values.min(initial=1.0)), 0, []
    for _ in range(deals):
        lowest_q, found = _summarize_rows(null.p_values(table.counts(_deal_groups(table, rng))))
        # The same deal, summed in another order, may round to just above.
        reached += lowest_q <= min_q + 1e-12
        discoveries.append(found)
    # The smallest corrected p of a group is itself a p-value (Simes 1986): a bound where no deal
    # comes near.
    overall_p = min((reached + 1) / (deals + 1), table.group_count * min_q)
    return Keyness(
        table,
        counts,
        sizes,
        _log_odds(counts, sizes),
        p_values,
        q_values,
        overall_p,
        np.array(discoveries, dtype=np.int64),
    )


def _log_odds(counts: Ints, sizes: Ints) -> Floats:
    having, totals = counts.astype(np.float64), sizes[:, None].astype(np.float64)
    other_having, other_totals = having.sum(axis=0) - having, totals.sum() - totals
    prior = PRIOR_PROMPTS * (having + other_having) / (totals + other_totals)
    with np.errstate(divide="ignore", invalid="ignore"):  # a feature that every prompt has
        first = (having + prior) / (totals + PRIOR_PROMPTS - having - prior)
        second = (other_having + prior) / (other_totals + PRIOR_PROMPTS - other_having - prior)
        difference = np.log(first) - np.log(second)
    return np.asarray(np.nan_to_num(difference, nan=0.0), dtype=np.float64)


def _deal_groups(table: FeatureTable, rng: np.random.Generator) -> Ints:
    """The groups of the prompts, dealt anew within each block."""
    keys = rng.random(len(table.prompt_groups))
    # Both orders go block by block, so each block deals its own groups to its own prompts.
    places = np.lexsort((table.prompt_groups, table.prompt_blocks))
    dealt = np.empty_like(table.prompt_groups)
    dealt[np.lexsort((keys, table.prompt_blocks))] = table.prompt_groups[places]
    return dealt


def _adjust_rows(p_values: Floats) -> Floats:
    """Benjamini and Hochberg's correction of each row."""
    n = p_values.shape[1]
    if not n:
        return p_values
    order = np.argsort(p_values, axis=1)
    scaled = np.take_along_axis(p_values, order, axis=1) * n / np.arange(1, n + 1)
    lowest = np.minimum.accumulate(scaled[:, ::-1], axis=1)[:, ::-1]
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, np.minimum(lowest, 1.0), axis=1)
    return adjusted


class _RowSummary(NamedTuple):
    """The lowest q-value, and how many are significant."""

    least_q_value: float
    significant: int


def _summarize_rows(p_values: Floats) -> _RowSummary:
    """The lowest q-value that `_adjust_rows` would give, and how many it would call significant:
    which q-value is whose takes most of its time, and no deal needs it."""
    n = p_values.shape[1]
    if not p_values.size:
        return _RowSummary(1.0, 0)
    scaled = np.sort(p_values, axis=1) * n / np.arange(1, n + 1)
    ranks = np.where(scaled <= SIGNIFICANCE_LEVEL, np.arange(1, n + 1), 0)
    return _RowSummary(min(1.0, float(scaled.min())), int(ranks.max(axis=1).sum()))


class _NullDistribution:
    """The p-value of every count of every feature in every group: dealing within blocks leaves the
    margins, and so these distributions, as they are."""

    def __init__(self, table: FeatureTable) -> None:
        blocks = int(table.prompt_blocks.max(initial=-1)) + 1
        of_block = np.zeros((blocks, table.group_count), dtype=np.int64)
        np.add.at(of_block, (table.prompt_blocks, table.prompt_groups), 1)
        having = np.zeros((blocks, table.feature_count), dtype=np.int64)
        np.add.at(having, (table.prompt_blocks[table.rows], table.columns), 1)
        start_of: dict[tuple[tuple[int, ...], ...], int] = {}  # of the distribution of margins
        distributions: list[Floats] = []
        starts = np.zeros((table.group_count, table.feature_count), dtype=np.int64)
        start = 0
        for feature in range(table.feature_count):
            blocks_having = np.flatnonzero(having[:, feature])
            for group in range(table.group_count):
                key = tuple(
                    (int(of_block[b].sum()), int(having[b, feature]), int(of_block[b, group]))
                    for b in blocks_having
                )
                if key not in start_of:
                    start_of[key] = start
                    distributions.append(_p_of_counts(key))
                    start += len(distributions[-1])
                starts[group, feature] = start_of[key]
        self._starts = starts
        self._p_values = np.concatenate(distributions) if distributions else np.zeros(0)

    def p_values(self, counts: Ints) -> Floats:
        return np.asarray(self._p_values[self._starts + counts], dtype=np.float64)


def _p_of_counts(blocks: Sequence[tuple[int, ...]]) -> Floats:
    """Two-sided p-values of 0, 1 ... prompts with the feature, from the size of each block, the
    prompts there that have it, and those of the group."""
    chances = np.ones(1)
    for size, having, group_size in blocks:
        # Blocks are dealt separately, so their counts add up.
        chances = np.convolve(chances, _hypergeometric(size, having, group_size))
    below, above = np.cumsum(chances), np.cumsum(chances[::-1])[::-1]
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)), dtype=np.float64)


@cache
def _hypergeometric(size: int, having: int, group_size: int) -> Floats:
    """The chances of 0 ... `having` among `group_size` of `size`, by their ratios."""
    low, high = max(0, having + group_size - size), min(having, group_size)
    k = np.arange(low, high, dtype=np.float64)
    # Neighbours differ by a simple ratio; the binomial coefficients themselves would overflow.
    ratios = np.log((having - k) * (group_size - k)) - np.log(
        (k + 1) * (size - having - group_size + k + 1)
    )
    logs = np.concatenate([[0.0], np.cumsum(ratios)])
    chances = np.exp(logs - logs.max())
    distribution = np.zeros(having + 1)
    distribution[low : high + 1] = chances / chances.sum()
    return distribution
