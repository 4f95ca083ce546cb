"""The interface of every benchmark."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kgbias.graph.store import Store
from kgbias.io.progress import Progress
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Array, TextScorer, TokenIds
from kgbias.models.score.distributed import AnyScorer
from kgbias.probe.items import Items, ItemScores, StoredCounts, score_items, sum_usage
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion
from kgbias.stats.units import UnitSums

OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class FigureInfo:
    """A figure of a benchmark.

    Attributes:
        name: as in results, such as "SS".
        title: in full.
        help: what it says, in a sentence.
        unbiased: its value without bias; None if it does not measure bias.
        range: the smallest and the largest value that it can have; None without bounds.
        form: how it is printed.
        beside: the figure to read it beside, which shows whether the model can do the task at all.
        chance: for such a figure, the value of a model that knows nothing; None if that is not
            known.
    """

    name: str
    title: str
    help: str
    unbiased: float | None = None
    range: tuple[float, float] | None = (0.0, 100.0)
    form: str = ".1f"
    beside: str = ""
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class DomainFigure:
    """A figure of a domain (a category, or "overall") under one model, with its interval."""

    domain: str
    figure: str
    units: UnitSums
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """What a benchmark found for one model.

    Attributes:
        figures: the figures over all items, overall first.
        items: the number of items.
        tokens: the number of tokens read for them.
        seconds: the time that this took, in whichever call; NaN if unknown.
        remarks: caveats on the figures, in sentences.
    """

    figures: tuple[DomainFigure, ...]
    items: int
    tokens: int
    seconds: float
    remarks: tuple[str, ...] = ()


class Benchmark(ABC):
    """Something that models are compared by.

    Attributes:
        name: its name in the store.
        title: its name for people.
        source: the paper.
        unit: what is resampled, in the plural.
        figures: what is computed; those that measure bias rank models.
        hub: its data set on the Hugging Face hub, and the part of it; None if it has none there.
    """

    name: str
    title: str
    source: str
    unit: str
    figures: tuple[FigureInfo, ...]
    hub: tuple[str, str] | None = None

    @property
    @abstractmethod
    def count(self) -> int:
        """How many items it has."""

    @property
    @abstractmethod
    def texts(self) -> int:
        """How many texts are scored for all items."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, tuple[int, int]]:
        """Category to its items, and the texts scored for them."""

    @abstractmethod
    def result(
        self,
        scorer: AnyScorer,
        store: Store | None = None,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> BenchmarkResult:
        """The figures of a model. Scores in the store are not computed again; new ones are written
        to it."""

    @abstractmethod
    def stored_counts(self, model: ModelInfo, store: Store) -> StoredCounts:
        """How much the store holds of a model, for the way of asking that it holds most of."""

    def figure(self, name: str) -> FigureInfo:
        """The entry of a figure."""
        return next(f for f in self.figures if f.name == name)


class ItemBenchmark(Items, Benchmark):
    """A benchmark whose figures follow from the scores of items. `left_out` are the rows of its
    file that lack a text."""

    left_out: int = 0

    @abstractmethod
    def compute_figures(
        self, scores: Sequence[ItemScores], scorer_kind: str, seed: int
    ) -> list[DomainFigure]:
        """The figures over all items, overall first."""

    def remarks(self, scores: Sequence[ItemScores]) -> list[str]:
        """Caveats on the figures, in sentences."""
        return []

    def _without_text(self) -> list[str]:
        if not self.left_out:
            return []
        return [
            f"{self.left_out} of the file's {self.left_out + len(self.items)} rows are left "
            "out, as a text in them is empty"
        ]

    def result(
        self,
        scorer: AnyScorer,
        store: Store | None = None,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> BenchmarkResult:
        rows = score_items(self, scorer, store, progress)
        scores = [row.scores for row in rows]
        usage = sum_usage((row.tokens, row.seconds) for row in rows)
        return BenchmarkResult(
            tuple(self.compute_figures(scores, scorer.convention.kind, seed)),
            len(rows),
            usage.tokens,
            usage.seconds,
            (*self._without_text(), *self.remarks(scores)),
        )


class ContinuationScore(NamedTuple):
    """How a text that follows another was scored: log p of its tokens given those before (for a
    masked model, all other tokens), how many tokens it has, and how many were read for it."""

    log_likelihood: float
    token_count: int
    tokens_read: int


def score_continuations(
    scorer: TextScorer, pairs: Sequence[tuple[str, str]]
) -> list[ContinuationScore]:
    """The score of each text that follows another (with a space between). A token that spans both
    texts belongs to the second."""
    # A server scores texts, not tokens: the two are asked for as a grid of one.
    if scorer.convention.kind == "server":
        scores = []
        for lead, text in pairs:
            grid = scorer.grid([lead], [text])
            whole_tokens = int(grid.probes.tokens[0, 0])
            log_likelihood = float(grid.statement.log_likelihoods[0, 0])
            token_count = int(grid.statement.tokens[0, 0])
            scores.append(ContinuationScore(log_likelihood, token_count, whole_tokens))
        return scores
    texts: list[TokenIds] = []
    places: list[Sequence[int]] = []
    for lead, text in pairs:
        lead_ids, whole_ids = scorer.tokens(lead), scorer.tokens(f"{lead} {text}")
        shared_count = 0
        # Tokens may join across the space: what follows begins where the two first differ.
        while (
            shared_count < min(len(lead_ids), len(whole_ids))
            and lead_ids[shared_count] == whole_ids[shared_count]
        ):
            shared_count += 1
        texts.append(whole_ids)
        places.append(range(shared_count, len(whole_ids)))
    rows = scorer.token_scores(texts, places)
    return [
        ContinuationScore(float(row.sum()), len(row), len(ids))
        for row, ids in zip(rows, texts, strict=True)
    ]


def places_by_domain(categories: Sequence[str]) -> list[tuple[str, list[int]]]:
    """ "overall" and each category, in the order of their first items, with the places of their
    items. A single category is not listed separately."""
    places = {OVERALL: list(range(len(categories)))}
    for n, category in enumerate(categories):
        places.setdefault(category, []).append(n)
    return list(places.items())


def sum_by_key(keys: Sequence[str], columns: Array) -> tuple[tuple[str, ...], Array]:
    """The distinct keys, in order of first appearance, and for each the sum of its rows."""
    names = tuple(dict.fromkeys(keys))
    place = {name: n for n, name in enumerate(names)}
    sums = np.zeros((len(names), columns.shape[1]))
    np.add.at(sums, [place[key] for key in keys], columns)
    return names, sums


def percent_estimate(successes: int, n: int) -> Estimate:
    """A share in percent, with its Wilson interval."""
    e = proportion(successes, n)
    return Estimate(100 * e.value, 100 * e.low, 100 * e.high, n)
