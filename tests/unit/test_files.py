"""Outputs are whole or not there at all, and replace nothing but files."""

import gzip
import os
import sqlite3
import stat
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kgbias.errors import DataError
from kgbias.io.files import replace_file, write_into_folder, write_text
from kgbias.io.reading import read_text
from tests.texts import Texts


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*"))


def test_a_failure_leaves_what_was_there(tmp_path: Path, texts: Texts) -> None:
    path = tmp_path / "a.csv"
    path.write_text("before")
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), replace_file(path) as partial:
            partial.write_text("half")
            raise error
    full = texts.raises(DataError)
    with full, replace_file(path) as partial:
        partial.write_text("half")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "before" and names(tmp_path) == ["a.csv"]
    with replace_file(path) as partial:
        assert partial.suffix == ".csv"
        partial.write_text("after")
    assert path.read_text() == "after" and names(tmp_path) == ["a.csv"]


def test_no_output_replaces_a_store_and_a_copy_of_one_does(tmp_path: Path, texts: Texts) -> None:
    path, other = tmp_path / "kgbias.db", tmp_path / "other.db"
    for where in (path, other):
        with closing(sqlite3.connect(where)) as db:
            db.execute("CREATE TABLE t (x)")
    before = path.read_bytes()
    with texts.raises(DataError):
        write_text(path, "group,predicate,object\n")
    assert path.read_bytes() == before and names(tmp_path) == ["kgbias.db", "other.db"]
    with replace_file(path) as partial:
        partial.write_bytes(other.read_bytes())


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_no_output_takes_a_name_that_sqlite_needs(
    ending: str, tmp_path: Path, texts: Texts
) -> None:
    """SQLite would take the table for its log, and remove it."""
    with closing(sqlite3.connect(tmp_path / "kgbias.db")) as db:
        db.execute("CREATE TABLE t (x)")
    with texts.raises(DataError):
        write_text(tmp_path / f"kgbias.db{ending}", "group,predicate,object\n")
    write_text(tmp_path / f"other{ending}", "group,predicate,object\n")
    write_text(tmp_path / ending, "group,predicate,object\n")


def test_a_link_to_a_folder_that_is_not_there_names_it(tmp_path: Path, texts: Texts) -> None:
    (tmp_path / "x.csv").symlink_to("nowhere/y.csv")
    with texts.raises(DataError):
        write_text(tmp_path / "x.csv", "a")


def test_a_reader_that_has_enough_is_no_error_of_ours() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        with pytest.raises(BrokenPipeError):
            write_text(Path(f"/dev/fd/{write}"), "a,b\n")
    finally:
        os.close(write)


def test_permissions_follow_the_umask_or_the_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "x")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
        (tmp_path / "new").chmod(0o600)
        write_text(tmp_path / "new", "y")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_devices_links_and_folders_stay(tmp_path: Path) -> None:
    write_text(Path("/dev/null"), "x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="it is a folder"):
        write_text(tmp_path / "folder", "x")
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "after"
    with pytest.raises(DataError, match="there is no folder"):
        write_text(tmp_path / "none" / "x", "x")
    assert names(tmp_path) == ["folder", "link", "real"]


def test_a_name_as_long_as_a_name_may_be(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 251 + ".csv")
    write_text(path, "x")
    assert path.read_text() == "x"


def test_a_folder_is_filled_at_the_end(tmp_path: Path, texts: Texts) -> None:
    folder = tmp_path / "some" / "figures"
    with pytest.raises(RuntimeError), write_into_folder(folder) as partial:
        (partial / "a").write_text("x")
        raise RuntimeError
    assert names(tmp_path) == []
    with write_into_folder(folder) as partial:
        (partial / "a").write_text("x")
        assert not folder.exists()  # a process that is killed here leaves it to the next one
        (partial / "sub").mkdir()
        (partial / "sub" / "b").write_text("x")
    assert names(tmp_path) == ["a", "b", "figures", "some", "sub"]
    (folder / "mine").write_text("kept")
    with (
        texts.raises(DataError),
        write_into_folder(folder) as partial,
    ):
        (partial / "a").write_text("y")
        (partial / "sub").write_text("y")
    assert (folder / "a").read_text() == "x" and (folder / "mine").read_text() == "kept"
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot write"), write_into_folder(tmp_path / "file"):
        pass
    assert (tmp_path / "file").read_text() == "x"


def test_two_that_fill_a_folder_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    with write_into_folder(folder) as one, write_into_folder(folder) as other:
        for number, partial in enumerate((one, other)):
            (partial / f"of {number}").write_text("x")
            (partial / "of both").write_text(str(number))
    assert names(folder) == ["of 0", "of 1", "of both"]
    assert (folder / "of both").read_text() == "0"  # the outer one ends last


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_small_file_takes_little_memory(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "groups.txt"
    path.write_bytes(pack(b"Bakers\n" * 200_000))  # several parts
    tracemalloc.start()
    try:
        assert read_text(path) == "Bakers\n" * 200_000
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 50_000_000
