"""Who works on a run: a lock beside the store, which the system lets go of when a process ends."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kgbias.errors import RunConflict

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]


def _lock(path: str, run: str) -> Path:
    return Path(f"{path}-run-{run[:16]}")


@contextmanager
def held(path: str, run: str, name: str) -> Iterator[None]:
    """Inside this context, no other process works on the run. Raises RunConflict, which says who
    does, if one is at it; on a file system without locks, nobody is kept out."""
    lock = _lock(path, run)
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # a folder that only holds a store: the store itself says so
        handle = -1
    if handle < 0 or fcntl is None:
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunConflict(
                f"{_written(handle)} is at work on run {name}: wait until it is done, or stop it; "
                "the same command then goes on from there"
            ) from None
        except OSError:  # no locks there
            pass
        if not _is_there(handle, lock):  # its last holder took it away meanwhile
            with held(path, run, name):
                yield
            return
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
        with suppress(OSError):
            lock.unlink()
    finally:
        os.close(handle)


def _is_there(handle: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), lock.stat())
    except OSError:
        return False


def is_held(path: str, run: str) -> bool:
    """Whether a process of this machine works on the run."""
    try:
        handle = os.open(_lock(path, run), os.O_RDWR)
    except OSError:
        return False
    try:
        if fcntl is None:
            return True
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _written(handle: int) -> str:
    """Who holds a lock, as they wrote it."""
    with suppress(OSError):
        if text := os.pread(handle, 200, 0).decode("utf-8", "replace").strip():
            return text
    return "another process"
