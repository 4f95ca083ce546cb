"""What the file system of a store can do. SQLite's write-ahead log needs locks, and memory that the
processes of one machine share (sqlite.org/wal.html); where it has less, a store is served with
less, so that it stays whole.

What it can do is found out when a store is opened. Without a log, the store has a journal, or
serves one process at a time, and that is said (tests/integration/test_file_systems.py).
"""

import errno
import mmap
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

Access = Literal["shared", "journal", "alone"]
# Errors by which a call says that it cannot be done there, and not that it failed.
_UNSUPPORTED_ERRORS = {
    errno.ENOLCK,
    errno.ENODEV,
    errno.EINVAL,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.ENOTSUP,
    errno.EACCES,
}
# Their files are those of other machines too, with which no memory is shared.
_NETWORK_FILE_SYSTEMS = frozenset(
    "nfs nfs3 nfs4 cifs smb smb2 smb3 smbfs vboxsf vmhgfs afs ceph lustre gpfs glusterfs beegfs"
    " fhgfs orangefs ocfs2 gfs2 davfs ncpfs coda pvfs2 prl_fs".split()
)


class FileSystem(NamedTuple):
    """How a store on a file system is served: "shared", by a log that processes of this machine
    write and read at once; by a "journal", which readers and writers take turns with; or to one
    process "alone". `reason` says why not the first."""

    access: Access
    reason: str = ""


LOCAL_FILE_SYSTEM = FileSystem("shared")


def file_system_of(path: str) -> FileSystem:
    """That of a path, as far as its name tells: no log on what other machines can write."""
    with suppress(OSError, ValueError):
        name = _file_system_type(path)
        if name in _NETWORK_FILE_SYSTEMS or name.startswith("fuse."):
            return FileSystem("journal", f"a file system of type {name}, which machines may share")
    return LOCAL_FILE_SYSTEM


def try_folder(folder: Path) -> FileSystem:
    """That of a folder, as far as a file in it can be locked and mapped. Raises OSError if none can
    be made there."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".kgbias-") as file:
        file.write(b"\0" * mmap.PAGESIZE)
        file.flush()
        try:
            if fcntl is not None:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _UNSUPPORTED_ERRORS:
                return FileSystem("alone", f"a file system without locks ({error.strerror})")
            raise
        try:
            mmap.mmap(file.fileno(), mmap.PAGESIZE).close()
        except OSError as error:
            if error.errno in _UNSUPPORTED_ERRORS:
                reason = f"a file system without shared memory ({error.strerror})"
                return FileSystem("journal", reason)
            raise
    return LOCAL_FILE_SYSTEM


def _file_system_type(path: str) -> str:
    """The type of the file system that a path is on, as Linux tells it; "" elsewhere."""
    existing = Path(path).absolute()
    while not existing.exists():
        existing = existing.parent
    device = existing.stat().st_dev
    # As /proc/self/mountinfo writes it (proc(5), field 3).
    device_number = f"{os.major(device)}:{os.minor(device)}"
    with Path("/proc/self/mountinfo").open("rb") as file:
        for line in file:
            # The number of fields before the hyphen varies.
            mount_fields, _, type_fields = line.partition(b" - ")
            if mount_fields.split()[2].decode() == device_number:
                return type_fields.split()[0].decode()
    return ""
