"""What this method adds to kgbias: its part of `kgbias probe`, its step of a study in a file, and
what `map` asks of a model that gives no probabilities."""

from kgbias.cli.commands import CommandPart
from kgbias.study.steps import StudyStep
from kgbias.study.substitutes import Substitute

CHOICE = CommandPart("kgbias.methods.choice.command:choice")
STEP = StudyStep("kgbias.methods.choice:choose", is_done="kgbias.methods.choice.rows:is_asked")
SUBSTITUTE = Substitute(
    "choose between groups",
    ask="kgbias.methods.choice.substitute:choose_within",
    min_questions="kgbias.methods.choice.substitute:count_min_questions",
    call="choice.choose(run, {model!r})",
    command="kgbias probe choice {run} --model {model}",
)
