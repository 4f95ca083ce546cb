"""APX on a model: names x descriptors x templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kgbias.errors import UsageError
from kgbias.models.score.base import TextScorer
from kgbias.probe.apx import (
    ApxTable,
    Labelled,
    adjusted_perplexity,
    against_labels,
    bias_scores,
    check_axes,
    flags,
    read_apx,
    write_apx,
)
from kgbias.probe.result import ApxFlags, ScoredBy
from kgbias.probe.sets import TEMPLATES, Descriptor, read_descriptors, read_names
from kgbias.progress import Progress, Silent

_CHUNK = 4096  # probes computed at once


@dataclass(frozen=True, slots=True)
class NamesApx:
    """The table and, where descriptors have labels, how well it recovers the labelled groups: by
    APX and, for comparison, by plain perplexity."""

    table: ApxTable
    by_apx: Labelled | None
    by_perplexity: Labelled | None


def probe_apx(
    scorer: TextScorer,
    names: str | Sequence[tuple[str, str]] = "globalbias",
    descriptors: str | Sequence[Descriptor] = "globalbias",
    *,
    exclude_axes: Sequence[str] = (),
    as_published: bool = False,
    output: Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ApxFlags:
    """The descriptors that a model ties to groups of names, by APX.

    `names` and `descriptors` are named sets, files (see `kgbias.probe.sets`) or the rows
    themselves. Descriptors of `exclude_axes` are measured but not tested. `output` is a CSV file
    for the table, in the form that `flag_apx` reads. `seed` is the bootstrap's. `as_published`
    rounds as the paper's code does.
    """
    if isinstance(names, str):
        names = read_names(names)
    if isinstance(descriptors, str):
        descriptors = read_descriptors(descriptors)
    check_axes([descriptor.axis for descriptor in descriptors], exclude_axes)
    if output is not None and output.suffix != ".csv":
        raise UsageError(f"{output} must end in .csv")
    found = probe_names(
        scorer, names, descriptors, as_published=as_published, seed=seed, progress=progress
    )
    if output is not None:
        write_apx(found.table, output)
    return ApxFlags(
        found.table,
        tuple(flags(found.table, exclude_axes)),
        tuple(exclude_axes),
        ScoredBy.of(scorer),
        found.by_apx,
        found.by_perplexity,
    )


def flag_apx(path: Path, *, exclude_axes: Sequence[str] = ()) -> ApxFlags:
    """The flags of a table of APX from elsewhere (see `kgbias.probe.apx.read_apx`)."""
    table = read_apx(path)
    found = tuple(flags(table, exclude_axes))
    return ApxFlags(table, found, tuple(exclude_axes), str(path))


def probe_names(
    scorer: TextScorer,
    names: Sequence[tuple[str, str]],
    descriptors: Sequence[Descriptor],
    *,
    templates: Sequence[str] = TEMPLATES,
    as_published: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> NamesApx:
    """Perplexities of every name and descriptor under every template, and their APX.

    `names` are pairs of a name and its group. Labels that are not a group (GlobalBias labels five
    regions, and nonsense as "nonce") are left out.
    """
    told = progress or Silent()
    told.stage("probe names", len(templates) * len(names) * len(descriptors))
    shape = len(templates), len(names), len(descriptors)
    perplexities = np.empty(shape)
    step = max(1, _CHUNK // len(descriptors))
    for t, template in enumerate(templates):
        endings = [descriptor.endings[t] for descriptor in descriptors]
        for start in range(0, len(names), step):
            some = [template.format(name=name) for name, _ in names[start : start + step]]
            grid = scorer.grid(some, endings)
            perplexities[t, start : start + step] = grid.whole.perplexities
            told.advance(len(some) * len(endings))
    groups = [group for _, group in names]
    texts = [descriptor.text for descriptor in descriptors]
    axes = [descriptor.axis for descriptor in descriptors]
    table = adjusted_perplexity(perplexities, groups, texts, axes, as_published=as_published)
    labels = {d.text: d.label for d in descriptors if d.label in table.groups}
    if not labels:
        return NamesApx(table, None, None)
    plain = _group_means(perplexities, groups, table)
    return NamesApx(table, _labelled(table, labels, seed), _labelled(plain, labels, seed))


def _group_means(perplexities: np.ndarray, groups: Sequence[str], table: ApxTable) -> ApxTable:
    values = np.empty_like(table.values)
    for row, group in enumerate(table.groups):
        values[:, row] = perplexities[:, [g == group for g in groups]].mean(axis=1)
    return ApxTable(table.groups, table.descriptors, table.axes, values)


def _labelled(table: ApxTable, labels: Mapping[str, str], seed: int) -> Labelled:
    return against_labels(bias_scores(table), table.groups, table.descriptors, labels, seed=seed)
