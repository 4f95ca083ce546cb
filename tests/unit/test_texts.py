"""What people are told is held word for word (`tests.texts`)."""

import ast
import json
from pathlib import Path

import pytest

import tests.texts
from kgbias.errors import DataError, UsageError
from tests.texts import FILE_NAME, ROOT, Texts

NODE = "unit/test_own.py::test_it[1]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of tests whose texts are "no group 'Mem'" and two lines with a path."""
    monkeypatch.setattr(tests.texts, "ROOT", tmp_path)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    (tmp_path / "unit").mkdir()
    renewed = Texts(NODE, is_renewed=True, folders=(tmp_path,))
    say_both(renewed, tmp_path)
    renewed.finish()
    return tmp_path


def say_both(texts: Texts, folder: Path, group: str = "Mem") -> None:
    with texts.raises(UsageError):
        raise UsageError(f"no group '{group}'")
    texts.check(f"read {folder}/said.csv\nfrom http://127.0.0.1:4711/v1\n")


def test_what_was_said_is_read_again(folder: Path) -> None:
    stored = json.loads((folder / "unit" / FILE_NAME).read_text())
    lines = ["read TMP/said.csv", "from http://127.0.0.1:PORT/v1", ""]
    assert stored == {"test_own.py::test_it[1]": ["no group 'Mem'", lines]}
    texts = Texts(NODE, is_renewed=False, folders=(folder,))
    say_both(texts, folder)
    texts.finish()


def test_another_word_another_class_and_a_text_more_or_less_fail(folder: Path) -> None:
    with pytest.raises(AssertionError):
        say_both(Texts(NODE, is_renewed=False, folders=(folder,)), folder, "Men")
    texts = Texts(NODE, is_renewed=False, folders=(folder,))
    with pytest.raises(DataError), texts.raises(UsageError):
        raise DataError("no group 'Mem'")
    with pytest.raises(AssertionError):
        texts.finish()
    say_both(texts, folder)
    with pytest.raises(AssertionError):
        texts.check("and more")


def test_the_lines_with_a_part_are_held_and_no_others(folder: Path) -> None:
    renewed = Texts(NODE, is_renewed=True)
    renewed.check_lines("3 read\n  1 left out\n", "left out")
    renewed.finish()
    Texts(NODE, is_renewed=False).check_lines("4 read\n1 left out\n", "left out")
    for output in ("1 left out, alas", "2 left out", "1 left out\n1 left out", "nothing"):
        with pytest.raises(AssertionError):
            Texts(NODE, is_renewed=False).check_lines(output, "left out")


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob(FILE_NAME)), ids=str)
def test_each_text_is_of_a_test_that_is_there(path: Path) -> None:
    for key in json.loads(path.read_text("utf-8")):
        file, _, test = key.partition("::")
        tree = ast.parse((path.parent / file).read_text("utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert test.partition("[")[0] in functions, key
