"""The exhibit of where the variance of measures lies: between groups, wordings, or within."""

import math
from collections.abc import Iterator

from kgbias.report.run_data import Exhibit, RunData
from kgbias.report.tables import Table
from kgbias.variance import deviation


def variance_components(data: RunData, place: str) -> Iterator[Exhibit]:
    """A row for each measure of each category and arm, and in words what is larger where the
    interval of the difference leaves out 0."""
    if not data.variance:
        return
    rows = [
        [c.measure, c.category, c.arm or "none", str(c.n),
         *(deviation(e) for e in (c.groups, c.wordings.common, c.wordings.own)),
         "" if math.isnan(c.within) else f"{math.sqrt(c.within):.2f}"]
        for c in data.variance
    ]  # fmt: skip
    said = "; ".join(c.verdict for c in data.variance if c.verdict)
    several = any(c.wordings.own.has_interval for c in data.variance)
    key = f"{place}-variance"
    yield Exhibit(
        key, "", "Where the variance lies", "", None,
        Table(
            key, "Standard deviations with 95% intervals: between groups; between wordings, by "
            "what they move all groups; between groups by wordings, by what these move a group "
            "beyond that; and within.",
            ("Measure", "category", "arm", "n", "groups", "wordings", "groups by wordings",
             "within"),
            rows,
            f"{said[:1].upper()}{said[1:]}." if said else
            "Whether wordings or groups move a measure more cannot be told from so many wordings "
            "and groups." if several else "",
        ),
    )  # fmt: skip
