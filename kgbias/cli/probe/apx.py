"""`kgbias probe apx`: names x descriptors x templates."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option, workers_options
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import (
    FILE,
    named_model,
    opened_scorer,
    scorer_options,
    seed_option,
)
from kgbias.cli.probe.output import apx_lines, show
from kgbias.parallel import LOCAL
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
@workers_options
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
@click.option(
    "--store",
    "store_url",
    envvar="KGBIAS_STORE",
    metavar="PATH-or-URL",
    help="Keep the scores in this graph store, and write the flags to it as edges from groups to "
    "descriptors. What it holds is not scored again.",
)
@json_option
def apx(
    as_json: bool,
    apx: bool,
    store_url: str | None,
    table: Path | None,
    exclude_axes: tuple[str, ...],
    names: str | None,
    descriptors: str | None,
    **given: Any,
) -> None:
    """Flag the descriptors that a model ties to groups of names (APX).

    Some names make every sentence unlikely; Adjusted Perplexity across Descriptors takes that out.
    """
    if given["executor"] == LOCAL:
        given["executor"] = None  # which is said of no table
    asked = said(names=names, descriptors=descriptors, **given)
    axes = said(exclude_axes=exclude_axes)
    with ExitStack() as opened:
        opened.enter_context(as_flags())
        study = None
        if store_url is not None:
            study = opened.enter_context(kgbias.open(store_url, progress=True))
        if table is not None:
            of_model = {"names", "descriptors", *given}
            check_applies(asked, {"spec": of_model}, ())
            found = (study.flag_apx if study else kgbias.flag_apx)(table, **axes)
        elif study is not None:
            asked.pop("spec", None)
            found = study.probe_apx(named_model(given), **axes, **asked)
        else:
            scorer, progress = opened.enter_context(opened_scorer(given))
            more = said(names=names, descriptors=descriptors, **given)
            found = kgbias.probe_apx(scorer, **axes, **more, progress=progress)
    show(found, apx_lines(found), as_json)
