"""`Study.map`: it goes on where it stopped, in time, and says what a server cannot give."""

import re
import shlex
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.crawl import crawler
from kgbias.crawl.configure import configure
from kgbias.errors import Interrupted, RunConflict, UsageError
from kgbias.graph.types import BeliefRun, ChoiceRun
from kgbias.io.wording import in_commands
from kgbias.study import pipeline
from kgbias.study.pipeline import MAX_CHOICES, fit_sizes, suggest_alternatives
from tests.fault_server import FaultServer

ASKED: Any = {"category": "faiths", "samples": 1, "iterations": 1, "asking": {"probes": 2000}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a map that nobody stopped, with its store."""
    folder = tmp_path_factory.mktemp("whole")
    with kgbias.open(folder / "s.db") as study:
        study.map("reference", folder=folder, **ASKED)
    return folder


def evidence(folder: Path) -> list[dict[str, Any]]:
    with kgbias.open(folder / "s.db") as study:
        return study.run().evidence().records()


def test_a_dry_run_knows_how_long_it_took_before(whole: Path) -> None:
    with kgbias.open(whole / "s.db") as study:
        price = study.map("reference", **ASKED, dry_run=True)
        (believing,) = study.run().stored.find_all(BeliefRun)
        assert price.probes > 2000  # names by themselves, and groups, come on top
        assert price.seconds and believing.record["took"]["seconds"] > 0
        assert price.seconds == pytest.approx(price.probes * believing.record["took"]["seconds"])
        assert study.map("smollm2", category="gender", dry_run=True).seconds is None
        assert study.map("anthropic:m", category="gender", dry_run=True).probes == 0
    asked = ["map", "--model", "reference", "--category", "faiths", "--store", str(whole / "s.db")]
    said = CliRunner().invoke(cli, [*asked, "--dry-run"]).output
    assert "groups: Ostrans, " in said and "no belief" not in said
    few = CliRunner().invoke(cli, [*asked[:3], "--group", "Bakers", "--dry-run"]).output
    assert "groups: Bakers\n" in few and "no belief can be shown about Bakers" in few
    assert re.search(r"answers take about .* and \d\d,\d+ probes take about .*, at the sp", said)


def test_nothing_is_done_again(
    tmp_path: Path,
    whole: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("s.db", "report.html", "explorer.html"):
        shutil.copy(whole / name, tmp_path)
    with kgbias.open(tmp_path / "s.db", progress=True) as study:
        first = study.map("reference", folder=tmp_path, **ASKED)  # a copy is another store
        assert (
            first.run.crawl_result.asked_count == 0
            and "nothing has changed" not in capsys.readouterr().err
        )
        written = first.report.stat().st_mtime_ns
        again = study.map("reference", folder=tmp_path, **ASKED)
        assert again.run.id == first.run.id and again.evidence.records() == first.evidence.records()
        assert again.groups.records() == first.groups.records()
        assert "nothing has changed since the pages were written" in capsys.readouterr().err
        assert again.report.stat().st_mtime_ns == written
        with monkeypatch.context() as patched:

            def asked(*_: Any, **__: Any) -> None:
                raise Interrupted("it asks")

            patched.setattr(study, "_crawl", asked)
            assert study.map("reference", folder=tmp_path, **ASKED).report == first.report
            for other in ({"model_name": "Model A"}, {"iterations": 2}, {"folder": tmp_path / "b"}):
                with pytest.raises(Interrupted):
                    study.map("reference", **({"folder": tmp_path} | ASKED | other))
            first.report.write_text("not as it was written")
            with pytest.raises(Interrupted):
                study.map("reference", folder=tmp_path, **ASKED)


@pytest.mark.slow
def test_a_first_report_comes_after_the_first_round(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it is preliminary; the report at the end is that of a map without it."""
    monkeypatch.setattr(pipeline, "MIN_SECONDS_FOR_FIRST_REPORT", 0.0)
    pages: list[str] = []
    write = pipeline.Run.report

    def written(run: Any, path: Path, **options: Any) -> Path:
        page = write(run, path, **options)
        pages.append(page.read_text("utf-8"))
        return page

    monkeypatch.setattr(pipeline.Run, "report", written)
    with kgbias.open(tmp_path / "s.db", progress=True) as study:
        found = study.map("reference", folder=tmp_path, **ASKED)
    said = capsys.readouterr().err
    assert len(pages) == 1 and "Preliminary" in pages[0]
    assert said.index("a first report, preliminary, after") < said.index("iteration 1")
    assert "Preliminary" not in found.report.read_text("utf-8")
    assert found.evidence.records() == evidence(whole)
    # Read in two parts, the same statements have scores that differ in their last bits.
    with kgbias.open(tmp_path / "s.db") as study, kgbias.open(whole / "s.db") as other:
        rows = study.run().groups().records(), other.run().groups().records()
    assert len(rows[0]) == len(rows[1])
    for row, expected in zip(*rows, strict=True):
        assert row.keys() == expected.keys()
        for name, value in expected.items():
            if isinstance(value, float):
                value = pytest.approx(value, rel=1e-5, abs=1e-5, nan_ok=True)
            assert row[name] == value, name


@pytest.mark.slow
def test_it_goes_on_where_it_stopped(tmp_path: Path, whole: Path) -> None:
    """Stopped in the crawl, then killed once it probes: in the end, all is as in a map that nobody
    stopped."""
    with kgbias.open(tmp_path / "s.db") as study:
        with pytest.raises(Interrupted, match="the 40 answers that came are kept"):
            study.map("reference", folder=tmp_path, max_requests=40, **ASKED)
        stopped = study.run()
    code = (
        f"import kgbias; study = kgbias.open({str(tmp_path / 's.db')!r}, progress=True)\n"
        f"study.map('reference', folder={str(tmp_path)!r}, **{ASKED!r})"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    seen = next((line for line in child.stderr if "names before" in line), "")
    child.kill()
    child.wait()
    assert seen and not (tmp_path / "explorer.html").exists()
    with kgbias.open(tmp_path / "s.db") as study:
        found = study.map("reference", folder=tmp_path, **ASKED)
        assert found.run.id == stopped.id and found.run.crawl_result.asked_count == 0
        assert found.report.is_file() and found.explorer.is_file() and not found.left_out
        assert [row for row in found.evidence if row.lift.has_interval]
        assert not study.store.verify()
        said = [g.id for g in found.run.stored.generations()]
    with kgbias.open(whole / "s.db") as study:
        assert said == [g.id for g in study.run().stored.generations()]
    assert found.evidence.records() == evidence(whole)


def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that seems to take so long that little fits into two minutes, however busy the
    machine is."""
    real = crawler.time_answers

    def trial(*asked: Any) -> float:
        assert real(*asked) > 0
        return 0.2

    monkeypatch.setattr(crawler, "time_answers", trial)
    monkeypatch.setattr(pipeline, "seconds_per_probe", lambda scorer: 0.02)


@pytest.mark.slow
def test_sizes_are_fixed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch)
    with kgbias.open(tmp_path / "s.db") as study:
        asked: Any = {"category": "faiths", "folder": tmp_path}
        with pytest.raises(Interrupted):
            study.map("reference", minutes=2, max_requests=40, **asked)
        begun = study.runs()[0]
        sized = begun.config["sized"]
        assert sized["minutes"] == 2 and sized["probes"] >= 500
        found = study.map("reference", minutes=2, **asked)
        assert found.run.id == begun.id and found.run.config["sized"] == sized
        with pytest.raises(RunConflict, match="was made for 2 minutes: give that, or another"):
            study.map("reference", name=found.run.name, minutes=3, **asked)


def test_sizes() -> None:
    config = configure("smollm2", category="gender")
    full = fit_sizes(config, 1000, 0.0, 0.1, 0.001)
    assert (full["samples"], full["iterations"]) == (config.samples, config.rounds)
    some = fit_sizes(config, 3, 0.0, 0.1, 0.001)
    assert some["iterations"] < config.rounds and some["sized"]["probes"] < full["sized"]["probes"]
    chooses = fit_sizes(config, 3, 0.0, 0.1, None)  # as many answers, and questions for the rest
    assert (chooses["samples"], chooses["iterations"]) == (some["samples"], some["iterations"])
    assert 0 < chooses["sized"]["choices"] < 3 * 60 / 0.1 / 2 + 100
    assert fit_sizes(config, 1000, 0.0, 0.1, None)["sized"]["choices"] == MAX_CHOICES
    with pytest.raises(UsageError, match=r"too few for \d groups: 1 minute; give about"):
        fit_sizes(config, 1, 30.0, 1.0, 0.01)


def test_a_chat_server_gets_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that gives no log-probabilities of a prompt: the model is made to choose instead,
    and the rest is made."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    def reply(body: dict[str, Any], _: int) -> str:
        if "Which group" in str(body.get("messages")):
            return "A"
        return f"love {'cake tea work sport'.split()[body['seed'] % 4]}"

    with FaultServer(reply) as server, kgbias.open(tmp_path / "s.db") as study:
        found = study.map(
            "openai:m",
            base_url=server.url,
            folder=tmp_path,
            category="gender",
            samples=1,
            iterations=1,
        )
    assert not found.evidence and found.report.is_file() and not found.refusals
    assert "instead it was asked to choose between groups: " in found.left_out
    read, asked = re.findall(r"([\d,]+) of ([\d,]+) answers named one", found.left_out)[0]
    assert read == asked != "0"
    with kgbias.open(tmp_path / "s.db") as study:
        (choosing,) = study.run(found.run.name).stored.find_all(ChoiceRun)
        assert choosing.model.title == "openai:m"
    assert "made to choose" in found.report.read_text("utf-8")


@pytest.mark.slow
def test_choices_are_among_what_the_minutes_are_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setattr(
        "kgbias.study.pipeline.fit_sizes",
        lambda *_: {"samples": 1, "iterations": 0, "sized": {"minutes": 2, "choices": most}},
    )

    def reply(body: dict[str, Any], _: int) -> str:
        if "Which group" in str(body.get("messages")):
            return "A"
        return f"love {'cake tea work sport'.split()[body['seed'] % 4]}"

    asked: dict[int, int] = {}
    for most in (1, 100):
        with FaultServer(reply) as server, kgbias.open(tmp_path / f"{most}.db") as study:
            found = study.map(
                "openai:m", base_url=server.url, folder=tmp_path, category="gender", minutes=2
            )
            asked[most] = sum("Which group" in str(body) for body in server.bodies)
        too_few = "choose between groups instead (for which these minutes are too few)"
        assert (too_few in found.left_out) == (most == 1)
    assert asked[1] == 0 < asked[100] <= 100


@pytest.mark.slow
def test_limits_leave_no_room_for_choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with (
        FaultServer(lambda body, _: f"love {'cake tea'.split()[body['seed'] % 2]}") as server,
        kgbias.open(tmp_path / "s.db") as study,
    ):
        asked: Any = {"base_url": server.url, "category": "gender", "samples": 1, "iterations": 0}
        assert study.map("openai:m", **asked, dry_run=True).choices > 0
        found = study.map("openai:m", folder=tmp_path, max_requests=1000, **asked)
    assert "choice.choose(run, 'openai:m') has it choose" in found.left_out


@pytest.mark.slow
def test_who_declines_is_asked_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands at the end are taken as they are. Stories do not come with people of the user's
    own groups, who have joined the category: they get a file."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    def reply(body: dict[str, Any], _: int) -> str:
        if "Which group" in str(body.get("messages")):
            return "A"
        text = str(body.get("messages") or body.get("prompt"))
        declines = sha256(text.encode()).digest()[0] < 180
        return "I'm sorry, but I can't help with that." if declines else "love cake"

    folder, store = tmp_path / "the pages", tmp_path / "s.db"
    with FaultServer(reply) as server, kgbias.open(store) as study:
        asked: Any = {
            "base_url": server.url,
            "folder": folder,
            "category": "gender",
            "group": ["Bakers", "Elves"],
            "samples": 2,
            "iterations": 0,
        }
        calls = study.map("openai:m", **asked).alternatives
        named = [line.strip().partition("(")[0] for line in calls if "(" in line]
        assert named == ["pairs.ask_pairs", "stories.write_stories"]
        with in_commands():
            found = study.map("openai:m", **asked)
        assert found.refusals == tuple(found.run.refusals())
        assert re.match(r"it declined \d+ of \d+ prompts about these groups", found.alternatives[0])
        commands = [shlex.split(line) for line in found.alternatives if "--model" in line]
        assert [command[1] for command in commands] == ["pairs", "stories"]
        for _, *command in commands:
            priced = CliRunner().invoke(cli, [*command, "--dry-run"])
            assert priced.exit_code == 0 and "nothing was asked" in priced.output
        secret = f"{server.url}?key=abcd1234efgh"
        with in_commands():
            told = "\n".join(suggest_alternatives(study.run(), "openai:m", folder, secret))
        assert "--base-url YOUR_URL" in told and "abcd1234efgh" not in told
    assert "one of the Elves,Elves,gender" in (folder / "people.csv").read_text("utf-8")
