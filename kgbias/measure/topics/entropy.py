"""Relative entropy: how far a group's topics are from the average group's.

With p the group's topic shares and q the mean of all groups' shares,

    D(p || q) = sum over topics k of p_k log2(p_k / q_k)    [bits]

which is 0 if the group is like the average and grows as it differs (Kullback and Leibler 1951).
The paper's Eq. 1 has a minus sign, so its values are never above 0, and names no base; its Figure 9
is read the other way ("higher indicates more uniqueness"). Both forms are computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.stats.inference import DRAWS, Estimate, Sample, Values


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


def relative_entropies(
    counts: Sequence[Values],
    samples: Sequence[Sample | None] = (),
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> list[RelativeEntropy]:
    """The relative entropy of each group, given its topic counts ([k] each) and, if it is known how
    they were drawn, the topic number of each statement with its design.

    q is the mean of the groups' shares: every group has the same weight, whatever its size (with
    equal sizes, q is the share among all triples). With n statements over k topics, D of the counts
    is too high by about (k - 1) / (2 n ln 2) bits; a bootstrap from the counts repeats the error,
    and so measures it. The estimate is 2 D - mean of the replicates, and the interval is the basic
    one (Davison and Hinkley 1997, section 5.2): 2 D minus the replicates' quantiles. Both are cut
    at 0. All groups are resampled, so q varies too; the topics are held fixed. Statements of one
    prompt tend to share a topic: they are drawn together (`kgbias.stats.designs`). A group without
    counts has NaN and n = 0 and takes no part in q. The interval is NaN below two statements.
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
    tail = (1 - level) / 2
    for place, n in enumerate(filled):
        d, own = float(values[place]), replicates[:, place]
        value = max(0.0, 2 * d - float(own.mean()))
        low = high = nan
        if sizes[place] > 1:
            top, bottom = (float(x) for x in np.quantile(own, [1 - tail, tail]))
            # A value cut at 0 must not fall outside its interval.
            low, high = min(max(0.0, 2 * d - top), value), max(2 * d - bottom, value)
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
