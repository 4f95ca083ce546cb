"""Fixtures of the attacks: commands on tap, and a small measured store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.commands import Commands
from tests.attack.worlds import AttackWorld


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with Commands(tmp_path_factory.mktemp("commands")) as commands:
        yield commands


@pytest.fixture(scope="session")
def whole_world(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> AttackWorld:
    return AttackWorld(commands, tmp_path_factory.mktemp("worlds") / "world")


@pytest.fixture
def world(whole_world: AttackWorld, tmp_path: Path) -> Path:
    """A folder with kgbias.db, where the run `r` is measured, triples.csv and scores.csv."""
    return whole_world.copy(tmp_path / "world")
