"""`kgbias probe`: what a model finds probable, tied to the groups and statements of the graph.

Each part is a small file of its own. `probe RUN` means `probe run RUN`, and the options that name
another part choose it, as they did when there was one command: `probe --apx` is `probe apx`.
"""

from collections.abc import Sequence
from importlib import import_module

import click

from kgbias.errors import UsageError

# name -> the line that --help shows, and the options that choose it where no part is named
PARTS = {
    "run": ("A run's statements, written back to its graph (the default).", ()),
    "sets": ("Groups and statements from files.", ("--identities", "--statements")),
    "apx": ("Names x descriptors x templates: APX.", ("--apx", "--apx-from")),
    "pairs": (
        "StereoSet, CrowS-Pairs, BBQ and Winogender.",
        ("--stereoset", "--crows-pairs", "--bbq", "--winogender"),
    ),
    "choice": ("Which group each statement is about: where there are no probabilities.", ()),
    "precision": ("What --dtype costs: error, order of groups, speed.", ()),
    "surprisal": ("Each token of a text, in bits.", ("--surprisal",)),
}


class Parts(click.Group):
    """The parts of `kgbias probe`, imported when they are used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(PARTS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in PARTS:
            return None
        part: click.Command = getattr(import_module(f"kgbias.cli.probe.{name}"), name)
        return part

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*PARTS, *context.help_option_names):
            args = [_part(args), *args]
        return super().parse_args(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (line, _) in PARTS.items()])


class Part(click.Command):
    """A part; an option of another part is an error that says whose it is."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(context, args)
        except click.NoSuchOption as error:
            group = click.Context(probe)
            takers = [
                f"probe {name}"
                for name in PARTS
                if (part := probe.get_command(group, name)) and _has(part, error.option_name)
            ]
            if not takers:
                raise
            *most, last = takers
            who = f"{', '.join(most)} and {last} do" if most else f"{last} does"
            raise UsageError(
                f"probe {self.name} does not take {error.option_name}: {who}"
            ) from error


def _part(args: Sequence[str]) -> str:
    """The part that the options choose."""
    named = {arg.partition("=")[0] for arg in args}
    chosen = {name: flag for name, (_, flags) in PARTS.items() for flag in flags if flag in named}
    if len(chosen.keys() - {"sets"}) > 1:
        flags = " and ".join(flag for name, flag in chosen.items() if name != "sets")
        raise UsageError(f"one thing at a time: {flags}")
    return next((name for name in chosen if name != "sets"), next(iter(chosen), "run"))


def _has(part: click.Command, option: str) -> bool:
    return any(option in (*p.opts, *p.secondary_opts) for p in part.params)


@click.group(cls=Parts)
def probe() -> None:
    """Ask a model which groups make each statement most likely.

    `kgbias probe RUN --model SPEC` probes the statements of a run's graph (`probe run`) and writes
    the answers on its edges. Lower perplexity is more likely. A run whose name is that of a command
    is reached with --run.
    """
