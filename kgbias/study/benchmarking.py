"""Models on benchmarks, from one store."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from kgbias.errors import DataError, UsageError
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Run as Record
from kgbias.parallel import LOCAL, Executor, opened_executor
from kgbias.parameters import Names, as_names
from kgbias.study.context import OfStudy, PathLike
from kgbias.study.rows import Rows
from kgbias.study.run import Run
from kgbias.study.scorers import ScorerOptions, spread_scorer

if TYPE_CHECKING:
    from kgbias.benchmark import Board, Cost, Outcome
    from kgbias.compare.models import Subject
    from kgbias.io.progress import Progress
    from kgbias.models.score.spread import Scoring
    from kgbias.probe.benchmarks import Benchmark, Sofa


class BenchmarkOptions(TypedDict, total=False):
    """The benchmarks of a call; `Study.benchmark` says what each one means."""

    run: "str | Run | None"
    identities: str | None
    statements: PathLike | Sequence[str] | None
    apx: bool
    names: str | None
    descriptors: str | None
    stereoset: PathLike | None
    crows_pairs: PathLike | None
    convention: str | None
    bbq: PathLike | Sequence[PathLike]
    winogender: PathLike | None


class Benchmarking(OfStudy):
    """Benchmarks of several models; a part of `Study`."""

    def benchmark(
        self,
        models: Names,
        *,
        output: PathLike | None = None,
        tables: PathLike | None = None,
        correction: str = "holm",
        seed: int = 0,
        opening: ScorerOptions | None = None,
        executor: str = LOCAL,
        processes: int | None = None,
        **benchmarks: Unpack[BenchmarkOptions],
    ) -> "Board":
        """Score models on benchmarks of bias, and hold them against each other: figures with
        intervals, ranks with their probabilities, paired tests over the same items as one family,
        and whether the benchmarks agree. The scores of the items are kept in the store: the same
        call again computes what is missing. Where the store has measured crawls of two or more of
        the models, the measures of the newest of each are compared too.

        Args:
            models: specs of the models.
            output: an HTML file for the page.
            tables: a folder for the tables as CSV and LaTeX, and for the results as records of
                Every Eval Ever and of the Hugging Face hub.
            correction: of p-values, over all tests: "holm" or "bh".
            seed: the random seed of intervals and permutations (a SoFa score that the store holds
                keeps its interval).
            opening: how the models are opened, as for `kgbias.open_scorer`.
            executor: where the models read, as for `Run.probe`.
            processes: how many processes of this machine read, as for `Run.probe`.
            benchmarks: which ones: `run` (SoFa: the groups and statements of a run), `statements`
                (SoFa: a file, or a list) with `identities` ("sofa", or a file); `apx` (True; or
                name its `names` and `descriptors`: "globalbias", or a file each); your copies of
                `stereoset`, `crows_pairs` (both scored by `convention`, "original" or
                "bias-bench"), `bbq` (its files) and `winogender`.

        Raises:
            UsageError: no benchmark, a model named twice, or nothing that could be scored.
            DataError: a file that is not what it should be.
        """
        from kgbias.benchmark import board

        specs = _specs(models)
        tasks = self._tasks(benchmarks)
        outcomes, left_out = [], []
        with (
            self.working() as progress,
            opened_executor(executor, progress, processes) as workers,
        ):
            names = []
            for spec in specs if tasks else ():
                with _scorer(spec, opening or {}, progress, workers) as scorer:
                    names.append(scorer.info.name)
                    for task in tasks:
                        try:
                            outcomes.append(self._outcome(task, scorer, seed, progress))
                        except (UsageError, DataError) as error:
                            left_out.append(f"{task.title} of {scorer.info.name}: {error}")
                            progress.note(f"left out: {left_out[-1]}")
            crawled = self._crawled(specs)
            if len(crawled) == 1 and len(specs) > 1:
                left_out.append(
                    f"the measures of crawls: of these models the store has a measured crawl of "
                    f"{crawled[0][0]} alone"
                )
            if not outcomes and len(crawled) < 2:
                raise UsageError(_NOTHING if not tasks else f"nothing was scored: {left_out[0]}")
            found = board(outcomes, crawled, correction=correction, seed=seed, left_out=left_out)
            if output is not None:
                from kgbias.report.benchmark import write_benchmark

                write_benchmark(found, Path(output))
            if tables is not None:
                from kgbias.publish.benchmarks import write_tables

                write_tables(found, Path(tables))
        return found

    def benchmark_cost(self, models: Names, **benchmarks: Unpack[BenchmarkOptions]) -> Rows["Cost"]:
        """What `benchmark` would take with the same arguments, without loading a model: of each
        model and benchmark the items, the texts to score, how many items the store holds already,
        and the seconds for the rest at the speed of those.

        Args:
            models: specs of the models.
            benchmarks: as for `benchmark`.
        """
        from kgbias.benchmark import cost_of
        from kgbias.models.base import ModelInfo
        from kgbias.models.spec import on_server, resolve

        specs, tasks = _specs(models), self._tasks(benchmarks)
        infos = [ModelInfo(s) if on_server(s) else resolve(s).info for s in specs]
        return Rows(
            [cost_of(info, task, self._context.there) for info in infos for task in tasks],
            columns=("model", "benchmark", "items", "texts", "kept", "seconds"),
        )

    def _tasks(self, given: BenchmarkOptions) -> list["Benchmark"]:
        from kgbias.probe.benchmarks import (
            Apx,
            read_bbq,
            read_crows_pairs,
            read_stereoset,
            read_winogender,
        )
        from kgbias.probe.pairs import CONVENTIONS
        from kgbias.probe.sets import read_descriptors, read_names

        tasks: list[Benchmark] = []
        if (sofa := self._sofa(given)) is not None:
            tasks.append(sofa)
        if given.get("apx") or given.get("names") or given.get("descriptors"):
            names = read_names(given.get("names") or "globalbias")
            tasks.append(Apx(names, read_descriptors(given.get("descriptors") or "globalbias")))
        if path := given.get("stereoset"):
            tasks.append(read_stereoset(Path(path)))
        convention = given.get("convention")
        if convention is not None and not given.get("crows_pairs"):
            raise UsageError("`convention` is of `crows_pairs`")
        if convention not in (None, *CONVENTIONS):
            raise UsageError(f"no convention {convention!r}; there is {', '.join(CONVENTIONS)}")
        if path := given.get("crows_pairs"):
            tasks.append(read_crows_pairs(Path(path), convention or CONVENTIONS[0]))
        if files := given.get("bbq"):
            paths = [files] if isinstance(files, str | Path) else files
            tasks.append(read_bbq([Path(path) for path in paths]))
        if path := given.get("winogender"):
            tasks.append(read_winogender(Path(path)))
        return tasks

    def _sofa(self, given: BenchmarkOptions) -> "Sofa | None":
        """SoFa on a run, or on groups and statements; None where it was not asked for."""
        from kgbias.probe import gather_sets
        from kgbias.probe.benchmarks import SofaOfRun, SofaOfSets

        run, statements = given.get("run"), given.get("statements")
        if run is not None and (statements is not None or given.get("identities") is not None):
            raise UsageError("`run` has groups and statements of its own: leave out the others")
        if run is not None:
            return SofaOfRun(run.stored if isinstance(run, Run) else self._context.find(run))
        if statements is None:
            if given.get("identities") is not None:
                raise UsageError("`identities` need `statements`")
            return None
        sets = gather_sets(identities=given.get("identities") or "sofa", statements=statements)
        name = Path(statements).stem if isinstance(statements, str | Path) else "probes"
        return SofaOfSets(sets, name)

    def _outcome(
        self, task: "Benchmark", scorer: "Scoring", seed: int, progress: "Progress"
    ) -> "Outcome":
        from kgbias.benchmark import Outcome

        found = task.result(scorer, self._context.writable(), seed=seed, progress=progress)
        return Outcome(
            scorer.info, scorer.settings, scorer.parameters, task.name, task.title, task.source,
            found.measured, task.figures, task.unit, task.hub, found.items, found.tokens,
            found.seconds, found.remarks,
        )  # fmt: skip

    def _crawled(self, specs: Sequence[str]) -> list[tuple[str, str, "Subject"]]:
        """Of each model the newest complete crawl that was measured."""
        from kgbias.compare.models import crawled
        from kgbias.compare.runs import of_one
        from kgbias.models.spec import known_as

        if self._context.there is None:
            return []
        names = [known_as(spec) for spec in specs]
        found: dict[str, Record] = {}
        for summary in self._context.there.summaries():
            run = summary.run
            done = run.kind == "crawl" and run.status == "complete"
            if done and run.model.name in names and self._context.there.metrics(run.id):
                found[run.model.name] = run
        subjects = []
        for name in (name for name in names if name in found):
            stored = StoredRun(self._context.there, found[name])
            try:
                subjects.append((name, stored.name, crawled(stored, of_one(stored, Selection()))))
            except UsageError as error:  # of several arms, of which none was chosen
                self._context.remark(f"the crawl {stored.name} is not compared: {error}")
        return subjects


_NOTHING = (
    "name a benchmark: a `run` or `statements` (SoFa), `apx`, or your copy of `stereoset`, "
    "`crows_pairs`, `bbq` or `winogender`; the store has no measured crawls of two of the models"
)


def _specs(models: Names) -> tuple[str, ...]:
    specs = as_names(models)
    if not specs:
        raise UsageError("name the models to benchmark")
    from kgbias.models.spec import known_as

    names = [known_as(spec) for spec in specs]
    if twice := [spec for spec, name in zip(specs, names, strict=True) if names.count(name) > 1]:
        raise UsageError(f"the model {twice[0]} is named twice")
    return specs


@contextmanager
def _scorer(
    spec: str, opening: ScorerOptions, progress: "Progress", executor: Executor | None
) -> Iterator["Scoring"]:
    scorer: Any = spread_scorer(spec, opening, progress, executor)
    with closing(scorer) if hasattr(scorer, "close") else nullcontext():
        yield scorer
