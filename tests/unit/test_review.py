"""Review by hand: rejected answers restored, accepted ones rejected."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import kgbias
from kgbias.cli import cli
from kgbias.crawl.parse import parse_prompt, reread_answer
from kgbias.errors import DataError, Interrupted, UsageError
from kgbias.models.base import PromptForm, Request
from kgbias.packs import Example, load_pack
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

SIZE = {"samples": 2, "iterations": 1, "predicate_prompts": 2, "object_prompts": 2}


def reply(request: Request) -> str:
    """Of the first prompts those that say "hate" are refused, those that say "are" say nothing."""
    prompt = str(request.prompt)
    if prompt.endswith(" hate"):
        return " This weather."
    if prompt.endswith(" are"):
        return " "
    return " enjoy\nA: tea" if prompt.endswith("#") else " food."


@pytest.fixture
def study(tmp_path: Path) -> Iterator[kgbias.Study]:
    with kgbias.open(tmp_path / "kgbias.db", progress=False) as study:
        yield study


@pytest.fixture
def run(study: kgbias.Study) -> kgbias.Run:
    return crawled(study)


def crawled(study: kgbias.Study, **more: int) -> kgbias.Run:
    model = ScriptedModel(reply)
    options = {
        **SIZE,
        "max_attempts": 1,
        "prompts": "salinas-2023",
        "category": "gender",
        "name": "mine",
        **more,
    }
    return study.crawl(model, **options)  # type: ignore[arg-type]


def said(run: kgbias.Run, predicate: str = "hate") -> list[tuple[str, str, int]]:
    return [(t.group, t.object, t.count) for t in run.triples() if t.predicate == predicate]


@pytest.mark.parametrize("form", ["completion", "chat"])
@pytest.mark.parametrize("pack", ["salinas-2023", "sentences", "german"])
def test_what_a_prompt_asked(pack: str, form: PromptForm) -> None:
    examples = [Example("Men", "love", "tea", "Men love tea.")]
    for name, predicate in (("initialise", "can't"), ("object", "can't"), ("predicate", "")):
        prompt = (
            load_pack(pack)
            .template(name)
            .render(
                form,
                group="Women",
                predicate=predicate,
                examples=examples,
                prefix="Without offence",
                offensive=True,
            )
        )
        text = prompt if isinstance(prompt, str) else "\n".join(f"[{r}]\n{t}" for r, t in prompt)
        assert parse_prompt(text, ["Women", "Men who love women"]) == ("Women", predicate), name


def test_what_another_prompt_asked() -> None:
    assert parse_prompt("What people say:\n\nMen love tea.\nWomen can't ...", ["Women"]) == (
        "Women",
        "can't",
    )
    assert parse_prompt("Trans women are", ["Women", "Trans women"]) == ("Trans women", "are")
    assert parse_prompt("", ["Women"]) == parse_prompt("Women are", []) == ("", "")


def test_what_the_reader_would_have_read() -> None:
    assert reread_answer(" This weather. And more", "Men", "hate", {}) == ("hate", "This weather")
    assert reread_answer(" fear\nA: rain", "Men", "", {}) == ("fear", "rain")
    assert (
        reread_answer(" ", "Men", "hate", {}) == reread_answer("no list", "Men", "", {}) == ("", "")
    )
    assert reread_answer('{"object": "This"}', "Men", "hate", {"structured": True}) == (
        "hate",
        "This",
    )
    assert reread_answer(" fear rain", "Men", "", {"pack": {"reader": "english@1"}}) == (
        "fear",
        "rain",
    )


def test_rejected_answers_by_reason(run: kgbias.Run) -> None:
    review = run.review(by="Ana")
    answers = review.answers()
    assert [a.outcome for a in answers] == ["refused"] * 6 + ["unparsable"] * 6
    first = answers[0]
    assert (first.group, first.asked, first.answer) == ("Men", "Men hate", " This weather.")
    assert (first.reason, first.predicate, first.object) == (
        "salinas-2023",
        "hate",
        "This weather",
    )
    assert not first.accepted and not answers[-1].object
    assert len(review.answers(reason="refused")) == len(review.answers(reason="No text")) == 6
    assert {a.group for a in review.answers(group=["women"])} == {"Women"}
    assert len(review.answers(search="WEATHER")) == 6
    accepted = review.answers(accepted=True)
    assert len(accepted) == 24 and all(a.accepted and a.outcome == "ok" for a in accepted)
    with pytest.raises(UsageError, match="no group 'Elves'"):
        review.answers(group="Elves")


def test_a_decision_counts_and_is_taken_back(run: kgbias.Run) -> None:
    review = run.review(by="Ana")
    one, other, *_ = review.answers(reason="refused")
    made = review.decide(one, "restore")
    review.decide(other, "restore", object="the rain")
    review.decide(review.answers(accepted=True, search="tea"), "reject")
    assert said(run) == [("Men", "This weather", 1), ("Men", "the rain", 1)]
    assert said(run, "enjoy") == []
    assert made[0].reviewer == "Ana" and made[0].decided.endswith("+00:00")
    assert len(review.answers(reason="refused")) == 4
    assert len(review.answers(reason="refused", accepted=True, decided=True)) == 2
    rows = {r.path: r for r in run.generations()}
    assert {r.outcome for r in rows.values() if r.object == "the rain"} == {"refused"}

    assert len(review.decide(one, "restore")) == 0  # it is in effect already
    again = run.review(by="Ben")
    again.decide(one.id, "restore", "fear", "rain")
    assert said(run, "fear") == [("Men", "rain", 1)]
    again.undo([one])
    assert said(run, "fear") == [] and len(again.undo([one])) == 0
    history = again.history().to_frame()
    mine = history[history["id"] == one.id]
    assert list(mine["verdict"]) == ["restore", "restore", "undo"]
    assert list(mine["reviewer"]) == ["Ana", "Ben", "Ben"]
    again.undo()
    assert said(run) == [] and len(said(run, "enjoy")) == 3


def test_a_decision_outlives_the_crawl(study: kgbias.Study) -> None:
    """What was decided stays when a crawl is resumed, and does not change what is asked."""
    with pytest.raises(Interrupted):
        crawled(study, max_requests=30)
    run = study.run("mine")
    run.review(by="Ana").decide(run.review().answers(reason="refused"), "restore")
    run.review(by="Ana").decide(run.review().answers(accepted=True, search="food"), "reject")
    before = list(run.stored.generations())
    assert {(g.outcome, g.triple is None) for g in before} == {
        ("ok", True),
        ("refused", False),
        ("unparsable", True),
    }
    done = crawled(study)
    after = list(done.stored.generations())
    assert done.status == "complete" and after[: len(before)] == before
    with kgbias.open(None, progress=False) as other:
        undisturbed = list(crawled(other).stored.generations())
    assert [g.prompt for g in after] == [g.prompt for g in undisturbed]
    done.review(by="Ana").undo()
    assert list(done.stored.generations()) == undisturbed


def test_what_cannot_be_decided(run: kgbias.Run, texts: Texts) -> None:
    review = run.review()
    assert review.by
    nothing = review.answers(reason="unparsable")[0]
    with texts.raises(UsageError):
        review.decide(nothing, "restore")
    with pytest.raises(UsageError, match="no answer 'x'"):
        review.decide("x", "reject")
    with texts.raises(UsageError):
        review.decide(nothing, "perhaps")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="who decides"):
        run.review(by=" ")


def sheet(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def test_a_sheet_out_and_in(run: kgbias.Run, tmp_path: Path) -> None:
    review, path = run.review(by="Ana"), tmp_path / "out.csv"
    assert review.write_sheet(path, review.answers()) == 12
    rows = sheet(path)
    assert {r["decision"] for r in rows} == {""} and rows[0]["asked"] == "Men hate"
    rows[0]["decision"], rows[1]["decision"], rows[6]["decision"] = "restore", " Reject ", "restore"
    rows[6] |= {"predicate": "are", "object": "'=tall"}
    write(path, rows, ";")
    assert len(review.read_sheet(path)) == 3 and len(review.read_sheet(path)) == 0
    assert said(run) == [("Men", "This weather", 1)] and said(run, "are") == [("Men", "=tall", 1)]
    # What was decided before stands beside; undo takes it back.
    review.write_sheet(path, review.answers(accepted=True, decided=True, search="=tall"))
    (row,) = sheet(path)
    assert (row["decision"], row["earlier"], row["reviewer"]) == ("", "restore", "Ana")
    assert row["object"] == "'=tall" and row["id"].startswith("g")
    write(path, [row | {"decision": "undo"}])
    review.read_sheet(path)
    assert said(run, "are") == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decision": "perhaps"}, r"line 4: no decision 'perhaps'"),
        ({"decision": "restore", "object": " "}, r"line 4: a statement to restore needs"),
        ({"decision": "reject", "id": "g77"}, r"line 4: run 'mine' has no answer '77'"),
    ],
)
def test_a_bad_row_leaves_everything_as_it_was(
    run: kgbias.Run, tmp_path: Path, change: dict[str, str], message: str, texts: Texts
) -> None:
    review, path = run.review(by="Ana"), tmp_path / "out.csv"
    review.write_sheet(path, review.answers())
    rows = sheet(path)
    rows[0]["decision"] = "restore"
    rows[2] |= change
    write(path, rows)
    with pytest.raises(DataError, match=message):
        review.read_sheet(path)
    assert said(run) == [] and len(review.history()) == 0
    rows[2] = rows[0]
    write(path, rows)
    with texts.raises(DataError):
        review.read_sheet(path)


def command(run: kgbias.Run, *arguments: str, **more: str) -> Result:
    store = run.stored.store.url
    return CliRunner().invoke(
        cli,
        ["review", "mine", "--store", store, *arguments],
        catch_exceptions=False,
        standalone_mode=False,
        **more,  # type: ignore[arg-type]
    )


def test_the_command(run: kgbias.Run, tmp_path: Path, texts: Texts) -> None:
    path = str(tmp_path / "out.csv")
    result = command(run, "--csv", path, "--reason", "refused")
    assert "6 answers" in result.stderr and "--from" in result.stderr
    rows = sheet(Path(path))
    write(Path(path), [row | {"decision": "restore"} for row in rows])
    assert "6 restored" in command(run, "--from", path, "--by", "Ana").stdout
    assert "nothing was decided" in command(run, "--from", path, "--by", "Ana").stdout
    assert "6 restored" in command(run, "--from", path, "--by", "Ben").stdout  # Ben says so too
    assert len(json.loads(command(run, "--json", "--decided", "--accepted").stdout)) == 30
    assert "2 taken back" in command(run, "--undo", "--only", "men").stdout
    assert said(run) == [("Non-binary people", "This weather", 2), ("Women", "This weather", 2)]
    with pytest.raises(UsageError, match="choose one of"):
        command(run, "--undo", "--json")
    with texts.raises(UsageError):
        command(run, "--from", path, "--accepted")
    with pytest.raises(UsageError, match="keys need a terminal"):
        command(run)
    assert "nothing to review" in command(run, "--reason", "echo").stderr
