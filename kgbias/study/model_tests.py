"""Models tested on sets of probes from no run."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from kgbias.io.rows import Rows
from kgbias.parallel import LOCAL_EXECUTOR, open_executor
from kgbias.parameters import ScorerOptions
from kgbias.study.context import StudyPart
from kgbias.study.opening import (
    as_models,
    iter_scorers,
    output_paths,
)
from kgbias.study.run import Run

if TYPE_CHECKING:
    from kgbias.compare.sofa import SofaComparison
    from kgbias.probe import SetProbes
    from kgbias.probe.set_probes import Sets
    from kgbias.study.opening import Models


class StudyModelTests(StudyPart):
    """Models tested on material from no run; a part of `Study`."""

    def probe_sets(
        self,
        models: "Models",
        sets: "Sets",
        *,
        name: str = "probes",
        by: Literal["conditional", "sofa", "whole"] | None = None,
        as_published: bool = False,
        output: str | Path | None = None,
        run: Run | None = None,
        seed: int = 0,
        executor: str = LOCAL_EXECUTOR,
        processes: int | None = None,
        **opening: Unpack[ScorerOptions],
    ) -> Rows["SetProbes"]:
        """Probe groups and statements with one model or several, one after another: each is loaded
        once, and unloaded before the next. The score of each probe is kept in the answer log (or in
        `output`), so repeat the call to continue where it stopped; each model's SoFa is kept with
        the set.

        Frame columns: model, revision, sofa, sofa_low, sofa_high. Each row converts too, to its
        categories.

        Args:
            models: specs, or models opened by `kgbias.open_scorer`.
            sets: category to (groups, statements), as read by `kgbias.gather_sets`.
            name: a name for the set.
            by: what ranks the groups (see `Run.probe`).
            as_published: compute as the paper's code did, slips included; not kept.
            output: write every probe: a .jsonl file or a .parquet folder; with several models, one
                each, whose name ends in the model's.
            run: the run whose statements or groups these are.
            seed: the random seed of the intervals.
            executor: where the models run, as for `Run.probe`.
            processes: the number of processes on this machine, as for `Run.probe`.
            opening: how to open a spec: `begin`, `device`, `dtype`, `base_url`.

        Raises:
            UsageError: an invalid spec, or an output that belongs to other settings.
            ModelError: a model cannot be loaded.
        """
        from kgbias.graph.sofa import ProbeSet
        from kgbias.probe import probe_sets
        from kgbias.probe.result import save_sofa_result, set_probe_rows, sofa_result

        specs = list(as_models(models))
        files, probe_set = output_paths(output, specs), ProbeSet.from_texts(name, sets)
        store, results = self._context.writable(), []
        with (
            self.working() as progress,
            open_executor(executor, progress, processes) as workers,
        ):
            for place, scorer in iter_scorers(
                specs, opening, progress, workers, self._context.models()
            ):
                self._context.apply_display_name(scorer)
                results.append(
                    probed := probe_sets(
                        scorer,
                        sets,
                        measure=by,
                        output=files[place],
                        store=store,
                        as_published=as_published,
                        seed=seed,
                        progress=progress,
                    )
                )
                if not as_published:
                    result = sofa_result(
                        probe_set,
                        probed.model,
                        probed.bias,
                        measure=by,
                        seed=seed,
                        usage=probed.usage,
                    )
                    save_sofa_result(
                        store, None if run is None else run.stored.id, probe_set, result
                    )
        return set_probe_rows(results)

    def sofa(
        self,
        probe_set: str | None = None,
        *,
        run: str | Run | None = None,
        correction: str = "holm",
        seed: int = 0,
    ) -> "SofaComparison":
        """Rank models by SoFa on one set of probes: ranks, paired tests, scores by category.

        Args:
            probe_set: the name of a set or the beginning of its id (None: the set that most models
                were asked about).
            run: only the models that `Run.probe` asked about this run.
            correction: the correction of p-values over every pair of models in every category:
                "holm" or "bh".
            seed: the random seed of resamples and permutations.

        Raises UsageError if no model was probed, or no set has that name.
        """
        from kgbias.compare.sofa import compare_stored_sofa

        store = self._context.graph
        stored_results = (
            store.sofa_results() if run is None else self._context.find(run).sofa_results()
        )
        return compare_stored_sofa(
            store, stored_results, probe_set, correction=correction, seed=seed
        )
