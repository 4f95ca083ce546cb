"""The command of this method."""

from kgbias.cli.commands import CommandEntry

SOFA = CommandEntry(
    "Build probes from a corpus of stereotypes, as SoFa did.", "kgbias.methods.sofa.command:sofa"
)
