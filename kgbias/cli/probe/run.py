"""`kgbias probe run`: the statements of a run's graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option, run_argument, store_option, workers_options
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import named_models, ranking_options, several_scorers_options
from kgbias.cli.probe.output import bias_lines, show_all, shown

if TYPE_CHECKING:
    from kgbias.probe import RunProbes


@click.command(cls=Part)
@run_argument
@several_scorers_options
@store_option
@ranking_options
@workers_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Also write every probe: a .jsonl file or a .parquet folder; of several models, one each.",
)
@json_option
def run(as_json: bool, run_name: str | None, store_url: str, **given: Any) -> None:
    """Probe a run's statements with all groups of their category.

    Which group makes each statement most likely is written on the edges of the graph; what was said
    is then compared with what is probable. The same command continues where it stopped. Several
    models are ranked by SoFa at the end; kgbias sofa results shows more.
    """
    models = named_models(given)
    with as_flags(), kgbias.open(store_url, progress=True) as study:
        probed = study.run(run_name)
        found = probed.probe_models(models, **said(**given))
        compared = probed.sofa() if len(found) > 1 and not given["as_published"] else None
    show_all(found, _lines, compared, as_json)


def _lines(found: "RunProbes") -> list[str]:
    mrr, first = found.agreement.mrr, found.agreement.first
    return [
        *bias_lines(found),
        "",
        f"own group first: {shown(first)} of {first.n} triples",
        f"mean reciprocal rank {shown(mrr)}, {found.agreement.expected:.3f} by chance, "
        f"p = {found.agreement.p_value:.4f}",
    ]
