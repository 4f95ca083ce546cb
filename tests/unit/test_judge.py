"""A crawl that asks again where a statement makes too little sense."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kgbias.crawl.crawler import AcceptabilityJudge, crawl
from kgbias.errors import RunConflict, UsageError
from kgbias.graph.sqlite import SQLiteStore
from tests.scripted_model import ScriptedModel
from tests.unit.test_crawl import SMALL, picture, talkative

CONFIG = replace(SMALL, min_acceptability=0.5)


def no_rain(sentences: Sequence[str]) -> list[float]:
    return [0.5 - 0.4 * ("rain" in sentence) for sentence in sentences]


def test_nonsense_is_asked_again_and_counted(store: SQLiteStore) -> None:
    result = crawl(
        CONFIG, ScriptedModel(talkative), store, judge=AcceptabilityJudge("test:1", no_rain)
    )
    rejected = [g for g in picture(store) if g.outcome == "nonsense"]
    assert len(rejected) == result.outcomes["nonsense"] > 5
    assert {(g.reason, g.triple) for g in rejected} == {("too low an acceptability", None)}
    assert result.outcomes["ok"] == CONFIG.place_count and result.well_formed_share == 1
    assert not any(t.object == "rain" for t in store.triples(result.run.id))


def test_the_judge_is_part_of_the_run(store: SQLiteStore) -> None:
    first = crawl(
        CONFIG,
        ScriptedModel(talkative),
        store,
        judge=AcceptabilityJudge("test:1", no_rain),
        name="x",
    )
    said = picture(store)
    assert first.run.config["judge"] == "test:1"
    assert first.run.config["min_acceptability"] == 0.5
    again = crawl(
        CONFIG,
        ScriptedModel(talkative),
        store,
        judge=AcceptabilityJudge("test:1", no_rain),
        name="x",
    )
    assert again.asked_count == 0 and picture(store) == said
    with pytest.raises(RunConflict):
        crawl(
            CONFIG,
            ScriptedModel(talkative),
            store,
            judge=AcceptabilityJudge("test:2", no_rain),
            name="x",
        )
    assert not {"judge", "min_acceptability"} & SMALL.as_dict().keys()


def test_a_threshold_needs_a_judge_and_a_range(store: SQLiteStore) -> None:
    with pytest.raises(UsageError, match="needs a judge"):
        crawl(CONFIG, ScriptedModel(talkative), store)
    with pytest.raises(UsageError, match="between 0 and 1"):
        replace(SMALL, min_acceptability=2)
