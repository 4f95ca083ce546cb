"""Profiles of the reference model: what is planted is found, what is not is not, and a kill changes
nothing."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.methods import profiles as profile_calls
from tests.conftest import require_modules
from tests.kill_rounds import count_answers
from tests.waiting import wait_until

pytestmark = pytest.mark.integration
require_modules("torch")
FEW = ("--limit", "2", "--samples", "2")
COMMAND = ["profiles", "--model", "reference", "--run", "a", *FEW]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("profiles") / "k.db"
    with kgbias.open(path, progress=False) as study:
        profile_calls.write_profiles(study, "reference", name="a")
    yield path


def accuracy(store: Path, *groups: str) -> tuple[float, float, float]:
    with kgbias.open(store, progress=False) as study:
        found = profile_calls.analyse_profiles(
            study.run("a"), group=groups, permutations=49, draws=0
        )
    told = found.classifications["group"]
    return told.by_name.value, told.chance, told.p_value


def test_planted_groups_are_told_apart_and_planted_nulls_are_not(store: Path) -> None:
    planted, chance, p = accuracy(store, "Velmari people", "Brolvek people")
    assert chance == 0.5 and planted > 0.8 and p < 0.05
    for null in (
        ("Velmari people", "Ruvashi people"),
        ("Brolvek people", "Selkoth people"),
        ("Mirdosh people", "Yantemi people"),
        ("Ostrans", "Thessals"),
    ):
        found, _, p = accuracy(store, *null)
        assert found < 0.75 and p > 0.05, null


def profiles(store: Path) -> list[object]:
    with kgbias.open(store, progress=False) as study:
        run = study.run("a")
        assert run.status == "complete"
        return [
            (p.path, p.labels, p.values_by_attribute()) for p in profile_calls.list_profiles(run)
        ]


@pytest.mark.slow
def test_killed_and_started_again_the_profiles_are_the_same(tmp_path: Path) -> None:
    whole, killed = tmp_path / "w.db", tmp_path / "k.db"
    with kgbias.open(whole, progress=False) as study:
        profile_calls.write_profiles(study, "reference", name="a", limit=2, samples=2)
    process = subprocess.Popen(
        [sys.executable, "-m", "kgbias", *COMMAND, "--store", str(killed)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: count_answers(killed) >= 30 or process.poll() is not None)
    process.kill()
    process.wait()
    before = count_answers(killed)
    assert before
    done = CliRunner().invoke(cli, [*COMMAND, "--store", str(killed), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["cached"] >= before and said["profiles"] == 88
    assert profiles(killed) == profiles(whole)
