"""Answers in a model's words, and questions as Cypher."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.ask import AnswerClaim, split_claims
from kgbias.ask.text2cypher import describe_schema, extract_query
from kgbias.cli import cli
from kgbias.errors import UsageError
from tests.conftest import require_modules
from tests.fault_server import FaultServer
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

CSV = (
    "group,predicate,object,count\nWomen,love,hard work,3\nMen,hate,hard work,1\nWomen,are,kind,1\n"
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> kgbias.Run:
    module = import_module("kgbias.ask.retrieval")  # the name is also that of its function
    monkeypatch.setattr(module, "add_neighbours", lambda run, counted, found: found)
    (tmp_path / "s.csv").write_text(CSV)
    return kgbias.open(tmp_path / "k.db").import_file(tmp_path / "s.csv", name="small")


def test_claims_have_the_sources_that_there_are() -> None:
    text = "Women work [1]. They are kind [2, 9].\nNobody knows why. [1]"
    assert split_claims(text, 2) == (
        AnswerClaim("Women work [1].", (1,)),
        AnswerClaim("They are kind [2, 9].", (2,), (9,)),
        AnswerClaim("Nobody knows why. [1]", (1,)),
    )
    assert [c.has_sources for c in split_claims(text + " So it is.", 2)] == [
        True,
        False,
        True,
        False,
    ]
    assert split_claims("[1]", 1) == ()


def test_a_model_answers_from_the_statements(run: kgbias.Run, texts: Texts) -> None:
    model = ScriptedModel(lambda _: "The model says that women love hard work [1]. Also gold [7].")
    answer = run.ask("women and work", model=model, encoder=None)
    (request,) = model.requests
    texts.check_lines(request.prompt[1][1], "Women love")
    assert "kind" not in request.prompt[1][1]
    assert [c.has_sources for c in answer.claims] == [True, False]
    record = answer.as_dict()
    assert record["model"] == "scripted" and record["statements"][0]["cited"]
    assert record["claims"][1]["wrong"] == [7]
    run.ask("women and work", model=model, encoder=None)
    assert len(model.requests) == 1  # the log had it


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("Women are great.", "scripted names no source for what it wrote: the statements are"),
        ("Women are great [9].", "scripted names no source for what it wrote"),
        ("…", "scripted wrote no answer"),
        ("Women love hard work [1]. And so on.", ""),
    ],
)
def test_a_model_that_names_no_source_is_said_to(run: kgbias.Run, text: str, note: str) -> None:
    """Or one that there is not; the statements stand beside it."""
    answer = run.ask("women and work", model=ScriptedModel(lambda _: text), encoder=None)
    assert answer.note.startswith(note) and bool(answer.note) == bool(note)
    assert answer.as_dict()["note"] == answer.note and len(answer.statements) == 1


def test_without_statements_no_model_is_asked(run: kgbias.Run, texts: Texts) -> None:
    model = ScriptedModel(lambda _: "Martians are green [1].")
    answer = run.ask("Martians", model=model, encoder=None)
    texts.check(answer.text)
    assert model.requests == [] and answer.claims == ()
    with pytest.raises(UsageError, match="`form` needs a model"):
        run.ask("women", asking={"form": "chat"})


def test_queries_are_found_in_answers() -> None:
    assert extract_query("Sure!\n```\nMATCH (n) RETURN n\n```\nDone.") == "MATCH (n) RETURN n"
    assert extract_query("Answer: OPTIONAL MATCH (n) RETURN n;") == "OPTIONAL MATCH (n) RETURN n"
    assert extract_query("I cannot do that.") == ""
    assert "(:SocialGroup)-[:STEREOTYPE {run: text" in describe_schema()


def test_the_command_asks_a_server(run: kgbias.Run, tmp_path: Path, texts: Texts) -> None:
    require_modules("openai")

    def plan(body: dict[str, Any], number: int) -> str:
        if len(body["messages"]) == 1:  # whether messages are answered
            return "Hello."
        texts.check_lines(body["messages"][1]["content"], "Women love")
        return "They say women love hard work [1]. And much more."

    arguments = ["ask", "women and work", "--store", str(tmp_path / "k.db")]
    arguments += ["--set", "encoder=none"]
    with FaultServer(plan) as server:
        asked = [*arguments, "--model", "openai:m", "--base-url", server.url]
        shown = CliRunner().invoke(cli, asked)
        texts.check_lines(shown.stdout, "women love")
        texts.check_lines(shown.stdout, "much more.")
        record = json.loads(CliRunner().invoke(cli, [*asked, "--json"]).stdout)
        assert record["claims"][0]["cites"] == [1]
        assert sum(server.request_counts.values()) == 2
    for wrong in (["--cypher"], ["--set", "form=chat"]):
        refused = CliRunner().invoke(cli, [*arguments, *wrong])
        assert isinstance(refused.exception, UsageError)
