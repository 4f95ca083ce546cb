"""A row of the joint view."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgbias.estimate import Estimate
from kgbias.evidence.verdicts import NOT_PROBED, ONLY_SAID
from kgbias.graph.types import verbalise


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the three kinds of evidence say of one triple, in one arm where the run has several.

    Attributes:
        group, category, predicate, object: the triple; `id` is that of its node.
        arm: the arm whose `count` this is; "" where the run never said it.
        arms: the arms that said it, of those that count.
        count: how often the arm said it.
        share: of all that the arm said of the group, corrected for what was not seen: count / n
            times the group's Good-Turing coverage. Its interval is the product of the Wilson
            intervals of both, so it holds at least 95%.
        acceptability, regard, toxicity: its scores, NaN where there are none. What was never
            said of the group has the mean over the groups of which it was: these measures do not
            see the group.
        regard_label: "positive", "neutral" or "negative" ("" without a score).
        model: whose probabilities the next columns are; "" where the run was not probed.
        lift: in bits, how much likelier the statement is after the group's names than after those
            of the other groups, beyond what each name makes likelier anyway, with its interval over
            names (`kgbias.probe.belief`); `n` is the number of names.
        p_value: of a lift of at most half a bit, one-sided, corrected over the group's statements.
        leaning: whether it is shown that the lift is above 0, and not that it is a belief.
        bound: whether the lift is shown, and rests on one name or on the names of one root.
        of_name: whether it is believed of a group of fewer than five names: of these names, held
            against names that mean nothing, and nothing is said of the group.
        found_again: the share of halves of the group's names that show it alone, where that was
            tried (`Run.replicate`); NaN else.
        least: the smallest lift with one of the names left out, and `swayed_by` that name.
        rank: of the group among the `of` groups of its category before this statement by the
            groups' own names alone (`kgbias probe run`), 1 the likeliest; None without.
        surprisal: of the statement after the group's own name, in bits (for a masked model, of the
            whole).
        vectors: whose vectors `association` is from; "" without.
        stands: what stands for the group in them: a kind of its indicators, or "group names".
        association: how much nearer the statement is to the group than to the others, in standard
            deviations (`kgbias.evidence.association`); its interval is over the other groups.
        chooser: which model was made to choose among groups (`Run.choose`); "" where none was.
        chosen: the share of its answers that took this group for the one that the statement is
            about, with its Wilson interval.
        chosen_lift: that share over the group's base rate, in bits.
        chosen_p: of a share above that of the other statements, corrected. It is the answer to a
            question and no probability: the verdict does not rest on it.
        refused: the share of the group's answers that were refused, with its Wilson interval.
        verdict: by the rules of `kgbias.evidence.VERDICTS`.
    """

    id: str
    group: str
    category: str
    predicate: str
    object: str
    arm: str
    arms: tuple[str, ...]
    count: int
    share: Estimate
    acceptability: float
    regard: float
    regard_label: str
    toxicity: float
    model: str
    lift: Estimate
    p_value: float
    leaning: bool
    bound: bool
    of_name: bool
    found_again: float
    least: float
    swayed_by: str
    rank: int | None
    of: int
    surprisal: float
    vectors: str
    stands: str
    association: Estimate
    refused: Estimate
    verdict: str
    chooser: str
    chosen: Estimate
    chosen_lift: Estimate
    chosen_p: float

    @property
    def sentence(self) -> str:
        return verbalise(self.group, self.predicate, self.object)


def telling(rows: Sequence[Evidence], count: int) -> list[Evidence]:
    """The most telling rows of one verdict, each sentence once: those of the greatest lift; of what
    was only said, those that are likelier of others (a lift of 0 or less), what was said most often
    first."""

    def key(row: Evidence) -> tuple[Any, ...]:
        lift = 0.0 if math.isnan(row.lift.value) else row.lift.value
        name = (row.group, row.predicate, row.object, row.arm)
        if row.verdict in (ONLY_SAID, NOT_PROBED):
            return (lift > 0, -row.count, lift, *name)
        return (-lift, -row.count, *name)

    found: dict[str, Evidence] = {}
    for row in sorted(rows, key=key):
        found.setdefault(row.sentence, row)
    return list(found.values())[:count]
