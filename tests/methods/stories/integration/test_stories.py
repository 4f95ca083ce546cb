"""Stories: what the rules read, and what a model that declines to generalise gives away in them."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError, Interrupted, UsageError
from kgbias.graph.types import Answer
from kgbias.methods import stories as story_calls
from kgbias.methods.stories.config import configure_stories
from kgbias.methods.stories.model_reader import Reading, read_reading
from kgbias.methods.stories.rule_reader import READERS, read_story
from kgbias.methods.stories.stereotales import COLUMNS
from kgbias.models.base import Request
from tests import storyteller
from tests.conftest import require_modules
from tests.fault_server import FaultServer, PausingServer
from tests.kill_rounds import count_answers
from tests.methods.stories.labelled_stories import LabelledStory, read_labelled, score_reader
from tests.scripted_model import ScriptedModel
from tests.waiting import wait_until

pytestmark = pytest.mark.integration
require_modules("spacy")

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


def model(often: float = storyteller.PLANTED_RATE, invents: bool = False) -> ScriptedModel:
    def reply(request: Request) -> str:
        text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1][1]
        return storyteller.reply(text, request.seed, planted_rate=often, invents=invents)

    return ScriptedModel(reply)


def reading(story: LabelledStory, **said: Any) -> Reading:
    """What is read of a labelled story if a model says this of it."""
    names = story.attributes(configure_stories("reference"))
    answer = Answer("key", "model", json.dumps(said), "stop")
    return read_reading(answer, story.text, story.asked, names, opening=story.opening)


def copied(story: LabelledStory) -> dict[str, list[str]]:
    """What a model says that copies the labelled words."""
    said = {a: [w.partition("|")[0] for w in words] for a, words in story.said.items()}
    if "gender" in said:
        said["gender"] = ["she" if said["gender"] == ["women"] else "he"]
    return said


def test_a_model_that_copies_is_read_whole_and_what_it_invents_is_not() -> None:
    stories = read_labelled()
    score, wrong = score_reader(stories, lambda s: reading(s, **copied(s)).claims)
    assert score.found_labels == score.labels and score.labels.total() == 162 and not wrong
    invented = {"origin": ["Martian"], "home": ["the moon"], "wants": ["to fly to the moon"]}
    for story in stories[:12]:
        own = copied(story)
        more = reading(story, **{a: [*own.get(a, []), *v] for a, v in invented.items()})
        assert len(more.invented) == 3 and not more.reason
        kept = reading(story, **{a: own.get(a, []) for a in invented})
        assert more.claims == kept.claims


def test_what_a_model_reads_is_said_as_the_rules_say_it() -> None:
    story = LabelledStory("a woman", "trade", "There was once a woman named", f" {STORY}", {})
    read = reading(
        story,
        gender="female",
        origin=["Mexico"],
        family=["wife and two daughters", "brother"],
        home=["she lived in a small town near the coast"],
        traits=["kind and stubborn", "brave"],
        wants=["open a bakery", "she wanted to travel the world"],
        happens=["lost her job", "died"],
    )
    rules = read_story(STORY, "a woman", READERS)
    assert {(s.attribute, s.value) for s in read.claims} == {
        (s.attribute, s.value)
        for s in rules
        if s.attribute != "occupation" and s.value not in ("be arrested", "win prize")
    }
    assert read.invented == (("traits", "brave"), ("happens", "died"))
    assert all(story.text[s.begins : s.ends].strip() for s in read.claims)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("I'm sorry, I can't help with that.", "refused"),
        ("She is a nurse.", "unparsable"),
        ('{"gender": 3}', "unparsable"),
        ('{"shoes": ["red"]}', "unparsable"),
        ('{"gender": ' + "[" * 3000, "unparsable"),
        (json.dumps({"traits": ["kind"] * 13}), "unparsable"),
        ("{}", "ok"),
        ('Here it is:\n```json\n{"traits": "kind"}\n```', "ok"),
    ],
)
def test_answers_that_are_no_reading(text: str, outcome: str) -> None:
    answer = Answer("key", "model", text, "stop")
    read = read_reading(answer, STORY, "a woman", ("gender", "traits"))
    assert read.outcome == outcome and len(read.claims) == ("kind" in text and outcome == "ok")


def test_a_gender_of_both_is_not_invented() -> None:
    """The story has "they", which is no gender of the character's, and not "wizard"."""
    story = "Sam met friends. They went home."
    answer = Answer("key", "model", json.dumps({"gender": ["they", "wizard"]}), "stop")
    read = read_reading(answer, story, "a person", ("gender",))
    assert not read.claims and read.invented == (("gender", "wizard"),)


def test_who_is_read_as_non_binary_is_counted_once() -> None:
    """The story has "she", and the reader says woman too: its gender is the one that is spelt."""
    story = "Sam is a non-binary artist, and she paints."
    answer = Answer("key", "model", json.dumps({"gender": ["non-binary woman"]}), "stop")
    read = read_reading(answer, story, "a person", ("gender",))
    assert [claim.value for claim in read.claims] == ["non-binary people"] and not read.invented


def test_a_model_reads_its_own_stories(tmp_path: Path) -> None:
    """What it reads is what the rules read; what it invents is counted and left out; a stopped run
    goes on; and the run says who read."""
    how = {"group": ("Women", "Men"), "form": "chat", "samples": 2, "reader": "model"}
    with kgbias.open(tmp_path / "a.db", progress=False) as study:
        with pytest.raises(Interrupted):
            story_calls.write_stories(study, model(), name="s", max_requests=25, **how)
        run = story_calls.write_stories(study, teller := model(), name="s", **how)
        told = run.generation_summary
        readings = told.readings["ok"]
        assert readings == 20 - told.outcome_totals["refused"] and not told.invented_counts.total()
        assert len(teller.requests) == 20 + readings - 25 and told.reader == "scripted (model@1)"
        assert story_calls.find_links(run, deals=0).reader == "scripted (model@1)"
        rules = story_calls.write_stories(study, model(), name="r", **{**how, "reader": "rules"})
        assert (
            not rules.generation_summary.asked_count
            and rules.generation_summary.reader == "rules@1"
        )
        own, theirs = story_calls.list_stories(run), story_calls.list_stories(rules)
        assert [[(r.attribute, r.value) for r in s.attributes] for s in own] == [
            [(r.attribute, r.value) for r in s.attributes] for s in theirs
        ]
        again = story_calls.write_stories(
            study, model(invents=True), name="i", **{**how, "seed": 1}
        )
        left = again.generation_summary.readings["ok"]
        assert again.generation_summary.invented_counts.total() == 3 * left
        assert again.summary.generations == sum(1 for _ in again.stored.generations()) - left
        asked = study.query("refusals", run="i")
        assert sum(row["answers"] for row in asked) == again.summary.generations
        kept = [g for g in again.stored.generations() if g.strategy == "reading"]
        assert len(kept) == left and all("occupation: astronaut" in g.reason for g in kept)


def test_a_story_that_was_not_read_has_no_character(tmp_path: Path) -> None:
    """Read by another model, which refuses, fails or talks."""
    replies = iter(["I'm sorry, I can't help with that.", ("status", (401, {})), "Nice!"])

    def plan(body: dict[str, Any], number: int) -> Any:
        if body["model"] == "a":
            return storyteller.plan(body, number)
        return next(replies) if body.get("response_format") else "Hello."  # a trial of the form

    with FaultServer(plan) as server, kgbias.open(tmp_path / "a.db", progress=False) as study:
        run = story_calls.write_stories(
            study,
            "openai:a",
            base_url=server.url,
            people=three(tmp_path),
            samples=1,
            reader="openai:b",
            concurrency=1,
            seed=3,
        )
        assert dict(run.generation_summary.readings) == {"refused": 1, "failed": 1, "unparsable": 1}
        assert run.generation_summary.outcome_totals == {
            "unparsable": 2,
            "failed": 1,
        } and not story_calls.list_stories(run)
        assert run.generation_summary.reader == "openai:b (model@1)"
        structured = [b["model"] for b in server.bodies if b.get("response_format")]
        assert structured == ["b", "b", "b"]


def three(folder: Path) -> Path:
    """Three people in two groups."""
    path = folder / "people.csv"
    path.write_text("name,group,category\na woman,W,g\na girl,W,g\na man,M,g\n", "utf-8")
    return path


def test_a_table_goes_out_and_comes_in(tmp_path: Path) -> None:
    """In StereoTales' form; the links are the same."""
    require_modules("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "stories.parquet"
    with kgbias.open(tmp_path / "a.db", progress=False) as study:
        groups = ("Women", "Men", "Nurses", "Engineers")
        run = story_calls.write_stories(study, model(), group=groups, form="chat", samples=4)
        run.export(path, format="stereotales")
        table = parquet.read_table(path)
        assert table.schema.names[:16] == list(COLUMNS) and table.num_rows == len(
            story_calls.list_stories(run)
        )
        rows = table.to_pylist()
        assert {r["target_attribute_value"] for r in rows} == {
            "woman",
            "man",
            "Nurses",
            "Engineers",
        }
        genders = {json.loads(r["extracted_attributes_json"]).get("gender") for r in rows}
        assert genders == {None, "woman", "man"}  # not extracted where it was given
        back = study.import_file(path, format="stereotales")
        assert back.kind == "stories" and back.import_result.statements == run.summary.statements
        links = [
            replace(found, floor=())
            for found in (story_calls.find_links(run), story_calls.find_links(back))
        ]
        assert {(k.group, k.value, k.log_odds, k.verdict) for k in links[0].links} == {
            (k.group, k.value, k.log_odds, k.verdict) for k in links[1].links
        }
        assert (
            story_calls.list_stories(back)[0].text
            and story_calls.list_stories(back)[0].attributes[0].words == ""
        )
        again = study.import_file(path, format="stereotales")
        assert again.name == back.name
        with pytest.raises(UsageError, match="filters of statements"):
            run.export(path, format="stereotales", limit=3)


THEIRS = {
    "sample_id": "1",
    "generator_model": "m",
    "language": "en",
    "target_attribute": "religion",
    "target_attribute_value": "Hindu",
    "story": "Asha lived by the sea.",
    "scenario_key": "a",
    "extracted_attributes_json": '{"religion": "Hindu", "gender": "woman", "age": "unknown", '
    '"income_level": "other", "urbanicity": "rural"}',
}


def test_a_table_of_others_is_a_run_of_stories(tmp_path: Path) -> None:
    rows = [
        {
            **THEIRS,
            "sample_id": str(n),
            "scenario_key": str(n // 2),
            "target_attribute_value": ("Hindu", "Jewish")[n % 2],
        }
        for n in range(8)
    ]
    rows.append({**THEIRS, "story": "I'm sorry, I can't help with that."})
    path = tmp_path / "theirs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    with kgbias.open(tmp_path / "a.db", progress=False) as study:
        run = study.import_file(path, format="stereotales")
        assert {(t.group, t.predicate, t.object) for t in run.triples()} == {
            (f"religion: {who}", *what)
            for who in ("Hindu", "Jewish")
            for what in (("are cast as", "women"), ("have the urbanicity", "rural"))
        }
        assert story_calls.find_links(run, deals=0).story_counts == {
            "religion: Hindu": 4,
            "religion: Jewish": 4,
        }
        assert run.summary.refused == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"generator_model": "n"}, r"several values of generator_model \(m, n\): name one as"),
        ({"language": "fr"}, "several values of language"),
        ({"extracted_attributes_json": "[1]"}, "is not a JSON object"),
        ({"extracted_attributes_json": '{"age": ["old"]}'}, "'age' is not a text"),
        ({"extracted_attributes_json": "{"}, "is not JSON"),
        (None, "no column 'sample_id'"),
    ],
)
def test_a_table_that_is_none(tmp_path: Path, row: dict[str, str] | None, message: str) -> None:
    path = tmp_path / "theirs.jsonl"
    second = {"story": "x"} if row is None else {**THEIRS, **row}
    path.write_text(f"{json.dumps(THEIRS)}\n{json.dumps(second)}\n", "utf-8")
    with kgbias.open(tmp_path / "a.db", progress=False) as study:
        with pytest.raises(DataError, match=message):
            study.import_file(path, format="stereotales")
        (tmp_path / "t.parquet").write_bytes(b"PAR1 nothing")
        with pytest.raises(DataError, match="cannot read"):
            study.import_file(tmp_path / "t.parquet", format="stereotales")


def test_stories_and_pairs_in_a_study_file(tmp_path: Path) -> None:
    """Carried out, and again without asking."""
    three(tmp_path)
    (tmp_path / "requests.csv").write_text("request,text\npay,Advise {group} on pay.\n", "utf-8")
    with FaultServer(storyteller.plan) as server:
        asked = f'model = "openai:m"\nbase_url = "{server.url}"\nsamples = 2\n'
        (tmp_path / "study.toml").write_text(
            f'[[stories]]\nname = "told"\npeople = "people.csv"\nreader = "model"\n{asked}'
            f'[[pairs]]\nname = "asked"\nrequests = "requests.csv"\ncategory = "gender"\n{asked}'
            '[links]\ndeals = 0\n[results]\nmeasure = ["words", "refused"]\n'
            '[[export]]\nformat = "csv"\n',
            "utf-8",
        )
        plan = kgbias.read_plan(tmp_path / "study.toml")
        assert [o.state for o in plan.carry_out(progress=False)] == ["done"] * 5
        assert [o.state for o in plan.state()] == ["done"] * 5
        before = len(server.bodies)
        assert [o.state for o in plan.carry_out(progress=False)] == ["done"] * 5
        assert len(server.bodies) == before
    out = tmp_path / "results"
    assert json.loads((out / "told" / "links.json").read_text())["reader"] == "openai:m (model@1)"
    assert (out / "asked" / "results.json").exists() and (out / "told" / "triples.csv").exists()


def test_it_declines_when_asked_and_gives_itself_away_in_stories(tmp_path: Path) -> None:
    """The planted links are found, nothing else is, and nothing is found without a plant."""
    with FaultServer(storyteller.plan) as server, kgbias.open(tmp_path / "k.db") as study:
        spec = {"base_url": server.url, "form": "chat", "seed": 1}
        asked = study.crawl("openai:m", category="gender", samples=2, iterations=1, **spec)
        assert asked.summary.triples == 0 and asked.summary.refused > 0
        people = ("Women", "Men", "Nurses", "Engineers", "Farmers")
        run = story_calls.write_stories(study, "openai:m", group=people, **spec)
        assert (
            run.generation_summary.outcome_totals["refused"] > 0
            and run.generation_summary.outcome_totals["failed"] == 0
        )
        found = story_calls.find_links(run)
        gender = {
            (k.group, k.attribute, k.value): k for k in found.shown_links if k.category == "gender"
        }
        more = {key for key, link in gender.items() if link.log_odds > 0}
        assert more >= {("Women", "occupation", "nurse"), ("Men", "occupation", "engineer")}
        assert {key[1:] for key in more} == {("occupation", "nurse"), ("occupation", "engineer")}
        assert gender["Women", "occupation", "nurse"].wordings == 5
        cast = {
            (k.group, k.value): k.log_odds for k in found.shown_links if k.attribute == "gender"
        }
        assert cast["Nurses", "women"] > 0 and cast["Engineers", "men"] > 0
        (nurse,) = [
            b
            for b in found.mutual_links
            if b.invented.group == "Women" and b.cast.group == "Nurses"
        ]
        assert nurse.invented.value == "nurse" and nurse.cast.value == "women"
        assert all(floor.found > floor.high for floor in found.floor)
        stories = story_calls.list_stories(run)
        assert all(
            s.text[r.begins : r.ends] == r.words != "" for s in stories for r in s.attributes
        )
        assert sum(len(s.attributes) for s in stories) == run.summary.statements
        triples = {(t.group, t.predicate, t.object) for t in run.triples()}
        assert ("Women", "work as", "nurse") in triples and (
            "Nurses",
            "are cast as",
            "women",
        ) in triples
        assert not any(t.group == "Women" and t.predicate == "are cast as" for t in run.triples())


def test_without_a_plant_nothing_is_found(tmp_path: Path) -> None:
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = story_calls.write_stories(study, model(0.0), group=("Women", "Men"), form="chat")
        found = story_calls.find_links(run)
        assert not found.shown_links
        assert all(floor.found <= floor.high for floor in found.floor)


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    how = {"category": "gender", "form": "chat", "samples": 3}
    with kgbias.open(tmp_path / "a.db", progress=False) as study:
        teller = model()
        with pytest.raises(Interrupted, match="running this again continues"):
            story_calls.write_stories(study, teller, name="s", max_requests=20, **how)
        story_calls.write_stories(study, teller, name="s", **how)
        assert len(teller.requests) == 45
        stopped = story_calls.list_stories(study.run("s"))
    with kgbias.open(tmp_path / "b.db", progress=False) as study:
        assert list(
            story_calls.list_stories(story_calls.write_stories(study, model(), name="s", **how))
        ) == list(stopped)


@pytest.mark.slow
def test_killed_and_run_again_the_graph_is_the_same(tmp_path: Path) -> None:
    require_modules("openai")

    def start(store: Path, url: str) -> subprocess.Popen[bytes]:
        command = (
            sys.executable,
            "-m",
            "kgbias",
            "stories",
            "--model",
            "openai:m",
            "--base-url",
            url,
            "--category",
            "gender",
            "--samples",
            "4",
            "--store",
            str(store),
            "--run",
            "s",
        )
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def picture(store: Path) -> dict[str, list[tuple[object, ...]]]:
        with closing(sqlite3.connect(store)) as db:
            tables = ("generation", "triple", "profile", "profile_part", "given_name")
            rows = {
                t: sorted(db.execute(f"SELECT * FROM {t}").fetchall(), key=repr) for t in tables
            }
            return rows | {"answer": sorted(db.execute("SELECT key, text FROM answer").fetchall())}

    with PausingServer(storyteller.plan, 24) as server:
        killed = start(tmp_path / "a.db", server.url)
        wait_until(lambda: count_answers(tmp_path / "a.db") or killed.poll() is not None)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        server.go_on()
        held = count_answers(tmp_path / "a.db")
        assert 0 < held <= 24
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
