"""What a store and its runs show of the Cypher engine, which is a process of its own."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.graph.store import StoredRun
from tests.conftest import require_modules
from tests.scripted_model import ScriptedModel
from tests.unit.test_arms import run  # noqa: F401
from tests.unit.test_ask import CSV
from tests.unit.test_ask_models import run as small  # noqa: F401
from tests.unit.test_plan import declared
from tests.unit.test_study import SMALL, model, study  # noqa: F401

require_modules("kglite")
pytestmark = pytest.mark.integration


def test_queries_take_the_arm_as_an_option(run: StoredRun) -> None:  # noqa: F811
    command = ["query", "most_repeated", "--store", run.store.url, "--json"]
    rows = json.loads(CliRunner().invoke(cli, [*command, "--param", "arm=prefix"]).stdout)
    assert {row["arm"] for row in rows} == {"prefix"} and len(rows) == 2
    rows = json.loads(CliRunner().invoke(cli, [*command, "--set", "min-acceptability=0"]).stdout)
    assert sum(row["count"] for row in rows) == 13
    command[1] = "topic_shares"
    empty = CliRunner().invoke(cli, command)
    assert json.loads(empty.stdout) == [] and empty.exit_code == 0
    assert "topic_shares needs kgbias measure --topics" in empty.stderr


def test_the_neighbourhood_holds_other_groups(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(CSV + "Men,hate,working from home,1,gender,none\n")
    with kgbias.open(tmp_path / "k.db") as study:  # noqa: F811
        answer = study.import_file(tmp_path / "s.csv").ask("women and work", encoder=None)
    (near,) = answer.retrieval.neighbours
    assert (near.statement_number, near.triple.sentence) == (1, "Men hate working from home.")


def test_frames_have_the_promised_columns(
    study: kgbias.Study,  # noqa: F811
    model: ScriptedModel,  # noqa: F811
) -> None:
    with study:
        run = study.crawl(model, category="gender", **SMALL)  # type: ignore[arg-type]
        frame = run.triples().to_frame()
        assert list(frame.columns[:7]) == [
            "group",
            "predicate",
            "object",
            "count",
            "arm",
            "regard",
            "toxicity",
        ]
        assert frame["regard"].isna().all() and frame["count"].sum() > 0
        groups = run.groups().to_frame()
        assert list(groups["group"]) == ["Women", "Men", "Non-binary people"] or "group" in groups
        found = study.cypher("MATCH (g:SocialGroup) RETURN g.name AS name ORDER BY name")
        assert [row["name"] for row in found] == sorted(groups["group"])
        assert study.query("shared", group="Women", other="Men").to_frame() is not None
        with pytest.raises(kgbias.UsageError, match="measure the run first"):
            run.figure("women", "overall_regard")
        with pytest.raises(kgbias.UsageError, match=r"no group 'Cats' in run .*; choose from Men"):
            run.figure("Cats", "overall_regard")


def test_carrying_out_steps_across_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chooser = ScriptedModel(lambda _: "A", name="openai:chooser")
    monkeypatch.setattr("kgbias.models.open_model", lambda *_, **__: chooser)
    text = """
        [[imports]]
        path = "said.csv"
        [[imports]]
        path = "gone.csv"
        [[choose]]
        model = "openai:chooser"
        samples = 2
        runs = ["said"]
        [[evidence]]
        runs = ["said"]
        path = "evidence.json"
        [[compare]]
        [[query]]
        cypher = "MATCH (g:SocialGroup) RETURN g.name AS name ORDER BY name"
        path = "groups.csv"
        [[query]]
        name = "most_repeated"
        parameters = {run = "gone"}
        """
    plan = declared(tmp_path, text)
    outcomes = plan.carry_out(progress=False)
    assert [(o.step.kind, o.state) for o in outcomes] == [
        ("import", "done"),
        ("import", "failed"),
        ("choose", "done"),
        ("evidence", "done"),
        ("compare", "left"),
        ("query", "done"),
        ("query", "left"),
    ]
    folder = tmp_path / "results"
    rows = json.loads((folder / "said" / "evidence.json").read_text("utf-8"))
    assert {row["chooser"] for row in rows} == {"openai:chooser"} and rows[0]["lift"] is None
    assert (folder / "groups.csv").read_text("utf-8").splitlines() == ["name", "Men", "Women"]
    assert [o.state for o in plan.state()] == [
        "done",
        "left",
        "done",
        "done",
        "left",
        "done",
        "left",
    ]
    asked = len(chooser.requests)
    plan.carry_out(progress=False)
    assert len(chooser.requests) == asked


def test_a_query_is_written_run_and_shown(small: kgbias.Run) -> None:  # noqa: F811
    replies = iter(
        [
            "```cypher\nMATCH (g:SocialGroup) SET g.name = 'x' RETURN g\n```",
            "The query:\nMATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(:Object) "
            "RETURN g.name AS name, sum(s.count) AS n ORDER BY name;",
        ]
    )
    writer = ScriptedModel(lambda _: next(replies))
    answer = small.ask_in_cypher("How much is said of each group?", writer)
    assert answer.error == "" and answer.result.records() == [
        {"name": "Men", "n": 1},
        {"name": "Women", "n": 4},
    ]
    first, second = (request.prompt[1][1] for request in writer.requests)
    assert "cannot be run" not in first and "This query cannot be run" in second
    assert small.triples()[0].group == "Women"  # nothing was written


def test_a_query_that_would_leave_the_graph_is_refused(small: kgbias.Run) -> None:  # noqa: F811
    writer = ScriptedModel(lambda _: "LOAD CSV FROM 'file:///etc/passwd' AS x MATCH (n) RETURN x")
    answer = small.ask_in_cypher("?", writer)
    assert answer.error and answer.result.rows == []
