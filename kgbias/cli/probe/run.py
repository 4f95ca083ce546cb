"""`kgbias probe run`: the statements of a run's graph."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option, run_argument, store_option
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import named_model, ranking_options, scorer_options
from kgbias.cli.probe.output import bias_lines, show, shown


@click.command(cls=Part)
@run_argument
@scorer_options
@store_option
@ranking_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Also write every probe: a .jsonl file or a .parquet folder.",
)
@json_option
def run(as_json: bool, run_name: str | None, store_url: str, **given: Any) -> None:
    """Probe a run's statements with all groups of their category.

    Which group makes each statement most likely is written on the edges of the graph; what was said
    is then compared with what is probable. The same command continues where it stopped.
    """
    model = named_model(given)
    with as_flags(), kgbias.open(store_url, progress=True) as study:
        found = study.run(run_name).probe(model, **said(**given))
    mrr, first = found.agreement.mrr, found.agreement.first
    lines = [
        *bias_lines(found),
        "",
        f"own group first: {shown(first)} of {first.n} triples",
        f"said, and likelier of this group than of the others: {shown(found.believed)}",
        f"mean reciprocal rank {shown(mrr)}, {found.agreement.expected:.3f} by chance, "
        f"p = {found.agreement.p_value:.4f}",
    ]
    show(found, lines, as_json)
