"""From answers to shares: how often a group is chosen, and how much that says of a statement.

A group that was offered by several names is tested as what a model believes of it is
(`kgbias.probe.belief`): the names are the sample.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from kgbias.graph.types import MORE, OF_NAME, GroupName
from kgbias.models.score.base import Array, Counts
from kgbias.probe.belief import BELIEVED, Design, Floor, Tested, floor
from kgbias.stats.inference import DRAWS, Estimate, benjamini_hochberg, proportion

LEVEL = 0.05
_CHUNK = 4_000_000  # resampled statements held at once


@dataclass(frozen=True, slots=True)
class Shares:
    """How often the groups of a category were chosen for its statements; each table is [groups,
    statements].

    The intervals of shares are Wilson's. Answers to one question are independent draws of the
    model. That a share is over several orders of the options, and is another one in each, makes it
    vary less than the binomial that the interval is for: it holds at least 95%.

    Attributes:
        answered: how many answers there are to questions that offered the group.
        chosen: how many of them named it.
        share, low, high: chosen of answered, with its interval; NaN without answers.
        base: of each group [groups] its share over all statements; its interval is over statements
            (`over_statements`).
        names: by how many names each group was offered, [groups].
        lift, lift_low, lift_high: in bits. Of a group with one name the share over the base rate
            (`lifts`); with several, its names' against the other groups' (`Tested.lift`), each
            name's over its own base rate.
        p_values: of a group with one name, of each share (`p_values`), corrected over all of these;
            with several, of a lift of at most half a bit, corrected over the group's statements.
        verdicts: MORE, "leaning", "bound to a word" or "" of a group with several names; OF_NAME or
            "" of one with one.
        floor: what is found of groups with several names where names are dealt anew over groups,
            each without what its group says.
    """

    answered: Counts
    chosen: Counts
    share: Array
    low: Array
    high: Array
    base: tuple[Estimate, ...]
    lift: Array
    lift_low: Array
    lift_high: Array
    p_values: Array
    names: Counts
    verdicts: NDArray[np.str_]
    floor: Floor | None = None

    @classmethod
    def of(
        cls,
        chosen: Counts,
        answered: Counts,
        names: Sequence[Sequence[GroupName]] = (),
        *,
        seed: int = 0,
    ) -> "Shares":
        """From counts [names, statements] of the names of each group, one group after another;
        without `names`, each has one."""
        of_group = [g for g, own in enumerate(names) for _ in own] or list(range(len(chosen)))
        starts = np.flatnonzero(np.diff(of_group, prepend=-1))
        tested = _tested(chosen, answered, names)
        chosen, answered = (np.add.reduceat(own, starts, axis=0) for own in (chosen, answered))
        pairs = zip(chosen.ravel().tolist(), answered.ravel().tolist(), strict=True)
        cells = [proportion(c, n) for c, n in pairs]
        share, low, high = (
            np.array([getattr(cell, name) for cell in cells]).reshape(chosen.shape)
            for name in ("value", "low", "high")
        )
        base = tuple(
            over_statements(own, of, seed=seed) for own, of in zip(chosen, answered, strict=True)
        )
        rates = np.array([rate.value for rate in base])
        lift, least, most = (lifts(part, answered, rates) for part in (share, low, high))
        p = p_values(chosen, answered)
        if tested:
            p[tested.rows] = np.nan
        p[~np.isnan(p)] = benjamini_hochberg(p[~np.isnan(p)].tolist())
        verdicts = np.where((p <= LEVEL) & (least > 0), OF_NAME, "").astype("<U20")
        if tested:
            test, some = tested.test, answered[tested.rows] > 0
            for table, own in ((lift, test.lift), (least, test.low), (most, test.high),
                               (p, test.q_values)):  # fmt: skip
                table[tested.rows] = np.where(some, own, np.nan)
            words = np.where(test.verdicts == BELIEVED, MORE, test.verdicts)
            verdicts[tested.rows] = np.where(some, words, "")
        count = np.bincount(of_group)
        return cls(
            answered, chosen, share, low, high, base, lift, least, most, p, count, verdicts,
            tested.floor if tested else None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _OfNames:
    """The test over names, the places of the groups that are in it, and its floor."""

    test: Tested
    rows: Counts
    floor: Floor


def _tested(
    chosen: Counts, answered: Counts, names: Sequence[Sequence[GroupName]]
) -> _OfNames | None:
    """The test of the groups that have several names, if two have; each name's lift over its own
    base rate is what a probability is elsewhere."""
    rows = [g for g, own in enumerate(names) if len(own) > 1]
    if len(rows) < 2 or chosen.shape[1] < 2:
        return None
    of_group = np.array([g for g, own in enumerate(names) for _ in own])
    kept = np.isin(of_group, rows)
    chosen, answered = chosen[kept], answered[kept]
    some = answered.sum(axis=1) > 0
    base = chosen.sum(axis=1) / np.where(some, answered.sum(axis=1), 1)
    bits = np.nan_to_num(lifts(chosen / np.maximum(answered, 1), answered, base))
    if not bits.any():
        return None
    listed = [name for g in rows for name in names[g]]
    forms = [name.form for name in listed]
    places = [rows.index(g) for g in of_group[kept].tolist()]
    design = Design(places, [name.root for name in listed], forms)
    nothing = floor(design, design.residuals(bits), forms)
    return _OfNames(design.test(bits), np.array(rows), nothing)


def over_statements(chosen: Counts, answered: Counts, *, seed: int = 0) -> Estimate:
    """A share over statements [statements] with a percentile bootstrap interval. Statements are
    resampled, with all their answers: answers about one statement resemble each other."""
    n = int(answered.sum())
    if not n:
        return Estimate.missing()
    value = float(chosen.sum() / n)
    if (statements := len(answered)) < 2:
        return Estimate.missing(n, value)
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn, step = [], max(1, _CHUNK // statements)
    for start in range(0, DRAWS, step):
        size = (min(step, DRAWS - start), statements)
        weights = rng.multinomial(statements, np.full(statements, 1 / statements), size[0])
        above, below = weights @ chosen, weights @ answered
        drawn.append(above[below > 0] / below[below > 0])
    low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)


def lifts(share: Array, answered: Counts, base: Array) -> Array:
    """In bits, by how much the shares of statements [groups, statements] exceed the base rates of
    the groups [groups].

    lift = log2((answered * share + base) / (answered + 1) / base)

    That is the share with one answer more, which is as the base rate has it: so the lift of a group
    that was never chosen is finite, and tends to 0 with few answers. NaN where nothing was
    answered, and where the base rate is 0."""
    rates = np.where(base > 0, base, np.nan)[:, None]
    return np.asarray(np.log2((answered * share + rates) / (answered + 1) / rates))


def p_values(chosen: Counts, answered: Counts) -> Array:
    """Whether a group is chosen more often for a statement than for the others together: Fisher's
    exact test (1935), one-tailed, not corrected. NaN where either has no answers."""
    found = np.full(chosen.shape, np.nan)
    marked, every = chosen.sum(axis=1), answered.sum(axis=1)
    for (g, s), n in np.ndenumerate(answered):
        if 0 < n < every[g]:
            found[g, s] = _upper_tail(int(chosen[g, s]), int(n), int(marked[g]), int(every[g]))
    return found


def _upper_tail(reached: int, drawn: int, marked: int, every: int) -> float:
    """The chance that at least `reached` of those drawn without putting any back are marked."""
    ways = sum(
        math.comb(marked, k) * math.comb(every - marked, drawn - k)
        for k in range(reached, min(drawn, marked) + 1)
    )
    return float(Fraction(ways, math.comb(every, drawn)))
