"""The report of a run of two arms: beside each other, and what is left out is said."""

import json
from pathlib import Path

import pytest

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from tests.arms_data import arms_run
from tests.conftest import require_modules
from tests.texts import Texts
from tests.unit.test_arms import OUT, call, run  # noqa: F401

pytestmark = pytest.mark.integration


def test_the_report_sets_the_arms_side_by_side(
    run: StoredRun,  # noqa: F811
    tmp_path: Path,
) -> None:
    require_modules("matplotlib")
    path = tmp_path / "report.html"
    done = call(run, "report", "-o", str(path))
    assert done.exit_code == 0 and OUT in done.stderr
    page = path.read_text("utf-8")
    assert "71% of the statements make sense" in page and "83% of the statements" in page
    assert "Statements about peoples in each augmentation arm." in page
    assert "Overall regard per group, 95% intervals, arm prefix" in page
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["arms"] == ["none", "prefix"]
    counts = {(t["arm"], t["object"], t["group"]): t["count"] for t in data["triples"]}
    assert counts[0, "songs", 0] == 3 and counts[1, "songs", 0] == 1
    alone = tmp_path / "one.html"
    assert call(run, "report", "-o", str(alone), "--arm", "prefix").exit_code == 0
    data = json.loads(alone.read_text("utf-8").split('id="data">')[1].split("</script>")[0])
    assert data["arms"] == [] and {t["object"] for t in data["triples"]} == {"songs", "cruel"}


def test_a_report_of_nothing_that_counts(
    run: StoredRun,  # noqa: F811
    tmp_path: Path,
    texts: Texts,
) -> None:
    require_modules("matplotlib")
    path = tmp_path / "none.html"
    done = call(run, "report", "-o", str(path), "--set", "min-acceptability=1")
    assert done.exit_code == 0
    texts.check_lines(done.stderr, "13 statements")
    assert "0 distinct statements about" in path.read_text("utf-8")
    empty = call(run, "export", "--set", "min-acceptability=1")
    assert (empty.exit_code, empty.stdout) == (0, "")


def test_a_run_that_was_not_measured_for_sense_says_so(tmp_path: Path, texts: Texts) -> None:
    require_modules("matplotlib")
    with SQLiteStore(str(tmp_path / "plain.db")) as store:
        bare = arms_run(store, acceptability=False)
        path = tmp_path / "plain.html"
        done = call(bare, "report", "-o", str(path))
        assert done.exit_code == 0 and "left out" not in done.stderr
        page = path.read_text("utf-8")
        texts.check_lines(page, "been measured:")
        refused = call(bare, "report", "-o", str(path), "--set", "min-acceptability=0.5")
        assert "not measured for acceptability" in str(refused.exception)
