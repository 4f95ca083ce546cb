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

from kgbias.calibrate.evidence_rows import mean_over_pairs
from kgbias.compare.families import REST, run_family
from kgbias.compare.paired_tests import ClusterSample, permutation_detectable, permutation_p_value
from kgbias.compare.permutation import build_permutation_clusters
from kgbias.evidence import jackknife_kendall_tau
from kgbias.measure.topics.shares import kl_divergence, relative_entropies
from kgbias.methods.associations.effect import effect_estimate, effect_sizes
from kgbias.stats.designs import Design, percentile_interval, resample_effects
from kgbias.stats.inference import (
    Estimate,
    Sample,
    bootstrap,
    mean,
    proportion,
    quantile,
    resample_statistic,
)
from kgbias.stats.poststratification import StandardWeights, StratifiedSample
from kgbias.stats.variance import GroupCells, estimate_crossed_variances, estimate_group_cells

Values = np.ndarray
Row = Sequence[str]


def format_share(hits: int, n: int) -> str:
    estimate = proportion(hits, n)
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def draw_regard(rng: np.random.Generator, latent: Values) -> Values:
    """Values 1, 0 and -1 with the hyperbolic tangent of `latent` as their mean; if that is 0, half
    of them are 0."""
    mean, uniform = np.tanh(latent), rng.random(latent.shape)
    return 1.0 * (uniform < (1 + mean) ** 2 / 4) - (uniform > 1 - (1 - mean) ** 2 / 4)


# The smallest difference that a permutation test finds


STRATUM_MEANS = (-0.4, 0.1, 0.4, -0.1, 0.0, 0.2)  # of strata, on the latent scale


def draw_prompts(
    rng: np.random.Generator, strata: Sequence[tuple[int, int]], shift: float, kind: str
) -> ClusterSample:
    """Answers about a group: in each stratum, a number of prompts with a number of answers each,
    and a prompt's answers are alike. Regard is 1, 0 and -1; "skewed" piles up at 0."""
    names, sums, counts = [], [], []
    for stratum, (count, answers) in enumerate(strata):
        prompt_means = rng.normal(STRATUM_MEANS[stratum % 6] + shift, 0.5, (count, 1))
        if kind == "regard":
            values = draw_regard(rng, np.repeat(prompt_means, answers, axis=1))
        else:
            values = (
                rng.beta(0.3, 2.0, (count, 1)) + rng.beta(0.3, 2.0, (count, answers))
            ) / 2 + shift
        names += [stratum] * count
        sums += values.sum(axis=1).tolist()
        counts += [float(answers)] * count
    return ClusterSample(names, np.array(sums), np.array(counts))


def fit_shifts(strata: Sequence[tuple[int, int]], kind: str) -> Callable[[float], float]:
    """The shift that makes a given difference of means, from a million answers at each of many
    shifts, in the proportions of the design."""
    if kind != "regard":
        return lambda difference: difference
    rng, grid = np.random.default_rng(1), np.linspace(0, 2.5, 26)
    weights = np.array([n * answers for n, answers in strata], dtype=float)
    noise = rng.normal(0, 0.5, 40_000)
    means = [
        float(
            weights
            @ [np.tanh(noise + STRATUM_MEANS[h % 6] + by).mean() for h in range(len(strata))]
        )
        for by in grid
    ]
    differences = (np.array(means) - means[0]) / weights.sum()
    return lambda difference: float(np.interp(difference, differences, grid))


CRAWL = [(5, 1)] * 6 + [(10, 3), (10, 1)]
DESIGNS = {
    "a group against another of its size": (CRAWL, CRAWL),
    "a group against nine others": (CRAWL, [(9 * n, k) for n, k in CRAWL]),
    "20 prompts of 4 answers against 20": ([(20, 4)], [(20, 4)]),
    "40 pairs": ([(1, 1)] * 40, [(1, 1)] * 40),
}


def power(samples: int = 400) -> Iterator[Row]:
    """`kgbias.compare.paired_tests.permutation_detectable` for one sample, then another sample with
    exactly this difference, tested at the same level: is it found in 80 of 100?"""
    yield "samples", "values", "level", "difference stated (mean)", "found"
    for name, (first_design, second_design) in DESIGNS.items():
        for kind in ("regard", "skewed"):
            for level in (0.05, 0.005):
                rng, find_shift = np.random.default_rng(11), fit_shifts(first_design, kind)
                hits, differences = 0, list[float]()
                for _ in range(samples):
                    first, second = (
                        draw_prompts(rng, s, 0.0, kind) for s in (first_design, second_design)
                    )
                    differences.append(permutation_detectable(first, second, level=level))
                    first = draw_prompts(rng, first_design, find_shift(differences[-1]), kind)
                    second = draw_prompts(rng, second_design, 0.0, kind)
                    hits += permutation_p_value(first, second, permutations=1_999) <= level
                mean = f"{np.mean(differences):.3f}"
                yield name, kind, f"{level}", mean, format_share(hits, samples)


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

    for group_count in (3, 5, 10):
        rng, alone_hits, shown_hits, differences = (
            np.random.default_rng(group_count),
            0,
            0,
            list[float](),
        )
        names = [f"G{n}" for n in range(group_count)]
        for _ in range(samples):
            before = {name: side(rng, 0.0) for name in names}
            samples_drawn = (
                build_permutation_clusters(
                    before, StandardWeights.from_samples(list(before.values()))
                )
                or {}
            )
            others = ClusterSample.concatenate([samples_drawn[name] for name in names[1:]])
            differences.append(
                permutation_detectable(samples_drawn["G0"], others, level=0.05 / group_count)
            )
            after = {name: side(rng, differences[-1] * (name == "G0")) for name in names}
            pairs = [(name, REST) for name in names]
            test = run_family("warmth", "x", after, pairs, detect=False).tests[0]
            alone_hits += test.p <= 0.05 / group_count
            shown_hits += test.differs
        yield (
            str(group_count),
            f"{np.mean(differences):.3f}",
            format_share(alone_hits, samples),
            format_share(shown_hits, samples),
        )


# What moves regard more, the wording or the group


def draw_cells(
    rng: np.random.Generator,
    group_count: int,
    group_spread: float,
    common_spread: float,
    own_spread: float,
) -> list[GroupCells]:
    """Regard of g groups: 30 prompts with three answers each, in three wordings by turns."""
    prompt_count, wording_count = 30, 3
    clusters = np.repeat(np.arange(prompt_count), 3)
    design = Design(clusters, np.arange(prompt_count) // 10)
    of_all, rows = rng.normal(0, common_spread, wording_count), []
    for _ in range(group_count):
        wordings = (np.arange(3 * prompt_count) + rng.integers(wording_count)) % wording_count
        mean = (
            rng.normal(0, group_spread)
            + (of_all + rng.normal(0, own_spread, wording_count))[wordings]
        )
        values = draw_regard(rng, mean + rng.normal(0, 0.4, prompt_count)[clusters])
        sample = Sample(
            values, np.ones(3 * prompt_count, dtype=np.int64), design, np.arange(3 * prompt_count)
        )
        if (row := estimate_group_cells([sample], [wordings], wording_count)) is not None:
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
        "nothing": (0.0, 0.0, 0.0),
        "0.4 between wordings, of all groups": (0.0, 0.4, 0.0),
        "0.4 between groups by wordings": (0.0, 0.0, 0.4),
        "0.4 between groups": (0.4, 0.0, 0.0),
    }
    for group_count in (3, 6, 10, 20):
        for name, planted in cases.items():
            rng, hits = np.random.default_rng(group_count), np.zeros(3, dtype=int)
            count = samples if planted[0] == planted[2] else samples // 2
            for _ in range(count):
                model = estimate_crossed_variances(draw_cells(rng, group_count, *planted))
                hits += model.excess.low > 0, model.excess.high < 0, model.interaction.low > 0
            yield str(group_count), name, *(format_share(int(x), count) for x in hits)


# Intervals


def coverage(cases: Iterator[tuple[Estimate, float]]) -> str:
    """The share of intervals that contain the true value."""
    hits = [e.low <= true <= e.high for e, true in cases if e.has_interval]
    return format_share(sum(hits), len(hits))


def pairs(samples: int = 1_000) -> Iterator[Row]:
    """The mean of a correlation over all pairs of g groups (`kgbias calibrate`), where each pair's
    correlation is the sum of both groups' contributions and noise: the jackknife over groups, and
    the bootstrap over pairs that was used before."""
    yield "groups", "noise of a pair", "over groups", "over pairs, as before"
    for group_count in (6, 12, 22):
        for noise in (0.02, 0.1):
            rng, estimates = np.random.default_rng(group_count), list[tuple[Estimate, Estimate]]()
            every = list(combinations(range(group_count), 2))
            for _ in range(samples):
                group_parts = rng.normal(0.25, 0.05, group_count)
                values = np.array([group_parts[a] + group_parts[b] for a, b in every])
                values += rng.normal(0, noise, len(every))
                names = [(str(a), str(b)) for a, b in every]
                estimates.append(
                    (mean_over_pairs(names, values), bootstrap(values, mean, draws=300))
                )
            new, old = (coverage((row[n], 0.5) for row in estimates) for n in (0, 1))
            yield str(group_count), f"{noise}", new, old


def orders(samples: int = 1_000) -> Iterator[Row]:
    """Kendall's tau-b between how often statements were said (most of them once) and their lift
    (`kgbias evidence`), when statements with the same predicate resemble each other: the jackknife
    over predicates, and over statements as before."""
    yield "statements", "over predicates", "over statements, as before"
    for predicates, per_predicate in ((60, 1), (20, 3), (12, 5), (30, 6)):
        rng = np.random.default_rng(predicates)
        # the long-run value: the one for very many predicates
        true = float(
            np.mean(
                [
                    jackknife_kendall_tau(*draw_orders(rng, 700, per_predicate)[:2]).value
                    for _ in range(8)
                ]
            )
        )
        estimates = []
        for _ in range(samples):
            first, second, clusters = draw_orders(rng, predicates, per_predicate)
            estimates.append(
                (
                    jackknife_kendall_tau(first, second, clusters),
                    jackknife_kendall_tau(first, second),
                )
            )
        new, old = (coverage((row[n], true) for row in estimates) for n in (0, 1))
        yield f"{predicates} predicates of {per_predicate}", new, old


def draw_orders(
    rng: np.random.Generator, predicate_count: int, per_predicate: int
) -> tuple[Values, Values, list[int]]:
    """Counts and lifts for n predicates with `per_predicate` statements, which share 0.6 of their
    variance."""
    latent, noise = (
        np.sqrt(0.6) * rng.normal(size=(predicate_count, 1))
        + np.sqrt(0.4) * rng.normal(size=(predicate_count, per_predicate))
        for _ in range(2)
    )
    counts = 1.0 + (latent > 1.2) + (latent > 1.9)
    lifts = 0.4 * latent + np.sqrt(0.84) * noise
    return (
        counts.ravel(),
        lifts.ravel(),
        np.repeat(np.arange(predicate_count), per_predicate).tolist(),
    )


def entropy(samples: int = 250) -> Iterator[Row]:
    """The relative entropy of the topics of six groups with 72 statements each, in prompts of m
    statements that share their topics: resampled by prompts, and by statements as before. Each
    sample has six intervals. False: the interval excludes 0 although all groups are alike."""
    yield (
        "statements of a prompt",
        "by prompts",
        "by statements",
        "false, by prompts",
        "false, by statements",
    )
    for per_prompt in (1, 2, 4):
        rows = []
        for is_alike in (False, True):
            rng = np.random.default_rng(per_prompt)
            base = rng.dirichlet(np.full(8, 2.0))
            truth = np.array(
                [
                    base if is_alike else 0.6 * base + 0.4 * rng.dirichlet(np.ones(8))
                    for _ in range(6)
                ]
            )
            values, hits = kl_divergence(truth, truth.mean(axis=0)), np.zeros(2, dtype=int)
            for _ in range(samples):
                topic_samples = [draw_topics(rng, p, per_prompt) for p in truth]
                counts = [
                    np.bincount(s.values.astype(int), minlength=8) * 1.0 for s in topic_samples
                ]
                for place, clusters in enumerate((topic_samples, ())):
                    for result, true in zip(
                        relative_entropies(counts, clusters, draws=500), values, strict=True
                    ):
                        e = result.estimate
                        hits[place] += e.low > 0 if is_alike else e.low <= true <= e.high
            rows += [format_share(int(x), samples * 6) for x in hits]
        yield str(per_prompt), *rows


def draw_topics(rng: np.random.Generator, shares: Values, per_prompt: int) -> Sample:
    """The topics of 72 statements, in prompts of m whose topics vary around these shares."""
    prompt_count = 72 // per_prompt
    prompt_shares = np.array(
        [
            rng.dirichlet(2 * shares + 1e-9) if per_prompt > 1 else shares
            for _ in range(prompt_count)
        ]
    )
    topic_numbers = (
        (rng.random((prompt_count, per_prompt, 1)) > np.cumsum(prompt_shares, axis=1)[:, None, :-1])
        .sum(axis=-1)
        .ravel()
    )
    design = Design(
        np.repeat(np.arange(prompt_count), per_prompt), np.zeros(prompt_count, dtype=np.int64)
    )
    return Sample(topic_numbers * 1.0, np.ones(72, dtype=np.int64), design, np.arange(72))


def words(samples: int = 3_000) -> Iterator[Row]:
    """The effect size of an association test with n words per set, over all words
    (`kgbias.methods.associations.effect`): by noncentral t, and by percentiles of resampled words
    as before."""
    yield "words", "d within sets", "associations", "noncentral t", "percentiles, as before"
    for set_size in (6, 8, 16):
        for true in (0.0, 1.0, 2.0):
            for kind in ("normal", "X twice as spread", "skewed"):
                rng, estimates = np.random.default_rng(set_size), []
                for _ in range(samples):
                    x, y = rng.normal(size=set_size), rng.normal(size=set_size)
                    if kind == "skewed":
                        x, y = (rng.gamma(4, 0.5, set_size) - 2 for _ in range(2))
                    spread = 1.0
                    if kind == "X twice as spread":
                        x, spread = 2 * x, np.sqrt(2.5)
                    x = x + true * spread
                    draws = rng.integers(0, set_size, (2, 400, set_size))
                    low, high = np.quantile(effect_sizes(x[draws[0]], y[draws[1]]), [0.025, 0.975])
                    estimates.append((effect_estimate(x, y), Estimate(0.0, low, high, set_size)))
                d = true / np.sqrt(1 + true**2 / 4)
                new, old = (coverage((row[k], d) for row in estimates) for k in (0, 1))
                yield f"{set_size} + {set_size}", f"{true:g}", kind, new, old


def levels(samples: int = 3_000) -> Iterator[Row]:
    """Mean regard of 90 statements in k wordings, as an estimate of the mean over all possible
    wordings: the interval of a group's figure. The variance between wordings is a multiple of the
    sampling variance of one wording's mean. Before: wordings resampled."""
    yield "wordings", "times the sampling variance", "t", "resampled, as before", "wider"
    for wording_count in (3, 5):
        for ratio in (0.0, 0.5, 1.0, 2.0, 4.0, 20.0):
            rng, estimates = np.random.default_rng(wording_count), []
            wording_numbers = np.arange(90) % wording_count
            design = Design(
                np.repeat(np.arange(45), 2), np.arange(45) // 15, {"wordings": wording_numbers}
            )
            sampling = 0.6 * wording_count / 90
            for _ in range(samples):
                effect = rng.normal(0, np.sqrt(ratio * sampling), wording_count)
                values = rng.normal(0, np.sqrt(0.6), 90) + effect[wording_numbers]
                sample = Sample(values, np.ones(90, dtype=np.int64), design, np.arange(90))
                estimate = bootstrap(sample, mean, draws=500)
                parts = resample_statistic(sample, mean, 500, rng)
                units = np.array(list(parts.units["wordings"].values())).T
                low, high = percentile_interval(
                    parts.place_draws + resample_effects(units[0], units[1], 500, rng), 0.95
                )
                estimates.append((estimate, Estimate(estimate.value, low, high, 90)))
            new, old = (coverage((row[n], 0.0) for row in estimates) for n in (0, 1))
            wider = np.median([(a.high - a.low) / (b.high - b.low) for a, b in estimates])
            yield str(wording_count), f"{ratio:g}", new, old, f"{wider:.2f}"


def medians(samples: int = 1_000) -> Iterator[Row]:
    """The median of a skewed measure between 0 and 1, for 90 statements in 45 prompts: how many
    intervals contain it, and how many go out of bounds."""
    yield "wordings", "held", "outside of 0 to 1"
    for wording_count in (1, 3):
        rng, estimates = np.random.default_rng(7), []
        wording_numbers = np.arange(90) % wording_count
        units = {"wordings": wording_numbers} if wording_count > 1 else {}
        design = Design(np.repeat(np.arange(45), 2), np.arange(45) // 15, units)
        true = float(np.median(rng.beta(0.3, 2.0, 1_000_000)))
        for _ in range(samples):
            values = rng.beta(0.3, 2.0, 90)
            sample = Sample(values, np.ones(90, dtype=np.int64), design, np.arange(90), (0, 1))
            estimates.append(bootstrap(sample, quantile(0.5), draws=500))
        outside = sum(e.low < 0 or e.high > 1 for e in estimates)
        yield (
            str(wording_count),
            coverage((e, true) for e in estimates),
            format_share(outside, samples),
        )


SECTIONS: dict[str, Callable[[], Iterator[Row]]] = {
    "power": power,
    "gate": gate,
    "wordings": wordings,
    "pairs": pairs,
    "orders": orders,
    "entropy": entropy,
    "words": words,
    "levels": levels,
    "medians": medians,
}


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
