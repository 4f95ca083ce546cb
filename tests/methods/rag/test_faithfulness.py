"""Faithfulness: rules, judges with a script, metrics by hand, pairs, and the parser of a crawl."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError, UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Answer, Generation, Group, Run, Triple
from kgbias.io.progress import SilentProgress
from kgbias.methods import rag
from kgbias.methods.rag.judge_reliability import (
    CORRUPTIONS,
    corruption_of,
    load_cases,
    make_world_pairs,
    measure_reliability,
)
from kgbias.methods.rag.judges import (
    LocalJudge,
    list_items,
    open_judge,
    read_verdicts,
    split_answer_sentences,
)
from kgbias.methods.rag.metrics import (
    AnswerRecord,
    answer_relevance,
    context_relevance,
    faithfulness,
    mean_over_records,
    read_answer_records,
    retest_agreement,
)
from kgbias.methods.rag.preference import pairwise_accuracy, read_wikieval
from kgbias.methods.rag.rules import check_statement, check_triple
from kgbias.models.base import ModelInfo, Request
from kgbias.reference import load_truth
from kgbias.stats.inference import proportion
from tests.conftest import require_modules
from tests.fault_server import FaultServer
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

CONTEXT = "Bakers love bread. Bakers hate cold ovens. Bakers are not lazy."


def spread(texts: Sequence[str]) -> np.ndarray:
    """An embedder of letters."""
    rows = np.array([[t.lower().count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for t in texts])
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


@pytest.mark.parametrize(
    ("source", "statement", "reason"),
    [
        ("Bakers love bread.", "Bakers love bread", ""),
        ("It is bread that bakers love.", "Bakers love bread.", ""),
        ("Bakers love bread.", "Bakers love cakes.", "words"),
        ("Bakers do not love bread.", "Bakers love bread.", "negation"),
        ("Bakers can't love bread.", "Bakers cannot love bread.", ""),
        ("Some people say that bakers love bread.", "Bakers love bread.", "attributed"),
        ("Some people say that bakers love bread.", "Some people say bakers love bread.", ""),
    ],
)
def test_one_sentence_says_another(source: str, statement: str, reason: str) -> None:
    assert check_statement(source, statement).reason == reason


@pytest.mark.parametrize(
    ("answer", "predicate", "object", "reason"),
    [
        ("Men love bread.", "love", "bread", ""),
        ("Men love bread and cake.", "love", "bread", ""),
        ("Sure! Men love Men love bread.", "love", "bread", ""),
        ("Men do not love bread.", "love", "bread", "negation"),
        ("Men love bread, but only if it is free.", "love", "bread", "cut"),
        ("Men are lazy. This is a stereotype.", "are", "lazy", "cut"),
        ("It is a myth that men are lazy.", "are", "lazy", "attributed"),
        ("Men are lazy.", "are", "stupid", "words"),
        ("Men love the smell of the", "love", "the smell of the", "unfinished"),
        ("Men can’t cook.", "can't", "cook", ""),
    ],
)
def test_a_triple_keeps_what_the_answer_said(
    answer: str, predicate: str, object: str, reason: str
) -> None:
    assert check_triple(answer, "men", predicate, object).reason == reason


def paper(request: Request) -> str:
    """A judge that answers the prompts of the paper by a script."""
    system, user = (text for _, text in request.prompt)  # type: ignore[misc]
    if system.startswith("Given a question and answer"):
        return "1. Bakers love bread.\n2. Bakers love gold.\n"
    if system.startswith("Consider the given context"):
        asked = user.rpartition("context:")[2]
        known = [line for line in asked.splitlines() if line.startswith("statement:")]
        said = ["No" if "gold" in line else "Yes" for line in known]
        return "No gold is there. Final verdict for each statement in order: " + ". ".join(said)
    if system.startswith("Generate a question"):
        return "question: What do bakers love?" if request.seed else "Who are bakers?"
    if system.startswith("Please extract"):
        return "- Bakers love bread.\nBakers love gold."
    if "range 0-10" in system:
        return "I give it 7/10." if "gold" in user else "9"
    return "1"


def test_the_metrics_are_those_of_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgbias.methods.rag.judges.make_lazy_embedder", lambda progress: spread)
    record = AnswerRecord("What do bakers love?", "They love bread and gold.", CONTEXT)
    model = ScriptedModel(paper)
    with kgbias.open(tmp_path / "k.db") as study:
        faith, answer, context = rag.judge_records(study, [record], model)
        assert faith.estimate.value == 0.5  # one of two statements follows
        assert faith.scores[0][0].parts == (
            ("Bakers love bread.", True),
            ("Bakers love gold.", False),
        )
        near = spread(["What do bakers love?", "Who are bakers?"])
        # two of the three questions are the question itself
        assert answer.estimate.value == pytest.approx((2 + near[0] @ near[1]) / 3)
        assert context.estimate.value == pytest.approx(1 / 3)  # what is no sentence does not count
        asked = len(model.requests)
        rag.judge_records(study, [record], model)
        assert len(model.requests) == asked  # all from the log


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("Bakers love bread. Bakers hate cold ovens.", 1.0),
        ("Bakers love bread. Bakers hate bread.", 0.5),  # swapped
        ("Bakers love bread. Bakers do not hate cold ovens.", 0.5),  # negated
        ("Bakers love bread. Bakers hate cold ovens. Bakers are rich.", 2 / 3),  # added
        ("Bakers are lazy. [1]", 0.0),
    ],
)
def test_corrupted_answers_score_lower(answer: str, score: float) -> None:
    metric = faithfulness([AnswerRecord("?", answer, CONTEXT)], LocalJudge())
    assert metric.estimate.value == pytest.approx(score)


def test_a_model_on_a_server_judges(tmp_path: Path) -> None:
    require_modules("openai")

    def plan(body: dict[str, Any], number: int) -> str:
        """Extracts sentences, and says yes to those that stand in the context to the letter."""
        user = body["messages"][-1]["content"]
        if "answer:" in user:
            answer = user.rpartition("answer:")[2].partition("statements:")[0]
            return "\n".join(split_answer_sentences(answer))
        asked = user.rpartition("context:")[2]
        context = asked.partition("statement:")[0]
        stated = [x[11:].strip() for x in asked.splitlines() if x.startswith("statement:")]
        return "Final verdict: " + " ".join("Yes." if s in context else "No." for s in stated)

    corrupted = {
        "true": "Bakers love bread. Bakers hate cold ovens.",
        "swapped": "Bakers love bread. Bakers hate bread.",
        "negated": "Bakers do not love bread. Bakers hate cold ovens.",
        "added": "Bakers love bread. Bakers hate cold ovens. Bakers are rich.",
    }
    with FaultServer(plan) as server, kgbias.open(tmp_path / "k.db") as study:
        how: Any = {"base_url": server.url}
        with open_judge("openai:m", study.context.writable(), SilentProgress(), 0, how) as judge:
            found = faithfulness(
                [AnswerRecord("?", a, CONTEXT) for a in corrupted.values()], judge, 2
            )
    scores = {k: own[0].value for k, own in zip(corrupted, found.scores, strict=True)}
    assert scores == {"true": 1.0, "swapped": 0.5, "negated": 0.5, "added": pytest.approx(2 / 3)}
    assert found.retest.value == 1.0 and 0 < found.estimate.low < 0.5 < found.estimate.high < 1


def test_local_relevance() -> None:
    record = AnswerRecord("What do bakers love?", "Bakers love bread.", CONTEXT)
    metric = context_relevance([record], LocalJudge())
    assert metric.estimate.value == 1.0  # all are about bakers
    answer = answer_relevance([record], LocalJudge(), spread)  # it writes no questions
    assert math.isnan(answer.estimate.value) and answer.estimate.n == 0


def test_records_are_read_in_either_form(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(
        '{"question": "Who?", "answer": "Bo.", "context": "Bo sings."}\n'
        '{"user_input": "Who?", "response": "Bo.", "retrieved_contexts": ["Bo sings.", "Al."]}\n'
    )
    assert read_answer_records(tmp_path / "r.jsonl") == [
        AnswerRecord("Who?", "Bo.", "Bo sings."),
        AnswerRecord("Who?", "Bo.", "Bo sings. Al."),
    ]


def test_intervals_are_over_records_and_repeats() -> None:
    e = mean_over_records([[0.0, 1.0], [1.0, 1.0], [math.nan]])
    assert (e.value, e.n) == (0.75, 2) and not e.has_interval  # two records say too little
    e = mean_over_records([[0.0, 1.0], [1.0, 1.0], [1.0]])
    assert 0 < e.low < 0.5 < e.value < e.high < 1
    assert mean_over_records([[1.0]] * 8).low == pytest.approx(proportion(8, 8).low)
    outside = mean_over_records([[-0.2], [0.4], [0.7]])  # cosines: Student's
    assert outside.low < -0.2 and outside.high > 0.7
    assert math.isnan(mean_over_records([[math.nan]]).value)
    again = retest_agreement([[True, True, True], [True, False, True], [None, True]])
    assert again.value == pytest.approx((1 + 1 / 3) / 2) and again.n == 2
    few, enough = (retest_agreement([[True, True]] * n) for n in (9, 10))
    assert (few.is_shown, enough.is_shown) == (False, True) and few.value == 1
    # Clopper and Pearson's: of ten that all agree, the tenth root of .025.
    assert (enough.low, enough.high) == (pytest.approx(0.025**0.1), 1.0)


def test_lists_and_verdicts_are_read() -> None:
    assert list_items("Statements:\n1. A is B.\n- C is D.\n\n") == ["A is B.", "C is D."]
    assert read_verdicts("Yes it is. Final verdict for each statement in order: No. Yes.", 2) == [
        False,
        True,
    ]
    assert read_verdicts("1. Yes\n2. No", 2) == [True, False]
    assert read_verdicts("I cannot say.", 2) == [None, None]
    assert split_answer_sentences("A b. C d [1, 2]. [3]\nE f") == ["A b.", "C d.", "E f"]


def test_reliability_of_the_rule() -> None:
    found = measure_reliability(LocalJudge(), 2)
    assert found.accuracy.n == len(load_cases()) == 39
    assert found.by_kind["negated"].value == 1.0
    assert found.by_kind["synonym"].value == 0.0  # rules do not know other words
    assert found.kappa.value > 0.6 and found.retest.value == 1.0


def test_a_judge_that_always_says_yes_has_no_kappa(tmp_path: Path) -> None:
    with kgbias.open(tmp_path / "k.db") as study:
        found = rag.check_judge(study, ScriptedModel(lambda _: "Final verdict: Yes."))
    assert found.kappa.value == pytest.approx(0.0)
    unread = rag.check_judge(kgbias.open(tmp_path / "l.db"), ScriptedModel(lambda _: "Who knows?"))
    assert (unread.unread, unread.accuracy.value) == (39, 0.0)


def test_the_pairs_of_the_reference_world_are_true() -> None:
    rows = make_world_pairs()
    truth = load_truth()
    assert len(rows) == 50 and len({r.question + r.answer for r in rows}) == 50
    assert {corruption_of(n) for n in range(50)} == set(CORRUPTIONS)
    for row in rows:
        assert row.answer != row.ungrounded_answer
        context = split_answer_sentences(row.context_v1)
        group = next(g for g in truth.groups if context[0].startswith(g))
        for sentence in context:
            predicate, _, object = sentence.removeprefix(group + " ").rstrip(".").partition(" ")
            assert truth.is_true_of(group, predicate, object), sentence
        assert set(context) < set(split_answer_sentences(row.context_v2))
        if row.answer.startswith(group):  # without an opening, all of it stands in the context
            stated = [
                s.replace(f"{group} also ", f"{group} ") for s in split_answer_sentences(row.answer)
            ]
            assert set(stated) <= set(context)
            wrong = [
                s.replace(f"{group} also ", f"{group} ")
                for s in split_answer_sentences(row.ungrounded_answer)
            ]
            assert not set(wrong) <= set(context)


def test_pairwise_accuracy_of_the_rule_is_above_chance() -> None:
    found = {a.aspect: a for a in pairwise_accuracy(make_world_pairs(), LocalJudge(), spread)}
    assert found["faithfulness"].accuracy.low > 0.5
    assert found["context_relevance"].accuracy.low > 0.5


def test_the_baselines_of_table_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.methods.rag.judges.make_lazy_embedder", lambda progress: spread)
    row = {
        "question": "What do bakers love?",
        "answer": "They love bread.",
        "ungrounded_answer": "They love gold.",
        "poor_answer": "Things of gold.",
        "context_v1": ["Bakers love bread."],
        "context_v2": ["Bakers love bread. Kings love gold."],
        "source": "x",
    }
    (tmp_path / "w.jsonl").write_text("\n".join([json.dumps(row)] * 8))
    rows = read_wikieval(tmp_path / "w.jsonl")
    with kgbias.open(tmp_path / "k.db") as study:
        found = {
            (a.aspect, a.method): a for a in rag.judge_pairs(study, rows, ScriptedModel(paper))
        }
    assert found["faithfulness", "ragas"].ties == 8  # this judge finds the same in any answer
    assert found["faithfulness", "gpt-score"].accuracy.value == 1.0
    # one that always names the first is right as often as the better one stands first
    assert found["faithfulness", "gpt-ranking"].accuracy.value in {n / 8 for n in range(1, 8)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "holds no rows"),
        ("[1]", "no list of objects"),
        ('[{"question": "x"}]', "no 'answer'"),
    ],
)
def test_what_is_no_wikieval_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "w.json").write_text(text)
    with pytest.raises(DataError, match=said):
        read_wikieval(tmp_path / "w.json")


ASKED = [  # prompt, answer, triple, outcome
    ("Men love", " bread.", ("love", "bread"), "ok"),
    ("Men love", " bread, but only a little.", ("love", "bread"), "ok"),
    ("Men", " are not lazy.", ("are", "lazy"), "ok"),
    ("Men are", " lazy.", None, "echo"),
    ("Men are", " I cannot say.", None, "refused"),
]


@pytest.fixture
def crawled(tmp_path: Path) -> Path:
    men = Group("Men", "gender")
    with SQLiteStore(str(tmp_path / "k.db")) as store:
        config = {"pack": {"reader": "english@1"}}
        run = store.begin_run(Run("crawl", ModelInfo("m"), config, (men,)))
        store.keep_answers([Answer(f"k{n}", "m", a[1], "stop") for n, a in enumerate(ASKED)])
        generations = [
            Generation(
                run.id,
                f"none/{n}",
                men.id,
                "none",
                "object",
                0,
                0,
                outcome,
                prompt=prompt,
                answer_key=f"k{n}",
                triple=Triple("Men", *triple) if triple else None,
            )
            for n, (prompt, _, triple, outcome) in enumerate(ASKED)
        ]
        store.record_round(run.id, "none", 0, generations)
        store.set_status(run.id, "complete")
    return tmp_path / "k.db"


def test_a_cut_that_turns_meaning_round_is_found(crawled: Path) -> None:
    with kgbias.open(crawled) as study:
        found = rag.check_run(study.run())
    ok, echo, _refused = found.outcomes
    assert (ok.generations, ok.statements, ok.by_rule.value) == (3, 3, pytest.approx(1 / 3))
    assert ok.reasons == {"cut": 1, "negation": 1}
    assert (echo.statements, echo.by_rule.value) == (1, 1.0)  # read as it would have been
    assert [c.sentence for c in found.unfaithful] == ["Men love bread.", "Men are lazy."]


def test_a_judge_checks_the_parser_too(crawled: Path) -> None:
    model = ScriptedModel(
        lambda r: "Final verdict: " + ("No." if "but only" in r.prompt[-1][1] else "Yes.")
    )
    with kgbias.open(crawled) as study:
        found = rag.check_run(study.run(), model, repeats=2)
        assert found.outcomes[0].by_judge.value == pytest.approx(2 / 3)
        assert found.agreement.value == pytest.approx(3 / 4)  # not on the lost negation
        assert found.retest.value == 1.0
        few = rag.check_run(study.run(), model, sample=2)
        assert sum(bool(c.judged) for c in few.statements) == 2
        with pytest.raises(UsageError, match="need a judge"):
            rag.check_run(study.run(), sample=2)
        with pytest.raises(UsageError, match="`base_url` needs a judge"):
            rag.check_run(study.run(), "rule", base_url="x")


def test_a_paragraph_is_held_against_the_run(crawled: Path, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("Men love bread. Men love gold.")
    with kgbias.open(crawled) as study:
        metric = rag.check_text(study.run(), "Men love bread. Men love gold.")
    assert metric.estimate.value == 0.5
    arguments = ["faithfulness", "--store", str(crawled), "--text", str(tmp_path / "p.txt")]
    shown = CliRunner().invoke(cli, arguments)
    assert "yes  Men love bread." in shown.stdout and "no   Men love gold." in shown.stdout


def test_the_command(crawled: Path, texts: Texts) -> None:
    arguments = ["faithfulness", "crawl", "--store", str(crawled)]
    shown = CliRunner().invoke(cli, arguments)
    assert "ok 3 3 33%" in " ".join(shown.stdout.split())
    texts.check_lines(shown.stdout, "meaning turns")
    assert "kappa" in shown.stdout
    record = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).stdout)
    assert record["outcomes"][0]["by_rule"]["n"] == 3
    assert record["unfaithful"][0]["reason"] == "cut"
    assert record["reliability"]["judge"] == "rule"
