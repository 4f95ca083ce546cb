"""How much memory this process may use, which in a container is less than the machine has."""

import os
from contextlib import suppress
from pathlib import Path, PurePosixPath

_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def count_memory_bytes() -> int | None:
    """The machine's memory, or the lowest limit of the control groups that this process is in, if
    that is lower (Linux, control groups 1 and 2). None where the system does not say."""
    limits = []
    with suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError):
        limits += _control_group_limits(Path("/proc/self/cgroup").read_text("utf-8"))
    return min(limits, default=None)


def _control_group_limits(groups: str) -> list[int]:
    """The limits in bytes of these groups, written as in /proc/self/cgroup, and of those around
    them. In a container the group may have the machine's name for it, which is not mounted there:
    then the outermost folder is the container's own."""
    limits = []
    for line in groups.splitlines():
        group = PurePosixPath(line.split(":", 2)[2].lstrip("/"))
        for folder in (group, *group.parents):
            for file in (
                _CONTROL_GROUPS / folder / "memory.max",
                _CONTROL_GROUPS / "memory" / folder / "memory.limit_in_bytes",
            ):
                with suppress(OSError, ValueError):  # no such file, or "max"
                    limits.append(int(file.read_text("ascii")))
    return limits
