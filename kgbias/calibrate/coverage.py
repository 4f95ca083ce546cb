"""Whether intervals keep their promise: many crawls of the reference model, and how many of their
95% intervals contain the model's own long-run value.

The long-run value of a figure is that of all crawls together: of their statements pooled, or for a
total, the mean over crawls. It is the model's own, with these prompts and this length of crawl; it
does not depend on any scorer being right.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kgbias.calibrate.calibration_rows import Calibration
from kgbias.compare.paired_tests import ClusterSample, permutation_p_value
from kgbias.compare.two_sample import compare_samples
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import crawl
from kgbias.crawl.plans import price_crawl
from kgbias.errors import Interrupted
from kgbias.graph.draws import Draws
from kgbias.graph.selection import select_statements
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import Run
from kgbias.io.progress import Progress
from kgbias.measure.scorers import Scorer
from kgbias.measure.scoring import score_triples
from kgbias.measure.topics.shares import kl_divergence, relative_entropies
from kgbias.measures import Figure, order_measures
from kgbias.models.base import Completer
from kgbias.reference import load_truth
from kgbias.stats.inference import (
    STATISTICS,
    Estimate,
    Sample,
    Values,
    bootstrap,
    join_recrawls,
    mean,
)

SERIES_CRAWLS = 5
"""How many crawls are pooled to measure the coverage of intervals over recrawls."""

SIGNIFICANCE_LEVEL = 0.05
"""Of the tests on the planted nulls."""

CrawlSamples = Sequence[Mapping[tuple[str, str], Sample]]  # for each crawl, by group and measure


@dataclass(frozen=True, slots=True)
class FigureCoverage:
    """How many of the 95% intervals of a figure contain its long-run value.

    Attributes:
        figure: the name of the figure (`kgbias.measures.figures_by_name`).
        title: the same in words.
        covers: which variances the intervals claim to cover.
        share: the share of them that contain the value; its interval is over crawls, and n is the
            number of intervals (crawls or series of crawls, times groups).
        independent: the same share if every statement is taken for an independent draw.
        width: the mean width of the intervals over that of the independent ones.
    """

    figure: str
    title: str
    covers: tuple[str, ...]
    share: Estimate
    independent: Estimate
    width: float


@dataclass(frozen=True, slots=True)
class FalsePositives:
    """How often a test tells the two groups of a planted null apart, at the 5% level, uncorrected.

    Attributes:
        test: "mann_whitney", "kolmogorov_smirnov" or "permutation".
        share: the share of tests, with its interval over crawls; n is the number of tests (crawls,
            times planted nulls, times measures).
        max_expected: 5% and two standard errors for as many crawls.
    """

    test: str
    share: Estimate
    max_expected: float


class CoverageOfCrawls(NamedTuple):
    """What several crawls show of intervals and of tests."""

    coverage: list[FigureCoverage]
    false_positives: list[FalsePositives]


def measure_coverage(
    config: CrawlConfig,
    model: Completer,
    scorers: Sequence[Scorer],
    store: Store,
    progress: Progress,
    *,
    crawls: int,
) -> CoverageOfCrawls:
    """The coverage of each figure over `crawls` crawls that differ only in their seed
    (config.seed, config.seed + 1, ...), and of the means over series of them; and the false
    positives of the tests on the planted nulls in them. The crawls are kept in the store, so the
    same call continues where it was stopped.
    """
    requests_per_crawl = price_crawl(config).requests
    progress.note(
        f"{crawls} crawls of {len(config.groups)} groups, {requests_per_crawl} answers each and a "
        f"few that are "
        f"asked for again, {crawls * requests_per_crawl:,} in all; what the store holds is not "
        f"asked again"
    )
    truth, samples_by_crawl, topics = load_truth(), [], []
    progress.stage("crawls", crawls)
    for number in range(crawls):
        try:
            result = crawl(replace(config, seed=config.seed + number), model, store)
        except Interrupted as stop:
            raise Interrupted(f"crawl {number + 1} of {crawls}: {stop}") from None
        run = StoredRun(store, result.run)
        score_triples(run, scorers)
        samples_by_crawl.append(_read_samples(run))
        topics.append(Calibration(truth, run).topic_counts)
        progress.advance(1, answers=result.asked_count)
    ids = {g.name: g.id for g in config.groups}
    nulls = [(ids[a], ids[b]) for a, b in truth.nulls if a in ids and b in ids]
    return CoverageOfCrawls(
        build_coverage_rows(samples_by_crawl, topics, result.run, progress),
        count_false_positives(samples_by_crawl, nulls),
    )


def build_coverage_rows(
    samples: CrawlSamples,
    topics: Sequence[Mapping[str, Values]],
    run: Run,
    progress: Progress,
) -> list[FigureCoverage]:
    """The coverage of each figure of these crawls; `topics` has the topic counts, [k], of each
    group in each crawl."""
    measures = {name for crawl in samples for _, name in crawl}
    figures = [
        (m.name, f)
        for m in order_measures(measures)
        for f in m.figures
        if f.statistic is not None and f.over == "all"
    ]
    progress.stage("intervals", len(figures) + 1)
    table = []
    for name, figure in figures:
        by_group = {g.id: [s[g.id, name] for s in samples if (g.id, name) in s] for g in run.groups}
        table.append(_coverage_row(figure, by_group))
        if len(samples) >= 2 * SERIES_CRAWLS and figure.statistic == "mean":
            table.append(_series_coverage_row(figure, by_group))
        progress.advance()
    table.append(_entropy_row(run, topics))
    progress.advance()
    return table


def count_false_positives(
    samples: CrawlSamples, nulls: Sequence[tuple[str, str]]
) -> list[FalsePositives]:
    """The false positives of each test on planted nulls, pairs of group ids, over crawls."""
    rejected: dict[str, dict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for number, crawl_samples in enumerate(samples):
        for first_group, second_group in nulls:
            for name in {m for group, m in crawl_samples if group == first_group}:
                if (second_group, name) in crawl_samples:
                    first_sample, second_sample = (
                        crawl_samples[first_group, name],
                        crawl_samples[second_group, name],
                    )
                    comparison = compare_samples(first_sample, second_sample, draws=1)
                    p_values = {
                        "mann_whitney": comparison.u_p,
                        "kolmogorov_smirnov": comparison.ks_p,
                    }
                    sides = (
                        ClusterSample.from_sample(first_sample),
                        ClusterSample.from_sample(second_sample),
                    )
                    if sides[0] is not None and sides[1] is not None:
                        p_values["permutation"] = permutation_p_value(
                            sides[0], sides[1], permutations=1999
                        )
                    for test, p in p_values.items():
                        rejected[test][number].append(p <= SIGNIFICANCE_LEVEL)
    max_expected = SIGNIFICANCE_LEVEL + 2 * math.sqrt(
        SIGNIFICANCE_LEVEL * (1 - SIGNIFICANCE_LEVEL) / len(samples)
    )
    return [
        FalsePositives(test, _share_over_crawls(rejections), max_expected)
        for test, rejections in rejected.items()
    ]


def _read_samples(run: StoredRun) -> dict[tuple[str, str], Sample]:
    statements = select_statements(run)
    draws = Draws.from_run(run, statements)
    triples_by_group = defaultdict(list)
    for triple in statements.triples:
        triples_by_group[triple.group_id].append(triple)
    return {
        (group, name): draws.sample(group_triples, name)
        for group, group_triples in triples_by_group.items()
        for name in {measure for triple in group_triples for measure in triple.scores}
    }


def _coverage_row(figure: Figure, by_group: Mapping[str, Sequence[Sample]]) -> FigureCoverage:
    return _cover_figure(figure, figure.title, by_group, 1)


def _series_coverage_row(
    figure: Figure, by_group: Mapping[str, Sequence[Sample]]
) -> FigureCoverage:
    """The same for crawls pooled in series."""
    pooled = {
        group: [
            join_recrawls(samples[n : n + SERIES_CRAWLS])
            for n in range(0, len(samples) - SERIES_CRAWLS + 1, SERIES_CRAWLS)
        ]
        for group, samples in by_group.items()
    }
    return _cover_figure(
        figure, f"{figure.title}, {SERIES_CRAWLS} crawls pooled", pooled, SERIES_CRAWLS
    )


def _cover_figure(
    figure: Figure, title: str, by_group: Mapping[str, Sequence[Sample]], crawls: int
) -> FigureCoverage:
    assert figure.statistic is not None
    statistic = STATISTICS[figure.statistic]
    is_covered: dict[int, list[bool]] = defaultdict(list)
    is_covered_independent: dict[int, list[bool]] = defaultdict(list)
    widths: list[float] = []
    independent_widths: list[float] = []
    covers: tuple[str, ...] = ("statements",)
    for samples in by_group.values():
        figure_samples = [_apply_counts(figure, s) for s in samples]
        pooled = Sample.join([Sample(s.values, s.counts) for s in figure_samples])
        values, counts = pooled.distinct_values()
        value = float(statistic.from_counts(values, counts)) / (
            len(figure_samples) if statistic.is_sum else 1
        )
        for number, sample in enumerate(figure_samples):
            interval = bootstrap(sample, statistic)
            independent = bootstrap(replace(sample, design=None), statistic)
            is_covered[number].append(interval.low <= value <= interval.high)
            is_covered_independent[number].append(independent.low <= value <= independent.high)
            widths.append(interval.high - interval.low)
            independent_widths.append(independent.high - independent.low)
            covers = sample.design.covers if sample.design is not None else covers
    mean_width, mean_independent_width = np.nanmean(
        np.column_stack([widths, independent_widths]), axis=0
    )
    name = figure.name if crawls == 1 else f"{figure.name}_of_{crawls}"
    return FigureCoverage(
        name,
        title,
        covers,
        _share_over_crawls(is_covered),
        _share_over_crawls(is_covered_independent),
        float(mean_width / mean_independent_width),
    )


def _apply_counts(figure: Figure, sample: Sample) -> Sample:
    if figure.counts is None:
        return sample
    return replace(sample, values=(sample.values == figure.counts).astype(np.float64))


def _entropy_row(run: Run, topics: Sequence[Mapping[str, Values]]) -> FigureCoverage:
    """The row on relative entropy over the world's topics; its interval takes statements for
    independent."""
    is_covered: dict[int, list[bool]] = defaultdict(list)
    for category in dict.fromkeys(g.category for g in run.groups):
        names = [g.name for g in run.groups if g.category == category]
        pooled = np.array([np.sum([t[name] for t in topics], axis=0) for name in names])
        shares = pooled / pooled.sum(axis=1, keepdims=True)
        truth = kl_divergence(shares, shares.mean(axis=0))
        for number, counts in enumerate(topics):
            entropies = relative_entropies([counts[name] for name in names])
            for value, entropy in zip(truth, entropies, strict=True):
                interval = entropy.estimate
                is_covered[number].append(interval.low <= value <= interval.high)
    share = _share_over_crawls(is_covered)
    title = "relative entropy of the world's topics"
    return FigureCoverage("relative_entropy", title, ("statements",), share, share, 1.0)


def _share_over_crawls(outcomes_by_crawl: Mapping[int, Sequence[bool]]) -> Estimate:
    """The share of outcomes that are true, with its interval over crawls, because a crawl's groups
    are not independent."""
    crawl_shares = [np.mean(outcomes) for outcomes in outcomes_by_crawl.values()]
    estimate = bootstrap(np.array(crawl_shares, dtype=np.float64), mean)
    return replace(estimate, n=sum(map(len, outcomes_by_crawl.values())))
