"""How threads wait for work.

An OpenMP thread without work spins on its core for a while before it sleeps. On a machine that has
other work this takes the core from whoever it waits for: torch with two threads then scores eight
times fewer statements a second than with one, while on a quiet machine sleeping at once costs
nothing that can be measured (benchmarks/threads.py).
"""

import os

# The runtimes' own names for it: the standard's, GNU's and those of Intel and LLVM.
_CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


def wait_passively() -> None:
    """Let the OpenMP threads of this process and its children sleep while they wait, unless the
    environment already says how they wait. An OpenMP runtime reads this when it is loaded: call it
    before torch is imported."""
    if not any(name in os.environ for name in _CHOICES):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ["KMP_BLOCKTIME"] = "0"
