"""SoFa of several models on the same groups and statements."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from kgbias.errors import DataError
from kgbias.graph.sofa import ProbeSet
from kgbias.reading import read_table
from kgbias.study.opened import OpenedStore
from kgbias.study.run import Run
from kgbias.study.scorers import ScorerOptions, each_scorer, listed, outputs

if TYPE_CHECKING:
    from kgbias.compare.sofa import SofaComparison
    from kgbias.models.score.base import TextScorer
    from kgbias.probe import SetProbes
    from kgbias.probe.stream import Sets


class SofaSets(OpenedStore):
    """SoFa of several models on the same groups and statements; a part of `Study`."""

    def probe_sets(
        self,
        models: "str | TextScorer | Sequence[str | TextScorer]",
        sets: "Sets",
        *,
        name: str = "probes",
        by: Literal["conditional", "sofa", "whole"] | None = None,
        as_published: bool = False,
        output: str | Path | None = None,
        run: Run | None = None,
        seed: int = 0,
        **opening: Unpack[ScorerOptions],
    ) -> "list[SetProbes]":
        """Probe groups and statements with one model or several, one after another: each is loaded
        once, and forgotten before the next. What each probe costs is kept in the answer log (or in
        `output`), so the same call continues where it was stopped; SoFa of each model is kept with
        the set.

        Args:
            models: specs, or models that `kgbias.open_scorer` opened.
            sets: category to (groups, statements); `kgbias.gather_sets` reads them.
            name: what to call the set.
            by: what ranks the groups (see `Run.probe`).
            as_published: compute as the code of the paper did, slips included; not kept.
            output: write every probe: a .jsonl file or a .parquet folder; of several models, each
                has its own, whose name ends in the model's.
            run: the run whose statements or groups these are.
            seed: the random seed of the intervals.
            opening: how a spec is opened: `begin`, `device`, `dtype`, `base_url`.

        Raises:
            UsageError: a spec that is none, or an output that belongs to other settings.
            ModelError: a model cannot be loaded.
        """
        from kgbias.probe import probe_sets
        from kgbias.probe.outcome import sofa_result

        named = listed(models)
        files, probe_set = outputs(output, named), ProbeSet.of(name, sets)
        store, found = self._writable(), []
        with self.working() as progress:
            for n, scorer in each_scorer(named, opening, progress):
                found.append(
                    probed := probe_sets(
                        scorer, sets, measure=by, output=files[n], store=store,
                        as_published=as_published, seed=seed, progress=progress,
                    )
                )  # fmt: skip
                if not as_published:
                    known = {s.id for s in store.probe_sets()}
                    if probe_set.id not in known:
                        store.save_probe_set(probe_set)
                    result = sofa_result(
                        probe_set, probed.model, probed.bias, measure=by, seed=seed
                    )
                    store.save_sofa(None if run is None else run.stored.id, [result])
        return found

    def sofa_figures(
        self,
        folder: str | Path = "sofa",
        probe_set: str | None = None,
        *,
        beside: str | Path | None = None,
        **options: Any,
    ) -> list[Path]:
        """Write the tables and figures of the paper for one set of probes: SVG, PDF and PNG, LaTeX
        and CSV, and manifest.json. Returns the files.

        Args:
            folder: where to.
            probe_set: as for `sofa`.
            beside: scores of the same models by other benchmarks, which stand beside SoFa in table
                1 with their ranks and Kendall's tau: a CSV file with the column model and a column
                for each benchmark, higher is more biased.
            options: as for `sofa`.
        """
        from kgbias.report.save import save_sofa

        others = None if beside is None else read_benchmarks(Path(beside))
        found = self.sofa(probe_set, **options)
        with self.working() as progress:
            return save_sofa(found, Path(folder), beside=others, progress=progress)

    def sofa(
        self, probe_set: str | None = None, *, run: str | None = None, **options: Any
    ) -> "SofaComparison":
        """Models by SoFa on one set of probes: ranks, paired tests, scores by category.

        Args:
            probe_set: the name of a set or the beginning of its id (None: the set that most models
                were asked about).
            run: only what this run was probed with.
            options: `correction` and `seed` of `kgbias.compare.sofa.compare_sofa`.

        Raises UsageError where no model was probed, or no set has that name.
        """
        from kgbias.compare.sofa import stored_sofa

        id = None if run is None else self.store.find_run(run).id
        return stored_sofa(self.store, self.store.sofa(id), probe_set, **options)


def read_benchmarks(path: Path) -> dict[str, dict[str, float]]:
    """Scores of models by benchmark, from a CSV file with the column model and a column for each
    benchmark; an empty cell is a model that was not scored. Raises DataError."""
    columns, rows = read_table(path, ["model"])
    names = [name for name in columns if name != "model"]
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    for line, row in rows:
        for name in names:
            if cell := row[name].strip():
                try:
                    found[name][row["model"]] = float(cell)
                except ValueError:
                    raise DataError(f"{path}, line {line}: {name} is no number") from None
    if not names:
        raise DataError(f"{path} has no benchmark beside the column model")
    return found
