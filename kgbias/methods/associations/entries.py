"""What this method adds to kgbias: its command, and its step of a study in a file."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kgbias.cli.commands import CommandEntry
from kgbias.parameters import as_names
from kgbias.study.steps import StudyStep

if TYPE_CHECKING:
    from kgbias.graph.store import StoredRun

ASSOCIATE = CommandEntry(
    "Run association tests (WEAT, SEAT, CEAT, LPBS).",
    "kgbias.methods.associations.command:associate",
)
STEP = StudyStep(
    "kgbias.methods.associations:associate",
    is_done="kgbias.methods.associations.entries:has_tests",
    files=("vectors", "tests_file", "contexts"),
)


def has_tests(run: "StoredRun", options: Mapping[str, Any]) -> bool:
    """Whether a run has a test of each model that a step names (for vectors: any test)."""
    model_names = {a.model.name for a in run.associations()}
    return bool(model_names) and model_names >= set(as_names(options.get("models", ())))
