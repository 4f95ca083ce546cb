"""Models compared over the same groups: by crawls, or by probes of the same statements.

Everything asked at once (every pair of models, every group, every measure) is one family.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from kgbias.compare.families import (
    CORRECTIONS,
    LEVEL,
    adjusted,
    compared,
    detectable_difference,
    leaves_out_none,
    tested,
    told,
)
from kgbias.compare.paired import (
    Drawn,
    detectable,
    equivalence_p,
    least_p,
    permutation_p,
    rank_probabilities,
)
from kgbias.compare.permuted import drawn
from kgbias.errors import UsageError, no_such
from kgbias.graph.draws import Draws
from kgbias.graph.selection import SelectedStatements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, ProbeRun, TripleView, node_id
from kgbias.io.text import spoken_name
from kgbias.measures import known
from kgbias.stats.designs import percentile_interval
from kgbias.stats.inference import DEFAULT_DRAWS, Estimate, Sample, Values
from kgbias.stats.ppi import NOT_TESTED, CorrectedDifference
from kgbias.stats.poststratification import StratifiedSample, StandardWeights

AFFINITY = "affinity"
NEGATIVE = "affinity_to_negative"
MARGIN = 0.05
"""The margin of equivalence, as a share of the measure's range."""
SMALL = 0.2
"""The same for a measure without a range, in standard deviations (Cohen's small effect)."""
_FEWEST = 3  # values of each side
_CHUNK = 4_000_000  # draws in memory at once


@dataclass(frozen=True, slots=True)
class Contrast:
    """A group's mean of a measure in two models.

    Attributes:
        measure: the measure.
        group: the group.
        first: the first model's name (a run, or a model that probed).
        second: the second one's.
        n: how many values each has.
        means: their means; for crawls, at one mix of prompts (`kgbias.stats.poststratification`).
        difference: mean of the first minus mean of the second, with its bootstrap interval: paired
            if the models were probed with the same statements, or else each by its own design.
        p: of no difference, two-sided: for crawls, by permutation of whole prompts
            (`kgbias.compare.permuted`); for probes, of the models within each statement
            (`kgbias.compare.paired`).
        equivalent_p: of a difference of `margin` or more, by two one-sided t-tests.
        margin: in units of the measure.
        paired: what both share: "statements" (or other units of a benchmark), "prompts", or "" if
            nothing is known about the draws.
        p_adjusted: `p`, corrected over the family.
        equivalent_adjusted: `equivalent_p`, corrected over the family.
        family: how many contrasts the family has.
        correction: "holm" or "bh".
        detectable: the smallest true difference that would be found in 80% of cases at the
            corrected level: for crawls, by the test itself (`kgbias.compare.paired.detectable`), or
            else by the normal approximation; in units of the measure, NaN if none would be (with
            few units no p is small enough).
        drawn: the prompts that were dealt, from which `detectable` is computed.
        statistic: which statistic of the measure is compared: "mean", or "" if it is itself a
            figure.
        corrected: the difference of means corrected by labels, if both have enough, with a p-value
            of its own if each is corrected by labels of this group.
    """

    measure: str
    group: str
    first: str
    second: str
    n: tuple[int, int]
    means: tuple[float, float]
    difference: Estimate
    p: float
    equivalent_p: float
    margin: float
    paired: str
    p_adjusted: float = math.nan
    equivalent_adjusted: float = math.nan
    family: int = 0
    correction: str = "holm"
    detectable: float = math.nan
    drawn: tuple[Drawn, Drawn] | None = field(default=None, repr=False, compare=False)
    statistic: str = "mean"
    corrected: CorrectedDifference = NOT_TESTED

    @property
    def differs(self) -> bool:
        """Whether a difference was shown: it is significant after correction, and its interval
        leaves out 0."""
        return self.p_adjusted <= LEVEL and leaves_out_none(self.difference)

    @property
    def told(self) -> bool:
        """Whether a difference was shown in what is told first: the corrected difference if it is
        tested, or else what the scorer says."""
        return self.corrected.is_significant if self.corrected.is_tested else self.differs

    @property
    def paired_by_unit(self) -> bool:
        """Whether both were asked the same units, which can be exchanged one by one."""
        return self.paired not in ("", "prompts")

    @property
    def same(self) -> bool:
        """Whether they were shown to differ by less than the margin: the test says so after
        correction, and the whole interval lies within it."""
        d = self.difference
        within = -self.margin < d.low and d.high < self.margin
        return self.equivalent_adjusted <= LEVEL and within and not self.differs

    @property
    def verdict(self) -> str:
        """The result of the contrast, in words."""
        form = known(self.measure).form.lstrip("+")
        subject = f"{self.statistic} {spoken_name(self.measure)} of {self.group}".strip()
        if self.told or self.differs:
            return told(subject, self.first, self.second, self.difference, self.corrected, form)
        if self.same:
            return (
                f"{subject}: {self.first} and {self.second} are the same to within "
                f"{self.margin:{form}}"
            )
        if math.isnan(self.p) or math.isnan(self.detectable):
            units = self.paired if self.paired_by_unit else "statements"
            return f"{subject}: too few {units} to tell {self.first} from {self.second}"
        return (
            f"{subject}: no difference was shown between {self.first} and {self.second}; one of "
            f"{self.detectable:{form}} would have been found in 80% of cases"
        )


@dataclass(frozen=True, slots=True)
class Ranking:
    """Models by a group's mean of a measure, highest first: `probabilities` holds, for each, the
    probability of each rank, over resamples."""

    measure: str
    group: str
    models: tuple[str, ...]
    means: tuple[float, ...]
    probabilities: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """A model with its samples, by measure and group id. `strata` name the strata of each sample's
    design; `asked` are the samples of a crawl with what its prompts supplied (without it, the
    strata say that). For a probing each value is a stratum, and `joint` is true: values of the same
    stratum are resampled together, separately for each of the `parts` (one name per value)."""

    name: str
    groups: tuple[Group, ...]
    samples: Mapping[tuple[str, str], Sample]
    strata: Mapping[tuple[str, str], Sequence[Hashable]] = field(default_factory=dict)
    joint: bool = False
    parts: Mapping[tuple[str, str], Sequence[Hashable]] = field(default_factory=dict)
    asked: Mapping[tuple[str, str], StratifiedSample] = field(default_factory=dict)

    def of(self, key: tuple[str, str]) -> StratifiedSample:
        """A sample of a crawl, with what its prompts supplied."""
        found = self.asked.get(key)
        return found or StratifiedSample.by_strata(self.samples[key], self.strata.get(key))


def crawled(run: StoredRun, counted: SelectedStatements) -> Subject:
    """A run's statements that count, in one arm."""
    draws = Draws.from_run(run, counted)
    said: dict[str, list[TripleView]] = {}
    for t in counted.triples:
        said.setdefault(t.group_id, []).append(t)
    asked = {
        (measure, id): draws.stratified_sample(triples, measure)
        for measure in tested(counted.triples)
        for id, triples in said.items()
    }
    samples = {key: a.sample for key, a in asked.items()}
    return Subject(run.name, run.groups, samples, asked=asked)


def probed(run: StoredRun, probing: ProbeRun) -> Subject:
    """How probable a model finds a run's statements: how many bits likelier each is after the group
    than after the average group of the category ("affinity", above 0: likelier), over all
    statements, and over those of negative regard if regard was measured. Bits of a whole statement
    can be compared between models with different tokens."""
    category = {g.id: g.category for g in run.groups}
    bits: dict[tuple[str, str], dict[str, float]] = {}
    for e in run.probes(probing.id):
        if e.group_id in category:
            found = e.statement_log_likelihood if e.statement_tokens else e.log_likelihood
            own = bits.setdefault((category[e.group_id], e.statement_id), {})
            own[e.group_id] = found / math.log(2)
    negative = {
        t.statement_id
        for t in run.triples()
        if "regard" in t.scores and t.scores["regard"].label == "negative"
    }
    values: dict[tuple[str, str], dict[str, float]] = {}
    for (_, statement), by_group in bits.items():
        average = sum(by_group.values()) / len(by_group)
        for id, value in by_group.items():
            values.setdefault((AFFINITY, id), {})[statement] = value - average
            if statement in negative:
                values.setdefault((NEGATIVE, id), {})[statement] = value - average
    samples = {key: Sample.from_values(np.array(list(own.values()))) for key, own in values.items()}
    strata = {key: list(own) for key, own in values.items()}
    return Subject(probing.model.title, run.groups, samples, strata, joint=True)


def contrasts(
    subjects: Sequence[Subject],
    *,
    groups: Sequence[str] = (),
    measures: Sequence[str] = (),
    margin: float | None = None,
    correction: str = "holm",
    seed: int = 0,
) -> tuple[list[Contrast], list[Ranking]]:
    """Every pair of models in each group and measure that both have, and the models' ranks.

    Args:
        subjects: two or more, with distinct names.
        groups: only these, by name; none: all that any two have.
        measures: only these; none: all.
        margin: differences below it count as none, in units of the measure; None: 0.05 of the
            measure's range, or 0.2 standard deviations if it has none.
        correction: "holm" or "bh", over all contrasts.
        seed: the random seed of resamples and permutations.

    Raises UsageError for fewer than two models, or if they share nothing of what was asked.
    """
    if len(subjects) < 2:
        raise UsageError("name two or more models to compare")
    if margin is not None and not margin > 0:
        raise UsageError("`margin` must be above 0")
    if correction not in CORRECTIONS:
        raise UsageError(no_such("correction", correction, ("holm", "bh")))
    wanted = {node_id("group", name) for name in groups}
    names = {g.id: g.name for s in subjects for g in s.groups}
    keys = [
        key
        for key in dict.fromkeys(key for s in subjects for key in s.samples)
        if (not measures or key[0] in measures) and (not wanted or key[1] in wanted)
    ]
    tests, rankings = [], []
    for measure, id in keys:
        own = [s for s in subjects if _enough(s.samples.get((measure, id)))]
        for a, b in combinations(own, 2):
            tests.append(_contrast(a, b, (measure, id), names[id], margin, seed))
        if len(own) > 1 and (own[0].joint or StandardWeights.from_samples([s.of((measure, id)) for s in own]).weights):
            rankings.append(_ranking(own, (measure, id), names[id], seed))
    tests = [t for t in tests if min(t.n) >= _FEWEST]
    if not tests:
        there = ", ".join(sorted({m for s in subjects for m, _ in s.samples})) or "nothing measured"
        raise UsageError(f"the models share no group with that measure; there is {there}")
    return corrected(tests, correction), rankings


def _enough(sample: Sample | None) -> bool:
    return sample is not None and sample.n >= _FEWEST


def _contrast(
    a: Subject, b: Subject, key: tuple[str, str], group: str, margin: float | None, seed: int
) -> Contrast:
    first, second = a.samples[key], b.samples[key]
    if margin is None:
        margin = _margin(key[0], first, second)
    if not (a.joint and b.joint):
        return _of_crawls(a, b, key, group, margin)
    (one, other), parts = _same([a, b], key)
    first, second, d = Sample.from_values(one), Sample.from_values(other), one - other
    difference = _paired_difference(d, parts, seed)
    sides = [Drawn(range(len(d)), s.values, np.ones(len(d))) for s in (first, second)]
    p = permutation_p(sides[0], sides[1], seed=seed)
    same = equivalence_p(difference.value, _error(d), margin, len(d) - 1.0)
    return Contrast(
        key[0], group, a.name, b.name, (first.n, second.n), (first.mean, second.mean), difference,
        p, same, margin, "statements",
    )  # fmt: skip


def _of_crawls(a: Subject, b: Subject, key: tuple[str, str], group: str, margin: float) -> Contrast:
    """Two crawls' statements about a group, at one mix of the kinds of prompt that both have."""
    sides = {a.name: a.of(key), b.name: b.of(key)}
    (test,) = compared(key[0], group, sides, [(a.name, b.name)], detect=False).tests
    d = test.difference
    error = (d.high - d.low) / (2 * 1.959964)
    designs = [s.sample.design for s in sides.values()]
    freedom = float(sum(len(x.strata) - len(set(x.strata)) for x in designs if x is not None))
    known_draws = None not in designs
    same = equivalence_p(d.value, error, margin, freedom if known_draws else math.inf)
    return Contrast(
        key[0], group, a.name, b.name, test.n, test.means, d, test.p, same, margin,
        "prompts" if known_draws else "",
        drawn=_drawn(sides),
    )  # fmt: skip


def _drawn(sides: Mapping[str, StratifiedSample]) -> tuple[Drawn, Drawn] | None:
    found = drawn(sides, StandardWeights.from_samples(list(sides.values())))
    if found is None:
        return None
    first, second = found.values()
    return first, second


def _detectable(t: Contrast, family: int) -> float:
    """The difference that the test would find in 80% of cases, in a family of this size."""
    if t.paired_by_unit and least_p(t.n[0]) > LEVEL / family:
        return math.nan
    if t.drawn is None or not t.difference.has_interval:
        return detectable_difference(t.difference, family)
    found = detectable(*t.drawn, level=LEVEL / family)
    return found if math.isfinite(found) else math.nan


def _margin(measure: str, first: Sample, second: Sample) -> float:
    bounds = known(measure).range
    if bounds is not None:
        return MARGIN * (bounds[1] - bounds[0])
    values, counts = Sample.join([Sample(s.values, s.counts) for s in (first, second)]).distinct_values()
    about = values - counts @ values / counts.sum()
    return SMALL * math.sqrt(float(counts @ about**2 / counts.sum()))


def _same(subjects: Sequence[Subject], key: tuple[str, str]) -> tuple[Values, Values]:
    """The values of the strata that all have, in one order, [subjects, n], and the part of each,
    as a number, [n]."""
    strata, parts = subjects[0].strata[key], subjects[0].parts.get(key)
    shared = set.intersection(*(set(s.strata[key]) for s in subjects))
    order = [n for n, stratum in enumerate(strata) if stratum in shared]
    places = [{stratum: n for n, stratum in enumerate(s.strata[key])} for s in subjects]
    values = [
        s.samples[key].values[[at[strata[n]] for n in order]]
        for s, at in zip(subjects, places, strict=True)
    ]
    names = {part: n for n, part in enumerate(dict.fromkeys(parts or ()))}
    return np.array(values), np.array([names[parts[n]] if parts else 0 for n in order])


def _redrawn(values: Values, parts: Values, rng: np.random.Generator) -> Values:
    """The means of values [k, n] over resamples of the n, drawn within each of the parts,
    [k, draws]."""
    found = np.zeros((len(values), DEFAULT_DRAWS))
    for part in np.unique(parts):
        own = values[:, parts == part]
        n = own.shape[1]
        step = max(1, _CHUNK // n)
        drawn = [
            own @ rng.multinomial(n, np.full(n, 1 / n), size=min(step, DEFAULT_DRAWS - start)).T
            for start in range(0, DEFAULT_DRAWS, step)
        ]
        found += np.concatenate(drawn, axis=1)
    return np.asarray(found / max(1, values.shape[1]), dtype=np.float64)


def _paired_difference(d: Values, parts: Values, seed: int) -> Estimate:
    if len(d) < 2:
        return Estimate.missing(len(d), float(d.mean()) if len(d) else math.nan)
    rng = np.random.Generator(np.random.PCG64(seed))
    (drawn,) = _redrawn(d[None], parts, rng)
    return Estimate(float(d.mean()), *percentile_interval(drawn, 0.95), len(d))


def _error(d: Values) -> float:
    return float(d.std(ddof=1)) / math.sqrt(len(d)) if len(d) > 1 else math.nan


def _ranking(own: Sequence[Subject], key: tuple[str, str], group: str, seed: int) -> Ranking:
    rng = np.random.Generator(np.random.PCG64(seed))
    if all(s.joint for s in own):
        values, parts = _same(own, key)
        there = values.shape[1] > 0
        drawn = _redrawn(values, parts, rng)
        means = {s.name: float(v.mean()) if there else math.nan
                 for s, v in zip(own, values, strict=True)}  # fmt: skip
        replicates = {s.name: v for s, v in zip(own, drawn, strict=True)}
    else:
        mix = StandardWeights.from_samples([s.of(key) for s in own])
        means = {s.name: mix.mean(s.of(key)) for s in own}
        redrawn = [mix.resample_mean(s.of(key), DEFAULT_DRAWS, rng).replicates(rng) for s in own]
        defined = ~np.isnan(redrawn).any(axis=0)  # a resample may lack every form that counts
        replicates = {s.name: r[defined] for s, r in zip(own, redrawn, strict=True)}
    found = rank_probabilities(replicates)
    order_of = sorted(means, key=lambda name: -means[name])
    return Ranking(
        key[0], group, tuple(order_of), tuple(means[name] for name in order_of),
        tuple(tuple(found[name]) for name in order_of),
    )  # fmt: skip


def by_labels(
    tests: Sequence[Contrast], difference: Callable[[str, str, str, str], CorrectedDifference]
) -> list[Contrast]:
    """The contrasts with the differences that labels correct: of a measure, a group and two models.
    P-values are corrected over the same family as those of what the scorer says."""
    if not tests:
        return []
    found = [difference(t.measure, t.group, t.first, t.second) for t in tests]
    both = zip(tests, adjusted(found, tests[0].correction), strict=True)
    return [replace(t, corrected=d) for t, d in both]


def corrected(tests: Sequence[Contrast], correction: str) -> list[Contrast]:
    """The tests with p-values corrected over all of them, and what each would then find."""

    def over_all(p: Sequence[float]) -> list[float]:
        defined = [n for n, x in enumerate(p) if not math.isnan(x)]
        found = [math.nan] * len(p)
        for n, x in zip(defined, CORRECTIONS[correction]([p[n] for n in defined]), strict=True):
            found[n] = x
        return found

    p, same = over_all([t.p for t in tests]), over_all([t.equivalent_p for t in tests])
    return [
        replace(
            t,
            p_adjusted=x,
            equivalent_adjusted=y,
            family=len(tests),
            correction=correction,
            detectable=_detectable(t, len(tests)),
        )
        for t, x, y in zip(tests, p, same, strict=True)
    ]
