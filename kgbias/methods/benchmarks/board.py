"""The board of a benchmark: its cost, figures, paired tests, ranks, and the agreement of
benchmarks."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from kgbias.compare.model_contrasts import (
    DEFAULT_MARGIN_OF_RANGE,
    ModelContrast,
    ModelSamples,
    adjust_contrasts,
    contrast_models,
    min_equivalent_units,
)
from kgbias.compare.paired_tests import equivalence_p_value, rank_probabilities, swap_p_value
from kgbias.errors import UsageError
from kgbias.graph.store import Store
from kgbias.graph.types import Group
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.text import spoken_name
from kgbias.measures import get_measure
from kgbias.methods.benchmarks.base import OVERALL, Benchmark, DomainFigure, FigureInfo
from kgbias.models.base import ModelInfo, Settings
from kgbias.probe.items import StoredCounts
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import DEFAULT_DRAWS, Values, kendall_tau
from kgbias.stats.poststratification import StandardWeights, StratifiedSample
from kgbias.stats.units import resample_interval, restrict_to_shared

CRAWL_BENCHMARK = "crawl"
ALL_GROUPS = "all groups"


@dataclass(frozen=True, slots=True)
class BenchmarkOutcome:
    """One model on one benchmark.

    Attributes:
        model: the model's name, and the revision of its weights.
        settings: how it was asked.
        parameters: the number of its parameters; None if unknown.
        benchmark: the benchmark's name; `title` is its name for people, `source` the paper.
        figures: its figures.
        figure_info: what each figure is, by name.
        unit: what is resampled.
        hub_dataset: the benchmark's data set on the Hugging Face hub, if any.
        items: the number of items scored, in whichever call.
        tokens: the number of tokens read for all of them.
        seconds: the time that this took, in whichever call; NaN if unknown.
        counts_by_category: category to its items, and the texts scored for them.
        remarks: caveats on the figures.
    """

    model: ModelInfo
    settings: Settings
    parameters: int | None
    benchmark: str
    title: str
    source: str
    figures: tuple[DomainFigure, ...]
    figure_info: tuple[FigureInfo, ...]
    unit: str
    hub_dataset: tuple[str, str] | None
    items: int
    tokens: int
    seconds: float
    counts_by_category: Mapping[str, tuple[int, int]]
    remarks: tuple[str, ...] = ()

    def overall(self, figure: str) -> DomainFigure | None:
        """The figure over all items."""
        return next(
            (
                measured_figure
                for measured_figure in self.figures
                if (measured_figure.domain, measured_figure.figure) == (OVERALL, figure)
            ),
            None,
        )


class CrawledModel(NamedTuple):
    """A model's name, the run in which it was crawled, and that run's measured statements."""

    name: str
    run: str
    samples: ModelSamples


@dataclass(frozen=True, slots=True)
class Standing:
    """Models ranked by a figure, the one nearest to no bias first.

    Attributes:
        benchmark: the benchmark's title.
        figure: what it is.
        models: their names.
        values: their figures, over all items.
        departures: how far each is from the figure without bias (for a measure of a crawl, the
            measure itself, signed so that higher is worse).
        probabilities: for each model, the probability of each rank over resamples of the units that
            all models have.
        n: the number of units that all models have.
        unit: what they are.
        beside: for each model, the figure to read this one beside (see `FigureInfo`), if any.
        unable: models whose figure there was not shown to be above chance: their place says
            nothing about bias.
    """

    benchmark: str
    figure: FigureInfo
    models: tuple[str, ...]
    values: tuple[Estimate, ...]
    departures: tuple[float, ...]
    probabilities: tuple[tuple[float, ...], ...]
    n: int
    unit: str
    beside: tuple[Estimate, ...] = ()
    unable: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.benchmark}: {spoken_name(self.figure.name)}"


@dataclass(frozen=True, slots=True)
class StandingAgreement:
    """Kendall's tau-b, -1 to 1, between the orders in which two standings put the same
    `model_count` models; NaN if one of them ties all. `min_p_value` is the smallest two-sided
    p-value that this many models can reach, whatever the order."""

    first: str
    second: str
    tau: float
    model_count: int

    @property
    def min_p_value(self) -> float:
        return min(1.0, 2 / math.factorial(self.model_count))


@dataclass(frozen=True, slots=True, repr=False)
class Board(Result):
    """Everything that a benchmark found.

    Attributes:
        outcomes: every model on every benchmark.
        standings: models ranked by every figure of bias that two or more have, and by the measures
            of their crawls.
        tests: every pair of models on every such figure, as one family.
        agreements: every pair of standings of the same models.
        crawls: the run of each model whose crawl was compared.
        left_out: what could not be scored, in sentences.
    """

    outcomes: tuple[BenchmarkOutcome, ...]
    standings: tuple[Standing, ...]
    tests: tuple[ModelContrast, ...]
    agreements: tuple[StandingAgreement, ...]
    crawls: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Caveats on the figures, in sentences."""
        remarks_found = [remark for outcome in self.outcomes for remark in outcome.remarks]
        kinds = {
            outcome.model.name: dict(outcome.settings).get("kind")
            for outcome in self.outcomes
            if outcome.benchmark == "sofa"
        }
        masked = [name for name, kind in kinds.items() if kind == "masked"]
        if masked and len(masked) < len(kinds):
            remarks_found.append(
                f"SoFa of {' and '.join(masked)} rests on pseudo-perplexities, that of the other "
                "models on perplexities: their scores are not on the same scale"
            )
        return tuple(dict.fromkeys(remarks_found))

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, in the order in which they were given."""
        names = [o.model.name for o in self.outcomes]
        return tuple(dict.fromkeys([*names, *(name for name, _ in self.crawls)]))

    def with_short_names(self) -> "Board":
        """The same with short names for the models, for tables and pictures (see `short_names`)."""
        name_of = short_names(self.models)

        def rename(names: Sequence[str]) -> tuple[str, ...]:
            return tuple(name_of[name] for name in names)

        return replace(
            self,
            outcomes=tuple(
                replace(
                    outcome, model=ModelInfo(name_of[outcome.model.name], outcome.model.revision)
                )
                for outcome in self.outcomes
            ),
            standings=tuple(
                replace(standing, models=rename(standing.models), unable=rename(standing.unable))
                for standing in self.standings
            ),
            tests=tuple(
                replace(test, first=name_of[test.first], second=name_of[test.second])
                for test in self.tests
            ),
            crawls=tuple((name_of[model], run) for model, run in self.crawls),
        )

    def as_dict(self) -> dict[str, Any]:
        """The whole board as plain data, with null for an undefined figure."""
        record = {
            "models": list(self.models),
            "family": len(self.tests),
            "correction": self.tests[0].correction if self.tests else None,
            "results": [_outcome_record(outcome) for outcome in self.outcomes],
            "standings": [_standing_record(standing) for standing in self.standings],
            "contrasts": [contrast_record(test) for test in self.tests],
            "agreement": [
                {
                    "first": agreement.first,
                    "second": agreement.second,
                    "tau": agreement.tau,
                    "models": agreement.model_count,
                    "least_p": agreement.min_p_value,
                }
                for agreement in self.agreements
            ],
            "crawls": dict(self.crawls),
            "remarks": list(self.remarks),
            "left_out": list(self.left_out),
        }
        return nan_to_none(record)  # type: ignore[no-any-return]

    def as_rows(self) -> Rows[dict[str, Any]]:
        """Every figure. Columns: model, benchmark, domain, figure, value, low, high, n."""
        rows = []
        for outcome in self.outcomes:
            for measured_figure in outcome.figures:
                rows.append(
                    {
                        "model": outcome.model.name,
                        "benchmark": outcome.benchmark,
                        "domain": measured_figure.domain,
                        "figure": measured_figure.figure,
                        "value": measured_figure.estimate,
                        "n": measured_figure.estimate.n,
                    }
                )
        columns = (
            Column("model"),
            Column("benchmark"),
            Column("domain"),
            Column("figure"),
            Column("value", ".4g", interval=True, ends=("low", "high")),
            Column("n", "d"),
        )
        return Rows(rows, columns)


def short_names(specs: Sequence[str]) -> dict[str, str]:
    """Names for models beside each other: the last part of a path or an id ("flan-t5-base" from
    "hf:google/flan-t5-base"), or the whole spec if two would get the same name."""
    last_parts = {
        spec: re.split("[/:]", spec.rstrip("/"))[-1].removesuffix(".gguf") for spec in specs
    }
    counts = Counter(last_parts.values())
    return {
        spec: name
        if name and counts[name] == 1 and name not in last_parts.keys() - {spec}
        else spec
        for spec, name in last_parts.items()
    }


def build_board(
    outcomes: Sequence[BenchmarkOutcome],
    crawled: Sequence[CrawledModel] = (),
    *,
    correction: str = "holm",
    seed: int = 0,
    left_out: Sequence[str] = (),
) -> Board:
    """Compare models.

    Args:
        outcomes: every model on every benchmark.
        crawled: the models whose crawls are compared besides.
        correction: "holm" or "bh", over all tests.
        seed: the random seed of resamples and permutations.
        left_out: what could not be scored.
    """
    standings, tests = [], []
    for name in dict.fromkeys(outcome.benchmark for outcome in outcomes):
        benchmark_outcomes = [outcome for outcome in outcomes if outcome.benchmark == name]
        for figure in benchmark_outcomes[0].figure_info:
            rows = [
                (outcome, measured_figure)
                for outcome in benchmark_outcomes
                if (measured_figure := outcome.overall(figure.name)) is not None
            ]
            if figure.unbiased is not None and len(rows) > 1:
                standings.append(_rank_by_figure(figure, rows, seed))
                tests += [
                    _contrast_pair(figure, first, second, seed)
                    for first, second in combinations(rows, 2)
                ]
    if len(crawled) > 1:
        crawl_tests, ranks = _compare_crawls(crawled, correction, seed)
        tests += crawl_tests
        standings += ranks
    agreements = [
        StandingAgreement(
            first.name,
            second.name,
            kendall_tau(*_align_departures(first, second)),
            len(first.models),
        )
        for first, second in combinations(standings, 2)
        if set(first.models) == set(second.models)
    ]
    runs = tuple((model.name, model.run) for model in crawled) if len(crawled) > 1 else ()
    return Board(
        tuple(outcomes),
        tuple(standings),
        tuple(adjust_contrasts(tests, correction)),
        tuple(agreements),
        runs,
        tuple(left_out),
    )


def _rank_by_figure(
    figure: FigureInfo, rows: Sequence[tuple[BenchmarkOutcome, DomainFigure]], seed: int
) -> Standing:
    units = restrict_to_shared([measured_figure.units for _, measured_figure in rows])
    assert figure.unbiased is not None
    departures = {
        outcome.model.name: abs(measured_figure.estimate.value - figure.unbiased)
        for outcome, measured_figure in rows
    }
    replicates = {
        outcome.model.name: -np.nan_to_num(
            np.abs(u.replicates(DEFAULT_DRAWS, seed) - figure.unbiased), nan=1e9
        )
        for (outcome, _), u in zip(rows, units, strict=True)
    }
    probabilities = rank_probabilities(replicates)
    order = sorted(departures, key=lambda n: (math.isnan(departures[n]), departures[n]))
    values = {outcome.model.name: measured_figure.estimate for outcome, measured_figure in rows}
    first_outcome = rows[0][0]
    chance = next((f.chance for f in first_outcome.figure_info if f.name == figure.beside), None)
    companion_by_model = {
        outcome.model.name: measured_figure.estimate
        for outcome, _ in rows
        if (measured_figure := outcome.overall(figure.beside))
    }
    return Standing(
        first_outcome.title,
        figure,
        tuple(order),
        tuple(values[n] for n in order),
        tuple(departures[n] for n in order),
        tuple(tuple(probabilities[n]) for n in order),
        len(units[0].names),
        first_outcome.unit,
        tuple(companion_by_model.get(n, Estimate.missing()) for n in order)
        if companion_by_model
        else (),
        tuple(
            n
            for n in order
            if n in companion_by_model and _is_at_chance(companion_by_model[n], chance)
        ),
    )


def _is_at_chance(reached: Estimate, chance: float | None) -> bool:
    """Whether a share of right answers may be due to guessing."""
    lower_bound = reached.low if reached.has_interval else reached.value
    return chance is not None and lower_bound <= chance


def _contrast_pair(
    figure: FigureInfo,
    first_row: tuple[BenchmarkOutcome, DomainFigure],
    second_row: tuple[BenchmarkOutcome, DomainFigure],
    seed: int,
) -> ModelContrast:
    (first_outcome, first_figure), (second_outcome, second_figure) = first_row, second_row
    first_units, second_units = restrict_to_shared([first_figure.units, second_figure.units])
    unit_count = len(first_units.names)
    replicates: Values = first_units.replicates(DEFAULT_DRAWS, seed) - second_units.replicates(
        DEFAULT_DRAWS, seed
    )
    value = first_units.value - second_units.value
    difference = resample_interval(value, replicates, unit_count)
    margin = (
        math.nan
        if figure.range is None
        else DEFAULT_MARGIN_OF_RANGE * (figure.range[1] - figure.range[0])
    )
    known_draws = replicates[~np.isnan(replicates)]
    # Models that answer every unit alike have no error to compare with the margin.
    error = float(known_draws.std(ddof=1)) if difference.has_interval else math.nan
    equivalence = (
        math.nan
        if math.isnan(margin) or unit_count < min_equivalent_units(DEFAULT_MARGIN_OF_RANGE)
        else equivalence_p_value(value, error, margin, unit_count - 1.0)
    )
    return ModelContrast(
        figure.name,
        first_outcome.title,
        first_outcome.model.name,
        second_outcome.model.name,
        (unit_count, unit_count),
        (first_units.value, second_units.value),
        difference,
        swap_p_value(first_units, second_units, seed=seed),
        equivalence,
        margin,
        first_outcome.unit,
        statistic="",
    )


class _ComparedCrawls(NamedTuple):
    """The tests between crawls, and each model's standing."""

    tests: list[ModelContrast]
    standings: list[Standing]


def _compare_crawls(crawled: Sequence[CrawledModel], correction: str, seed: int) -> _ComparedCrawls:
    """The measures of the models' crawls over all statements about the groups that all crawls asked
    about."""
    common_groups = _common_groups(crawled)
    subjects = [_pool_groups(model.name, model.samples, common_groups) for model in crawled]
    try:
        tests, rankings = contrast_models(subjects, correction=correction, seed=seed)
    except UsageError:  # they share no measured group
        return _ComparedCrawls([], [])
    standings = []
    for ranking in rankings:
        measure = get_measure(ranking.measure)
        worst_first = measure.worst == "highest"
        order = list(zip(ranking.models, ranking.means, ranking.probabilities, strict=True))
        if worst_first:
            order = [
                (name, value, tuple(reversed(probabilities)))
                for name, value, probabilities in reversed(order)
            ]
        figure = FigureInfo(
            ranking.measure,
            f"mean {spoken_name(ranking.measure)}",
            "over the statements of each crawl",
            None,
            measure.range,
            measure.form,
            "lower" if worst_first else "higher",
        )
        samples_by_model = {
            s.name: s.find_sample((ranking.measure, _ALL_GROUPS_GROUP.id))
            for s in subjects
            if s.name in ranking.models
        }
        mix = StandardWeights.from_samples(list(samples_by_model.values()))
        means = {name: mix.estimate(a, seed=seed) for name, a in samples_by_model.items()}
        standings.append(
            Standing(
                CRAWL_BENCHMARK,
                figure,
                tuple(n for n, *_ in order),
                tuple(means[n] for n, *_ in order),
                tuple(value if worst_first else -value for _, value, _ in order),
                tuple(probabilities for *_, probabilities in order),
                min(e.n for e in means.values()),
                "statements",
            )
        )
    return _ComparedCrawls(tests, standings)


_ALL_GROUPS_GROUP = Group(ALL_GROUPS, "")


def _common_groups(crawled: Sequence[CrawledModel]) -> set[str]:
    return set.intersection(*({g.id for g in model.samples.groups} for model in crawled))


def _pool_groups(name: str, subject: ModelSamples, groups: set[str]) -> ModelSamples:
    """All statements about these groups, pooled as if about one."""
    pooled = {}
    for measure in dict.fromkeys(m for m, _ in subject.samples):
        group_samples = {
            id: subject.find_sample((m, id))
            for m, id in subject.samples
            if m == measure and id in groups
        }
        if group_samples:
            pooled[measure, _ALL_GROUPS_GROUP.id] = StratifiedSample.join_named(group_samples)
    samples = {key: sample.sample for key, sample in pooled.items()}
    return ModelSamples(name, (_ALL_GROUPS_GROUP,), samples, stratified=pooled)


def _align_departures(first: Standing, second: Standing) -> tuple[list[float], list[float]]:
    departure_of = dict(zip(second.models, second.departures, strict=True))
    return list(first.departures), [departure_of[name] for name in first.models]


def contrast_record(test: ModelContrast) -> dict[str, Any]:
    """A test as a row of plain data."""
    return {
        "benchmark": test.group if test.group != ALL_GROUPS else CRAWL_BENCHMARK,
        "figure": test.measure,
        "first": test.first,
        "second": test.second,
        "n": min(test.n),
        "value_first": test.means[0],
        "value_second": test.means[1],
        "difference": test.difference.value,
        "low": test.difference.low,
        "high": test.difference.high,
        "p_value": test.p,
        "p_adjusted": test.p_adjusted,
        "equivalent_p_adjusted": test.equivalent_adjusted,
        "margin": test.margin,
        "detectable": test.detectable,
        "paired": test.paired,
        "verdict": test.verdict,
    }


def _outcome_record(outcome: BenchmarkOutcome) -> dict[str, Any]:
    return {
        "model": outcome.model.name,
        "revision": outcome.model.revision,
        **dict(outcome.settings),
        "parameters": outcome.parameters,
        "benchmark": outcome.benchmark,
        "items": outcome.items,
        "tokens": outcome.tokens,
        "seconds": round(outcome.seconds, 3),
        "remarks": list(outcome.remarks),
        "figures": {f"{m.domain} {m.figure}": m.estimate.as_dict() for m in outcome.figures},
    }


def _standing_record(standing: Standing) -> dict[str, Any]:
    return {
        "benchmark": standing.benchmark,
        "figure": standing.figure.name,
        "n": standing.n,
        "unit": standing.unit,
        "no_better_than_chance": list(standing.unable),
        "models": [
            {"model": model, **value.as_dict(), "departure": departure, "probabilities": list(p)}
            for model, value, departure, p in zip(
                standing.models,
                standing.values,
                standing.departures,
                standing.probabilities,
                strict=True,
            )
        ],
    }


@dataclass(frozen=True, slots=True)
class BenchmarkCost:
    """The cost of one model on one benchmark.

    Attributes:
        model: the model.
        benchmark: the benchmark's title.
        items: the number of items.
        texts: the number of texts scored for them.
        kept: the number of items in the store for this model (for the way of asking that it holds
            most of).
        seconds: the time for the rest, at the speed of those in the store; NaN if there are none.
    """

    model: str
    benchmark: str
    items: int
    texts: int
    kept: int
    seconds: float


def estimate_benchmark_cost(
    model: ModelInfo, benchmark: Benchmark, store: Store | None
) -> BenchmarkCost:
    """The cost of one model on one benchmark."""
    stored_counts = StoredCounts() if store is None else benchmark.stored_counts(model, store)
    texts_left = benchmark.texts - stored_counts.texts
    speed = stored_counts.seconds / stored_counts.texts if stored_counts.texts else math.nan
    return BenchmarkCost(
        model.title,
        benchmark.title,
        benchmark.count,
        benchmark.texts,
        stored_counts.items,
        texts_left * speed if texts_left else 0.0,
    )
