"""A figure with its interval: every number in kgbias that has an uncertainty is an `Estimate`."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from kgbias.io.columns import EstimateCell
from kgbias.io.text import format_number, html

COVERS_WORD = "covers"
"""The word in a method's description that comes before the variances its interval covers."""


def parse_covered_variances(method: str) -> tuple[str, ...]:
    """The variances that an interval covers, read from the description of its method:
    "statements" (another sample from the same model and prompts), "wordings" (other wordings of the
    prompts), "recrawls" (the same crawl once more); empty if it does not say."""
    _, separator, names = method.rpartition(f"{COVERS_WORD} ")
    return tuple(names.split(", ")) if separator else ()


class Interval(NamedTuple):
    """The ends of an interval; NaN for none."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate(EstimateCell):
    """A figure with its 95% interval and the number of observations behind it.

    An interval without width is not shown: observations that all agree do not say how certain a
    figure is (`is_shown`).

    Attributes:
        value: the figure; NaN if nothing was observed.
        low: the lower end of the interval; NaN without one (fewer than two observations).
        high: the upper end.
        n: how many observations it rests on.
    """

    value: float
    low: float
    high: float
    n: int

    @classmethod
    def missing(cls, n: int = 0, value: float = math.nan) -> "Estimate":
        """A figure without an interval and, by default, without a value."""
        return cls(value, math.nan, math.nan, n)

    def divide(self, by: float) -> "Estimate":
        """The figure and its interval, divided."""
        return Estimate(self.value / by, self.low / by, self.high / by, self.n)

    def clip(self, lowest: float, highest: float) -> "Estimate":
        """The figure and its interval, cut to what is possible: sums round, and what a design's
        levels add can carry an end too far."""
        value, low, high = (min(max(x, lowest), highest) for x in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.n)

    def keep_within(self, lowest: float, highest: float) -> "Estimate":
        """`clip`; without an interval if that would hold all that is possible, which says
        nothing."""
        if self.low <= lowest and self.high >= highest:
            return Estimate.missing(self.n, self.clip(lowest, highest).value)
        return self.clip(lowest, highest)

    def format_interval(self, form: str = ".3g", none: str = "-") -> str:
        """The interval as "LOW to HIGH", each end formatted by `form`; `none` without one."""
        if not self.is_shown:
            return none
        return f"{format_number(self.low, form)} to {format_number(self.high, form)}"

    def as_dict(self) -> dict[str, Any]:
        """value, low, high and n for JSON, with None for NaN."""
        low, high = (self.low, self.high) if self.is_shown else (math.nan, math.nan)
        numbers = {"value": self.value, "low": low, "high": high}
        return {name: nan_to_none(x) for name, x in numbers.items()} | {"n": self.n}

    def __str__(self) -> str:
        value = "undefined" if math.isnan(self.value) else f"{self.value:.3g}"
        interval = f" [{self.low:.3g}, {self.high:.3g}]" if self.is_shown else ""
        return f"{value}{interval}, n = {self.n}"

    def _repr_html_(self) -> str:
        """The form that a notebook shows."""
        value, _, rest = str(self).partition(" [" if self.is_shown else ", ")
        opening = " [" if self.is_shown else ", "
        return f"<b>{html(value)}</b>{html(opening + rest)}"


def nan_to_none(value: Any) -> Any:
    """The value as JSON can hold it: NaN and infinities become None, in lists and dictionaries
    too."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: nan_to_none(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [nan_to_none(part) for part in value]
    return value
