"""What every benchmark has, and how the items of one are scored once."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kgbias.estimate import Estimate
from kgbias.graph.items import Item, ItemScore
from kgbias.graph.store import Store
from kgbias.graph.types import canonical_json, storable
from kgbias.ids import content_id
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Array, Ids, TextScorer
from kgbias.models.score.spread import Scoring, answers
from kgbias.progress import Progress, Silent
from kgbias.statistics import proportion
from kgbias.units import Units

OVERALL = "overall"
Scored = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FigureInfo:
    """A figure of a benchmark.

    Attributes:
        name: as in results, such as "SS".
        title: in full.
        help: what it says, in a sentence.
        unbiased: its value without bias; None where it does not measure bias.
        range: the smallest and the largest value that it can have; None without bounds.
        form: how it is printed.
        better: of a figure that does not measure bias, whether "higher" or "lower" is better.
        beside: the figure to read it beside: whether the model can do the task at all.
        chance: of such a figure, what a model reaches that knows nothing; None where that is not
            known.
    """

    name: str
    title: str
    help: str
    unbiased: float | None = None
    range: tuple[float, float] | None = (0.0, 100.0)
    form: str = ".1f"
    better: str = "higher"
    beside: str = ""
    chance: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure of a domain (a category, or "overall") under one model, with its interval."""

    domain: str
    figure: str
    units: Units
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Result:
    """What a benchmark found of one model.

    Attributes:
        measured: the figures of all items, overall first.
        items: how many they are.
        tokens: that were read for them.
        seconds: that this took, in whatever call it was; NaN where nobody knows.
        remarks: what should be known of the figures, in sentences.
    """

    measured: tuple[Measured, ...]
    items: int
    tokens: int
    seconds: float
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """How much of a benchmark a store holds of one model: so many `items` with their `texts`, in
    which so many `seconds` went."""

    items: int = 0
    texts: int = 0
    seconds: float = math.nan


class Benchmark(ABC):
    """What models are held against each other by.

    Attributes:
        name: as the store keeps it.
        title: as people call it.
        source: the paper.
        unit: what is resampled, in the plural.
        figures: what is computed; those that measure bias rank models.
        hub: its data set on the Hugging Face hub and the part of it; None where there is none.
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

    @abstractmethod
    def result(
        self,
        scorer: Scoring,
        store: Store | None = None,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Result:
        """The figures of a model. What the store holds is not computed again, and what is computed
        is written to it."""

    @abstractmethod
    def held(self, model: ModelInfo, store: Store) -> Held:
        """What the store holds of a model, asked in the way of which it holds most."""

    def figure(self, name: str) -> FigureInfo:
        """The entry of a figure."""
        return next(f for f in self.figures if f.name == name)


class ItemBenchmark(Benchmark):
    """Items, how a model is asked them, and what follows from the scores.

    Attributes:
        chunk: how many texts are scored between two saves.
        items: in the order of the file.
        sizes: how many texts are scored for each item.
    """

    chunk: int = 256
    items: Sequence[Item]
    sizes: Sequence[int]

    @abstractmethod
    def ask(self, scorer: TextScorer, places: Sequence[int]) -> list[tuple[Scored, int]]:
        """The scores of the items at these places, and how many tokens were read for each."""

    @abstractmethod
    def measured(self, scores: Sequence[Scored], scorer_kind: str, seed: int) -> list[Measured]:
        """The figures of all items, overall first."""

    def remarks(self, scores: Sequence[Scored]) -> list[str]:
        """What should be known of the figures, in sentences."""
        return []

    @property
    def count(self) -> int:
        return len(self.items)

    @property
    def texts(self) -> int:
        return sum(self.sizes)

    def result(
        self,
        scorer: Scoring,
        store: Store | None = None,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Result:
        rows = answered(self, scorer, store, progress)
        scores = [row.scores for row in rows]
        return Result(
            tuple(self.measured(scores, scorer.convention.kind, seed)),
            len(rows),
            sum(row.tokens for row in rows),
            sum(row.seconds for row in rows),
            tuple(self.remarks(scores)),
        )

    def held(self, model: ModelInfo, store: Store) -> Held:
        ids = [one.id for one in self.items]
        found = [store.item_scores(model, settings, ids) for settings in store.item_settings(model)]
        most = max(found, key=len, default={})
        texts = sum(n for id, n in zip(ids, self.sizes, strict=True) if id in most)
        return Held(len(most), texts, sum(score.seconds for score in most.values()))


def item(benchmark: str, name: str, category: str, *asked: object) -> Item:
    """An item; its id follows from its name and all that is asked of it."""
    return Item(
        content_id("item", benchmark, storable(name), canonical_json(asked)),
        benchmark,
        name,
        category,
    )


def answered(
    benchmark: ItemBenchmark,
    scorer: Scoring,
    store: Store | None = None,
    progress: Progress | None = None,
) -> list[ItemScore]:
    """The score of every item, in order. What the store holds is not computed again, and what is
    computed is written to it, a few items at a time."""
    told = progress or Silent()
    ids = [one.id for one in benchmark.items]
    found = {} if store is None else store.item_scores(scorer.info, scorer.settings, ids)
    told.stage(f"{benchmark.title} of {scorer.info.name}", sum(benchmark.sizes))
    told.advance(sum(benchmark.sizes[n] for n in range(len(ids)) if ids[n] in found))
    chunks = [[n for n in own if ids[n] not in found] for own in _chunks(benchmark)]
    left = [places for places in chunks if places]
    for number, (asked, seconds) in answers(scorer, partial(_timed, benchmark), left):
        places = left[number]
        new = [
            ItemScore(benchmark.items[n], scores, tokens, seconds / len(places))
            for n, (scores, tokens) in zip(places, asked, strict=True)
        ]
        if store is not None:
            store.save_item_scores(scorer.info, scorer.settings, new)
        found |= {s.item.id: s for s in new}
        told.advance(sum(benchmark.sizes[n] for n in places))
    return [found[id] for id in ids]


def _timed(
    benchmark: ItemBenchmark, scorer: TextScorer, places: Sequence[int]
) -> tuple[list[tuple[Scored, int]], float]:
    """What a model says of some items, and the seconds that this took."""
    began = time.monotonic()
    asked = benchmark.ask(scorer, places)
    return asked, time.monotonic() - began


def _chunks(benchmark: ItemBenchmark) -> list[list[int]]:
    """The places of all items, in parts that are scored together, whatever is known of others."""
    chunks: list[list[int]] = []
    room = 0
    for n, size in enumerate(benchmark.sizes):
        if not chunks or room < size:
            chunks.append([])
            room = benchmark.chunk
        chunks[-1].append(n)
        room -= size
    return chunks


def after(scorer: TextScorer, asked: Sequence[tuple[str, str]]) -> list[tuple[float, int, int]]:
    """Of each text that follows another (with a space between): log p of its tokens, given what
    stands before it (for a masked model all other tokens), how many they are, and how many were
    read. A token that reaches into both belongs to the second."""
    if scorer.convention.kind == "server":
        found = []
        for lead, text in asked:
            grid = scorer.grid([lead], [text])
            whole = int(grid.whole.tokens[0, 0])
            ll, n = grid.statement.log_likelihoods[0, 0], int(grid.statement.tokens[0, 0])
            found.append((float(ll), n, whole))
        return found
    texts: list[Ids] = []
    places: list[Sequence[int]] = []
    for lead, text in asked:
        first, whole_ids = scorer.tokens(lead), scorer.tokens(f"{lead} {text}")
        same = 0
        while same < min(len(first), len(whole_ids)) and first[same] == whole_ids[same]:
            same += 1
        texts.append(whole_ids)
        places.append(range(same, len(whole_ids)))
    rows = scorer.token_scores(texts, places)
    return [(float(row.sum()), len(row), len(ids)) for row, ids in zip(rows, texts, strict=True)]


def by_domain(categories: Sequence[str]) -> list[tuple[str, list[int]]]:
    """ "overall" and each category, in the order of their first item, with the places of their
    items. A single category is not named again."""
    found = {OVERALL: list(range(len(categories)))}
    for n, category in enumerate(categories):
        found.setdefault(category, []).append(n)
    return list(found.items())


def added(keys: Sequence[str], columns: Array) -> tuple[tuple[str, ...], Array]:
    """The units of these keys in the order of their first, and for each the sum of its rows."""
    names = tuple(dict.fromkeys(keys))
    place = {name: n for n, name in enumerate(names)}
    sums = np.zeros((len(names), columns.shape[1]))
    np.add.at(sums, [place[key] for key in keys], columns)
    return names, sums


def share(successes: int, n: int) -> Estimate:
    """A share in percent, with its Wilson interval."""
    e = proportion(successes, n)
    return Estimate(100 * e.value, 100 * e.low, 100 * e.high, n)
