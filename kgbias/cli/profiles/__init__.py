"""`kgbias profiles`: what a model writes about people it knows only by name.

Each part is a small file of its own. `profiles --model SPEC` means `profiles run --model SPEC`.
"""

from importlib import import_module

import click

# name -> the line that --help shows
PARTS = {
    "run": "Have a model write profiles for given names (the default).",
    "analyse": "Can groups be told apart by a run's profiles, and by which words?",
    "agreement": "Are the words of groups those of APX, or of a crawl?",
    "page": "The profiles of two names side by side, as an HTML page.",
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

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in context.help_option_names:
            args = ["run", *args]
        return super().parse_args(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(PARTS.items()))


@click.group(cls=Parts)
def profiles() -> None:
    """Have a model write profiles of people it knows only by name, and see what they give away.

    `kgbias profiles --model SPEC` writes them into the graph; `kgbias profiles analyse RUN` says
    whether the groups that the names stand for can be told apart, and by which words. Profiles made
    elsewhere are imported with `kgbias import --format profiles`. What a model makes of a name says
    nothing of anyone who bears it.
    """
