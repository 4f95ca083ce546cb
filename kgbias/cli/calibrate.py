"""`kgbias calibrate`: the method on the reference model, found against planted."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import json_option, library_default
from kgbias.cli.settings import setting
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.io.columns import Column
from kgbias.io.text import spoken_name
from kgbias.io.wording import pluralise
from kgbias.study.validation import DEFAULT_CRAWLS, coverage_store_path

if TYPE_CHECKING:
    from kgbias.study.validation import CoverageResult

_STUDY_METHOD, _COVERAGE_METHOD = kgbias.Study.calibrate, kgbias.Study.coverage


@click.command(
    cls=Command,
    section="Check",
    short_help="Try the method on a model whose beliefs are known.",
    examples=("kgbias calibrate --seeds 3",),
)
@click.option(
    "--seed",
    default=library_default(_STUDY_METHOD, "seed"),
    show_default=True,
    help="The random seed of the first crawl.",
)
@click.option(
    "--seeds",
    default=library_default(_STUDY_METHOD, "seeds"),
    show_default=True,
    help="Number of crawls; their spread is shown.",
)
@click.option(
    "--iterations",
    type=click.IntRange(0),
    help="Rounds of expansion: 20 statements per group each, after the first 20. More than the "
    "published 4 show what the method finds in more statements (default: "
    f"{library_default(_STUDY_METHOD, 'iterations')}, with --coverage "
    f"{library_default(_COVERAGE_METHOD, 'iterations')}).",
)
@click.option(
    "--coverage",
    "crawls",
    is_flag=False,
    flag_value=DEFAULT_CRAWLS,
    type=click.IntRange(2),
    metavar="[N]",
    help="Instead, measure how often 95% intervals cover the truth, over N crawls (default N: "
    f"{DEFAULT_CRAWLS}). The crawls are kept, in the cache folder unless --store is "
    "given, and the same command continues where it stopped.",
)
@click.option(
    "--prompts",
    default=library_default(_STUDY_METHOD, "prompts"),
    show_default=True,
    metavar="NAME-or-FOLDER",
    help="The prompt pack of the crawls.",
)
@click.option(
    "--category",
    multiple=True,
    metavar="NAME",
    help="peoples or faiths (default: both, with --coverage faiths).",
)
@click.option(
    "--store",
    "store_url",
    metavar="PATH-or-URL",
    help="Keep the crawls in this store (default: not kept, except with --coverage).",
)
@setting(
    "regard",
    default=library_default(_STUDY_METHOD, "regard"),
    metavar="SCORER",
    help="The scorer of regard, as for kgbias measure.",
)
@setting(
    "toxicity",
    default=library_default(_STUDY_METHOD, "toxicity"),
    metavar="SCORER",
    help="The scorer of toxicity, as for kgbias measure.",
)
@click.option(
    "-o",
    "--output",
    "report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the first crawl's report, with a section on the calibration.",
)
@json_option
def calibrate(store_url: str | None, crawls: int | None, **options: Any) -> Output:
    """Crawl and measure the reference model with the paper's parameters, and compare what was
    planted with what was found, with 95% intervals."""
    options = {name: value for name, value in options.items() if value not in (None, ())}
    if crawls is not None:
        return _measure_coverage(store_url, crawls, options)
    with kgbias.open(store_url, progress=True) as study:
        calibration = study.calibrate(**options)
    data = {row.key: _estimate_record(row) for row in calibration.rows}
    return Output(data, lambda: _print_calibration(calibration))


def _measure_coverage(store_url: str | None, crawls: int, options: dict[str, Any]) -> Output:
    seeds = options.pop("seeds")
    if seeds != library_default(_STUDY_METHOD, "seeds") or "report" in options:
        raise UsageError("--seeds and -o have no effect with --coverage")
    with kgbias.open(store_url or coverage_store_path(), progress=True) as study:
        coverage = study.coverage(crawls, **options)
    nulls = {
        null_test.test: {**null_test.share.as_dict(), "most": null_test.max_expected}
        for null_test in coverage.nulls
    }
    table = {row.figure: _coverage_record(row) for row in coverage.rows}
    return Output(table | {"false_positives": nulls}, lambda: _print_coverage(coverage))


def _print_coverage(coverage: "CoverageResult") -> None:
    show.say(
        f"reference world {coverage.world}, "
        f"{pluralise(coverage.crawls, 'crawl')}, {coverage.statements:.0f} "
        f"statements "
        "of each group",
        "share of 95% intervals that contain the long-run value (target 0.93 to 0.97), "
        "and of those that treat statements as independent",
        "",
    )
    columns = (
        Column(""),
        Column("share", ".3f", interval=True),
        Column("independent", ".3f"),
        Column("width", ".2f"),
        Column("n", "d"),
        Column("covers"),
    )
    show.print_table(
        columns,
        (
            (row.title, row.share, row.independent, row.width, row.share.n, row.covers)
            for row in coverage.rows
        ),
    )
    if coverage.nulls:
        show.say("", "planted nulls told apart at the 5% level, by prompts and rounds")
        show.print_table(
            ("", Column("", ".3f", interval=True), Column("", "d"), ""),
            (
                (
                    spoken_name(null_test.test),
                    null_test.share,
                    null_test.share.n,
                    f"<= {null_test.max_expected:.3f}",
                )
                for null_test in coverage.nulls
            ),
        )


def _coverage_record(row: Any) -> dict[str, Any]:
    return {
        **row.share.as_dict(),
        "target": "0.93 to 0.97",
        "title": row.title,
        "covers": list(row.covers),
        "independent": row.independent.as_dict(),
        "width": row.width,
    }


def _estimate_record(row: Any) -> dict[str, Any]:
    spread = {} if row.spread is None else {"spread": list(row.spread)}
    return {**row.estimate.as_dict(), "target": row.target, **spread}


def _print_calibration(calibration: Any) -> None:
    has_several = calibration.seeds > 1
    show.say(
        f"reference world {calibration.world}, {calibration.seeds} "
        f"crawl{'s' if has_several else ''}"
    )
    columns = [Column(""), Column("found", ".3f", interval=True)]
    if has_several:
        columns.append(Column("over crawls", ".3f", joiner=" to "))
    columns += [Column("n", "d"), Column("target")]
    rows = []
    for row in calibration.rows:
        spread = [row.spread] if has_several else []
        rows.append([row.title, row.estimate, *spread, row.estimate.n, row.target])
    show.print_table(columns, rows)
    if calibration.report:
        show.say_where(calibration.report)
