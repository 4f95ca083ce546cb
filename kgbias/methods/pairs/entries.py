"""What this method adds to kgbias: its command, and its kind of runs."""

from kgbias.cli.commands import CommandEntry
from kgbias.study.kinds import RunKind

PAIRS = CommandEntry(
    "Make the same request for different people; see what changes.",
    "kgbias.methods.pairs.command:pairs",
)
RUNS = RunKind(
    write="kgbias.methods.pairs:ask_pairs",
    price="kgbias.methods.pairs:_price",
    findings="results",
    find="kgbias.methods.pairs:compare_pairs",
    suggest="kgbias.methods.pairs.config:suggest_pairs",
    has_statements=False,
)
