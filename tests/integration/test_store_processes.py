"""What other processes do with a SQLite file."""

import subprocess
import sys
from pathlib import Path

import pytest

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Group, Run
from kgbias.models.base import ModelInfo

pytestmark = pytest.mark.integration


def test_a_second_opening_in_one_process_leaves_the_first_its_locks(tmp_path: Path) -> None:
    """Closing any handle of a file drops the locks that a process has on it, by POSIX. Without them
    another process would take itself for the last one, and remove the log that we write to."""
    path = str(tmp_path / "kgbias.db")
    other = (
        f"import sqlite3; db = sqlite3.connect({path!r}); "
        "db.execute('SELECT * FROM run').fetchall(); db.close()"
    )
    with SQLiteStore(path) as first:
        first.begin_run(Run("one", ModelInfo("m"), {}, (Group("As", "c"),)))
        with SQLiteStore(path, create=False) as second:
            assert second.find_run().name == "one"
        subprocess.run([sys.executable, "-c", other], check=True)
        assert Path(path + "-wal").exists()
        first.set_status(first.find_run().id, "complete")
        assert first.find_run().status == "complete"


def test_what_is_committed_is_on_the_disk(tmp_path: Path) -> None:
    """Only without tests/conftest.py, which spares the tests that wait."""
    path = tmp_path / "kgbias.db"
    code = (
        "from kgbias.graph.sqlite import SQLiteStore\n"
        "from kgbias.graph.types import Run\n"
        "from kgbias.models.base import ModelInfo\n"
        f"store = SQLiteStore({str(path)!r})\n"
        "store.begin_run(Run('one', ModelInfo('m'), {}, ()))\n"
        "print([store._db.execute(f'PRAGMA {name}').fetchone()[0]"
        " for name in ('synchronous', 'journal_mode')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[2, 'wal']"  # 2 is FULL
