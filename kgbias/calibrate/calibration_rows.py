"""The rows of the calibration table: each compares one finding with what was planted.

To add a row, write a function of a `Calibration` and name it in `ROWS`. A function is called as
the key of its row.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kgbias.compare.two_sample import compare_samples
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, TripleView
from kgbias.measure.topics.shares import kl_divergence, relative_entropies
from kgbias.measures import measure_values, scored_measures
from kgbias.reference import Truth
from kgbias.stats.inference import (
    Estimate,
    Values,
    bootstrap,
    bootstrap_pairs,
    mean,
    proportion,
    rank_correlation,
)

SIGNIFICANCE_LEVEL = 0.05  # of the tests on the planted nulls
_CEILING_TRIALS = 40
TRIALS_PER_NULL = 250  # pairs of samples for each planted null and measure


class EntropyCeiling(NamedTuple):
    """The rank correlation that could be reached: its mean, and the least of 19 in 20 samples."""

    mean: float
    least: float


class PromptKind(NamedTuple):
    """Prompts about a group that give the same predicate, or none: how many were answered with a
    statement of the world, and the shares of topics, [topics], that they leave open."""

    answered: int
    topic_shares: Values


class TopicShares(NamedTuple):
    """The topic shares of a group, [topics]: planted for this crawl's prompts, and found."""

    planted: Values
    found: Values


class RegardBalance(NamedTuple):
    """The regard balance of a group, in [-1, 1]: planted, and measured."""

    planted: float
    measured: float


class Calibration:
    """A measured run on the reference model, and the truth it is compared with."""

    def __init__(self, truth: Truth, run: StoredRun) -> None:
        self.truth = truth
        self.run = run.record
        self.generations: Sequence[Generation] = list(run.generations())
        self.triples: Sequence[TripleView] = run.triples()

    @property
    def measures(self) -> list[str]:
        """The measures that the run has."""
        return scored_measures(self.triples)

    @cached_property
    def by_group(self) -> Mapping[str, list[TripleView]]:
        triples_by_group: dict[str, list[TripleView]] = {
            group.name: [] for group in self.run.groups
        }
        for triple in self.triples:
            triples_by_group[triple.group].append(triple)
        return triples_by_group

    @cached_property
    def topic_shares(self) -> Mapping[str, TopicShares]:
        """The topic shares of each group.

        The planted shares are what this crawl should find according to the world: the mean, over
        the group's answered prompts, of the topic distribution that the prompt leaves open (the
        whole if the model names the predicate, the part under the predicate if the prompt gives
        it), at the crawl's temperature.
        """
        shares = {}
        for group in self.by_group:
            topic_counts = self.topic_counts[group]
            if topic_counts.sum():
                kinds = self._answered_prompts[group]
                planted = np.sum([kind.answered * kind.topic_shares for kind in kinds], axis=0)
                shares[group] = TopicShares(
                    planted / planted.sum(), topic_counts / topic_counts.sum()
                )
        return shares

    @cached_property
    def _answered_prompts(self) -> Mapping[str, list[PromptKind]]:
        """For each group, the kinds of prompts answered with a statement of the world."""
        topics = {topic: n for n, topic in enumerate(self.truth.regard_of)}
        temperature = float(self.run.config["temperature"])
        prompt_counts: Counter[tuple[str, str]] = Counter()
        for generation in self.generations:
            if generation.triple is not None and self.truth.find_statement(
                generation.triple.predicate, generation.triple.object
            ):
                # In this strategy the model names the predicate too: the prompt gives none.
                is_free = generation.strategy == "predicate"
                given_predicate = "" if is_free else generation.triple.predicate
                prompt_counts[generation.triple.group, given_predicate] += 1
        prompts: dict[str, list[PromptKind]] = defaultdict(list)
        for (group, predicate), count in prompt_counts.items():
            topic_shares = np.zeros(len(topics))
            if predicate:
                object_shares = self.truth.object_distribution(
                    group, predicate, temperature=temperature
                )
                statement_shares = {
                    (predicate, object): share for object, share in object_shares.items()
                }
            else:
                statement_shares = self.truth.free_distribution(group, temperature=temperature)
            for words, share in statement_shares.items():
                statement = self.truth.find_statement(*words)
                assert statement is not None
                topic_shares[topics[self.truth.statements[statement]]] += share
            prompts[group].append(PromptKind(count, topic_shares))
        return prompts

    @cached_property
    def regard_balances(self) -> Mapping[str, RegardBalance]:
        """The regard balance of each group; the measured one is overall regard over the number of
        statements."""
        balances = {}
        for group, triples in self.by_group.items():
            signs = measure_values(triples, "regard")
            if len(signs.values):
                balances[group] = RegardBalance(self.truth.regard_balance(group), signs.mean)
        return balances

    @cached_property
    def relative_entropies(self) -> Mapping[str, Values]:
        """For each category, the planted and the measured relative entropy of each group, in bits;
        [groups, 2]. Both follow from the topic shares that `topic_shares` gives; the measured
        one is corrected for its bias, as everywhere in kgbias."""
        entropies = {}
        for category in dict.fromkeys(g.category for g in self.run.groups):
            names = [g.name for g in self.run.groups if g.category == category]
            names = [name for name in names if name in self.topic_shares]
            if len(names) < 2:
                continue
            shares = np.array([self.topic_shares[name].planted for name in names])
            planted = kl_divergence(shares, shares.mean(axis=0))
            measured = relative_entropies([self.topic_counts[name] for name in names], draws=500)
            entropies[category] = np.column_stack([planted, [e.estimate.value for e in measured]])
        return entropies

    @cached_property
    def entropy_ceiling(self) -> EntropyCeiling:
        """The rank correlation of planted and measured relative entropy if the answers to this
        run's prompts were drawn from the planted shares themselves: the mean over such samples, and
        the value that 19 of 20 of them reach. Both are means over categories, weighted by their
        groups; NaN without any."""
        rng = np.random.Generator(np.random.PCG64(0))
        rhos = np.zeros(_CEILING_TRIALS)
        groups = 0
        for category, pairs in self.relative_entropies.items():
            names = [g.name for g in self.run.groups if g.category == category]
            prompts = [self._answered_prompts[name] for name in names if name in self.topic_shares]
            if len(pairs) < 3:
                continue
            groups += len(prompts)
            for trial in range(_CEILING_TRIALS):
                topic_samples = [
                    np.sum(
                        [rng.multinomial(kind.answered, kind.topic_shares) for kind in kinds],
                        axis=0,
                        dtype=float,
                    )
                    for kinds in prompts
                ]
                entropies = relative_entropies(topic_samples, draws=200)
                values = np.array([e.estimate.value for e in entropies])
                rhos[trial] += rank_correlation(pairs[:, 0], values) * len(prompts)
        if not groups:
            return EntropyCeiling(float("nan"), float("nan"))
        return EntropyCeiling(
            float(np.nanmean(rhos) / groups),
            float(np.nanquantile(rhos, SIGNIFICANCE_LEVEL) / groups),
        )

    @cached_property
    def topic_counts(self) -> Mapping[str, Values]:
        """For each group, how many of its statements are about each topic of the world."""
        topics = {topic: n for n, topic in enumerate(self.truth.regard_of)}
        counts: dict[str, Values] = defaultdict(lambda: np.zeros(len(topics)))
        for group, triples in self.by_group.items():
            for triple in triples:
                statement = self.truth.find_statement(triple.predicate, triple.object)
                if statement is not None:
                    counts[group][topics[self.truth.statements[statement]]] += triple.count
        return counts


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row of the table. `target` says what a sound method reaches; `spread` is the smallest and
    the largest value over several crawls, except for a row `of_model`, which crawls do not
    change."""

    key: str
    title: str
    target: str
    estimate: Estimate
    spread: tuple[float, float] | None = None
    of_model: bool = False


RowFunction = Callable[[Calibration], RowResult]


def well_formed(calibration: Calibration) -> RowResult:
    """The share of the answers, apart from refusals, that could be read as a triple."""
    answered = [
        generation
        for generation in calibration.generations
        if generation.outcome in ("ok", "echo", "nonsense", "unparsable")
    ]
    readable = sum(generation.outcome != "unparsable" for generation in answered)
    estimate = proportion(readable, len(answered))
    return RowResult("well_formed", "well-formed answers", ">= 0.95", estimate)


def in_world(calibration: Calibration) -> RowResult:
    """The share of the statements that the world plants for the group they are about."""
    triples_said = [g.triple for g in calibration.generations if g.triple is not None]
    true_count = sum(
        calibration.truth.is_true_of(triple.group, triple.predicate, triple.object)
        for triple in triples_said
    )
    estimate = proportion(true_count, len(triples_said))
    return RowResult("in_world", "statements true of their group", ">= 0.90", estimate)


def probability_found(calibration: Calibration) -> RowResult:
    """The planted probability of the statements that were found: the chance that a statement drawn
    from the world is among them. Mean over groups."""
    masses = []
    for group, triples in calibration.by_group.items():
        statements_found = {
            calibration.truth.find_statement(t.predicate, t.object) for t in triples
        }
        masses.append(
            sum(
                p
                for s, p in calibration.truth.joint_distribution(group).items()
                if s in statements_found
            )
        )
    estimate = bootstrap(np.array(masses), mean)
    return RowResult("probability_found", "planted probability found", "", estimate)


def topic_rank_correlation(calibration: Calibration) -> RowResult:
    """Spearman's rho of planted and found topic shares within a group. Mean over groups."""
    rhos = np.array([rank_correlation(*pair) for pair in calibration.topic_shares.values()])
    estimate = bootstrap(rhos[~np.isnan(rhos)], mean)
    return RowResult("topic_rank_correlation", "rank of topic shares", ">= 0.8", estimate)


def regard_rank_correlation(calibration: Calibration) -> RowResult:
    """Spearman's rho over groups of planted regard balance and measured overall regard."""
    pairs = np.array(list(calibration.regard_balances.values())).reshape(-1, 2)
    estimate = bootstrap_pairs(pairs[:, 0], pairs[:, 1], rank_correlation)
    return RowResult("regard_rank_correlation", "rank of regard balance", ">= 0.9", estimate)


def entropy_rank_correlation(calibration: Calibration) -> RowResult:
    """Spearman's rho over the groups of a category of planted and measured relative entropy, of the
    world's topics, against the mean group. Mean over categories, weighted by their number of
    groups. The target is what 19 of 20 samples of this size from the planted shares reach."""
    rhos, groups = [], 0
    for pairs in calibration.relative_entropies.values():
        if len(pairs) > 2:
            rhos.append((rank_correlation(pairs[:, 0], pairs[:, 1]), len(pairs)))
            groups += len(pairs)
    value = sum(rho * n for rho, n in rhos) / groups if groups else float("nan")
    estimate = _entropy_interval(calibration, value, groups)
    mean, low = calibration.entropy_ceiling
    target = f">= {low:.2f}: 19 of 20 samples of this size (mean {mean:.2f})" if groups else ""
    return RowResult("entropy_rank_correlation", "rank of relative entropy", target, estimate)


def _entropy_interval(calibration: Calibration, value: float, groups: int) -> Estimate:
    """The interval over groups: the rank correlation when groups are resampled, each with its
    category, keeping their places within the category."""
    if not groups:
        return Estimate.missing(0, value)
    places = np.concatenate(
        [
            _relative_places(pairs)
            for pairs in calibration.relative_entropies.values()
            if len(pairs) > 2
        ]
    )
    spread = bootstrap_pairs(places[:, 0], places[:, 1], rank_correlation)
    return Estimate(value, spread.low, spread.high, groups)


def _relative_places(pairs: Values) -> Values:
    """Both columns as places in (0, 1), which lets categories on different scales be pooled."""
    order = pairs.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    return np.asarray((order + 0.5) / len(pairs), dtype=np.float64)


def null_false_positives(calibration: Calibration) -> RowResult:
    """The share of tests that tell the two groups of a planted null apart at the 5% level, in this
    crawl (Mann-Whitney and Kolmogorov-Smirnov, two-sided, uncorrected, on every measure)."""
    rejected = tests = 0
    for pair in calibration.truth.nulls:
        for measure in calibration.measures:
            first_sample, second_sample = (
                measure_values(calibration.by_group.get(name, ()), measure) for name in pair
            )
            if len(first_sample.values) and len(second_sample.values):
                comparison = compare_samples(first_sample, second_sample, draws=1)
                tests += 2
                rejected += int(comparison.u_p < SIGNIFICANCE_LEVEL) + int(
                    comparison.ks_p < SIGNIFICANCE_LEVEL
                )
    estimate = proportion(rejected, tests)
    max_by_chance = _max_by_chance(tests)
    target = (
        f"<= {max_by_chance / tests:.2f}: {max_by_chance} of {tests} by chance, 19 times in 20"
        if tests
        else ""
    )
    return RowResult("null_false_positives", "planted nulls told apart", target, estimate)


def _max_by_chance(tests: int) -> int:
    """The largest number of rejections among `tests` independent tests at the 5% level, in 19 of 20
    cases."""
    at_most, rejections = (1 - SIGNIFICANCE_LEVEL) ** tests, 0
    term = at_most
    while at_most < 1 - SIGNIFICANCE_LEVEL:
        rejections += 1
        term *= (
            (tests - rejections + 1) / rejections * SIGNIFICANCE_LEVEL / (1 - SIGNIFICANCE_LEVEL)
        )
        at_most += term
    return rejections


def false_positive_rate(calibration: Calibration) -> RowResult:
    """The same over many trials: for each planted null, pairs of samples of 100 statements drawn
    from what the world plants for both groups, with the statements' scores in this run."""
    rng = np.random.Generator(np.random.PCG64(0))
    scores = {
        calibration.truth.find_statement(t.predicate, t.object): t
        for t in calibration.triples
        if t.scores
    }
    rejected = tests = 0
    for first_group, _ in calibration.truth.nulls:
        joint = calibration.truth.joint_distribution(first_group)
        scored = [(p, scores[s]) for s, p in joint.items() if s in scores]
        if len(scored) < 2:
            continue
        shares = np.array([p for p, _ in scored])
        for measure in calibration.measures:
            values = measure_values([replace(t, count=1) for _, t in scored], measure).values
            if len(values) < len(scored):
                continue
            for _ in range(TRIALS_PER_NULL):
                samples = rng.choice(values, size=(2, 100), p=shares / shares.sum())
                comparison = compare_samples(samples[0], samples[1], draws=1)
                tests += 2
                rejected += int(comparison.u_p < SIGNIFICANCE_LEVEL) + int(
                    comparison.ks_p < SIGNIFICANCE_LEVEL
                )
    estimate = proportion(rejected, tests)
    return RowResult("false_positive_rate", "false positives of the tests", "<= 0.05", estimate)


def probed_first(calibration: Calibration) -> RowResult:
    """The share of the statements planted for one group of a category alone (or for both groups of
    a null) that the model finds likelier after that group than after any other, by the perplexity
    of the statement given the group."""
    from kgbias.models.score.load import open_scorer
    from kgbias.probe.sofa import log_perplexities

    scorer = open_scorer("reference")
    found_count = planted = 0
    for category in calibration.truth.categories:
        groups = [name for name in category.groups if name in calibration.by_group]
        places_by_statement: dict[tuple[str, str], set[int]] = {}
        for place, name in enumerate(groups):
            for statement in calibration.truth.groups[name].signature:
                places_by_statement.setdefault(statement, set()).add(place)
        if len(groups) < 2:
            continue
        grid = scorer.grid(
            groups, [f"{predicate} {object}" for predicate, object in places_by_statement]
        )
        likeliest = log_perplexities(grid, "conditional").argmin(axis=0)
        found_count += sum(
            int(g) in places
            for g, places in zip(likeliest, places_by_statement.values(), strict=True)
        )
        planted += len(places_by_statement)
    estimate = proportion(found_count, planted)
    return RowResult("probed_first", "planted statements probed first", ">= 0.90", estimate)


ROWS: tuple[RowFunction, ...] = (
    well_formed,
    in_world,
    probability_found,
    topic_rank_correlation,
    regard_rank_correlation,
    entropy_rank_correlation,
    null_false_positives,
    false_positive_rate,
    probed_first,
)
