"""`kgbias runs`: what a store holds."""

import click

import kgbias
from kgbias.cli.options import json_option, print_json, printable, store_option


@click.command()
@store_option
@json_option
def runs(store_url: str, as_json: bool) -> None:
    """List the runs in a store, oldest first."""
    with kgbias.open(store_url, progress=True) as study:
        found = study.runs().records()
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo(f"no runs in {store_url}: start one with kgbias crawl", err=True)
    for row in found:
        click.echo(
            f"{printable(row['name'])}  {printable(row['model'])}  {row['status']}  "
            f"{len(row['groups'])} groups  {row['triples']} triples  "
            f"{row['generations']} generations  {row['refused']} refused  "
            f"{row['invalid']} invalid  {row['echoes']} echoes"
        )
