"""A figure of a group, with its interval."""

import html
from dataclasses import dataclass
from typing import Any

from kgbias.io.text import printable
from kgbias.measures import WITHHELD, figures
from kgbias.stats.estimate import Estimate, covered

_WIDE = 180  # pixels of a drawn interval


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
        """What a notebook shows: the figure in words, its interval drawn beside 0, and what it
        means."""
        if self.withheld:
            return html.escape(str(self))
        known = figures({self.measure}).get(self.measure)
        notes = [known.direction if known else "", self.method]
        small = "; ".join(html.escape(note) for note in notes if note)
        return f"{Estimate._repr_html_(self)}{self._drawn()}<br><small>{small}</small>"

    def _drawn(self) -> str:
        """The interval as a line with a dot, and a tick at 0; "" without an interval."""
        if not self.has_interval:
            return ""
        widest = max(abs(self.low), abs(self.high), abs(self.value)) or 1.0
        low, value, high = (
            _WIDE / 2 * (1 + x / widest * 0.94) for x in (self.low, self.value, self.high)
        )
        return (
            f' <svg width="{_WIDE}" height="14" role="img" aria-label="interval" '
            'style="vertical-align: middle" stroke="currentColor" fill="currentColor">'
            f'<path d="M{_WIDE / 2} 1V13" stroke-opacity=".4"/>'
            f'<path d="M{low:.1f} 7H{high:.1f}" stroke-width="2"/>'
            f'<circle cx="{value:.1f}" cy="7" r="4" stroke="none"/></svg>'
        )

    @property
    def covers(self) -> tuple[str, ...]:
        """Which variances the interval covers: "statements", "wordings", "recrawls"
        (`kgbias.stats.estimate.covered`); empty where it is not said."""
        return covered(self.method)

    @property
    def _called(self) -> str:
        known = figures({self.measure}).get(self.measure)
        return f"{known.title if known else self.measure} of {printable(self.group)}"
