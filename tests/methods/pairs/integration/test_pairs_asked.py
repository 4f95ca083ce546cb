"""Pairs: what a model does for some people and not for others is found, and nothing else is."""

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError, Interrupted, UsageError
from kgbias.methods import pairs
from kgbias.models.base import Request
from tests import letterwriter
from tests.conftest import require_modules
from tests.fault_server import FaultServer, PausingServer
from tests.kill_rounds import count_answers
from tests.scripted_model import ScriptedModel
from tests.texts import Texts
from tests.waiting import wait_until

pytestmark = pytest.mark.integration
REQUESTS = ("pay", "loan", "neighbour")
QUICK = {"measure": ("words", "refused", "reading ease")}


def model(planted: bool = True) -> ScriptedModel:
    def reply(request: Request) -> str:
        return letterwriter.reply(request.prompt[-1][1], request.seed, planted=planted)

    return ScriptedModel(reply, name="planted" if planted else "plain")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs") / "k.db"


@pytest.fixture(scope="module")
def study(path: Path) -> kgbias.Study:
    """A run with a plant and one without."""
    found = kgbias.open(path, progress=False)
    for planted in (True, False):
        pairs.ask_pairs(
            found,
            model(planted),
            name=f"{planted}",
            category="gender",
            request=REQUESTS,
            form="chat",
        )
    return found


def test_what_is_planted_is_found_and_the_floor_is_quiet(study: kgbias.Study) -> None:
    found = pairs.compare_pairs(study.run("True"), **QUICK)
    by = {d.measure: d for d in found.differences}
    assert by["words"].verdict == by["refused"].verdict == "differs"
    assert by["words"].difference > 0 and by["words"].first == "Women"
    assert by["words"].low < by["words"].difference < by["words"].high
    assert by["refused"].difference < 0 and by["refused"].agree == by["refused"].requests == 3
    assert by["refused"].units == 36 and by["words"].units + by["words"].left_out == 36
    assert not by["reading ease"].verdict
    assert {f.change for f in found.floor} == {"asked again", "with a greeting", "another name"}
    assert not any(f.found for f in found.floor)
    assert found.answers == 9 * 8 * 3 and 0 < found.refused < found.answers


def test_what_the_command_says_where_refusals_differ(
    path: Path, study: kgbias.Study, texts: Texts
) -> None:
    """Everything else is said of the pairs that were both answered."""
    found = pairs.compare_pairs(study.run("True"), measure="words")
    (words,), (refused,) = found.differences, found.declined
    assert words.conditional and not refused.conditional and refused.units == 36
    store = ("--store", str(path))
    shown = CliRunner().invoke(cli, ["pairs", "results", "True", *store, "--measure", "words"])
    assert "differs, if answered" in shown.output and f"{words.units}/36" in shown.output
    assert f"{words.only_first} - {words.only_second}" in shown.output
    texts.check_lines(shown.output, "refused more")
    texts.check_lines(shown.output, "requests, among")
    shown = CliRunner().invoke(cli, ["pairs", "results", "False", *store, "--measure", "words"])
    assert "refused more often" not in shown.output and "answered" not in shown.output


def test_without_a_plant_nothing_is_found(study: kgbias.Study) -> None:
    found = pairs.compare_pairs(study.run("False"), **QUICK)
    assert not found.shown_differences and not any(f.found for f in found.floor)


def test_scorers_and_likeness(study: kgbias.Study) -> None:
    require_modules("transformers")
    found = pairs.compare_pairs(study.run("False"), measure=("regard", "likeness"))
    assert [d.measure for d in found.differences] == ["regard"] and not found.shown_differences
    (alike,) = found.likeness
    assert alike.between == pytest.approx(alike.again, abs=0.05) and alike.units > 25
    assert not alike.verdict


def test_answers_are_kept_whole_and_a_judge_grades_them_without_the_name(
    study: kgbias.Study,
) -> None:
    rows = pairs.list_answers(study.run("True"))
    assert len(rows) == 216 and {r.how for r in rows} == {
        "asked",
        "asked again",
        "with a greeting",
    }
    assert all(r.text == letterwriter.REFUSAL for r in rows if r.outcome == "refused")
    assert all(("Hello. " in r.prompt) == (r.how == "with a greeting") for r in rows)
    judge = ScriptedModel(lambda request: "4" if "shop" in str(request.prompt) else "0: none")
    found = pairs.compare_pairs(study.run("True"), judge=judge, **QUICK)
    (advice,) = (d for d in found.differences if d.measure == "advice")
    assert (
        advice.first_mean == advice.second_mean == 4
        and advice.requests == 1
        and advice.p_value == 1
    )
    assert found.judge == "scripted"
    assert not any(
        name in str(request.prompt) for request in judge.requests for name in ("Emily", "James")
    )


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, study: kgbias.Study) -> None:
    how = {"category": "gender", "request": REQUESTS, "form": "chat"}
    with kgbias.open(tmp_path / "a.db", progress=False) as other:
        asked = model()
        with pytest.raises(Interrupted, match="running this again continues"):
            pairs.ask_pairs(other, asked, name="p", max_requests=100, **how)
        part = pairs.compare_pairs(other.run("p"), **QUICK)  # the first round is there
        assert part.answers == 72 and [f.change for f in part.floor] == ["another name"] * 3
        pairs.ask_pairs(other, asked, name="p", **how)
        assert len(asked.requests) == 216
        assert list(pairs.list_answers(other.run("p"))) == list(
            pairs.list_answers(study.run("True"))
        )


def test_what_a_run_without_statements_refuses(
    tmp_path: Path, study: kgbias.Study, texts: Texts
) -> None:
    run = study.run("True")
    for take in (
        run.measure,
        lambda: run.report(tmp_path / "r.html"),
        lambda: run.export(tmp_path / "e.jsonl"),
        lambda: run.publish(tmp_path / "p"),
    ):
        with texts.raises(DataError):
            take()
    assert not study.store.verify()
    with pytest.raises(UsageError, match="no measure 'tone'"):
        pairs.compare_pairs(run, measure="tone")
    assert run.cost()[-1].answers == 216


@pytest.mark.slow
def test_killed_and_run_again_the_graph_is_the_same(tmp_path: Path) -> None:
    require_modules("openai")

    def start(store: Path, url: str) -> subprocess.Popen[bytes]:
        command = (
            sys.executable,
            "-m",
            "kgbias",
            "pairs",
            "--model",
            "openai:m",
            "--base-url",
            url,
            "--category",
            "gender",
            "--request",
            "pay",
            "--store",
            str(store),
            "--run",
            "p",
        )
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def picture(store: Path) -> dict[str, list[tuple[object, ...]]]:
        with closing(sqlite3.connect(store)) as db:
            rows = sorted(db.execute("SELECT * FROM generation").fetchall(), key=repr)
            return {
                "generation": rows,
                "answer": db.execute("SELECT key, text FROM answer ORDER BY key").fetchall(),
            }

    with PausingServer(letterwriter.plan, 30) as server:
        killed = start(tmp_path / "a.db", server.url)
        wait_until(lambda: count_answers(tmp_path / "a.db") or killed.poll() is not None)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        server.go_on()
        held = count_answers(tmp_path / "a.db")
        assert 0 < held <= 30
        before = len(server.bodies)
        assert start(tmp_path / "a.db", server.url).wait() == 0
        assert len(server.bodies) - before == 72 - held
        assert start(tmp_path / "b.db", server.url).wait() == 0
    assert picture(tmp_path / "a.db") == picture(tmp_path / "b.db")


def test_the_commands(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "k.db"))
    run = CliRunner()
    own = tmp_path / "own.csv"
    own.write_text("request,text\nrent,Can {name} pay the rent?\nrent,Will {name} pay rent?\n")
    with FaultServer(letterwriter.plan) as server:
        asked = ("pairs", "--model", "openai:m", "--base-url", server.url, *store)
        dry = run.invoke(cli, [*asked, "--requests", str(own), "--category", "gender", "--dry-run"])
        assert "1 request in 2 wordings, about 8 people in 2 groups, in messages" in dry.output
        assert "48 answers" in dry.output and not server.bodies
        told = run.invoke(
            cli, [*asked, "--requests", str(own), "--category", "gender", "--run", "p"]
        )
        assert told.exit_code == 0 and "run p: 48 answers" in told.output
        assert "asked 48, from the log 0; " in " ".join(told.output.split())  # and the tokens
    how = ("--measure", "words", "--measure", "refused")
    shown = run.invoke(cli, ["pairs", "results", "p", *store, *how])
    assert shown.exit_code == 0 and "this request" in shown.output
    assert "nan" not in shown.output and "to 1 request in 2 wordings about 8" in shown.output
    data = run.invoke(cli, ["pairs", "results", "p", *store, *how, "--json"])
    assert data.exit_code == 0 and '"verdict"' in data.output
    wrong = run.invoke(cli, [*asked, "--category", "age"])
    assert wrong.exit_code != 0 and "no category 'age' among the people" in str(wrong.exception)
