"""A stranger's database, a store that cannot be written, a full disk, a damaged page."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.attack.commands import Commands
from tests.attack.disturbing import WRITERS, Disturber, damage_stores
from tests.attack.worlds import TRIPLES, AttackWorld
from tests.conftest import sweep_params

pytestmark = pytest.mark.attack
NOBODY = 65534


def _foreign(path: Path, application: int = 0) -> bytes:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE contacts (name TEXT)")
        db.execute("INSERT INTO contacts VALUES ('Anna')")
        db.execute(f"PRAGMA application_id = {application}")
        db.commit()
    return path.read_bytes()


@pytest.mark.parametrize(
    "argv",
    [
        ("runs",),
        ("report",),
        ("export",),
        ("measure",),
        ("structure",),
        ("query", "--cypher", "RETURN 1"),
        ("import", TRIPLES),
    ],
)
@pytest.mark.parametrize("application", [0])
def test_another_applications_database_is_left_as_it_is(
    commands: Commands, world: Path, argv: tuple[str, ...], application: int
) -> None:
    before = _foreign(world / "other.db", application)
    ended = commands.run(*argv, "--store", "other.db", cwd=world)
    assert ended.code == 2 and not ended.fault, ended
    assert (world / "other.db").read_bytes() == before
    assert not list(world.glob("other.db-*"))


def test_a_store_says_what_it_is(world: Path) -> None:
    with closing(sqlite3.connect(world / "kgbias.db")) as db:
        assert db.execute("PRAGMA application_id").fetchone() != (0,)


def test_reading_leaves_a_store_as_it_is(commands: Commands, world: Path) -> None:
    before = (world / "kgbias.db").read_bytes()
    for argv in (
        ("runs",),
        ("report", "r"),
        ("export", "r"),
        ("compare", "r"),
        ("query", "--cypher", "MATCH (n) RETURN count(n)"),
    ):
        ended = commands.run(*argv, cwd=world)
        assert ended.code == 0, ended
        assert (world / "kgbias.db").read_bytes() == before


def test_a_store_in_a_folder_that_cannot_be_written_is_read(
    commands: Commands, world: Path, tmp_path: Path
) -> None:
    if os.geteuid():
        pytest.skip("only root can become somebody who may not write")
    for folder in (*tmp_path.parents, tmp_path):
        folder.chmod(folder.stat().st_mode | 0o055) if folder.is_relative_to("/tmp") else None
    (world / "kgbias.db").chmod(0o444)
    for argv in (("runs",), ("export", "r"), ("compare", "r")):
        ended = commands.run(*argv, cwd=world, uid=NOBODY)
        assert ended.code == 0, ended
    for argv in (("structure", "r"), ("import", TRIPLES)):
        ended = commands.run(*argv, cwd=world, uid=NOBODY)
        assert ended.code == 2 and not ended.fault and ended.err.count("\n") == 1, ended


def test_damaged_stores(commands: Commands, whole_world: AttackWorld, tmp_path: Path) -> None:
    tally = damage_stores(commands, whole_world, tmp_path, 10, 16, max_commands=2)
    assert not tally.faults, "\n".join(tally.faults)
    assert tally.refused_count, "the damage must be felt"


def test_a_wrong_value_that_is_only_shown_is_put_down_to_the_store(
    commands: Commands, world: Path
) -> None:
    with closing(sqlite3.connect(world / "kgbias.db")) as db, db:
        db.execute("UPDATE group_score SET value = 'high'")
    ended = commands.run("ask", "women and music", "--set", "encoder=none", cwd=world)
    assert ended.code == 2 and "group_score.value out of its range or type" in ended.err, ended


QUICK = ("import", "measure", "structure", "export csv-pair", "export neo4j-admin")


@pytest.mark.parametrize("name", sweep_params(5, [*QUICK, "report"]))
def test_a_full_disk(
    commands: Commands, whole_world: AttackWorld, tmp_path: Path, name: str
) -> None:
    disturber = Disturber(commands, whole_world, tmp_path, 16)
    tally = disturber.full(name, WRITERS[name], 4 if name != "report" else 1)
    assert not tally.faults, "\n".join(tally.faults)
    assert name == "report" or tally.refused_count


@pytest.mark.parametrize("name", QUICK)
def test_a_kill(commands: Commands, whole_world: AttackWorld, tmp_path: Path, name: str) -> None:
    tally = Disturber(commands, whole_world, tmp_path, 16).kill(name, WRITERS[name], 2)
    assert not tally.faults, "\n".join(tally.faults)


@pytest.mark.parametrize("name", ["import", "measure", "export csv"])
def test_two_at_once(
    commands: Commands, whole_world: AttackWorld, tmp_path: Path, name: str
) -> None:
    tally = Disturber(commands, whole_world, tmp_path, 16).twice(name, WRITERS[name], 1)
    assert not tally.faults, "\n".join(tally.faults)
