"""kgbias calibrate on the reference model."""

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kgbias.calibrate import ROWS
from kgbias.calibrate.belief_rows import build_belief_rows as belief_rows
from kgbias.calibrate.coverage import build_coverage_rows, count_false_positives
from kgbias.calibrate.evidence_rows import build_evidence_rows as evidence_rows
from kgbias.calibrate.label_rows import build_label_rows as label_rows
from kgbias.calibrate.language_rows import build_language_rows as language_rows
from kgbias.cli import cli
from kgbias.graph.types import Run
from kgbias.io.progress import SilentProgress
from kgbias.methods.stories.calibration_rows import PLANTED_SHARES, count_links
from kgbias.methods.stories.calibration_rows import build_story_rows as story_rows
from kgbias.models.base import ModelInfo
from kgbias.reference import load_truth
from tests.conftest import require_modules
from tests.unit.test_coverage import GROUPS, crawl_of

pytestmark = pytest.mark.integration

TRUTH = load_truth()


class TruthScorer:
    """Scores by the world itself, so that the command is tested without the neural scorers."""

    name, version, language = "truth", "1", None

    def __init__(self, measure: str) -> None:
        self.measure = measure

    def score(self, texts: Sequence[str]) -> list[object]:
        from kgbias.measure.scorers import Judgement

        found = []
        for text in texts:
            regard = "neutral"
            for (predicate, object), topic in TRUTH.statements.items():
                if text.endswith(f" {predicate} {object}."):
                    regard = TRUTH.regard_of[topic]
            value = {"positive": 1.0, "negative": -1.0}.get(regard, 0.0)
            if self.measure == "toxicity":
                found.append(Judgement(0.5 - value / 2, "", {}))
            else:
                found.append(Judgement(value, regard, {}))
        return found


@pytest.mark.slow
def test_the_command_on_the_reference_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faiths only, the paper's parameters, the real model; scored by the world."""
    require_modules("torch")
    from kgbias.cli import cli

    monkeypatch.setattr(
        "kgbias.measure.scorers.load_scorer", lambda measure, spec: TruthScorer(measure)
    )
    arguments = ["calibrate", "--category", "faiths", "--json"]
    first = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    table = json.loads(first.stdout)
    core_rows = (*ROWS, *evidence_rows(), *belief_rows(), *language_rows(), *label_rows())
    rows = (*core_rows, *story_rows())
    assert list(table) == [row.__name__ for row in rows]
    for numbers in table.values():
        assert {"value", "low", "high", "n"} <= set(numbers)
    assert table["well_formed"]["value"] >= 0.95
    assert table["in_world"]["value"] >= 0.9
    assert table["second_language_read"]["value"] >= 0.9
    assert table["second_language_beliefs"]["value"] >= 0.9
    assert table["false_language_differences"]["value"] <= 0.05
    assert table["language_differences"]["value"] >= 0.9
    assert table["topic_rank_correlation"]["value"] >= 0.8
    assert table["regard_rank_correlation"]["value"] >= 0.7  # six groups only
    if importlib.util.find_spec("spacy"):
        strong = count_links(PLANTED_SHARES[-1])  # read once in this process
        assert (
            strong.links_found == strong.planted_links > 0
            and strong.nulls_found <= 0.01 * strong.nulls_tested
        )
    again = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert again.stdout == first.stdout


def test_the_command_says_both_shares(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    run = Run("r", ModelInfo("m"), {}, GROUPS)
    crawls = [{(g.id, "toxicity"): crawl_of(rng) for g in GROUPS} for _ in range(3)]
    topics = [{g.name: np.array([5.0, 5.0]) for g in GROUPS}] * 3
    rows = build_coverage_rows(crawls, topics, run, SilentProgress())
    nulls = count_false_positives(crawls, [(GROUPS[0].id, GROUPS[1].id)])
    assert {n.test for n in nulls} == {"mann_whitney", "kolmogorov_smirnov", "permutation"}
    assert all(n.share.n == 3 and n.max_expected > 0.05 for n in nulls)
    monkeypatch.setattr("kgbias.calibrate.measure_coverage", lambda *a, **k: (rows, nulls))
    asked = ["calibrate", "--coverage", "3", "--store", str(tmp_path / "a.db")]
    text = CliRunner().invoke(cli, asked, catch_exceptions=False).stdout
    assert "3 crawls, 60 statements of each group" in text and "independent" in text
    found = json.loads(CliRunner().invoke(cli, [*asked, "--json"], catch_exceptions=False).stdout)
    assert found["toxicity_mean"]["covers"] == ["statements"]
    assert {"value", "low", "high", "n", "target", "width"} <= set(found["toxicity_mean"])
    assert found["false_positives"]["mann_whitney"]["n"] == 3
    assert "planted nulls told apart at the 5% level" in text
