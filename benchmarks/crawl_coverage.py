"""Whether intervals keep their promise and whether sentences are printed by chance: simulations.

    python benchmarks/crawl_coverage.py [SECTION ...]

Each section draws many samples from a known truth, through the library's own functions, and counts.
Prints Markdown tables with Monte Carlo errors, for docs/methods/how-well.md: a share of n samples
is shown with its 95% Wilson interval.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from kgbias.associate.effect import effect_estimate, effect_sizes
from kgbias.calibrate.evidence_rows import mean_over_pairs
from kgbias.compare.families import REST, run_family
from kgbias.compare.paired_tests import ClusterSample, permutation_detectable, permutation_p_value
from kgbias.compare.permutation import permutation_units
from kgbias.evidence import jackknife_kendall_tau
from kgbias.measure.topics.shares import kl_divergence, relative_entropies
from kgbias.stats.designs import Design, resample_effects, percentile_interval
from kgbias.stats.inference import (
    Estimate,
    Sample,
    bootstrap,
    mean,
    proportion,
    quantile,
    resample_statistic,
)
from kgbias.stats.poststratification import StratifiedSample, StandardWeights
from kgbias.stats.variance import GroupCells, measure_cells, estimate_crossed

Values = np.ndarray
Row = Sequence[str]


def share(hits: int, n: int) -> str:
    found = proportion(hits, n)
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def regard(rng: np.random.Generator, latent: Values) -> Values:
    """Values 1, 0 and -1 with the hyperbolic tangent of `latent` as their mean; if that is 0, half
    of them are 0."""
    mean, drawn = np.tanh(latent), rng.random(latent.shape)
    return 1.0 * (drawn < (1 + mean) ** 2 / 4) - (drawn > 1 - (1 - mean) ** 2 / 4)


# The smallest difference that a permutation test finds


MIDDLES = (-0.4, 0.1, 0.4, -0.1, 0.0, 0.2)  # of strata, on the latent scale


def prompts(
    rng: np.random.Generator, strata: Sequence[tuple[int, int]], shift: float, kind: str
) -> ClusterSample:
    """Answers about a group: in each stratum, a number of prompts with a number of answers each,
    and a prompt's answers are alike. Regard is 1, 0 and -1; "skewed" piles up at 0."""
    names, sums, counts = [], [], []
    for stratum, (n, answers) in enumerate(strata):
        own = rng.normal(MIDDLES[stratum % 6] + shift, 0.5, (n, 1))
        if kind == "regard":
            values = regard(rng, np.repeat(own, answers, axis=1))
        else:
            values = (rng.beta(0.3, 2.0, (n, 1)) + rng.beta(0.3, 2.0, (n, answers))) / 2 + shift
        names += [stratum] * n
        sums += values.sum(axis=1).tolist()
        counts += [float(answers)] * n
    return ClusterSample(names, np.array(sums), np.array(counts))


def shifts(one: Sequence[tuple[int, int]], kind: str) -> Callable[[float], float]:
    """The shift that makes a given difference of means, from a million answers at each of many
    shifts, in the proportions of the design."""
    if kind != "regard":
        return lambda difference: difference
    rng, tried = np.random.default_rng(1), np.linspace(0, 2.5, 26)
    weights = np.array([n * answers for n, answers in one], dtype=float)
    own = rng.normal(0, 0.5, 40_000)
    means = [
        float(weights @ [np.tanh(own + MIDDLES[h % 6] + by).mean() for h in range(len(one))])
        for by in tried
    ]
    found = (np.array(means) - means[0]) / weights.sum()
    return lambda difference: float(np.interp(difference, found, tried))


CRAWL = [(5, 1)] * 6 + [(10, 3), (10, 1)]
DESIGNS = {
    "a group against another of its size": (CRAWL, CRAWL),
    "a group against nine others": (CRAWL, [(9 * n, k) for n, k in CRAWL]),
    "20 prompts of 4 answers against 20": ([(20, 4)], [(20, 4)]),
    "40 pairs": ([(1, 1)] * 40, [(1, 1)] * 40),
}


def power(samples: int = 400) -> Iterator[Row]:
    """`kgbias.compare.paired_tests.permutation_detectable` for one sample, then another sample with exactly this
    difference, tested at the same level: is it found in 80 of 100?"""
    yield "samples", "values", "level", "difference stated (mean)", "found"
    for name, (one, other) in DESIGNS.items():
        for kind in ("regard", "skewed"):
            for level in (0.05, 0.005):
                rng, turned = np.random.default_rng(11), shifts(one, kind)
                hits, stated = 0, list[float]()
                for _ in range(samples):
                    first, second = (prompts(rng, s, 0.0, kind) for s in (one, other))
                    stated.append(permutation_detectable(first, second, level=level))
                    first = prompts(rng, one, turned(stated[-1]), kind)
                    second = prompts(rng, other, 0.0, kind)
                    hits += permutation_p_value(first, second, permutations=1_999) <= level
                mean = f"{np.mean(stated):.3f}"
                yield name, kind, f"{level}", mean, share(hits, samples)


def gate(samples: int = 300) -> Iterator[Row]:
    """The difference that the test of one of several groups would find by itself, planted in one of
    them: how often that test finds it at its level, and how often the difference is shown, for
    which all groups together must differ and the interval must exclude 0 (`GroupTest.differs`)."""
    yield "groups", "difference stated (mean)", "by the test alone", "shown"

    def side(rng: np.random.Generator, shift: float) -> StratifiedSample:
        clusters = np.repeat(np.arange(40), 3)
        values = shift + rng.normal(0, 0.5, 40)[clusters] + rng.normal(0, 0.5, 120)
        forms = np.empty(120, dtype=object)
        forms[:] = "chosen"
        design = Design(clusters, np.zeros(40, dtype=np.int64))
        ones = np.ones(120, dtype=np.int64)
        return StratifiedSample(Sample(values, ones, design, np.arange(120)), forms, forms)

    for g in (3, 5, 10):
        rng, alone, shown, stated = np.random.default_rng(g), 0, 0, list[float]()
        names = [f"G{n}" for n in range(g)]
        for _ in range(samples):
            before = {name: side(rng, 0.0) for name in names}
            own = permutation_units(before, StandardWeights.from_samples(list(before.values()))) or {}
            others = ClusterSample.concatenate([own[name] for name in names[1:]])
            stated.append(permutation_detectable(own["G0"], others, level=0.05 / g))
            after = {name: side(rng, stated[-1] * (name == "G0")) for name in names}
            pairs = [(name, REST) for name in names]
            test = run_family("warmth", "x", after, pairs, detect=False).tests[0]
            alone += test.p <= 0.05 / g
            shown += test.differs
        yield str(g), f"{np.mean(stated):.3f}", share(alone, samples), share(shown, samples)


# What moves regard more, the wording or the group


def asked(
    rng: np.random.Generator, g: int, groups: float, common: float, own: float
) -> list[GroupCells]:
    """Regard of g groups: 30 prompts with three answers each, in three wordings by turns."""
    n, k = 30, 3
    clusters = np.repeat(np.arange(n), 3)
    design = Design(clusters, np.arange(n) // 10)
    of_all, rows = rng.normal(0, common, k), []
    for _ in range(g):
        wordings = (np.arange(3 * n) + rng.integers(k)) % k
        mean = rng.normal(0, groups) + (of_all + rng.normal(0, own, k))[wordings]
        values = regard(rng, mean + rng.normal(0, 0.4, n)[clusters])
        sample = Sample(values, np.ones(3 * n, dtype=np.int64), design, np.arange(3 * n))
        if (row := measure_cells([sample], [wordings], k)) is not None:
            rows.append(row)
    return rows


def wordings(samples: int = 1_000) -> Iterator[Row]:
    """Regard of groups asked about in three wordings (90 statements each), by the crossed model of
    `kgbias.stats.variance`: how often it is said that the wording moves a group more than groups
    differ, or that groups differ more, and how often an interaction is found (its interval excludes
    0). The planted values are standard deviations on the latent scale of regard."""
    yield (
        "groups",
        "planted",
        "said: the wording more",
        "said: the groups more",
        "interaction found",
    )
    cases = {
        "nothing": (0.0, 0.0, 0.0), "0.4 between wordings, of all groups": (0.0, 0.4, 0.0),
        "0.4 between groups by wordings": (0.0, 0.0, 0.4), "0.4 between groups": (0.4, 0.0, 0.0),
    }  # fmt: skip
    for g in (3, 6, 10, 20):
        for name, planted in cases.items():
            rng, hits = np.random.default_rng(g), np.zeros(3, dtype=int)
            count = samples if planted[0] == planted[2] else samples // 2
            for _ in range(count):
                c = estimate_crossed(asked(rng, g, *planted))
                hits += c.excess.low > 0, c.excess.high < 0, c.interaction.low > 0
            yield str(g), name, *(share(int(x), count) for x in hits)


# Intervals


def held(cases: Iterator[tuple[Estimate, float]]) -> str:
    """The share of intervals that contain the true value."""
    hits = [e.low <= true <= e.high for e, true in cases if e.has_interval]
    return share(sum(hits), len(hits))


def pairs(samples: int = 1_000) -> Iterator[Row]:
    """The mean of a correlation over all pairs of g groups (`kgbias calibrate`), where each pair's
    correlation is the sum of both groups' contributions and noise: the jackknife over groups, and
    the bootstrap over pairs that was used before."""
    yield "groups", "noise of a pair", "over groups", "over pairs, as before"
    for g in (6, 12, 22):
        for noise in (0.02, 0.1):
            rng, found = np.random.default_rng(g), list[tuple[Estimate, Estimate]]()
            every = list(combinations(range(g), 2))
            for _ in range(samples):
                own = rng.normal(0.25, 0.05, g)
                values = np.array([own[a] + own[b] for a, b in every])
                values += rng.normal(0, noise, len(every))
                named = [(str(a), str(b)) for a, b in every]
                found.append((mean_over_pairs(named, values), bootstrap(values, mean, draws=300)))
            new, old = (held((row[n], 0.5) for row in found) for n in (0, 1))
            yield str(g), f"{noise}", new, old


def orders(samples: int = 1_000) -> Iterator[Row]:
    """Kendall's tau-b between how often statements were said (most of them once) and their lift
    (`kgbias evidence`), when statements with the same predicate resemble each other: the jackknife
    over predicates, and over statements as before."""
    yield "statements", "over predicates", "over statements, as before"
    for predicates, each in ((60, 1), (20, 3), (12, 5), (30, 6)):
        rng = np.random.default_rng(predicates)
        # the long-run value: the one for very many predicates
        true = float(np.mean([jackknife_kendall_tau(*said(rng, 700, each)[:2]).value for _ in range(8)]))
        found = []
        for _ in range(samples):
            first, second, of = said(rng, predicates, each)
            found.append((jackknife_kendall_tau(first, second, of), jackknife_kendall_tau(first, second)))
        new, old = (held((row[n], true) for row in found) for n in (0, 1))
        yield f"{predicates} predicates of {each}", new, old


def said(rng: np.random.Generator, n: int, each: int) -> tuple[Values, Values, list[int]]:
    """Counts and lifts for n predicates with `each` statements, which share 0.6 of their
    variance."""
    latent, noise = (
        np.sqrt(0.6) * rng.normal(size=(n, 1)) + np.sqrt(0.4) * rng.normal(size=(n, each))
        for _ in range(2)
    )
    counts = 1.0 + (latent > 1.2) + (latent > 1.9)
    lifts = 0.4 * latent + np.sqrt(0.84) * noise
    return counts.ravel(), lifts.ravel(), np.repeat(np.arange(n), each).tolist()


def entropy(samples: int = 250) -> Iterator[Row]:
    """The relative entropy of the topics of six groups with 72 statements each, in prompts of m
    statements that share their topics: resampled by prompts, and by statements as before. Each
    sample has six intervals. False: the interval excludes 0 although all groups are alike."""
    yield "statements of a prompt", "by prompts", "by statements", "false, by prompts", \
        "false, by statements"  # fmt: skip
    for m in (1, 2, 4):
        rows = []
        for alike in (False, True):
            rng = np.random.default_rng(m)
            base = rng.dirichlet(np.full(8, 2.0))
            truth = np.array(
                [base if alike else 0.6 * base + 0.4 * rng.dirichlet(np.ones(8)) for _ in range(6)]
            )
            values, hits = kl_divergence(truth, truth.mean(axis=0)), np.zeros(2, dtype=int)
            for _ in range(samples):
                drawn = [topics(rng, p, m) for p in truth]
                counts = [np.bincount(s.values.astype(int), minlength=8) * 1.0 for s in drawn]
                for place, known in enumerate((drawn, ())):
                    for found, true in zip(
                        relative_entropies(counts, known, draws=500), values, strict=True
                    ):
                        e = found.estimate
                        hits[place] += e.low > 0 if alike else e.low <= true <= e.high
            rows += [share(int(x), samples * 6) for x in hits]
        yield str(m), *rows


def topics(rng: np.random.Generator, shares: Values, m: int) -> Sample:
    """The topics of 72 statements, in prompts of m whose topics vary around these shares."""
    n = 72 // m
    of = np.array([rng.dirichlet(2 * shares + 1e-9) if m > 1 else shares for _ in range(n)])
    found = (rng.random((n, m, 1)) > np.cumsum(of, axis=1)[:, None, :-1]).sum(axis=-1).ravel()
    design = Design(np.repeat(np.arange(n), m), np.zeros(n, dtype=np.int64))
    return Sample(found * 1.0, np.ones(72, dtype=np.int64), design, np.arange(72))


def words(samples: int = 1_000) -> Iterator[Row]:
    """The effect size of an association test with n words per set, over all words
    (`kgbias.associate.effect`): by noncentral t, and by percentiles of resampled words as
    before."""
    yield "words", "d within sets", "associations", "noncentral t", "percentiles, as before"
    for n in (6, 8, 16):
        for true in (0.0, 1.0, 2.0):
            for kind in ("normal", "X twice as spread", "skewed"):
                rng, found = np.random.default_rng(n), []
                for _ in range(samples):
                    x, y = rng.normal(size=n), rng.normal(size=n)
                    if kind == "skewed":
                        x, y = (rng.gamma(4, 0.5, n) - 2 for _ in range(2))
                    within = 1.0
                    if kind == "X twice as spread":
                        x, within = 2 * x, np.sqrt(2.5)
                    x = x + true * within
                    draws = rng.integers(0, n, (2, 400, n))
                    low, high = np.quantile(effect_sizes(x[draws[0]], y[draws[1]]), [0.025, 0.975])
                    found.append((effect_estimate(x, y), Estimate(0.0, low, high, n)))
                d = true / np.sqrt(1 + true**2 / 4)
                new, old = (held((row[k], d) for row in found) for k in (0, 1))
                yield f"{n} + {n}", f"{true:g}", kind, new, old


def levels(samples: int = 1_000) -> Iterator[Row]:
    """Mean regard of 90 statements in k wordings, as an estimate of the mean over all possible
    wordings: the interval of a group's figure. The variance between wordings is a multiple of the
    sampling variance of one wording's mean. Before: wordings resampled."""
    yield "wordings", "times the sampling variance", "t", "resampled, as before", "wider"
    for k in (3, 5):
        for ratio in (0.0, 0.5, 1.0, 2.0, 4.0, 20.0):
            rng, found = np.random.default_rng(k), []
            of = np.arange(90) % k
            design = Design(np.repeat(np.arange(45), 2), np.arange(45) // 15, {"wordings": of})
            sampling = 0.6 * k / 90
            for _ in range(samples):
                effect = rng.normal(0, np.sqrt(ratio * sampling), k)
                values = rng.normal(0, np.sqrt(0.6), 90) + effect[of]
                sample = Sample(values, np.ones(90, dtype=np.int64), design, np.arange(90))
                e = bootstrap(sample, mean, draws=500)
                parts = resample_statistic(sample, mean, 500, rng)
                units = np.array(list(parts.units["wordings"].values())).T
                low, high = percentile_interval(parts.place_draws + resample_effects(units[0], units[1], 500, rng), 0.95)
                found.append((e, Estimate(e.value, low, high, 90)))
            new, old = (held((row[n], 0.0) for row in found) for n in (0, 1))
            wider = np.median([(a.high - a.low) / (b.high - b.low) for a, b in found])
            yield str(k), f"{ratio:g}", new, old, f"{wider:.2f}"


def medians(samples: int = 1_000) -> Iterator[Row]:
    """The median of a skewed measure between 0 and 1, for 90 statements in 45 prompts: how many
    intervals contain it, and how many go out of bounds."""
    yield "wordings", "held", "outside of 0 to 1"
    for wordings_ in (1, 3):
        rng, found = np.random.default_rng(7), []
        of = np.arange(90) % wordings_
        known = {"wordings": of} if wordings_ > 1 else {}
        design = Design(np.repeat(np.arange(45), 2), np.arange(45) // 15, known)
        true = float(np.median(rng.beta(0.3, 2.0, 1_000_000)))
        for _ in range(samples):
            values = rng.beta(0.3, 2.0, 90)
            sample = Sample(values, np.ones(90, dtype=np.int64), design, np.arange(90), (0, 1))
            found.append(bootstrap(sample, quantile(0.5), draws=500))
        outside = sum(e.low < 0 or e.high > 1 for e in found)
        yield str(wordings_), held((e, true) for e in found), share(outside, samples)


SECTIONS: dict[str, Callable[[], Iterator[Row]]] = {
    "power": power, "gate": gate, "wordings": wordings, "pairs": pairs, "orders": orders,
    "entropy": entropy, "words": words, "levels": levels, "medians": medians,
}  # fmt: skip


def main(chosen: Sequence[str]) -> None:
    for name, section in SECTIONS.items():
        if chosen and name not in chosen:
            continue
        print(f"\n## {name}\n\n{' '.join((section.__doc__ or '').split())}\n")
        for number, row in enumerate(section()):
            print("| " + " | ".join(row) + " |", flush=True)
            if not number:
                print("|" + "---|" * len(row))


if __name__ == "__main__":
    main(sys.argv[1:])
