"""The front door: a study and its runs, on a scripted model and a SQLite file."""

import math
import pickle
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any

import pytest

import kgbias
from kgbias.io.columns import ColumnFormat
from kgbias.io.rows import Rows
from kgbias.models.base import Request
from kgbias.stats.estimate import Estimate
from kgbias.study.records import Figure
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

SMALL = {
    "prompts": "salinas-2023",
    "samples": 2,
    "iterations": 1,
    "predicate_prompts": 2,
    "object_prompts": 2,
}


def reply(request: Request) -> str:
    rng = Random(request.seed)
    if rng.random() < 0.1:
        return "This question is offensive."
    if str(request.prompt).endswith("#"):
        return f" {rng.choice(['fear', 'make'])}\nA: {rng.choice(['rain', '<b>tea</b>'])}"
    return f" {rng.choice(['food', 'sport', 'work'])}."


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(reply)


@pytest.fixture
def study(tmp_path: Path) -> kgbias.Study:
    return kgbias.open(tmp_path / "kgbias.db", progress=False)


def test_a_crawl_names_its_model(study: kgbias.Study, model: ScriptedModel, texts: Texts) -> None:
    asked: Any = {"category": "gender", **SMALL}
    with study:
        with texts.raises(kgbias.UsageError):
            study.crawl(model, model_name="reference", **asked)
        assert not model.requests
        run = study.crawl(model, model_name="Model A", **asked)
        assert (run.model.title, run.model.name) == ("Model A", "scripted")
        again = study.crawl(ScriptedModel(reply), **asked)  # its name is kept
        assert (
            again.id == run.id
            and again.model.title == "Model A"
            and not again.crawl_result.asked_count
        )
        study.crawl(ScriptedModel(reply), model_name="Model B", **asked)
        assert [run.model.title for run in study.runs()] == ["Model B"]
        with texts.raises(kgbias.UsageError):
            study.crawl(ScriptedModel(reply, name="other"), model_name="Model B", **asked)


def test_a_crawl_is_a_run(study: kgbias.Study, model: ScriptedModel) -> None:
    with study:
        run = study.crawl(model, category="gender", name="mine", **SMALL)  # type: ignore[arg-type]
        assert run.name == "mine" and run.status == "complete" and run.model.name == "scripted"
        assert run.crawl_result.asked_count == len(model.requests)
        again = study.crawl(model, category=["gender"], name="mine", **SMALL)  # type: ignore[arg-type]
        assert again.crawl_result.asked_count == 0 and again.id == run.id
        assert [r.name for r in study.runs()] == ["mine"]
        assert study.run().id == study.run("mine").id == run.id
        with pytest.raises(kgbias.RunNotFound, match="choose from mine"):
            study.run("other")
        assert study.run("mine").crawl_result.outcomes == run.crawl_result.outcomes
        triples = run.triples()
        assert sum(t.count for t in triples) == run.crawl_result.outcomes["ok"]
        answers = run.generations()
        assert len(answers) == len(model.requests)
        assert {a.outcome for a in answers} == {"ok", "refused"}
        assert all(a.prompt and a.answer for a in answers)


def test_nothing_is_made_before_it_is_needed(tmp_path: Path, model: ScriptedModel) -> None:
    path = tmp_path / "kgbias.db"
    with kgbias.open(path, progress=False) as study:
        with pytest.raises(kgbias.StoreError, match="no store at"):
            study.runs()
        assert study.crawl("smollm2", category="gender", dry_run=True).requests > 300
        assert not path.exists()
        study.crawl(model, group=["Cats", "Dogs"], **SMALL)  # type: ignore[arg-type]
        assert path.exists() and [g.group for g in study.run().groups()] == ["Cats", "Dogs"]
    with pytest.raises(kgbias.StoreError, match="is closed"):
        study.runs()


def test_what_belongs_to_a_closed_study_or_another_thread_says_so(tmp_path: Path) -> None:
    said = [{"group": "Men", "predicate": "love", "object": "rain"}]
    with kgbias.open(tmp_path / "a.db", progress=False) as study:
        run = study.import_file(said)
        review = run.review()
        calls: list[Callable[[], Any]] = [study.runs, run.triples, review.answers, study.close]
        refused = []

        def call_all() -> None:
            for call in calls:
                with pytest.raises(kgbias.StoreError, match="opened in another thread") as error:
                    call()
                refused.append(error)

        thread = threading.Thread(target=call_all)
        thread.start()
        thread.join()
        assert len(refused) == len(calls) and study.runs()
    for call in (
        run.triples,
        review.answers,
        lambda: study.crawl(str, model_name="f", group="Men"),
    ):
        with pytest.raises(kgbias.StoreError, match="is closed"):
            call()


def test_a_path_begins_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with kgbias.open("~/a.db", progress=False) as study:
        run = study.import_file([{"group": "Men", "predicate": "love", "object": "rain"}])
        run.export("~/out.csv")
        assert (tmp_path / "out.csv").exists()
        assert study.import_file(Path("~/out.csv")).triples()[0].object == "rain"


def test_what_is_no_axes_is_refused(tmp_path: Path, texts: Texts) -> None:
    from kgbias.io.drawing import draw_estimates

    with texts.raises(kgbias.UsageError):
        draw_estimates([("a", kgbias.Estimate(1.0, 0.0, 2.0, 3))], "x", [])


@pytest.mark.parametrize("store", [5, ["k.db"], 1.5, b"k.db"])
def test_what_is_no_store_is_refused(store: Any, texts: Texts) -> None:
    with texts.raises(kgbias.UsageError):
        kgbias.open(store)


def test_one_run_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    with (
        kgbias.open(tmp_path / "k.db", progress=False) as study,
        pytest.raises(kgbias.UsageError, match="two runs or more"),
    ):
        study.compare_runs("one")


def test_a_temporary_study_leaves_nothing(model: ScriptedModel) -> None:
    with kgbias.open(None, progress=False) as study:
        study.crawl(model, category="gender", **SMALL)  # type: ignore[arg-type]
        path = Path(study.url)
        assert path.exists()
    assert not path.exists() and not path.parent.exists()


def test_target_coverage_means_the_same_everywhere() -> None:
    def second(**options: Any) -> int:
        asked = kgbias.price("smollm2", category="gender", predicate_prompts=10, **options)
        return asked.stages[1].requests

    assert second(target_coverage=0.8, answers=1) == 3 * 50 * 10
    assert second(answers=1) == 3 * 4 * 10
    assert second(target_coverage=0.8, iterations=2, answers=3) == 3 * 2 * 10 * 3
    config = kgbias.CrawlConfig(seeds=(), target_coverage=0.8)
    assert config.rounds == config.as_dict()["iterations"] == 50


def test_a_figure_shows_itself(texts: Texts) -> None:
    figure = Figure(-7.0, -21.4, 7.0, 97, "<Women>", "overall_regard", "bootstrap")
    page = figure._repr_html_()
    texts.check_lines(page, "&lt;Women&gt;: -7</b>")
    assert "bootstrap" in page
    line, dot = re.findall(r'd="M([\d.]+) 7H([\d.]+)"', page)[0], re.findall(r'cx="([\d.]+)"', page)
    assert [float(x) for x in (*line, *dot)] == [5.4, 117.7, 62.3]  # the tick of 0 is at 90
    nan = float("nan")
    alone = Figure(2.0, nan, nan, 1, "Women", "overall_regard")
    assert "<svg" not in alone._repr_html_()
    texts.check_lines(alone._repr_html_(), "n =")


def test_rows_are_a_sequence() -> None:
    rows = Rows([{"a": 1, "b": "<x>"}, {"a": 2, "b": "\x1b[31m"}])
    assert len(rows) == 2 and rows[0]["a"] == 1 and rows[-1:] == Rows([rows[1]])
    assert rows.columns == ("a", "b") and rows.records()[1]["a"] == 2
    assert "&lt;x&gt;" in rows._repr_html_() and "\x1b" not in repr(rows)
    assert Rows([], columns=("a",)).to_frame().columns.tolist() == ["a"]
    with pytest.raises(TypeError):
        rows[0] = {}  # type: ignore[index]


def test_a_value_of_another_kind_is_refused(study: kgbias.Study, model: ScriptedModel) -> None:
    with study:
        run = study.crawl(model, category="gender", **SMALL)  # type: ignore[arg-type]
        calls: dict[str, Any] = {
            "takes a path": lambda: run.figures(5),  # type: ignore[arg-type]
            "neither a path nor a stream": lambda: run.export(5),  # type: ignore[arg-type]
            "takes a whole number": lambda: run.export("t.csv", min_count="2"),  # type: ignore[arg-type]
            "no option 'devise' of open_model .did you mean device": lambda: kgbias.open_model(
                "reference",
                devise="cpu",  # type: ignore[call-arg]
            ),
            "takes True or False, not 'no'": lambda: run.measure(axes="no"),  # type: ignore[call-overload]
            "takes text": lambda: run.ask(5),  # type: ignore[arg-type]
        }
        for said, call in calls.items():
            with pytest.raises(kgbias.UsageError, match=said):
                call()


def test_ctrl_c_keeps_what_came(study: kgbias.Study, model: ScriptedModel, texts: Texts) -> None:
    def stopping(request: Request) -> str:
        if len(model.requests) == 9:
            raise KeyboardInterrupt
        return reply(request)

    model._reply = stopping
    with study:
        with texts.raises(kgbias.Interrupted):
            study.crawl(model, category="gender", name="cut", **SMALL)  # type: ignore[arg-type]
        assert study.run("cut").status == "stopped"
        model._reply = reply
        again = study.crawl(model, category="gender", name="cut", **SMALL)  # type: ignore[arg-type]
        assert again.crawl_result.cached_count >= 9 and again.status == "complete"


def test_repr_says_what_it_is(study: kgbias.Study, model: ScriptedModel, texts: Texts) -> None:
    with study:
        run = study.crawl(model, category="gender", name="<mine>", **SMALL)  # type: ignore[arg-type]
        texts.check(repr(run))
        page = run._repr_html_()
        assert "&lt;mine&gt;" in page and "Content warning" in page and "<mine>" not in page
        assert "not yet: run.measure()" in page
        assert "3 groups" not in repr(study) and study.url in repr(study)
        assert "&lt;mine&gt;" in study._repr_html_()
    assert repr(run) and "closed" in repr(study)


def test_rows_with_too_many_columns_print_a_summary(texts: Texts) -> None:
    record = {f"c{n}": n for n in range(50)}
    rows = Rows([record], shown=["c0"])
    texts.check("\n".join(repr(rows).split("\n")))
    assert "<th>c0</th>" in rows._repr_html_() and "c49" not in rows._repr_html_()
    assert rows.records() == [record] and repr(rows[:1]) == repr(rows)


@dataclass(frozen=True)
class Found:
    """A result with a figure, as those of a run are."""

    group: str
    lift: Annotated[Estimate, ColumnFormat("+.2f", ends=("low", "high"), count="names")]
    share: Estimate
    rank: int | None


def test_a_record_says_its_columns_once() -> None:
    """Of its fields follow the frame, what is printed, and what a command prints."""
    rows = Rows([Found("<x>", Estimate(1.5, 0.5, 2.5, 7), Estimate.missing(), None)], Found)
    frame_columns = ("group", "lift", "low", "high", "names", "share", "share_low", "share_high")
    assert rows.columns == (*frame_columns, "rank")
    (record,) = rows.records()
    assert [record[name] for name in frame_columns[:5]] == ["<x>", 1.5, 0.5, 2.5, 7]
    assert math.isnan(record["share"]) and math.isnan(record["share_high"])
    assert repr(rows).splitlines()[1].split() == ["<x>", "+1.50", "(+0.50", "to", "+2.50)"]
    restored = pickle.loads(pickle.dumps(rows))
    assert restored.records()[0]["high"] == 2.5 and repr(restored) == repr(rows)
