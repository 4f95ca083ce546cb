"""SoFa as a benchmark: the score that `kgbias.probe` computes and the store keeps."""

import math
from abc import abstractmethod

import numpy as np

from kgbias.errors import DataError
from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.store import Store, StoredRun
from kgbias.io.progress import Progress
from kgbias.methods.benchmarks.base import (
    OVERALL,
    Benchmark,
    BenchmarkResult,
    DomainFigure,
    FigureInfo,
)
from kgbias.models.base import ModelInfo
from kgbias.models.score.distributed import AnyScorer
from kgbias.probe.items import StoredCounts
from kgbias.probe.result import build_sofa_result, save_sofa_result
from kgbias.probe.run_probes import build_run_probe_set, probe_run
from kgbias.probe.set_probes import Sets, probe_sets
from kgbias.probe.sofa import default_measure
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
        FigureInfo(
            "SoFa score",
            "variance of PPL* over groups",
            "how much it matters which group a statement is about, the mean over statements",
            unbiased=0.0,
            range=None,
            form=".4f",
        ),
    )
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
    ) -> BenchmarkResult:
        assert store is not None  # a score without its set has no place
        stored = self._stored_result(scorer, store)
        if stored is None:
            self.probe(scorer, store, seed, progress)
            stored = self._stored_result(scorer, store)
            assert stored is not None
        tokens, seconds = stored.record.get("tokens", 0), stored.record.get("seconds", math.nan)
        return BenchmarkResult(_domain_figures(stored), self.count, tokens, seconds)

    def stored_counts(self, model: ModelInfo, store: Store) -> StoredCounts:
        """All or nothing, because the settings of a stopped probing are not known here."""
        stored_results = [
            r for r in store.sofa_results() if (r.probe_set, r.model) == (self.probe_set.id, model)
        ]
        if not stored_results:
            return StoredCounts()
        return StoredCounts(
            self.count, self.texts, stored_results[0].record.get("seconds", math.nan)
        )

    def _stored_result(self, scorer: AnyScorer, store: Store) -> SofaResult | None:
        """The model's result in the store, in the store's order. Several differ only in what ranked
        the groups, not in the score: the one ranked by the default measure is taken."""
        stored_results = [
            r
            for r in store.sofa_results()
            if (r.probe_set, r.model) == (self.probe_set.id, scorer.info)
            and r.settings == scorer.settings
        ]
        default = default_measure(scorer.convention.kind)
        return min(stored_results, key=lambda r: (r.measure != default, r.measure), default=None)


class SofaOfSets(Sofa):
    """SoFa on groups and statements by category, as `Study.probe_sets` probes them."""

    def __init__(self, sets: Sets, name: str = "probes") -> None:
        if too_few := [c for c, (groups, _) in sets.items() if len(groups) < 2]:
            raise DataError(
                f"category {too_few[0]!r} has fewer than two groups: a variance needs two"
            )
        self._sets = sets
        self.probe_set = ProbeSet.from_texts(name, sets)

    def probe(self, scorer: AnyScorer, store: Store, seed: int, progress: Progress | None) -> None:
        probes = probe_sets(scorer, self._sets, store=store, seed=seed, progress=progress)
        result = build_sofa_result(
            self.probe_set, probes.model, probes.bias, seed=seed, usage=probes.usage
        )
        save_sofa_result(store, None, self.probe_set, result)


class SofaOfRun(Sofa):
    """SoFa on the groups and statements of a run, as `Run.probe` probes them."""

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        self.probe_set = build_run_probe_set(run)

    def probe(self, scorer: AnyScorer, store: Store, seed: int, progress: Progress | None) -> None:
        probe_run(self._run, scorer, seed=seed, progress=progress)


def _domain_figures(kept: SofaResult) -> tuple[DomainFigure, ...]:
    """The stored score, and the variances it follows from."""
    figure = Sofa.figures[0].name
    rows = [
        (f"{category.category}: {s.id}", number, s.variance)
        for number, category in enumerate(kept.categories)
        for s in category.statements
    ]
    names, strata, variances = zip(*rows, strict=True)
    columns = np.zeros((len(rows), 2 * len(kept.categories)))
    places, categories = np.arange(len(rows)), np.array(strata)
    # Two columns for each category, side by side: how many statements, and the sum of their
    # variances.
    columns[places, 2 * categories] = 1
    columns[places, 2 * categories + 1] = variances
    domain_figures = [
        DomainFigure(OVERALL, figure, UnitSums(names, columns, _mean_of_means, strata), kept.score)
    ]
    if len(kept.categories) > 1:
        for number, category in enumerate(kept.categories):
            category_places = np.flatnonzero(categories == number)
            part = np.column_stack(
                [np.ones(len(category_places)), np.array(variances)[category_places]]
            )
            units = UnitSums(tuple(names[n] for n in category_places), part, ratio_of_sums)
            domain_figures.append(DomainFigure(category.category, figure, units, category.score))
    return tuple(domain_figures)


def _mean_of_means(sums: Values) -> Values:
    return np.asarray((sums[..., 1::2] / sums[..., 0::2]).mean(axis=-1))
