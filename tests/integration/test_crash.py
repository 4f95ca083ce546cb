"""An error that nobody foresaw is one line, exit 70, and a file without secrets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("arguments", [["runs"], ["import", "x.csv"], ["models"]])
def test_an_unforeseen_error_is_one_line(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "x.csv").write_text("group,predicate,object\nMen,love,tea\n")
    code = (
        "import sys\nfrom kgbias.cli import main\nimport kgbias\n"
        "def thrown(*_, **__):\n"
        "    raise LookupError('no place for sk-abcdefghij at http://me:pass@host/')\n"
        "kgbias.open = thrown\nkgbias.model_kinds = thrown\n"
        f"sys.argv = ['kgbias', *{arguments!r}]\nmain()\n"
    )
    told = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "s"), "OPENAI_API_KEY": "sk-abcdefghij"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=told, capture_output=True, text=True
    )
    assert done.returncode == 70 and "Traceback" not in done.stderr
    [line] = done.stderr.strip().splitlines()
    assert "LookupError: no place for [OPENAI_API_KEY] at http://[user]@host/" in line
    [kept] = (tmp_path / "s" / "kgbias").iterdir()
    assert str(kept) in line
    text = kept.read_text()
    assert "Traceback" in text and "sk-abc" not in text and "me:pass" not in text


@pytest.mark.parametrize("ours", [True, False])
def test_an_unforeseen_error_in_a_thread_is_one_line(tmp_path: Path, ours: bool) -> None:
    """One of ours ends the command, which may wait for it; one of a library does not."""
    code = (
        "import sys, threading\nfrom kgbias.cli import crash, main\nimport kgbias\n"
        "def waits(*_, **__):\n"
        f"    fails = (lambda: crash.mask_secrets([])) if {ours} else (lambda: 3 + 'x')\n"
        "    thread = threading.Thread(target=fails)\n"
        "    thread.start()\n    thread.join()\n"
        f"    ({ours} and threading.Event().wait()) or sys.exit(9)\n"
        "kgbias.open = waits\nsys.argv = ['kgbias', 'runs']\nmain()\n"
    )
    told = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "s")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=told, capture_output=True, text=True
    )
    [line] = done.stderr.strip().splitlines()
    assert done.returncode == (70 if ours else 9)
    assert "TypeError: " in line and "Traceback" not in line
    [kept] = (tmp_path / "s" / "kgbias").iterdir()
    assert "Traceback" in kept.read_text()


@pytest.mark.parametrize("missing", ["click", "kgbias.cli.show"])
def test_a_broken_installation_is_one_line(tmp_path: Path, missing: str) -> None:
    code = (
        f"import sys\nsys.modules[{missing!r}] = None\nfrom kgbias.__main__ import main\n"
        "sys.argv = ['kgbias', 'runs']\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    [line] = done.stderr.strip().splitlines()
    assert done.returncode == 70 and missing in line and "installed in full?" in line
