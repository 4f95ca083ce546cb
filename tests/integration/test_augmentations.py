"""Section 6.1 of the paper where the truth is known: on the reference model both augmentations make
statements more toxic, each where it stands in the prompt, and without one nothing moves."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kgbias.compare.two_sample import TwoSampleTest, compare_samples
from kgbias.crawl.config import ARMS, CrawlConfig
from kgbias.crawl.crawler import crawl
from kgbias.crawl.seeds import choose_seeds
from kgbias.errors import KgbiasError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation
from kgbias.measure.scorers import load_scorer
from kgbias.measure.scoring import measure_run
from kgbias.models import open_model
from kgbias.reference import Truth, load_truth
from kgbias.stats.inference import Values
from tests.conftest import require_modules, skip_or_fail

pytestmark = [pytest.mark.integration, pytest.mark.slow]
require_modules("torch", "scipy")

# (measure, strategy, arm); of the strategies those that leave the model its choice of topic.
Values3 = dict[tuple[str, str, str], Values]


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Values3]:
    """The toxicity of each statement, and whether the world planted it as negative. "again" is a
    second crawl without augmentation, with another seed."""
    store = SQLiteStore(str(Path(tmp_path_factory.mktemp("arms")) / "kgbias.db"))
    config = CrawlConfig(
        seeds=tuple(choose_seeds("reference", ["peoples"])),
        arms=ARMS,
        predicate_prompts=5,
        object_prompts=0,
    )
    plain = replace(config, seed=1, arms=("none",))
    model = open_model("reference")
    try:
        scorer = load_scorer("toxicity")
    except KgbiasError as error:
        skip_or_fail(str(error))
    found: Values3 = {}
    for crawled, names in ((config, {}), (plain, {"none": "again"})):
        run = crawl(crawled, model, store).run
        measure_run(StoredRun(store, run), [scorer])
        toxicity = {t.id: t.scores["toxicity"].value for t in store.triples(run.id)}
        generations = [g for g in store.generations(run.id) if g.triple]
        for strategy in ("initialise", "predicate"):
            for arm in crawled.arms:
                part = [g for g in generations if g.strategy == strategy and g.arm == arm]
                toxic = np.array([toxicity[g.triple.id] for g in part if g.triple])
                found["toxicity", strategy, names.get(arm, arm)] = toxic
                planted = planted_negative(part, load_truth())
                found["planted", strategy, names.get(arm, arm)] = planted
    yield found
    store.close()


def planted_negative(generations: list[Generation], truth: Truth) -> Values:
    """1 for each statement that the world holds under a negative topic, 0 for its others."""
    said = [
        truth.find_statement(g.triple.predicate, g.triple.object) for g in generations if g.triple
    ]
    topics = [truth.statements[s] for s in said if s is not None]
    return np.array([truth.regard_of.get(topic) == "negative" for topic in topics], dtype=float)


def against_none(values: Values3, measure: str, strategy: str, arm: str) -> TwoSampleTest:
    return compare_samples(values[measure, strategy, arm], values[measure, strategy, "none"])


@pytest.mark.parametrize("measure", ["toxicity", "planted"])
@pytest.mark.parametrize(
    ("strategy", "arm"),
    [
        ("initialise", "prefix"),
        ("initialise", "both"),
        ("predicate", "header"),
        ("predicate", "both"),
    ],
)
def test_an_augmentation_shifts_its_stage(
    values: Values3, measure: str, strategy: str, arm: str
) -> None:
    test = against_none(values, measure, strategy, arm)
    assert min(test.n) > 300
    assert test.difference.value > 0 and test.delta > 0.05, test
    # The offline scorer sees part of what was planted: "waste money" is negative, hardly toxic.
    assert test.u_p < (1e-3 if measure == "toxicity" else 1e-6), test


@pytest.mark.parametrize("measure", ["toxicity", "planted"])
@pytest.mark.parametrize(
    ("strategy", "arm"),
    [
        ("initialise", "header"),
        ("predicate", "prefix"),
        ("initialise", "again"),
        ("predicate", "again"),
    ],
)
def test_without_an_augmentation_nothing_moves(
    values: Values3, measure: str, strategy: str, arm: str
) -> None:
    test = against_none(values, measure, strategy, arm)
    # Of two arms of 320 that are alike, delta has a standard deviation of .046.
    assert test.u_p > 1e-3 and abs(test.delta) < 0.15, test
