"""The command of this method."""

from kgbias.cli.commands import CommandEntry

ATTRIBUTE = CommandEntry(
    "Find which words drive the scores.", "kgbias.methods.attribution.command:attribute"
)
