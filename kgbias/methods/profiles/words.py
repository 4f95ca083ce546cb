"""Which words tell groups apart? Jensen-Shannon divergence shifts (Gallagher et al. 2021; section
6.3).

For a group with word shares p, and all other profiles with shares q, let m = (p + q) / 2. The
divergence in bits is the sum over words of

    p/2 log2(p/m) + q/2 log2(q/m),

each term being at least 0 and the word's contribution. As in Shifterator's JSDivergenceShift (base
2, equal weights, alpha 1), a contribution has the sign of p - q: above 0, the group's profiles have
the word more often; below 0, less often. The absolute contributions add up to the divergence, in
[0, 1].
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgbias.graph.profiles import Profile
from kgbias.io.progress import Progress, SilentProgress
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import benjamini_hochberg, few_units_widening

Matrix = NDArray[np.float64]

DEFAULT_DRAWS = 500
DEFAULT_SHOWN_WORDS = 10  # words per attribute and group, as in the paper
SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class WordShift:
    """What a word contributes to the divergence of a group's profiles from all others.

    Attributes:
        attribute, group, word: the word, and where it stands.
        contribution: in bits, signed: above 0, the group's profiles have it more often.
        low, high: its 95% bootstrap interval over given names.
        p_value: the probability that this many of the group's names (for a contribution below 0,
            this few) have the word in any profile, if the groups were permuted over the names:
            Fisher's exact test, twice the tail on the side of the contribution. A word that one
            name has a hundred times, but fewer names of the group than of others, is not shown to
            be the group's.
        p_adjusted: the same, corrected over all words of the attribute in all groups (Benjamini and
            Hochberg 1995).
        share, others: its share of the group's words under the attribute, and of the others'.
    """

    attribute: str
    group: str
    word: str
    contribution: float
    low: float
    high: float
    p_value: float
    p_adjusted: float
    share: float
    others: float

    @property
    def is_shown(self) -> bool:
        """Whether the word was shown to be more frequent for the group than for others: the
        corrected p is at most 0.05, and the interval of the contribution lies above 0."""
        return self.contribution > 0 and self.p_adjusted <= SIGNIFICANCE_LEVEL and not self.low <= 0


def word_contributions(group_counts: Matrix, other_counts: Matrix) -> Matrix:
    """The signed contribution of each word in bits, along the last axis. `group_counts` and
    `other_counts` are counts or shares, [..., words]; a side without any words gives 0."""
    p, q = _word_shares(group_counts), _word_shares(other_counts)
    is_empty = (p.sum(-1, keepdims=True) == 0) | (q.sum(-1, keepdims=True) == 0)
    signed: Matrix = np.where(is_empty, 0.0, _divergence_terms(p, q))
    return signed


def _divergence_terms(p: Matrix, q: Matrix) -> Matrix:
    """The signed terms of the divergence of shares."""
    m = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(p > 0, p * np.log2(p / m), 0.0)
        right = np.where(q > 0, q * np.log2(q / m), 0.0)
    signed: Matrix = np.sign(p - q) * (left + right) / 2
    return signed


def divergence(group_counts: Matrix, other_counts: Matrix) -> NDArray[np.float64]:
    """The Jensen-Shannon divergence in bits, in [0, 1]."""
    bits: NDArray[np.float64] = np.abs(word_contributions(group_counts, other_counts)).sum(-1)
    return bits


def word_shifts(
    profiles: Sequence[Profile],
    groups: Sequence[str],
    attributes: Sequence[str],
    *,
    shown: int = DEFAULT_SHOWN_WORDS,
    draws: int = DEFAULT_DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[WordShift]:
    """The words of each attribute that tell each group from all others, those that contribute most
    first. A word is a value in a profile, in lower case: "software engineer" is one.

    Intervals and p-values are over names, not profiles: what the model always writes about one name
    is one observation.
    """
    reporter = progress or SilentProgress()
    reporter.stage("words", len(attributes))
    word_list = []
    for attribute in attributes:
        word_list += _attribute_shifts(profiles, groups, attribute, shown, draws, seed)
        reporter.advance()
    return word_list


def top_words(
    words: Sequence[WordShift], shown: int = DEFAULT_SHOWN_WORDS
) -> dict[str, list[WordShift]]:
    """The words of each attribute over all groups, those that contribute most first, each with the
    group that it contributes most for, as in tables 12 and 13 of the paper."""
    words_by_attribute: dict[str, dict[str, WordShift]] = {}
    for shift in sorted(words, key=lambda shift: -shift.contribution):
        if shift.contribution > 0:
            words_by_attribute.setdefault(shift.attribute, {}).setdefault(shift.word, shift)
    return {
        attribute: list(attribute_words.values())[:shown]
        for attribute, attribute_words in words_by_attribute.items()
    }


def _attribute_shifts(
    profiles: Sequence[Profile],
    groups: Sequence[str],
    attribute: str,
    shown: int,
    draws: int,
    seed: int,
) -> list[WordShift]:
    words_by_profile = [[v.casefold() for v in p.values_of(attribute)] for p in profiles]
    vocabulary = sorted({word for words in words_by_profile for word in words})
    kinds = sorted(set(groups))
    if not vocabulary or len(kinds) < 2:
        return []
    place = {word: n for n, word in enumerate(vocabulary)}
    units = sorted({(group, p.name) for group, p in zip(groups, profiles, strict=True)})
    row = {unit: n for n, unit in enumerate(units)}
    counts = np.zeros((len(units), len(vocabulary)))
    for group, profile, words in zip(groups, profiles, words_by_profile, strict=True):
        for word, n in Counter(words).items():
            counts[row[group, profile.name], place[word]] += n
    of_unit = np.array([kinds.index(group) for group, _ in units])
    rng = np.random.default_rng([seed, len(vocabulary)])
    group_counts = _sum_by_group(counts, of_unit, len(kinds))
    total = group_counts.sum(0)
    values = word_contributions(group_counts, total - group_counts)
    p_values = _p_values(counts, of_unit, len(kinds), values)
    adjusted = benjamini_hochberg(p_values.ravel().tolist()).reshape(p_values.shape)
    result = []
    for n, group in enumerate(kinds):
        best_places = [
            int(i) for i in np.argsort(-np.abs(values[n]), kind="stable") if values[n, i] != 0
        ]
        best_places = best_places[:shown]
        low, high = _intervals(counts[:, best_places], counts.sum(1), of_unit == n, draws, rng)
        share, others = _word_shares(group_counts[n]), _word_shares(total - group_counts[n])
        result += [
            WordShift(
                attribute,
                group,
                vocabulary[i],
                float(values[n, i]),
                float(low[k]),
                float(high[k]),
                float(p_values[n, i]),
                float(adjusted[n, i]),
                float(share[i]),
                float(others[i]),
            )
            for k, i in enumerate(best_places)
        ]
    return result


def _sum_by_group(counts: Matrix, of_unit: NDArray[np.int64], kinds: int) -> Matrix:
    sums = np.zeros((kinds, counts.shape[1]))
    np.add.at(sums, of_unit, counts)
    return sums


def _p_values(
    counts: Matrix, of_unit: NDArray[np.int64], kinds: int, contributed: Matrix
) -> Matrix:
    """Twice the probability, if the groups were permuted over the names, that at least as many
    names of a group have a word (or at most as many, if it contributes below 0): Fisher's exact
    test. [groups, words]."""
    from scipy.stats import hypergeom

    having = (counts > 0).astype(np.float64)
    names_having = _sum_by_group(having, of_unit, kinds)
    sizes = np.bincount(of_unit, minlength=kinds)[:, None]
    total_having = having.sum(0)
    # `sf` is the chance of more than a number, not of at least as many.
    more = hypergeom.sf(names_having - 1, len(counts), total_having, sizes)
    fewer = hypergeom.cdf(names_having, len(counts), total_having, sizes)
    p_values: Matrix = np.minimum(1.0, 2 * np.where(contributed > 0, more, fewer))
    return p_values


def _intervals(
    counts: Matrix,
    totals: NDArray[np.float64],
    in_group: NDArray[np.bool_],
    draws: int,
    rng: np.random.Generator,
) -> tuple[Matrix, Matrix]:
    """95% bootstrap intervals of the contributions of some words, with names resampled within the
    group and within all others; moved out where names are few (`few_units_widening`)."""
    if not draws or in_group.sum() < 2 or (~in_group).sum() < 2:
        no_interval = np.full(counts.shape[1], np.nan)
        return no_interval, no_interval
    side_shares, found_shares = [], []
    for side in (in_group, ~in_group):
        n = int(side.sum())
        found_shares.append(counts[side].sum(axis=0)[None] / max(float(totals[side].sum()), 1e-12))
        weights = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)
        drawn_totals = weights @ totals[side]
        side_shares.append((weights @ counts[side]) / np.maximum(drawn_totals, 1e-12)[:, None])
    # A contribution grows with the square of the difference of shares: roots are moved out.
    (found,), values = (
        _signed_root(_divergence_terms(*shares)) for shares in (found_shares, side_shares)
    )
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    widening = few_units_widening(int(min(in_group.sum(), (~in_group).sum())))
    ends = found - (found - low) * widening, found + (high - found) * widening
    # Half a bit is what a word contributes that one side alone has.
    low, high = (np.clip(end * np.abs(end), -0.5, 0.5) for end in ends)
    return low, high


def _signed_root(values: Matrix) -> Matrix:
    roots: Matrix = np.sign(values) * np.sqrt(np.abs(values))
    return roots


def _word_shares(counts: Matrix) -> Matrix:
    total = counts.sum(-1, keepdims=True)
    shares: Matrix = np.divide(
        counts, total, out=np.zeros_like(counts, dtype=float), where=total > 0
    )
    return shares


def word_shift_records(words: Sequence[WordShift]) -> list[Mapping[str, object]]:
    """The words as plain data for JSON; an interval without width has no ends."""
    records: list[Mapping[str, object]] = []
    for word in words:
        record = {name: getattr(word, name) for name in WordShift.__dataclass_fields__}
        if not Estimate(word.contribution, word.low, word.high, 0).is_shown:
            record |= {"low": None, "high": None}
        records.append(record)
    return records
