"""`kgbias runs`: what a store holds."""

import click

import kgbias
from kgbias.cli.options import json_option, print_json, printable, store_option
from kgbias.study.series import Series
from kgbias.text import duration


@click.command()
@store_option
@click.option(
    "--series",
    metavar="NAME",
    help="Instead, how much each figure moves between the crawls of this series.",
)
@json_option
def runs(store_url: str, series: str | None, as_json: bool) -> None:
    """List the runs in a store, oldest first."""
    with kgbias.open(store_url, progress=True) as study:
        if series is not None:
            return _print_series(study.series(series), as_json)
        found = study.runs().records()
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo(f"no runs in {store_url}: start one with kgbias crawl", err=True)
    for row in found:
        triples, statements = row["triples"], row["statements"]
        distinct = f" ({triples / statements:.0%} distinct)" if statements else ""
        click.echo(
            f"{printable(row['name'])}  {printable(row['model'])}  {row['status']}  "
            f"{len(row['groups'])} groups  {statements} statements{distinct}  "
            f"{row['generations']} generations  {row['refused']} refused  "
            f"{row['invalid']} invalid  {row['echoes']} echoes  {row['nonsense']} nonsense"
            + ("" if row["seconds"] is None else f"  asked in {duration(row['seconds'])}")
            + (f"  repeats {printable(row['series'])}" if row["series"] else "")
        )


def _print_series(series: Series, as_json: bool) -> None:
    found = series.figures()
    if as_json:
        names = [run.name for run in series]
        return print_json({"series": series.name, "runs": names, "figures": found.records()})
    click.echo(f"series {printable(series.name)}: {', '.join(printable(r.name) for r in series)}")
    if not found:
        click.echo("no figures yet: kgbias measure each of these runs", err=True)
        return
    width = max(len(printable(s.group)) + len(s.arm) for s in found) + 3
    click.echo(f"{'measure':<20}{'group':<{width}} crawls      mean        sd  in each crawl")
    for s in found:
        group = printable(s.group) + (f" [{s.arm}]" if s.arm else "")
        each = " ".join(f"{value:.3g}" for value in s.values)
        click.echo(f"{s.measure:<20}{group:<{width}}{s.n:>7}{s.mean:>10.3g}{s.sd:>10.3g}  {each}")
