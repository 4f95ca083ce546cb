"""`kgbias push`: copy runs between stores."""

import click

import kgbias
from kgbias.cli.options import printable, with_password


@click.command()
@click.option(
    "--from",
    "source",
    required=True,
    metavar="PATH-or-URL",
    callback=with_password,
    help="Copy from this store.",
)
@click.option(
    "--to",
    "target",
    required=True,
    metavar="PATH-or-URL",
    callback=with_password,
    help="Copy to this store.",
)
@click.option(
    "--run", multiple=True, metavar="NAME", help="Only this run (repeatable; default: all)."
)
def push(source: str, target: str, run: tuple[str, ...]) -> None:
    """Copy runs from one store to another, with their answers, scores and tests.

    What is there already stays as it is: the same command continues where it stopped.
    """
    with kgbias.open(source, progress=True) as study:
        written = study.push(target, run=run)
    for name, new in written.items():
        click.echo(f"run {printable(name)}: {new} generations were new", err=True)
