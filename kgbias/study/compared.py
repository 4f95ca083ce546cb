"""Comparisons of runs and of models."""

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import quote

from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.selection import SelectionOptions, Selection, need_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Run as Record
from kgbias.io.rows import Result, Rows
from kgbias.io.tables_in_memory import Table, Texts, as_table_file
from kgbias.io.wording import how
from kgbias.parallel import LOCAL_EXECUTOR, Executor, open_executor
from kgbias.parameters import Names, PathLike, as_names
from kgbias.stats.estimate import nan_to_none
from kgbias.study.context import Context, OfStudy
from kgbias.study.opening import ScorerOptions, as_models, spread_scorer
from kgbias.study.run import Run

if TYPE_CHECKING:
    from kgbias.benchmark import Board, BenchmarkCost, BenchmarkOutcome
    from kgbias.compare import RunComparison, GroupTest
    from kgbias.compare.model_contrasts import ModelContrast, ModelRanking, ModelSamples
    from kgbias.io.progress import Progress
    from kgbias.models.score.distributed import AnyScorer
    from kgbias.probe.benchmarks import Benchmark, Sofa
    from kgbias.study.opening import Models

_CONTRASTS = (
    "measure", "group", "first", "second", "n_first", "n_second", "mean_first", "mean_second",
    "difference", "low", "high", "p", "p_adjusted", "equivalent_p", "equivalent_adjusted",
    "margin", "detectable", "paired", "corrected", "corrected_low", "corrected_high",
    "corrected_p", "corrected_p_adjusted", "labels", "verdict",
)  # fmt: skip
_RANKINGS = ("measure", "group", "model", "rank", "mean", "probabilities")


@dataclass(frozen=True, slots=True, repr=False)
class Contrasts(Result):
    """Models compared.

    Attributes:
        tests: every pair of models in every group and measure (`kgbias.compare.model_contrasts.ModelContrast`).
        ranks: the models in each group and measure, highest mean first, each with the probability
            of each rank (`kgbias.compare.model_contrasts.ModelRanking`).
    """

    tests: Rows["ModelContrast"]
    ranks: Rows["ModelRanking"]

    @classmethod
    def of(cls, tests: Sequence["ModelContrast"], rankings: Sequence["ModelRanking"]) -> "Contrasts":
        return cls(Rows(tests, _contrast, _CONTRASTS), Rows(rankings, _ranking, _RANKINGS))

    def draw(self, ax: Any = None) -> Any:
        """Draw the differences with their intervals into axes of matplotlib (None: a figure of
        their own); returns the axes."""
        from kgbias.io.drawing import draw_estimates

        named = [
            (f"{t.group}: {t.measure}, {t.first} − {t.second}", t.difference) for t in self.tests
        ]
        return draw_estimates(named, "difference of means", ax)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "family": self.tests[0].family,
            "correction": self.tests[0].correction,
            "contrasts": [_contrast(t) for t in self.tests],
            "ranks": [
                {"measure": r.measure, "group": r.group, "models": [
                    {"model": model, "mean": mean, "probabilities": list(shares)}
                    for model, mean, shares in zip(r.models, r.means, r.probabilities, strict=True)
                ]}
                for r in self.ranks
            ],
        }  # fmt: skip

    def as_rows(self) -> Rows["ModelContrast"]:
        """The tests."""
        return self.tests


class BenchmarkOptions(TypedDict, total=False):
    """The benchmarks of a call; see `Study.benchmark`."""

    run: "str | Run | None"
    identities: Texts | None
    statements: Texts | None
    apx: bool
    names: Table | None
    descriptors: Table | None
    stereoset: Table | None
    crows_pairs: Table | None
    convention: str | None
    as_published: bool
    bbq: PathLike | Sequence[PathLike]
    winogender: Table | None


class Compared(OfStudy):
    """Comparisons of runs and of models; a part of `Study`."""

    def compare(
        self,
        *runs: str | Run,
        examples: int = 5,
        groups: Names = (),
        measures: Names = (),
        **selection: Unpack[SelectionOptions],
    ) -> Rows["RunComparison"]:
        """Compare every pair of these runs, by the statements that count (`Run.counted`): what one
        says and the other does not, and whether they rank the groups alike. `contrast` tests how
        the groups differ.

        Args:
            runs: two or more runs or their names.
            examples: how many of the statements found in only one run to list.
            groups: only these groups in the ranks (default: all).
            measures: only these measures in the ranks (default: all).
            selection: as for `Run.counted`; `arm` selects one in runs with several arms.

        Frame columns: first, second, shared_groups, statements_first, statements_second,
        statements_both, jaccard; for each measure MEASURE_tau (rank agreement of the groups),
        MEASURE_tau_low, MEASURE_tau_high and MEASURE_p; and asked_apart, a sentence that says in
        what the runs were not asked alike.

        Example:
            >>> (both,) = study.compare("peoples", "collected").records()
            >>> print(both["shared_groups"], both["statements_first"], both["statements_both"])
            1 3 1
        """
        from kgbias.compare import compare_runs

        found = [self._context.find(run) for run in runs]
        for each in found:
            need_statements(each)
        with self.working() as progress:
            compared = compare_runs(
                found,
                examples=examples,
                groups=as_names(groups),
                measures=as_names(measures),
                selection=Selection(**selection),
                progress=progress,
            )
        return comparison_rows(compared)

    def contrast(
        self,
        *runs: str | Run,
        probes: bool = False,
        groups: Names = (),
        measures: Names = (),
        margin: float | None = None,
        correction: str = "holm",
        seed: int = 0,
        **selection: Unpack[SelectionOptions],
    ) -> "Contrasts":
        """Compare two or more models over the same groups: is a group's mean different, or the
        same to within a margin, and how surely does each model rank highest?

        Every pair of models in every group and measure is one family, over which p-values are
        corrected. Crawls are compared by the kinds of prompts that both asked, probes by the
        statements that both were probed with.

        Args:
            runs: the runs, one for each model; with `probes`, the runs whose statements were
                probed (none: the newest).
            probes: compare the models that probed the runs, not those that were crawled.
            groups: only these groups (default: all that two models have).
            measures: only these measures; for probes "affinity", by how many bits a statement is
                likelier after the group than after the average group, and "affinity_to_negative".
            margin: a difference below it counts as none, in units of the measure (None: 0.05 of
                its range, or 0.2 standard deviations if it has no range).
            correction: "holm" or "bh".
            seed: the random seed of resamples and permutations.
            selection: which statements of crawls count, as for `Run.counted`.
        """
        from kgbias.compare.run_setup import check_comparable
        from kgbias.compare.model_contrasts import contrast_models, read_crawl_samples, read_probe_samples
        from kgbias.compare.run_pairs import select_single_arm

        found = [self._context.find(run) for run in runs]
        if probes:
            found = found or [self._context.find()]
            subjects = named_apart([(r, read_probe_samples(r, p)) for r in found for p in r.probe_runs()])
            if len(subjects) < 2:
                names = ", ".join(run.name for run in found)
                by = "one model; probe it with another" if subjects else "no model; it needs two"
                probes_it = how(
                    "run.probe(MODEL)", f"kgbias probe run {found[0].name} --model SPEC"
                )
                raise UsageError(f"{names}: probed by {by}: {probes_it}")
        else:
            check_comparable(found, as_names(measures))
            subjects = [read_crawl_samples(run, select_single_arm(run, Selection(**selection))) for run in found]
        tests, rankings = contrast_models(
            subjects,
            groups=as_names(groups),
            measures=as_names(measures),
            margin=margin,
            correction=correction,
            seed=seed,
        )
        if not probes:
            tests = _with_labels(found, tests, Selection(**selection))
        return Contrasts.of(tests, rankings)

    def benchmark(
        self,
        models: "Models",
        *,
        output: PathLike | None = None,
        tables: PathLike | None = None,
        correction: str = "holm",
        seed: int = 0,
        opening: ScorerOptions | None = None,
        executor: str = LOCAL_EXECUTOR,
        processes: int | None = None,
        **benchmarks: Unpack[BenchmarkOptions],
    ) -> "Board":
        """Score models on bias benchmarks, and compare them: figures with intervals, ranks with
        their probabilities, paired tests over the same items as one family, and whether the
        benchmarks agree. Item scores are kept in the store: repeat the call to compute what is
        missing. If the store has measured crawls of two or more of the models, the measures of the
        newest crawl of each are compared too.

        Args:
            models: specs, or models in memory (`kgbias.in_memory`).
            output: an HTML file for the page.
            tables: a folder for the tables as CSV and LaTeX, and for the results as records for
                Every Eval Ever and the Hugging Face hub.
            correction: the correction of p-values over all tests: "holm" or "bh".
            seed: the random seed of intervals and permutations (a SoFa score already in the store
                keeps its interval).
            opening: how to open the models, as for `kgbias.open_scorer`.
            executor: where the models run, as for `Run.probe`.
            processes: the number of processes on this machine, as for `Run.probe`.
            benchmarks: `run` (SoFa: the groups and statements of a run), `statements` (SoFa: a
                file, or a list) with `identities` ("sofa", or a file); `apx` (True; or its `names`
                and `descriptors`: each "globalbias", or a file); your copies of `stereoset`
                (`as_published` scores it under causal models as the published codes do),
                `crows_pairs` (scored by `convention`, "original" or "bias-bench"), `bbq` (its
                files) and `winogender`.

        Raises:
            UsageError: no benchmark, a model named twice, or nothing that could be scored.
            DataError: a file is not in its format.
        """
        from kgbias.benchmark import build_board

        specs = _specs(models)
        tasks = _tasks(self._context, benchmarks)
        outcomes, left_out = [], []
        with (
            self.working() as progress,
            open_executor(executor, progress, processes) as workers,
        ):
            for spec in specs if tasks else ():
                with _scorer(self._context, spec, opening or {}, progress, workers) as scorer:
                    called = self._context.named(scorer).info
                    for task in tasks:
                        try:
                            outcomes.append(_outcome(self._context, task, scorer, seed, progress))
                        except (UsageError, DataError) as error:
                            why = str(error).replace(called.name, called.title)
                            left_out.append(f"{task.title} of {called.title}: {why}")
                            progress.note(f"left out: {left_out[-1]}")
            crawled = _crawled(self._context, specs)
            if len(crawled) == 1 and len(specs) > 1:
                left_out.append(
                    f"the measures of crawls: the store has a measured crawl of only one of these "
                    f"models, {crawled[0][0]}"
                )
            if not outcomes and len(crawled) < 2:
                raise UsageError(_NOTHING if not tasks else f"nothing was scored: {left_out[0]}")
            found = build_board(outcomes, crawled, correction=correction, seed=seed, left_out=left_out)
            if output is not None:
                from kgbias.report.benchmark import write_benchmark

                write_benchmark(found, Path(output))
            if tables is not None:
                from kgbias.publish.evaluations import write_tables

                write_tables(found, Path(tables))
        return found

    def benchmark_cost(
        self, models: "Models", **benchmarks: Unpack[BenchmarkOptions]
    ) -> Rows["BenchmarkCost"]:
        """The work that `benchmark` would do with the same arguments, without loading a model: for
        each model and benchmark the items, the texts to score, how many items are already in the
        store, and the seconds for the rest at the speed of those.

        Frame columns: model, benchmark, items, texts, kept (how many items the store has), seconds.

        Args:
            models: specs, or models in memory (`kgbias.in_memory`).
            benchmarks: as for `benchmark`.
        """
        from kgbias.benchmark import estimate_benchmark_cost
        from kgbias.models.base import ModelInfo
        from kgbias.models.spec import is_on_server, resolve

        specs, tasks = _specs(models), _tasks(self._context, benchmarks)
        infos = [
            s.info if not isinstance(s, str) else ModelInfo(s) if is_on_server(s) else resolve(s).info
            for s in specs
        ]
        return Rows(
            [estimate_benchmark_cost(info, task, self._context.there) for info in infos for task in tasks],
            columns=("model", "benchmark", "items", "texts", "kept", "seconds"),
        )

    def report(
        self,
        runs: str | Run | Sequence[str | Run] = (),
        path: PathLike = "report.html",
        *,
        explorer: PathLike | None = None,
        **selection: Unpack[SelectionOptions],
    ) -> Path:
        """Write the report of a run, or of two to six side by side, as one HTML page that works
        offline. Returns its path. `Run.report` writes that of one run; a comparison of several
        belongs to none of them.

        Args:
            runs: runs or their names; none: the newest. One: findings, figures, graph and
                statements. Several: small multiples, ranks, overlap and differences.
            path: the page.
            explorer: a file for the runs' explorer; the report links to its views.
            selection: which statements count, as for `Run.counted`.
        """
        from kgbias.report import write_report, write_multi_run

        path, found, which = Path(path), _named(self._context, runs), Selection(**selection)
        beside = ""
        if explorer is not None:
            if Path(explorer).resolve() == path.resolve():
                raise UsageError("the report and the explorer need two different files")
            self.explore(runs, explorer, **selection)
            relative = os.path.relpath(Path(explorer).resolve(), path.resolve().parent)
            beside = quote(Path(relative).as_posix())
        with self.working(whole=True) as progress:
            if len(found) == 1:
                write_report(found[0], path, selection=which, progress=progress, explorer=beside)
            else:
                write_multi_run(found, path, selection=which, progress=progress, explorer=beside)
        return path

    def figures(
        self,
        runs: str | Run | Sequence[str | Run] = (),
        folder: PathLike = "figures",
        *,
        correction: str = "holm",
        **selection: Unpack[SelectionOptions],
    ) -> list[Path]:
        """Write the figures of a run, or of two to six side by side, as SVG, PDF and PNG, each with
        its numbers as a LaTeX table, and manifest.json. Returns the files. `Run.figures` writes
        those of one run; a comparison of several belongs to none of them.

        Args:
            runs: as for `report`.
            folder: the folder.
            correction: the correction of p-values over a family of tests: "holm" or "bh".
            selection: which statements count, as for `Run.counted`.
        """
        from kgbias.report.save import save_figures, save_multi_run

        found, which = _named(self._context, runs), Selection(**selection)
        with self.working(whole=True) as progress:
            if len(found) == 1:
                return save_figures(
                    found[0], Path(folder), correction=correction, selection=which,
                    progress=progress,
                )  # fmt: skip
            return save_multi_run(
                found, Path(folder), correction=correction, selection=which, progress=progress
            )

    def explore(
        self,
        runs: str | Run | Sequence[str | Run] = (),
        path: PathLike = "explorer.html",
        **selection: Unpack[SelectionOptions],
    ) -> Path:
        """Write the explorer: the whole graph of the runs with its provenance, in one HTML page
        that works offline from a file. Returns its path. `Run.explore` instead shows one run in a
        notebook, and writes no file.

        Args:
            runs: runs or their names; none: the newest. With several, the page shows one at a time
                or what one says and another does not.
            path: the page.
            selection: `arm`: only this arm. The page holds all statements; `min_acceptability` and
                `without_echoes` set its filters when it is opened, by default as in `Run.counted`.
        """
        from kgbias.explore import write_explorer

        stored = _named(self._context, runs)
        with self.working(whole=True) as progress:
            write_explorer(stored, Path(path), selection=Selection(**selection), progress=progress)
        return Path(path)

    def serve(
        self,
        runs: str | Run | Sequence[str | Run] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 8765,
        token: str | None = None,
        label: Names = (),
        masked: bool = False,
        listening: Callable[[str], None] | None = None,
        **selection: Unpack[SelectionOptions],
    ) -> None:
        """Serve the explorer of the runs until Ctrl-C: the page of `explore`, for graphs too large
        for a file, for teams, and for a crawl that is running: new statements appear, with how far
        the crawl is and what it took. It only reads the store, except with `label`.

        Args:
            runs: as in `explore`.
            host: the address to listen on; any but this machine's own needs a token.
            port: the port; 0 for any free one.
            token: a secret of at least 16 characters that a browser must present once
                (`?token=...`). None: that of the environment variable KGBIAS_SERVE_TOKEN; without
                either, only this machine is served.
            label: measures, such as "regard": the path /label then has a page on which several
                raters can label statements of the run (one run only). This writes to the store, and
                always needs a token.
            masked: hide the group's name on that page.
            listening: called with the address as soon as it answers. While the statements are
                being read, it answers that they are.
            selection: as in `explore`. With more than 50,000 statements, echoes are found only
                with `without_echoes`, and the page stays as it was read at the start.

        Raises UsageError if it cannot listen, or must not without a token.
        """
        from kgbias.explore.server import ExplorerServer, check_token
        from kgbias.measure.labelling import Labelling

        stored, measures = _named(self._context, runs, running=True), as_names(label)
        if measures and len(stored) > 1:
            raise UsageError("statements of one run are labelled at a time: name one run")
        if measures and check_token(host, token) is None:
            raise UsageError(
                "a page that writes needs a token: "
                "export KGBIAS_SERVE_TOKEN=$(openssl rand -hex 16)"
            )
        labellings = [Labelling(stored[0], m, "server", masked=masked) for m in measures]
        with ExplorerServer(host=host, port=port, token=token) as server, suppress(KeyboardInterrupt):
            if listening is not None:
                listening(server.url)
            with self.working() as progress:
                which = Selection(**selection)
                server.show_runs(stored, selection=which, progress=progress, labellings=labellings)
            server.handle_jobs()


def _named(
    context: Context, runs: str | Run | Sequence[str | Run], *, running: bool = False
) -> list[StoredRun]:
    """The runs, or the newest if none is named. Raises DataError for a crawl without statements,
    unless it may still be `running`."""
    named: Sequence[str | Run | None] = [runs] if isinstance(runs, str | Run) else list(runs)
    found = [context.find(run) for run in named or [None]]
    for run in found:
        if not (running and run.status == "running"):
            need_statements(run)
    return found


def _tasks(context: Context, given: BenchmarkOptions) -> list["Benchmark"]:
    from kgbias.probe.benchmarks import (
        Apx,
        read_bbq,
        read_crows_pairs,
        read_stereoset,
        read_winogender,
    )
    from kgbias.probe.benchmark_figures import CONVENTIONS
    from kgbias.probe.sets import read_descriptors, read_names

    tasks: list[Benchmark] = []
    if (sofa := _sofa(context, given)) is not None:
        tasks.append(sofa)
    names, descriptors = given.get("names"), given.get("descriptors")
    if given.get("apx") or names is not None or descriptors is not None:
        tasks.append(
            Apx(
                read_names("globalbias" if names is None else names),
                read_descriptors("globalbias" if descriptors is None else descriptors),
            )
        )
    as_published = given.get("as_published", False)
    if as_published and given.get("stereoset") is None:
        raise UsageError("`as_published` needs `stereoset`")
    if (table := given.get("stereoset")) is not None:
        with as_table_file(table, ("context", "target")) as path:
            tasks.append(read_stereoset(path, as_published=as_published))
    convention = given.get("convention")
    if convention is not None and given.get("crows_pairs") is None:
        raise UsageError("`convention` needs `crows_pairs`")
    if convention not in (None, *CONVENTIONS):
        raise UsageError(no_such("convention", convention, CONVENTIONS))
    if (table := given.get("crows_pairs")) is not None:
        with as_table_file(table, ("sent_more",)) as path:
            tasks.append(read_crows_pairs(path, convention or CONVENTIONS[0]))
    if files := given.get("bbq"):
        paths = [files] if isinstance(files, str | Path) else files
        tasks.append(read_bbq([Path(path) for path in paths]))
    if (table := given.get("winogender")) is not None:
        with as_table_file(table, ("sentid",)) as path:
            tasks.append(read_winogender(path))
    return tasks


def _sofa(context: Context, given: BenchmarkOptions) -> "Sofa | None":
    """SoFa on a run, or on groups and statements; None if not asked for."""
    from kgbias.probe import gather_sets
    from kgbias.probe.benchmarks import SofaOfRun, SofaOfSets

    run, statements = given.get("run"), given.get("statements")
    if run is not None and (statements is not None or given.get("identities") is not None):
        raise UsageError("`run` has groups and statements of its own: leave out the others")
    if run is not None:
        return SofaOfRun(context.find(run))
    if statements is None:
        if given.get("identities") is not None:
            raise UsageError("`identities` needs `statements`")
        return None
    identities = given.get("identities")
    sets = gather_sets(
        identities="sofa" if identities is None else identities, statements=statements
    )
    name = Path(statements).stem if isinstance(statements, str | Path) else "probes"
    return SofaOfSets(sets, name)


def _outcome(
    context: Context, task: "Benchmark", scorer: "AnyScorer", seed: int, progress: "Progress"
) -> "BenchmarkOutcome":
    from kgbias.benchmark import BenchmarkOutcome
    from kgbias.models.base import ModelInfo

    found = task.result(scorer, context.writable(), seed=seed, progress=progress)
    model = ModelInfo(scorer.info.title, scorer.info.revision)  # as all of it names the model
    return BenchmarkOutcome(
        model, scorer.settings, scorer.parameters, task.name, task.title, task.source,
        found.figures, task.figures, task.unit, task.hub, found.items, found.tokens,
        found.seconds, task.parts, found.remarks,
    )  # fmt: skip


def _crawled(context: Context, specs: Sequence[Any]) -> list[tuple[str, str, "ModelSamples"]]:
    """Each model's newest complete crawl that was measured."""
    from kgbias.compare.run_setup import list_setup_differences
    from kgbias.compare.model_contrasts import read_crawl_samples
    from kgbias.compare.run_pairs import select_single_arm

    if context.there is None:
        return []
    names = [_known_as(spec) for spec in specs]
    found: dict[str, Record] = {}
    for summary in context.there.summaries():
        run = summary.run
        done = run.kind == "crawl" and run.status == "complete"
        named = next((n for n in (run.model.name, run.model.public_name) if n in names), None)
        if done and named and context.there.metrics(run.id):
            found[named] = run
    subjects, compared = [], []
    for name in (name for name in names if name in found):
        stored = StoredRun(context.there, found[name])
        try:
            title = stored.model.title
            subjects.append((title, stored.name, read_crawl_samples(stored, select_single_arm(stored, Selection()))))
            compared.append(stored)
        except UsageError as error:  # it has several arms, and none was chosen
            context.remark(f"the crawl {stored.name} is not compared: {error}")
    if len(compared) > 1 and (apart := list_setup_differences(compared)):
        context.remark(
            f"the crawls were not asked alike, and differ by that too: {'; '.join(apart)}"
        )
    return subjects


def named_apart(subjects: Sequence[tuple[StoredRun, "ModelSamples"]]) -> list["ModelSamples"]:
    """The subjects with distinct names: those of the same model also name their run and, if that is
    the same too, a number."""
    often = Counter(s.name for _, s in subjects)
    found: list[ModelSamples] = []
    for run, subject in subjects:
        name = subject.name if often[subject.name] == 1 else f"{subject.name} of {run.name}"
        taken = {s.name for s in found}
        numbered = (f"{name} ({n})" for n in range(2, len(subjects) + 2))
        found.append(
            replace(subject, name=name if name not in taken else next(
                other for other in numbered if other not in taken))
        )  # fmt: skip
    return found


def _contrast(t: "ModelContrast") -> dict[str, Any]:
    return dict(
        zip(
            _CONTRASTS,
            (
                t.measure, t.group, t.first, t.second, *t.n, *t.means, t.difference.value,
                t.difference.low, t.difference.high, t.p, t.p_adjusted, t.equivalent_p,
                t.equivalent_adjusted, t.margin, t.detectable, t.paired, t.corrected.value,
                t.corrected.low, t.corrected.high, t.corrected.p, t.corrected.p_adjusted,
                t.corrected.n, t.verdict,
            ),
            strict=True,
        )
    )  # fmt: skip


def _ranking(r: "ModelRanking") -> dict[str, Any]:
    return {
        "measure": r.measure, "group": r.group, "model": r.models[0], "rank": 1,
        "mean": r.means[0], "probabilities": dict(zip(r.models, r.probabilities, strict=True)),
    }  # fmt: skip


def comparison_rows(found: Sequence["RunComparison"]) -> Rows["RunComparison"]:
    """Comparisons of pairs of runs, with their columns."""
    measures = dict.fromkeys(a.measure for c in found for a in c.agreement)
    columns = [
        "first", "second", "shared_groups", "statements_first", "statements_second",
        "statements_both", "jaccard",
        *(f"{m}_{part}" for m in measures for part in ("tau", "tau_low", "tau_high", "p")),
        "asked_apart",
    ]  # fmt: skip

    def record(c: "RunComparison") -> dict[str, Any]:
        o = c.overlap
        cells: dict[str, Any] = dict.fromkeys(columns, math.nan)
        for a in c.agreement:
            tau = (a.tau.value, a.tau.low, a.tau.high, a.p)
            names = (f"{a.measure}_{part}" for part in ("tau", "tau_low", "tau_high", "p"))
            cells |= zip(names, tau, strict=True)
        told = (c.first.name, c.second.name, c.shared_groups, o.first, o.second, o.both, o.jaccard)
        cells |= zip(columns[: len(told)], told, strict=True)
        return cells | {"asked_apart": "; ".join(c.asked_apart)}

    return Rows(found, record, columns)


def comparison_records(found: Sequence["RunComparison"], models: Contrasts) -> list[dict[str, Any]]:
    """The comparisons of pairs of runs as data, each with its models' contrasts."""
    rest = models.as_dict()
    return [
        _comparison(c)
        | {
            "contrasts": [
                t
                for t in rest["contrasts"]
                if {t["first"], t["second"]} == {c.first.name, c.second.name}
            ],
            "ranks": rest["ranks"],
            "family": rest["family"],
        }
        for c in found
    ]


def _comparison(c: "RunComparison") -> dict[str, Any]:
    def said(triples: Sequence[Any]) -> list[dict[str, Any]]:
        return [{"sentence": t.sentence, "count": t.count} for t in triples]

    return {
        "first": c.first.name,
        "second": c.second.name,
        "asked_apart": list(c.asked_apart),
        "shared_groups": c.shared_groups,
        "statements": {
            "first": c.overlap.first,
            "second": c.overlap.second,
            "both": c.overlap.both,
            "jaccard": c.overlap.jaccard,
            "only_first": said(c.overlap.only_first),
            "only_second": said(c.overlap.only_second),
        },
        "rank_agreement": [
            {"measure": a.measure, "tau_b": a.tau.as_dict(), "p": nan_to_none(a.p)} for a in c.agreement
        ],
    }


def _with_labels(
    runs: Sequence[StoredRun], tests: "list[ModelContrast]", selection: Selection
) -> "list[ModelContrast]":
    """The contrasts of crawls with the differences that labels correct."""
    from kgbias.compare.model_contrasts import correct_contrasts_by_labels
    from kgbias.compare.run_pairs import select_single_arm
    from kgbias.measure.ppi_figures import CorrectedRunDifferences

    if not any(run.store.labels() for run in runs):
        return tests
    sides = [(run, select_single_arm(run, selection)) for run in runs]
    return correct_contrasts_by_labels(tests, CorrectedRunDifferences(sides, selection).difference)


def group_test_record(t: "GroupTest") -> dict[str, Any]:
    """A test as data; differences are of means, first minus second."""
    return {
        "arm": t.arm,
        "measure": t.measure,
        "category": t.category,
        "first": t.first,
        "second": t.second,
        "n": list(t.n),
        "means": [nan_to_none(mean) for mean in t.means],
        "difference": t.difference.as_dict(),
        "forms": {name: e.as_dict() for name, e in t.forms.items()},
        "shrunken": t.shrunken.as_dict(),
        "p": nan_to_none(t.p),
        "p_adjusted": nan_to_none(t.p_adjusted),
        "omnibus_p": nan_to_none(t.omnibus_p),
        "correction": t.correction,
        "family": t.family,
        "detectable": nan_to_none(t.detectable),
        "differs": t.differs,
        "verdict": t.verdict,
    }


_NOTHING = (
    "choose a benchmark: a `run` or `statements` (SoFa), `apx`, or your copy of `stereoset`, "
    "`crows_pairs`, `bbq` or `winogender`; the store has no measured crawls of two of the models"
)


def _specs(models: Any) -> tuple[Any, ...]:
    specs = as_models(models)
    if not specs:
        raise UsageError("name the models to benchmark")
    names = [_known_as(spec) for spec in specs]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"the model {twice} is named twice")
    return specs


def _known_as(model: Any) -> str:
    """The name by which the store may know the model of a spec, or an open one."""
    from kgbias.models.spec import loadable_spec

    if isinstance(model, str):
        return loadable_spec(model)
    return str(model.info.public_name) if hasattr(model, "info") else f"{id(model)}"


@contextmanager
def _scorer(
    context: Context,
    model: Any,
    opening: ScorerOptions,
    progress: "Progress",
    executor: Executor | None,
) -> Iterator["AnyScorer"]:
    scorer: Any = spread_scorer(model, opening, progress, executor, context.models())
    own = isinstance(model, str) and hasattr(scorer, "close")
    with closing(scorer) if own else nullcontext():
        yield scorer
