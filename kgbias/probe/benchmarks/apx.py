"""APX as a benchmark: the flags that `kgbias.probe.probe_apx` finds."""

from collections.abc import Sequence

import numpy as np

from kgbias.graph.store import Store
from kgbias.io.progress import Progress
from kgbias.models.base import ModelInfo
from kgbias.models.score.distributed import AnyScorer
from kgbias.probe.apx import by_chance, can_flag
from kgbias.probe.benchmarks.base import Benchmark, FigureInfo, Measured, Result, by_domain, share
from kgbias.probe.items import Held
from kgbias.probe.names import Sentences, probe_apx
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
            FigureInfo("flagged descriptors", "descriptors tied to a group",
                       "how many descriptors lie below the one-tailed 1% point for some group, in "
                       f"percent; by chance alone {100 * by_chance(groups):.1f}, if the scores "
                       f"of {groups} groups were normal and alike", unbiased=0.0),
        )  # fmt: skip
        self._names, self._descriptors = names, descriptors
        self._sentences = Sentences(names, descriptors)

    @property
    def count(self) -> int:
        return self._sentences.count

    @property
    def texts(self) -> int:
        return self._sentences.texts

    @property
    def parts(self) -> dict[str, tuple[int, int]]:
        return self._sentences.parts

    def held(self, model: ModelInfo, store: Store) -> Held:
        return self._sentences.held(model, store)

    def result(
        self,
        scorer: AnyScorer,
        store: Store | None = None,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Result:
        found = probe_apx(
            scorer, self._names, self._descriptors, store=store, seed=seed, progress=progress
        )
        assert found.took is not None
        return Result(
            _measured(found), self.count, found.took.tokens, found.took.seconds, _remarks(found)
        )


def _measured(found: ApxFlags) -> tuple[Measured, ...]:
    texts, axes = found.table.descriptors, found.table.axes
    flagged = {flag.descriptor for flag in found.flags}
    rows = []
    for domain, own in by_domain([axis or "no axis" for axis in axes]):
        tied = [100.0 * (texts[n] in flagged) for n in own]
        units = UnitSums(
            tuple(texts[n] for n in own), np.column_stack([np.ones(len(own)), tied]), ratio_of_sums
        )
        estimate = share(sum(value > 0 for value in tied), len(own))
        rows.append(Measured(domain, "flagged descriptors", units, estimate))
    return tuple(rows)


def _remarks(found: ApxFlags) -> tuple[str, ...]:
    groups = len(found.table.groups)
    if can_flag(groups):
        return ()
    return (f"{groups} groups cannot be told apart at this level: no descriptor can be flagged",)
