"""`kgbias manners`, which is imported when it is called."""

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import run_name_argument, store_option


@click.command(cls=Command, examples=("kgbias manners demo",))
@run_name_argument
@store_option
def manners(run_name: str | None, store_url: str) -> None:
    """Count the polite statements of a run."""
    with kgbias.open(store_url) as study:
        triples = study.run(run_name).triples()
    polite = sum("please" in triple.sentence for triple in triples)
    show.say(f"{polite} of {len(triples)} statements are polite")
