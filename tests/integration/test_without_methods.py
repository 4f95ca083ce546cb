"""Without the folder of any one method, all else works, and one line says what is missing."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kgbias.methods import list_methods
from tests.conftest import ROOT, sweep_params

pytestmark = pytest.mark.integration
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
MAP = """
import kgbias

with kgbias.open("kgbias.db", progress=False) as study:
    asking = {"probes": 2000}
    study.map("reference", folder="out", category="faiths", samples=1, iterations=1, asking=asking)
"""


def make_copy(folder: Path, without: str) -> None:
    """kgbias in a folder, without one of its methods; by links, as a copy takes long."""
    for name in ("prompts", "cypher"):
        (folder / name).symlink_to(ROOT / name)
    for part in ("", "methods"):
        (folder / "kgbias" / part).mkdir()
        for path in (ROOT / "kgbias" / part).iterdir():
            if path.name not in (without, "methods", "__pycache__"):
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


@pytest.mark.parametrize("method", sweep_params(20, list_methods()))
def test_a_method_can_be_taken_away(tmp_path: Path, method: str) -> None:
    make_copy(tmp_path, method)
    own_points = {
        group: [name for name, value in points.items() if f".methods.{method}." in value]
        for group, points in POINTS.items()
    }
    listed = run(tmp_path, "--help")
    assert listed.returncode == 0, listed.stderr
    for command in own_points.get("kgbias.commands", []):
        called = run(tmp_path, command, "--help")
        assert called.returncode == 2
        (line,) = called.stderr.splitlines()
        assert f"the folder kgbias/methods/{method} is missing" in line and command in line
    said = run(tmp_path, "plugins").stdout.splitlines()
    assert len(said) == sum(map(len, own_points.values()))
    assert all(f"the folder kgbias/methods/{method} is missing" in line for line in said)
    (tmp_path / "map.py").write_text(MAP)
    mapped = start(tmp_path, "map.py")
    assert mapped.returncode == 0, mapped.stderr
    assert len(list((tmp_path / "out").glob("*.html"))) == 2


def test_the_copy_is_what_runs(tmp_path: Path) -> None:
    make_copy(tmp_path, list_methods()[0])
    shown = start(tmp_path, "-c", "import kgbias; print(kgbias.__file__)")
    assert shown.stdout.strip() == str(tmp_path / "kgbias" / "__init__.py")
