"""What one model scores on one benchmark."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.probe.result import ScorerInfo
from kgbias.stats.estimate import Estimate, nan_to_none


@dataclass(frozen=True, slots=True)
class BenchmarkFigure:
    """A figure of a domain (a bias type, or "overall"), in percent."""

    domain: str
    figure: str
    estimate: Estimate


@dataclass(frozen=True, slots=True, repr=False)
class BenchmarkFigures(Result):
    """The figures of a benchmark, and caveats on them."""

    model: ScorerInfo
    convention: str
    figures: tuple[BenchmarkFigure, ...]
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = [f"  {f.domain} {f.figure}: {f.estimate}" for f in self.figures]
        head = f"{self.model.info.title}, scored as in {self.convention}"
        return "\n".join([head, *rows, *self.remarks])

    def as_dict(self) -> dict[str, Any]:
        figures = {f"{f.domain} {f.figure}": f.estimate.as_dict() for f in self.figures}
        answer: dict[str, Any] = {"convention": self.convention, "figures": figures}
        if self.remarks:
            answer["remarks"] = list(self.remarks)
        return {"model": self.model.as_dict(), **nan_to_none(answer)}

    def as_rows(self) -> Rows[BenchmarkFigure]:
        """The figures, in percent. Columns: domain, figure, value, low, high, n."""
        columns = (
            Column("domain"),
            Column("figure"),
            Column("value", ".1f", interval=True, get=attrgetter("estimate"), ends=("low", "high")),
            Column("n", "d", get=attrgetter("estimate.n")),
        )
        return Rows(self.figures, columns)
