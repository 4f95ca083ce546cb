"""The data of a report of several runs: each with its statements and figures, read once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kgbias.compare.families import compared_measures
from kgbias.compare.model_contrasts import ModelContrast, contrast_models, read_crawl_samples
from kgbias.compare.run_pairs import read_single_arm
from kgbias.compare.run_setup import check_comparable, list_setup_differences
from kgbias.errors import MissingExtra, UsageError
from kgbias.evidence.model_agreement import BeliefComparison, ModelBeliefs
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import MIN_SAME_COSINE, TripleView
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.wording import pluralise
from kgbias.measure import merge
from kgbias.measures import Measure, column_measures
from kgbias.report.run_data import ArmData, RunData
from kgbias.stats.inference import (
    DEFAULT_DRAWS,
    STATISTICS,
    Estimate,
    Sample,
    bootstrap,
    mean,
    resample_statistic,
)

FEWEST_RUNS, MOST_RUNS = 2, 6
ENCODER = "minilm"
MIN_VALUES = 5  # statements; groups with fewer have no mean here


class MultiRunData:
    """Runs compared with each other, each by one of its arms.

    Args:
        runs: two to six, each once.
        correction: of the p-values over all differences, "holm" or "bh".
        selection: which statements count; `arm`: the arm of runs that have several.
        encoder: the model that decides which texts are near-duplicates.
        progress: told what was left out, and if near-duplicates could not be found.

    Raises UsageError for any other number of runs, a run that is named twice, or a run of several
    arms if none is chosen.
    """

    def __init__(
        self,
        runs: Sequence[StoredRun],
        *,
        correction: str = "holm",
        selection: Selection | None = None,
        encoder: str = ENCODER,
        progress: Progress | None = None,
    ) -> None:
        if not FEWEST_RUNS <= len(runs) <= MOST_RUNS:
            raise UsageError(
                f"{pluralise(len(runs), 'run')}: name {FEWEST_RUNS} to {MOST_RUNS} to compare"
            )
        if len({run.id for run in runs}) < len(runs):
            raise UsageError("name each run once")
        check_comparable(runs)
        self.progress = progress or SilentProgress()
        self.correction, self._encoder = correction, encoder
        self._stored = list(runs)
        selection = selection or Selection()
        self.sides: list[ArmData] = []
        for run in runs:
            statements = read_single_arm(run, selection)
            has_arms = len(statements.all_arms) > 1
            data = RunData(
                run,
                correction=correction,
                selection=selection if has_arms else replace(selection, arm=None),
            )
            if statements.note:
                self.progress.note(f"{run.name}: {statements.note}")
            self.sides.append(data.arms[0])

    @cached_property
    def differences_in_asking(self) -> list[str]:
        """In what the runs were not asked alike."""
        return list_setup_differences(self._stored)

    @property
    def names(self) -> list[str]:
        """The names of the runs, all distinct."""
        return [side.run.name for side in self.sides]

    @cached_property
    def categories(self) -> Mapping[str, list[tuple[str, str]]]:
        """The (id, name) of the groups that at least two runs have, by category."""
        run_counts: dict[str, int] = {}
        group_names: dict[str, tuple[str, str]] = {}
        for side in self.sides:
            for group in side.run.groups:
                run_counts[group.id] = run_counts.get(group.id, 0) + 1
                group_names.setdefault(group.id, (group.category, group.name))
        by_category: dict[str, list[tuple[str, str]]] = {}
        for id, (category, name) in group_names.items():
            if run_counts[id] > 1:
                by_category.setdefault(category, []).append((id, name))
        return by_category

    @cached_property
    def measures(self) -> list[Measure]:
        """The measures that at least two runs have and that runs are tested on, in order."""
        run_counts = Counter(
            name for side in self.sides for name in compared_measures(side.triples)
        )
        return [m for m in column_measures(run_counts) if run_counts[m.name] > 1]

    def sample(self, side: ArmData, group: str, measure: str) -> Sample:
        """The values of a group's statements in a run."""
        return side.run_data.draws.sample(side.by_group.get(group, []), measure)

    def means(self, group: str, measure: str) -> list[Estimate | None]:
        """The mean of a group in each run, None in those with fewer than five values."""
        samples = [self.sample(side, group, measure) for side in self.sides]
        return [bootstrap(s, STATISTICS["mean"]) if s.n >= MIN_VALUES else None for s in samples]

    def ranks(self, category: str, measure: str) -> list[dict[str, Estimate]]:
        """By run, the rank of each group of a category by its mean, 1 the highest, with the
        interval of 95% of resamples; only groups that have a mean in every run."""
        groups = [id for id, _ in self.categories[category] if None not in self.means(id, measure)]
        if not groups:
            return [{} for _ in self.sides]
        rank_estimates = []
        for side in self.sides:
            rng = np.random.Generator(np.random.PCG64(0))
            samples = [self.sample(side, id, measure) for id in groups]
            mean_draws = np.array(
                [resample_statistic(s, mean, DEFAULT_DRAWS, rng).replicates(rng) for s in samples]
            )
            rank_values = _rank_columns(np.array([[s.mean] for s in samples]))[:, 0]
            low, high = np.quantile(_rank_columns(mean_draws), [0.025, 0.975], axis=1)
            rank_estimates.append(
                {
                    id: Estimate(float(rank_values[n]), float(low[n]), float(high[n]), samples[n].n)
                    for n, id in enumerate(groups)
                }
            )
        return rank_estimates

    @cached_property
    def differences(self) -> list[ModelContrast]:
        """Every two runs in every group and measure, as one family, as `kgbias compare` tests them;
        none if they share no group that was measured."""
        subjects = [
            read_crawl_samples(stored, side.counted)
            for stored, side in zip(self._stored, self.sides, strict=True)
        ]
        try:
            return contrast_models(subjects, correction=self.correction).tests
        except UsageError:
            return []

    def beliefs(self, category: str) -> BeliefComparison | None:
        """What the models of the runs believe about a category's groups, or None unless all were
        asked about the same ones."""
        sides = [
            ModelBeliefs.from_run(
                side.run.name, stored, *side.run_data.beliefs, category, side.triples
            )
            for stored, side in zip(self._stored, self.sides, strict=True)
            if side.run_data.beliefs is not None
        ]
        return BeliefComparison.from_models(sides)

    @cached_property
    def statement_ids(self) -> list[set[str]]:
        """By run, the distinct statements about groups that at least two runs have, by id."""
        return [{t.id for t in views} for views in self.shared_statements]

    @cached_property
    def merged_statement_ids(self) -> list[set[str]] | None:
        """The same, with near-duplicates across runs counted as one; None if the model that embeds
        texts is not installed."""
        all_triples = [t for views in self.shared_statements for t in views]
        try:
            placed = merge.EmbeddedStatements.from_runs(self._stored, self._encoder)
            links = merge.find_near_duplicates(all_triples, placed, MIN_SAME_COSINE)
        except MissingExtra as error:
            self.progress.note(f"near-duplicates are not counted: {error}")
            return None
        return [
            {t.id for t in merge.merge_triples(views, links)} for views in self.shared_statements
        ]

    @cached_property
    def shared_statements(self) -> list[list[TripleView]]:
        """By run, the statements about groups that at least two runs have."""
        shared_ids = {id for groups in self.categories.values() for id, _ in groups}
        return [[t for t in side.triples if t.group_id in shared_ids] for side in self.sides]


def _rank_columns(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks in each column, [groups, draws], 1 the highest; ties share their mean rank."""
    above = (values[None, :, :] > values[:, None, :]).sum(axis=1)
    tied = (values[None, :, :] == values[:, None, :]).sum(axis=1)
    return np.asarray(above + (tied + 1) / 2, dtype=np.float64)
