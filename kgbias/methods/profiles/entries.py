"""What this method adds to kgbias: its command, and its kind of runs."""

from kgbias.cli.commands import CommandEntry
from kgbias.study.kinds import RunKind

PROFILES = CommandEntry(
    "Have a model write profiles for names; tell groups apart.",
    "kgbias.methods.profiles.command:profiles",
)
RUNS = RunKind(
    write="kgbias.methods.profiles:write_profiles",
    price="kgbias.methods.profiles:_price",
)
