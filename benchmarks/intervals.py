"""How often 95% intervals hold what was planted, by kind of figure: the table of
docs/methods/how-well.md.

    python benchmarks/intervals.py [SAMPLES] [--seed N] [--only KIND]
    python benchmarks/intervals.py --counted

Each kind is drawn as often as SAMPLES says (default 1,000), from small and lopsided samples, where
intervals fail first. The figure is computed by the function that computes it in reports. With
--counted no sample is drawn: of mean regard, and of kappa of 30 statements with two labels, every
sample there is counts as often as it comes up.

Other intervals are measured elsewhere: lifts of beliefs by benchmarks/beliefs.py, effect sizes by
benchmarks/association_power.py, agreement in `kgbias evidence` by benchmarks/crawl_coverage.py,
figures of groups' beliefs and means corrected by labels by `kgbias calibrate`, components of
variance by tests/unit/test_variance.py. CEAT's ends hold 95% of its draws of contexts, and are no
interval of this kind.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from kgbias.compare.families import run_family
from kgbias.compare.model_contrasts import ModelSamples, _paired_difference, _rank_models
from kgbias.compare.refusals import estimate_refusal_share
from kgbias.compare.run_pairs import measure_rank_agreement
from kgbias.compare.sofa import _rank_model, correlate_length
from kgbias.compare.two_sample import mean_difference
from kgbias.evidence.evidence_table import _estimate_triple_shares
from kgbias.graph.types import Group
from kgbias.io.stereoset_file import StereoSetExample
from kgbias.measure.scorer_agreement import cohens_kappa, correlation_estimate
from kgbias.measure.topics.shares import GroupShares, kl_divergence, relative_entropies
from kgbias.methods.associations.methods import SCORES, jackknife_interval
from kgbias.methods.benchmarks.bbq import _FIGURE_FUNCTIONS
from kgbias.methods.benchmarks.stereoset import _domain_figures
from kgbias.methods.choice.result import share_over_statements
from kgbias.methods.known.agreement import _figure_by_attribute
from kgbias.methods.known.matching import _estimate_difference, _estimate_share
from kgbias.methods.labels.rater_agreement import krippendorff_alpha
from kgbias.methods.profiles.classify import Trials
from kgbias.methods.profiles.words import _intervals
from kgbias.methods.rag.metrics import mean_over_records, retest_agreement
from kgbias.probe.run_probes import contrast_intervals, lifts_over_others
from kgbias.probe.sofa import category_bias, overall_bias
from kgbias.report.multi_run_data import MultiRunData
from kgbias.stats.designs import Design
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import (
    Sample,
    bootstrap,
    bootstrap_clusters,
    clustered_mean,
    mean,
    proportion,
    quantile,
    rank_correlation,
    total,
)
from kgbias.stats.keyness import FeatureTable, log_odds_ratio, measure_keyness
from kgbias.stats.poststratification import StandardWeights, StratifiedSample
from kgbias.stats.units import UnitSums, ratio_of_sums, resample_interval

Rng = np.random.Generator
DrawOnce = Callable[[Rng], tuple[Estimate, float]]
SIGNS = (-1.0, 1.0)


class FigureKind(NamedTuple):
    """A kind of figure, what samples it is of, and one sample: its estimate and the truth."""

    figure: str
    setting: str
    draw_once: DrawOnce


def draw_clusters(rng: Rng, p: float, rho: float, number: int, size: int) -> np.ndarray:
    """What each of `size` statements of `number` prompts is, alike within a prompt by rho."""
    if not rho:
        return rng.random((number, size)) < p
    each = rng.beta(p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho, number)
    return np.asarray(rng.random((number, size)) < each[:, None])


def prompt_sample(values: np.ndarray, number: int, size: int) -> Sample:
    """Values of prompts, each a cluster."""
    count = number * size
    design = Design(np.repeat(np.arange(number), size), np.zeros(number, dtype=np.int64))
    return Sample(
        values.ravel().astype(np.float64), np.ones(count, dtype=np.int64), design, np.arange(count)
    )


def count_kinds() -> Iterator[FigureKind]:
    for number, size in ((60, 1), (30, 2)):
        for p, rho in ((0.01, 0.0), (0.02, 0.2), (0.1, 0.2), (0.3, 0.2)):

            def once(
                rng: Rng, n: int = number, s: int = size, p: float = p, rho: float = rho
            ) -> tuple[Estimate, float]:
                labels = draw_clusters(rng, p, rho, n, s)
                return bootstrap(prompt_sample(labels, n, s), total, draws=300), n * s * p

            yield FigureKind("count of a label", f"{number} prompts of {size}, {p:.0%}", once)


def regard_kinds() -> Iterator[FigureKind]:
    for p in ((0.9, 0.05, 0.05), (0.95, 0.04, 0.01), (0.6, 0.2, 0.2)):
        for n in (5, 10, 20, 40):

            def once(rng: Rng, n: int = n, p: tuple[float, ...] = p) -> tuple[Estimate, float]:
                values = rng.choice([1.0, 0.0, -1.0], n, p=p)
                sample = Sample(values, np.ones(n, dtype=np.int64), signs=SIGNS)
                return bootstrap(sample, mean, draws=300), p[0] - p[2]

            yield FigureKind("mean regard", f"{n} statements, {p[0]:.0%} positive", once)
    for n in (10, 20, 40):

        def overall(rng: Rng, n: int = n) -> tuple[Estimate, float]:
            values = rng.choice([1.0, 0.0, -1.0], n, p=(0.2, 0.78, 0.02))
            sample = Sample(values, np.ones(n, dtype=np.int64), signs=SIGNS)
            return bootstrap(sample, total, draws=300), n * 0.18

        yield FigureKind("overall regard", f"{n} statements, 20% positive, 2% negative", overall)


def prompt_kinds() -> Iterator[FigureKind]:
    """Mean regard by prompts of three wordings, whose statements repeat one of them or do not."""
    for number, size in ((10, 3), (20, 2), (30, 4)):
        for p in ((0.9, 0.05, 0.05), (0.5, 0.3, 0.2)):

            def once(
                rng: Rng, n: int = number, s: int = size, p: tuple[float, ...] = p
            ) -> tuple[Estimate, float]:
                repeated = rng.choice([1.0, 0.0, -1.0], n, p=p)[:, None]
                own = rng.choice([1.0, 0.0, -1.0], (n, s), p=p)
                values = np.where(rng.random((n, s)) < 0.3, repeated, own).ravel()
                design = Design(np.repeat(np.arange(n), s), np.arange(n) * 3 // n)
                counts = np.ones(n * s, dtype=np.int64)
                sample = Sample(values, counts, design, np.arange(n * s), signs=SIGNS)
                return bootstrap(sample, mean, draws=1_000), p[0] - p[2]

            setting = f"{number} prompts of {size}, {p[0]:.0%} positive"
            yield FigureKind("mean regard by prompts", setting, once)


def benchmark_kinds() -> Iterator[FigureKind]:
    """A share of a benchmark over terms of twelve items; terms differ."""
    for units in (5, 10, 20, 30):
        for p, alike in ((0.5, 0.14), (0.9, 0.14), (0.9, 0.04), (0.7, 0.25)):

            def once(
                rng: Rng, units: int = units, p: float = p, alike: float = alike
            ) -> tuple[Estimate, float]:
                shares = 100 * draw_clusters(rng, p, alike, units, 12).mean(axis=1)
                columns = np.column_stack([np.ones(units), shares])
                names = tuple(map(str, range(units)))
                trials = np.full(units, 12.0)
                sums = UnitSums(names, columns, ratio_of_sums, bounds=(0, 100), trials=trials)
                return sums.estimate(draws=300), 100 * p

            yield FigureKind("share of a benchmark", f"{units} terms of 12, {p:.0%}, {alike}", once)


def topic_kinds() -> Iterator[FigureKind]:
    group = Group("g", "c")
    for number, size in ((30, 2), (20, 4)):
        for p, rho in ((0.1, 0.3), (0.3, 0.3), (0.3, 0.5)):

            def once(
                rng: Rng, n: int = number, s: int = size, p: float = p, rho: float = rho
            ) -> tuple[Estimate, float]:
                has_topic = draw_clusters(rng, p, rho, n, s)
                sample = prompt_sample(np.where(has_topic, 0.0, 1.0), n, s)
                k = float(has_topic.sum())
                shares = GroupShares(group, np.array([k, n * s - k]), 0, sample)
                return shares.share_of_topic(0), p

            yield FigureKind(
                "topic share", f"{number} prompts of {size}, {p:.0%}, alike {rho}", once
            )


def entropy_kinds() -> Iterator[FigureKind]:
    for n in (10, 20, 60):
        for k in (3, 10):
            for unlike in (0.0, 0.5):

                def once(
                    rng: Rng, n: int = n, k: int = k, unlike: float = unlike
                ) -> tuple[Estimate, float]:
                    even = np.full(k, 1 / k)
                    odd = (1 - unlike) * even
                    odd[0] += unlike
                    planted = np.array([odd] + [even] * 5)
                    truth = float(kl_divergence(planted, planted.mean(axis=0))[0])
                    samples = [rng.multinomial(n, p).astype(float) for p in planted]
                    return relative_entropies(samples, draws=300)[0].estimate, truth

                alike = "unlike" if unlike else "alike"
                yield FigureKind("relative entropy", f"{n} statements, {k} topics, {alike}", once)


def link_kinds() -> Iterator[FigureKind]:
    for n, others in ((20, 20), (40, 440), (100, 100)):
        for p, q in ((0.3, 0.3), (0.3, 0.1), (0.6, 0.05), (0.2, 0.01)):

            def once(
                rng: Rng, n: int = n, m: int = others, p: float = p, q: float = q
            ) -> tuple[Estimate, float]:
                value, low, high = log_odds_ratio(rng.binomial(n, p), n, rng.binomial(m, q), m)
                truth = math.log(p / (1 - p)) - math.log(q / (1 - q))
                return Estimate(float(value), float(low), float(high), n), truth

            yield FigureKind("log-odds of stories", f"{n} at {p}, {others} at {q}", once)


def content_kinds() -> Iterator[FigureKind]:
    """The difference of what is said of a group, over blocks in which shares differ for all."""
    for n, others in ((20, 60), (60, 420)):
        for p, q in ((0.05, 0.05), (0.3, 0.05), (0.3, 0.02)):
            for blocks in (1, 5):

                def once(
                    rng: Rng,
                    n: int = n,
                    m: int = others,
                    p: float = p,
                    q: float = q,
                    b: int = blocks,
                ) -> tuple[Estimate, float]:
                    group = np.repeat([0, 1], [n, m])
                    # The group was mostly asked in other blocks than the others.
                    odds = np.arange(1, b + 1) / np.arange(1, b + 1).sum()
                    block = np.where(
                        group == 0, rng.choice(b, n + m, p=odds), rng.choice(b, n + m, p=odds[::-1])
                    )
                    more = np.linspace(0, 0.4, b)[block] if b > 1 else 0.0
                    having = np.flatnonzero(rng.random(n + m) < np.where(group == 0, p, q) + more)
                    table = FeatureTable(2, group, block, 1, having, np.zeros_like(having))
                    return measure_keyness(table, deals=0).difference(0, 0), p - q

                setting = f"{n} at {p}, {others} at {q}, {blocks} block{'s' if blocks > 1 else ''}"
                yield FigureKind("difference of what is said", setting, once)


def kappa_kinds() -> Iterator[FigureKind]:
    for p in ((0.5, 0.5), (0.9, 0.1), (0.95, 0.05), (0.6, 0.3, 0.1)):
        for true in (0.0, 0.4, 0.9):
            for n in (30, 50, 200):

                def once(
                    rng: Rng, n: int = n, p: tuple[float, ...] = p, true: float = true
                ) -> tuple[Estimate, float]:
                    table = true * np.diag(p) + (1 - true) * np.outer(p, p)
                    cells = rng.choice(table.size, n, p=table.ravel())
                    first, second = np.divmod(cells, len(p))
                    return cohens_kappa(first.astype(str), second.astype(str))[1], true

                shares = ", ".join(f"{share:.0%}" for share in p)
                yield FigureKind("kappa", f"{n} statements, labels {shares}, true {true}", once)


def icat_kinds() -> Iterator[FigureKind]:
    for terms in (3, 10, 30):
        for ss in (0.5, 0.6):

            def once(rng: Rng, terms: int = terms, ss: float = ss) -> tuple[Estimate, float]:
                lms, per = 0.85, 26
                scores, examples = [], []
                spread = ss * (1 - ss) / 0.01 - 1
                for term in range(terms):
                    term_share = rng.beta(ss * spread, (1 - ss) * spread)
                    for _ in range(per):
                        pair = (2.0, 1.0) if rng.random() < term_share else (1.0, 2.0)
                        better = int((rng.random(2) < lms).sum())
                        scores.append((*pair, (3.0, 1.5, 0.5)[better]))
                        examples.append(
                            StereoSetExample(
                                "", "intrasentence", f"t{term}", "d", "BLANK", ("a", "b", "c")
                            )
                        )
                figures = {
                    m.figure: m.estimate
                    for m in _domain_figures("all", examples, np.array(scores), 0)
                }
                return figures["ICAT"], 100 * lms * min(ss, 1 - ss) / 0.5

            yield FigureKind("ICAT", f"{terms} terms of 26, SS {ss:.0%}", once)


def known_kinds() -> Iterator[FigureKind]:
    for groups in (4, 8, 15):
        for p in (0.1, 0.4):

            def once(rng: Rng, groups: int = groups, p: float = p) -> tuple[Estimate, float]:
                group_ids: list[str] = []
                values: list[float] = []
                for g in range(groups):
                    group_share = rng.beta(p * 4, (1 - p) * 4)
                    size = int(rng.integers(3, 20))
                    group_ids += [f"g{g}"] * size
                    values += (rng.random(size) < group_share).astype(float).tolist()
                return _estimate_share(group_ids, values), p

            yield FigureKind("known share", f"{groups} groups of 3 to 19, {p:.0%}", once)


def record_kinds() -> Iterator[FigureKind]:
    """A judge's metric of answers, three times over, and how often it says the same again."""
    for n in (5, 10, 20, 50):
        for shape in ((4.0, 0.5), (2.0, 2.0)):

            def once(
                rng: Rng, n: int = n, shape: tuple[float, float] = shape
            ) -> tuple[Estimate, float]:
                true = rng.beta(*shape, n)
                values = rng.binomial(4, true[:, None], (n, 3)) / 4
                return mean_over_records(values.tolist()), shape[0] / sum(shape)

            mean_value = shape[0] / sum(shape)
            yield FigureKind("mean over answers", f"{n} answers, mean {mean_value:.2f}", once)
        for p in (0.9, 0.98):

            def again(rng: Rng, n: int = n, p: float = p) -> tuple[Estimate, float]:
                return retest_agreement([(True, bool(same)) for same in rng.random(n) < p]), p

            yield FigureKind("share judged alike again", f"{n} things, {p:.0%}", again)


def alpha_kinds() -> Iterator[FigureKind]:
    for p in ((0.5, 0.5), (0.9, 0.1), (0.6, 0.3, 0.1)):
        for true in (0.0, 0.5, 0.9):
            for n in (30, 60):

                def once(
                    rng: Rng, n: int = n, p: tuple[float, ...] = p, true: float = true
                ) -> tuple[Estimate, float]:
                    # Each of three raters sees what a statement is, or guesses.
                    shown = rng.choice(len(p), n, p=p)
                    guesses = rng.choice(len(p), (n, 3), p=p)
                    sees = rng.random((n, 3)) < math.sqrt(true)
                    units = np.where(sees, shown[:, None], guesses).astype(str).tolist()
                    return krippendorff_alpha(units, [str(k) for k in range(len(p))]), true

                shares = ", ".join(f"{share:.0%}" for share in p)
                yield FigureKind("alpha", f"{n} statements, labels {shares}, true {true}", once)


def rank_kinds() -> Iterator[FigureKind]:
    """Correlations of ranks, of normal scores that correlate."""
    for n in (10, 20, 50):
        for true in (0.0, 0.5, 0.9):

            def once(rng: Rng, n: int = n, true: float = true) -> tuple[Estimate, float]:
                first, second = draw_correlated(rng, n, true)
                rho = correlation_estimate(rank_correlation(first, second), n)
                return rho, 6 / math.pi * math.asin(true / 2)

            yield FigureKind("rank correlation", f"{n} statements, {true}", once)
    for n in (5, 10, 20):
        for true in (0.0, 0.5):

            def over_groups(rng: Rng, n: int = n, true: float = true) -> tuple[Estimate, float]:
                pairs = [(row[:1], row[1:]) for row in np.array(draw_correlated(rng, n, true)).T]
                return (
                    measure_rank_agreement("regard", pairs).tau,
                    2 / math.pi * math.asin(true),
                )

            yield FigureKind("Kendall's tau of two runs", f"{n} groups, {true}", over_groups)


def draw_correlated(rng: Rng, n: int, true: float) -> tuple[np.ndarray, np.ndarray]:
    first, second = rng.normal(size=(2, n))
    return first, true * first + math.sqrt(1 - true * true) * second


def chosen_kinds() -> Iterator[FigureKind]:
    """Shares over statements: of choices, and of first places by perplexity."""
    for n in (4, 10, 30):
        for p in (0.05, 0.2, 0.5):

            def once(rng: Rng, n: int = n, p: float = p) -> tuple[Estimate, float]:
                answers = rng.integers(2, 7, n)
                chosen = rng.binomial(answers, rng.beta(4 * p, 4 * (1 - p), n))
                return share_over_statements(chosen, answers), p

            yield FigureKind("share of choices", f"{n} statements, {p:.0%}", once)
    for n in (5, 20):
        for p in (0.05, 0.25):

            def first(rng: Rng, n: int = n, p: float = p) -> tuple[Estimate, float]:
                star = 10 + rng.normal(size=(4, n))
                star[0] = np.where(rng.random(n) < p, 0, 20)
                bias = category_bias("c", "abcd", [str(k) for k in range(n)], star, draws=100)
                return bias.likeliest["a"], p

            yield FigureKind("share of first places", f"{n} statements, {p:.0%}", first)


def contrast_kinds() -> Iterator[FigureKind]:
    for groups in (3, 4, 6, 12):

        def once(rng: Rng, groups: int = groups) -> tuple[Estimate, float]:
            values = rng.normal(size=(groups, 20))
            low, high = contrast_intervals(values)
            value = lifts_over_others(values)[0, 0]
            truth = float(values[0, 0] - values[0].mean())
            return Estimate(float(value), low[0, 0], high[0, 0], groups), truth

        yield FigureKind("contrast of vectors", f"{groups} groups", once)


def difference_kinds() -> Iterator[FigureKind]:
    """Differences of two means: of labels and toxicities, by statements and by prompts."""
    for n, others in ((5, 20), (20, 100), (40, 40)):
        for p in (0.98, 0.9, 0.6):

            def once(
                rng: Rng, n: int = n, others: int = others, p: float = p
            ) -> tuple[Estimate, float]:
                first, second = (
                    Sample(
                        rng.choice([1.0, -1.0], size, p=[p, 1 - p]),
                        np.ones(size, dtype=np.int64),
                        signs=SIGNS,
                    )
                    for size in (n, others)
                )
                return mean_difference(first, second, draws=300), 0.0

            yield FigureKind("difference of regard", f"{n} and {others}, {p:.0%} positive", once)

        def toxic(rng: Rng, n: int = n, others: int = others) -> tuple[Estimate, float]:
            first, second = (
                Sample(rng.beta(0.3, 4, size), np.ones(size, dtype=np.int64), bounds=(0, 1))
                for size in (n, others)
            )
            return mean_difference(first, second, draws=300), 0.0

        yield FigureKind("difference of toxicity", f"{n} and {others}", toxic)
    for number in (5, 10, 20):
        for p in (0.05, 0.3):

            def by_prompts(rng: Rng, number: int = number, p: float = p) -> tuple[Estimate, float]:
                sides = {name: form_sample(rng, p, k) for name, k in (("a", number), ("b", 30))}
                family = run_family("regard", "c", sides, [("a", "b")], detect=False)
                return family.tests[0].difference, 0.0

            setting = f"{number} and 30 prompts of 2, {p:.0%} negative"
            yield FigureKind("difference by prompts", setting, by_prompts)

            def at_mix(rng: Rng, number: int = number, p: float = p) -> tuple[Estimate, float]:
                parts = [form_sample(rng, p, number, f"form {k}") for k in range(3)]
                sample = StratifiedSample.pool(parts)
                weights = StandardWeights.from_samples([sample])
                return weights.estimate(sample, draws=300), 1 - 2 * p

            setting = f"3 forms of {number} prompts of 2, {p:.0%} negative"
            yield FigureKind("mean at one mix of prompts", setting, at_mix)


def form_sample(rng: Rng, p: float, number: int, form: str = "chosen") -> StratifiedSample:
    """Statements of prompts of one form, two each, of which a share p is negative."""
    values = np.where(draw_clusters(rng, p, 0.2, number, 2), -1.0, 1.0)
    forms = np.full(2 * number, form, dtype=object)
    sample = replace(prompt_sample(values, number, 2), signs=SIGNS)
    return StratifiedSample(sample, forms, forms)


def toxicity_kinds() -> Iterator[FigureKind]:
    for n in (5, 10, 20, 50):

        def once(rng: Rng, n: int = n) -> tuple[Estimate, float]:
            sample = Sample(rng.beta(0.3, 5, n), np.ones(n, dtype=np.int64), bounds=(0, 1))
            return bootstrap(sample, mean, draws=300), 0.3 / 5.3

        yield FigureKind("mean toxicity", f"{n} statements", once)

        def median(rng: Rng, n: int = n) -> tuple[Estimate, float]:
            sample = Sample.from_values(rng.beta(2, 5, n))
            return bootstrap(sample, quantile(0.5), draws=300), 0.26444998329566

        yield FigureKind("median", f"{n} statements", median)

        def unbounded(rng: Rng, n: int = n) -> tuple[Estimate, float]:
            return bootstrap(rng.normal(size=n), mean, draws=300), 0.0

        yield FigureKind("mean effect of a word", f"{n} statements", unbounded)


def bbq_kinds() -> Iterator[FigureKind]:
    for templates in (3, 5, 25):
        for p in (0.5, 0.9, 0.99):

            def once(rng: Rng, templates: int = templates, p: float = p) -> tuple[Estimate, float]:
                table = np.full((templates, 8), 12.0)
                table[:, 7] = draw_clusters(rng, p, 0.1, templates, 12).sum(axis=1)
                figure = _FIGURE_FUNCTIONS["bias, disambiguated"]
                names = tuple(map(str, range(templates)))
                sums = UnitSums(names, table, figure, bounds=(-100, 100))
                return sums.estimate(draws=300), 100 * (2 * p - 1)

            yield FigureKind("bias of BBQ", f"{templates} templates of 12, {p:.0%} biased", once)


def unit_difference_kinds() -> Iterator[FigureKind]:
    """Differences over units that both sides have: models over statements, runs over predicates."""
    for n in (5, 10, 20, 50):

        def models(rng: Rng, n: int = n) -> tuple[Estimate, float]:
            differences = rng.gamma(4, 1, n) - rng.gamma(4, 1, n)
            return _paired_difference(differences, np.zeros(n), 0), 0.0

        yield FigureKind("difference of two models", f"{n} statements", models)

        def clusters(rng: Rng, n: int = n) -> tuple[Estimate, float]:
            of = np.repeat(np.arange(n), rng.integers(1, 8, n))
            values = rng.normal(size=n)[of] / 2 + rng.normal(size=len(of))
            found = bootstrap_clusters(
                of.tolist(), lambda weights: (weights @ values) / weights.sum(axis=-1), draws=500
            )
            return found, 0.0

        yield FigureKind("difference by predicates", f"{n} predicates of 1 to 7", clusters)


def auc_kinds() -> Iterator[FigureKind]:
    for groups, attributes in ((10, 4), (20, 10), (40, 30)):
        for shift, true in ((0.0, 0.5), (0.7, 0.6896695967)):

            def once(
                rng: Rng,
                groups: int = groups,
                attributes: int = attributes,
                shift: float = shift,
                true: float = true,
            ) -> tuple[Estimate, float]:
                recorded = rng.random((groups, attributes)) < 0.15
                lifts = rng.normal(size=recorded.shape) + shift * recorded
                found = _figure_by_attribute(
                    "kind", "name", lifts, recorded, [recorded], [tuple(range(groups))]
                )
                return found.auc, true

            yield FigureKind("AUC over attributes", f"{groups} groups, {attributes}, {true}", once)


def refusal_kinds() -> Iterator[FigureKind]:
    for number in (5, 10, 20, 60):
        for p in (0.02, 0.1, 0.5):

            def once(rng: Rng, number: int = number, p: float = p) -> tuple[Estimate, float]:
                shares = rng.binomial(3, rng.beta(2 * p, 2 * (1 - p), number)) / 3
                return estimate_refusal_share(shares.tolist()), p

            yield FigureKind("refusals", f"{number} prompts of 3, {p:.0%}", once)


def vector_kinds() -> Iterator[FigureKind]:
    """Scores of words over target words drawn around two places, of 20 numbers each."""
    planted = np.random.default_rng(5)
    middles, a, b = planted.normal(size=(2, 20)), *planted.normal(size=(2, 6, 20))

    def draw(rng: Rng, n: int) -> dict[str, np.ndarray]:
        x, y = (middle + rng.normal(size=(n, 20)) for middle in middles)
        return {"x": x, "y": y, "a": a, "b": b}

    for name, score in SCORES.items():
        for n in (4, 8, 25):
            if n < score.min_words:
                continue
            true = score.compute(draw(planted, 20_000))

            def once(
                rng: Rng, n: int = n, name: str = name, true: float = true
            ) -> tuple[Estimate, float]:
                tables = draw(rng, n)
                ends = jackknife_interval(name, tables)
                return Estimate(SCORES[name].compute(tables), *ends, 2 * n), true

            yield FigureKind(name.upper(), f"{n} + {n} words", once)


def over_groups_kinds() -> Iterator[FigureKind]:
    """The mean AUC over groups: as if other groups had been asked about the same attributes."""
    for groups, attributes in ((10, 4), (20, 10), (40, 30)):
        for shift, true in ((0.0, 0.5), (0.7, 0.6896695967)):

            def once(
                rng: Rng,
                groups: int = groups,
                attributes: int = attributes,
                shift: float = shift,
                true: float = true,
            ) -> tuple[Estimate, float]:
                recorded = rng.random((groups, attributes)) < 0.15
                # What groups have in common is said of all attributes.
                lifts = rng.normal(size=(groups, 1)) + rng.normal(size=recorded.shape)
                lifts = lifts / math.sqrt(2) + shift * recorded
                found = _figure_by_attribute(
                    "kind", "name", lifts, recorded, [recorded], [tuple(range(groups))]
                )
                ends = found.low_over_groups, found.high_over_groups
                return Estimate(found.auc.value, *ends, groups), true

            yield FigureKind("AUC over groups", f"{groups} groups, {attributes}, {true:.2f}", once)


def sofa_kinds() -> Iterator[FigureKind]:
    """SoFa's score of identities that differ in their own level, by statement, or both ways."""
    for identities, statements in ((4, 10), (10, 30), (40, 100)):
        for level, rest in ((0.0, 1.0), (1.0, 1.0), (1.0, 0.2)):

            def once(
                rng: Rng,
                g: int = identities,
                n: int = statements,
                level: float = level,
                rest: float = rest,
            ) -> tuple[Estimate, float]:
                star = level * rng.normal(size=(g, 1)) + rest * rng.normal(size=(g, n))
                names = [str(k) for k in range(n)]
                found = category_bias("c", [str(k) for k in range(g)], names, star)
                return found.score, level**2 + rest**2

            setting = f"{identities} identities, {statements} statements, {level:g} and {rest:g}"
            yield FigureKind("SoFa's score", setting, once)


def sofa_mean_kinds() -> Iterator[FigureKind]:
    """The mean of SoFa's scores over categories, each of its own identities and statements; of
    some, each category's values are twice as far apart as those of the one before."""
    for categories in (2, 4, 8):
        for g, n, times in ((4, 10, 1.0), (10, 30, 1.0), (4, 10, 2.0)):
            scales = times ** np.arange(categories)
            truth = 2.0 * float((scales**2).mean())

            def once(
                rng: Rng, scales: np.ndarray = scales, g: int = g, n: int = n, truth: float = truth
            ) -> tuple[Estimate, float]:
                ids, texts = [str(k) for k in range(g)], [str(k) for k in range(n)]
                stars = [s * (rng.normal(size=(g, 1)) + rng.normal(size=(g, n))) for s in scales]
                return overall_bias([category_bias("c", ids, texts, s) for s in stars]).score, truth

            unlike = ", unlike" * (times > 1)
            setting = f"{categories} categories of {g} identities, {n} statements{unlike}"
            yield FigureKind("SoFa over categories", setting, once)


def sofa_tail_kinds() -> Iterator[FigureKind]:
    """SoFa's score of one category, and of four, where identities' own levels have heavy tails:
    Student's t with five degrees of freedom, which the interval does not allow for."""
    for categories in (1, 4):
        for g in (5, 12):

            def once(rng: Rng, categories: int = categories, g: int = g) -> tuple[Estimate, float]:
                ids, texts = [str(k) for k in range(g)], [str(k) for k in range(20)]
                found = []
                for _ in range(categories):
                    levels = rng.standard_t(5, (g, 1)) * math.sqrt(3 / 5)
                    star = levels + rng.normal(size=(g, 20))
                    found.append(category_bias("c", ids, texts, star))
                return overall_bias(found).score, 2.0

            setting = f"{categories} of {g} identities, 20 statements"
            yield FigureKind("SoFa with heavy tails", setting, once)


def model_rank_kinds() -> Iterator[FigureKind]:
    """Ranks of models by SoFa, whose true scores are up to half a standard deviation apart."""
    for models, n in ((3, 10), (3, 40), (6, 40)):
        for apart in (0.1, 0.5):

            def once(
                rng: Rng, models: int = models, n: int = n, apart: float = apart
            ) -> tuple[Estimate, float]:
                level, texts = rng.normal(size=n), [str(k) for k in range(n)]
                key, names = ("sofa", "g"), [str(k) for k in range(models)]
                subjects = [
                    ModelSamples(
                        name,
                        (),
                        {key: Sample.from_values(level + rng.normal(size=n) - apart * int(name))},
                        {key: texts},
                        paired_by_stratum=True,
                    )
                    for name in names
                ]
                ranking = _rank_models(subjects, key, "g", 0)
                means = dict(zip(ranking.models, ranking.means, strict=True))
                results: Any = [SimpleNamespace(score=Estimate.missing(n, means[m])) for m in names]
                place = int(rng.integers(models))
                found = _rank_model(results[place], names[place], results, [ranking])
                return Estimate(found.rank, found.low - 0.1, found.high + 0.1, n), 1.0 + place

            yield FigureKind("rank of a model", f"{models} models, {n} statements, {apart}", once)


def board_kinds() -> Iterator[FigureKind]:
    """Differences of two models' shares of a benchmark, over terms that are easier for both."""
    for units, size in ((5, 12), (10, 12), (30, 12), (20, 1), (100, 1)):
        for p, q in ((0.5, 0.5), (0.9, 0.8)):

            def once(
                rng: Rng, units: int = units, size: int = size, p: float = p, q: float = q
            ) -> tuple[Estimate, float]:
                easy, sides = rng.normal(size=units), []
                for share in (p, q):
                    own = NormalDist(0, math.sqrt(1.5)).inv_cdf(share)
                    levels = own + 0.5 * easy + 0.5 * rng.normal(size=units)
                    right = (levels[:, None] + rng.normal(size=(units, size)) > 0).mean(axis=1)
                    columns = np.column_stack([np.ones(units), 100 * right])
                    sides.append(UnitSums(tuple(map(str, range(units))), columns, ratio_of_sums))
                difference = sides[0].replicates() - sides[1].replicates()
                found = resample_interval(sides[0].value - sides[1].value, difference, units)
                return found, 100 * (p - q)

            yield FigureKind("difference on the board", f"{units} of {size}, {p} and {q}", once)


def length_kinds() -> Iterator[FigureKind]:
    """The correlation of PPL* and length, over statements whose probes differ too."""
    for n in (10, 20, 50):
        for rho in (0.0, 0.5, 0.9):

            def once(rng: Rng, n: int = n, rho: float = rho) -> tuple[Estimate, float]:
                words, means = draw_correlated(rng, n, rho)
                statements = [
                    SimpleNamespace(id=str(k), mean=means[k], variance=0.5, words=words[k])
                    for k in range(n)
                ]
                part = SimpleNamespace(category="c", groups=range(5), statements=statements)
                result: Any = SimpleNamespace(categories=[part], parts=[part])
                # Five probes of a variance of .5 are .4 from their mean, on average.
                return correlate_length(result, result), rho / math.sqrt(1.4)

            yield FigureKind("correlation with length", f"{n} statements, {rho}", once)


def rank_of_group_kinds() -> Iterator[FigureKind]:
    """Ranks of groups in a run, the true ones an eighth or half of a standard deviation apart."""
    for groups, size in ((4, 10), (4, 40), (12, 40)):
        for apart in (0.125, 0.5):

            def once(
                rng: Rng, groups: int = groups, size: int = size, apart: float = apart
            ) -> tuple[Estimate, float]:
                ids = [str(g) for g in range(groups)]
                samples = {
                    id: Sample.from_values(rng.normal(size=size) - apart * place)
                    for place, id in enumerate(ids)
                }
                place = int(rng.integers(groups))
                side: Any = None
                data: Any = SimpleNamespace(
                    categories={"c": [(id, id) for id in ids]},
                    means=lambda id, measure: [0.0],
                    sides=[side],
                    sample=lambda side, id, measure: samples[id],
                )
                (found,) = MultiRunData.ranks(data, "c", "regard")
                return found[ids[place]], 1.0 + place

            setting = f"{groups} groups of {size}, {apart:g} apart"
            yield FigureKind("rank of a group", setting, once)


def accuracy_kinds() -> Iterator[FigureKind]:
    """Accuracy over random splits of names into learnt and tried, of classes that are apart."""
    for names in (20, 40, 120):
        for apart in (0.0, 0.6, 1.5):

            def draw(rng: Rng, names: int = names, apart: float = apart) -> np.ndarray:
                own = np.arange(names) % 2
                rows = rng.normal(size=(names, 5)) + apart * own[:, None]
                accuracies = []
                for _ in range(20):
                    order = rng.permutation(names)
                    tried, learnt = order[: names // 5], order[names // 5 :]
                    middles = [rows[learnt[own[learnt] == k]].mean(axis=0) for k in (0, 1)]
                    far = [((rows[tried] - middle) ** 2).sum(axis=1) for middle in middles]
                    accuracies.append(float(((far[1] < far[0]) == own[tried]).mean()))
                return np.array(accuracies)

            planted = np.random.default_rng(names)
            true = float(np.mean([draw(planted).mean() for _ in range(400)]))

            def once(
                rng: Rng,
                draw: Callable[[Rng], np.ndarray] = draw,
                names: int = names,
                true: float = true,
            ) -> tuple[Estimate, float]:
                return Trials(draw(rng), names - names // 5, names // 5, {}).estimate(), true

            yield FigureKind("accuracy over splits", f"{names} names, {apart:g} apart", once)


def known_difference_kinds() -> Iterator[FigureKind]:
    """How much more of what is said of a group is recorded of it than of another group."""
    for groups in (4, 8, 15):
        for p, q in ((0.1, 0.1), (0.4, 0.2)):

            def once(
                rng: Rng, groups: int = groups, p: float = p, q: float = q
            ) -> tuple[Estimate, float]:
                group_ids: list[str] = []
                own: list[float] = []
                for g in range(groups):
                    size = int(rng.integers(3, 20))
                    own += (rng.random(size) < rng.beta(p * 4, (1 - p) * 4)).astype(float).tolist()
                    group_ids += [f"g{g}"] * size
                elsewhere = rng.binomial(5, q, len(own)) / 5
                return _estimate_difference(group_ids, own, elsewhere.tolist()), p - q

            setting = f"{groups} groups of 3 to 19, {p:.0%} and {q:.0%}"
            yield FigureKind("difference of known shares", setting, once)


def corrected_share_kinds() -> Iterator[FigureKind]:
    """The share of a statement among all that a model could say, by Good and Turing: of the
    commonest there is, and of any that was said once."""
    for n in (20, 60, 300):
        for kinds in (20, 500):
            chances = 1 / np.arange(1, kinds + 1)
            chances /= chances.sum()

            def common(
                rng: Rng, n: int = n, chances: np.ndarray = chances, place: int = 0
            ) -> tuple[Estimate, float]:
                counts = rng.multinomial(n, chances)
                if place < 0:
                    place = int(rng.choice(np.flatnonzero(counts == 1)))
                triples = [
                    SimpleNamespace(arm="none", group_id="g", id=str(k), count=int(count))
                    for k, count in enumerate(counts)
                    if count
                ]
                selected: Any = SimpleNamespace(triples=triples)
                found = _estimate_triple_shares(selected).get(
                    ("none", str(place)), Estimate.missing()
                )
                return found, float(chances[place])

            yield FigureKind("corrected share", f"{n} statements of {kinds}, commonest", common)
            if kinds > n:
                said_once = partial(common, place=-1)
                setting = f"{n} statements of {kinds}, said once"
                yield FigureKind("corrected share", setting, said_once)


def profile_kinds() -> Iterator[FigureKind]:
    for names in (4, 10, 40):

        def once(rng: Rng, names: int = names) -> tuple[Estimate, float]:
            often = rng.gamma(2, 0.5, (2 * names, 1))
            counts = rng.poisson(np.hstack([2 * often, np.full((2 * names, 1), 10.0)]))
            in_group = np.arange(2 * names) < names
            low, high = _intervals(counts.astype(float), counts.sum(axis=1), in_group, 300, rng)
            return Estimate(0.0, low[0], high[0], names), 0.0

        yield FigureKind("contribution of a word", f"{names} + {names} names", once)


def pair_kinds() -> Iterator[FigureKind]:
    for units in (3, 6, 12, 24):

        def once(rng: Rng, units: int = units) -> tuple[Estimate, float]:
            differences = rng.gamma(4.0, 1.0, units) - rng.gamma(4.0, 1.0, units)
            return clustered_mean(range(units), (differences + 1.0).tolist()), 1.0

        yield FigureKind("difference of pairs", f"{units} units", once)


def list_tables(total: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Every way in which so many statements fall into cells."""
    if cells == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for others in list_tables(total - first, cells - 1):
            yield (first, *others)


def count_samples(
    estimates: dict[tuple[int, ...], Estimate], chances: Sequence[float], truth: float
) -> float:
    """How probable samples are whose interval holds the truth, among those that have one."""
    log_chances = np.log(chances)
    held = printed = 0.0
    for table, estimate in estimates.items():
        if not estimate.has_interval:
            continue
        ways = math.lgamma(sum(table) + 1) - sum(math.lgamma(count + 1) for count in table)
        probability = math.exp(ways + float(np.dot(table, log_chances)))
        printed += probability
        held += probability * (estimate.low - 1e-9 <= truth <= estimate.high + 1e-9)
    return held / printed


def counted_rows() -> Iterator[tuple[str, str, float]]:
    for n in (5, 10, 20, 40):
        regards = {}
        for table in list_tables(n, 3):
            values = np.repeat([1.0, 0.0, -1.0], table)
            sample = Sample(values, np.ones(n, dtype=np.int64), signs=SIGNS)
            regards[table] = bootstrap(sample, mean, draws=300)
        for p in ((0.9, 0.05, 0.05), (0.95, 0.04, 0.01), (0.6, 0.2, 0.2)):
            setting = f"{n} statements, {p[0]:.0%} positive"
            yield "mean regard", setting, count_samples(regards, p, p[0] - p[2])
    kappas = {}
    for table in list_tables(30, 4):
        first, second = np.divmod(np.repeat(np.arange(4), table), 2)
        kappas[table] = cohens_kappa(first.astype(str), second.astype(str))[1]
    for share in (0.5, 0.9, 0.95):
        p = (share, 1 - share)
        for true in (0.0, 0.4, 0.9):
            chances = (true * np.diag(p) + (1 - true) * np.outer(p, p)).ravel()
            setting = f"30 statements, labels {share:.0%}, {1 - share:.0%}, true {true}"
            yield "kappa", setting, count_samples(kappas, chances.tolist(), true)


KINDS = (
    count_kinds,
    regard_kinds,
    prompt_kinds,
    topic_kinds,
    entropy_kinds,
    link_kinds,
    content_kinds,
    kappa_kinds,
    icat_kinds,
    benchmark_kinds,
    known_kinds,
    pair_kinds,
    record_kinds,
    alpha_kinds,
    rank_kinds,
    chosen_kinds,
    contrast_kinds,
    difference_kinds,
    toxicity_kinds,
    bbq_kinds,
    unit_difference_kinds,
    auc_kinds,
    refusal_kinds,
    vector_kinds,
    profile_kinds,
    over_groups_kinds,
    sofa_kinds,
    length_kinds,
    rank_of_group_kinds,
    accuracy_kinds,
    known_difference_kinds,
    corrected_share_kinds,
    sofa_mean_kinds,
    model_rank_kinds,
    board_kinds,
    sofa_tail_kinds,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", nargs="?", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="kinds whose name holds this")
    parser.add_argument("--counted", action="store_true", help="count every sample there is")
    arguments = parser.parse_args()
    if arguments.counted:
        print("| figure | samples | held |\n|---|---|---|")
        for figure, setting, held in counted_rows():
            print(f"| {figure} | {setting} | {held:.3f} |", flush=True)
        return
    print("| figure | samples | held | printed |\n|---|---|---|---|")
    for number, kinds in enumerate(KINDS):
        for place, kind in enumerate(kinds()):
            if arguments.only and arguments.only not in kind.figure:
                continue
            rng = np.random.default_rng([arguments.seed, number, place])
            draws = [kind.draw_once(rng) for _ in range(arguments.samples)]
            with_interval = [(e, truth) for e, truth in draws if e.has_interval]
            hits = sum(e.low - 1e-9 <= truth <= e.high + 1e-9 for e, truth in with_interval)
            share = proportion(hits, len(with_interval))
            printed = len(with_interval) / len(draws)
            print(
                f"| {kind.figure} | {kind.setting} | {share.value:.3f} "
                f"({share.format_interval('.3f')}) | {printed:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
