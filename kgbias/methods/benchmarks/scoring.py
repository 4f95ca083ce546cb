"""Scoring models: which benchmarks a call asks for, and how one model is scored on one of them."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from kgbias.compare.model_contrasts import read_crawl_samples
from kgbias.compare.run_pairs import read_single_arm
from kgbias.compare.run_setup import list_setup_differences
from kgbias.errors import UsageError, no_such
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Run as Record
from kgbias.io.progress import Progress
from kgbias.io.tables_in_memory import as_table_file
from kgbias.methods.benchmarks.apx import Apx
from kgbias.methods.benchmarks.base import Benchmark
from kgbias.methods.benchmarks.bbq import read_bbq
from kgbias.methods.benchmarks.board import BenchmarkOutcome, CrawledModel
from kgbias.methods.benchmarks.crows import read_crows_pairs
from kgbias.methods.benchmarks.options import CONVENTIONS, BenchmarkOptions
from kgbias.methods.benchmarks.sofa import Sofa, SofaOfRun, SofaOfSets
from kgbias.methods.benchmarks.stereoset import read_stereoset
from kgbias.methods.benchmarks.winogender import read_winogender
from kgbias.models.base import ModelInfo
from kgbias.models.score.distributed import AnyScorer
from kgbias.models.spec import loadable_spec
from kgbias.parallel import Executor
from kgbias.parameters import ScorerOptions
from kgbias.probe import gather_sets
from kgbias.probe.sets import read_descriptors, read_names
from kgbias.study.context import Context
from kgbias.study.opening import as_models, open_spread_scorer


def read_benchmarks(context: Context, options: BenchmarkOptions) -> list[Benchmark]:
    """The benchmarks that a call asks for, with what their files hold."""
    benchmarks: list[Benchmark] = []
    if (sofa := _sofa_benchmark(context, options)) is not None:
        benchmarks.append(sofa)
    names, descriptors = options.get("names"), options.get("descriptors")
    if options.get("apx") or names is not None or descriptors is not None:
        benchmarks.append(
            Apx(
                read_names("globalbias" if names is None else names),
                read_descriptors("globalbias" if descriptors is None else descriptors),
            )
        )
    as_published = options.get("as_published", False)
    if as_published and options.get("stereoset") is None:
        raise UsageError("`as_published` needs `stereoset`")
    if (table := options.get("stereoset")) is not None:
        with as_table_file(table, ("context", "target")) as path:
            benchmarks.append(read_stereoset(path, as_published=as_published))
    convention = options.get("convention")
    if convention is not None and options.get("crows_pairs") is None:
        raise UsageError("`convention` needs `crows_pairs`")
    if convention not in (None, *CONVENTIONS):
        raise UsageError(no_such("convention", convention, CONVENTIONS))
    if (table := options.get("crows_pairs")) is not None:
        with as_table_file(table, ("sent_more",)) as path:
            benchmarks.append(read_crows_pairs(path, convention or CONVENTIONS[0]))
    if files := options.get("bbq"):
        paths = [files] if isinstance(files, str | Path) else files
        benchmarks.append(read_bbq([Path(path) for path in paths]))
    if (table := options.get("winogender")) is not None:
        with as_table_file(table, ("sentid",)) as path:
            benchmarks.append(read_winogender(path))
    return benchmarks


def _sofa_benchmark(context: Context, options: BenchmarkOptions) -> Sofa | None:
    """SoFa on a run, or on groups and statements; None if not asked for."""
    run, statements = options.get("run"), options.get("statements")
    if run is not None and (statements is not None or options.get("identities") is not None):
        raise UsageError("`run` has groups and statements of its own: leave out the others")
    if run is not None:
        return SofaOfRun(context.find(run))
    if statements is None:
        if options.get("identities") is not None:
            raise UsageError("`identities` needs `statements`")
        return None
    identities = options.get("identities")
    sets = gather_sets(
        identities="sofa" if identities is None else identities, statements=statements
    )
    name = Path(statements).stem if isinstance(statements, str | Path) else "probes"
    return SofaOfSets(sets, name)


def score_benchmark(
    context: Context, benchmark: Benchmark, scorer: AnyScorer, seed: int, progress: Progress
) -> BenchmarkOutcome:
    result = benchmark.result(scorer, context.writable(), seed=seed, progress=progress)
    model = ModelInfo(scorer.info.title, scorer.info.revision)  # as all of it names the model
    return BenchmarkOutcome(
        model,
        scorer.settings,
        scorer.parameters,
        benchmark.name,
        benchmark.title,
        benchmark.source,
        result.figures,
        benchmark.figures,
        benchmark.unit,
        benchmark.hub,
        result.items,
        result.tokens,
        result.seconds,
        benchmark.parts,
        result.remarks,
    )


def read_crawled_models(context: Context, specs: Sequence[Any]) -> list[CrawledModel]:
    """Each model's newest complete crawl that was measured."""
    if context.existing_store is None:
        return []
    names = [_stored_name(spec) for spec in specs]
    records: dict[str, Record] = {}
    for run in context.existing_store.runs():
        is_complete = run.kind == "crawl" and run.status == "complete"
        model_name = next((n for n in (run.model.name, run.model.public_name) if n in names), None)
        if is_complete and model_name and context.existing_store.metrics(run.id):
            records[model_name] = run
    crawled, stored_runs = [], []
    for name in (name for name in names if name in records):
        stored_run = StoredRun(context.existing_store, records[name])
        try:
            arm = read_single_arm(stored_run, Selection())
            samples = read_crawl_samples(stored_run, arm)
            crawled.append(CrawledModel(stored_run.model.title, stored_run.name, samples))
            stored_runs.append(stored_run)
        except UsageError as error:  # it has several arms, and none was chosen
            context.remark(f"the crawl {stored_run.name} is not compared: {error}")
    if len(stored_runs) > 1 and (differences := list_setup_differences(stored_runs)):
        context.remark(
            f"the crawls were not asked alike, and differ by that too: {'; '.join(differences)}"
        )
    return crawled


NO_BENCHMARK = (
    "choose a benchmark: a `run` or `statements` (SoFa), `apx`, or your copy of `stereoset`, "
    "`crows_pairs`, `bbq` or `winogender`; the store has no measured crawls of two of the models"
)


def as_distinct_models(models: Any) -> tuple[Any, ...]:
    """The models to benchmark, as specs or open; raises UsageError for none, or one named twice."""
    specs = as_models(models)
    if not specs:
        raise UsageError("name the models to benchmark")
    names = [_stored_name(spec) for spec in specs]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"the model {twice} is named twice")
    return specs


def _stored_name(model: Any) -> str:
    """The name by which the store may know the model of a spec, or an open one."""
    if isinstance(model, str):
        return loadable_spec(model)
    return str(model.info.public_name) if hasattr(model, "info") else f"{id(model)}"


@contextmanager
def open_benchmark_scorer(
    context: Context,
    model: Any,
    opening: ScorerOptions,
    progress: Progress,
    executor: Executor | None,
) -> Iterator[AnyScorer]:
    scorer: Any = open_spread_scorer(model, opening, progress, executor, context.models())
    is_ours = isinstance(model, str) and hasattr(scorer, "close")
    with closing(scorer) if is_ours else nullcontext():
        yield scorer
