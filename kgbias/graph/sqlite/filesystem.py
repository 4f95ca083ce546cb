"""What the file system of a store can do. SQLite's write-ahead log needs locks, and memory that the
processes of one machine share (sqlite.org/wal.html); where it has less, a store is served with
less, so that it stays whole."""

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
_LACKING = {
    errno.ENOLCK, errno.ENODEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP,
    errno.EACCES,
}  # fmt: skip
# Their files are those of other machines too, with which no memory is shared.
_OF_NETWORKS = frozenset(
    "nfs nfs3 nfs4 cifs smb smb2 smb3 smbfs vboxsf vmhgfs afs ceph lustre gpfs glusterfs beegfs"
    " fhgfs orangefs ocfs2 gfs2 davfs ncpfs coda pvfs2 prl_fs".split()
)


class FileSystem(NamedTuple):
    """How a store on a file system is served: "shared", by a log that processes of this machine
    write and read at once; by a "journal", which readers and writers take turns with; or to one
    process "alone". `reason` says why not the first."""

    access: Access
    reason: str = ""


LOCAL = FileSystem("shared")


def of_network(path: str) -> FileSystem:
    """That of a path, as far as its name tells: no log on what other machines can write."""
    with suppress(OSError, ValueError):
        name = _name(path)
        if name in _OF_NETWORKS or name.startswith("fuse."):
            return FileSystem("journal", f"a file system of type {name}, which machines may share")
    return LOCAL


def tried(folder: Path) -> FileSystem:
    """That of a folder, as far as a file in it can be locked and mapped. Raises OSError if none can
    be made there."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".kgbias-") as file:
        file.write(b"\0" * mmap.PAGESIZE)
        file.flush()
        try:
            if fcntl is not None:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _LACKING:
                return FileSystem("alone", f"a file system without locks ({error.strerror})")
            raise
        try:
            mmap.mmap(file.fileno(), mmap.PAGESIZE).close()
        except OSError as error:
            if error.errno in _LACKING:
                reason = f"a file system without shared memory ({error.strerror})"
                return FileSystem("journal", reason)
            raise
    return LOCAL


def _name(path: str) -> str:
    """The type of the file system that a path is on, as Linux tells it; "" elsewhere."""
    there = Path(path).absolute()
    while not there.exists():
        there = there.parent
    device = there.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with Path("/proc/self/mountinfo").open("rb") as file:
        for line in file:
            before, _, after = line.partition(b" - ")
            if before.split()[2].decode() == wanted:
                return after.split()[0].decode()
    return ""
