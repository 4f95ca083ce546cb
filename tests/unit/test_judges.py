"""Language models as judges, what labels mean, and the agreement of scorers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.errors import ModelError, UsageError
from kgbias.measure.labelled_sets import LabelledSet, LabelledStatement, read_shipped_set
from kgbias.measure.precision import SAMPLE_SIZE, check_shipped_labels
from kgbias.measure.scorer_agreement import cohens_kappa, correlation_estimate
from kgbias.measure.scorers import load_scorer
from kgbias.measure.scorers._llm import read_rubric
from kgbias.measures import MEASURES
from tests.conftest import require_modules
from tests.fault_server import Fault, FaultServer
from tests.texts import Texts
from training.scorers.labelled import draw

require_modules("openai")

NOTHING: dict[str, Any] = dict.fromkeys(MEASURES)
RUN = """group,predicate,object,count
Women,love,kind people,3
Women,hate,liars,1
Men,hate,kind people,2
Men,love,tea,1
Robots,love,kind people,1
Robots,hate,liars,4
"""


def labelled(measure: str) -> list[tuple[str, str]]:
    found = read_shipped_set(measure)
    assert found is not None
    return [(one.text, one.label) for one in found.statements]


def statement(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"]).removeprefix("Statement: ")


def judged(body: dict[str, Any], number: int) -> Fault:
    """Positive where kind people are loved, negative where they are hated; in JSON, as asked."""
    text = statement(body)
    label = "neutral"
    if "kind people" in text:
        label = "positive" if "love" in text else "negative"
    return json.dumps({"label": label})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    with FaultServer(judged) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
        yield running


@pytest.fixture
def run(tmp_path: Path) -> Iterator[kgbias.Run]:
    (file := tmp_path / "said.csv").write_text(RUN)
    with kgbias.open(tmp_path / "kgbias.db") as study:
        yield study.import_file(file, name="said")


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ('{"label": "negative"}', "negative"),
        ('```json\n{"label": "Negative"}\n```', "negative"),
        ("negative\n\nBecause ...", "negative"),
        ("Neutral: neither positive nor negative", "neutral"),
        ("I would say it is positive.", "positive"),
        ("It is neither positive nor negative.", None),
        ('{"label": "rude"}', None),
        ('{"label": ["negative"]}', None),
        ("I cannot judge people.", None),
        ("", None),
    ],
)
def test_reading_a_judgement(answer: str, label: str | None) -> None:
    assert read_rubric("regard").read_answer(answer) == label


@pytest.mark.parametrize("measure", ["regard", "toxicity", "identity_attack", "acceptability"])
def test_every_rubric_is_asked_in_both_forms(measure: str) -> None:
    rubric = read_rubric(measure)
    for form in ("completion", "chat"):
        asked = str(rubric.template.render(form, text="Dentists hate maps."))
        assert "Dentists hate maps." in asked
        assert all(label in asked for label in rubric.values)


def test_no_rubric_for_an_axis() -> None:
    with pytest.raises(UsageError, match="no rubric for warmth"):
        read_rubric("warmth")


def test_a_judge_scores_a_run_and_is_checked_first(
    server: FaultServer, run: kgbias.Run, capfd: pytest.CaptureFixture[str]
) -> None:
    run.measure(scorers=NOTHING | {"regard": "llm:openai:judge"}, axes=False)
    scores = {t.sentence: t.scores["regard"] for t in run.triples()}
    assert scores["Women love kind people."].value == 1.0
    assert scores["Men hate kind people."].label == "negative"
    assert scores["Men love tea."].details == {"negative": 0, "neutral": 1, "positive": 0}
    metric = run.stored.metrics()["regard"]
    assert metric.scorer == "llm:openai:judge"
    assert "regard@1" in metric.version
    _, *bodies = server.bodies  # the first sees whether messages are answered
    asked = [statement(body) for body in bodies]
    assert len(asked) == SAMPLE_SIZE + 6  # the labelled statements, then the run's
    assert set(asked[:SAMPLE_SIZE]) == {text for text, _ in labelled("regard")}
    assert bodies[0]["temperature"] == 0
    schema = bodies[0]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["label"]["enum"] == ["negative", "neutral", "positive"]
    run.measure(scorers=NOTHING | {"regard": "llm:openai:judge"}, axes=False)
    assert len(server.bodies) == 1 + SAMPLE_SIZE + 6  # nothing is asked twice


def test_an_unreadable_judgement_is_asked_for_again_and_then_left_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def plan(body: dict[str, Any], number: int) -> Fault:
        if "tea" in statement(body):
            return "I cannot say."
        if "maps" in statement(body) and not body["temperature"]:
            return "Well."
        return '{"label": "somewhat"}'

    with FaultServer(plan) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        scorer = load_scorer("identity_attack", "llm:openai:judge")
        maps, tea, ball = scorer.score(["Men hate maps.", "Men love tea.", "Men hate balls."])
    assert maps and (maps.value, maps.label) == (0.5, "attack")
    assert tea is None
    assert ball and ball.probabilities == {"no": 0, "somewhat": 1, "yes": 0}
    temperatures = [b["temperature"] for b in running.bodies if "tea" in statement(b)]
    assert temperatures == [0, 0.7, 0.7]


def test_a_judge_that_never_answers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer(lambda body, number: ("refuse", "no such model")) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        scorer = load_scorer("regard", "llm:openai:judge")
        with pytest.raises(ModelError, match="llm:openai:judge gave no answer"):
            scorer.score(["Men love tea."])


def test_the_check_is_kappa_with_the_labels(server: FaultServer, texts: Texts) -> None:
    scorer = load_scorer("regard", "llm:openai:judge")
    told = [
        ("Men love kind people.", "positive"),
        ("Men hate kind people.", "negative"),
        ("Men love tea.", "neutral"),
        ("Men fear tea.", "negative"),
    ]
    of = LabelledSet(
        "mine", "regard", "person", tuple(LabelledStatement(*each) for each in told), ("Ana",)
    )
    found = check_shipped_labels(scorer, of)
    assert found.same.value == 0.75
    # chance: (1/4)(1/4) + (1/4)(2/4) + (2/4)(1/4) = 5/16, so (3/4 - 5/16) / (11/16) = 7/11
    assert found.kappa.value == pytest.approx(7 / 11)
    assert found.floor == 0.5 and not found.learnt
    texts.check_lines(str(found), "person: kappa")


@pytest.mark.parametrize("measure", ["regard", "toxicity", "identity_attack", "acceptability"])
def test_labelled_statements_have_every_label(measure: str) -> None:
    found = labelled(measure)
    assert found == draw(measure) and 50 <= len(found) <= SAMPLE_SIZE
    labels = {label for _, label in found}
    assert labels == (
        {"negative", "neutral", "positive"}
        if measure == "regard"
        else {
            "toxicity": {"toxic", "not toxic"},
            "identity_attack": {"attack", "no attack"},
            "acceptability": {"meaningful", "not meaningful"},
        }[measure]
    )


def test_two_scorers_are_compared_and_the_first_counts(
    server: FaultServer, run: kgbias.Run, tmp_path: Path
) -> None:
    rows = ["text,regard,label"]
    for t in run.triples():  # the same of women and robots; men turned round
        value = 0.9 if "kind people" in t.sentence else 0.0
        label = "positive" if value else "neutral"
        rows.append(f"{t.sentence},{value},{label}")
    (file := tmp_path / "scores.csv").write_text("\n".join(rows))
    specs = ("llm:openai:judge", f"scores:{file}")
    run.measure(scorers=NOTHING | {"regard": specs}, axes=False)
    assert run.stored.metrics()["regard"].scorer == "llm:openai:judge"
    (found,) = run.agreement()
    assert found.first.startswith("llm:openai:judge@")
    assert found.n == 6
    assert found.same.value == pytest.approx(5 / 6)
    # by the judge: Women 3/4, Men -2/3, Robots 1/5; by the file Women 3/4, Men 2/3, Robots 1/5
    assert {m.group: (m.first, m.second) for m in found.moved} == {"Men": (1, 2), "Robots": (2, 1)}
    frame = run.agreement().to_frame()
    assert list(frame["measure"]) == ["regard"]
    page = run.report(tmp_path / "report.html").read_text("utf-8")
    assert "Do the scorers agree?" in page
    assert "Men 1 to 2, Robots 2 to 1" in page


def test_one_scorer_agrees_with_nobody(server: FaultServer, run: kgbias.Run, texts: Texts) -> None:
    run.measure(scorers=NOTHING | {"regard": "llm:openai:judge"}, axes=False)
    assert len(run.agreement()) == 0
    assert "kappa" in run.agreement().columns
    with texts.raises(UsageError):
        run.measure(scorers={"regard": ("llm:openai:judge", "llm:openai:judge")})


def test_kappa_against_hand_worked_values() -> None:
    first = ["a"] * 45 + ["b"] * 15 + ["a"] * 25 + ["b"] * 15
    second = ["a"] * 45 + ["b"] * 15 + ["b"] * 25 + ["a"] * 15
    same, found = cohens_kappa(first, second)  # Cohen's own kind of table: 45, 25, 15, 15
    assert same.value == 0.6
    assert found.value == pytest.approx((0.6 - 0.54) / 0.46)
    assert found.low < found.value < found.high
    constant = cohens_kappa(["a", "a"], ["a", "a"])[1]
    assert constant.value != constant.value  # undefined


def test_the_interval_of_a_rank_correlation() -> None:
    stats = pytest.importorskip("scipy.stats")
    e = correlation_estimate(0.5, 103)
    half = stats.norm.ppf(0.975) * (1.125 / 100) ** 0.5
    import math

    assert e.low == pytest.approx(math.tanh(math.atanh(0.5) - half))
    assert e.high == pytest.approx(math.tanh(math.atanh(0.5) + half))
    assert not correlation_estimate(0.5, 9).has_interval and correlation_estimate(0.5, 10).is_shown
    assert not correlation_estimate(1.0, 50).has_interval  # the same order says not how certain
