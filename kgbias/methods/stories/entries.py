"""What this method adds to kgbias: its command, and its kind of runs."""

from kgbias.cli.commands import CommandEntry
from kgbias.study.kinds import RunKind

STORIES = CommandEntry(
    "Have a model tell stories; see what it invents about whom.",
    "kgbias.methods.stories.command:stories",
)
RUNS = RunKind(
    write="kgbias.methods.stories:write_stories",
    price="kgbias.methods.stories:_price",
    findings="links",
    find="kgbias.methods.stories:find_links",
    suggest="kgbias.methods.stories.suggestion:suggest_stories",
)
