"""Which tests come by which mutant: what a copy of kgbias asks where a mutant stands beside what it
replaces (scripts/mutants.py)."""

import os
import sys
from pathlib import Path
from types import FrameType

FOLDER = Path(os.environ.get("KGBIAS_MUTANTS", "."))
awake = int(os.environ.get("KGBIAS_MUTANT", 0))
"""The number of a mutant; 0: all are asleep."""
met: set[int] = set()
"""By this phase of this test, in this process."""


def meets(number: int) -> bool:
    """Whether this mutant is awake. That it was met is noted with the test, whose name the
    processes that it starts have in their environment too."""
    if not awake and number not in met:
        met.add(number)
        test, _, phase = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")
        line = f"{number}\t{test}\t{phase.strip('()')}\t{_is_shared()}\n"
        descriptor = os.open(FOLDER / "met.tsv", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)
    return number == awake


def _is_shared() -> bool:
    """Whether other tests may have what is made here without coming by: a module is imported, or
    a cache filled."""
    frame: FrameType | None = sys._getframe(2)
    while frame:
        name, module = frame.f_code.co_name, str(frame.f_globals.get("__name__"))
        if hasattr(frame.f_globals.get(name), "cache_info"):
            return True
        if name == "<module>" and module.startswith("kgbias"):
            return True
        frame = frame.f_back
    return False
