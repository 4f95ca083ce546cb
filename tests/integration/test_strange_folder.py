"""Commands in a folder that a stranger filled: nothing that lies in it is run or decides."""

import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

from kgbias.errors import UsageError
from kgbias.measure.topics import model as topics
from kgbias.report.style import figure_style
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.integration

COMMANDS = (
    ("import", "t.csv", "--run", "r", "--model", "m"),
    ("query", "structure"),  # the process of the Cypher engine
    ("crawl", "--model", "reference", "--category", "peoples", "--dry-run"),  # that of templates
)


def kgbias(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """As the installed command, whose path does not hold the current folder."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "kgbias", *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )


def test_modules_of_the_current_folder_are_not_imported(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    folder = tmp_path / "theirs"
    (folder / "kgbias").mkdir(parents=True)
    evil = f"open({str(marker)!r}, 'w')\n"
    for name in ("kgbias/__init__.py", "jinja2.py", "kglite.py", "pickle.py"):
        (folder / name).write_text(evil)
    (folder / "t.csv").write_text("group,predicate,object\nwomen,love,music\n")
    for argv in COMMANDS:
        done = kgbias(folder, *argv)
        assert done.returncode == 0, done.stderr
        assert not marker.exists(), f"{argv} ran a module of the current folder"


def test_a_matplotlibrc_of_the_current_folder_does_not_have_latex_read_labels(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_text("group,predicate,object\nwomen,love,\\input{x}\n")
    assert kgbias(tmp_path, "import", "t.csv", "--run", "r", "--model", "m").returncode == 0
    assert kgbias(tmp_path, "export", "r", "-o", "before.svg").returncode == 0
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nsavefig.facecolor: red\n")
    done = kgbias(tmp_path, "export", "r", "-o", "after.svg")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "after.svg").read_bytes() == (tmp_path / "before.svg").read_bytes()
    with matplotlib.rc_context({"text.usetex": True}), figure_style():  # as it would be read
        assert not matplotlib.rcParams["text.usetex"]


def test_no_compiled_code_from_where_the_current_folder_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: theirs\n")
    monkeypatch.chdir(tmp_path)
    topics.load_umap.cache_clear()
    with pytest.raises(UsageError, match="where Numba loads compiled code from"):
        topics.load_umap()
    assert [path.name for path in tmp_path.iterdir()] == [".numba_config.yaml"]
