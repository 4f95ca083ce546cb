"""What comes of each kind of server that `tests.served` has, and the table of them in the docs."""

from pathlib import Path

import pytest

from tests.conftest import one_in
from tests.served import KINDS, Kind, check, crawled

DOCS = Path(__file__).parents[2] / "docs" / "server-answers.md"


@pytest.mark.parametrize(
    "kind", one_in(5, [kind for kinds in KINDS.values() for kind in kinds]), ids=lambda k: k.what
)
def test_nothing_but_answers_is_read_and_every_failure_has_its_reason(
    kind: Kind, tmp_path: Path
) -> None:
    check(kind, crawled(kind, tmp_path))


def test_the_table_of_the_docs_has_these_kinds() -> None:
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| ")]
    told = {row.split(" | ")[0].removeprefix("| "): row for row in rows}
    for kind in (kind for kinds in KINDS.values() for kind in kinds):
        assert (kind.comes or kind.ends) in told[kind.what]
        assert told[kind.what].endswith(f"| {2 if kind.ends else 0} |")
