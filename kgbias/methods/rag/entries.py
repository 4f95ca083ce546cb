"""The command of this method."""

from kgbias.cli.commands import CommandEntry

FAITHFULNESS = CommandEntry(
    "Check how far texts are supported by their sources.",
    "kgbias.methods.rag.command:faithfulness",
)
