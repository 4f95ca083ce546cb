"""`kgbias profiles`: what a model writes about people it knows only by name.

Each part is a small file of its own.
"""

from importlib import import_module

import click

# name -> the line that --help shows
PARTS = {
    "analyse": "Can groups be told apart by a run's profiles, and by which words?",
}


class Parts(click.Group):
    """The parts of `kgbias profiles`, imported when they are used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(PARTS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in PARTS:
            return None
        part: click.Command = getattr(import_module(f"kgbias.cli.profiles.{name}"), name)
        return part

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(PARTS.items()))


@click.group(cls=Parts)
def profiles() -> None:
    """See what profiles give away that a model wrote of people it knows only by name.

    `kgbias profiles analyse RUN` says whether the groups that the names stand for can be told
    apart, and by which words. Profiles are imported with `kgbias import --format profiles`. What a
    model makes of a name says nothing of anyone who bears it.
    """
