"""`kgbias benchmark`: several models on bias benchmarks; and `kgbias probe pairs`: one model on
one."""

import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    SCORER_SPECS,
    base_url_option,
    correction_setting,
    drop_unset,
    encoding_option,
    json_option,
    model_settings,
    store_option,
    workers_settings,
)
from kgbias.cli.probe import FILE_TYPE, format_estimate, open_named_scorer, scorer_options
from kgbias.cli.settings import drop_shared, keep_applicable, setting, shared_settings
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.graph.stores import open_store
from kgbias.io.columns import Column
from kgbias.io.text import format_duration
from kgbias.methods import benchmarks
from kgbias.parameters import check_applies

if TYPE_CHECKING:
    from kgbias.methods.benchmarks.board import BenchmarkCost, Board
    from kgbias.methods.benchmarks.figures import BenchmarkFigures

_OPENING_OPTIONS = ("begin", "device", "dtype", "base_url")


@click.command(
    cls=Command,
    examples=("kgbias benchmark --model smollm2 --model reference --run smollm2 -o page.html",),
)
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    metavar="SPEC",
    help=f"A model (repeatable): {SCORER_SPECS}.",
)
@click.option("--run", metavar="NAME", help="SoFa: use the groups and statements of this run.")
@click.option("--statements", type=FILE_TYPE, help="SoFa: statements, one per line, or a CSV file.")
@click.option("--identities", metavar="NAME-or-FILE", help="SoFa: the groups (default: sofa).")
@click.option("--apx", is_flag=True, help="APX: names before descriptors.")
@click.option("--names", metavar="NAME-or-FILE", help="APX: the names (default: globalbias).")
@click.option(
    "--descriptors", metavar="NAME-or-FILE", help="APX: the descriptors (default: globalbias)."
)
@click.option("--stereoset", type=FILE_TYPE, help="Your copy of StereoSet (JSON).")
@click.option("--crows-pairs", type=FILE_TYPE, help="Your copy of CrowS-Pairs (CSV).")
@setting(
    "convention",
    type=click.Choice(["original", "bias-bench"]),
    help="How CrowS-Pairs is scored (default: original).",
)
@setting(
    "as-published",
    type=bool,
    default=False,
    help="Score StereoSet under causal models as the published codes do.",
)
@click.option(
    "--bbq",
    type=FILE_TYPE,
    multiple=True,
    help="A file of your copy of BBQ (JSON lines; repeatable, also for additional_metadata.csv).",
)
@click.option("--winogender", type=FILE_TYPE, help="Your copy of Winogender (all_sentences.tsv).")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The page (HTML)."
)
@click.option(
    "--tables",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Also write the tables as CSV and LaTeX, and the results as records for Every Eval Ever "
    "and the Hugging Face hub.",
)
@click.option("--dry-run", is_flag=True, help="Show what there is to score, and stop.")
@encoding_option
@base_url_option
@shared_settings("bos")
@model_settings
@workers_settings
@correction_setting
@shared_settings("seed")
@store_option
@json_option
def benchmark(
    store_url: str,
    models: tuple[str, ...],
    dry_run: bool,
    output: Path | None,
    tables: Path | None,
    correction: str,
    seed: int | None,
    executor: str,
    processes: int | None,
    **options: Any,
) -> Output:
    """Score models on bias benchmarks, and compare them.

    The store keeps every item's scores: the same command continues where it stopped, and with
    another model it scores only that one. If the store has measured crawls of the models, these are
    compared too.
    """
    options = keep_applicable(options, models, "scorer")
    opening: Any = drop_unset(**{name: options.pop(name) for name in _OPENING_OPTIONS})
    library_options = drop_unset(**options)
    with kgbias.open(store_url, progress=True) as study:
        if dry_run:
            costs = benchmarks.estimate_cost(study, models, **library_options)
            return Output(costs, lambda: _print_cost(costs))
        board = benchmarks.run_benchmarks(
            study,
            models,
            output=output,
            tables=tables,
            correction=correction,
            **opening,
            executor=executor,
            **drop_unset(seed=seed, processes=processes),
            **library_options,
        )
    return Output(board, lambda: _print_board(board))


def _print_cost(costs: "kgbias.Rows[BenchmarkCost]") -> None:
    columns = (
        Column("model"),
        Column("benchmark"),
        Column("items", ",d"),
        Column("texts", ",d"),
        Column("in the store", ",d"),
        Column("to score", ",d"),
        Column(""),
    )
    show.print_table(
        columns,
        (
            (
                cost.model,
                cost.benchmark,
                cost.items,
                cost.texts,
                cost.kept,
                cost.items - cost.kept,
                _describe_time(cost),
            )
            for cost in costs
        ),
    )


def _describe_time(c: "BenchmarkCost") -> str:
    if c.items == c.kept:
        return ""
    return "time not known yet" if math.isnan(c.seconds) else f"about {format_duration(c.seconds)}"


def _print_board(board: "Board") -> None:
    board = board.with_short_names()
    for standing in board.standings:
        show.say(f"{standing.name} (n = {standing.n} {standing.unit})")
        rows = zip(
            standing.models,
            standing.values,
            (_describe_first(shares[0]) for shares in standing.probabilities),
            strict=True,
        )
        columns = ("", Column("", standing.figure.form, interval=True), "")
        show.print_table(columns, rows, indent=2)
        if standing.unable:
            unable_models = ", ".join(standing.unable)
            show.say(
                f"  by {standing.figure.beside} not shown to be better than chance: {unable_models}"
            )
    shown_tests = [test for test in board.tests if test.differs]
    show.say(
        f"{len(shown_tests)} of {len(board.tests)} differences between models were shown, "
        f"corrected "
        "together"
    )
    for test in shown_tests:
        show.say(f"  {test.verdict}")
    for line in (*board.remarks, *board.left_out):
        show.say(line, err=True)


def _describe_first(share: float) -> str:
    return f"first in {share:.0%} of resamples"


_OPTIONS_BY_BENCHMARK = {
    "stereoset": ["convention", "as_published", "seed"],
    "crows_pairs": ["convention"],
    "bbq": ["seed"],
    "winogender": ["seed"],
}


@click.command(
    cls=Command,
    short_help="Score StereoSet, CrowS-Pairs, BBQ or Winogender.",
    examples=("kgbias probe pairs --stereoset dev.json --model smollm2",),
)
@click.option("--stereoset", type=FILE_TYPE, help="Score this StereoSet file (JSON).")
@click.option("--crows-pairs", type=FILE_TYPE, help="Score this CrowS-Pairs file (CSV).")
@click.option(
    "--bbq",
    type=FILE_TYPE,
    multiple=True,
    help="Score this BBQ file (JSON lines; repeat for more, and for additional_metadata.csv).",
)
@click.option("--winogender", type=FILE_TYPE, help="Score Winogender's all_sentences.tsv.")
@setting(
    "convention",
    type=click.Choice(["original", "bias-bench"]),
    help="Score as the authors' code does, or as bias-bench (default: original). They differ only "
    "for CrowS-Pairs.",
)
@click.option(
    "--as-published",
    is_flag=True,
    help="StereoSet, of a causal model: give the token before a sentence to its first token alone, "
    "as the authors' code and bias-bench do (default: to all).",
)
@click.option(
    "--store",
    "store_url",
    metavar="PATH-or-URL",
    help="Keep the items' scores in this store, and reuse those already there.",
)
@scorer_options
@workers_settings
@shared_settings("seed")
@json_option
def pairs(store_url: str | None, **options: Any) -> Output:
    """Score a benchmark of sentences from your own copy of its file."""
    files = {name: options.pop(name) for name in _OPTIONS_BY_BENCHMARK}
    files_given = [name for name, value in files.items() if value]
    if len(files_given) != 1:
        raise UsageError(
            "give one file: --stereoset FILE, --crows-pairs FILE, --bbq FILE or --winogender FILE"
        )
    name = files_given[0]
    convention_options = {
        "convention": options["convention"],
        "as_published": options["as_published"] or None,
    }
    check_applies(drop_unset(**convention_options), _OPTIONS_BY_BENCHMARK, files_given)
    if not options["as_published"]:
        options.pop("as_published")
    if "seed" not in _OPTIONS_BY_BENCHMARK[name]:
        options = drop_shared(options, ["seed"])
    score = getattr(benchmarks, f"score_{name}")
    with ExitStack() as stack, open_named_scorer(options) as (scorer, progress):
        if store_url is not None:
            options["store"] = stack.enter_context(open_store(store_url, notify=progress.note))
        result = score(scorer, files[name], **drop_unset(**options), progress=progress)
    return Output(result, lambda: _print_figures(result))


def _print_figures(result: "BenchmarkFigures") -> None:
    show.print_table(
        ("", "", "", ""),
        (
            (
                figure.domain,
                figure.figure,
                format_estimate(figure.estimate),
                f"n {figure.estimate.n}",
            )
            for figure in result.figures
        ),
    )
    for remark in result.remarks:
        show.say(remark)
