"""Who works on a run: one process at a time, on whatever machine.

A process that asks for a run has a lease of it, which it renews while it lives. Where the lease is
kept is the store's business (`Lease`). A holder on this machine is looked up among its processes,
so one that died is seen at once. Of one elsewhere only its renewals tell: if there was none for a
while, it is watched a little longer before its lease is taken, since clocks may differ.

`LoggedModel.lease_run` takes the lease for whatever asks round by round. Who lost it stops before
it asks again. Of two that ask for the same run, the second says which process is at work, on which
machine, and stops, or waits (`--wait`). Whatever stands where a holder is written, nobody is kept
out for ever, and nothing it says is run (tests/contract/test_lease.py, tests/attack).
"""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

from kgbias.errors import RunConflict

RENEW_SECONDS = 10.0  # between two renewals of a lease
MAX_SILENT_SECONDS = 25.0  # without a renewal, after which a holder elsewhere may be dead
WATCH_SECONDS = 25.0  # for which it is then watched: two renewals, and some
_POLL_SECONDS = 0.5


@cache
def _machine_id() -> str:
    """What tells the processes of this machine, or container, from those of others."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        # After a restart, process numbers mean other processes.
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        # Containers count their processes for themselves.
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def _process_start(process: int) -> str:
    """When a process of this machine began, as the system tells it; "" if there is no such process,
    or the system does not tell."""
    try:
        # The name before it, in parentheses, may hold anything, parentheses and spaces too.
        state, *other_fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    # Field 22 of proc(5), `starttime`: a number that is used again has another.
    return "" if state in "ZX" else other_fields[18]  # a zombie is dead


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has a lease.

    Attributes:
        host, process: where it runs, and its number there.
        machine, started: what tells it from another process of that number.
        token: of this lease alone.
        renewed: changes with each renewal.
        silent: the seconds since the last one, by the clock of whatever keeps the lease.
    """

    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)
    machine: str = field(default_factory=_machine_id)
    started: str = field(default_factory=lambda: _process_start(os.getpid()))
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    renewed: int = field(default=0, compare=False)
    silent: float = field(default=0.0, compare=False)

    def __str__(self) -> str:
        if not self.host:
            return "another process"
        return f"process {self.process} on {self.host}"

    @property
    def is_alive(self) -> bool | None:
        """Whether it still runs; None if that cannot be told from here and now."""
        if self.started and self.machine == _machine_id():
            return _process_start(self.process) == self.started
        return True if 0 <= self.silent <= MAX_SILENT_SECONDS else None


class Lease(Protocol):
    """The lease of one run, where a store keeps it."""

    def holder(self) -> Holder | None:
        """Who has it."""
        ...

    def take(self, mine: Holder, expected: Holder | None) -> bool:
        """Make it mine if it is still that of the holder that was seen, or nobody's; all or
        nothing, however many try."""
        ...

    def renew(self, mine: Holder) -> bool:
        """Renew it; False if somebody else has it."""
        ...

    def give_up(self, mine: Holder) -> None:
        """Make it nobody's, if it is mine."""
        ...


class OwnLease:
    """A lease that this process has, and renews."""

    def __init__(self, name: str, lease: Lease, mine: Holder) -> None:
        self._name, self._lease, self._mine = name, lease, mine
        self._stopped = threading.Event()
        self._new_holder: Holder | None = None
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise RunConflict if another process took the lease, because this one seemed dead."""
        if self._new_holder is not None:
            raise RunConflict(
                f"{self._new_holder} has taken over run {self._name}, since nothing was heard of "
                "this process: stopped; the answers that came are kept"
            )

    def give_up(self) -> None:
        self._stopped.set()
        # At most a second: the renewal may hang on a server that is away.
        self._thread.join(1)
        self._lease.give_up(self._mine)

    def _renew(self) -> None:
        while not self._stopped.wait(RENEW_SECONDS):
            with suppress(Exception):  # a server that is away, a full disk: the next may succeed
                if not self._lease.renew(self._mine):
                    self._new_holder = self._lease.holder() or Holder(host="")
                    return


@contextmanager
def hold_lease(
    lease: Lease, name: str, *, wait: bool = False, note: Callable[[str], None] = lambda _: None
) -> Iterator[OwnLease]:
    """Inside this context, no other process works on the run of this name. If one does, `wait`
    until it is done, or raise RunConflict, which says who it is."""
    mine, has_noted = Holder(), False
    while True:
        current_holder = lease.holder()
        if current_holder is None or _is_dead(lease, current_holder, note):
            if lease.take(mine, current_holder):
                break
        elif not wait:
            raise RunConflict(
                f"{current_holder} is at work on run {name}: stop it, or wait until it is done "
                "(`wait`); the same command then goes on from there"
            )
        else:
            if not has_noted:
                note(f"{current_holder} is at work on run {name}: waiting until it is done")
            has_noted = True
            time.sleep(_POLL_SECONDS)
    own_lease = OwnLease(name, lease, mine)
    try:
        yield own_lease
    finally:
        own_lease.give_up()


def is_leased(lease: Lease) -> bool:
    """Whether somebody has it who is not known to be dead."""
    holder = lease.holder()
    return holder is not None and bool(holder.is_alive)


def check_idle(lease: Lease, name: str) -> None:
    """Raise RunConflict if a process works on the run of this name."""
    if (holder := lease.holder()) is not None and holder.is_alive:
        raise RunConflict(f"{holder} is at work on run {name}: stop it first")


def _is_dead(lease: Lease, holder: Holder, note: Callable[[str], None]) -> bool:
    """Whether a holder is dead; one elsewhere that was long silent is watched first."""
    if holder.is_alive is not None:
        return not holder.is_alive
    note(f"nothing was heard of {holder}: watching for {WATCH_SECONDS:.0f} s whether it still runs")
    deadline = time.monotonic() + WATCH_SECONDS
    while time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        current_holder = lease.holder()
        if (
            current_holder is None
            or current_holder != holder
            or current_holder.renewed != holder.renewed
        ):
            return False
    return True
