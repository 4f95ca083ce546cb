"""`kgbias probe sets`: groups and statements from files."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from kgbias.cli.flags import said
from kgbias.cli.options import json_option, run_argument
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import (
    FILE,
    opened_scorer,
    ranking_options,
    scorer_options,
    store_option,
)
from kgbias.cli.probe.output import bias_lines, show
from kgbias.errors import UsageError
from kgbias.graph.store import open_store
from kgbias.graph.stored import StoredRun


@click.command(cls=Part)
@run_argument
@click.option(
    "--identities",
    metavar="NAME-or-FILE",
    help="Groups to probe in place of the run's: sofa (407) or a file.",
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
    categories: tuple[str, ...],
    ending: str | None,
    **given: Any,
) -> None:
    """Probe groups and statements from files, large sets too.

    With groups or statements alone, the others are those of a RUN (the newest where none is named).
    Nothing is written to the graph. With -o the same command continues where it stopped.
    """
    from kgbias.probe import gather_sets, probe_sets

    if not identities and not statements:
        raise UsageError(
            "probe sets needs --identities or --statements; a run of this name is probed with "
            "probe --run sets"
        )
    with ExitStack() as opened:
        probed = None
        if run_name or not (identities and statements):
            store = opened.enter_context(open_store(store_url, create=False))
            probed = StoredRun.find(store, run_name)
        gathered = gather_sets(
            run=probed,
            **said(
                identities=identities, statements=statements, categories=categories, ending=ending
            ),
        )
        scorer, progress = opened.enter_context(opened_scorer(given))
        found = probe_sets(scorer, gathered, **said(**given), progress=progress)
    show(found, bias_lines(found), as_json)
