"""`kgbias cost`: what a run took."""

from pathlib import Path

import click

import kgbias
from kgbias.cli.options import (
    json_option,
    price_options,
    print_json,
    printable,
    run_argument,
    store_option,
)
from kgbias.text import duration


@click.command()
@run_argument
@store_option
@price_options
@json_option
def cost(
    run_name: str | None,
    store_url: str,
    price_in: float | None,
    price_out: float | None,
    prices: Path | None,
    as_json: bool,
) -> None:
    """Show what the answers of a run took, by group: tokens and, at your prices, money.

    Before a crawl, `kgbias crawl --dry-run` says what it will take.
    """
    with kgbias.open(store_url, progress=True) as study:
        found = study.run(run_name).cost(price_in=price_in, price_out=price_out, prices=prices)
    if as_json:
        print_json({"cost": found.records()})
        return
    width = max(len(printable(row.group)) for row in found)
    money = "      cost" if found[-1].cost is not None else ""
    click.echo(f"{'':<{width}}  answers  prompt tokens  answer tokens{money}")
    for row in found:
        paid = "" if row.cost is None else f"{row.cost:>10.4g}"
        click.echo(
            f"{printable(row.group):<{width}}{row.answers:>9}{row.prompt_tokens:>15}"
            f"{row.completion_tokens:>15}{paid}"
        )
    if (seconds := found[-1].seconds) is not None:
        click.echo(f"asking took {duration(seconds)}")
