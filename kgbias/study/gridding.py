"""The parameter study of association tests."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgbias.graph.store import StoredRun
from kgbias.parallel import LOCAL, opened_executor
from kgbias.parameters import Names, as_names
from kgbias.study.opened import OpenedStore
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.associate.grid import GridCost, GridResult

PathLike = str | Path


class Gridding(OpenedStore):
    """Grids of association tests; a part of `Study`."""

    def associate_grid(
        self,
        models: Names,
        tests: Names = (),
        methods: Names = (),
        *,
        run: str | RunView | None = None,
        output: PathLike | None = None,
        cache: bool = True,
        device: str = "auto",
        dtype: str = "float32",
        executor: str = LOCAL,
        processes: int | None = None,
        **options: Any,
    ) -> "GridResult":
        """Run the parameter study of "Mind Your Bias" (2022): tests by methods, names and terms,
        templates and a corpus, encodings, word sets and models, in every valid combination. Each
        model is loaded once and each text embedded once; what the store holds is not computed
        again, so that the same call resumes an interrupted one.

        Args:
            models: specs of the models.
            tests: published tests by name (default: those of the paper); C3 is names and terms.
            methods: s-seat, w-seat, ceat, lpbs, ceat-lpbs (default: all).
            run: a run that the results are tied to, with edges to its groups and topics.
            output: a folder for the tables and figures of the paper.
            cache: keep embeddings on disk.
            device: "auto", or the name of a torch device.
            dtype: what the models compute in.
            executor: where the models read, as for `Run.probe`.
            processes: how many processes of this machine read, as for `Run.probe`.
            options: those of `kgbias.associate.grid.plan`: `contexts` (a corpus), `encoding`,
                `words`, `targets` (one value of an axis), `samples`, `draws`, `seed`, `layer`,
                `most`, `window`.
        """
        from kgbias.associate.grid import plan, run_grid

        grid = plan(as_names(models), as_names(tests), as_names(methods), **options)
        store = self._writable()
        tied = run.stored if isinstance(run, RunView) else None
        if isinstance(run, str):
            tied = StoredRun(store, store.find_run(run))
        with (
            self.working() as progress,
            opened_executor(executor, progress, processes) as workers,
        ):
            found = run_grid(
                grid,
                store,
                tied,
                cache=cache,
                device=device,
                dtype=dtype,
                executor=workers,
                progress=progress,
            )
        if output is not None:
            from kgbias.report.associations import write_grid

            write_grid(found.rows, Path(output))
        return found

    def grid_cost(
        self, models: Names, tests: Names = (), methods: Names = (), **options: Any
    ) -> "GridCost":
        """What `associate_grid` would take with the same arguments, without loading a model: cells
        in all and already in the store, texts to embed, predictions to make."""
        from kgbias.associate.grid import cost, plan

        grid = plan(as_names(models), as_names(tests), as_names(methods), **options)
        return cost(grid, self._store)
