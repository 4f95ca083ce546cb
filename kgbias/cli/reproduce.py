"""`kgbias reproduce`: a published run, made again."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.options import default, json_option, model_options, print_json, printable
from kgbias.study.reproducing import Difference, Reproduction

_SHOWN = 20


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Only hold the files against their checksums.")
@click.option(
    "--store",
    metavar="PATH-or-URL",
    help="Where the run is made (default: a temporary store). In one that is kept, the same "
    "command goes on where it was stopped.",
)
@click.option("--model", metavar="SPEC", help="Ask this model (default: the published one).")
@click.option("--prompts", metavar="FOLDER", help="The prompt pack, if kgbias does not have it.")
@click.option(
    "--rounding",
    type=click.FloatRange(min=0),
    default=default(kgbias.reproduce, "rounding"),
    show_default=True,
    help="Scores that differ by no more than this are the same.",
)
@click.option("--base-url", metavar="URL", help="The server of an openai: model.")
@model_options
@json_option
def reproduce(folder: Path, as_json: bool, **options: Any) -> int:
    """Make a published run again, from the configuration in FOLDER, and say what differs: its files
    (by their checksums), the model, statements, how often they were made, and their scores. Exits
    with 1 where anything does."""
    found = kgbias.reproduce(folder, progress=True, **options)
    if as_json:
        print_json(
            {
                "run": found.run,
                "same": found.same,
                "statements": found.statements,
                "made": found.made,
                "asked": found.asked,
                "logged": found.logged,
                "notes": list(found.notes),
                "differences": found.differences.records(),
            }
        )
    else:
        _print(found)
    return int(not found.same)


def _print(found: Reproduction) -> None:
    for note in found.notes:
        click.echo(printable(note))
    for difference in found.differences[:_SHOWN]:
        click.echo(printable(_line(difference)))
    if len(found.differences) > _SHOWN:
        click.echo(f"... and {len(found.differences) - _SHOWN} more; --json has all")
    if found.made is None:
        files = "all files are" if found.same else "not all files are"
        click.echo(f"{files} as they were published")
        return
    click.echo(
        f"{printable(found.run)}: {found.statements} statements published, {found.made} made here "
        f"from {found.asked} new answers and {found.logged} in the store"
    )
    number = len(found.differences)
    click.echo(
        "nothing differs" if found.same else f"{number} difference{'' if number == 1 else 's'}"
    )


def _line(d: Difference) -> str:
    if d.what == "file":
        return f"file {d.published} is {d.here}"
    about = f"{d.arm}: {d.group} / {d.predicate} / {d.object}: " if d.group else ""
    if d.what == "statement":
        where = "made only here" if d.here else "not made here"
        return f"{about}{where}"
    return f"{about}{d.what} was {d.published or 'nothing'}, is {d.here or 'nothing'}"
