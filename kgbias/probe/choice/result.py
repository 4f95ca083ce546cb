"""What forced choices say."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kgbias.graph.types import MORE, Choosing, Group, GroupName
from kgbias.models.budget import Spent
from kgbias.models.score.base import Counts
from kgbias.probe.choice.config import FAILED
from kgbias.probe.choice.figures import Shares, over_statements
from kgbias.probe.result import Statement, Summarised
from kgbias.stats.estimate import Estimate, finite
from kgbias.stats.inference import proportion


@dataclass(frozen=True)
class CategoryChoices:
    """The forced choices among the groups of one category.

    Attributes:
        category: its name.
        groups, statements: what was asked about.
        names: those that each group was offered by.
        options: how many groups each question offered.
        said: [groups, statements], how often the run said the statement of the group.
        shares: how often each group was chosen.
        picked: how many of the answers that could be read named the first option, the second ...
        outcomes: how many answers were "read", "refused", "unreadable" or "failed".
    """

    category: str
    groups: tuple[Group, ...]
    names: tuple[tuple[GroupName, ...], ...]
    statements: tuple[Statement, ...]
    options: int
    said: Counts
    shares: Shares
    picked: tuple[int, ...]
    outcomes: Counter[str]

    @property
    def places(self) -> tuple[Estimate, ...]:
        """The share of the answers that named the option in each place, with its Wilson interval.
        Groups are in each place equally often, so that a model without a preference for a place has
        1 / options everywhere. A preference favours no group, but draws all shares together."""
        return tuple(proportion(n, sum(self.picked)) for n in self.picked)

    @property
    def own(self) -> Estimate:
        """The share of answers that named a group of which the run said the statement, where one
        was offered; each statement with each such group counts. The interval is over statements."""
        said = self.said > 0
        return over_statements(
            (self.shares.chosen * said).sum(axis=0), (self.shares.answered * said).sum(axis=0)
        )

    @property
    def own_expected(self) -> float:
        """What `own` would be if the groups were chosen at their base rates whatever the
        statement."""
        weights = self.shares.answered * (self.said > 0)
        base = np.array([rate.value for rate in self.shares.base])
        return float((weights.sum(axis=1) * np.nan_to_num(base)).sum() / max(1, weights.sum()))

    @property
    def floor(self) -> dict[str, Any] | None:
        """Of groups with several names: how many pairs of group and statement were tried, how many
        were chosen more often, and how many where names are dealt anew, the mean over deals."""
        nothing = self.shares.floor
        if nothing is None:
            return None
        more = int((self.shares.verdicts == MORE).sum())
        return {"tested": nothing.tested, "more": more, "dealt": round(nothing.found, 3)}

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
            "own": self.own.as_dict(),
            "own_expected": self.own_expected,
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row for each statement and group: `said`, how often the run said it; the `share` of the
        answers that chose the group, `low` to `high`, of `answered`; the `lift` of the share over
        the base rate in bits, with its interval; the corrected `p_value`, by how many `names` the
        group was offered, and the `verdict`."""
        table = self.shares
        figures = ("share", "low", "high", "lift", "lift_low", "lift_high")
        return [
            {
                "group": group.name,
                "predicate": statement.predicate,
                "object": statement.object,
                "said": int(self.said[g, s]),
                "answered": int(table.answered[g, s]),
                "chosen": int(table.chosen[g, s]),
                **{name: float(getattr(table, name)[g, s]) for name in figures},
                "p_value": float(table.p_values[g, s]),
                "names": int(table.names[g]),
                "verdict": str(table.verdicts[g, s]),
            }
            for s, statement in enumerate(self.statements)
            for g, group in enumerate(self.groups)
        ]


@dataclass(frozen=True, repr=False)
class RunChoices(Summarised):
    """The forced choices of a model about a run's statements.

    Attributes:
        run: the name of the run.
        choosing: the model, how it was asked, and the result in short.
        categories: the choices, category by category.
        asked, cached: how many answers came from the model in this call, and from the answer log.
        spent: what the asked ones took.
    """

    run: str
    choosing: Choosing
    categories: tuple[CategoryChoices, ...]
    asked: int = 0
    cached: int = 0
    spent: Spent = field(default_factory=Spent)

    @property
    def outcomes(self) -> Counter[str]:
        """How many answers were "read", "refused", "unreadable" or "failed"."""
        return sum((c.outcomes for c in self.categories), Counter())

    @property
    def failed(self) -> float:
        """The share of requests that got no answer at all."""
        return self.outcomes[FAILED] / max(1, self.outcomes.total())

    def __str__(self) -> str:
        parts = [f"  {c.category}: own group chosen {c.own}" for c in self.categories]
        return "\n".join([f"run {self.run}: choices of {self.choosing.model.name}", *parts])

    def as_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "model": {
                "name": self.choosing.model.name,
                "revision": self.choosing.model.revision,
                **dict(self.choosing.settings),
            },
            "asked": self.asked,
            "cached": self.cached,
            "prompt_tokens": self.spent.prompt_tokens,
            "completion_tokens": self.spent.completion_tokens,
            "cost": self.spent.cost,
            **finite(
                {
                    "categories": {c.category: c.as_dict() for c in self.categories},
                    "choices": [
                        {"category": c.category, **row} for c in self.categories for row in c.rows()
                    ],
                }
            ),
        }
