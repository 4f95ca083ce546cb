"""`kgbias sofa`: probing data sets as SoFa's."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.options import (
    default,
    json_option,
    model_options,
    print_json,
    printable,
    selection_options,
    store_option,
)
from kgbias.errors import UsageError

_OF = kgbias.build_sofa


@click.group()
def sofa() -> None:
    """Make probing data sets as SoFa was made (Marchiori Manerba et al. 2023)."""


@sofa.command()
@click.argument("source", required=False, type=click.Path(path_type=Path))
@click.option("--run", "run_name", metavar="NAME", help="Instead of a file: a run's statements.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write to.",
)
@click.option(
    "--identities",
    default=default(_OF, "identities"),
    show_default=True,
    metavar="NAME-or-FILE",
    help="The groups: sofa (407), a file, or run for those of the run.",
)
@click.option("--column", metavar="NAME", help="The column of the stereotypes in a table.")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="SPEC",
    help="A model whose perplexity cuts off the least likely statements (repeatable: their mean).",
)
@click.option(
    "--acceptability",
    default=default(_OF, "acceptability"),
    show_default=True,
    metavar="SCORER",
    help="What judges whether a statement is good English, as for kgbias measure, or none.",
)
@click.option(
    "--cut",
    default=default(_OF, "cut"),
    show_default=True,
    metavar="SHARE",
    help="The share of the least likely statements that is cut off.",
)
@model_options
@store_option
@selection_options
@json_option
def build(
    source: Path | None,
    run_name: str | None,
    store_url: str,
    identities: str,
    as_json: bool,
    arm: str | None,
    without_echoes: bool,
    **options: Any,
) -> None:
    """Build probes from SOURCE: a copy of SBIC (CSV), a table of statements, or a text file.

    Stereotypes lose their subject, begin with a verb in the plural, and are filtered; each is then
    put after every identity of its category. Writes statements.csv, probes.csv, a data statement
    and a manifest."""
    if (source is None) == (run_name is None):
        raise UsageError("sofa build takes a file or --run NAME")
    asked = {k: v for k, v in options.items() if v is not None}
    asked["identities"] = None if identities == "run" else identities
    if run_name is None:
        if arm is not None or without_echoes:
            raise UsageError("--arm and --without-echoes are of --run")
        built = kgbias.build_sofa(source, progress=True, **asked)  # type: ignore[arg-type]
    else:
        with kgbias.open(store_url, progress=True) as study:
            chosen: Any = {"arm": arm, "without_echoes": without_echoes}
            built = kgbias.build_sofa(study.run(run_name), progress=True, selection=chosen, **asked)
    if as_json:
        print_json(built.as_dict())
        return
    for taken in built.filters:
        why = ", ".join(f"{n} {reason}" for reason, n in taken.reasons.items())
        click.echo(
            f"{taken.name:<14}{taken.came:>8} came, {taken.kept:>8} stayed"
            + (f" ({printable(why)})" if why else "")
        )
    data = built.as_dict()
    click.echo(
        f"{data['identities']} identities, {data['statements']} statements, "
        f"{data['probes']} probes: {options['output']}"
    )
