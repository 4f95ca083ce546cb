"""SoFa as a benchmark: the score that `kgbias.probe` computes and the store keeps."""

import math
from abc import abstractmethod

import numpy as np

from kgbias.errors import DataError
from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.store import Store, StoredRun
from kgbias.io.progress import Progress
from kgbias.models.base import ModelInfo
from kgbias.models.score.distributed import AnyScorer
from kgbias.probe.benchmarks.base import OVERALL, Benchmark, FigureInfo, Measured, Result
from kgbias.probe.graph import probe_run, set_of_run
from kgbias.probe.items import Held
from kgbias.probe.result import keep, sofa_result
from kgbias.probe.sofa import measure_for
from kgbias.probe.stream import Sets, probe_sets
from kgbias.stats.inference import Values
from kgbias.stats.units import UnitSums, ratio_of_sums


class Sofa(Benchmark):
    """A set of probes: statements, each after every group of its category. A model's score comes
    from its `SofaResult`, which is in the store from probing the same set before, or is written
    there now; models are resampled and exchanged over the statements' variances.

    Attributes:
        probe_set: the set.
    """

    name = "sofa"
    title = "SoFa"
    source = "Marchiori Manerba et al. 2023"
    unit = "statements"
    figures = (
        FigureInfo("SoFa score", "variance of PPL* over groups",
                   "how much it matters which group a statement is about, the mean over statements",
                   unbiased=0.0, range=None, form=".4f"),
    )  # fmt: skip
    probe_set: ProbeSet

    @property
    def count(self) -> int:
        return self.probe_set.statements

    @property
    def texts(self) -> int:
        return self.probe_set.probes

    @property
    def parts(self) -> dict[str, tuple[int, int]]:
        return {
            p.category: (len(p.statements), len(p.groups) * len(p.statements))
            for p in self.probe_set.parts
        }

    @abstractmethod
    def probe(self, scorer: AnyScorer, store: Store, seed: int, progress: Progress | None) -> None:
        """Probe a model with the set, and keep its `SofaResult`."""

    def result(
        self,
        scorer: AnyScorer,
        store: Store | None = None,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Result:
        assert store is not None  # a score without its set has no place
        kept = self._kept(scorer, store)
        if kept is None:
            self.probe(scorer, store, seed, progress)
            kept = self._kept(scorer, store)
            assert kept is not None
        tokens, seconds = kept.record.get("tokens", 0), kept.record.get("seconds", math.nan)
        return Result(_measured(kept), self.count, tokens, seconds)

    def held(self, model: ModelInfo, store: Store) -> Held:
        """All or nothing, because the settings of a stopped probing are not known here."""
        own = [r for r in store.sofa_results() if (r.probe_set, r.model) == (self.probe_set.id, model)]
        if not own:
            return Held()
        return Held(self.count, self.texts, own[0].record.get("seconds", math.nan))

    def _kept(self, scorer: AnyScorer, store: Store) -> SofaResult | None:
        """The model's result in the store, in the store's order. Several differ only in what ranked
        the groups, not in the score: the one ranked by the default measure is taken."""
        own = [
            r
            for r in store.sofa_results()
            if (r.probe_set, r.model) == (self.probe_set.id, scorer.info)
            and r.settings == scorer.settings
        ]
        default = measure_for(scorer.convention.kind)
        return min(own, key=lambda r: (r.measure != default, r.measure), default=None)


class SofaOfSets(Sofa):
    """SoFa on groups and statements by category, as `Study.probe_sets` probes them."""

    def __init__(self, sets: Sets, name: str = "probes") -> None:
        if few := [c for c, (groups, _) in sets.items() if len(groups) < 2]:
            raise DataError(f"category {few[0]!r} has fewer than two groups: a variance needs two")
        self._sets = sets
        self.probe_set = ProbeSet.from_texts(name, sets)

    def probe(self, scorer: AnyScorer, store: Store, seed: int, progress: Progress | None) -> None:
        found = probe_sets(scorer, self._sets, store=store, seed=seed, progress=progress)
        result = sofa_result(self.probe_set, found.model, found.bias, seed=seed, took=found.took)
        keep(store, None, self.probe_set, result)


class SofaOfRun(Sofa):
    """SoFa on the groups and statements of a run, as `Run.probe` probes them."""

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        self.probe_set = set_of_run(run)

    def probe(self, scorer: AnyScorer, store: Store, seed: int, progress: Progress | None) -> None:
        probe_run(self._run, scorer, seed=seed, progress=progress)


def _measured(kept: SofaResult) -> tuple[Measured, ...]:
    """The stored score, and the variances it follows from."""
    figure = Sofa.figures[0].name
    rows = [
        (f"{c.category}: {s.id}", number, s.variance)
        for number, c in enumerate(kept.categories)
        for s in c.statements
    ]
    names, strata, variances = zip(*rows, strict=True)
    columns = np.zeros((len(rows), 2 * len(kept.categories)))
    places, categories = np.arange(len(rows)), np.array(strata)
    columns[places, 2 * categories] = 1
    columns[places, 2 * categories + 1] = variances
    found = [Measured(OVERALL, figure, UnitSums(names, columns, _mean_of_means, strata), kept.score)]
    if len(kept.categories) > 1:
        for number, c in enumerate(kept.categories):
            own = np.flatnonzero(categories == number)
            part = np.column_stack([np.ones(len(own)), np.array(variances)[own]])
            units = UnitSums(tuple(names[n] for n in own), part, ratio_of_sums)
            found.append(Measured(c.category, figure, units, c.score))
    return tuple(found)


def _mean_of_means(sums: Values) -> Values:
    return np.asarray((sums[..., 1::2] / sums[..., 0::2]).mean(axis=-1))
