"""Models tested on material from no run: sets of probes, and names with descriptors."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from kgbias.graph.sofa import ProbeSet
from kgbias.graph.types import Flag, FlagTable
from kgbias.io.columns import Column
from kgbias.io.rows import Rows
from kgbias.io.tables_in_memory import Table
from kgbias.parallel import LOCAL_EXECUTOR, open_executor
from kgbias.parameters import Names, PathLike, ScorerOptions, as_names
from kgbias.study.context import StudyPart
from kgbias.study.opening import (
    as_models,
    iter_scorers,
    open_spread_scorer,
    output_paths,
)
from kgbias.study.run import Run

if TYPE_CHECKING:
    from kgbias.compare.sofa import SofaComparison
    from kgbias.models.score.distributed import AnyScorer
    from kgbias.probe import ApxFlags, SetProbes
    from kgbias.probe.set_probes import Sets
    from kgbias.probe.sets import Descriptor
    from kgbias.study.opening import Model, Models


_FLAG_COLUMNS = (
    Column("model", get=lambda pair: pair[0].model),
    Column("group", get=lambda pair: pair[1].group),
    Column("descriptor", get=lambda pair: pair[1].descriptor),
    Column("axis", get=lambda pair: pair[1].axis),
    Column("bias_score", ".3f", get=lambda pair: pair[1].bias_score),
    Column("z", ".2f", get=lambda pair: pair[1].z),
    Column("level", ".3g", get=lambda pair: pair[0].level),
    Column("groups", "d", get=lambda pair: pair[0].groups),
)


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

    def probe_apx(
        self,
        model: "Model | AnyScorer",
        names: "Table | Sequence[tuple[str, str]]" = "globalbias",
        descriptors: "Table | Sequence[Descriptor]" = "globalbias",
        *,
        exclude_axes: Names = (),
        as_published: bool = False,
        output: PathLike | None = None,
        perplexities: PathLike | None = None,
        seed: int = 0,
        executor: str = LOCAL_EXECUTOR,
        processes: int | None = None,
        **opening: Unpack[ScorerOptions],
    ) -> "ApxFlags":
        """Find the descriptors that a model ties to groups of names, by APX, and write them to the
        graph as FLAGGED edges. A group of the same name in a run is the same node. Sentence scores
        are kept, and those in the store, from here or from `benchmark`, are reused.

        Args:
            model: a spec, or a model opened by `kgbias.open_scorer`.
            names: names and groups, as for `kgbias.probe_apx`.
            descriptors: descriptors, as there.
            exclude_axes: descriptors of these axes are measured but not tested.
            as_published: round as the paper's code does.
            output: a CSV file for the APX table.
            perplexities: a .jsonl file or a .parquet folder for every sentence.
            seed: the random seed of the bootstrap.
            executor: where the model runs, as for `Run.probe`.
            processes: the number of processes on this machine, as for `Run.probe`.
            opening: how to open a spec: `begin`, `device`, `dtype`, `instruction`, `base_url`
                (see `kgbias.open_scorer`).
        """
        from kgbias.probe import probe_apx

        with (
            self.working() as progress,
            open_executor(executor, progress, processes) as workers,
        ):
            return probe_apx(
                self._context.apply_display_name(
                    open_spread_scorer(model, opening, progress, workers, self._context.models())
                ),
                names,
                descriptors,
                exclude_axes=as_names(exclude_axes),
                as_published=as_published,
                output=None if output is None else Path(output),
                perplexities=None if perplexities is None else Path(perplexities),
                store=self._context.writable(),
                seed=seed,
                progress=progress,
            )

    def flag_apx(self, path: PathLike, *, exclude_axes: Names = ()) -> "ApxFlags":
        """Write the flags of an existing APX table to the graph (see `kgbias.flag_apx`).

        Args:
            path: the table, a CSV file; the edges are named after it.
            exclude_axes: descriptors of these axes are not tested.
        """
        from kgbias.probe import flag_apx

        apx_flags = flag_apx(Path(path), exclude_axes=as_names(exclude_axes))
        self._context.writable().save_flags(apx_flags.edges)
        return apx_flags

    def flags(self) -> Rows[tuple[FlagTable, Flag]]:
        """The APX flags in the store, by model and group, the most strongly tied first.

        Frame columns: model, group, descriptor, axis, bias_score, z, level, groups.
        """
        return Rows(
            ((table, flag) for table in self._context.graph.flags() for flag in table.flags),
            _FLAG_COLUMNS,
        )
