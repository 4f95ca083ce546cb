"""The tutorial does what it says: its commands and its Python, in order, on two small crawls of the
reference model in place of SmolLM2 and Gemma; its paper compiles."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.reference import weights_path
from tests.conftest import require_modules
from tests.waiting import DEADLINE_SECONDS

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^cat > (\S+) <<'END'\n(.*?)^END\n", re.MULTILINE | re.DOTALL)
_MODELS = {"smollm2": "reference", "gemma": "hf:gemma"}  # the stand-ins, by run
_TESTED_ELSEWHERE = ("map", "report", "calibrate")


def _mapped(folder: Path) -> None:
    shutil.copytree(weights_path("causal"), folder / "gemma")
    with kgbias.open(folder / "jobs.db") as study:
        for name, model in _MODELS.items():
            run = study.crawl(
                model,
                seeds=folder / "jobs.csv",
                samples=1,
                iterations=0,
                seed=1,  # which gives statements that are believed
                name=name,
            )
            run.measure()
            run.evidence(model, asking={"probes": 600})


def _run(command: str) -> None:
    words = shlex.split(command)[1:]
    if not set(words) & {*_TESTED_ELSEWHERE}:
        words = ["hf:gemma" if word.startswith("hf:") else word for word in words]
        result = CliRunner().invoke(cli, words, env={"KGBIAS_STORE": "jobs.db"})
        assert result.exit_code == 0, f"{command}: {result.output}"


@pytest.mark.slow
@pytest.mark.integration
def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_modules("matplotlib", "pandas")
    monkeypatch.chdir(tmp_path)
    made, runs = set(), set()
    for language, block in _BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text("utf-8")):
        if language == "python":
            exec(compile(block, "docs/tutorial.md", "exec"), {})
            continue
        for name, content in _FILE.findall(block):
            Path(name).write_text(content, "utf-8")
            if name == "jobs.csv":
                _mapped(tmp_path)
        for line in _FILE.sub("", block).splitlines():
            made |= {line.split()[0]}
            if line.startswith("kgbias "):
                _run(line)
                runs |= {*re.findall(r"--run (\S+)", line)}
    assert runs == {*_MODELS}
    assert made == {
        "git",
        "cd",
        "make",
        "source",
        "export",
        ".venv/bin/uv",
        "python",
        "kgbias",
        "pdflatex",
    }
    paper = (tmp_path / "paper.tex").read_text("utf-8")
    for file in re.findall(r"\\(?:includegraphics(?:\[.*?\])?|input)\{(.*?)\}", paper):
        assert Path(file).stat().st_size > 100, file
    if shutil.which("pdflatex"):
        subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
            check=True,
            capture_output=True,
            timeout=DEADLINE_SECONDS,
        )
