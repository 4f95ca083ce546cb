"""`kgbias models`: what each kind of model allows."""

import click

import kgbias
from kgbias.cli.options import json_option, print_json

_COLUMNS = ("crawl", "structured", "seed", "logprobs", "probe", "association", "batch")


@click.command()
@json_option
def models(as_json: bool) -> None:
    """List the kinds of models by their specs, and what each allows.

    crawl: writing text, for crawls, profiles, judges and questions. structured: answers held to a
    JSON schema. seed: a random seed decides an answer. logprobs: log-probabilities of texts, for
    benchmarks. probe: by these, or by forced choice alone. association: vectors and words, for
    association tests. batch: requests left with the provider, for less.
    """
    found = kgbias.model_kinds()
    if as_json:
        print_json(found.records())
        return
    rows = [("spec", *_COLUMNS, "extra", "key")]
    for kind in found:
        can = [getattr(kind, name) for name in _COLUMNS]
        extra = kind.extra if kind.installed else f"{kind.extra} (not installed)"
        rows += [(form, *can, extra, " or ".join(kind.keys)) for form in kind.specs]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
    click.echo("depends: on the model, or on the server that answers")
    click.echo("choice: by forced choice, kgbias probe choice")
    missing = sorted({kind.extra for kind in found if not kind.installed})
    if missing:
        click.echo(f"not installed: pip install 'kgbias[{','.join(missing)}]'")
