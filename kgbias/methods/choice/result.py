"""The results of forced choices: how often a group is chosen, and how much that says about a
statement.

A group offered under several names is tested in the same way as beliefs (`kgbias.probe.belief`):
the names are the sample.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.graph.types import CHOSEN_MORE, CHOSEN_OF_NAME, ChoiceRun, Group, GroupName
from kgbias.io.rows import Result, Rows
from kgbias.methods.choice.config import FAILED
from kgbias.models.budget import Usage
from kgbias.models.score.base import Array, Counts
from kgbias.probe.belief import BELIEVED, BeliefFloor, BeliefTest, NameDesign, deal_names
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import (
    MIN_CLUSTERS,
    benjamini_hochberg,
    beta_binomial_interval,
    proportion,
)

SIGNIFICANCE_LEVEL = 0.05
_MAX_CHUNK_WEIGHTS = 4_000_000  # resampled statements held at once


@dataclass(frozen=True, slots=True)
class ChoiceShares:
    """How often the groups of a category were chosen for its statements; each table is [groups,
    statements].

    The intervals of shares are Wilson's. Answers to one question are independent draws from the
    model. A share averages over several orders of the options, with a different probability in
    each, which makes it vary less than the binomial that the interval assumes: coverage is at
    least 95%.

    Attributes:
        answer_counts: the number of answers to questions that offered the group.
        chosen_counts: how many of them named it.
        share, low, high: chosen of answered, with its interval; NaN without answers.
        base: each group's share over all statements, [groups]; its interval is over statements
            (`share_over_statements`).
        names: the number of names that each group was offered under, [groups].
        lift, lift_low, lift_high: in bits. For a group with one name, the share over the base rate
            (`share_lifts`); with several, its names' against the other groups' (`BeliefTest.lift`),
            each name's over its own base rate.
        q_values: for a group with one name, that of each share (`fisher_p_values`), corrected over
            all of these; with several, that of a lift of at most half a bit, corrected over the
            group's statements.
        verdicts: CHOSEN_MORE, "leaning", "bound to a word" or "" for a group with several names;
            CHOSEN_OF_NAME or "" for a group with one.
        floor: what is found for groups with several names when names, each without what its group
            explains, are dealt at random to the groups.
    """

    answer_counts: Counts
    chosen_counts: Counts
    share: Array
    low: Array
    high: Array
    base: tuple[Estimate, ...]
    lift: Array
    lift_low: Array
    lift_high: Array
    q_values: Array
    names: Counts
    verdicts: NDArray[np.str_]
    floor: BeliefFloor | None = None

    @classmethod
    def from_counts(
        cls,
        chosen_counts: Counts,
        answer_counts: Counts,
        names: Sequence[Sequence[GroupName]] = (),
    ) -> "ChoiceShares":
        """Compute the shares from counts [names, statements], group by group; `names` are those
        that each group was offered under (none: one for each group)."""
        of_group = [g for g, group_names in enumerate(names) for _ in group_names] or list(
            range(len(chosen_counts))
        )
        starts = np.flatnonzero(np.diff(of_group, prepend=-1))
        name_test = _test_names(chosen_counts, answer_counts, names)
        chosen_counts, answer_counts = (
            np.add.reduceat(counts, starts, axis=0) for counts in (chosen_counts, answer_counts)
        )
        pairs = zip(chosen_counts.ravel().tolist(), answer_counts.ravel().tolist(), strict=True)
        cells = [proportion(c, n) for c, n in pairs]
        share, low, high = (
            np.array([getattr(cell, name) for cell in cells]).reshape(chosen_counts.shape)
            for name in ("value", "low", "high")
        )
        base = tuple(
            share_over_statements(group_chosen, group_answers)
            for group_chosen, group_answers in zip(chosen_counts, answer_counts, strict=True)
        )
        rates = np.array([rate.value for rate in base])
        lift, lift_low, lift_high = (
            share_lifts(part, answer_counts, rates) for part in (share, low, high)
        )
        p_values = fisher_p_values(chosen_counts, answer_counts)
        if name_test:
            # Groups with several names have a test of their own, corrected by itself.
            p_values[name_test.rows] = np.nan
        is_tested = ~np.isnan(p_values)
        q_values = np.full(p_values.shape, np.nan)
        q_values[is_tested] = benjamini_hochberg(p_values[is_tested].tolist())
        is_chosen = (q_values <= SIGNIFICANCE_LEVEL) & (lift_low > 0)
        # Wide enough for the verdicts of groups with several names, which take some places below.
        verdicts = np.where(is_chosen, CHOSEN_OF_NAME, "").astype("<U20")
        if name_test:
            test, has_answers = name_test.test, answer_counts[name_test.rows] > 0
            for table, tested in (
                (lift, test.lift),
                (lift_low, test.low),
                (lift_high, test.high),
                (q_values, test.q_values),
            ):
                table[name_test.rows] = np.where(has_answers, tested, np.nan)
            words = np.where(test.verdicts == BELIEVED, CHOSEN_MORE, test.verdicts)
            verdicts[name_test.rows] = np.where(has_answers, words, "")
        count = np.bincount(of_group)
        return cls(
            answer_counts,
            chosen_counts,
            share,
            low,
            high,
            base,
            lift,
            lift_low,
            lift_high,
            q_values,
            count,
            verdicts,
            name_test.floor if name_test else None,
        )


@dataclass(frozen=True, slots=True)
class _NameTest:
    """The test over names, the places of the groups in it, and its floor."""

    test: BeliefTest
    rows: Counts
    floor: BeliefFloor


def _test_names(
    chosen_counts: Counts, answer_counts: Counts, names: Sequence[Sequence[GroupName]]
) -> _NameTest | None:
    """The test of the groups with several names, if there are at least two; each name's lift over
    its own base rate takes the place of a log2 probability."""
    rows = [g for g, own in enumerate(names) if len(own) > 1]
    if len(rows) < 2 or chosen_counts.shape[1] < 2:
        return None
    of_group = np.array([g for g, own in enumerate(names) for _ in own])
    in_test = np.isin(of_group, rows)
    chosen_counts, answer_counts = chosen_counts[in_test], answer_counts[in_test]
    has_answers = answer_counts.sum(axis=1) > 0
    base = chosen_counts.sum(axis=1) / np.where(has_answers, answer_counts.sum(axis=1), 1)
    bits = np.nan_to_num(
        share_lifts(chosen_counts / np.maximum(answer_counts, 1), answer_counts, base)
    )
    if not bits.any():
        return None
    tested_names = [name for g in rows for name in names[g]]
    forms = [name.form for name in tested_names]
    places = [rows.index(g) for g in of_group[in_test].tolist()]
    design = NameDesign(places, [name.root for name in tested_names], forms)
    floor_found = deal_names(design, design.residuals(bits), forms)
    return _NameTest(design.test(bits), np.array(rows), floor_found)


def share_over_statements(chosen_counts: Counts, answer_counts: Counts) -> Estimate:
    """A share of answers, with its interval over statements [statements], each drawn with all its
    answers, because answers about one statement resemble each other: that of a beta-binomial model
    (`beta_binomial_interval`). No interval for fewer than three statements."""
    n = int(answer_counts.sum())
    if not n:
        return Estimate.missing()
    value = float(chosen_counts.sum() / n)
    if int((answer_counts > 0).sum()) < MIN_CLUSTERS:
        return Estimate.missing(n, value)
    low, high = beta_binomial_interval(
        chosen_counts.astype(np.float64), answer_counts.astype(np.float64)
    )
    return Estimate(value, min(low, value), max(high, value), n)


def share_lifts(share: Array, answer_counts: Counts, base: Array) -> Array:
    """By how much, in bits, the shares of statements [groups, statements] exceed the base rates of
    the groups [groups].

    lift = log2((answered * share + base) / (answered + 1) / base)

    That is the share with one more answer, which counts at the base rate: this keeps the lift of a
    group that was never chosen finite, and pulls it to 0 when answers are few. NaN if nothing was
    answered, or if the base rate is 0."""
    rates = np.where(base > 0, base, np.nan)[:, None]
    return np.asarray(np.log2((answer_counts * share + rates) / (answer_counts + 1) / rates))


def fisher_p_values(chosen_counts: Counts, answer_counts: Counts) -> Array:
    """Whether a group is chosen more often for a statement than for the others together: p-values
    of Fisher's exact test (1935), one-tailed, not corrected. NaN if either has no answers."""
    values = np.full(chosen_counts.shape, np.nan)
    chosen_totals, answer_totals = chosen_counts.sum(axis=1), answer_counts.sum(axis=1)
    for (g, s), n in np.ndenumerate(answer_counts):
        if 0 < n < answer_totals[g]:
            values[g, s] = _upper_tail(
                int(chosen_counts[g, s]), int(n), int(chosen_totals[g]), int(answer_totals[g])
            )
    return values


def _upper_tail(at_least: int, draw_size: int, marked: int, total: int) -> float:
    """The chance that at least `at_least` of those drawn, without replacement, are marked."""
    ways = sum(
        math.comb(marked, k) * math.comb(total - marked, draw_size - k)
        for k in range(at_least, min(draw_size, marked) + 1)
    )
    # Exact, as both numbers may be too large for a float.
    return float(Fraction(ways, math.comb(total, draw_size)))


@dataclass(frozen=True)
class CategoryChoices:
    """The forced choices among the groups of one category.

    Attributes:
        category: its name.
        groups, statements: what was asked about.
        names: the names that each group was offered under.
        options: how many groups each question offered.
        said_counts: how often the run said the statement about the group, [groups, statements].
        shares: how often each group was chosen.
        option_counts: how many of the readable answers named the first option, the second, and so
            on.
        outcomes: how many answers were "read", "refused", "unreadable" or "failed".
    """

    category: str
    groups: tuple[Group, ...]
    names: tuple[tuple[GroupName, ...], ...]
    statements: tuple[Statement, ...]
    options: int
    said_counts: Counts
    shares: ChoiceShares
    option_counts: tuple[int, ...]
    outcomes: Counter[str]

    @property
    def places(self) -> tuple[Estimate, ...]:
        """The share of the answers that named the option in each place, with its Wilson interval.
        Every group is in each place equally often, so a model without a preference for a place has
        1 / options everywhere. A preference favours no group, but pulls all shares together."""
        return tuple(proportion(n, sum(self.option_counts)) for n in self.option_counts)

    @property
    def own_share(self) -> Estimate:
        """The share of answers that named a group about which the run said the statement, among
        questions that offered one; each statement counts with each such group. The interval is over
        statements."""
        is_said = self.said_counts > 0
        return share_over_statements(
            (self.shares.chosen_counts * is_said).sum(axis=0),
            (self.shares.answer_counts * is_said).sum(axis=0),
        )

    @property
    def expected_own_share(self) -> float:
        """What `own_share` would be if groups were chosen at their base rates, whatever the
        statement."""
        weights = self.shares.answer_counts * (self.said_counts > 0)
        base = np.array([rate.value for rate in self.shares.base])
        return float((weights.sum(axis=1) * np.nan_to_num(base)).sum() / max(1, weights.sum()))

    @property
    def floor(self) -> dict[str, Any] | None:
        """For groups with several names: the number of pairs of group and statement tried, how many
        were chosen more often, and the mean number when names are dealt at random."""
        name_floor = self.shares.floor
        if name_floor is None:
            return None
        more_count = int((self.shares.verdicts == CHOSEN_MORE).sum())
        return {
            "tested": name_floor.tested,
            "more": more_count,
            "dealt": round(name_floor.found, 3),
        }

    def as_dict(self) -> dict[str, Any]:
        return {
            "groups": len(self.groups),
            "statements": len(self.statements),
            "options": self.options,
            "names": {
                group.name: [name.text for name in own]
                for group, own in zip(self.groups, self.names, strict=True)
            },
            "floor": self.floor,
            "answers": dict(self.outcomes),
            "base": {
                group.name: rate.as_dict()
                for group, rate in zip(self.groups, self.shares.base, strict=True)
            },
            "places": [place.as_dict() for place in self.places],
            "own": self.own_share.as_dict(),
            "own_expected": self.expected_own_share,
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row for each statement and group: `said_counts`, how often the run said it; the `share`
        of the answers that chose the group, `low` to `high`, of `answered`; the `lift` of the share
        over the base rate in bits, with its interval; the corrected p, `q_value`; the number of
        `names` that the group was offered under; and the `verdict`."""
        table = self.shares
        figures = ("share", "low", "high", "lift", "lift_low", "lift_high")
        return [
            {
                "group": group.name,
                "predicate": statement.predicate,
                "object": statement.object,
                "said": int(self.said_counts[g, s]),
                "answered": int(table.answer_counts[g, s]),
                "chosen": int(table.chosen_counts[g, s]),
                **{name: float(getattr(table, name)[g, s]) for name in figures},
                "q_value": float(table.q_values[g, s]),
                "names": int(table.names[g]),
                "verdict": str(table.verdicts[g, s]),
            }
            for s, statement in enumerate(self.statements)
            for g, group in enumerate(self.groups)
        ]


@dataclass(frozen=True, repr=False)
class RunChoices(Result):
    """The forced choices of a model about a run's statements.

    Attributes:
        run: the name of the run.
        choosing: the model, how it was asked, and a summary of the result.
        categories: the choices, category by category.
        asked_count, cached_count: how many answers came from the model in this call, and from the
            answer log.
        spent: what the new answers cost.
    """

    run: str
    choosing: ChoiceRun
    categories: tuple[CategoryChoices, ...]
    asked_count: int = 0
    cached_count: int = 0
    spent: Usage = field(default_factory=Usage)

    @property
    def outcomes(self) -> Counter[str]:
        """How many answers were "read", "refused", "unreadable" or "failed"."""
        return sum((c.outcomes for c in self.categories), Counter())

    @property
    def failed_share(self) -> float:
        """The share of requests that got no answer at all."""
        return self.outcomes[FAILED] / max(1, self.outcomes.total())

    def __str__(self) -> str:
        parts = [f"  {c.category}: own group chosen {c.own_share}" for c in self.categories]
        return "\n".join([f"run {self.run}: choices of {self.choosing.model.title}", *parts])

    def as_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "model": {
                "name": self.choosing.model.title,
                "revision": self.choosing.model.revision,
                **dict(self.choosing.settings),
            },
            "asked": self.asked_count,
            "cached": self.cached_count,
            "prompt_tokens": self.spent.prompt_tokens,
            "completion_tokens": self.spent.completion_tokens,
            "cost": self.spent.cost,
            **nan_to_none(
                {
                    "categories": {c.category: c.as_dict() for c in self.categories},
                    "choices": [
                        {"category": c.category, **row} for c in self.categories for row in c.rows()
                    ],
                }
            ),
        }

    def as_rows(self) -> Rows[dict[str, Any]]:
        """The choices, a row for each statement and group."""
        rows = [{"category": c.category, **row} for c in self.categories for row in c.rows()]
        return Rows(rows, columns=rows[0] if rows else ("category",))
