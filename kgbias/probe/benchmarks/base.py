"""The interface of every benchmark."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.graph.store import Store
from kgbias.io.progress import Progress
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import Array, TokenIds, TextScorer
from kgbias.models.score.distributed import AnyScorer
from kgbias.probe.items import Held, Items, Scored, answered, spent
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
class Measured:
    """A figure of a domain (a category, or "overall") under one model, with its interval."""

    domain: str
    figure: str
    units: UnitSums
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Result:
    """What a benchmark found for one model.

    Attributes:
        measured: the figures over all items, overall first.
        items: the number of items.
        tokens: the number of tokens read for them.
        seconds: the time that this took, in whichever call; NaN if unknown.
        remarks: caveats on the figures, in sentences.
    """

    measured: tuple[Measured, ...]
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
    ) -> Result:
        """The figures of a model. Scores in the store are not computed again; new ones are written
        to it."""

    @abstractmethod
    def held(self, model: ModelInfo, store: Store) -> Held:
        """How much the store holds of a model, for the way of asking that it holds most of."""

    def figure(self, name: str) -> FigureInfo:
        """The entry of a figure."""
        return next(f for f in self.figures if f.name == name)


class ItemBenchmark(Items, Benchmark):
    """A benchmark whose figures follow from the scores of items. `left_out` are the rows of its
    file that lack a text."""

    left_out: int = 0

    @abstractmethod
    def measured(self, scores: Sequence[Scored], scorer_kind: str, seed: int) -> list[Measured]:
        """The figures over all items, overall first."""

    def remarks(self, scores: Sequence[Scored]) -> list[str]:
        """Caveats on the figures, in sentences."""
        return []

    def _without_text(self) -> list[str]:
        if not self.left_out:
            return []
        return [f"{self.left_out} of the file's {self.left_out + len(self.items)} rows are left "
                "out, as a text in them is empty"]  # fmt: skip

    def result(
        self,
        scorer: AnyScorer,
        store: Store | None = None,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Result:
        rows = answered(self, scorer, store, progress)
        scores = [row.scores for row in rows]
        took = spent((row.tokens, row.seconds) for row in rows)
        return Result(
            tuple(self.measured(scores, scorer.convention.kind, seed)),
            len(rows),
            took.tokens,
            took.seconds,
            (*self._without_text(), *self.remarks(scores)),
        )


def after(scorer: TextScorer, asked: Sequence[tuple[str, str]]) -> list[tuple[float, int, int]]:
    """For each text that follows another (with a space between): log p of its tokens given those
    before (for a masked model, all other tokens), the number of its tokens, and the number of
    tokens read. A token that spans both texts belongs to the second."""
    if scorer.convention.kind == "server":
        found = []
        for lead, text in asked:
            grid = scorer.grid([lead], [text])
            whole = int(grid.probes.tokens[0, 0])
            ll, n = grid.statement.log_likelihoods[0, 0], int(grid.statement.tokens[0, 0])
            found.append((float(ll), n, whole))
        return found
    texts: list[TokenIds] = []
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
    """ "overall" and each category, in the order of their first items, with the places of their
    items. A single category is not listed separately."""
    found = {OVERALL: list(range(len(categories)))}
    for n, category in enumerate(categories):
        found.setdefault(category, []).append(n)
    return list(found.items())


def added(keys: Sequence[str], columns: Array) -> tuple[tuple[str, ...], Array]:
    """The distinct keys, in order of first appearance, and for each the sum of its rows."""
    names = tuple(dict.fromkeys(keys))
    place = {name: n for n, name in enumerate(names)}
    sums = np.zeros((len(names), columns.shape[1]))
    np.add.at(sums, [place[key] for key in keys], columns)
    return names, sums


def share(successes: int, n: int) -> Estimate:
    """A share in percent, with its Wilson interval."""
    e = proportion(successes, n)
    return Estimate(100 * e.value, 100 * e.low, 100 * e.high, n)
