"""Data of others keep their notice: each file of data that ships has a row in NOTICE.md."""

import re
import tomllib
from fnmatch import fnmatchcase

import pytest

from tests.conftest import ROOT

NOTICES = [ROOT / "NOTICE.md", *sorted(ROOT.glob("kgbias/methods/*/NOTICE.md"))]


def list_patterns() -> list[str]:
    """The files that the notices are about: those of a method are named from its folder."""
    found = []
    for path in NOTICES:
        folder = path.parent.relative_to(ROOT)
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("| `"):
                named = re.findall(r"`([^`]+)`", line.split("|")[1])
                found += [(folder / name).as_posix() for name in named]
    return found


PATTERNS = list_patterns()
# What draws pages, and what is written about data, is no data.
CODE = {".py", ".pyi", ".pyc", ".js", ".css", ".html", ".md", ".cypher", ".typed"}
DECLARATIONS = {"py.typed", "entry_points.toml"}
DATA = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("kgbias", "prompts")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix not in CODE and path.name not in DECLARATIONS
)


@pytest.mark.parametrize("file", DATA)
def test_every_file_of_data_has_one_notice(file: str) -> None:
    found = [pattern for pattern in PATTERNS if fnmatchcase(file, pattern)]
    assert len(found) == 1, f"{file} needs a row in NOTICE.md, its source and its licence"


def test_every_notice_is_about_a_file() -> None:
    for pattern in PATTERNS:
        assert any(fnmatchcase(file, pattern) for file in DATA), pattern


def test_notices_are_in_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    patterns = project["license-files"]
    assert "LICENSE" in patterns
    for path in NOTICES:
        assert any(fnmatchcase(path.relative_to(ROOT).as_posix(), pattern) for pattern in patterns)
    for pattern in patterns:
        assert list(ROOT.glob(pattern))
