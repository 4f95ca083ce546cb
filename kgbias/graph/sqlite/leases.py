"""The lease of a run in a file beside the store, by what every file system can do: create a file if
it is not there, and exchange one for another. A renewal is a write, so the file's time is that of
the file system, which is the same for all machines that share it."""

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from kgbias.errors import RunConflict, StoreError
from kgbias.graph.leases import MAX_SILENT_SECONDS, Holder, hold_lease

_HOLDER_FIELDS = {"host": str, "process": int, "machine": str, "started": str, "token": str}
_MAX_LEASE_BYTES = 4096  # bytes of a file
# O_EXCL: of several that create the file, one succeeds.
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class FileLease:
    """See `kgbias.graph.leases.Lease`. In a folder that cannot be written, nobody is kept out: the
    store cannot be written either, and says so."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._claim = Path(f"{path}-taken")

    def holder(self) -> Holder | None:
        try:
            with self._path.open("rb") as file:
                text = file.read(_MAX_LEASE_BYTES)
            status = self._path.stat()
        except OSError:
            return None
        holder = _read_holder(text)
        silent_seconds = _file_system_time(self._path.parent) - status.st_mtime
        return replace(holder, renewed=status.st_mtime_ns, silent=silent_seconds)

    def take(self, mine: Holder, expected: Holder | None) -> bool:
        try:
            if expected is None:
                self._write(self._path, mine)
                return True
            return self._exchange(mine, expected)
        except FileExistsError:
            return False
        except OSError:
            return True

    def _exchange(self, mine: Holder, expected: Holder) -> bool:
        """Exchange the lease of a dead holder for mine. Whoever creates the claim does it; the
        others find another holder."""
        with suppress(OSError):
            if (
                _file_system_time(self._path.parent) - self._claim.stat().st_mtime
                > MAX_SILENT_SECONDS
            ):
                self._claim.unlink()  # of a process that died in the next few lines
        self._write(self._claim, mine)
        try:
            if self.holder() != expected:
                return False
            # A rename is all or nothing on every file system.
            self._claim.replace(self._path)
            return True
        finally:
            with suppress(OSError):
                self._claim.unlink()

    def renew(self, mine: Holder) -> bool:
        try:
            with self._path.open("r+b") as file:
                holder = _read_holder(file.read(_MAX_LEASE_BYTES))
                if holder == mine:
                    # Written in place, with the same bytes: a reader never finds it empty. If it
                    # has been exchanged since it was opened, this file is nobody's.
                    file.seek(0)
                    file.write(_holder_bytes(mine))
        except OSError:
            found = self.holder()
            return self.take(mine, None) if found is None else found == mine
        return holder == mine

    def give_up(self, mine: Holder) -> None:
        with suppress(OSError):
            if self.holder() == mine:
                self._path.unlink()

    @staticmethod
    def _write(path: Path, mine: Holder) -> None:
        handle = os.open(path, _CREATE_FLAGS, 0o666)
        try:
            os.write(handle, _holder_bytes(mine))
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(handle)


def _read_holder(text: bytes) -> Holder:
    """The holder that a file says; one without a host if it says none: it is half written, or by
    somebody else."""
    with suppress(ValueError, RecursionError):
        values = json.loads(text)
        if isinstance(values, dict) and {k: type(v) for k, v in values.items()} == _HOLDER_FIELDS:
            return Holder(**values)
    # Its text is its token: it is seen to change, or not.
    return Holder("", 0, "", "", text.decode("utf-8", "replace"))


def _holder_bytes(mine: Holder) -> bytes:
    return json.dumps({name: getattr(mine, name) for name in _HOLDER_FIELDS}).encode()


def _file_system_time(folder: Path) -> float:
    """The time by the clock of the folder's file system."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".kgbias-") as file:
            file.write(b"0")  # the time of a file is that of its last write
            file.flush()
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()


class StoreInUse(StoreError):
    """A store that only one process at a time can use is used by another."""


@contextmanager
def hold_store(path: str, reason: str) -> Iterator[None]:
    """Inside this context, no other process uses the store at this path, but one that this one
    started, and waits for. Raises StoreInUse, which says who does."""
    lease = FileLease(Path(f"{path}-in-use"))
    user = lease.holder()
    if user and user.process == os.getppid() and user.is_alive:
        yield
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lease(lease, path))
        except RunConflict:
            raise StoreInUse(
                f"{lease.holder()} has {path} open, which is on {reason}: one process at a time "
                "can use it; wait until it is done, or keep the store on a local disk"
            ) from None
        yield
