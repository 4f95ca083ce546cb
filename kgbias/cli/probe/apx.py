"""`kgbias probe apx`: names x descriptors x templates."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import FILE, opened_scorer, scorer_options, seed_option
from kgbias.cli.probe.output import apx_lines, show
from kgbias.parameters import check_applies


@click.command(cls=Part)
@click.option("--apx", is_flag=True, hidden=True)
@click.option(
    "--names", metavar="NAME-or-FILE", help="Names and their groups (default: globalbias)."
)
@click.option("--descriptors", metavar="NAME-or-FILE", help="Descriptors (default: globalbias).")
@click.option(
    "--from",
    "--apx-from",
    "table",
    type=FILE,
    help="Probe nothing: take the flags from a table of APX (CSV).",
)
@click.option(
    "--exclude-axis",
    "exclude_axes",
    multiple=True,
    metavar="AXIS",
    help="Flag no descriptor of this axis.",
)
@scorer_options
@click.option("--as-published", is_flag=True, help="Round as the paper's code does.")
@seed_option
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="Write the table of APX (.csv), for --from. The same command continues where it stopped.",
)
@click.option(
    "--perplexities",
    type=click.Path(path_type=Path),
    help="Write the perplexity of every sentence: a .jsonl file or a .parquet folder (default: "
    "beside the table, TABLE.perplexities.jsonl).",
)
@json_option
def apx(
    as_json: bool,
    apx: bool,
    table: Path | None,
    exclude_axes: tuple[str, ...],
    names: str | None,
    descriptors: str | None,
    **given: Any,
) -> None:
    """Flag the descriptors that a model ties to groups of names (APX).

    Some names make every sentence unlikely; Adjusted Perplexity across Descriptors takes that out.
    """
    if table is not None:
        of_model = {"names", "descriptors", *given}
        with as_flags():
            check_applies(
                said(names=names, descriptors=descriptors, **given), {"spec": of_model}, ()
            )
        found = kgbias.flag_apx(table, exclude_axes=exclude_axes)
    else:
        more = said(names=names, descriptors=descriptors, exclude_axes=exclude_axes)
        with opened_scorer(given) as (scorer, progress):
            found = kgbias.probe_apx(scorer, **more, **said(**given), progress=progress)
    show(found, apx_lines(found), as_json)
