"""`kgbias benchmark`: several models on bias benchmarks."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    SCORERS,
    base_url_option,
    correction_setting,
    json_option,
    model_settings,
    said,
    store_option,
    workers_settings,
)
from kgbias.cli.probe import FILE
from kgbias.cli.settings import fitting, setting, settings
from kgbias.io.text import format_duration

if TYPE_CHECKING:
    from kgbias.benchmark import Board, BenchmarkCost

_OPENING = ("begin", "device", "dtype", "base_url")


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
    help=f"A model (repeatable): {SCORERS}.",
)
@click.option("--run", metavar="NAME", help="SoFa: use the groups and statements of this run.")
@click.option("--statements", type=FILE, help="SoFa: statements, one per line, or a CSV file.")
@click.option("--identities", metavar="NAME-or-FILE", help="SoFa: the groups (default: sofa).")
@click.option("--apx", is_flag=True, help="APX: names before descriptors.")
@click.option("--names", metavar="NAME-or-FILE", help="APX: the names (default: globalbias).")
@click.option(
    "--descriptors", metavar="NAME-or-FILE", help="APX: the descriptors (default: globalbias)."
)
@click.option("--stereoset", type=FILE, help="Your copy of StereoSet (JSON).")
@click.option("--crows-pairs", type=FILE, help="Your copy of CrowS-Pairs (CSV).")
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
    type=FILE,
    multiple=True,
    help="A file of your copy of BBQ (JSON lines; repeatable, also for additional_metadata.csv).",
)
@click.option("--winogender", type=FILE, help="Your copy of Winogender (all_sentences.tsv).")
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
@base_url_option
@settings("bos")
@model_settings
@workers_settings
@correction_setting
@settings("seed")
@store_option
@json_option
def benchmark(
    store_url: str,
    models: tuple[str, ...],
    as_json: bool,
    dry_run: bool,
    output: Path | None,
    tables: Path | None,
    correction: str,
    seed: int | None,
    executor: str,
    processes: int | None,
    **given: Any,
) -> None:
    """Score models on bias benchmarks, and compare them.

    The store keeps every item's scores: the same command continues where it stopped, and with
    another model it scores only that one. If the store has measured crawls of the models, these are
    compared too.
    """
    given = fitting(given, models, "scorer")
    opening: Any = said(**{name: given.pop(name) for name in _OPENING})
    asked = said(**given)
    with kgbias.open(store_url, progress=True) as study:
        if dry_run:
            costs = study.benchmark_cost(models, **asked)
            return show.data(costs.records()) if as_json else _print_cost(costs)
        found = study.benchmark(
            models, output=output, tables=tables, correction=correction, opening=opening,
            executor=executor, **said(seed=seed, processes=processes), **asked,
        )  # fmt: skip
    if as_json:
        show.data(found.as_dict())
    else:
        _print(found)


def _print_cost(costs: "kgbias.Rows[BenchmarkCost]") -> None:
    show.table(
        ("model", "benchmark", ">items", ">texts", ">in the store", ">to score", ""),
        (
            (c.model, c.benchmark, f"{c.items:,}", f"{c.texts:,}", f"{c.kept:,}",
             f"{c.items - c.kept:,}", _time(c))
            for c in costs
        ),
    )  # fmt: skip


def _time(c: "BenchmarkCost") -> str:
    if c.items == c.kept:
        return ""
    return "time not known yet" if math.isnan(c.seconds) else f"about {format_duration(c.seconds)}"


def _print(found: "Board") -> None:
    found = found.with_short_names()
    for s in found.standings:
        show.say(f"{s.name} (n = {s.n} {s.unit})")
        form = s.figure.form
        show.table(
            ("", ">", "", ""),
            (
                (model, f"{e.value:{form}}", e.interval(form.lstrip("+")), _first(shares[0]))
                for model, e, shares in zip(s.models, s.values, s.probabilities, strict=True)
            ),
            indent=2,
        )
        if s.unable:
            who = ", ".join(s.unable)
            show.say(f"  by {s.figure.beside} not shown to be better than chance: {who}")
    told = [t for t in found.tests if t.differs]
    show.say(
        f"{len(told)} of {len(found.tests)} differences between models were shown, corrected "
        "together"
    )
    for t in told:
        show.say(f"  {t.verdict}")
    for line in (*found.remarks, *found.left_out):
        show.say(line, err=True)


def _first(share: float) -> str:
    return f"first in {share:.0%} of resamples"
