"""The exhibit of where the variance of measures lies: between groups, wordings, or within."""

import math
from collections.abc import Iterator

from kgbias.report.run_data import Exhibit, RunData
from kgbias.report.tables import Table


def variance_components(data: RunData, place: str) -> Iterator[Exhibit]:
    """A row for each measure of each category and arm, and in words where the wording moves a
    group more than groups differ."""
    if not data.variance:
        return
    rows = [
        [c.measure, c.category, c.arm or "none", str(c.n), *map(_sd, (c.groups, c.wordings)),
         _sd(c.within)]
        for c in data.variance
    ]  # fmt: skip
    said = [c.verdict for c in data.variance if c.verdict]
    key = f"{place}-variance"
    yield Exhibit(
        key, "", "Where the variance lies", "", None,
        Table(
            key, "Standard deviations between groups, between the wordings of a group's prompts, "
            "and within.", ("Measure", "category", "arm", "n", "groups", "wordings", "within"),
            rows,
            "; ".join(said)[:1].upper() + "; ".join(said)[1:] + "." if said else
            "No wording moves a group more than groups differ."
            if any(not math.isnan(c.wordings) for c in data.variance) else "",
        ),
    )  # fmt: skip


def _sd(variance: float) -> str:
    return "" if math.isnan(variance) else f"{math.sqrt(variance):.3f}"
