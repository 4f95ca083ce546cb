"""What comes of each kind of server in `tests.server_kinds`, and the table of them in the docs."""

from pathlib import Path

import pytest

from tests.conftest import sweep_params
from tests.server_kinds import SERVER_KINDS, ServerKind, check_outcome, crawl_server

DOCS = Path(__file__).parents[2] / "docs" / "server-answers.md"


@pytest.mark.parametrize(
    "kind",
    sweep_params(5, [kind for kinds in SERVER_KINDS.values() for kind in kinds]),
    ids=lambda k: k.title,
)
def test_nothing_but_answers_is_read_and_every_failure_has_its_reason(
    kind: ServerKind, tmp_path: Path
) -> None:
    check_outcome(kind, crawl_server(kind, tmp_path))


def test_the_table_of_the_docs_has_these_kinds() -> None:
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| ")]
    told = {row.split(" | ")[0].removeprefix("| "): row for row in rows}
    for kind in (kind for kinds in SERVER_KINDS.values() for kind in kinds):
        assert (kind.outcome or kind.error_text) in told[kind.title]
        assert told[kind.title].endswith(f"| {2 if kind.error_text else 0} |")
