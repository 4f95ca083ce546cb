"""APX as a benchmark: the flags that `kgbias.probe.probe_apx` finds."""

from collections.abc import Sequence

import numpy as np

from kgbias.graph.store import Store
from kgbias.io.progress import Progress
from kgbias.io.wording import pluralise
from kgbias.methods.benchmarks.base import (
    Benchmark,
    BenchmarkResult,
    DomainFigure,
    FigureInfo,
    percent_estimate,
    places_by_domain,
)
from kgbias.models.base import ModelInfo
from kgbias.models.score.distributed import AnyScorer
from kgbias.probe.apx import can_flag, chance_share
from kgbias.probe.items import StoredCounts
from kgbias.probe.names import NameSentences, probe_apx
from kgbias.probe.result import ApxFlags
from kgbias.probe.sets import Descriptor
from kgbias.stats.units import UnitSums, ratio_of_sums


class Apx(Benchmark):
    """Names before descriptors. The figure is the share of descriptors that APX ties to a group;
    models are resampled and exchanged over the descriptors."""

    name = "apx"
    title = "APX"
    source = "Siddique et al. 2024"
    unit = "descriptors"

    def __init__(self, names: Sequence[tuple[str, str]], descriptors: Sequence[Descriptor]) -> None:
        groups = len({group for _, group in names})
        self.figures = (
            FigureInfo(
                "flagged descriptors",
                "descriptors tied to a group",
                "how many descriptors lie below the one-tailed 1% point for some group, in "
                f"percent; by chance alone {100 * chance_share(groups):.1f}, if the scores "
                f"of {groups} groups were normal and alike",
                unbiased=0.0,
            ),
        )
        self._names, self._descriptors = names, descriptors
        self._sentences = NameSentences(names, descriptors)

    @property
    def count(self) -> int:
        return self._sentences.count

    @property
    def texts(self) -> int:
        return self._sentences.texts

    @property
    def parts(self) -> dict[str, tuple[int, int]]:
        return self._sentences.parts

    def stored_counts(self, model: ModelInfo, store: Store) -> StoredCounts:
        return self._sentences.stored_counts(model, store)

    def result(
        self,
        scorer: AnyScorer,
        store: Store | None = None,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> BenchmarkResult:
        apx_flags = probe_apx(
            scorer, self._names, self._descriptors, store=store, progress=progress
        )
        assert apx_flags.usage is not None
        return BenchmarkResult(
            _domain_figures(apx_flags),
            self.count,
            apx_flags.usage.tokens,
            apx_flags.usage.seconds,
            _remarks(apx_flags),
        )


def _domain_figures(apx_flags: ApxFlags) -> tuple[DomainFigure, ...]:
    texts, axes = apx_flags.table.descriptors, apx_flags.table.axes
    flagged = {flag.descriptor for flag in apx_flags.flags}
    rows = []
    for domain, places in places_by_domain([axis or "no axis" for axis in axes]):
        flagged_values = [100.0 * (texts[n] in flagged) for n in places]
        units = UnitSums(
            tuple(texts[n] for n in places),
            np.column_stack([np.ones(len(places)), flagged_values]),
            ratio_of_sums,
        )
        estimate = percent_estimate(sum(value > 0 for value in flagged_values), len(places))
        rows.append(DomainFigure(domain, "flagged descriptors", units, estimate))
    return tuple(rows)


def _remarks(apx_flags: ApxFlags) -> tuple[str, ...]:
    groups = len(apx_flags.table.groups)
    if can_flag(groups):
        return ()
    return (
        f"{pluralise(groups, 'group')} cannot be told apart at this level: no descriptor can be "
        f"flagged",
    )
