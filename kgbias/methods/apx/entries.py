"""The part of `kgbias probe` that this method adds."""

from kgbias.cli.commands import CommandPart

APX = CommandPart("kgbias.methods.apx.command:apx")
