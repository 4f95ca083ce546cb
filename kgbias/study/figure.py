"""A figure of a group, with its interval."""

import html
from dataclasses import dataclass

from kgbias.text import printable


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure of one group in one run.

    Attributes:
        group: the group.
        measure: what was measured, such as "overall_regard" or "toxicity_mean".
        value: the figure.
        low: the lower end of its 95% interval, NaN where there is none.
        high: the upper end.
        n: the number of statements behind it.
        method: how value and interval were computed.
    """

    group: str
    measure: str
    value: float
    low: float
    high: float
    n: int
    method: str = ""

    def __str__(self) -> str:
        interval = ""
        if self.low == self.low:
            interval = f" (95% interval {self.low:.4g} to {self.high:.4g})"
        return (
            f"{self.measure} of {printable(self.group)}: {self.value:.4g}{interval}, n = {self.n}"
        )

    def _repr_html_(self) -> str:
        return f'<span title="{html.escape(self.method)}">{html.escape(str(self))}</span>'
