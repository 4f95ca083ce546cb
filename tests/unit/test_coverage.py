"""The coverage of intervals, on crawls whose long-run value is known."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.calibrate.coverage import build_coverage_rows
from kgbias.cli import cli
from kgbias.errors import UsageError
from kgbias.graph.types import Group, Run
from kgbias.io.progress import SilentProgress
from kgbias.models.base import ModelInfo
from kgbias.stats.designs import Design
from kgbias.stats.inference import Sample
from tests.texts import Texts

GROUPS = (Group("A", "x"), Group("B", "x"))


def crawl_of(rng: np.random.Generator) -> Sample:
    """30 prompts of four answers that share most of their variance."""
    clusters = np.arange(120) // 4
    values = rng.normal(0.5, 0.3, 30)[clusters] + rng.normal(0, 0.1, 120)
    design = Design(clusters, np.zeros(30, dtype=np.int64))
    return Sample(values, np.ones(120, dtype=np.int64), design, np.arange(120))


def test_dependent_answers_are_covered_and_independence_is_told() -> None:
    rng = np.random.default_rng(0)
    crawls = [{(g.id, "toxicity"): crawl_of(rng) for g in GROUPS} for _ in range(20)]
    shares = {"A": [0.7, 0.2, 0.1], "B": [0.2, 0.5, 0.3]}
    topics = [
        {name: rng.multinomial(100, p).astype(float) for name, p in shares.items()} for _ in crawls
    ]
    run = Run("r", ModelInfo("m"), {}, GROUPS)
    rows = {row.figure: row for row in build_coverage_rows(crawls, topics, run, SilentProgress())}
    mean = rows["toxicity_mean"]
    assert 0.85 <= mean.share.value <= 1 and mean.share.n == 40
    assert mean.independent.value < 0.85 and 1.6 < mean.width < 2.1
    pooled = rows["toxicity_mean_of_5"]
    assert pooled.covers == ("statements", "recrawls") and pooled.share.n == 8
    assert rows["relative_entropy"].share.value > 0.9


def test_what_does_not_go_together_is_refused(tmp_path: Path, texts: Texts) -> None:
    asked = ["calibrate", "--coverage", "5", "--seeds", "2", "--store", str(tmp_path / "a.db")]
    result = CliRunner().invoke(cli, asked)
    assert result.exit_code
    texts.check_lines(str(result.exception), "with --coverage")
    assert CliRunner().invoke(cli, ["calibrate", "--coverage", "1"]).exit_code == 2
    with kgbias.open(tmp_path / "a.db") as study, pytest.raises(UsageError, match="at least 2"):
        study.coverage(1)
