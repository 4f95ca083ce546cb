"""What a call leaves behind in the process of its caller: nothing but its result.

Libraries move the random states, set environment variables and change the filters of warnings when
they are imported or used. What is inside `restore_state` is put back as it was.
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
_SPIN_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


def wait_passively() -> None:
    """Let the OpenMP threads of this process and its children sleep while they wait, unless the
    environment already says how they wait. The OpenMP runtime reads this when it is loaded, so call
    it before torch is imported."""
    if not any(name in os.environ for name in _SPIN_VARIABLES):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ["KMP_BLOCKTIME"] = "0"


_saved_states: list[dict[str, Any]] = []  # the random states that open contexts will put back


@contextmanager
def restore_state() -> Iterator[None]:
    """Inside this context, the random states of Python, numpy and torch, the environment and the
    filters of warnings may change; after it they are as they were. Torch that is imported inside is
    told to wait passively, and is left as a fresh import leaves it."""
    if _saved_states:  # the outermost one puts everything back
        yield
        return
    environment = dict(os.environ)
    wait_passively()
    with warnings.catch_warnings():
        _saved_states.append(_random_states())
        try:
            yield
        finally:
            _restore_random(_saved_states.pop())
            for name in os.environ.keys() - environment.keys():
                del os.environ[name]
            os.environ.update(environment)


@contextmanager
def use_caller_random_states() -> Iterator[None]:
    """Inside this context, which a caller's own function runs in, the random states are the
    caller's, and stay as that function leaves them."""
    if not _saved_states:
        yield
        return
    own_states = _random_states()
    _restore_random(_saved_states[-1])
    try:
        yield
    finally:
        _saved_states[-1] = _random_states()
        _restore_random(own_states)


def _random_states() -> dict[str, Any]:
    """The random states of the packages that are there."""
    states: dict[str, Any] = {"random": random.getstate()}
    if numpy := sys.modules.get("numpy"):
        states["numpy"] = numpy.random.get_state()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "random"):
        states["torch"] = torch.random.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def _restore_random(states: dict[str, Any]) -> None:
    random.setstate(states["random"])
    if "numpy" in states:
        sys.modules["numpy"].random.set_state(states["numpy"])
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "random"):
        return
    if "torch" in states:
        torch.random.set_rng_state(states["torch"])
    else:  # it was imported inside: as after a fresh import
        torch.random.default_generator.manual_seed(torch.random.default_generator.initial_seed())
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])
