"""`kgbias profiles agreement`: does a model write what it finds probable, and what it says?"""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option, print_json, printable, run_argument, store_option

MOST = 3  # groups of a word that are listed


@click.command()
@run_argument
@store_option
@click.option(
    "--apx",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A table of APX, as kgbias probe apx -o writes it.",
)
@click.option("--crawl", metavar="RUN", help="A crawl of the same groups, such as Arab women.")
@click.option(
    "--attribute", multiple=True, metavar="NAME", help="Only this attribute (repeatable)."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for the picture (SVG, PDF, PNG) and the LaTeX table of each.",
)
@click.option("--seed", type=int, help="The random seed (default: 0).")
@json_option
def agreement(as_json: bool, run_name: str | None, store_url: str, **given: Any) -> None:
    """Whether the words that profiles tie to groups are those that a model finds probable (APX), or
    those that it says of the groups in a crawl (Table 7 of Siddique et al. 2024).
    """
    with as_flags(), kgbias.open(store_url, progress=True) as study:
        found = study.run(run_name).profile_agreement(**said(**given))
    if as_json:
        print_json([a.as_dict() for a in found])
        return
    for a in found:
        click.echo(
            f"{printable(a.source)}: {len(a.rows)} words of {a.groups} groups; the group that a "
            f"word is most typical of ranks {a.mrr.value:.3f} [{a.mrr.interval('.3f')}] (mean "
            f"reciprocal), by chance {a.expected:.3f}, p = {a.p_value:.3f}"
        )
        for row in a.rows:
            written, other = ", ".join(row.written[:MOST]), ", ".join(row.other[:MOST])
            click.echo(printable(f"  {row.attribute}, {row.word}: {written} | {other}"))
