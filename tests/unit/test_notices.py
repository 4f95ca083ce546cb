"""Data of others keep their notice: each file of data that ships has a row in NOTICE.md."""

import re
import tomllib
from fnmatch import fnmatchcase

import pytest

from tests.conftest import ROOT

PATTERNS = [
    pattern
    for line in (ROOT / "NOTICE.md").read_text("utf-8").splitlines()
    if line.startswith("| `")
    for pattern in re.findall(r"`([^`]+)`", line.split("|")[1])
]
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
    assert {"LICENSE", "NOTICE.md"} <= set(project["license-files"])
    for file in project["license-files"]:
        assert (ROOT / file).is_file()
