"""What people are told, word for word: `texts.json` of each folder of tests has the texts by test.

A test says in code what goes wrong and by which class of error; what is then said stands in the
file, and differs from it in no letter:

    def test_a_count_below_one(texts: Texts) -> None:
        with texts.raises(UsageError):
            check_repeat(0)
        texts.check(capsys.readouterr().err)

Of a longer output it names the lines by a word or two: `texts.check_lines(output, "left out")`.

`pytest -n 0 --renew-texts FILE` writes what is said now: read the difference before you commit it.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FILE_NAME = "texts.json"
ROOT = Path(__file__).parent.parent
_PORT = re.compile(r"(?<=127\.0\.0\.1:|localhost:)\d+")


class Texts:
    """The texts of a test, in the order in which it checks them. `folders` are those whose names
    differ from call to call."""

    def __init__(self, node_id: str, *, is_renewed: bool, folders: tuple[Path, ...] = ()) -> None:
        file, _, test = node_id.partition("::")
        self._path = ROOT / Path(file).parent / FILE_NAME
        self._key = f"{Path(file).name}::{test}"
        self._is_renewed = is_renewed
        self._folders = folders
        self._expected = _read_texts(self._path).get(self._key, [])
        self._found: list[str] = []

    def check(self, text: object) -> None:
        """Hold a text, or an error's, against the next one of this test."""
        found = self._replace_places(str(text))
        place = len(self._found)
        self._found.append(found)
        if not self._is_renewed:
            assert place < len(self._expected), f"{self._key} has no text {place} in {self._path}"
            assert found == self._expected[place]

    def check_lines(self, text: object, part: str) -> None:
        """Hold the lines that have this part in them, of which there is one at least, against the
        next text of this test: what else stands there is another test's."""
        lines = [line.strip() for line in str(text).splitlines() if part in line]
        assert lines, f"{part!r} is in no line of {text}"
        self.check("\n".join(lines))

    @contextmanager
    def raises(
        self, kind: type[BaseException] | tuple[type[BaseException], ...]
    ) -> Iterator[pytest.ExceptionInfo[Any]]:
        """`pytest.raises`, and a check of what the error says."""
        with pytest.raises(kind) as caught:
            yield caught
        self.check(caught.value)

    def finish(self) -> None:
        """Write the texts if they are renewed; otherwise fail for one that nothing said."""
        if not self._is_renewed:
            assert len(self._found) == len(self._expected), f"{self._key} checks fewer texts"
            return
        texts = _read_texts(self._path) | {self._key: self._found}
        _write_texts(self._path, texts)

    def _replace_places(self, text: str) -> str:
        for folder in self._folders:
            text = text.replace(str(folder), "TMP")
        text = text.replace(str(ROOT), "REPOSITORY")
        return _PORT.sub("PORT", text)


def _read_texts(path: Path) -> dict[str, list[str]]:
    if not path.exists():
        return {}
    stored = json.loads(path.read_text("utf-8"))
    return {
        key: ["\n".join(text) if isinstance(text, list) else text for text in texts]
        for key, texts in stored.items()
    }


def _write_texts(path: Path, texts: dict[str, list[str]]) -> None:
    assert "PYTEST_XDIST_WORKER" not in os.environ, "renew texts with -n 0: one process writes them"
    # A text of several lines stands on as many.
    stored = {
        key: [text.split("\n") if "\n" in text else text for text in texts[key]]
        for key in sorted(texts)
    }
    path.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")
