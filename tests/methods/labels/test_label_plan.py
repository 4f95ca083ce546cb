"""What labels would give, before anybody gives one."""

from pathlib import Path

import pytest

import kgbias
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Group
from kgbias.methods import labels
from tests.conftest import require_modules
from tests.report_data import measured_run

require_modules("scipy")
GROUPS = tuple(Group(name, "size") for name in ("Tall people", "Small people", "Wide people"))


def test_a_plan_says_what_labels_would_give(store: SQLiteStore, tmp_path: Path) -> None:
    measured_run(store, GROUPS, [f"thing {n}" for n in range(30)], 80)
    run = kgbias.open(str(tmp_path / "kgbias.db")).run("by hand")
    few, many = (labels.expect_figures(run, n, measures="regard") for n in (40, 230))
    wide, narrow = ([p.width for p in plan if p.figure == "overall_regard"] for plan in (few, many))
    assert len(wide) == 3 and all(b < a for a, b in zip(wide, narrow, strict=True))
    assert {p.basis for p in few} == {"the worst case: labels at random"}
    assert not store.labels()
    with pytest.raises(kgbias.KgbiasError, match="at least 1"):
        labels.expect_figures(run, 0)
