"""The board of a benchmark: its cost, figures, paired tests, ranks, and the agreement of
benchmarks."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from kgbias.compare.model_contrasts import DEFAULT_MARGIN_SHARE, ModelContrast, ModelSamples, contrast_models, adjust_contrasts
from kgbias.compare.paired_tests import equivalence_p_value, rank_probabilities, swap_p_value
from kgbias.errors import UsageError
from kgbias.graph.store import Store
from kgbias.graph.types import Group
from kgbias.io.rows import Result, Rows
from kgbias.io.text import spoken_name
from kgbias.measures import known
from kgbias.models.base import ModelInfo, Settings
from kgbias.probe.benchmarks import OVERALL, Benchmark, FigureInfo, StoredAmount, DomainFigure
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import DEFAULT_DRAWS, Values, kendall_tau
from kgbias.stats.poststratification import StratifiedSample, StandardWeights
from kgbias.stats.units import resample_interval, restrict_to_shared

CRAWL = "crawl"
EVERYONE = "all groups"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One model on one benchmark.

    Attributes:
        model: the model's name, and the revision of its weights.
        settings: how it was asked.
        parameters: the number of its parameters; None if unknown.
        benchmark: the benchmark's name; `title` is its name for people, `source` the paper.
        measured: its figures.
        info: what each figure is, by name.
        unit: what is resampled.
        hub: the benchmark's data set on the Hugging Face hub, if any.
        items: the number of items scored, in whichever call.
        tokens: the number of tokens read for all of them.
        seconds: the time that this took, in whichever call; NaN if unknown.
        parts: category to its items, and the texts scored for them.
        remarks: caveats on the figures.
    """

    model: ModelInfo
    settings: Settings
    parameters: int | None
    benchmark: str
    title: str
    source: str
    measured: tuple[DomainFigure, ...]
    info: tuple[FigureInfo, ...]
    unit: str
    hub: tuple[str, str] | None
    items: int
    tokens: int
    seconds: float
    parts: Mapping[str, tuple[int, int]]
    remarks: tuple[str, ...] = ()

    def overall(self, figure: str) -> DomainFigure | None:
        """The figure over all items."""
        return next((m for m in self.measured if (m.domain, m.figure) == (OVERALL, figure)), None)


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
class Agreement:
    """Kendall's tau-b, -1 to 1, between the orders in which two standings put the same `n` models;
    NaN if one of them ties all. `least_p` is the smallest two-sided p-value that this many models
    can reach, whatever the order."""

    first: str
    second: str
    tau: float
    n: int

    @property
    def least_p(self) -> float:
        return min(1.0, 2 / math.factorial(self.n))


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

    outcomes: tuple[Outcome, ...]
    standings: tuple[Standing, ...]
    tests: tuple[ModelContrast, ...]
    agreements: tuple[Agreement, ...]
    crawls: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Caveats on the figures, in sentences."""
        own = [remark for o in self.outcomes for remark in o.remarks]
        kinds = {o.model.name: dict(o.settings).get("kind") for o in self.outcomes
                 if o.benchmark == "sofa"}  # fmt: skip
        masked = [name for name, kind in kinds.items() if kind == "masked"]
        if masked and len(masked) < len(kinds):
            own.append(
                f"SoFa of {' and '.join(masked)} rests on pseudo-perplexities, that of the other "
                "models on perplexities: their scores are not on the same scale"
            )
        return tuple(dict.fromkeys(own))

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, in the order in which they were given."""
        names = [o.model.name for o in self.outcomes]
        return tuple(dict.fromkeys([*names, *(name for name, _ in self.crawls)]))

    def labelled(self) -> "Board":
        """The same with short names for the models, for tables and pictures (see `labels`)."""
        of = labels(self.models)

        def called(names: Sequence[str]) -> tuple[str, ...]:
            return tuple(of[name] for name in names)

        return replace(
            self,
            outcomes=tuple(
                replace(o, model=ModelInfo(of[o.model.name], o.model.revision))
                for o in self.outcomes
            ),
            standings=tuple(
                replace(s, models=called(s.models), unable=called(s.unable)) for s in self.standings
            ),
            tests=tuple(replace(t, first=of[t.first], second=of[t.second]) for t in self.tests),
            crawls=tuple((of[model], run) for model, run in self.crawls),
        )

    def as_dict(self) -> dict[str, Any]:
        """The whole board as plain data, with null for an undefined figure."""
        answer = {
            "models": list(self.models),
            "family": len(self.tests),
            "correction": self.tests[0].correction if self.tests else None,
            "results": [_outcome(o) for o in self.outcomes],
            "standings": [_standing(s) for s in self.standings],
            "contrasts": [contrast_row(t) for t in self.tests],
            "agreement": [
                {"first": a.first, "second": a.second, "tau": a.tau, "models": a.n,
                 "least_p": a.least_p}
                for a in self.agreements
            ],
            "crawls": dict(self.crawls),
            "remarks": list(self.remarks),
            "left_out": list(self.left_out),
        }  # fmt: skip
        return nan_to_none(answer)  # type: ignore[no-any-return]

    def as_rows(self) -> Rows[dict[str, Any]]:
        """Every figure. Columns: model, benchmark, domain, figure, value, low, high, n."""
        columns = ("model", "benchmark", "domain", "figure", "value", "low", "high", "n")
        rows = [
            dict(
                zip(
                    columns,
                    (o.model.name, o.benchmark, m.domain, m.figure, e.value, e.low, e.high, e.n),
                    strict=True,
                )
            )
            for o in self.outcomes
            for m in o.measured
            for e in [m.estimate]
        ]
        return Rows(rows, columns=columns)


def labels(specs: Sequence[str]) -> dict[str, str]:
    """Names for models beside each other: the last part of a path or an id ("flan-t5-base" from
    "hf:google/flan-t5-base"), or the whole spec if two would get the same name."""
    last = {spec: re.split("[/:]", spec.rstrip("/"))[-1].removesuffix(".gguf") for spec in specs}
    counts = Counter(last.values())
    return {
        spec: name if name and counts[name] == 1 and name not in last.keys() - {spec} else spec
        for spec, name in last.items()
    }


def board(
    outcomes: Sequence[Outcome],
    crawled: Sequence[tuple[str, str, ModelSamples]] = (),
    *,
    correction: str = "holm",
    seed: int = 0,
    left_out: Sequence[str] = (),
) -> Board:
    """Compare models.

    Args:
        outcomes: every model on every benchmark.
        crawled: for each model that was crawled, its name, the run, and the run's statements.
        correction: "holm" or "bh", over all tests.
        seed: the random seed of resamples and permutations.
        left_out: what could not be scored.
    """
    standings, tests = [], []
    for name in dict.fromkeys(o.benchmark for o in outcomes):
        own = [o for o in outcomes if o.benchmark == name]
        for figure in own[0].info:
            rows = [(o, m) for o in own if (m := o.overall(figure.name)) is not None]
            if figure.unbiased is not None and len(rows) > 1:
                standings.append(_stand(figure, rows, seed))
                tests += [_test(figure, a, b, seed) for a, b in combinations(rows, 2)]
    if len(crawled) > 1:
        more, ranks = _of_crawls(crawled, correction, seed)
        tests += more
        standings += ranks
    agreements = [
        Agreement(a.name, b.name, kendall_tau(*_aligned(a, b)), len(a.models))
        for a, b in combinations(standings, 2)
        if set(a.models) == set(b.models)
    ]
    runs = tuple((model, run) for model, run, _ in crawled) if len(crawled) > 1 else ()
    return Board(
        tuple(outcomes), tuple(standings), tuple(adjust_contrasts(tests, correction)), tuple(agreements),
        runs, tuple(left_out),
    )  # fmt: skip


def _stand(figure: FigureInfo, rows: Sequence[tuple[Outcome, DomainFigure]], seed: int) -> Standing:
    units = restrict_to_shared([m.units for _, m in rows])
    assert figure.unbiased is not None
    departures = {o.model.name: abs(m.estimate.value - figure.unbiased) for o, m in rows}
    drawn = {
        o.model.name: -np.nan_to_num(np.abs(u.replicates(DEFAULT_DRAWS, seed) - figure.unbiased), nan=1e9)
        for (o, _), u in zip(rows, units, strict=True)
    }
    found = rank_probabilities(drawn)
    order = sorted(departures, key=lambda n: (math.isnan(departures[n]), departures[n]))
    values = {o.model.name: m.estimate for o, m in rows}
    first = rows[0][0]
    chance = next((f.chance for f in first.info if f.name == figure.beside), None)
    can = {o.model.name: m.estimate for o, _ in rows if (m := o.overall(figure.beside))}
    return Standing(
        first.title, figure, tuple(order), tuple(values[n] for n in order),
        tuple(departures[n] for n in order), tuple(tuple(found[n]) for n in order),
        len(units[0].names), first.unit,
        tuple(can.get(n, Estimate.missing()) for n in order) if can else (),
        tuple(n for n in order if n in can and _by_chance(can[n], chance)),
    )  # fmt: skip


def _by_chance(reached: Estimate, chance: float | None) -> bool:
    """Whether a share of right answers may be due to guessing."""
    least = reached.low if reached.has_interval else reached.value
    return chance is not None and least <= chance


def _test(
    figure: FigureInfo, a: tuple[Outcome, DomainFigure], b: tuple[Outcome, DomainFigure], seed: int
) -> ModelContrast:
    (one, first), (other, second) = a, b
    x, y = restrict_to_shared([first.units, second.units])
    n = len(x.names)
    drawn: Values = x.replicates(DEFAULT_DRAWS, seed) - y.replicates(DEFAULT_DRAWS, seed)
    value = x.value - y.value
    difference = resample_interval(value, drawn, n)
    margin = math.nan if figure.range is None else DEFAULT_MARGIN_SHARE * (figure.range[1] - figure.range[0])
    known_draws = drawn[~np.isnan(drawn)]
    # Models that answer every unit alike have no error to compare with the margin.
    error = float(known_draws.std(ddof=1)) if difference.has_interval else math.nan
    same = math.nan if math.isnan(margin) else equivalence_p_value(value, error, margin, n - 1.0)
    return ModelContrast(
        figure.name, one.title, one.model.name, other.model.name, (n, n), (x.value, y.value),
        difference, swap_p_value(x, y, seed=seed), same, margin, one.unit, statistic="",
    )  # fmt: skip


def _of_crawls(
    crawled: Sequence[tuple[str, str, ModelSamples]], correction: str, seed: int
) -> tuple[list[ModelContrast], list[Standing]]:
    """The measures of the models' crawls over all statements about the groups that all crawls asked
    about."""
    subjects = [_pooled(name, subject, _common(crawled)) for name, _, subject in crawled]
    try:
        tests, rankings = contrast_models(subjects, correction=correction, seed=seed)
    except UsageError:  # they share no measured group
        return [], []
    standings = []
    for r in rankings:
        measure = known(r.measure)
        worst_first = measure.worst == "highest"
        order = list(zip(r.models, r.means, r.probabilities, strict=True))
        if worst_first:
            order = [(name, value, tuple(reversed(p))) for name, value, p in reversed(order)]
        figure = FigureInfo(
            r.measure, f"mean {spoken_name(r.measure)}", "over the statements of each crawl",
            None, measure.range, measure.form, "lower" if worst_first else "higher",
        )  # fmt: skip
        asked = {s.name: s.find_sample((r.measure, _ALL.id)) for s in subjects
                 if s.name in r.models}  # fmt: skip
        mix = StandardWeights.from_samples(list(asked.values()))
        means = {name: mix.estimate(a, seed=seed) for name, a in asked.items()}
        standings.append(
            Standing(
                CRAWL, figure, tuple(n for n, *_ in order),
                tuple(means[n] for n, *_ in order),
                tuple(value if worst_first else -value for _, value, _ in order),
                tuple(p for *_, p in order), min(e.n for e in means.values()), "statements",
            )
        )  # fmt: skip
    return tests, standings


_ALL = Group(EVERYONE, "")


def _common(crawled: Sequence[tuple[str, str, ModelSamples]]) -> set[str]:
    return set.intersection(*({g.id for g in s.groups} for *_, s in crawled))


def _pooled(name: str, subject: ModelSamples, groups: set[str]) -> ModelSamples:
    """All statements about these groups, pooled as if about one."""
    asked = {}
    for measure in dict.fromkeys(m for m, _ in subject.samples):
        own = {
            id: subject.find_sample((m, id)) for m, id in subject.samples if m == measure and id in groups
        }
        if own:
            asked[measure, _ALL.id] = StratifiedSample.join_named(own)
    samples = {key: a.sample for key, a in asked.items()}
    return ModelSamples(name, (_ALL,), samples, stratified=asked)


def _aligned(a: Standing, b: Standing) -> tuple[list[float], list[float]]:
    of = dict(zip(b.models, b.departures, strict=True))
    return list(a.departures), [of[name] for name in a.models]


def contrast_row(t: ModelContrast) -> dict[str, Any]:
    """A test as a row of plain data."""
    return {
        "benchmark": t.group if t.group != EVERYONE else CRAWL, "figure": t.measure,
        "first": t.first, "second": t.second, "n": min(t.n), "value_first": t.means[0],
        "value_second": t.means[1], "difference": t.difference.value, "low": t.difference.low,
        "high": t.difference.high, "p": t.p, "p_adjusted": t.p_adjusted,
        "equivalent_adjusted": t.equivalent_adjusted, "margin": t.margin,
        "detectable": t.detectable, "paired": t.paired, "verdict": t.verdict,
    }  # fmt: skip


def _outcome(o: Outcome) -> dict[str, Any]:
    return {
        "model": o.model.name, "revision": o.model.revision, **dict(o.settings),
        "parameters": o.parameters, "benchmark": o.benchmark, "items": o.items,
        "tokens": o.tokens, "seconds": round(o.seconds, 3), "remarks": list(o.remarks),
        "figures": {f"{m.domain} {m.figure}": m.estimate.as_dict() for m in o.measured},
    }  # fmt: skip


def _standing(s: Standing) -> dict[str, Any]:
    return {
        "benchmark": s.benchmark, "figure": s.figure.name, "n": s.n, "unit": s.unit,
        "no_better_than_chance": list(s.unable),
        "models": [
            {"model": model, **value.as_dict(), "departure": departure, "probabilities": list(p)}
            for model, value, departure, p in zip(
                s.models, s.values, s.departures, s.probabilities, strict=True)
        ],
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cost:
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


def cost_of(model: ModelInfo, benchmark: Benchmark, store: Store | None) -> Cost:
    """The cost of one model on one benchmark."""
    held = StoredAmount() if store is None else benchmark.stored_amount(model, store)
    left = benchmark.texts - held.texts
    speed = held.seconds / held.texts if held.texts else math.nan
    return Cost(
        model.title, benchmark.title, benchmark.count, benchmark.texts, held.items,
        left * speed if left else 0.0,
    )  # fmt: skip
