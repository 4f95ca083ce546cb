"""What a call leaves behind in the process of its caller: nothing but its result.

Libraries move the random states, set environment variables and change the filters of warnings when
they are imported or used. What is inside `untraced` is put back as it was.
"""

import os
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# An idle OpenMP thread spins on its core for a while before it sleeps. On a machine with other work
# this takes the core from whoever it waits for: torch with two threads then scores eight times
# fewer statements a second than with one, while on a quiet machine sleeping at once costs nothing
# measurable (benchmarks/threads.py). These are the runtimes' own names for the setting: the
# standard's, GNU's, and Intel's and LLVM's.
_SPINS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


def wait_passively() -> None:
    """Let the OpenMP threads of this process and its children sleep while they wait, unless the
    environment already says how they wait. The OpenMP runtime reads this when it is loaded, so call
    it before torch is imported."""
    if not any(name in os.environ for name in _SPINS):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ["KMP_BLOCKTIME"] = "0"


_found: list[dict[str, Any]] = []  # the random states that open contexts will put back


@contextmanager
def untraced() -> Iterator[None]:
    """Inside this context, the random states of Python, numpy and torch, the environment and the
    filters of warnings may change; after it they are as they were. Torch that is imported inside is
    told to wait passively, and is left as a fresh import leaves it."""
    if _found:  # the outermost one puts everything back
        yield
        return
    environment = dict(os.environ)
    wait_passively()
    with warnings.catch_warnings():
        _found.append(_states())
        try:
            yield
        finally:
            _restore(_found.pop())
            for name in os.environ.keys() - environment.keys():
                del os.environ[name]
            os.environ.update(environment)


@contextmanager
def by_caller() -> Iterator[None]:
    """Inside this context, which a caller's own function runs in, the random states are the
    caller's, and stay as that function leaves them."""
    if not _found:
        yield
        return
    ours = _states()
    _restore(_found[-1])
    try:
        yield
    finally:
        _found[-1] = _states()
        _restore(ours)


def _states() -> dict[str, Any]:
    """The random states of the packages that are there."""
    found: dict[str, Any] = {"random": random.getstate()}
    if numpy := sys.modules.get("numpy"):
        found["numpy"] = numpy.random.get_state()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "random"):
        found["torch"] = torch.random.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            found["cuda"] = torch.cuda.get_rng_state_all()
    return found


def _restore(found: dict[str, Any]) -> None:
    random.setstate(found["random"])
    if "numpy" in found:
        sys.modules["numpy"].random.set_state(found["numpy"])
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "random"):
        return
    if "torch" in found:
        torch.random.set_rng_state(found["torch"])
    else:  # it was imported inside: as after a fresh import
        torch.random.default_generator.manual_seed(torch.random.default_generator.initial_seed())
    if "cuda" in found:
        torch.cuda.set_rng_state_all(found["cuda"])
