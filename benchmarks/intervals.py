"""How often 95% intervals hold what was planted, by kind of figure: the table of
docs/methods/how-well.md.

    python benchmarks/intervals.py [SAMPLES] [--seed N]

Each kind is drawn as often as SAMPLES says (default 1,000), from small and lopsided samples, where
intervals fail first. The figure is computed by the function that computes it in reports.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from kgbias.evidence.stereotype_matching import _estimate_share
from kgbias.graph.types import Group
from kgbias.measure.scorer_agreement import cohens_kappa
from kgbias.measure.topics.shares import GroupShares, kl_divergence, relative_entropies
from kgbias.probe.benchmarks.stereoset import StereoSetExample, _domain_figures
from kgbias.stats.designs import Design
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import Sample, bootstrap, clustered_mean, mean, proportion, total
from kgbias.stats.keyness import FeatureTable, log_odds_ratio, measure_keyness
from kgbias.stats.units import UnitSums, ratio_of_sums

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
                return bootstrap(sample, mean, draws=300), p[0] - p[2]

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


def pair_kinds() -> Iterator[FigureKind]:
    for units in (3, 6, 12, 24):

        def once(rng: Rng, units: int = units) -> tuple[Estimate, float]:
            differences = rng.gamma(4.0, 1.0, units) - rng.gamma(4.0, 1.0, units)
            return clustered_mean(range(units), (differences + 1.0).tolist()), 1.0

        yield FigureKind("difference of pairs", f"{units} units", once)


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
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", nargs="?", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| figure | samples | held | printed |\n|---|---|---|---|")
    for number, kinds in enumerate(KINDS):
        for place, kind in enumerate(kinds()):
            rng = np.random.default_rng([arguments.seed, number, place])
            draws = [kind.draw_once(rng) for _ in range(arguments.samples)]
            with_interval = [(e, truth) for e, truth in draws if e.has_interval]
            hits = sum(e.low - 1e-9 <= truth <= e.high + 1e-9 for e, truth in with_interval)
            share = proportion(hits, len(with_interval))
            printed = len(with_interval) / len(draws)
            print(
                f"| {kind.figure} | {kind.setting} | {share.value:.3f} ({share.interval('.3f')}) | "
                f"{printed:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
