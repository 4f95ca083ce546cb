"""`kgbias profiles page`: the profiles of two names side by side."""

from pathlib import Path

import click

import kgbias
from kgbias.cli.flags import said
from kgbias.cli.options import run_argument, store_option


@click.command()
@run_argument
@store_option
@click.option("--name", multiple=True, metavar="NAME", help="A name to begin with (up to two).")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("profiles.html"),
    show_default=True,
    help="The page.",
)
def page(run_name: str | None, store_url: str, name: tuple[str, ...], output: Path) -> None:
    """Write the profiles of a run as a page on which those of two names stand side by side.

    The page works offline. What stands on it was invented by a model.
    """
    with kgbias.open(store_url, progress=True) as study:
        path = study.run(run_name).profile_page(output, **said(name=name))
    click.echo(str(path))
