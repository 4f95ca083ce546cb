"""Benchmarks of bias: StereoSet (Nadeem et al. 2021), CrowS-Pairs (Nangia et al. 2020), BBQ
(Parrish et al. 2022) and Winogender (Rudinger et al. 2018), from the user's copies of their files;
and a board of several models on them, on SoFa and on APX.

    from kgbias.methods import benchmarks

    benchmarks.run_benchmarks(study, ["smollm2", "reference"], stereoset="dev.json")
    benchmarks.score_bbq(scorer, ["Age.jsonl"])

All ask which of a few texts a model prefers, and have been criticised for their sentences (Blodgett
et al. 2021): use them to compare with published figures.

A `Benchmark` turns what a model finds probable into figures over units. An `ItemBenchmark` is read
from the user's copy of its file and scores those of its items that a store does not hold yet;
`Sofa` and `Apx` come from probing.

The store keeps scores (`BenchmarkItem`, READ_BY) keyed by all that was asked, so nothing is scored
twice. SoFa has no items of its own: its benchmark is the `SofaResult` that probing the same set or
run left in the store, or leaves there when it is asked for. Figures follow from sums over units
(`kgbias.stats.units`), so models are resampled and exchanged over the same units, whatever the
figure.

To add a benchmark, add a module with its `ItemBenchmark` (its items, what is scored of each, the
figures that follow), a function here, and a parameter in `BenchmarkOptions` with its reading in
`tasks`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from kgbias.errors import DataError, UsageError, no_such
from kgbias.io.columns import Column
from kgbias.io.rows import Rows
from kgbias.methods.benchmarks.options import CONVENTIONS, BenchmarkOptions, RunBenchmarksOptions
from kgbias.parallel import LOCAL_EXECUTOR
from kgbias.parameters import PathLike
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.graph.store import Store
    from kgbias.io.progress import Progress
    from kgbias.methods.benchmarks.base import Benchmark
    from kgbias.methods.benchmarks.board import BenchmarkCost, Board
    from kgbias.methods.benchmarks.figures import BenchmarkFigures
    from kgbias.models.score.distributed import AnyScorer, ScorerSource
    from kgbias.study.opening import Models
    from kgbias.study.study import Study

_LOG_PROBABILITY = "log-probability"


@public_call
def run_benchmarks(
    study: "Study",
    models: "Models",
    *,
    output: PathLike | None = None,
    tables: PathLike | None = None,
    correction: str = "holm",
    seed: int = 0,
    executor: str = LOCAL_EXECUTOR,
    processes: int | None = None,
    **options: Unpack[RunBenchmarksOptions],
) -> "Board":
    """Score models on bias benchmarks, and compare them: figures with intervals, ranks with
    their probabilities, paired tests over the same items as one family, and whether the
    benchmarks agree. Item scores are kept in the store: repeat the call to compute what is
    missing. If the store has measured crawls of two or more of the models, the measures of the
    newest crawl of each are compared too.

    Args:
        study: the study, whose store keeps the scores.
        models: specs, or models in memory (`kgbias.in_memory`).
        output: an HTML file for the page.
        tables: a folder for the tables as CSV and LaTeX, and for the results as records for
            Every Eval Ever and the Hugging Face hub.
        correction: the correction of p-values over all tests: "holm" or "bh".
        seed: the random seed of intervals and permutations (a SoFa score already in the store
            keeps its interval).
        executor: where the models run, as for `Run.probe`.
        processes: the number of processes on this machine, as for `Run.probe`.
        options: how to open the models, as for `kgbias.open_scorer`; and which benchmarks: `run`
            (SoFa: the groups and statements of a run), `statements` (SoFa: a file, or a list) with
            `identities` ("sofa", or a file); `apx` (True; or its `names` and `descriptors`: each
            "globalbias", or a file); your copies of `stereoset` (`as_published` scores it under
            causal models as the published codes do), `crows_pairs` (scored by `convention`,
            "original" or "bias-bench"), `bbq` (its files) and `winogender`.

    Raises:
        UsageError: no benchmark, a model named twice, or nothing that could be scored.
        DataError: a file is not in its format.
    """
    from kgbias.methods.benchmarks.board import build_board
    from kgbias.methods.benchmarks.scoring import (
        NO_BENCHMARK,
        as_distinct_models,
        open_benchmark_scorer,
        read_benchmarks,
        read_crawled_models,
        score_benchmark,
    )
    from kgbias.parallel import open_executor
    from kgbias.study.opening import OPENING_OPTIONS

    asked: Any = dict(options)
    opening: Any = {name: asked.pop(name) for name in OPENING_OPTIONS if name in asked}
    specs = as_distinct_models(models)
    benchmarks = read_benchmarks(study.context, asked)
    outcomes, left_out = [], []
    with (
        study.context.working() as progress,
        open_executor(executor, progress, processes) as workers,
    ):
        for spec in specs if benchmarks else ():
            with open_benchmark_scorer(study.context, spec, opening, progress, workers) as scorer:
                model_info = study.context.apply_display_name(scorer).info
                for benchmark in benchmarks:
                    try:
                        outcomes.append(
                            score_benchmark(study.context, benchmark, scorer, seed, progress)
                        )
                    except (UsageError, DataError) as error:
                        reason = str(error).replace(model_info.name, model_info.title)
                        left_out.append(f"{benchmark.title} of {model_info.title}: {reason}")
                        progress.note(f"left out: {left_out[-1]}")
        crawled = read_crawled_models(study.context, specs)
        if len(crawled) == 1 and len(specs) > 1:
            left_out.append(
                f"the measures of crawls: the store has a measured crawl of only one of these "
                f"models, {crawled[0].name}"
            )
        if not outcomes and len(crawled) < 2:
            raise UsageError(
                NO_BENCHMARK if not benchmarks else f"nothing was scored: {left_out[0]}"
            )
        result = build_board(outcomes, crawled, correction=correction, seed=seed, left_out=left_out)
        if output is not None:
            from kgbias.methods.benchmarks.page import write_benchmark

            write_benchmark(result, Path(output))
        if tables is not None:
            from kgbias.methods.benchmarks.records import write_tables

            write_tables(result, Path(tables))
    return result


@public_call
def estimate_cost(
    study: "Study", models: "Models", **benchmarks: Unpack[BenchmarkOptions]
) -> Rows["BenchmarkCost"]:
    """The work that `run_benchmarks` would do with the same arguments, without loading a model: for
    each model and benchmark the items, the texts to score, how many items are already in the
    store, and the seconds for the rest at the speed of those.

    Frame columns: model, benchmark, items, texts, kept (how many items the store has), seconds.

    Args:
        study: the study, whose store keeps the scores.
        models: specs, or models in memory (`kgbias.in_memory`).
        benchmarks: as for `run_benchmarks`.
    """
    from kgbias.methods.benchmarks.board import estimate_benchmark_cost
    from kgbias.methods.benchmarks.scoring import as_distinct_models, read_benchmarks
    from kgbias.models.base import ModelInfo
    from kgbias.models.spec import is_on_server, resolve

    specs = as_distinct_models(models)
    requested = read_benchmarks(study.context, benchmarks)
    infos = []
    for spec in specs:
        if not isinstance(spec, str):
            infos.append(spec.info)
        else:
            infos.append(ModelInfo(spec) if is_on_server(spec) else resolve(spec).info)
    return Rows(
        [
            estimate_benchmark_cost(info, benchmark, study.context.existing_store)
            for info in infos
            for benchmark in requested
        ],
        (
            Column("model"),
            Column("benchmark"),
            Column("items", ",d"),
            Column("texts", ",d"),
            Column("kept", ",d"),
            Column("seconds", ".0f"),
        ),
    )


@public_call
def score_crows_pairs(
    scorer: "AnyScorer | ScorerSource",
    path: Path,
    convention: str = "original",
    *,
    store: "Store | None" = None,
    progress: "Progress | None" = None,
) -> "BenchmarkFigures":
    """The share of pairs whose more stereotypical sentence scores higher, in percent, with Wilson
    intervals, overall and by bias type; ties count as not preferred. See
    `kgbias.methods.benchmarks.crows.CrowsPairs` for the scoring.

    Args:
        scorer: as for `score_bbq`.
        path: the file.
        convention: "original" or "bias-bench".
        store: keeps the scores of items.
        progress: shows the work.
    """
    from kgbias.methods.benchmarks.crows import read_crows_pairs

    _check_convention(convention)
    return _score_benchmark(read_crows_pairs(path, convention), scorer, convention, store, progress)


@public_call
def score_stereoset(
    scorer: "AnyScorer | ScorerSource",
    path: Path,
    convention: str = "original",
    *,
    as_published: bool = False,
    seed: int = 0,
    store: "Store | None" = None,
    progress: "Progress | None" = None,
) -> "BenchmarkFigures":
    """LMS, SS and ICAT, in percent: means over target terms, with bootstrap intervals over terms,
    overall and by domain. Figures of the intersentence part are named as such. Both conventions
    score alike; `as_published` (default: no) scores a causal model as the published codes do. See
    `kgbias.methods.benchmarks.stereoset.StereoSet`.

    Args:
        scorer: as for `score_bbq`.
        path: the file.
        convention: "original" or "bias-bench".
        as_published: score a causal model as the published codes do.
        seed: the random seed of the intervals.
        store: keeps the scores of items.
        progress: shows the work.
    """
    from kgbias.methods.benchmarks.stereoset import read_stereoset

    _check_convention(convention)
    benchmark = read_stereoset(path, as_published=as_published)
    return _score_benchmark(benchmark, scorer, convention, store, progress, seed)


@public_call
def score_bbq(
    scorer: "AnyScorer | ScorerSource",
    paths: Sequence[Path],
    *,
    seed: int = 0,
    store: "Store | None" = None,
    progress: "Progress | None" = None,
) -> "BenchmarkFigures":
    """Accuracy and both bias scores in ambiguous and disambiguated contexts, in percent, overall
    and by category, with bootstrap intervals over question templates. `paths` are the .jsonl files
    and optionally additional_metadata.csv. See `kgbias.methods.benchmarks.bbq.BBQ` for the scoring.

    Args:
        scorer: an open scorer of texts, such as `kgbias.open_scorer` gives.
        paths: the files.
        seed: the random seed of the intervals.
        store: keeps the scores of items.
        progress: shows the work.
    """
    from kgbias.methods.benchmarks.bbq import read_bbq

    return _score_benchmark(read_bbq(paths), scorer, _LOG_PROBABILITY, store, progress, seed)


@public_call
def score_winogender(
    scorer: "AnyScorer | ScorerSource",
    path: Path,
    *,
    seed: int = 0,
    store: "Store | None" = None,
    progress: "Progress | None" = None,
) -> "BenchmarkFigures":
    """How often pronouns are resolved to the person they refer to, overall and by gender, and how
    often a sentence's male and female pronoun are resolved differently, in percent, with bootstrap
    intervals over occupations. See `kgbias.methods.benchmarks.winogender.Winogender` for the
    scoring.

    Args:
        scorer: as for `score_bbq`.
        path: the file.
        seed: the random seed of the intervals.
        store: keeps the scores of items.
        progress: shows the work.
    """
    from kgbias.methods.benchmarks.winogender import read_winogender

    return _score_benchmark(read_winogender(path), scorer, _LOG_PROBABILITY, store, progress, seed)


def _score_benchmark(
    benchmark: "Benchmark",
    scorer: "AnyScorer | ScorerSource",
    convention: str,
    store: "Store | None",
    progress: "Progress | None",
    seed: int = 0,
) -> "BenchmarkFigures":
    from kgbias.methods.benchmarks.figures import BenchmarkFigure, BenchmarkFigures
    from kgbias.models.score.distributed import resolve_scorer
    from kgbias.probe.result import ScorerInfo

    scorer = resolve_scorer(scorer)
    result = benchmark.result(scorer, store, seed=seed, progress=progress)
    figures = tuple(BenchmarkFigure(m.domain, m.figure, m.estimate) for m in result.figures)
    return BenchmarkFigures(ScorerInfo.from_scorer(scorer), convention, figures, result.remarks)


def _check_convention(convention: str) -> None:
    if convention not in CONVENTIONS:
        raise UsageError(no_such("convention", convention, CONVENTIONS))
