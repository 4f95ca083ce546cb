"""A public call leaves the process of its caller as it found it (tests/traces.py)."""

import inspect
import json
import random
import subprocess
import sys
import threading
import warnings
from typing import Any

import pytest

import kgbias
from kgbias.methods import iter_calls
from kgbias.study.beliefs import RunBeliefs
from kgbias.study.maintenance import StoreMaintenance
from tests.conftest import ROOT
from tests.traces import changes, find_left_out, state

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_no_public_call_leaves_a_trace() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.traces"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert not {each["call"]: each["changes"] for each in found if each["changes"]}
    assert not {each["call"]: each["refused"] for each in found if each["refused"]}
    public = {
        f"{of.__name__}.{name}"
        for of in (kgbias.Study, kgbias.Run, RunBeliefs, StoreMaintenance)
        for name in dir(of)
        if not name.startswith("_") and inspect.isfunction(inspect.getattr_static(of, name))
    }
    public |= {name for name, _ in iter_calls()}
    functions = {name for name in kgbias.__all__ if inspect.isfunction(getattr(kgbias, name))}
    public |= {f"kgbias.{name}" for name in functions - {"open"}}
    assert {each["call"] for each in found} - {"open"} == public - find_left_out().keys()


def test_a_trace_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    before = state()
    assert not changes(before, state())
    monkeypatch.setenv("KGBIAS_TRACE", "1")
    kept, stop = random.getstate(), threading.Event()
    random.random()
    waiting = threading.Thread(target=stop.wait, name="left behind")
    waiting.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = {change.partition(":")[0] for change in changes(before, state())}
    stop.set()
    waiting.join()
    random.setstate(kept)
    assert seen == {"environment", "random", "threads", "warnings"}
