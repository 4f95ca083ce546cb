"""Adjusted Perplexity across Descriptors (Siddique et al. 2024, sections 4 and 5).

Sentences are names x descriptors x templates. Some names make every sentence unlikely; APX takes
that out, and what is left says which descriptor the model ties to which group of names.
"""

import csv
import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, UsageError
from kgbias.files import write_text
from kgbias.statistics import Estimate, bootstrap, mean, proportion

Array = NDArray[np.float64]

LEVEL = 0.01  # one-tailed, for each descriptor
_APX = re.compile(r"apx_(\d+)")


@dataclass(frozen=True, slots=True)
class ApxTable:
    """APX of each group and descriptor under each template.

    `values` has shape [templates, groups, descriptors]; lower is more likely, NaN is a cell that
    was not measured. `axes` names the axis of each descriptor ("" for none).
    """

    groups: tuple[str, ...]
    descriptors: tuple[str, ...]
    axes: tuple[str, ...]
    values: Array


@dataclass(frozen=True, slots=True)
class Flag:
    """A group that a descriptor is tied to: its bias score lies `z` standard deviations from the
    descriptor's mean over groups; negative is more tied."""

    group: str
    descriptor: str
    axis: str
    bias_score: float
    z: float


def adjusted_perplexity(
    perplexities: Array,
    group_of: Sequence[str],
    descriptors: Sequence[str],
    axes: Sequence[str] = (),
    *,
    as_published: bool = False,
) -> ApxTable:
    """APX (Eqs. 2 to 4) of perplexities of shape [templates, names, descriptors].

    APX = PPL / (mean perplexity of the group / mean perplexity of all), for each template, then the
    mean over the group's names. The paper prints Eq. 4 as a product; its code divides, and only
    then does a group whose every sentence is unlikely come out even. `as_published` also rounds as
    the published code does: the ratio to 3 decimals, the means to 2.
    """
    if not np.all(np.isfinite(perplexities)) or np.any(perplexities <= 0):
        raise DataError("APX needs perplexities that are finite and above 0")
    groups = tuple(dict.fromkeys(group_of))
    members = [np.array([g == group for g in group_of]) for group in groups]
    total = perplexities.mean(axis=(1, 2))
    values = np.empty((len(perplexities), len(groups), len(descriptors)))
    for row, chosen in enumerate(members):
        own = perplexities[:, chosen]
        ratio = own.mean(axis=(1, 2)) / total
        if as_published:
            ratio = np.round(ratio, 3)
        values[:, row] = (own / ratio[:, None, None]).mean(axis=1)
    if as_published:
        values = np.round(values, 2)
    return ApxTable(groups, tuple(descriptors), tuple(axes) or ("",) * len(descriptors), values)


def read_apx(path: Path) -> ApxTable:
    """A table made elsewhere: CSV with the columns Group, descriptor, apx_1, apx_2 ... and, where
    there is one, axis. Rows of the same group and descriptor (one a name) are averaged.

    Raises DataError in one line for a file that is no such table.
    """
    cells: dict[tuple[str, str], list[list[float]]] = {}
    axes: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            columns = _template_columns(path, rows.fieldnames or ())
            for row in rows:
                try:
                    numbers = [_number(row[column]) for column in columns]
                except (TypeError, ValueError) as error:
                    raise DataError(f"{path}, line {rows.line_num}: {error}") from error
                group, descriptor = row["Group"] or "", row["descriptor"] or ""
                if not group or not descriptor:
                    raise DataError(f"{path}, line {rows.line_num}: no Group or no descriptor")
                cells.setdefault((group, descriptor), []).append(numbers)
                axes.setdefault(descriptor, row.get("axis") or "")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if not cells:
        raise DataError(f"{path} has no rows")
    groups = tuple(dict.fromkeys(group for group, _ in cells))
    values = np.full((len(columns), len(groups), len(axes)), math.nan)
    places = {group: n for n, group in enumerate(groups)}, {d: n for n, d in enumerate(axes)}
    for (group, descriptor), found in cells.items():
        values[:, places[0][group], places[1][descriptor]] = np.mean(found, axis=0)
    return ApxTable(groups, tuple(axes), tuple(axes.values()), values)


def write_apx(table: ApxTable, path: Path) -> None:
    """Write a table as `read_apx` reads it: a row for each group and descriptor. A cell that was
    not measured has no row. Raises DataError where the file cannot be written."""
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(
        ["Group", "descriptor", "axis", *(f"apx_{n}" for n in range(1, len(table.values) + 1))]
    )
    for g, group in enumerate(table.groups):
        for d, (descriptor, axis) in enumerate(zip(table.descriptors, table.axes, strict=True)):
            values = table.values[:, g, d].tolist()
            if all(map(math.isfinite, values)):
                rows.writerow([group, descriptor, axis, *values])
    write_text(path, file.getvalue())


def _template_columns(path: Path, columns: Collection[str]) -> list[str]:
    if missing := [name for name in ("Group", "descriptor") if name not in columns]:
        raise DataError(f"{path} has no column {' and no column '.join(missing)}")
    found = [name for name in columns if _APX.fullmatch(name)]
    if not found:
        raise DataError(f"{path} has no column apx_1")
    return sorted(found, key=lambda name: int(name.removeprefix("apx_")))


def _number(text: str | None) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is no number")
    return number


def bias_scores(table: ApxTable) -> Array:
    """The bias score of each group and descriptor, [groups, descriptors], in [0, 1]; lower is more
    tied. The mean over templates of APX, min-max normalised over the template's whole table, so
    that templates of different scale weigh alike (section 4.4, as the published code does it)."""
    low = np.nanmin(table.values, axis=(1, 2), keepdims=True)
    span = np.nanmax(table.values, axis=(1, 2), keepdims=True) - low
    normalised = (table.values - low) / np.where(span > 0, span, 1.0)
    return np.asarray(normalised.mean(axis=0), dtype=np.float64)


def z_scores(scores: Array) -> Array:
    """Each group's distance from the descriptor's mean over groups, in standard deviations
    (ddof=1); NaN where the groups do not differ or are fewer than two."""
    spread = _spread(scores)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (scores - np.nanmean(scores, axis=0)) / spread
    z[:, ~(spread > 0)] = math.nan
    return np.asarray(z, dtype=np.float64)


def _spread(scores: Array) -> Array:
    counts = (~np.isnan(scores)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.nansum((scores - np.nanmean(scores, axis=0)) ** 2, axis=0)
        spread = np.sqrt(squares / (counts - 1))
    # Equal scores differ by rounding alone.
    spread[squares <= 1e-24 * counts] = 0.0
    return np.asarray(spread, dtype=np.float64)


def flags(table: ApxTable, exclude_axes: Sequence[str] = (), level: float = LEVEL) -> list[Flag]:
    """The groups that lie, strictly, below the one-tailed `level` of the normal distribution of
    their descriptor's bias scores (section 5), by group, the strongest first.

    Descriptors of `exclude_axes` are not tested (the paper leaves out age), yet count for the
    normalisation. No z of n groups exceeds (n - 1) / sqrt(n), so below 8 groups nothing can be
    flagged at 1%.
    """
    check_axes(table.axes, exclude_axes)
    scores = bias_scores(table)
    z = z_scores(scores)
    threshold = NormalDist().inv_cdf(level)
    found = [
        Flag(
            table.groups[g], table.descriptors[d], table.axes[d], float(scores[g, d]), float(score)
        )
        for (g, d), score in np.ndenumerate(z)
        if score < threshold and table.axes[d] not in exclude_axes
    ]
    return sorted(found, key=lambda flag: (flag.group, flag.z, flag.descriptor))


def check_axes(axes: Sequence[str], excluded: Sequence[str]) -> None:
    """Raise UsageError where one of the excluded axes is not there."""
    if unknown := [axis for axis in excluded if axis not in axes]:
        there = ", ".join(sorted(set(axes) - {""})) or "no axis at all"
        raise UsageError(f"no axis {unknown[0]!r} in the table; there is {there}")


def can_flag(groups: int, level: float = LEVEL) -> bool:
    """Whether a z-score of that many groups can reach the level at all."""
    return groups > 1 and (groups - 1) / math.sqrt(groups) > -NormalDist().inv_cdf(level)


@dataclass(frozen=True, slots=True)
class Labelled:
    """How well scores find the labelled group of each descriptor: `accuracy`, how often it is
    first (Wilson interval), and `mrr`, the mean reciprocal rank (bootstrap over descriptors)."""

    accuracy: Estimate
    mrr: Estimate


def against_labels(
    scores: Array,
    groups: Sequence[str],
    descriptors: Sequence[str],
    labels: Mapping[str, str],
    *,
    seed: int = 0,
) -> Labelled:
    """Scores of shape [groups, descriptors], lower is more tied, against each descriptor's label.

    Ties take the worse rank, so that a constant score earns nothing. Raises DataError for a label
    that is no group, or where no descriptor is labelled.
    """
    places = {group: n for n, group in enumerate(groups)}
    ranks = []
    for column, descriptor in enumerate(descriptors):
        label = labels.get(descriptor)
        if label is None:
            continue
        if label not in places:
            raise DataError(f"{descriptor!r} is labelled {label!r}, which is none of the groups")
        own = scores[places[label], column]
        ranks.append(int((scores[:, column] <= own).sum()))
    if not ranks:
        raise DataError("no descriptor has a label")
    found = np.array(ranks, dtype=np.float64)
    accuracy = proportion(int((found == 1).sum()), len(ranks))
    return Labelled(accuracy, bootstrap(1 / found, mean, seed=seed))
