"""`kgbias delete`: a run, and what only it holds."""

import sys

import click

import kgbias
from kgbias.cli.options import json_option, print_json, printable, store_option
from kgbias.errors import UsageError


@click.command()
@click.argument("run")
@store_option
@click.option("--yes", is_flag=True, help="Delete without asking.")
@json_option
def delete(run: str, store_url: str, yes: bool, as_json: bool) -> None:
    """Delete a run with what only it holds, from the answers of its model to the nodes that no
    other run shares.

    Says first what goes, and asks. `kgbias compact` gives the space back to the disk.
    """
    with kgbias.open(store_url, progress=True) as study:
        found = study.run(run)
        if not yes:
            for label, count in study.delete(found, dry_run=True).items():
                click.echo(f"{count:>14,}  {label}", err=True)
            what = f"run {printable(found.name)} of {printable(found.model.name)} ({found.status})"
            if not sys.stdin.isatty():
                raise UsageError(f"{what} would go with all of this: give --yes to delete it")
            click.confirm(f"Delete {what} with all of this?", abort=True, err=True)
        gone = study.delete(found)
    if as_json:
        print_json({"run": found.name, "deleted": gone})
        return
    nodes = sum(gone.values())
    click.echo(f"deleted run {printable(found.name)}: {nodes:,} nodes that only it held")
