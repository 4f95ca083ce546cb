"""The command that this method adds to kgbias."""

from kgbias.cli.commands import CommandEntry

LABEL = CommandEntry(
    "Label statements by hand, to correct figures.", "kgbias.methods.labels.command:label"
)
