"""A damaged or unwritable SQLite file is told in one line, whatever is asked of it."""

import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest

import kgbias
from kgbias.cli.options import json_option, store_option
from kgbias.cli.show import Output
from kgbias.errors import KgbiasError, StoreError
from kgbias.graph.sqlite import SQLiteStore, schema
from kgbias.graph.sqlite.connection import Connection, Cursor, translate_errors
from kgbias.graph.sqlite.schema import user_version
from kgbias.graph.store import StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.types import Group, GroupScore, Metric, ProbedEdge, ProbeRun, Score
from tests.report_data import measured_run
from tests.texts import Texts

GROUPS = (Group("Women", "gender"), Group("Men", "gender"))


@pytest.fixture
def file(store: SQLiteStore) -> Path:
    measured_run(store, GROUPS, [f"word {n}" for n in range(40)])
    store.close()
    return Path(store.url)


def everything(path: Path) -> None:
    """Read all there is, and write a little."""
    with open_store(str(path), create=False) as store:
        store.summaries()
        run = StoredRun.find(store)
        triples = run.triples()
        store.answers([g.answer_key for g in run.generations()])
        (
            run.find_all(GroupScore),
            run.topics(),
            run.attributions(),
            run.associations(),
            run.metrics(),
        )
        for probing in run.find_all(ProbeRun):
            run.find_all(ProbedEdge, asking=probing)
        run.near_duplicates(), run.centralities()
        store.save_scores(run.id, Metric("m", "s", "1"), [Score(t.id, 1.0) for t in triples])
        store.set_status(run.id, "complete")


def told(path: Path) -> str:
    with pytest.raises(StoreError) as found:
        everything(path)
    assert "\n" not in str(found.value)
    return str(found.value)


def test_a_store_that_was_removed_takes_nothing_more(file: Path, texts: Texts) -> None:
    with open_store(str(file), create=False) as store:
        run = StoredRun.find(store)
        store.set_status(run.id, "complete")
        for path in file.parent.glob(f"{file.name}*"):
            path.unlink()
        with texts.raises(StoreError):
            store.set_status(run.id, "running")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_file(file: Path, share: float) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)])
    assert "is damaged" in told(file) and ".recover" in told(file)


def test_a_page_that_was_overwritten(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    for page in range(2, len(whole) // 4096):
        whole[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    file.write_bytes(whole)
    assert "is damaged" in told(file)


def test_bits_that_flipped_are_no_traceback(file: Path) -> None:
    """Most flips change a text and go unseen; those that are seen are told in one line."""
    whole = file.read_bytes()
    random = Random(0)
    seen = 0
    for _ in range(60):
        wrong = bytearray(whole)
        for _ in range(30):
            wrong[random.randrange(100, len(wrong))] ^= 1 << random.randrange(8)
        for log in file.parent.glob(f"{file.name}-*"):
            log.unlink()
        file.write_bytes(wrong)
        try:
            everything(file)
        except KgbiasError as error:
            assert "\n" not in str(error)
            seen += 1
    assert seen > 20


def test_what_a_wrong_value_leads_to_is_put_down_to_the_damage(file: Path) -> None:
    with pytest.raises(TypeError), open_store(str(file), create=False):
        raise TypeError("a mistake of ours stays one")
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        places = "SELECT rootpage FROM sqlite_master WHERE name IN ('triple', 'score')"
        (a,), (b,) = db.execute(places)
    whole = bytearray(file.read_bytes())
    one, other = slice((a - 1) * 4096, a * 4096), slice((b - 1) * 4096, b * 4096)
    whole[one], whole[other] = whole[other], whole[one]
    file.write_bytes(whole)
    with pytest.raises(StoreError, match="is damaged"), open_store(str(file), create=False):
        raise TypeError("a number where a text should be")
    with pytest.raises(StoreError, match="is damaged"), kgbias.open(file):
        raise KeyError("a measure that no one knows")


def test_a_wrong_value_that_is_printed_later_is_put_down_to_the_damage(
    file: Path, texts: Texts
) -> None:
    """Whatever the command, which has closed its store by then."""

    def print_text() -> None:
        raise TypeError("a text where a number should be")

    @click.command()
    @store_option
    @json_option
    def command(store_url: str) -> Output:
        with kgbias.open(store_url) as study:
            return Output(list(study.runs()), print_text)

    def run() -> None:
        command.main(["--store", str(file)], standalone_mode=False)

    with pytest.raises(TypeError):
        run()  # a mistake of ours stays one
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE group_score SET value = 'high'")
    with texts.raises(StoreError):
        run()


def test_the_log_of_another_database_is_not_written_over_a_store(
    file: Path, tmp_path: Path, texts: Texts
) -> None:
    """As it lies there after one file was copied over another: SQLite would take it for the
    store's."""
    before = file.read_bytes()
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("PRAGMA journal_mode = wal")
        other.execute("CREATE TABLE t (x)")
        other.commit()
        log = (tmp_path / "other.db-wal").read_bytes()
    Path(f"{file}-wal").write_bytes(log)
    with texts.raises(StoreError):
        SQLiteStore(file).runs()
    assert file.read_bytes() == before and Path(f"{file}-wal").read_bytes() == log


def test_a_file_that_may_only_be_read(
    file: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    store = open_store(str(file), create=False)
    assert isinstance(store, SQLiteStore)
    run = store.find_run()
    store._writable = True  # as if it had been written to before
    store._db.execute("PRAGMA query_only = 1")
    with texts.raises(StoreError):
        store.set_status(run.id, "complete")


def test_a_full_disk(file: Path, texts: Texts) -> None:
    store = open_store(str(file), create=False)
    assert isinstance(store, SQLiteStore)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    run = StoredRun.find(store)
    scores = [Score(t.id, 1.0, "x" * 5000) for t in run.triples()]
    with texts.raises(StoreError):
        run.save_scores(Metric("m", "s", "1"), scores)
    assert "m" not in run.metrics()


def test_a_header_that_names_another_format(file: Path, texts: Texts) -> None:
    data = bytearray(file.read_bytes())
    data[44:48] = (9).to_bytes(4, "big")  # the schema's format, 1 to 4
    file.write_bytes(data)
    with texts.raises(StoreError):
        everything(file)


@pytest.mark.parametrize(
    ("table", "column", "said"),
    [("group_score", "method", "no column named method"), ("score", "details", "4 columns but 5")],
)
def test_a_table_that_lacks_a_column(file: Path, table: str, column: str, said: str) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    with open_store(str(file), create=False) as store:
        run = store.find_run(None)
        with pytest.raises(
            StoreError, match=rf"is damaged \(table {table} has {said}.*\): restore"
        ):
            if table == "score":
                store.save_scores(run.id, Metric("m", "s", "1"), [Score("t", 1.0)])
            else:
                one = GroupScore(1.0, 0.0, 2.0, 3, GROUPS[0].id, "m", "by hand")
                store.put(run.id, GroupScore, [one])


def test_a_value_that_another_file_does_not_take(file: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        (schema,) = db.execute(
            "SELECT sql FROM sqlite_master WHERE name = 'group_score'"
        ).fetchone()
        change = "UPDATE sqlite_master SET sql = ? WHERE name = 'group_score'"
        db.execute("PRAGMA writable_schema = ON")
        db.execute(change, (schema.replace("n INTEGER NOT NULL", "n INTEGER         "),))
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        assert db.execute("UPDATE group_score SET n = NULL").rowcount
        db.execute("PRAGMA writable_schema = ON")
        db.execute(change, (schema,))
    with pytest.raises(StoreError, match=f"{file} is damaged"), kgbias.open(file) as study:
        study.store.push(tmp_path / "other.db")


def test_a_file_that_another_program_locks(
    file: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    store = open_store(str(file), create=False)
    assert isinstance(store, SQLiteStore)
    run = store.find_run()
    store._db.execute("PRAGMA busy_timeout = 1")
    store._db.patience = 0
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with texts.raises(StoreError):
        store.set_status(run.id, "complete")


def test_who_turns_to_the_log_beside_others_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Texts
) -> None:
    """SQLite refuses it at once to some of several that open a new file, about one time in ten, and
    knows no way to make it do so."""
    plain, refused = sqlite3.Cursor.execute, []

    class Refusing(Cursor):
        def execute(self, sql: str, parameters: Any = (), /) -> Any:
            if sql.endswith("journal_mode = WAL") and len(refused) < 2:
                refused.append(sql)
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorname = "SQLITE_BUSY"
                raise error
            return plain(self, sql, parameters)

    monkeypatch.setattr("kgbias.graph.sqlite.connection.Cursor", Refusing)
    with open_store(str(tmp_path / "new.db")) as store:
        assert not store.summaries() and len(refused) == 2
    refused.clear()
    monkeypatch.setattr("kgbias.graph.sqlite.database.MAX_BUSY_SECONDS", -1)
    with texts.raises(StoreError):
        open_store(str(tmp_path / "other.db"))
    assert len(refused) == 1


@pytest.mark.parametrize("work", ["iterate", "fetchone", "fetchall"])
def test_errors_while_rows_are_read(work: str, tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "x.db", factory=Connection)
    db.path = "x.db"
    db.execute("CREATE TABLE t (a TEXT)")
    db.execute("INSERT INTO t VALUES (CAST(X'ff' AS TEXT))")  # no UTF-8
    ways: dict[str, Callable[[], object]] = {
        "iterate": lambda: list(db.execute("SELECT a FROM t")),
        "fetchone": lambda: db.execute("SELECT a FROM t").fetchone(),
        "fetchall": lambda: db.execute("SELECT a FROM t").fetchall(),
    }
    with pytest.raises(StoreError, match=r"x\.db is damaged"):
        ways[work]()


def test_mistakes_of_kgbias_stay_what_they_are() -> None:
    db = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError, match="syntax error"), translate_errors("x"):
        db.execute("SELEKT 1")
    with pytest.raises(sqlite3.ProgrammingError), translate_errors("x"):
        db.execute("SELECT ?", ())


def test_a_log_that_cannot_be_mapped_is_not_put_down_to_the_disk(texts: Texts) -> None:
    """SQLite calls it a disk I/O error; `ulimit -v` causes it."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_SHMMAP"
    with (
        texts.raises(StoreError),
        translate_errors("x.db"),
    ):
        raise error


def changed(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def test_a_store_that_was_dumped_and_read_again_is_one(
    file: Path, tmp_path: Path, texts: Texts
) -> None:
    """`.dump | sqlite3`, which everybody repairs with, loses the numbers in the header."""
    again = tmp_path / "again.db"
    with closing(sqlite3.connect(file)) as old, closing(sqlite3.connect(again)) as new:
        new.executescript("".join(f"{line}\n" for line in old.iterdump()))
        assert new.execute("PRAGMA user_version").fetchone() == (0,)
    before = again.read_bytes()
    with open_store(str(again), create=False) as store:
        assert not store.find_faults() and store.summaries()
    assert again.read_bytes() == before
    everything(again)
    with closing(sqlite3.connect(again)) as new:
        assert new.execute("PRAGMA user_version").fetchone() != (0,)
    changed(again, "PRAGMA user_version = 0", "ALTER TABLE triple RENAME COLUMN object_id TO o")
    texts.check_lines(told(again), "tables match")


@pytest.mark.parametrize("version", [-1, 1, 24, 99, 199])
def test_a_store_of_a_development_version_is_left_as_it_is(
    file: Path, version: int, texts: Texts
) -> None:
    changed(file, f"PRAGMA user_version = {version}")
    before = file.read_bytes()
    texts.check_lines(told(file), "development version")
    assert file.read_bytes() == before


NEXT = """
CREATE TABLE remark (text TEXT NOT NULL);
INSERT INTO remark VALUES ('mine');
"""


def dump(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as db:
        return [*db.iterdump(), str(user_version(db))]


def test_the_next_migration_is_applied_to_a_store_that_exists(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dump(file)
    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, NEXT])
    for _ in range(2):
        open_store(str(file), create=False).close()
        after = dump(file)
        assert after[-1] == str(int(before[-1]) + 1)
        assert set(before[:-1]) < set(after) and "INSERT INTO \"remark\" VALUES('mine');" in after


@pytest.mark.parametrize("last", ["SELEKT 1;", "INSERT INTO run SELECT * FROM run;"])
def test_a_migration_that_fails_midway_leaves_the_store_as_it_was(
    file: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    before = dump(file)
    step = f"{NEXT}DELETE FROM triple;\n{last}"
    with monkeypatch.context() as patched, pytest.raises((StoreError, sqlite3.Error)):
        patched.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, step])
        open_store(str(file), create=False)
    assert dump(file) == before
    everything(file)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


@pytest.mark.parametrize(
    ("statements", "what"),
    [
        (["CREATE TRIGGER t AFTER INSERT ON triple BEGIN DELETE FROM triple; END"], "trigger 't'"),
        ([f"CREATE VIEW v AS {ENDLESS}"], "view 'v'"),
        (["DROP TABLE state", f"CREATE VIEW state AS {ENDLESS}"], "view 'state'"),
        (["CREATE VIRTUAL TABLE words USING fts5(text)"], "virtual table 'words'"),
        (
            ["ALTER TABLE triple ADD COLUMN x GENERATED ALWAYS AS (length(zeroblob(9)))"],
            "computed column 'x'",
        ),
        (["CREATE INDEX i ON triple (length(zeroblob(9) || id))"], "computed index 'i'"),
        (["CREATE INDEX i ON triple (id) WHERE object_id > 'x'"], "computed index 'i'"),
        (
            ["CREATE TABLE own (a TEXT DEFAULT /**/ (randomblob(900000000)))"],
            "computed default of 'a'",
        ),
        (["CREATE TABLE own (a TEXT CHECK/**/(length(a) > 9))"], "constraint of the table 'own'"),
        (["CREATE TABLE own (a UNIQUE ON/**/CONFLICT IGNORE)"], "constraint of the table 'own'"),
        (
            ["DELETE FROM score", "CREATE UNIQUE INDEX i ON score (metric_id)"],
            "constraint of the table score 'UNIQUE metric_id'",  # INSERT OR REPLACE would obey it
        ),
        (
            ["ALTER TABLE flagged ADD COLUMN x TEXT NOT NULL DEFAULT ''"],
            "constraint of the table flagged 'NOT NULL x'",
        ),
        (["CREATE VIEW 'a\x1b[2Jb' AS SELECT 1"], r"view 'a"),
    ],
)
def test_what_acts_by_itself_is_not_opened(file: Path, statements: list[str], what: str) -> None:
    changed(file, *statements)
    assert f"it holds the {what}" in told(file) and "\x1b" not in told(file)


def test_what_an_older_version_remarked_in_a_table_is_not_a_constraint(file: Path) -> None:
    changed(file, "CREATE TABLE own (a TEXT -- SQLite's integrity check wants the key first\n)")
    with open_store(str(file), create=False):
        pass


def test_a_value_that_is_too_deep(file: Path, texts: Texts) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    changed(file, f"UPDATE run SET config = '{deep}'")
    texts.check_lines(told(file), "value is")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE score SET value = 'high'", "score.value out of its range or type"),
        ("UPDATE score SET value = 9e999", "score.value out of its range or type"),
        (
            "UPDATE score SET value = 7.0 WHERE metric_id IN (SELECT id FROM metric WHERE "
            "measure = 'regard')",
            "a score of regard out of its range",
        ),
        ("UPDATE generation SET count = -1", "generation.count out of its range or type"),
        (f"UPDATE generation SET count = {2**63 - 1}", "generation.count out of its range or type"),
        (f"UPDATE generation SET iteration = {10**18}", "generation.iteration out of its range"),
        ("UPDATE object SET text = x'00ff'", "object.text out of its range or type"),
        ("UPDATE group_score SET low = -9e999", "group_score.low out of its range or type"),
        (
            "UPDATE run_metric SET measure = 'x' WHERE measure = 'regard'",
            "run_metric.measure that is not its metric's",
        ),
        ("UPDATE score SET details = '{'", "score.details out of its range or type"),
        ("DROP INDEX generation_by_run", "the index generation_by_run is missing"),
    ],
)
def test_values_that_no_store_holds_are_found(file: Path, change: str, fault: str) -> None:
    changed(file, change)
    with open_store(str(file), create=False) as store:
        assert fault in " ".join(str(found) for found in store.find_faults())


def test_values_that_sqlite_takes_for_a_mistake_of_the_statement(file: Path, texts: Texts) -> None:
    changed(file, f"UPDATE generation SET count = {2**63 - 1}")
    texts.check_lines(told(file), "damaged (integer")
    db = sqlite3.connect(":memory:", factory=Connection)
    with pytest.raises(StoreError, match=r"is damaged \(malformed JSON\)"):
        db.execute("SELECT value FROM json_each('[')").fetchall()


def test_ctrl_c_ends_a_query_that_does_not_end(file: Path) -> None:
    with (
        open_store(str(file), create=False) as store,
        pytest.raises(KeyboardInterrupt),
    ):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        store._db.execute(ENDLESS.replace("SELECT x FROM n", "SELECT max(x) FROM n"))


def test_a_traceback_that_a_value_led_to_names_it(file: Path, texts: Texts) -> None:
    changed(file, f"UPDATE generation SET iteration = {10**18}")
    with (
        texts.raises(StoreError),
        open_store(str(file), create=False),
    ):
        raise MemoryError
