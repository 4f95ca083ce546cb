"""A run of two arms through the front door and the command line: nothing adds the arms up, and what
is left out is said."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import kgbias
from kgbias.cli import cli
from kgbias.errors import UsageError
from kgbias.graph.selection import Selection, StatementStream, select_statements
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import GroupScore
from kgbias.measure.figures import read_figures, share_making_sense, update_run_figures
from kgbias.report.exhibits import run_exhibits
from kgbias.report.run_data import RunData
from tests.arms_data import arms_run
from tests.conftest import require_modules
from tests.report_data import shown_rows
from tests.texts import Texts

OUT = "left out 3 of 13 statements, those with an acceptability below 0.5"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[StoredRun]:
    with SQLiteStore(str(tmp_path / "arms.db")) as store:
        found = arms_run(store)
        update_run_figures(found)
        yield found


def call(run: StoredRun, *arguments: str) -> Result:
    command, *rest = arguments
    return CliRunner().invoke(cli, [command, run.name, "--store", run.store.url, *rest])


def test_figures_are_stored_arm_by_arm(run: StoredRun) -> None:
    regard = {
        (s.arm, s.group_id): (s.value, s.n)
        for s in run.find_all(GroupScore)
        if s.measure == "overall_regard"
    }
    elves, orcs = (g.id for g in run.groups)
    assert regard == {
        ("none", elves): (3.0, 4),
        ("none", orcs): (1.0, 1),
        ("prefix", elves): (1.0, 1),
        ("prefix", orcs): (-4.0, 4),
    }
    with kgbias.open(run.store.url) as study:
        arms = study.run("arms")
        rows = [(r.group, r.arm, r.statements, r.distinct) for r in arms.groups()]
        assert rows == [
            ("Elves", "none", 4, 2),
            ("Elves", "prefix", 1, 1),
            ("Orcs", "none", 1, 1),
            ("Orcs", "prefix", 4, 1),
        ]
        assert arms.figure("Orcs", "overall_regard", arm="prefix").value == -4
        with pytest.raises(kgbias.UsageError, match="arms none, prefix"):
            arms.figure("Orcs", "overall_regard")
        with pytest.raises(kgbias.UsageError, match="arms none, prefix"):
            arms.structure()
        everything = arms.figure("Orcs", "overall_regard", arm="prefix", min_acceptability=0)
        assert (everything.value, everything.n) == (-5.0, 5)


def test_measuring_again_removes_what_no_longer_counts(run: StoredRun) -> None:
    """A figure of no arm, and one of a group that lost all its statements."""
    before = run.find_all(GroupScore)
    pooled = GroupScore(-1.0, -5.0, 3.0, 10, run.groups[1].id, "overall_regard")
    run.put(GroupScore, [pooled])
    assert pooled not in read_figures(run)
    update_run_figures(run)
    assert run.find_all(GroupScore) == before


def test_the_share_of_sense_is_of_all_statements(run: StoredRun) -> None:
    data = RunData(run)
    none, prefix = data.arms
    assert (none.sense.value, none.sense.n) == (pytest.approx(5 / 7), 7)
    assert (prefix.sense.value, prefix.sense.n) == (pytest.approx(5 / 6), 6)
    assert none.sense.low < none.sense.value < none.sense.high
    assert none.distinct == pytest.approx(3 / 5)
    assert (none.echo_rate.value, none.echo_rate.n) == (pytest.approx(2 / 5), 5)
    assert prefix.echo_rate.n == 0  # nothing was shown
    assert share_making_sense([]).n == 0


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection(arm="prefix"),
        Selection(min_acceptability=0),
        Selection(exclude_echoes=True),
        Selection(min_acceptability=0.85, exclude_echoes=True, arm="none"),
    ],
)
def test_a_stream_has_what_is_selected(run: StoredRun, selection: Selection) -> None:
    stream, counted = StatementStream(run, selection), select_statements(run, selection)
    for _ in range(2):
        assert list(stream) == list(counted.triples) and len(stream) == len(counted.triples)
        assert stream.selected.as_dict() == counted.as_dict()
        assert stream.selected.note == counted.note
        assert (
            replace(
                stream.selected,
                triples=counted.triples,
                including_unacceptable=counted.including_unacceptable,
            )
            == counted
        )
    assert len(StatementStream(run, selection)) == len(counted.triples)
    assert counted.triples[0] in stream and "songs" not in stream


def test_a_stream_refuses_what_a_selection_refuses(
    run: StoredRun, tmp_path: Path, texts: Texts
) -> None:
    with pytest.raises(UsageError, match="no arm 'suffix'"):
        StatementStream(run, Selection(arm="suffix"))
    with SQLiteStore(str(tmp_path / "other.db")) as store:
        plain = arms_run(store, acceptability=False)
        with texts.raises(UsageError):
            StatementStream(plain, Selection(min_acceptability=0.5))


def test_what_an_export_left_out_is_said(run: StoredRun, tmp_path: Path) -> None:
    done = call(run, "export", "--format", "neo4j-admin", "-o", str(tmp_path / "import"))
    assert OUT in done.stderr and "5 triples to" in done.stderr
    assert OUT in (tmp_path / "import" / "README.txt").read_text()
    assert json.loads((tmp_path / "import.manifest.json").read_text())["selection"] == {
        "arms": ["none", "prefix"],
        "min_acceptability": 0.5,
        "statements": 13,
        "left_out": {"acceptability": 3},
    }


def test_exports_have_a_row_for_each_arm(run: StoredRun) -> None:
    done = call(run, "export", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    said = [(r["arm"], r["group"], r["object"], r["count"], r["acceptability"]) for r in rows]
    assert said == [
        ("none", "Elves", "smoke", "1", "0.8"),
        ("none", "Elves", "songs", "3", "0.9"),
        ("none", "Orcs", "songs", "1", "0.9"),
        ("prefix", "Elves", "songs", "1", "0.9"),
        ("prefix", "Orcs", "cruel", "4", "0.7"),
    ]
    assert OUT in done.stderr
    kept = call(run, "export", "--set", "min-acceptability=0", "--arm", "none")
    assert sum(json.loads(line)["count"] for line in kept.stdout.splitlines()) == 7
    assert "left out" not in kept.stderr


@pytest.mark.parametrize("form", ["graphml", "gexf", "node-link", "turtle", "cypher", "csv-pair"])
def test_graphs_have_an_edge_for_each_arm(run: StoredRun, form: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert call(run, "export", "--format", form, "-o", str(path)).exit_code == 0
    files = sorted(p for p in tmp_path.glob("out*") if "manifest" not in p.name)
    text = "".join(p.read_text("utf-8") for p in files)
    assert text.count("prefix") >= 2
    if form not in ("csv-pair", "gexf"):  # these have no place for it
        assert "eft out 3 of 13 statements" in text
    manifest = json.loads((tmp_path / "out.manifest.json").read_text("utf-8"))
    assert manifest["selection"]["left_out"] == {"acceptability": 3}


def test_a_picture_is_of_one_arm(run: StoredRun, tmp_path: Path, texts: Texts) -> None:
    path = str(tmp_path / "a.tex")
    refused = call(run, "export", "-o", path)
    assert refused.exit_code and "arms none, prefix" in str(refused.exception)
    assert call(run, "export", "-o", path, "--arm", "prefix").exit_code == 0
    drawn = Path(path).read_text("utf-8")
    assert "cruel" in drawn and "smoke" not in drawn
    texts.check_lines(drawn, "left out")


def test_exhibits_are_of_one_arm_each(run: StoredRun, texts: Texts) -> None:
    require_modules("matplotlib")
    found = {e.key: e for e in run_exhibits(RunData(run))}
    regard = found["01_prefix-regard"]
    assert regard.arm == "prefix" and "Arm prefix." in regard.table.caption
    assert [row[:2] for row in shown_rows(regard.table)] == [["Elves", "1"], ["Orcs", "4"]]
    texts.check_lines(regard.table.note, "Left out")
    beside = found["01-arms-beside"].table
    assert [row[:3] for row in shown_rows(beside)] == [["none", "5", "3"], ["prefix", "5", "2"]]
    assert "01-arms" in found and "01_none-regard" in found


def test_an_arm_that_is_no_word_names_no_file(tmp_path: Path) -> None:
    with SQLiteStore(str(tmp_path / "odd.db")) as store:
        run = arms_run(store)
        store._db.execute("UPDATE generation SET arm = '../<b>' WHERE arm = 'prefix'")
        odd = StoredRun(store, run.record)
        assert {e.key.partition("-")[0] for e in run_exhibits(RunData(odd))} >= {"01_none"}
        assert all(c.isalnum() or c in "_-" for e in run_exhibits(RunData(odd)) for c in e.key)


def test_compare_tests_within_arms_and_says_what_it_left_out(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not json.loads(call(run, "compare", "--json").stdout)[
        "groups"
    ]  # one and four statements
    monkeypatch.setattr("kgbias.compare.families.MIN_COMPARED_VALUES", 1)
    done = call(run, "compare", "--json")
    data = json.loads(done.stdout)
    assert {t["arm"] for t in data["groups"]} == {"none", "prefix"}
    assert {t["measure"] for t in data["groups"]} == {"regard", "toxicity"}
    assert [t["n"] for t in data["arms"] if t["measure"] == "toxicity"] == [[5, 5]]
    assert done.stderr.count("left out") == 2  # of groups and of arms
    assert done.stderr.count("groups against each other: left out") == 1
    with pytest.raises(kgbias.UsageError, match="no arm 'both'"):
        raise call(run, "compare", "--arm", "both").exception  # type: ignore[misc]


def test_an_unfinished_crawl_says_so(tmp_path: Path, texts: Texts) -> None:
    with SQLiteStore(str(tmp_path / "cut.db")) as store:
        run = arms_run(store, status="stopped")
        update_run_figures(run)
        done = call(run, "compare", "--arm", "none")
        texts.check(done.stderr)
