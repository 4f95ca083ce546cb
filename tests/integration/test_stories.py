"""Stories: what the rules read, and what a model that declines to generalise gives away in them."""

import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import Interrupted
from kgbias.models.base import Request
from kgbias.stories.read import READERS, read_story
from tests import storyteller
from tests.conftest import needs
from tests.fault_server import FaultServer
from tests.scripted import ScriptedModel

pytestmark = pytest.mark.integration
needs("spacy")

STORY = """\
Maria, a Mexican software engineer, lived in a small town near the coast with her two daughters. \
She was kind and stubborn, but she was not lazy. Her brother worked as a plumber. She wanted to \
open a bakery, and her dream was to travel the world. She was arrested in the spring and lost her \
job. In the end, Maria won a prize."""


def test_what_the_rules_read() -> None:
    found = read_story(STORY, "a woman", READERS)
    assert {(s.attribute, s.value) for s in found} == {
        ("gender", "women"),
        ("origin", "mexican people"),
        ("occupation", "software engineer"),
        ("family", "daughter"),
        ("family", "brother"),
        ("home", "small town near the coast"),
        ("traits", "kind"),
        ("traits", "stubborn"),
        ("wants", "to open a bakery"),
        ("wants", "to travel the world"),
        ("happens", "be arrested"),
        ("happens", "lose job"),
        ("happens", "win prize"),
    }
    words = {s.value: STORY[s.begins : s.ends] for s in found}
    assert words["daughter"] == "daughters" and words["lose job"] == "lost her job"
    assert words["women"] == "her" and words["software engineer"] == "software engineer"


def test_what_the_prompt_said_is_not_read() -> None:
    text = "Ana worked as a nurse. She was kind."
    assert [s.value for s in read_story(text, "a kind nurse", READERS)] == []
    assert [s.value for s in read_story(text, "a kind person", READERS)] == ["nurse"]
    own = read_story("She wanted to open her own bakery. She sang.", "a cook", ["wants"])
    assert [s.value for s in own] == ["to open their own bakery"]
    begun = read_story("Ana. She lived in Rome.", "a cook", READERS, opening="A cook was named")
    assert [(s.value, s.begins) for s in begun] == [("Rome", 18)]


def test_what_looks_alike_is_not_read() -> None:
    """A mother has a child, not a mother; what is denied, wished for or another's is not said."""
    text = (
        "Ana was a mother. She had no brothers. She was moved to pity. She dreamed of becoming a "
    )
    text += "famous doctor. Her son, a shy baker, sang. She loved her son."
    found = read_story(text, "a woman", ("occupation", "family", "home", "traits"))
    assert [(s.attribute, s.value) for s in found] == [("family", "child"), ("family", "son")]


@pytest.mark.parametrize(
    "text",
    ["", "?!", "\n\n", "{}", "<b>" * 50, "\ud83d", "He. He. She. She.", "she was kind and " * 3000],
)
def test_a_story_that_says_nothing(text: str) -> None:
    assert read_story(text, "a kind woman", ("origin", "occupation", "traits")) == []


def model(often: float = storyteller.OFTEN) -> ScriptedModel:
    def reply(request: Request) -> str:
        text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1][1]
        return storyteller.reply(text, request.seed, often=often)

    return ScriptedModel(reply)


def test_it_declines_when_asked_and_gives_itself_away_in_stories(tmp_path: Path) -> None:
    """The planted links are found, nothing else is, and nothing is found without a plant."""
    with FaultServer(storyteller.plan) as server, kgbias.open(tmp_path / "k.db") as study:
        spec = {"base_url": server.url, "form": "chat", "seed": 1}
        asked = study.crawl("openai:m", category="gender", samples=2, iterations=1, **spec)
        assert asked.summary.triples == 0 and asked.summary.refused > 0
        people = ("Women", "Men", "Nurses", "Engineers", "Farmers")
        run = study.write_stories("openai:m", group=people, **spec)
        assert run.told.total["refused"] > 0 and run.told.total["failed"] == 0
        found = run.story_links()
        gender = {(k.group, k.attribute, k.value): k for k in found.found if k.category == "gender"}
        more = {key for key, link in gender.items() if link.log_odds > 0}
        assert more >= {("Women", "occupation", "nurse"), ("Men", "occupation", "engineer")}
        assert {key[1:] for key in more} == {("occupation", "nurse"), ("occupation", "engineer")}
        assert gender["Women", "occupation", "nurse"].wordings == 5
        cast = {(k.group, k.value): k.log_odds for k in found.found if k.attribute == "gender"}
        assert cast["Nurses", "women"] > 0 and cast["Engineers", "men"] > 0
        (nurse,) = [
            b for b in found.both if b.invented.group == "Women" and b.cast.group == "Nurses"
        ]
        assert nurse.invented.value == "nurse" and nurse.cast.value == "women"
        assert all(floor.found > floor.most for floor in found.floor)
        stories = run.stories()
        assert all(s.text[r.begins : r.ends] == r.words != "" for s in stories for r in s.read)
        assert sum(len(s.read) for s in stories) == run.summary.statements
        triples = {(t.group, t.predicate, t.object) for t in run.triples()}
        assert ("Women", "work as", "nurse") in triples and (
            "Nurses",
            "are cast as",
            "women",
        ) in triples
        assert not any(t.group == "Women" and t.predicate == "are cast as" for t in run.triples())


def test_without_a_plant_nothing_is_found(tmp_path: Path) -> None:
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.write_stories(
            model(0.0), category="gender", group=("Women", "Men"), form="chat"
        )
        found = run.story_links()
        assert not found.found
        assert all(floor.found <= floor.high for floor in found.floor)


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    how = {"category": "gender", "form": "chat", "samples": 3}
    with kgbias.open(tmp_path / "a.db", progress=False) as study:
        teller = model()
        with pytest.raises(Interrupted, match="running this again continues"):
            study.write_stories(teller, name="s", max_requests=20, **how)
        study.write_stories(teller, name="s", **how)
        assert len(teller.asked) == 45
        stopped = study.run("s").stories()
    with kgbias.open(tmp_path / "b.db", progress=False) as study:
        assert list(study.write_stories(model(), name="s", **how).stories()) == list(stopped)


def test_killed_and_run_again_the_graph_is_the_same(tmp_path: Path) -> None:
    needs("openai")

    def start(store: Path, url: str) -> subprocess.Popen[bytes]:
        command = (
            sys.executable, "-m", "kgbias", "stories", "--model", "openai:m", "--base-url", url,
            "--category", "gender", "--samples", "4", "--store", str(store), "--run", "s",
        )  # fmt: skip
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def picture(store: Path) -> dict[str, list[tuple[object, ...]]]:
        with closing(sqlite3.connect(store)) as db:
            tables = ("generation", "triple", "profile", "profile_part", "given_name")
            rows = {
                t: sorted(db.execute(f"SELECT * FROM {t}").fetchall(), key=repr) for t in tables
            }
            return rows | {"answer": sorted(db.execute("SELECT key, text FROM answer").fetchall())}

    with FaultServer(storyteller.plan, delay=0.05) as server:
        killed = start(tmp_path / "a.db", server.url)
        deadline = time.monotonic() + 60
        while len(server.bodies) < 24 and time.monotonic() < deadline:
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with closing(sqlite3.connect(tmp_path / "a.db")) as db:
            held = db.execute("SELECT count(*) FROM answer").fetchone()[0]
        assert 0 < held < 60
        before = len(server.bodies)
        assert start(tmp_path / "a.db", server.url).wait() == 0
        assert len(server.bodies) - before == 60 - held
        assert start(tmp_path / "b.db", server.url).wait() == 0
    assert picture(tmp_path / "a.db") == picture(tmp_path / "b.db")


def test_the_commands(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "k.db"))
    run = CliRunner()
    with FaultServer(storyteller.plan) as server:
        asked = ("stories", "--model", "openai:m", "--base-url", server.url, *store)
        dry = run.invoke(cli, [*asked, "--category", "gender", "--dry-run"])
        assert "8 stories about each of 15 people in 3 groups, in messages: 120" in dry.output
        assert not server.bodies
        told = run.invoke(cli, [*asked, "--category", "gender", "--samples", "6", "--run", "s"])
        assert told.exit_code == 0 and "run s: 90 stories" in told.output
    shown = run.invoke(cli, ["stories", "links", "s", *store])
    assert shown.exit_code == 0 and "nurse" in shown.output and "dealt anew" in shown.output
    undealt = run.invoke(cli, ["--set", "deals=0", "stories", "links", "s", *store])
    assert undealt.exit_code == 0 and "not known how many would by chance" in undealt.output
    assert "nan" not in undealt.output
    wrong = run.invoke(cli, [*asked, "--category", "age"])
    assert wrong.exit_code != 0 and "no category 'age' among the people" in str(wrong.exception)
