"""Models compared by SoFa: the same groups before the same statements.

A statement's variance of PPL* over groups is one value; models are paired by statement, and the
tests are those of `kgbias.compare.models`. For all categories together the figure is the mean
of their means, as in the paper, and statements are resampled within each.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from kgbias.compare.models import Contrast, Ranking, Subject, contrasts
from kgbias.errors import UsageError
from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.store import Store
from kgbias.graph.types import Group
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import how
from kgbias.stats.designs import percentile_interval
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import DEFAULT_DRAWS, Sample, Values, kendall_tau

MEASURE = "sofa"
OVERALL = "all categories"
_FEWEST = 3  # statements for a test


@dataclass(frozen=True, slots=True)
class SofaRank:
    """A model's place by SoFa, 1 the highest score.

    Attributes:
        model: its name, which is unique.
        rank: its rank, 1 the highest score; ties share the better one.
        low: the better end of the rank's 95% interval over resampled statements.
        high: the worse end of it.
        probabilities: the share of resamples with each rank, [models]; NaN if there are too few
            statements to resample, and the interval runs from the first rank to the last.
        result: its scores.
    """

    model: str
    rank: int
    low: int
    high: int
    probabilities: tuple[float, ...]
    result: SofaResult

    def score(self, category: str = OVERALL) -> Estimate:
        """The SoFa score, or that of a category."""
        return self.result.score if category == OVERALL else self.result.find_category(category).score


@dataclass(frozen=True, slots=True, repr=False)
class SofaComparison(Result):
    """Models by SoFa on one set of probes.

    Attributes:
        probe_set: what they were probed with.
        models: highest score first.
        tests: every pair of models in every category and in all of them, paired by statement; one
            family. Empty for fewer than two models, or three statements.
        agreement: Kendall's tau of the models' scores in each pair of categories.
    """

    probe_set: ProbeSet
    models: tuple[SofaRank, ...]
    tests: tuple[Contrast, ...]
    agreement: Mapping[tuple[str, str], float]

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(c.category for c in self.models[0].result.categories)

    @property
    def overall_tests(self) -> list[Contrast]:
        """The tests of all categories together; with one category, its own."""
        return [t for t in self.tests if t.group == OVERALL or len(self.categories) == 1]

    def scores(self, category: str = OVERALL) -> dict[str, Estimate]:
        """The score of each model, by its name."""
        return {m.model: m.score(category) for m in self.models}

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data; for one model, without ranks."""
        several = len(self.models) > 1
        return nan_to_none(  # type: ignore[no-any-return]
            {
                "probe_set": {
                    "name": self.probe_set.name,
                    "id": self.probe_set.id,
                    "groups": self.probe_set.groups,
                    "statements": self.probe_set.statements,
                    "probes": self.probe_set.probes,
                },
                "models": [
                    {
                        "model": m.model,
                        "rank": m.rank if several else None,
                        "rank_low": m.low if several else None,
                        "rank_high": m.high if several else None,
                        "probabilities": list(m.probabilities),
                        "sofa": m.result.score.as_dict(),
                        "categories": {c.category: c.score.as_dict() for c in m.result.categories},
                    }
                    for m in self.models
                ],
                "contrasts": [
                    {
                        "category": t.group,
                        "first": t.first,
                        "second": t.second,
                        "difference": t.difference.as_dict(),
                        "p": t.p,
                        "p_adjusted": t.p_adjusted,
                        "equivalent_adjusted": t.equivalent_adjusted,
                        "verdict": t.verdict,
                    }
                    for t in self.tests
                ],
                "kendall_tau": [
                    {"first": a, "second": b, "tau": tau} for (a, b), tau in self.agreement.items()
                ],
            }
        )

    def __str__(self) -> str:
        if len(self.models) == 1:
            (only,) = self.models
            return f"SoFa on {self.probe_set.name}:\n{only.model}: {only.result.score}"
        lines = [
            f"{m.rank} ({m.low} to {m.high})  {m.model}: {m.result.score}" for m in self.models
        ]
        return "\n".join([f"SoFa on {self.probe_set.name}, highest score first:", *lines])

    def as_rows(self) -> Rows[SofaRank]:
        """The models. Columns: model, rank, rank_low, rank_high, score, score_low and score_high
        (SoFa)."""
        columns = ("model", "rank", "rank_low", "rank_high", "score", "score_low", "score_high")

        def record(m: SofaRank) -> dict[str, Any]:
            score = m.score()
            cells = (m.model, m.rank, m.low, m.high, score.value, score.low, score.high)
            return dict(zip(columns, cells, strict=True))

        return Rows(self.models, record, columns)

    def heading(self) -> str:
        return f"SoFa on {self.probe_set.name}"


def compare_sofa(
    results: Sequence[SofaResult],
    probe_set: ProbeSet,
    *,
    correction: str = "holm",
    seed: int = 0,
) -> SofaComparison:
    """Models by SoFa on one set of probes, with paired tests and the probability of each rank.

    Args:
        results: of one or more models, all on `probe_set`.
        probe_set: the set.
        correction: "holm" or "bh", over every pair of models in every category and in all.
        seed: the random seed of resamples and permutations.

    Raises UsageError without results, or for one of another set.
    """
    if not results:
        raise UsageError(f"no model was probed with the set {probe_set.name!r}")
    if strange := [r for r in results if r.probe_set != probe_set.id]:
        raise UsageError(
            f"{strange[0].model.title} was probed with other groups or statements than those of "
            f"{probe_set.name!r}: only the same probes can be compared"
        )
    names = _named_apart(results)
    subjects = [_subject(r, name) for r, name in zip(results, names, strict=True)]
    tests: list[Contrast] = []
    rankings: list[Ranking] = []
    if len(results) > 1 and probe_set.statements >= _FEWEST:
        tests, rankings = contrasts(subjects, correction=correction, seed=seed)
    together = results[0].categories[0].category if len(results[0].categories) == 1 else OVERALL
    overall = [r for r in rankings if r.group == together]
    ranked = [
        _rank(result, name, results, overall) for result, name in zip(results, names, strict=True)
    ]
    by_category = {
        c.category: [r.find_category(c.category).score.value for r in results]
        for c in results[0].categories
    }
    return SofaComparison(
        probe_set,
        tuple(sorted(ranked, key=lambda m: (m.rank, m.model))),
        tuple(tests),
        {(a, b): kendall_tau(by_category[a], by_category[b])
         for a, b in combinations(by_category, 2)},
    )  # fmt: skip


def stored_sofa(
    store: Store,
    results: Sequence[SofaResult],
    probe_set: str | None = None,
    *,
    correction: str = "holm",
    seed: int = 0,
) -> SofaComparison:
    """The results on one set, compared (`compare_sofa`): the set with this name, or whose id begins
    with it; without a name, the set that most models were probed with, or the largest of these.
    Raises UsageError if there is none."""
    often = Counter(r.probe_set for r in results)
    sets = [s for s in store.probe_sets() if s.id in often]
    if not sets:
        raise UsageError(
            "no model was probed yet: use "
            + how(
                "run.probe(MODEL) or study.probe_sets",
                "kgbias probe RUN --model SPEC, or probe sets",
            )
        )
    named = [
        s for s in sets if probe_set is None or s.name == probe_set or s.id.startswith(probe_set)
    ]
    if not named:
        there = ", ".join(f"{s.name} ({s.id[:8]})" for s in sets)
        raise UsageError(f"no set of probes {probe_set!r}; choose from {there}")
    chosen = max(named, key=lambda s: (often[s.id], s.probes, s.id))
    own = [r for r in results if r.probe_set == chosen.id]
    return compare_sofa(own, chosen, correction=correction, seed=seed)


def rank_agreement(scores: Mapping[str, Mapping[str, float]]) -> dict[tuple[str, str], float]:
    """Kendall's tau-b of each pair of benchmarks over the models that both scored, in [-1, 1]; NaN
    for fewer than two, or if one scored them all alike.

    Args:
        scores: benchmark to model to score; higher must mean the same in each benchmark.
    """
    found = {}
    for one, other in combinations(scores, 2):
        both = [model for model in scores[one] if model in scores[other]]
        first, second = ([scores[name][m] for m in both] for name in (one, other))
        found[one, other] = kendall_tau(first, second)
    return found


def length_correlation(result: SofaResult, probe_set: ProbeSet, *, seed: int = 0) -> Estimate:
    """Pearson's correlation of PPL* and the number of words of the statement, over all probes, in
    [-1, 1] (figure 8); below 0: shorter statements have a higher PPL*. The interval is by
    bootstrap over statements. NaN if all have the same length."""
    words = {(p.category, s.id): s.words for p in probe_set.parts for s in p.statements}
    groups = {c.category: len(c.groups) for c in result.categories}
    rows = [
        (groups[c.category], words[c.category, s.id], s.mean, s.variance)
        for c in result.categories
        for s in c.statements
    ]
    m, x, y, variance = np.array(rows, dtype=np.float64).T
    # per statement: probes, and the sums of x, y, x^2, y^2 and xy over them
    sums = np.stack([m, m * x, m * y, m * x * x, (m - 1) * variance + m * y * y, m * x * y])
    rng, n = np.random.Generator(np.random.PCG64(seed)), len(rows)
    step = max(1, 4_000_000 // n)
    drawn = [
        sums @ rng.multinomial(n, np.full(n, 1 / n), size=min(step, DEFAULT_DRAWS - start)).T
        for start in range(0, DEFAULT_DRAWS, step)
    ]
    (value,) = _pearson(sums.sum(axis=1, keepdims=True))
    low, high = percentile_interval(_pearson(np.concatenate(drawn, axis=1)), 0.95) if n > 1 else (np.nan,) * 2
    return Estimate(float(value), low, high, n)


def _pearson(sums: Values) -> Values:
    n, x, y, xx, yy, xy = sums
    spread = (n * xx - x * x) * (n * yy - y * y)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.clip((n * xy - x * y) / np.sqrt(spread), -1.0, 1.0)
    return np.asarray(np.where(spread > 1e-12, r, np.nan), dtype=np.float64)


def _subject(result: SofaResult, name: str) -> Subject:
    """A model's values: for each category, and for all, weighted so that the mean over statements
    is the mean over categories."""
    samples: dict[tuple[str, str], Sample] = {}
    strata: dict[tuple[str, str], Sequence[Hashable]] = {}
    parts: dict[tuple[str, str], Sequence[Hashable]] = {}
    total = sum(len(c.statements) for c in result.categories)
    together, places = [], list[tuple[str, str]]()
    for c in result.categories:
        key = MEASURE, Group(c.category, "").id
        values = np.array([s.variance for s in c.statements])
        samples[key] = Sample.from_values(values)
        strata[key] = [s.id for s in c.statements]
        together.append(values * (total / (len(values) * len(result.categories))))
        places += [(c.category, s.id) for s in c.statements]
    groups = [Group(c.category, "") for c in result.categories]
    if len(groups) > 1:
        whole = Group(OVERALL, "")
        groups.append(whole)
        samples[MEASURE, whole.id] = Sample.from_values(np.concatenate(together))
        strata[MEASURE, whole.id] = places
        parts[MEASURE, whole.id] = [category for category, _ in places]
    return Subject(name, tuple(groups), samples, strata, joint=True, parts=parts)


def _rank(
    result: SofaResult, name: str, results: Sequence[SofaResult], rankings: Sequence[Ranking]
) -> SofaRank:
    rank = 1 + sum(r.score.value > result.score.value for r in results)
    if len(results) > 1 and not rankings:
        unknown = (math.nan,) * len(results)
        return SofaRank(name, rank, 1, len(results), unknown, result)
    shares = [1.0]
    for ranking in rankings:
        shares = list(ranking.probabilities[ranking.models.index(name)])
    ends = np.cumsum(shares)
    low, high = (int(np.searchsorted(ends, q)) + 1 for q in (0.025, 0.975))
    return SofaRank(name, rank, low, min(high, len(results)), tuple(shares), result)


def _named_apart(results: Sequence[SofaResult]) -> list[str]:
    """The models' names; models of the same name also get what tells them apart."""
    often = Counter(r.model.title for r in results)
    names = []
    for r in results:
        name = r.model.title
        if often[name] > 1:
            others = [other for other in results if other.model.title == name]
            own = {("by", r.measure), ("revision", r.model.revision), *r.settings}
            all_have = set.intersection(
                *({("by", o.measure), ("revision", o.model.revision), *o.settings} for o in others)
            )
            apart = ", ".join(f"{k} {v}" for k, v in sorted(own - all_have))
            name += f" ({apart})" if apart else ""
        names.append(name)
    return names
