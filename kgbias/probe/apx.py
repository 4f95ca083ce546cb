"""Adjusted Perplexity across Descriptors (Siddique et al. 2024, sections 4 and 5).

Sentences are names x descriptors x templates. Some names make every sentence unlikely; APX
divides that effect out, and what remains shows which descriptors the model ties to which group of
names.

To check that APX finds the groups that people tie descriptors to, it is compared with Ghavami and
Peplau (2013), who asked people which stereotypes they know of four ethnicities: names of these
ethnicities are put before the descriptors that people gave for one ethnicity only, and the
ethnicity with the lowest score is compared with the one that people named (section 4.4).
"""

import csv
import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.types import Flag as Flag
from kgbias.io.files import write_text
from kgbias.io.tables import TableFormat, read_table
from kgbias.probe.sets import name_people
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import bootstrap, clustered_proportion, mean, proportion

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
        self.names = np.bincount(self._group_places, minlength=len(self.groups))
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
        return np.asarray(self._sums / self.names[:, None], dtype=np.float64)


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
    values = adjust_perplexities(means.values, means.names, as_published=as_published)
    return ApxTable(means.groups, means.descriptors, means.axes, values)


def adjust_perplexities(means: Array, names: Counts, *, as_published: bool = False) -> Array:
    """APX (Eqs. 2 to 4) from the mean perplexity of each group's names, [templates, groups,
    descriptors]; `names` is the number of names in each group, [groups].

    APX = PPL / (mean perplexity of the group / mean perplexity of all), for each template. The
    paper prints Eq. 4 as a product; its code divides, and only division corrects for a group whose
    sentences are all unlikely. `as_published` also rounds as the published code does: the ratio to
    3 decimals, the means to 2.
    """
    group_means = means.mean(axis=2)
    ratio = group_means / (group_means @ names / names.sum())[:, None]
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
        group, descriptor = name_people(row["Group"]), row["descriptor"]
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


def write_apx(table: ApxTable, path: Path) -> None:
    """Write a table that `read_apx` can read: a row for each group and descriptor. A cell that was
    not measured has no row. Raises DataError if the file cannot be written."""
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
    deviations = _deviations(scores)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (scores - np.nanmean(scores, axis=0)) / deviations
    z[:, ~(deviations > 0)] = math.nan
    return np.asarray(z, dtype=np.float64)


def _deviations(scores: Array) -> Array:
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


@dataclass(frozen=True, slots=True)
class LabelRecovery:
    """How well scores recover the labelled group of each descriptor: `accuracy`, the share of
    descriptors whose label ranks first (Wilson interval), and `mrr`, the mean reciprocal rank
    (bootstrap over descriptors), 0 to 1, higher is better. `reciprocal_ranks` has the reciprocal
    rank for each descriptor, for comparing two scores on the same descriptors."""

    accuracy: Estimate
    mrr: Estimate
    reciprocal_ranks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ApxValidation:
    """APX and plain perplexity on the labelled descriptors (the paper's Tables 3 and 4).

    `labels` are the labels that a descriptor can have: with k of them, chance accuracy is 1 / k and
    chance MRR the mean of 1 / 1 to 1 / k. `gain` is how much higher the MRR of APX is (paired
    bootstrap over descriptors).
    """

    labels: tuple[str, ...]
    apx: LabelRecovery
    perplexity: LabelRecovery
    gain: Estimate

    @property
    def chance_scores(self) -> dict[str, float]:
        """The accuracy and MRR of scores that say nothing."""
        k = len(self.labels)
        return {"accuracy": 1 / k, "mrr": sum(1 / n for n in range(1, k + 1)) / k}

    def as_dict(self) -> dict[str, Any]:
        """The validation as plain data for JSON."""
        recoveries = {
            name: {"accuracy": recovery.accuracy.as_dict(), "mrr": recovery.mrr.as_dict()}
            for name, recovery in (("apx", self.apx), ("perplexity", self.perplexity))
        }
        details = {"labels": list(self.labels), **self.chance_scores, "gain": self.gain.as_dict()}
        return {**recoveries, "validation": details}


def validate_apx(
    means: GroupMeans,
    descriptor_labels: Sequence[str],
    group_labels: Mapping[str, str],
    *,
    as_published: bool = False,
    seed: int = 0,
) -> ApxValidation | None:
    """How well APX, and perplexity without it, find the label of each labelled descriptor.

    Both are computed on the labelled part alone, as in the paper: groups whose label in
    `group_labels` is also a descriptor's (`descriptor_labels`, "" for none), and descriptors whose
    label is also a group's (GlobalBias labels nonsense words "nonce", which is no group's label).
    A label's score is the mean over the names of its groups. None if fewer than two labels or two
    descriptors are left.
    """
    shared_labels = set(descriptor_labels) & set(group_labels.values()) - {""}
    columns = [n for n, label in enumerate(descriptor_labels) if label in shared_labels]
    rows = [n for n, group in enumerate(means.groups) if group_labels.get(group) in shared_labels]
    labels = tuple(dict.fromkeys(group_labels[means.groups[n]] for n in rows))
    if len(labels) < 2 or len(columns) < 2:
        return None
    values, names = means.values[:, rows][:, :, columns], means.names[rows]
    texts = tuple(means.descriptors[n] for n in columns)
    truth = dict(zip(texts, (descriptor_labels[n] for n in columns), strict=True))
    has_label = np.array(
        [[group_labels[means.groups[n]] == label for n in rows] for label in labels]
    )
    weights = has_label * names / (has_label @ names)[:, None]

    def score_by(scores: Array) -> LabelRecovery:
        merged = np.einsum("lg,tgd->tld", weights, scores)
        table = ApxTable(labels, texts, ("",) * len(texts), merged)
        return compare_with_labels(bias_scores(table), labels, texts, truth)

    apx, plain_perplexity = (
        score_by(adjust_perplexities(values, names, as_published=as_published)),
        score_by(values),
    )
    gains = np.array(apx.reciprocal_ranks) - np.array(plain_perplexity.reciprocal_ranks)
    return ApxValidation(labels, apx, plain_perplexity, bootstrap(gains, mean, seed=seed))


def compare_with_labels(
    scores: Array,
    groups: Sequence[str],
    descriptors: Sequence[str],
    labels: Mapping[str, str],
) -> LabelRecovery:
    """Compare scores of shape [groups, descriptors], lower is more strongly tied, with each
    descriptor's label.

    Ties take the worse rank, so a constant score earns nothing. Raises DataError for a label
    that is not a group, or if no descriptor is labelled.
    """
    places = {group: n for n, group in enumerate(groups)}
    ranks = []
    for column, descriptor in enumerate(descriptors):
        label = labels.get(descriptor)
        if label is None:
            continue
        if label not in places:
            raise DataError(f"{descriptor!r} is labelled {label!r}, which is not one of the groups")
        label_score = scores[places[label], column]
        ranks.append(int((scores[:, column] <= label_score).sum()))
    if not ranks:
        raise DataError("no descriptor has a label")
    rank_values = np.array(ranks, dtype=np.float64)
    accuracy = proportion(int((rank_values == 1).sum()), len(ranks))
    reciprocal = tuple((1 / rank_values).tolist())
    return LabelRecovery(accuracy, clustered_proportion(range(len(ranks)), reciprocal), reciprocal)
