"""A container's memory is what its control groups allow, however much the machine has."""

from pathlib import Path

import psutil
import pytest

from kgbias.io import memory


@pytest.mark.parametrize(
    ("groups", "files", "limits"),
    [
        ("0::/", {"memory.max": "6000\n"}, [6000]),  # in a container
        ("0::/a/b", {"a/memory.max": "5000\n", "a/b/memory.max": "max\n"}, [5000]),
        ("0::/", {}, []),
        (  # of the first kind; the group's name is the machine's, and is not mounted here
            "4:memory:/docker/1a\n1:cpu:/docker/1a",
            {"memory/memory.limit_in_bytes": "7000\n"},
            [7000, 7000],
        ),
    ],
)
def test_limits_of_groups(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    groups: str,
    files: dict[str, str],
    limits: list[int],
) -> None:
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "ascii")
    monkeypatch.setattr(memory, "_CONTROL_GROUPS", tmp_path)
    assert memory._control_group_limits(groups) == limits


def test_there_is_some_memory_and_not_more_than_the_machine_has() -> None:
    assert 0 < (memory.count_memory_bytes() or 0) <= psutil.virtual_memory().total
