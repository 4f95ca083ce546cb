"""A crawl of the reference model, published and made again from the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import needs

pytestmark = pytest.mark.integration


def kgbias(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kgbias", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_reference_model_says_the_same_again(tmp_path: Path) -> None:
    needs("pyarrow")
    asked = "--samples 1 --iterations 1 --predicate-prompts 0 --object-prompts 1"
    done = kgbias(tmp_path, "crawl", "--model", "reference", "--group", "Velmari people",
                  "--run", "tiny", *asked.split())  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert kgbias(tmp_path, "publish", "tiny", "-o", "out").returncode == 0
    done = kgbias(tmp_path, "reproduce", "out", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["same"] and found["made"] == found["statements"] > 0
    lines = (tmp_path / "out/data/statements.jsonl").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "out/data/statements.jsonl").write_text("".join(lines[1:]), "utf-8")
    done = kgbias(tmp_path, "reproduce", "out")
    assert done.returncode == 1
    assert "file data/statements.jsonl is changed" in done.stdout
    assert "made only here" in done.stdout and "2 differences" in done.stdout
    assert kgbias(tmp_path, "reproduce", "out", "--check").returncode == 1
