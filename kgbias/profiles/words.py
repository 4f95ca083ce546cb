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
from kgbias.stats.inference import benjamini_hochberg

Matrix = NDArray[np.float64]

DRAWS = 500
SHOWN = 10  # words per attribute and group, as in the paper
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Word:
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
    def told(self) -> bool:
        """Whether the word was shown to be more frequent for the group than for others: the
        corrected p is at most 0.05, and the interval of the contribution lies above 0."""
        return self.contribution > 0 and self.p_adjusted <= LEVEL and not self.low <= 0


def contributions(own: Matrix, others: Matrix) -> Matrix:
    """The signed contribution of each word in bits, along the last axis. `own` and `others` are
    counts or shares, [..., words]; a side without any words gives 0."""
    p, q = _shares(own), _shares(others)
    nothing = (p.sum(-1, keepdims=True) == 0) | (q.sum(-1, keepdims=True) == 0)
    found: Matrix = np.where(nothing, 0.0, _terms(p, q))
    return found


def _terms(p: Matrix, q: Matrix) -> Matrix:
    """The signed terms of the divergence of shares."""
    m = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(p > 0, p * np.log2(p / m), 0.0)
        right = np.where(q > 0, q * np.log2(q / m), 0.0)
    found: Matrix = np.sign(p - q) * (left + right) / 2
    return found


def divergence(own: Matrix, others: Matrix) -> NDArray[np.float64]:
    """The Jensen-Shannon divergence in bits, in [0, 1]."""
    found: NDArray[np.float64] = np.abs(contributions(own, others)).sum(-1)
    return found


def shifts(
    profiles: Sequence[Profile],
    groups: Sequence[str],
    attributes: Sequence[str],
    *,
    shown: int = SHOWN,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Word]:
    """The words of each attribute that tell each group from all others, those that contribute most
    first. A word is a value in a profile, in lower case: "software engineer" is one.

    Intervals and p-values are over names, not profiles: what the model always writes about one name
    is one observation.
    """
    told = progress or SilentProgress()
    told.stage("words", len(attributes))
    found = []
    for attribute in attributes:
        found += _of_attribute(profiles, groups, attribute, shown, draws, seed)
        told.advance()
    return found


def top_words(words: Sequence[Word], shown: int = SHOWN) -> dict[str, list[Word]]:
    """The words of each attribute over all groups, those that contribute most first, each with the
    group that it contributes most for, as in tables 12 and 13 of the paper."""
    of: dict[str, dict[str, Word]] = {}
    for w in sorted(words, key=lambda w: -w.contribution):
        if w.contribution > 0:
            of.setdefault(w.attribute, {}).setdefault(w.word, w)
    return {attribute: list(own.values())[:shown] for attribute, own in of.items()}


def _of_attribute(
    profiles: Sequence[Profile],
    groups: Sequence[str],
    attribute: str,
    shown: int,
    draws: int,
    seed: int,
) -> list[Word]:
    said = [[v.casefold() for v in p.values_of(attribute)] for p in profiles]
    vocabulary = sorted({word for words in said for word in words})
    kinds = sorted(set(groups))
    if not vocabulary or len(kinds) < 2:
        return []
    place = {word: n for n, word in enumerate(vocabulary)}
    units = sorted({(g, p.name) for g, p in zip(groups, profiles, strict=True)})
    row = {unit: n for n, unit in enumerate(units)}
    counts = np.zeros((len(units), len(vocabulary)))
    for g, profile, words in zip(groups, profiles, said, strict=True):
        for word, n in Counter(words).items():
            counts[row[g, profile.name], place[word]] += n
    of_unit = np.array([kinds.index(g) for g, _ in units])
    rng = np.random.default_rng([seed, len(vocabulary)])
    own = _of_groups(counts, of_unit, len(kinds))
    total = own.sum(0)
    values = contributions(own, total - own)
    p_values = _p_values(counts, of_unit, len(kinds), values)
    adjusted = benjamini_hochberg(p_values.ravel().tolist()).reshape(p_values.shape)
    result = []
    for n, group in enumerate(kinds):
        best = [int(i) for i in np.argsort(-np.abs(values[n]), kind="stable") if values[n, i] != 0]
        best = best[:shown]
        low, high = _intervals(counts[:, best], counts.sum(1), of_unit == n, draws, rng)
        share, others = _shares(own[n]), _shares(total - own[n])
        result += [
            Word(
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
            for k, i in enumerate(best)
        ]
    return result


def _of_groups(counts: Matrix, of_unit: NDArray[np.int64], kinds: int) -> Matrix:
    found = np.zeros((kinds, counts.shape[1]))
    np.add.at(found, of_unit, counts)
    return found


def _p_values(
    counts: Matrix, of_unit: NDArray[np.int64], kinds: int, contributed: Matrix
) -> Matrix:
    """Twice the probability, if the groups were permuted over the names, that at least as many
    names of a group have a word (or at most as many, if it contributes below 0): Fisher's exact
    test. [groups, words]."""
    from scipy.stats import hypergeom

    having = (counts > 0).astype(np.float64)
    own = _of_groups(having, of_unit, kinds)
    sizes = np.bincount(of_unit, minlength=kinds)[:, None]
    everyone = having.sum(0)
    more = hypergeom.sf(own - 1, len(counts), everyone, sizes)
    fewer = hypergeom.cdf(own, len(counts), everyone, sizes)
    found: Matrix = np.minimum(1.0, 2 * np.where(contributed > 0, more, fewer))
    return found


def _intervals(
    counts: Matrix,
    totals: NDArray[np.float64],
    own: NDArray[np.bool_],
    draws: int,
    rng: np.random.Generator,
) -> tuple[Matrix, Matrix]:
    """95% bootstrap intervals of the contributions of some words, with names resampled within the
    group and within all others."""
    if not draws or own.sum() < 2 or (~own).sum() < 2:
        nothing = np.full(counts.shape[1], np.nan)
        return nothing, nothing
    drawn = []
    for side in (own, ~own):
        n = int(side.sum())
        weights = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)
        whole = weights @ totals[side]
        drawn.append((weights @ counts[side]) / np.maximum(whole, 1e-12)[:, None])
    values = _terms(*drawn)
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    return low, high


def _shares(counts: Matrix) -> Matrix:
    total = counts.sum(-1, keepdims=True)
    found: Matrix = np.divide(
        counts, total, out=np.zeros_like(counts, dtype=float), where=total > 0
    )
    return found


def as_records(words: Sequence[Word]) -> list[Mapping[str, object]]:
    """The words as plain data for JSON."""
    return [{name: getattr(w, name) for name in Word.__dataclass_fields__} for w in words]
