"""What this method adds to kgbias: its command, its part of `kgbias probe`, and its step of a study
in a file."""

from kgbias.cli.commands import CommandEntry, CommandPart
from kgbias.study.steps import StudyStep

BENCHMARK = CommandEntry(
    "Compare models on bias benchmarks.", "kgbias.methods.benchmarks.command:benchmark"
)
PAIRS = CommandPart("kgbias.methods.benchmarks.command:pairs")
STEP = StudyStep(
    "kgbias.methods.benchmarks:run_benchmarks",
    of_study=True,
    output="benchmark.html",
    files=("stereoset", "crows_pairs", "bbq", "winogender"),
    written=("tables",),
)
