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
        rank: of the group among the `of` groups of its category, 1 the likeliest; None without.
        surprisal: of the statement after the group, in bits (for a masked model, of the whole).
        lift: how much likelier, in bits, the statement is of the group than of the others, beyond
            the group's base rate; its interval is over the other groups (`kgbias.probe.belief`).
        p_value: of the lift, corrected.
        vectors: whose vectors `association` is from; "" without.
        stands: what stands for the group in them: a kind of its indicators, or "group names".
        association: how much nearer the statement is to the group than to the others, in standard
            deviations (`kgbias.evidence.association`); its interval is over the other groups.
        association_p: of the association, by the same test and correction as that of the lift.
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
    rank: int | None
    of: int
    surprisal: float
    lift: Estimate
    p_value: float
    vectors: str
    stands: str
    association: Estimate
    association_p: float
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
