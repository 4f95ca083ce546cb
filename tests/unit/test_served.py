"""What comes of each kind of server in `tests.server_kinds`, which the docs list."""

from pathlib import Path

import pytest

from tests.conftest import sweep_params
from tests.server_kinds import SERVER_KINDS, ServerKind, check_outcome, crawl_server


@pytest.mark.parametrize(
    "kind",
    sweep_params(5, [kind for kinds in SERVER_KINDS.values() for kind in kinds]),
    ids=lambda k: k.title,
)
def test_nothing_but_answers_is_read_and_every_failure_has_its_reason(
    kind: ServerKind, tmp_path: Path
) -> None:
    check_outcome(kind, crawl_server(kind, tmp_path))
