"""The same crawl several times over."""

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kgbias
from kgbias.crawl.config import CrawlConfig
from kgbias.errors import Interrupted, RunNotFound, UsageError
from kgbias.graph.types import GroupScore, Metric, Score
from kgbias.measure.figures import update_run_figures
from kgbias.models.base import Request
from kgbias.study.series import CrawlSpread
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

SIZE: dict[str, Any] = {
    "samples": 2,
    "iterations": 1,
    "predicate_prompts": 1,
    "object_prompts": 1,
    "category": "gender",
    "prompts": "salinas-2023",
}


def reply(request: Request) -> str:
    word = Random(request.seed).choice(["food", "sport", "rain", "music"])
    return f" fear\nA: {word}" if str(request.prompt).endswith("#") else f" {word}."


@pytest.fixture
def study(tmp_path: Path) -> Iterator[kgbias.Study]:
    with kgbias.open(tmp_path / "kgbias.db", progress=False) as study:
        yield study


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(reply)


def test_each_crawl_is_a_run_with_a_seed_of_its_own(
    study: kgbias.Study, model: ScriptedModel, texts: Texts
) -> None:
    series = study.crawl(model, name="mine", repeat=3, seed=7, **SIZE)
    assert [run.name for run in series] == ["mine", "mine~2", "mine~3"]
    assert len({run.config["seed"] for run in series}) == 3 and series[0].config["seed"] == 7
    assert len({r.seed for r in model.requests}) == len(model.requests)  # no request is shared
    said = [tuple((t.predicate, t.object, t.count) for t in run.triples()) for run in series]
    assert len(set(said)) == 3
    assert [run.name for run in study.series("mine~2")] == ["mine", "mine~2", "mine~3"]
    assert [r["series"] for r in study.runs().records()] == ["", "mine", "mine"]
    texts.check(repr(series))
    with texts.raises(RunNotFound):
        study.series("yours")


def test_the_first_is_the_crawl_without_repeating(
    study: kgbias.Study, model: ScriptedModel, texts: Texts
) -> None:
    plain = study.crawl(model, **SIZE)
    asked = len(model.requests)
    once = study.crawl(model, repeat=1, **SIZE)
    assert [run.id for run in once] == [plain.id] and len(model.requests) == asked
    twice = study.crawl(model, repeat=2, **SIZE)
    assert twice[0].id == plain.id and twice[1].name == f"{plain.name}~2"
    assert len(model.requests) == 2 * asked  # and what was asked is not asked again
    assert "series" not in plain.config and twice[1].config["series"] == plain.name
    assert len(study.series(plain.name)) == 2
    assert "series" not in CrawlConfig(seeds=()).as_dict()
    with texts.raises(UsageError):
        study.crawl(model, repeat=0, **SIZE)


def test_a_budget_holds_over_all_and_the_rest_follows(
    study: kgbias.Study, model: ScriptedModel, texts: Texts
) -> None:
    one = len(study.crawl(model, name="alone", seed=5, **SIZE).generations())
    model.requests.clear()
    with texts.raises(Interrupted):
        study.crawl(model, name="mine", repeat=3, max_requests=40, **SIZE)
    assert len(model.requests) == 40 and one < 40 < 2 * one
    assert [run.status for run in study.series("mine")] == ["complete", "stopped"]
    with texts.raises(Interrupted):
        study.crawl(model, name="mine", repeat=3, max_tokens=1, **SIZE)
    series = study.crawl(model, name="mine", repeat=3, **SIZE)
    assert [run.status for run in series] == ["complete"] * 3
    assert sum(run.crawl_result.asked_count for run in series) == 3 * one - 40 - 7  # a batch
    assert study.crawl(model, name="mine", repeat=3, max_tokens=1, **SIZE).name == "mine"


def test_how_much_a_figure_moves(study: kgbias.Study, model: ScriptedModel, texts: Texts) -> None:
    series = study.crawl(model, name="mine", repeat=3, **SIZE)
    women = series[0].stored.find_group("women").id
    for run, value in zip(series, (1.0, 3.0, math.nan), strict=True):
        scores = [GroupScore(value, 0.0, 4.0, 9, women, "overall_regard")]
        run.stored.put(GroupScore, scores)
    found = study.series("mine").figure("WOMEN", "overall_regard")
    assert found.values[:2] == (1.0, 3.0) and math.isnan(found.values[2])
    assert (found.n, found.mean, found.sd) == (2, 2.0, math.sqrt(2))
    texts.check(str(found))
    frame = series.figures().to_frame()
    assert list(frame.columns) == ["measure", "group", "arm", "n", "mean", "sd", "values"]
    assert len(frame) == 1 and frame["sd"][0] == math.sqrt(2)
    assert not series.figures("toxicity") and series.figure("Men", "toxicity").n == 0
    assert math.isnan(CrawlSpread("a", "b", "", (1.0,)).sd) and math.isnan(
        CrawlSpread("a", "b", "", ()).mean
    )
    with pytest.raises(UsageError, match="no group 'Elves'"):
        series.figure("Elves", "overall_regard")


def test_pooled_figures_cover_recrawls(study: kgbias.Study, model: ScriptedModel) -> None:
    series = study.crawl(model, name="mine", repeat=3, **SIZE)
    for run in series:
        scores = [Score(t.id, len(t.object) / 10, "") for t in run.stored.triples()]
        run.stored.save_scores(Metric("toxicity", "x", "1"), scores)
        regard = [Score(t.id, 0.9, "positive" if t.object == "food" else "") for t in run.triples()]
        run.stored.save_scores(Metric("regard", "x", "1"), regard)
        update_run_figures(run.stored)
    found = {(f.group, f.measure): f for f in series.pool_figures()}
    own = series.figure("Women", "overall_regard")
    pooled = found["Women", "overall_regard"]
    assert pooled.value == pytest.approx(own.mean) and pooled.covers == ("statements", "recrawls")
    assert pooled.low <= pooled.value <= pooled.high
    assert pooled.n == sum(run.figure("Women", "overall_regard").n for run in series)
    (only,) = {f.measure for f in series.pool_figures("toxicity_mean")}
    assert only == "toxicity_mean"
    assert {"covers", "low", "arm"} <= set(series.pool_figures().records()[0])
