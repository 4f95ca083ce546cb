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

import numpy as np

from kgbias.calibrate.rows import Calibration
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
from kgbias.measures import Figure, among
from kgbias.models.base import Completer
from kgbias.reference import load_truth
from kgbias.stats.inference import (
    STATISTICS,
    Estimate,
    Sample,
    Values,
    bootstrap,
    mean,
    join_recrawls,
)

SERIES = 5
"""How many crawls are pooled to measure the coverage of intervals over recrawls."""

LEVEL = 0.05
"""Of the tests on the planted nulls."""

Samples = Sequence[Mapping[tuple[str, str], Sample]]  # for each crawl, by group and measure


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the 95% intervals of a figure contain its long-run value.

    Attributes:
        figure: the name of the figure (`kgbias.measures.figures`).
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
        most: 5% and two standard errors for as many crawls.
    """

    test: str
    share: Estimate
    most: float


def coverage(
    config: CrawlConfig,
    model: Completer,
    scorers: Sequence[Scorer],
    store: Store,
    progress: Progress,
    *,
    crawls: int,
) -> tuple[list[Coverage], list[FalsePositives]]:
    """The coverage of each figure over `crawls` crawls that differ only in their seed
    (config.seed, config.seed + 1, ...), and of the means over series of them; and the false
    positives of the tests on the planted nulls in them. The crawls are kept in the store, so the
    same call continues where it was stopped.
    """
    each = price_crawl(config).requests
    progress.note(
        f"{crawls} crawls of {len(config.groups)} groups, {each} answers each and a few that are "
        f"asked for again, {crawls * each:,} in all; what the store holds is not asked again"
    )
    truth, found, topics = load_truth(), [], []
    progress.stage("crawls", crawls)
    for number in range(crawls):
        try:
            result = crawl(replace(config, seed=config.seed + number), model, store)
        except Interrupted as stop:
            raise Interrupted(f"crawl {number + 1} of {crawls}: {stop}") from None
        run = StoredRun(store, result.run)
        score_triples(run, scorers)
        found.append(_samples(run))
        topics.append(Calibration(truth, run).topic_counts)
        progress.advance(1, answers=result.asked_count)
    ids = {g.name: g.id for g in config.groups}
    nulls = [(ids[a], ids[b]) for a, b in truth.nulls if a in ids and b in ids]
    return coverage_rows(found, topics, result.run, progress), false_positives(found, nulls)


def coverage_rows(
    samples: Samples,
    topics: Sequence[Mapping[str, Values]],
    run: Run,
    progress: Progress,
) -> list[Coverage]:
    """The coverage of each figure of these crawls; `topics` has the topic counts, [k], of each
    group in each crawl."""
    measures = {name for crawl in samples for _, name in crawl}
    figures = [
        (m.name, f) for m in among(measures) for f in m.figures
        if f.statistic is not None and f.over == "all"
    ]  # fmt: skip
    progress.stage("intervals", len(figures) + 1)
    table = []
    for name, figure in figures:
        by_group = {g.id: [s[g.id, name] for s in samples if (g.id, name) in s] for g in run.groups}
        table.append(_row(figure, by_group))
        if len(samples) >= 2 * SERIES and figure.statistic == "mean":
            table.append(_series_row(figure, by_group))
        progress.advance()
    table.append(_entropy_row(run, topics))
    progress.advance()
    return table


def false_positives(samples: Samples, nulls: Sequence[tuple[str, str]]) -> list[FalsePositives]:
    """The false positives of each test on planted nulls, pairs of group ids, over crawls."""
    rejected: dict[str, dict[int, list[tuple[bool]]]] = defaultdict(lambda: defaultdict(list))
    for number, own in enumerate(samples):
        for a, b in nulls:
            for name in {m for group, m in own if group == a}:
                if (b, name) in own:
                    first, second = own[a, name], own[b, name]
                    tested = compare_samples(first, second, draws=1)
                    found = {"mann_whitney": tested.u_p, "kolmogorov_smirnov": tested.ks_p}
                    sides = ClusterSample.from_sample(first), ClusterSample.from_sample(second)
                    if sides[0] is not None and sides[1] is not None:
                        found["permutation"] = permutation_p_value(sides[0], sides[1], permutations=1999)
                    for test, p in found.items():
                        rejected[test][number].append((p <= LEVEL,))
    most = LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / len(samples))
    return [FalsePositives(test, _share(rows, 0), most) for test, rows in rejected.items()]


def _samples(run: StoredRun) -> dict[tuple[str, str], Sample]:
    counted = select_statements(run)
    draws = Draws.from_run(run, counted)
    said = defaultdict(list)
    for t in counted.triples:
        said[t.group_id].append(t)
    return {
        (group, name): draws.sample(own, name)
        for group, own in said.items()
        for name in {m for t in own for m in t.scores}
    }


def _row(figure: Figure, by_group: Mapping[str, Sequence[Sample]]) -> Coverage:
    return _held(figure, figure.title, by_group, 1)


def _series_row(figure: Figure, by_group: Mapping[str, Sequence[Sample]]) -> Coverage:
    """The same for crawls pooled in series."""
    pooled = {
        group: [
            join_recrawls(samples[n : n + SERIES]) for n in range(0, len(samples) - SERIES + 1, SERIES)
        ]
        for group, samples in by_group.items()
    }
    return _held(figure, f"{figure.title}, {SERIES} crawls pooled", pooled, SERIES)


def _held(
    figure: Figure, title: str, by_group: Mapping[str, Sequence[Sample]], crawls: int
) -> Coverage:
    assert figure.statistic is not None
    statistic = STATISTICS[figure.statistic]
    held: dict[int, list[tuple[bool, bool]]] = defaultdict(list)
    widths: list[tuple[float, float]] = []
    covers: tuple[str, ...] = ("statements",)
    for samples in by_group.values():
        read = [_read(figure, s) for s in samples]
        whole = Sample.join([Sample(s.values, s.counts) for s in read])
        values, counts = whole.distinct_values()
        value = float(statistic.from_counts(values, counts)) / (len(read) if statistic.is_sum else 1)
        for number, sample in enumerate(read):
            own, alone = (bootstrap(s, statistic) for s in (sample, replace(sample, design=None)))
            held[number].append((own.low <= value <= own.high, alone.low <= value <= alone.high))
            widths.append((own.high - own.low, alone.high - alone.low))
            covers = sample.design.covers if sample.design is not None else covers
    wide = np.nanmean(np.array(widths), axis=0)
    name = figure.name if crawls == 1 else f"{figure.name}_of_{crawls}"
    return Coverage(name, title, covers, _share(held, 0), _share(held, 1), float(wide[0] / wide[1]))


def _read(figure: Figure, sample: Sample) -> Sample:
    if figure.counts is None:
        return sample
    return replace(sample, values=(sample.values == figure.counts).astype(np.float64))


def _entropy_row(run: Run, topics: Sequence[Mapping[str, Values]]) -> Coverage:
    """The row on relative entropy over the world's topics; its interval takes statements for
    independent."""
    held: dict[int, list[tuple[bool]]] = defaultdict(list)
    for category in dict.fromkeys(g.category for g in run.groups):
        names = [g.name for g in run.groups if g.category == category]
        pooled = np.array([np.sum([t[name] for t in topics], axis=0) for name in names])
        shares = pooled / pooled.sum(axis=1, keepdims=True)
        truth = kl_divergence(shares, shares.mean(axis=0))
        for number, counts in enumerate(topics):
            found = relative_entropies([counts[name] for name in names])
            for value, e in zip(truth, found, strict=True):
                held[number].append((e.estimate.low <= value <= e.estimate.high,))
    share = _share(held, 0)
    title = "relative entropy of the world's topics"
    return Coverage("relative_entropy", title, ("statements",), share, share, 1.0)


def _share(held: Mapping[int, Sequence[tuple[bool, ...]]], column: int) -> Estimate:
    """The share that holds, with its interval over crawls, because a crawl's groups are not
    independent."""
    of_crawl = [np.mean([row[column] for row in rows]) for rows in held.values()]
    e = bootstrap(np.array(of_crawl, dtype=np.float64), mean)
    return replace(e, n=sum(map(len, held.values())))
