"""`kgbias probe sets`: groups and statements from files."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option, run_argument, store_option
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import FILE, opened_scorer, ranking_options, scorer_options
from kgbias.cli.probe.output import bias_lines, show
from kgbias.errors import UsageError
from kgbias.parameters import check_applies


@click.command(cls=Part)
@run_argument
@click.option(
    "--identities",
    metavar="NAME-or-FILE",
    help="Groups to probe instead of the run's: sofa (407) or a file.",
)
@click.option("--statements", type=FILE, help="Statements from a file, besides those of a RUN.")
@scorer_options
@store_option
@ranking_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write every probe: a .jsonl file or a .parquet folder.",
)
@json_option
def sets(
    as_json: bool,
    run_name: str | None,
    store_url: str,
    identities: str | None,
    statements: Path | None,
    category: tuple[str, ...],
    ending: str | None,
    by: str | None,
    **given: Any,
) -> None:
    """Probe groups and statements from files, in large sets too.

    With only one of the two, the other is taken from a RUN (by default the newest). Nothing is
    written to the graph. With -o the same command continues where it stopped.
    """
    if not identities and not statements:
        raise UsageError(
            "probe sets needs --identities or --statements; a run of this name is probed with "
            "probe --run sets"
        )
    named = said(identities=identities, statements=statements, categories=category, ending=ending)
    with ExitStack() as opened, as_flags():
        of_run = run_name or not (identities and statements)
        check_applies(_stores(), {"run_name": ["store_url"]}, ["run_name"] if of_run else [])
        if of_run:
            study = opened.enter_context(kgbias.open(store_url))
            named["run"] = study.run(run_name).stored
        gathered = kgbias.gather_sets(**named)
        scorer, progress = opened.enter_context(opened_scorer(given))
        asked = said(measure=by, **given)
        found = kgbias.probe_sets(scorer, gathered, **asked, progress=progress)
    show(found, bias_lines(found), as_json)


def _stores() -> list[str]:
    """The store's parameter, where --store was given and not left at its default."""
    source = click.get_current_context().get_parameter_source("store_url")
    return ["store_url"] if source is ParameterSource.COMMANDLINE else []
