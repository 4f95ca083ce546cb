"""`kgbias probe surprisal`: each token of a text."""

from typing import Any

import click

import kgbias
from kgbias.cli.options import json_option
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import opened_scorer, scorer_options
from kgbias.cli.probe.output import show
from kgbias.errors import UsageError


@click.command(cls=Part)
@click.argument("texts", nargs=-1, metavar="TEXT...")
@click.option("--surprisal", "more", multiple=True, hidden=True)
@scorer_options
@json_option
def surprisal(as_json: bool, texts: tuple[str, ...], more: tuple[str, ...], **given: Any) -> None:
    """Print each token of the texts with its surprisal, -log2 p, in bits."""
    if not (texts or more):
        raise UsageError("name a text")
    with opened_scorer(given) as (scorer, _):
        found = kgbias.surprisals(scorer, (*texts, *more))
    lines = [
        "  ".join(f"{token.strip() or repr(token)} {bits:.2f}" for token, bits in tokens)
        for _, tokens in found.texts
    ]
    show(found, lines, as_json)
