"""Models against each other: crawls, and probes of the same statements."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.compare.families import run_group_tests
from kgbias.compare.model_contrasts import ModelSamples, contrast_models, min_equivalent_units
from kgbias.compare.two_sample import compare_samples
from kgbias.errors import UsageError
from kgbias.graph.draws import Draws
from kgbias.graph.selection import select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    Generation,
    Group,
    Metric,
    ProbedEdge,
    ProbeRun,
    Run,
    Score,
    Triple,
    node_id,
)
from kgbias.models.base import ModelInfo
from kgbias.stats.designs import Design
from kgbias.stats.inference import Sample
from tests.conftest import require_modules
from tests.simulation import Simulation
from tests.texts import Texts

require_modules("scipy")

GROUPS = (Group("Women", "gender"), Group("Men", "gender"))


def clustered(rng: np.random.Generator, shift: float = 0.0) -> Sample:
    """24 prompts of one to six answers that share most of their variance."""
    sizes = rng.integers(1, 7, 24)
    clusters = np.repeat(np.arange(24), sizes)
    values = rng.normal(shift, 1, 24)[clusters] + rng.normal(0, 0.5, len(clusters))
    strata = np.arange(24) // 12
    n = len(clusters)
    return Sample(values, np.ones(n, dtype=np.int64), Design(clusters, strata), np.arange(n))


def test_group_tests_of_clusters_keep_their_level(simulation: Simulation) -> None:
    found, alone = [], []
    for rng in simulation.worlds(50):
        a, b = clustered(rng), clustered(rng)
        with_clusters = compare_samples(a, b, draws=1)
        without = compare_samples(a.values, b.values, draws=1)
        found.append([with_clusters.u_p <= 0.05, with_clusters.ks_p <= 0.05])
        alone.append([without.u_p <= 0.05, without.ks_p <= 0.05])
    for n, test in enumerate(("Mann-Whitney", "Kolmogorov-Smirnov")):
        simulation.check(test, sum(each[n] for each in found), len(found), 0.0, 0.05)
        without_clusters = sum(each[n] for each in alone)
        simulation.check(f"{test}, alone", without_clusters, len(alone), 0.15, 1.0)


def test_single_answers_give_the_plain_tests() -> None:
    rng = np.random.default_rng(1)
    samples = []
    for _ in range(2):
        values = rng.integers(-1, 2, 60).astype(float)
        design = Design(np.arange(60), np.arange(60) // 30)
        samples.append(Sample(values, np.ones(60, dtype=np.int64), design, np.arange(60)))
    ours, plain = compare_samples(*samples), compare_samples(samples[0].values, samples[1].values)
    assert (ours.u_p, ours.ks_p, ours.delta) == (plain.u_p, plain.ks_p, plain.delta)


def subject(name: str, shift: float, seed: int) -> ModelSamples:
    rng = np.random.default_rng(seed)
    samples = {("regard", g.id): clustered(rng, shift) for g in GROUPS}
    return ModelSamples(name, GROUPS, samples, {key: ["a/", "b/"] for key in samples})


def test_three_models_are_one_family(texts: Texts) -> None:
    tests, ranks = contrast_models(
        [subject("low", 0, 0), subject("high", 3, 1), subject("same", 0, 2)]
    )
    assert len(tests) == 6 and {t.family for t in tests} == {6}
    by = {(t.group, t.first, t.second): t for t in tests}
    t = by["Women", "low", "high"]
    assert t.paired == "prompts" and t.p_adjusted < 0.01
    texts.check(t.verdict)
    p = sorted(t.p for t in tests)
    assert min(t.p_adjusted for t in tests) == pytest.approx(min(1, 6 * p[0]))
    texts.check_lines(by["Men", "low", "same"].verdict, "shown between")
    assert t.margin == pytest.approx(0.1)  # 0.05 of regard's range
    (first, _) = ranks
    assert first.models[0] == "high" and first.probabilities[0][0] > 0.99
    assert sum(map(sum, first.probabilities)) == pytest.approx(3)
    (only,) = contrast_models(
        [subject("low", 0, 0), subject("high", 3, 1)], groups=["women"], measures=["regard"]
    )[0]
    assert only.family == 1 and only.p_adjusted == only.p
    assert only.detectable < t.detectable  # a smaller family finds more
    with texts.raises(UsageError):
        contrast_models([subject("low", 0, 0), subject("high", 3, 1)], groups=["Mem"])


def test_no_difference_between_models_is_promised_that_is_impossible(texts: Texts) -> None:
    far = [subject(name, 0, seed) for name, seed in (("a", 0), ("b", 1))]
    for side in far:
        for key, sample in side.samples.items():
            side.samples[key] = replace(sample, values=10 * sample.values)
    for test in contrast_models(far)[0]:
        assert math.isnan(test.detectable)
        texts.check_lines(test.verdict, "few prompts")


def test_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="name two or more"):
        contrast_models([subject("a", 0, 0)])
    with pytest.raises(UsageError, match="there is regard"):
        contrast_models([subject("a", 0, 0), subject("b", 0, 1)], measures=["charm"])


def test_samples_of_unknown_draws_are_held_against_each_other_all_the_same(texts: Texts) -> None:
    rng = np.random.default_rng(0)
    sides = [
        ModelSamples(
            name, GROUPS[:1], {("warmth", GROUPS[0].id): Sample.from_values(rng.normal(m, 1, 80))}
        )
        for name, m in (("a", 0.0), ("b", 0.05))
    ]
    (test,) = contrast_models(sides, margin=1.0).tests
    assert test.paired == "" and 0 < test.p < 1
    assert test.equivalent_adjusted < 0.05
    texts.check_lines(test.verdict, "within 1.00")


def test_a_few_statements_that_are_alike_do_not_make_two_models_the_same() -> None:
    rng = np.random.default_rng(0)
    for n, is_equivalent in ((5, False), (58, False), (59, True)):
        sides = [
            ModelSamples(
                name,
                GROUPS[:1],
                {("toxicity", GROUPS[0].id): Sample.from_values(rng.normal(0.01, 0.002, n))},
            )
            for name in ("a", "b")
        ]
        (test,) = contrast_models(sides)[0]
        assert test.is_equivalent is is_equivalent and not test.differs
        assert math.isnan(test.equivalent_p) is not is_equivalent
        told = "are the same to within 0.050" if is_equivalent else "too few statements to"
        assert told in test.verdict
    assert min_equivalent_units(0.05) == 59 and min_equivalent_units(0.5) == 5


@pytest.fixture
def study(tmp_path: Path) -> Iterator[kgbias.Study]:
    """A run of 20 statements, probed by two models: to the second, each is a bit likelier of
    women."""
    with kgbias.open(tmp_path / "kgbias.db", progress=False) as study:
        store = study._context.writable()
        run = Run("said", ModelInfo("m"), {}, GROUPS)
        store.begin_run(run)
        store.load_import(
            run.id,
            [
                Generation(
                    run.id,
                    f"none/object/1/{g.name}/{n:03d}#0",
                    g.id,
                    "none",
                    "object",
                    1,
                    0,
                    "ok",
                    prompt=f"{n}",
                    triple=Triple(g.name, "like", f"o{n}"),
                )
                for g in GROUPS
                for n in range(20)
            ],
        )
        store.save_scores(
            run.id,
            Metric("regard", "x", "1"),
            [
                Score(
                    t.id,
                    -0.9 if int(t.object[1:]) < 8 else 0.9,
                    "negative" if int(t.object[1:]) < 8 else "positive",
                )
                for t in store.triples(run.id)
            ],
        )
        store.set_status(run.id, "complete")
        rng = np.random.default_rng(0)
        for name, more in (("small", 0.0), ("large", 1.0)):
            edges = []
            for n in range(20):
                common = -20 + rng.normal()
                for g in GROUPS:
                    bits = more * (g.name == "Women") + rng.normal(0, 0.3)
                    edges.append(
                        ProbedEdge(
                            node_id("predicate", "like"),
                            node_id("object", f"o{n}"),
                            g.id,
                            common,
                            5,
                            common + bits * math.log(2),
                            3,
                            -1.0,
                            2,
                            1,
                        )
                    )
            StoredRun(store, run).put(ProbedEdge, edges, asking=ProbeRun(ModelInfo(name)))
            done = ProbeRun(ModelInfo(name), record={"measure": "conditional"})
            StoredRun(store, run).put(ProbeRun, [done])
        yield study


def test_probes_are_paired_by_statement(study: kgbias.Study) -> None:
    found = study.compare_models(probes=True)
    tests = {(t.measure, t.group): t for t in found.tests}
    women = tests["affinity", "Women"]
    assert women.paired == "statements" and women.n == (20, 20)
    # A bit more for women is half a bit above the mean of both groups.
    assert women.difference.value == pytest.approx(0.5, abs=0.15)
    assert women.difference.value == pytest.approx(-tests["affinity", "Men"].difference.value)
    assert women.p_adjusted < 0.01
    assert tests["affinity_to_negative", "Women"].n == (8, 8)
    (ranked,) = [r for r in found.ranks if (r.measure, r.group) == ("affinity", "Women")]
    assert ranked.models == ("large", "small")
    assert found.as_dict()["family"] == 4
    assert {"verdict", "detectable", "equivalent_p_value"} <= set(found.tests.records()[0])


def test_the_command_takes_probes(study: kgbias.Study, texts: Texts) -> None:
    asked = ["compare", "--probes", "--store", study.url]
    text = CliRunner().invoke(cli, asked, catch_exceptions=False).stdout
    texts.check_lines(text, "minus small;")
    texts.check_lines(text, "mean affinity")
    wanted = [*asked, "--only", "Women", "--measure", "affinity", "--json"]
    found = json.loads(CliRunner().invoke(cli, wanted, catch_exceptions=False).stdout)
    assert found["family"] == 1 and len(found["contrasts"]) == 1


def test_the_tests_of_a_run_read_its_draws(study: kgbias.Study) -> None:
    run = study.run("said")
    counted = select_statements(run.stored)
    (test,) = [t for t in run.compare_groups(groups=["Women", "men"], measures="regard")]
    draws = Draws.from_run(run.stored, counted)
    assert draws.is_known and test.family == 1
    (same,) = run_group_tests(run.stored.record, counted.triples, draws=draws)
    assert (same.p, same.difference) == (test.p, test.difference)
    assert {c.measure for c in run.variance()} == {"regard"}
