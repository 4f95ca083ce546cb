"""Deleting runs, checking stores, making them smaller, and copying them; tests/contract holds both
stores to what a deletion leaves."""

import json
import re
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import RunNotFound, StoreError, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.sqlite.maintenance import LABEL_BY_TABLE
from kgbias.graph.sqlite.schema import KEY_COLUMNS, list_references
from kgbias.graph.types import Answer, Generation, Group, Run, Triple
from kgbias.models.base import ModelInfo
from tests.texts import Texts

ELVES = Group("Elves", "peoples")


def a_run(store: SQLiteStore, name: str, objects: int, first: int = 0) -> Run:
    run = store.begin_run(Run(name, ModelInfo("m"), {"name": name}, (ELVES,)))
    store.keep_answers(
        [Answer(f"{name} {n}", run.model.id, "x" * 500, "stop") for n in range(objects)]
    )
    store.record_round(
        run.id,
        "none",
        0,
        [
            Generation(
                run.id,
                f"{n}",
                ELVES.id,
                "none",
                "object",
                0,
                0,
                "ok",
                answer_key=f"{name} {n}",
                triple=Triple("Elves", "love", f"thing {first + n}"),
            )
            for n in range(objects)
        ],
    )
    store.set_status(run.id, "complete")
    return run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "kgbias.db"
    with SQLiteStore(str(path)) as store:
        a_run(store, "large", 200)
        a_run(store, "small", 3, first=199)
    return path


def test_every_column_of_ids_is_known(tmp_path: Path) -> None:
    path = tmp_path / "kgbias.db"
    with SQLiteStore(str(path)) as store:
        a_run(store, "r", 1)
    known = {(r.table, r.column) for r in list_references()}
    own = {(table, KEY_COLUMNS.get(table, "id")) for table in LABEL_BY_TABLE}
    with closing(sqlite3.connect(path)) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for table in tables:
            for column in (row[1] for row in db.execute(f'PRAGMA table_info("{table}")')):
                if re.search(r"(^|_)(id|uid|key)$", column) and (table, column) not in known | own:
                    # ids that a row came with, or that its own table's rows are named by
                    assert (table, column) in {
                        ("answer", "model_id"),
                        ("label", "uid"),
                        ("probing", "id"),
                        ("choosing", "id"),
                        ("believing", "id"),
                        ("passage", "id"),
                        ("passage_relation", "id"),
                        ("flagged", "apx_id"),
                    }, f"say in references() what {table}.{column} refers to"


def test_deleting_says_first_and_needs_a_yes(path: Path) -> None:
    store = ["--store", str(path)]
    asked = CliRunner().invoke(cli, ["delete", "large", *store])
    assert isinstance(asked.exception, UsageError)
    assert "--yes" in str(asked.exception)
    assert "200  Generation" in asked.stderr
    assert "199  Triple" in asked.stderr
    done = CliRunner().invoke(cli, ["delete", "large", *store, "--yes", "--json"])
    told = {
        "run": "large",
        "deleted": {"Object": 199, "Triple": 199, "Run": 1, "Generation": 200, "Answer": 200},
    }
    assert json.loads(done.stdout) == told
    with kgbias.open(path) as study:
        assert [run.name for run in study.runs()] == ["small"]
        assert not study.store.verify()
        with pytest.raises(RunNotFound):
            study.store.delete("large")
        study.store.delete(study.run("small"))
        assert not study.runs()


def test_compact_gives_space_back(path: Path) -> None:
    with kgbias.open(path) as study:
        study.store.delete("large")
        done = study.store.compact()
        assert done.after < 0.65 * done.before
        assert done.after == path.stat().st_size
        assert study.store.compact().after == done.after
        assert [t.object for t in study.run().triples()] == ["thing 199", "thing 200", "thing 201"]


def test_compact_removes_what_nothing_refers_to(path: Path) -> None:
    with SQLiteStore(str(path)) as store:
        run = store.find_run("small")
        store.record_round(run.id, "none", 0, [])  # another reading of the round
        store.compact()
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT count(*) FROM object").fetchone() == (200,)
            assert db.execute("SELECT count(*) FROM answer").fetchone() == (203,)  # the log is kept
        assert store.find_faults() == []


def test_verify_finds_what_is_wrong(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE object SET text = 'other' WHERE text = 'thing 7'")
        db.execute("DELETE FROM triple WHERE id = (SELECT min(id) FROM triple)")
    found = CliRunner().invoke(
        cli, ["verify", "--store", str(path), "--json"], standalone_mode=False
    )
    assert found.return_value == 1
    faults = json.loads(found.stdout)["faults"]
    assert {(f["kind"], f["count"]) for f in faults} == {("id", 1), ("reference", 1)}
    page = path.read_bytes()
    path.write_bytes(page[: len(page) // 2] + b"\xff" * 4096 + page[len(page) // 2 + 4096 :])
    try:
        with kgbias.open(path) as study:
            assert any(f.kind == "file" for f in study.store.verify())
    except StoreError as error:  # where the damage is, decides when it is seen
        assert "damaged" in str(error)


def test_a_backup_is_one_moment_while_another_writes(path: Path, tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        with SQLiteStore(str(path)) as other:
            n = 0
            while not stop.is_set():
                other.keep_answers([Answer(f"more {n}", "m", "y" * 200, "stop")])
                n += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with kgbias.open(path) as study:
            for number in range(3):
                copy = study.store.backup(tmp_path / f"copy{number}.db")
    finally:
        stop.set()
        writer.join()
    with kgbias.open(copy) as study:
        assert not study.store.verify()
        assert len(study.runs()) == 2
    assert (
        subprocess.run(
            ["sha256sum", "--check", "copy2.db.sha256"], cwd=tmp_path, capture_output=True
        ).returncode
        == 0
    )
    with kgbias.open(copy) as study:
        study.store.delete("small")
        assert [f.kind for f in study.store.verify()] == ["checksum"]


def test_what_a_backup_must_not_replace(path: Path, tmp_path: Path) -> None:
    with kgbias.open(path) as study:
        with pytest.raises(UsageError, match="backed up to itself"):
            study.store.backup(path)
        notes = tmp_path / "notes.txt"
        notes.write_text("mine")
        with pytest.raises(StoreError, match="not a kgbias store"):
            study.store.backup(notes)
        assert notes.read_text() == "mine"
        used = tmp_path / "used.db"
        shutil.copy(path, used)
        with SQLiteStore(str(used)) as other:
            a_run(other, "third", 1)
            with pytest.raises(UsageError, match="in use"):
                study.store.backup(used)


def renamed(path: Path, *words: str) -> str:
    done = CliRunner().invoke(cli, ["rename-model", *words, "--store", str(path)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_a_model_is_called_what_one_likes(path: Path, tmp_path: Path, texts: Texts) -> None:
    local = ModelInfo("hf:/home/ann/tiny", "sha256:0123456789")
    with SQLiteStore(str(path)) as store:
        store.begin_run(Run("local", local, {}, (ELVES,)))
    texts.check(renamed(path, "m", "Model  A\n"))
    for name in ("Model A", "m", "tiny (012345)", "hf:/home/ann/tiny"):  # of either model
        other = "tiny (012345)" if name in ("Model A", "m") else "Model A"
        with texts.raises(UsageError):
            renamed(path, other, name)
    with texts.raises(UsageError):
        renamed(path, "m", "smollm2")
    with texts.raises(UsageError):
        renamed(path, "m", "M" * 61)
    with texts.raises(UsageError):
        renamed(path, "Model B", "x")
    copy = tmp_path / "copy.db"
    with kgbias.open(path) as study:
        assert [run.model.title for run in study.runs()] == ["Model A", "Model A", "tiny (012345)"]
        assert not study.store.verify()
        study.store.push(copy, run="small")
    with kgbias.open(copy) as study:
        assert study.run().model.title == "Model A"
    texts.check(renamed(path, "Model A", ""))
    with kgbias.open(path) as study:
        assert study.run("small").model.title == "m"


def test_two_revisions_of_a_model_are_not_renamed_together(path: Path, texts: Texts) -> None:
    with SQLiteStore(str(path)) as store:
        store.begin_run(Run("later", ModelInfo("m", "2"), {}, (ELVES,)))
    with texts.raises(UsageError):
        renamed(path, "m", "Model A")
