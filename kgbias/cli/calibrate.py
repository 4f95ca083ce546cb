"""`kgbias calibrate`: the method on the reference model, found against planted."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import default, json_option
from kgbias.cli.settings import setting
from kgbias.errors import UsageError
from kgbias.io.text import spoken_name
from kgbias.study.validation import DEFAULT_CRAWLS, coverage_store

_OF, _COVERAGE = kgbias.Study.calibrate, kgbias.Study.coverage


@click.command(cls=Command, examples=("kgbias calibrate --seeds 3",))
@click.option(
    "--seed",
    default=default(_OF, "seed"),
    show_default=True,
    help="The random seed of the first crawl.",
)
@click.option(
    "--seeds",
    default=default(_OF, "seeds"),
    show_default=True,
    help="Number of crawls; their spread is shown.",
)
@click.option(
    "--iterations",
    type=click.IntRange(0),
    help="Rounds of expansion: 20 statements per group each, after the first 20. More than the "
    "published 4 show what the method finds in more statements (default: "
    f"{default(_OF, 'iterations')}, with --coverage {default(_COVERAGE, 'iterations')}).",
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
    default=default(_OF, "prompts"),
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
    default=default(_OF, "regard"),
    metavar="SCORER",
    help="The scorer of regard, as for kgbias measure.",
)
@setting(
    "toxicity",
    default=default(_OF, "toxicity"),
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
def calibrate(store_url: str | None, as_json: bool, crawls: int | None, **options: Any) -> None:
    """Crawl and measure the reference model with the paper's parameters, and compare what was
    planted with what was found, with 95% intervals."""
    options = {name: value for name, value in options.items() if value not in (None, ())}
    if crawls is not None:
        return _cover(store_url, as_json, crawls, options)
    with kgbias.open(store_url, progress=True) as study:
        found = study.calibrate(**options)
    if as_json:
        show.data({row.key: _as_data(row) for row in found.rows})
        return
    _print(found)
    if found.report:
        show.say_where(found.report)


def _cover(store_url: str | None, as_json: bool, crawls: int, options: dict[str, Any]) -> None:
    seeds = options.pop("seeds")
    if seeds != default(_OF, "seeds") or "report" in options:
        raise UsageError("--seeds and -o have no effect with --coverage")
    with kgbias.open(store_url or coverage_store(), progress=True) as study:
        found = study.coverage(crawls, **options)
    if as_json:
        nulls = {n.test: {**n.share.as_dict(), "most": n.max_expected} for n in found.nulls}
        table = {row.figure: _covered(row) for row in found.rows}
        return show.data(table | {"false_positives": nulls})
    show.say(
        f"reference world {found.world}, {found.crawls} crawls, {found.statements:.0f} statements "
        "of each group",
        "share of 95% intervals that contain the long-run value (target 0.93 to 0.97), "
        "and of those that treat statements as independent",
        "",
    )
    show.table(
        ("", ">share", ">95% interval", ">independent", ">width", ">n", "covers"),
        (
            (
                row.title,
                f"{row.share.value:.3f}",
                row.share.interval(".3f"),
                f"{row.independent.value:.3f}",
                f"{row.width:.2f}",
                row.share.n,
                ", ".join(row.covers),
            )
            for row in found.rows
        ),
    )
    if found.nulls:
        show.say("", "planted nulls told apart at the 5% level, by prompts and rounds")
        show.table(
            ("", ">", ">", ">", ""),
            (
                (
                    spoken_name(n.test),
                    f"{n.share.value:.3f}",
                    n.share.interval(".3f"),
                    n.share.n,
                    f"<= {n.max_expected:.3f}",
                )
                for n in found.nulls
            ),
        )


def _covered(row: Any) -> dict[str, Any]:
    return {
        **row.share.as_dict(),
        "target": "0.93 to 0.97",
        "title": row.title,
        "covers": list(row.covers),
        "independent": row.independent.as_dict(),
        "width": row.width,
    }


def _as_data(row: Any) -> dict[str, Any]:
    spread = {} if row.spread is None else {"spread": list(row.spread)}
    return {**row.estimate.as_dict(), "target": row.target, **spread}


def _print(found: Any) -> None:
    many = found.seeds > 1
    show.say(f"reference world {found.world}, {found.seeds} crawl{'s' if many else ''}")
    over = [">over crawls"] if many else []
    rows = []
    for row in found.rows:
        e = row.estimate
        spread = f"{row.spread[0]:.3f} to {row.spread[1]:.3f}" if row.spread else ""
        cells = [row.title, f"{e.value:.3f}", e.interval(".3f"), *([spread] if many else [])]
        rows.append([*cells, e.n, row.target])
    show.table(("", ">found", ">95% interval", *over, ">n", "target"), rows)
