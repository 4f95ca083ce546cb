"""The command that this method adds to kgbias."""

from kgbias.cli.commands import CommandEntry

KNOWN = CommandEntry(
    "Compare what a run says with recorded stereotypes.", "kgbias.methods.known.command:known"
)
