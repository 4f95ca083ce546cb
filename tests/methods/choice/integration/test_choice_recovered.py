"""Forced choices give back the probabilities that a server draws its answers from."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.methods import choice
from tests.conftest import require_modules

require_modules("openai")

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def benchmark() -> Any:
    spec = spec_from_file_location("choice_benchmark", ROOT / "benchmarks" / "choice.py")
    assert spec and spec.loader
    spec.loader.exec_module(module := module_from_spec(spec))
    return module


def test_shares_are_those_that_were_drawn(benchmark: Any, tmp_path: Path) -> None:
    """Also where the model prefers a place, which is seen."""
    truth = benchmark.load_truth()
    benchmark.write_world(tmp_path / "world.csv", truth, 8, 0)
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.import_file(tmp_path / "world.csv", name="world")
        with benchmark.serve_chooser(truth, preference=3.0) as url:
            found = choice.choose(run, "openai:chooser", base_url=url, samples=16)
    truths = [benchmark.true_shares(truth, part) for part in found.categories]
    figures = benchmark.compare_shares(found.categories, truths)
    assert found.outcomes == {"read": found.outcomes.total()}
    assert figures["coverage"]["value"] > 0.9 and figures["rank_correlation"]["low"] > 0.5
    assert figures["top_1"]["low"] > figures["top_1_by_chance"]
    for part in found.categories:
        first, *others = part.places
        assert first.low > 1 / part.options > max(place.value for place in others)
