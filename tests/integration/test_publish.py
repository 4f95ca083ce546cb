"""A crawl of the reference model, published and made again from the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kgbias.cli import cli
from tests.conftest import require_modules

pytestmark = pytest.mark.integration


def kgbias(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)


def test_the_reference_model_says_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_modules("pyarrow")
    monkeypatch.chdir(tmp_path)
    asked = "--samples 1 --iterations 1 --set predicate-prompts=0 --set object-prompts=1"
    kgbias(
        "crawl",
        "--model",
        "reference",
        "--group",
        "Velmari people",
        "--run",
        "tiny",
        *asked.split(),
    )
    kgbias("publish", "tiny", "-o", "out")
    done = kgbias("reproduce", "out", "--json")
    found = json.loads(done.stdout)
    assert not done.return_value and found["same"]
    assert found["made"] == found["statements"] > 0
    lines = (tmp_path / "out/data/statements.jsonl").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "out/data/statements.jsonl").write_text("".join(lines[1:]), "utf-8")
    done = kgbias("reproduce", "out")
    assert done.return_value == 1  # the exit status
    assert "file data/statements.jsonl is changed" in done.stdout
    assert "made only here" in done.stdout and "2 differences" in done.stdout
    assert kgbias("reproduce", "out", "--check").return_value == 1
