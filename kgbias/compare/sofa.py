"""Models compared by SoFa: the same groups before the same statements.

A statement's variance of PPL* over groups is one value; models are paired by statement, and the
tests are those of `kgbias.compare.model_contrasts`. For all categories together the figure is the
mean of their means, as in the paper, and statements are resampled within each.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter
from typing import Any

import numpy as np

from kgbias.compare.model_contrasts import (
    ModelContrast,
    ModelRanking,
    ModelSamples,
    contrast_models,
)
from kgbias.errors import UsageError
from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.store import Store
from kgbias.graph.types import Group
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import how
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import Sample, Values, kendall_tau, student_quantile

MEASURE = "sofa"
ALL_CATEGORIES = "all categories"
_MIN_STATEMENTS = 3  # statements for a test


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

    def score(self, category: str = ALL_CATEGORIES) -> Estimate:
        """The SoFa score, or that of a category."""
        return (
            self.result.score
            if category == ALL_CATEGORIES
            else self.result.find_category(category).score
        )


@dataclass(frozen=True, slots=True, repr=False)
class SofaComparison(Result):
    """Models by SoFa on one set of probes.

    Attributes:
        probe_set: what they were probed with.
        models: highest score first.
        contrasts: every pair of models in every category and in all of them, paired by statement;
            one family. Empty for fewer than two models, or three statements.
        rank_agreements: Kendall's tau of the models' scores in each pair of categories.
    """

    probe_set: ProbeSet
    models: tuple[SofaRank, ...]
    contrasts: tuple[ModelContrast, ...]
    rank_agreements: Mapping[tuple[str, str], float]

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(c.category for c in self.models[0].result.categories)

    @property
    def overall_contrasts(self) -> list[ModelContrast]:
        """The tests of all categories together; with one category, its own."""
        return [t for t in self.contrasts if t.group == ALL_CATEGORIES or len(self.categories) == 1]

    def scores(self, category: str = ALL_CATEGORIES) -> dict[str, Estimate]:
        """The score of each model, by its name."""
        return {m.model: m.score(category) for m in self.models}

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data; for one model, without ranks."""
        has_several = len(self.models) > 1
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
                        "rank": m.rank if has_several else None,
                        "rank_low": m.low if has_several else None,
                        "rank_high": m.high if has_several else None,
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
                        "p_value": t.p,
                        "p_adjusted": t.p_adjusted,
                        "equivalent_p_adjusted": t.equivalent_adjusted,
                        "verdict": t.verdict,
                    }
                    for t in self.contrasts
                ],
                "kendall_tau": [
                    {"first": a, "second": b, "tau": tau}
                    for (a, b), tau in self.rank_agreements.items()
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
        columns = (
            Column("model"),
            Column("rank", "d"),
            Column("rank_low", "d", get=attrgetter("low")),
            Column("rank_high", "d", get=attrgetter("high")),
            Column("score", ".3f", interval=True, get=lambda model_rank: model_rank.score()),
        )
        return Rows(self.models, columns)

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
    if other_sets := [r for r in results if r.probe_set != probe_set.id]:
        raise UsageError(
            f"{other_sets[0].model.title} was probed with other groups or statements than those of "
            f"{probe_set.name!r}: only the same probes can be compared"
        )
    names = _distinct_names(results)
    subjects = [_build_subject(r, name) for r, name in zip(results, names, strict=True)]
    tests: list[ModelContrast] = []
    rankings: list[ModelRanking] = []
    if len(results) > 1 and probe_set.statements >= _MIN_STATEMENTS:
        tests, rankings = contrast_models(subjects, correction=correction, seed=seed)
    overall_name = (
        results[0].categories[0].category if len(results[0].categories) == 1 else ALL_CATEGORIES
    )
    overall_rankings = [r for r in rankings if r.group == overall_name]
    model_ranks = [
        _rank_model(result, name, results, overall_rankings)
        for result, name in zip(results, names, strict=True)
    ]
    by_category = {
        c.category: [r.find_category(c.category).score.value for r in results]
        for c in results[0].categories
    }
    return SofaComparison(
        probe_set,
        tuple(sorted(model_ranks, key=lambda m: (m.rank, m.model))),
        tuple(tests),
        {
            (a, b): kendall_tau(by_category[a], by_category[b])
            for a, b in combinations(by_category, 2)
        },
    )


def compare_stored_sofa(
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
    model_counts = Counter(r.probe_set for r in results)
    sets = [s for s in store.probe_sets() if s.id in model_counts]
    if not sets:
        raise UsageError(
            "no model was probed yet: use "
            + how(
                "run.probe(MODEL) or study.probe_sets",
                "kgbias probe RUN --model SPEC, or probe sets",
            )
        )
    matching_sets = [
        s for s in sets if probe_set is None or s.name == probe_set or s.id.startswith(probe_set)
    ]
    if not matching_sets:
        available = ", ".join(f"{s.name} ({s.id[:8]})" for s in sets)
        raise UsageError(f"no set of probes {probe_set!r}; choose from {available}")
    probe_set_found = max(matching_sets, key=lambda s: (model_counts[s.id], s.probes, s.id))
    own = [r for r in results if r.probe_set == probe_set_found.id]
    return compare_sofa(own, probe_set_found, correction=correction, seed=seed)


def measure_rank_agreements(
    scores: Mapping[str, Mapping[str, float]],
) -> dict[tuple[str, str], float]:
    """Kendall's tau-b of each pair of benchmarks over the models that both scored, in [-1, 1]; NaN
    for fewer than two, or if one scored them all alike.

    Args:
        scores: benchmark to model to score; higher must mean the same in each benchmark.
    """
    agreements = {}
    for first_name, second_name in combinations(scores, 2):
        shared_models = [model for model in scores[first_name] if model in scores[second_name]]
        first_scores, second_scores = (
            [scores[name][m] for m in shared_models] for name in (first_name, second_name)
        )
        agreements[first_name, second_name] = kendall_tau(first_scores, second_scores)
    return agreements


def correlate_length(result: SofaResult, probe_set: ProbeSet) -> Estimate:
    """Pearson's correlation of PPL* and the number of words of the statement, over all probes, in
    [-1, 1] (figure 8); below 0: shorter statements have a higher PPL*. NaN if all have the same
    length.

    The interval is Student's for Fisher's transformation, with the jackknife's variance over
    statements (Tukey 1958; Hinkley 1978) times n / (n - 1), and n - 2 degrees of freedom, as two
    means are known from the same statements; none below five. Percentiles of resamples hold the
    correlation less often than they say, even of fifty."""
    words = {
        (p.category, statement.id): statement.words
        for p in probe_set.parts
        for statement in p.statements
    }
    groups = {c.category: len(c.groups) for c in result.categories}
    rows = [
        (groups[c.category], words[c.category, statement.id], statement.mean, statement.variance)
        for c in result.categories
        for statement in c.statements
    ]
    probe_counts, word_counts, means, variance = np.array(rows, dtype=np.float64).T
    # per statement: probes, and the sums of x, y, x^2, y^2 and xy over them
    sums = np.stack(
        [
            probe_counts,
            probe_counts * word_counts,
            probe_counts * means,
            probe_counts * word_counts * word_counts,
            (probe_counts - 1) * variance + probe_counts * means * means,
            probe_counts * word_counts * means,
        ]
    )
    n, total = len(rows), sums.sum(axis=1, keepdims=True)
    (value,) = _pearson(total)
    with np.errstate(divide="ignore"):
        transformed, without = float(np.arctanh(value)), np.arctanh(_pearson(total - sums))
    variance = float(((without - without.mean()) ** 2).sum())
    if n < _MIN_CORRELATED or not (math.isfinite(transformed) and 0 < variance < math.inf):
        return Estimate.missing(n, float(value))
    half = student_quantile(0.975, n - 2) * math.sqrt(variance)
    low, high = math.tanh(transformed - half), math.tanh(transformed + half)
    return Estimate(float(value), low, high, n)


_MIN_CORRELATED = 5  # statements for the interval of a correlation


def _pearson(sums: Values) -> Values:
    n, x, y, xx, yy, xy = sums
    spread = (n * xx - x * x) * (n * yy - y * y)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.clip((n * xy - x * y) / np.sqrt(spread), -1.0, 1.0)
    return np.asarray(np.where(spread > 1e-12, correlation, np.nan), dtype=np.float64)


def _build_subject(result: SofaResult, name: str) -> ModelSamples:
    """A model's values: for each category, and for all, weighted so that the mean over statements
    is the mean over categories."""
    samples: dict[tuple[str, str], Sample] = {}
    strata: dict[tuple[str, str], Sequence[Hashable]] = {}
    parts: dict[tuple[str, str], Sequence[Hashable]] = {}
    total = sum(len(category_result.statements) for category_result in result.categories)
    weighted_values, places = [], list[tuple[str, str]]()
    for category_result in result.categories:
        key = MEASURE, Group(category_result.category, "").id
        values = np.array([s.variance for s in category_result.statements])
        samples[key] = Sample.from_values(values)
        strata[key] = [s.id for s in category_result.statements]
        # Weighted so that a plain mean over all statements is the mean of the categories' means.
        weighted_values.append(values * (total / (len(values) * len(result.categories))))
        places += [(category_result.category, s.id) for s in category_result.statements]
    groups = [Group(category_result.category, "") for category_result in result.categories]
    if len(groups) > 1:
        overall_group = Group(ALL_CATEGORIES, "")
        groups.append(overall_group)
        samples[MEASURE, overall_group.id] = Sample.from_values(np.concatenate(weighted_values))
        strata[MEASURE, overall_group.id] = places
        parts[MEASURE, overall_group.id] = [category for category, _ in places]
    return ModelSamples(name, tuple(groups), samples, strata, paired_by_stratum=True, parts=parts)


def _rank_model(
    result: SofaResult, name: str, results: Sequence[SofaResult], rankings: Sequence[ModelRanking]
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


def _distinct_names(results: Sequence[SofaResult]) -> list[str]:
    """The models' names; models of the same name also get what tells them apart."""
    name_counts = Counter(result.model.title for result in results)
    names = []
    for result in results:
        name = result.model.title
        if name_counts[name] > 1:
            namesakes = [other for other in results if other.model.title == name]
            settings = {
                ("by", result.measure),
                ("revision", result.model.revision),
                *result.settings,
            }
            shared_settings = set.intersection(
                *(
                    {("by", o.measure), ("revision", o.model.revision), *o.settings}
                    for o in namesakes
                )
            )
            difference = ", ".join(f"{k} {v}" for k, v in sorted(settings - shared_settings))
            name += f" ({difference})" if difference else ""
        names.append(name)
    return names
