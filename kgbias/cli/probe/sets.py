"""`kgbias probe sets`: groups and statements from files."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option, run_argument, store_option, workers_options
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import FILE, named_models, ranking_options, several_scorers_options
from kgbias.cli.probe.output import bias_lines, show_all
from kgbias.errors import UsageError
from kgbias.graph.sofa import ProbeSet


@click.command(cls=Part)
@run_argument
@click.option(
    "--identities",
    metavar="NAME-or-FILE",
    help="Groups to probe instead of the run's: sofa (407) or a file.",
)
@click.option("--statements", type=FILE, help="Statements from a file, besides those of a RUN.")
@several_scorers_options
@store_option
@ranking_options
@workers_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write every probe: a .jsonl file or a .parquet folder; of several models, one each.",
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

    With only one of the two, the other is taken from a RUN (by default the newest). Without a RUN
    the result is kept where --store is named. The same command continues where it stopped, from
    the store or from -o. Several models are ranked by SoFa at the end.
    """
    if not identities and not statements:
        raise UsageError(
            "probe sets needs --identities or --statements; a run of this name is probed with "
            "probe --run sets"
        )
    models = named_models(given)
    named = said(identities=identities, statements=statements, categories=category, ending=ending)
    of_run = run_name or not (identities and statements)
    with as_flags(), kgbias.open(store_url if of_run or _kept() else None, progress=True) as study:
        asked: dict[str, Any] = {"name": statements.stem} if statements else {}
        if of_run:
            asked["run"] = study.run(run_name)
            named["run"] = asked["run"].stored
            asked.setdefault("name", asked["run"].name)
        gathered = kgbias.gather_sets(**named)
        found = study.probe_sets(models, gathered, **asked, **said(by=by, **given))
        compared = None
        if len(found) > 1 and not given["as_published"]:
            compared = study.sofa(ProbeSet.of("", gathered).id)
    show_all(found, bias_lines, compared, as_json)


def _kept() -> bool:
    """Whether --store was given, and not left at its default."""
    source = click.get_current_context().get_parameter_source("store_url")
    return source is not ParameterSource.DEFAULT
