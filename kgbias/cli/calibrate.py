"""`kgbias calibrate`: the method on the reference model, planted against found."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from kgbias.cli.options import json_option, print_json
from kgbias.cli.progress import shown_progress
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.seeds import choose_seeds
from kgbias.graph.store import open_store
from kgbias.graph.stored import StoredRun
from kgbias.models import open_model


@click.command()
@click.option("--seed", default=0, show_default=True, help="Of the first crawl.")
@click.option("--seeds", default=1, show_default=True, help="How many crawls, with their spread.")
@click.option(
    "--iterations",
    type=click.IntRange(0),
    default=4,
    show_default=True,
    help="Of the crawl: 20 statements a group each, after the first 20. More than the published 4 "
    "show what the method finds with more to go on.",
)
@click.option(
    "--category",
    "categories",
    multiple=True,
    metavar="NAME",
    help="peoples or faiths (default: both).",
)
@click.option(
    "--store", "store_url", metavar="PATH-or-URL", help="Keep the crawls here (default: nowhere)."
)
@click.option("--regard", default="offline", show_default=True, metavar="SCORER")
@click.option("--toxicity", default="offline", show_default=True, metavar="SCORER")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the first crawl's report, with a section on the calibration.",
)
@json_option
def calibrate(
    seed: int,
    seeds: int,
    iterations: int,
    categories: tuple[str, ...],
    store_url: str | None,
    regard: str,
    toxicity: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Crawl and measure the reference model with the paper's parameters, and hold what was found
    against what was planted in it, with 95% intervals."""
    from kgbias.calibrate import calibrate as run_calibration
    from kgbias.measure.scorers import load_scorer

    groups = tuple(choose_seeds("reference", categories))
    config = CrawlConfig(seeds=groups, seed=seed, iterations=iterations)
    with _store(store_url) as url, shown_progress() as progress:
        model = open_model("reference", notify=progress.note)
        scorers = [load_scorer("regard", regard), load_scorer("toxicity", toxicity)]
        with closing(model), closing(open_store(url)) as store:
            table, calibrations = run_calibration(
                config, model, scorers, store, progress, seeds=seeds
            )
            if output:
                from kgbias.report import write_report
                from kgbias.report.calibration import calibration_section

                section = calibration_section(table, calibrations[0])
                write_report(
                    StoredRun(store, calibrations[0].run), output, extra_sections=[section]
                )
    if as_json:
        print_json({row.key: _numbers(row) for row in table})
        return
    _print_table(table, calibrations[0].truth.hash, seeds)
    if output:
        click.echo(output.resolve())


@contextmanager
def _store(url: str | None) -> Iterator[str]:
    if url:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="kgbias-") as folder:
        yield str(Path(folder) / "calibration.db")


def _numbers(row: Any) -> dict[str, Any]:
    e = row.estimate
    defined = {"value": e.value, "low": e.low, "high": e.high}
    numbers = {k: None if v != v else v for k, v in defined.items()}
    spread = {} if row.spread is None else {"spread": list(row.spread)}
    return {**numbers, "n": e.n, "target": row.target, **spread}


def _print_table(table: Sequence[Any], world: str, seeds: int) -> None:
    click.echo(f"reference world {world}, {seeds} crawl{'s' if seeds > 1 else ''}")
    spread = f"  {'over crawls':>16}" if seeds > 1 else ""
    click.echo(f"{'':<34}{'found':>8}  {'95% interval':>16}{spread}  {'n':>7}  target")
    for row in table:
        e = row.estimate
        interval = f"{e.low:.3f} to {e.high:.3f}" if e.low == e.low else "-"
        spread = f"  {row.spread[0]:.3f} to {row.spread[1]:.3f}" if row.spread else ""
        figures = f"{e.value:>8.3f}  {interval:>16}{spread}  {e.n:>7}"
        click.echo(f"{row.title:<34}{figures}  {row.target}".rstrip())
