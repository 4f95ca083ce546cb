"""Without the folder of any one method or backend all else works, and a line says what lacks; a map
is made without all of them."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import ROOT, sweep_params
from tests.rooms import list_rooms, read_points

pytestmark = pytest.mark.integration
MAP = """
import kgbias

with kgbias.open("kgbias.db", progress=False) as study:
    asking = {"probes": 2000}
    study.map("reference", folder="out", category="faiths", samples=1, iterations=1, asking=asking)
"""


def make_copy(folder: Path, without: Sequence[str]) -> None:
    """kgbias in a folder, without these of its methods and backends; by links, as a copy takes
    long."""
    left_out = {"methods", "backends", "__pycache__", *(Path(room).name for room in without)}
    for name in ("prompts", "cypher"):
        (folder / name).symlink_to(ROOT / name)
    for part in ("", "methods", "backends"):
        (folder / "kgbias" / part).mkdir()
        for path in (ROOT / "kgbias" / part).iterdir():
            if path.name not in left_out:
                (folder / "kgbias" / part / path.name).symlink_to(path)


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return start(folder, "-m", "kgbias", *arguments)


def start(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("room", sweep_params(5, list_rooms()))
def test_a_room_can_be_taken_away(tmp_path: Path, room: str) -> None:
    make_copy(tmp_path, [room])
    own_points = read_points(room)
    listed = run(tmp_path, "--help")
    assert listed.returncode == 0, listed.stderr
    for command in own_points.get("kgbias.commands", {}):
        called = run(tmp_path, command, "--help")
        assert called.returncode == 2
        (line,) = called.stderr.splitlines()
        assert f"the folder kgbias/{room} is missing" in line and command in line
    for part in own_points.get("kgbias.parts", {}):
        called = run(tmp_path, *part.split("."))
        assert called.returncode == 2
        assert f"the folder kgbias/{room} is missing" in called.stderr and part in called.stderr
    for scheme in own_points.get("kgbias.stores", {}):
        called = run(tmp_path, "runs", "--store", f"{scheme}://127.0.0.1:9")
        assert called.returncode == 2
        (line,) = called.stderr.splitlines()
        assert f"the folder kgbias/{room} is missing" in line and scheme in line
    said = run(tmp_path, "plugins").stdout.splitlines()
    assert len(said) == sum(map(len, own_points.values()))
    assert all(f"the folder kgbias/{room} is missing" in line for line in said)


@pytest.mark.slow
def test_a_map_needs_no_room(tmp_path: Path) -> None:
    """Nor does one room need another: test_architecture.py."""
    make_copy(tmp_path, list_rooms())
    (tmp_path / "map.py").write_text(MAP)
    mapped = start(tmp_path, "map.py")
    assert mapped.returncode == 0, mapped.stderr
    assert len(list((tmp_path / "out").glob("*.html"))) == 2


def test_the_copy_is_what_runs(tmp_path: Path) -> None:
    make_copy(tmp_path, list_rooms()[:1])
    shown = start(tmp_path, "-c", "import kgbias; print(kgbias.__file__)")
    assert shown.stdout.strip() == str(tmp_path / "kgbias" / "__init__.py")
