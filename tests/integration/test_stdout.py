"""What comes by stdin and goes to stdout, by their names: all of it, nothing else, and nothing
beside it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgbias.cli import cli

pytestmark = pytest.mark.integration


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store of a table that came by stdin."""
    rows, store = b"group,predicate,object\nBakers,love,bread\n", str(tmp_path / "kgbias.db")
    call = [sys.executable, "-m", "kgbias", "import", "-", "--run", "r", "--store", store]
    subprocess.run(call, input=rows + b"Cooks,love,soup\n", cwd=tmp_path, check=True)
    return store


def test_an_export_is_added_to_what_stdout_has(store: str, tmp_path: Path) -> None:
    call = [sys.executable, "-m", "kgbias", "export", "r", "--store", store, "-o"]
    path = tmp_path / "all.jsonl"
    path.write_text('{"object": "before"}\n')
    with path.open("ab") as file:
        for name in ("-", "/dev/stdout"):  # a path and a name, as in `>> all.jsonl`
            subprocess.run([*call, name], cwd=tmp_path, stdout=file, check=True)
    found = [json.loads(line)["object"] for line in path.read_text().splitlines()]
    assert found == ["before", "bread", "soup", "bread", "soup"]
    assert {p.name for p in tmp_path.iterdir()} == {"kgbias.db", "all.jsonl"}
    assert not Path("/dev/stdout.manifest.json").exists()


def test_a_report_is_a_page_and_no_line_more(store: str, tmp_path: Path) -> None:
    call = [sys.executable, "-m", "kgbias", "report", "r", "--store", store, "-o", "-"]
    page = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")


def test_several_files_do_not_go_to_stdout(store: str) -> None:
    call = ["export", "r", "--store", store, "-o", "-", "--format", "csv-pair"]
    told = str(CliRunner().invoke(cli, call).exception)
    assert told == "csv-pair is several files, which /dev/stdout cannot hold: name a file"
