"""Adjusted Perplexity across Descriptors (Siddique et al. 2024, sections 4 and 5).

Sentences are names x descriptors x templates. Some names make every sentence unlikely; APX
divides that effect out, and what remains shows which descriptors the model ties to which group of
names.

Several methods make such tables, or read them.
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.types import Flag as Flag
from kgbias.io.tables import TableFormat, read_table
from kgbias.probe.sets import readable_group

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

SIGNIFICANCE_LEVEL = 0.01  # one-tailed, for each descriptor
_APX = re.compile(r"apx_(\d+)")
TABLE_FORMAT = TableFormat(
    "APX: `probe apx --from`, `profiles analyse --apx`",
    (("Group",), ("descriptor",), ("apx_1",)),
    ("axis", "apx_2"),
    "a column for each template",
)


@dataclass(frozen=True, slots=True)
class ApxTable:
    """APX of each group and descriptor under each template.

    `values` has shape [templates, groups, descriptors]; lower is more likely, NaN marks a cell that
    was not measured. `axes` names the axis of each descriptor ("" for none).
    """

    groups: tuple[str, ...]
    descriptors: tuple[str, ...]
    axes: tuple[str, ...]
    values: Array


class GroupMeans:
    """A running sum, by group, of the perplexities of names x descriptors x templates: memory
    grows with the number of groups, not of names."""

    def __init__(
        self,
        templates: int,
        group_of: Sequence[str],
        descriptors: Sequence[str],
        axes: Sequence[str] = (),
    ) -> None:
        """`group_of` is the group of each name, in the order of the names."""
        self.groups = tuple(dict.fromkeys(group_of))
        self.descriptors, self.axes = tuple(descriptors), tuple(axes) or ("",) * len(descriptors)
        places = {group: n for n, group in enumerate(self.groups)}
        self._group_places = np.array([places[group] for group in group_of])
        self.name_counts = np.bincount(self._group_places, minlength=len(self.groups))
        self._sums = np.zeros((templates, len(self.groups), len(descriptors)))

    def add(self, template: int, start: int, perplexities: Array) -> None:
        """Add the perplexities of some names under a template, [names, descriptors]; `start` is the
        first name's place. Raises DataError for one that is not finite and above 0."""
        if not np.all(np.isfinite(perplexities)) or np.any(perplexities <= 0):
            raise DataError("APX needs perplexities that are finite and above 0")
        rows = self._group_places[start : start + len(perplexities)]
        np.add.at(self._sums[template], rows, perplexities)

    @property
    def values(self) -> Array:
        """The mean over the names of each group, [templates, groups, descriptors]."""
        return np.asarray(self._sums / self.name_counts[:, None], dtype=np.float64)


def apx_table(
    perplexities: Array,
    group_of: Sequence[str],
    descriptors: Sequence[str],
    axes: Sequence[str] = (),
    *,
    as_published: bool = False,
) -> ApxTable:
    """APX from perplexities of shape [templates, names, descriptors] (see
    `adjust_perplexities`)."""
    means = GroupMeans(len(perplexities), group_of, descriptors, axes)
    for template_index, rows in enumerate(perplexities):
        means.add(template_index, 0, rows)
    values = adjust_perplexities(means.values, means.name_counts, as_published=as_published)
    return ApxTable(means.groups, means.descriptors, means.axes, values)


def adjust_perplexities(means: Array, name_counts: Counts, *, as_published: bool = False) -> Array:
    """APX (Eqs. 2 to 4) from the mean perplexity of each group's names, [templates, groups,
    descriptors]; `name_counts` is the number of names in each group, [groups].

    APX = PPL / (mean perplexity of the group / mean perplexity of all), for each template. The
    paper prints Eq. 4 as a product; its code divides, and only division corrects for a group whose
    sentences are all unlikely. `as_published` also rounds as the published code does: the ratio to
    3 decimals, the means to 2.
    """
    group_means = means.mean(axis=2)
    ratio = group_means / (group_means @ name_counts / name_counts.sum())[:, None]
    if as_published:
        ratio = np.round(ratio, 3)
    values: Array = means / ratio[:, :, None]
    return np.round(values, 2) if as_published else values


def read_apx(path: Path) -> ApxTable:
    """A table from elsewhere: CSV with the columns Group, descriptor, apx_1, apx_2 ... and
    optionally axis. Rows of the same group and descriptor (one per name) are averaged; a group
    "('ARAB', 'F')" is "Arab women".

    Raises DataError for a file that is not such a table.
    """
    cells: dict[tuple[str, str], list[list[float]]] = {}
    axes: dict[str, str] = {}
    header, rows = read_table(path)
    columns = _template_columns(path, header)
    for line, row in rows:
        try:
            numbers = [_parse_number(row[column]) for column in columns]
        except ValueError as error:
            raise DataError(f"{path}, line {line}: {error}") from error
        group, descriptor = readable_group(row["Group"]), row["descriptor"]
        if not group or not descriptor:
            raise DataError(f"{path}, line {line}: Group or descriptor is missing")
        cells.setdefault((group, descriptor), []).append(numbers)
        axes.setdefault(descriptor, row.get("axis", ""))
    if not cells:
        raise DataError(f"{path} has no rows")
    groups = tuple(dict.fromkeys(group for group, _ in cells))
    values = np.full((len(columns), len(groups), len(axes)), math.nan)
    places = {group: n for n, group in enumerate(groups)}, {d: n for n, d in enumerate(axes)}
    for (group, descriptor), numbers_of_cell in cells.items():
        values[:, places[0][group], places[1][descriptor]] = np.mean(numbers_of_cell, axis=0)
    return ApxTable(groups, tuple(axes), tuple(axes.values()), values)


def _template_columns(path: Path, columns: Collection[str]) -> list[str]:
    if missing := [name for name in TABLE_FORMAT.columns[:2] if name not in columns]:
        raise DataError(f"{path} has no column {' and no column '.join(missing)}")
    template_columns = [name for name in columns if _APX.fullmatch(name)]
    if not template_columns:
        raise DataError(f"{path} has no column apx_1")
    # apx_10 after apx_9.
    return sorted(template_columns, key=lambda name: (len(name), name))


def _parse_number(text: str | None) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a number")
    return number


def bias_scores(table: ApxTable) -> Array:
    """The bias score of each group and descriptor, [groups, descriptors], in [0, 1]; lower is more
    strongly tied. It is the mean over templates of APX, min-max normalised over each template's
    whole table, which gives templates on different scales the same weight (section 4.4, as in the
    published code)."""
    low = np.nanmin(table.values, axis=(1, 2), keepdims=True)
    span = np.nanmax(table.values, axis=(1, 2), keepdims=True) - low
    normalised = (table.values - low) / np.where(span > 0, span, 1.0)
    return np.asarray(normalised.mean(axis=0), dtype=np.float64)


def z_scores(scores: Array) -> Array:
    """Each group's distance from the descriptor's mean over groups, in standard deviations
    (ddof=1); NaN if the groups do not differ or there are fewer than two."""
    deviations = _standard_deviations(scores)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (scores - np.nanmean(scores, axis=0)) / deviations
    z[:, ~(deviations > 0)] = math.nan
    return np.asarray(z, dtype=np.float64)


def _standard_deviations(scores: Array) -> Array:
    counts = (~np.isnan(scores)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.nansum((scores - np.nanmean(scores, axis=0)) ** 2, axis=0)
        spread = np.sqrt(squares / (counts - 1))
    # Equal scores may still differ by rounding.
    spread[squares <= 1e-24 * counts] = 0.0
    return np.asarray(spread, dtype=np.float64)


def find_flags(
    table: ApxTable, exclude_axes: Sequence[str] = (), level: float = SIGNIFICANCE_LEVEL
) -> list[Flag]:
    """The groups strictly below the one-tailed `level` of a normal distribution of their
    descriptor's bias scores (section 5), sorted by group, then strongest first.

    Descriptors of `exclude_axes` are not tested (the paper leaves out age) but do count towards
    the normalisation. With n groups no |z| exceeds (n - 1) / sqrt(n), so with fewer than 8 groups
    nothing can be flagged at 1%.
    """
    check_axes(table.axes, exclude_axes)
    scores = bias_scores(table)
    z = z_scores(scores)
    threshold = NormalDist().inv_cdf(level)
    flag_list = [
        Flag(
            table.groups[g], table.descriptors[d], table.axes[d], float(scores[g, d]), float(score)
        )
        for (g, d), score in np.ndenumerate(z)
        if score < threshold and table.axes[d] not in exclude_axes
    ]
    return sorted(flag_list, key=lambda flag: (flag.group, flag.z, flag.descriptor))


def check_axes(axes: Sequence[str], excluded: Sequence[str]) -> None:
    """Raise UsageError for an excluded axis that is not among the axes."""
    if unknown := [axis for axis in excluded if axis not in axes]:
        known_axes = sorted(set(axes) - {""})
        raise UsageError(no_such("axis", unknown[0], known_axes, " in the table"))


def chance_share(groups: int, level: float = SIGNIFICANCE_LEVEL) -> float:
    """The share of descriptors that would have a flag if the scores of this many groups came from
    one normal distribution (20,000 simulated descriptors, always the same)."""
    rng = np.random.Generator(np.random.PCG64(0))
    z = z_scores(rng.normal(size=(groups, 20_000)))
    return float((z < NormalDist().inv_cdf(level)).any(axis=0).mean())


def can_flag(groups: int, level: float = SIGNIFICANCE_LEVEL) -> bool:
    """Whether a z-score can reach the level with this many groups."""
    return groups > 1 and (groups - 1) / math.sqrt(groups) > -NormalDist().inv_cdf(level)
