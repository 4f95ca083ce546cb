"""A figure of a group, with its interval."""

import html
from dataclasses import dataclass

from kgbias.estimate import Estimate, covered
from kgbias.measures import figures
from kgbias.text import printable


@dataclass(frozen=True, slots=True)
class Figure(Estimate):
    """A figure of one group in one run: `value` with its 95% interval from `low` to `high` (NaN
    where there is none), and `n`, the number of statements behind it.

    Attributes:
        group: the group.
        measure: the name of the figure, such as "overall_regard" (`kgbias.measures.figures` lists
            them with what a higher value means).
        method: how the interval was computed, and which variances it covers.
        arm: the arm that it is of, "" in a run of one arm.
    """

    group: str
    measure: str
    method: str = ""
    arm: str = ""

    def __str__(self) -> str:
        return f"{self._called}: {Estimate.__str__(self)}"

    def _repr_html_(self) -> str:
        return f"{html.escape(self._called)}: {Estimate.__str__(self)}"

    @property
    def covers(self) -> tuple[str, ...]:
        """Which variances the interval covers: "statements", "wordings", "recrawls"
        (`kgbias.estimate.covered`); empty where it is not said."""
        return covered(self.method)

    @property
    def _called(self) -> str:
        known = figures().get(self.measure)
        return f"{known.title if known else self.measure} of {printable(self.group)}"
