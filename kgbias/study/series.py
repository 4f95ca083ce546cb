"""A series of repeated crawls: how much a figure varies from crawl to crawl."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Unpack, overload

from kgbias.graph.selection import Selection
from kgbias.graph.types import GroupScore
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import pluralise
from kgbias.measure.configure import MeasureCall
from kgbias.measures import figures_by_name
from kgbias.parameters import Names, SelectionOptions, as_names
from kgbias.study.calls import PublicCalls
from kgbias.study.records import VALUE_COLUMN, Figure, figure_of, summary_columns
from kgbias.study.run import Run


@dataclass(frozen=True, slots=True)
class CrawlSpread:
    """A figure of one group in every crawl of a series.

    Attributes:
        group: the group.
        measure: the name of the figure (`kgbias.measures.figures_by_name`).
        arm: the arm, "" in a series with one arm.
        values: the figure in each crawl, in order; NaN if a crawl lacks it.
    """

    group: str
    measure: str
    arm: str
    values: tuple[float, ...]

    @property
    def n(self) -> int:
        """How many crawls have the figure."""
        return len(self._known_values)

    @property
    def mean(self) -> float:
        """The mean over the crawls; NaN if none has the figure."""
        return statistics.fmean(self._known_values) if self._known_values else math.nan

    @property
    def sd(self) -> float:
        """The standard deviation from crawl to crawl (divided by n - 1); NaN for fewer than two."""
        return statistics.stdev(self._known_values) if self.n > 1 else math.nan

    @property
    def _known_values(self) -> list[float]:
        return [value for value in self.values if not math.isnan(value)]

    def __str__(self) -> str:
        if not self.n:
            return f"{self.measure} of {self.group}: undefined"
        return (
            f"{self.measure} of {self.group}: {self.mean:.3g}, sd {self.sd:.3g} over {self.n} "
            f"crawls (from {min(self._known_values):.3g} to {max(self._known_values):.3g})"
        )


class _FigureKey(NamedTuple):
    """Which figure of a crawl: of this name, of this group, in this arm."""

    measure: str
    group_id: str
    arm: str


class Series(PublicCalls, Result, Sequence[Run]):
    """The runs of a series, in the order they were begun, as made by `Study.crawl` and found by
    `Study.series`."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = tuple(runs)

    @property
    def name(self) -> str:
        """The name of the first run, to which the others add a number."""
        return self._runs[0].name

    def as_rows(self) -> Rows[Run]:
        """The runs; columns as of `Study.runs`."""
        summaries = {run.id: run.summary for run in self}
        return Rows(self._runs, summary_columns(lambda run: summaries[run.id]))

    def __str__(self) -> str:
        # What a notebook shows too: the rows need an open study.
        return repr(self)

    def measure(self, **options: Unpack[MeasureCall]) -> Rows[CrawlSpread]:
        """Measure every run (parameters as in `Run.measure`); returns `figures()`.

        Frame columns: as of `figures`.
        """
        for run in self:
            run.measure(**options)
        return self.figures()

    def figure(self, group: str, measure: str, arm: str = "") -> CrawlSpread:
        """A figure of a group in every crawl, its mean and its standard deviation.

        Raises UsageError for a group that the first run lacks.

        Args:
            group: the group.
            measure: the name of the figure, such as "overall_regard".
            arm: the arm, in a series with several.
        """
        name = self[0].stored.find_group(group).name
        found = self.figures(measure)
        matches = [s for s in found if s.group == name and s.arm == arm]
        return matches[0] if matches else CrawlSpread(name, measure, arm, (math.nan,) * len(self))

    def figures(self, measure: Names = ()) -> Rows[CrawlSpread]:
        """How much each group's figures vary from crawl to crawl, by measure and group.

        Frame columns: measure, group, arm, n (crawls that have it), mean, sd, values.

        Args:
            measure: only these figures, such as "overall_regard" (default: all).
        """
        wanted_figures = as_names(measure)
        names = {g.id: g.name for run in self for g in run.stored.groups}
        values: dict[_FigureKey, dict[int, float]] = {}  # by the number of the crawl
        for number, run in enumerate(self):
            for score in run.stored.find_all(GroupScore):
                if not wanted_figures or score.measure in wanted_figures:
                    key = _FigureKey(score.measure, score.group_id, score.arm)
                    values.setdefault(key, {})[number] = score.value
        order = list(figures_by_name({key.measure for key in values}))
        places = list(names)
        rows = []
        for key in sorted(values, key=lambda key: _sort_key(key, order, places)):
            by_crawl = values[key]
            known_or_nan = tuple(by_crawl.get(n, math.nan) for n in range(len(self)))
            group = names.get(key.group_id, "")
            rows.append(CrawlSpread(group, key.measure, key.arm, known_or_nan))
        columns = (
            Column("measure"),
            Column("group"),
            Column("arm"),
            Column("n", "d"),
            Column("mean", ".4g"),
            Column("sd", ".4g"),
            Column("values", ".4g"),
        )
        return Rows(rows, columns)

    def pool_figures(
        self, measure: Names = (), **selection: Unpack[SelectionOptions]
    ) -> Rows[Figure]:
        """Each group's figures over all crawls together (totals are means over the crawls), by
        group, over the statements that count (`Run.counted_statements`). Their intervals cover
        statements and recrawls, and wordings if the prompts have several: crawls and wordings are
        resampled above the prompts of each crawl. They are of what scorers say: labels correct
        figures of one crawl only.

        Frame columns: group, measure, arm, value, low, high, n, covers.

        Args:
            measure: only these figures, such as "overall_regard" (default: all).
            selection: as for `Run.counted_statements`.
        """
        from kgbias.measure.figures import pooled_figures

        wanted_figures = as_names(measure)
        names = {g.id: g.name for g in self[0].stored.groups}
        scores = [
            s
            for s in pooled_figures([run.stored for run in self], Selection(**selection))
            if not wanted_figures or s.measure in wanted_figures
        ]
        columns = (
            Column("group"),
            Column("measure"),
            Column("arm"),
            VALUE_COLUMN,
            Column("covers"),
        )
        return Rows([figure_of(s, names[s.group_id]) for s in scores], columns)

    @overload
    def __getitem__(self, index: int) -> Run: ...

    @overload
    def __getitem__(self, index: slice) -> "Series": ...

    def __getitem__(self, index: int | slice) -> "Run | Series":
        return Series(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        complete_count = sum(run.status == "complete" for run in self)
        return f"<Series {self.name!r}: {pluralise(len(self), 'crawl')}, {complete_count} complete>"


def _sort_key(
    key: _FigureKey, order: Sequence[str], groups: Sequence[str]
) -> tuple[int, str, int, str]:
    return (
        order.index(key.measure) if key.measure in order else len(order),
        key.measure,
        groups.index(key.group_id) if key.group_id in groups else len(groups),
        key.arm,
    )
