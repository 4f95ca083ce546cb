"""Runs and models held against each other."""

from typing import TYPE_CHECKING, Unpack

from kgbias.errors import UsageError
from kgbias.graph.selection import Selecting, Selection
from kgbias.graph.store import StoredRun
from kgbias.parameters import Names, as_names
from kgbias.study.context import OfStudy
from kgbias.study.run import Run

if TYPE_CHECKING:
    from kgbias.compare import Comparison
    from kgbias.study.contrasts import Contrasts


class Comparing(OfStudy):
    """Comparisons of runs, and of the models behind them; a part of `Study`."""

    def compare(
        self,
        *runs: str | Run,
        examples: int = 5,
        groups: Names = (),
        measures: Names = (),
        **selection: Unpack[Selecting],
    ) -> list["Comparison"]:
        """Compare every pair of these runs; `Run.compare` says how."""
        from kgbias.compare import compare_runs

        found = [self._stored(run) for run in runs]
        which = Selection(**selection)
        with self.working() as progress:
            return compare_runs(
                found,
                examples=examples,
                groups=as_names(groups),
                measures=as_names(measures),
                selection=which,
                progress=progress,
            )

    def contrast(
        self,
        *runs: str | Run,
        probes: bool = False,
        groups: Names = (),
        measures: Names = (),
        margin: float | None = None,
        correction: str = "holm",
        seed: int = 0,
        **selection: Unpack[Selecting],
    ) -> "Contrasts":
        """Hold two or more models against each other over the same groups: is a group's mean
        different, or the same to within a margin, and which model ranks highest how surely?

        Every pair of models in every group and measure is one family, over which p-values are
        corrected. Crawls are compared by the kinds of prompts that both asked, probes by the
        statements that both were probed with.

        Args:
            runs: the runs, one for each model; of probes, the runs whose statements were probed
                (none: the newest).
            probes: compare the models that probed the runs, not those that were crawled.
            groups: only these groups (default: all that two models have).
            measures: only these measures; of probes "affinity", by how many bits a statement is
                likelier after the group than after the average one, and "affinity_to_negative".
            margin: a difference below it counts as none, in units of the measure (None: 0.05 of
                its range, or 0.2 standard deviations where it has none).
            correction: "holm" or "bh".
            seed: the random seed of resamples and permutations.
            selection: which statements of crawls count, as for `Run.counted`.
        """
        from kgbias.compare.models import contrasts, crawled, probed
        from kgbias.compare.runs import of_one
        from kgbias.study.contrasts import Contrasts, named_apart

        found = [self._stored(run) for run in runs]
        if probes:
            found = found or [self._stored(None)]
            subjects = named_apart([(r, probed(r, p)) for r in found for p in r.probings()])
            if len(subjects) < 2:
                names = ", ".join(run.name for run in found)
                raise UsageError(f"{names}: probed by {len(subjects)} models; two are compared")
        else:
            subjects = [crawled(run, of_one(run, Selection(**selection))) for run in found]
        tests, rankings = contrasts(
            subjects,
            groups=as_names(groups),
            measures=as_names(measures),
            margin=margin,
            correction=correction,
            seed=seed,
        )
        return Contrasts.of(tests, rankings)

    def _stored(self, run: str | Run | None) -> StoredRun:
        if isinstance(run, Run):
            return run.stored
        return StoredRun.find(self._context.graph, run)
