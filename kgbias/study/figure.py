"""A figure of a group, with its interval."""

import html
from dataclasses import dataclass
from typing import Any

from kgbias.estimate import Estimate, covered
from kgbias.measures import WITHHELD, figures
from kgbias.text import printable


@dataclass(frozen=True, slots=True)
class Figure(Estimate):
    """A figure of one group in one run: `value` with its 95% interval from `low` to `high` (NaN
    where there is none), and `n`, the number of statements behind it.

    Attributes:
        group: the group.
        measure: the name of the figure, such as "overall_regard" (`kgbias.measures.figures` lists
            them with what a higher value means).
        method: how the interval was computed, and which variances it covers; or why there is no
            value.
        arm: the arm that it is of, "" in a run of one arm.
    """

    group: str
    measure: str
    method: str = ""
    arm: str = ""

    @property
    def withheld(self) -> str:
        """Why the figure has no value although it was asked for; "" where it has one."""
        return self.method.removeprefix(WITHHELD) if self.method.startswith(WITHHELD) else ""

    def as_dict(self) -> dict[str, Any]:
        """As `Estimate`, and with the reason under "withheld" where it has no value for one."""
        reason = {"withheld": self.withheld} if self.withheld else {}
        return Estimate.as_dict(self) | reason

    def __str__(self) -> str:
        text = f"withheld: {self.withheld}" if self.withheld else Estimate.__str__(self)
        return f"{self._called}: {text}"

    def _repr_html_(self) -> str:
        return html.escape(str(self))

    @property
    def covers(self) -> tuple[str, ...]:
        """Which variances the interval covers: "statements", "wordings", "recrawls"
        (`kgbias.estimate.covered`); empty where it is not said."""
        return covered(self.method)

    @property
    def _called(self) -> str:
        known = figures().get(self.measure)
        return f"{known.title if known else self.measure} of {printable(self.group)}"
