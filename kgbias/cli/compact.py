"""`kgbias compact`: a store as small as its content."""

from dataclasses import asdict

import click

import kgbias
from kgbias.cli.options import json_option, print_json, store_option


@click.command()
@store_option
@json_option
def compact(store_url: str, as_json: bool) -> None:
    """Make a store's file as small as its content, for example after `kgbias delete`.

    Needs as much free disk as the store is large. A Neo4j server keeps house itself.
    """
    with kgbias.open(store_url, progress=True) as study:
        done = study.compact()
    if as_json:
        print_json(asdict(done))
        return
    before, after = (f"{size / 2**20:,.1f} MiB" for size in (done.before, done.after))
    click.echo(f"{before} before, {after} now")
