"""Items to ask a model: the scores of all of them, each computed once."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from kgbias.graph.store import Store
from kgbias.graph.types import BenchmarkItem, ItemScore, canonical_json, storable
from kgbias.ids import content_id
from kgbias.io.progress import Progress, SilentProgress
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import TextScorer
from kgbias.models.score.distributed import AnyScorer, iter_answers
from kgbias.probe.result import Took

Scored = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """How much of a benchmark a store holds for one model: the number of `items`, of their `texts`,
    and the `seconds` that they took."""

    items: int = 0
    texts: int = 0
    seconds: float = math.nan


class Items(ABC):
    """Items, and how a model is asked them.

    Attributes:
        title: their name for people.
        chunk: how many texts are scored between two saves.
        items: in order.
        sizes: how many texts are scored for each item.
    """

    title: str
    chunk: int = 256
    items: Sequence[BenchmarkItem]
    sizes: Sequence[int]

    @abstractmethod
    def ask(self, scorer: TextScorer, places: Sequence[int]) -> list[tuple[Scored, int]]:
        """The scores of the items at these places, and how many tokens were read for each."""

    @property
    def count(self) -> int:
        return len(self.items)

    @property
    def texts(self) -> int:
        return sum(self.sizes)

    @property
    def parts(self) -> dict[str, tuple[int, int]]:
        """Category to its items, and the texts scored for them."""
        found: dict[str, tuple[int, int]] = {}
        for one, size in zip(self.items, self.sizes, strict=True):
            items, texts = found.get(one.category, (0, 0))
            found[one.category] = (items + 1, texts + size)
        return found

    def held(self, model: ModelInfo, store: Store) -> Held:
        """How much the store holds of a model, for the way of asking that it holds most of."""
        ids = [one.id for one in self.items]
        found = [store.item_scores(model, settings, ids) for settings in store.item_settings(model)]
        most = max(found, key=len, default={})
        texts = sum(n for id, n in zip(ids, self.sizes, strict=True) if id in most)
        return Held(len(most), texts, sum(score.seconds for score in most.values()))

    def chunks(self) -> list[range]:
        """The places of all items, in chunks that are scored together, however many of the scores
        are known."""
        starts, room = list[int](), 0
        for n, size in enumerate(self.sizes):
            if not starts or room < size:
                starts.append(n)
                room = self.chunk
            room -= size
        return [range(*ends) for ends in zip(starts, [*starts[1:], self.count], strict=True)]


class Kept(Protocol):
    """Chunks of scores in a file."""

    def read(self, chunk: int) -> list[ItemScore] | None: ...

    def write(self, chunk: int, scores: Sequence[ItemScore]) -> None: ...


def item(benchmark: str, name: str, category: str, *asked: object) -> BenchmarkItem:
    """An item, whose id follows from its name and everything that is asked."""
    return BenchmarkItem(
        content_id("item", benchmark, storable(name), canonical_json(asked)),
        benchmark,
        name,
        category,
    )


def answered(
    items: Items, scorer: AnyScorer, store: Store | None = None, progress: Progress | None = None
) -> list[ItemScore]:
    """The score of every item, in order (see `each_answered`)."""
    found = {
        score.item.id: score
        for _, scores in each_answered(items, scorer, store, progress=progress)
        for score in scores
    }
    return [found[one.id] for one in items.items]


def each_answered(
    items: Items,
    scorer: AnyScorer,
    store: Store | None = None,
    kept: Kept | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[range, list[ItemScore]]]:
    """The scores of all items, a chunk at a time and in order, with their places. What the store or
    the file holds is not computed again; what either lacks is written to it as soon as it is known.
    If workers share the items, chunks done early wait for those before them."""
    told = progress or SilentProgress()
    told.stage(f"{items.title} of {scorer.info.title}", items.texts)
    chunks = list(enumerate(items.chunks()))

    def save(scores: list[ItemScore]) -> None:
        if store is not None and scores:
            store.save_item_scores(scorer.info, scorer.settings, scores)

    def held(number: int, places: range) -> dict[str, ItemScore]:
        """What the store or the file holds of a chunk; afterwards, both hold it."""
        ids = [items.items[n].id for n in places]
        stored = store.item_scores(scorer.info, scorer.settings, ids) if store is not None else {}
        filed = kept.read(number) if kept is not None else None
        save([score for score in filed or () if score.item.id not in stored])
        known = {score.item.id: score for score in filed or ()} | stored
        if kept is not None and filed is None and len(known) == len(places):
            kept.write(number, [known[id] for id in ids])
        return known

    def in_order(places: range, known: dict[str, ItemScore]) -> list[ItemScore]:
        return [known[items.items[n].id] for n in places]

    missing: dict[int, list[int]] = {}  # the places that each incomplete chunk lacks
    for number, places in chunks:
        known = held(number, places)
        lacking = [n for n in places if items.items[n].id not in known]
        told.advance(sum(items.sizes[n] for n in places) - sum(items.sizes[n] for n in lacking))
        if lacking:
            missing[number] = lacking
        elif not missing:
            yield places, in_order(places, known)
    early: dict[int, list[ItemScore]] = {}
    numbers = list(missing)
    asked = iter_answers(scorer, partial(_timed, items), list(missing.values()))
    for number, places in chunks[numbers[0] :] if numbers else ():
        while number in missing and number not in early:
            place, (found, seconds) = next(asked)
            done = numbers[place]
            new = [
                ItemScore(items.items[n], scores, tokens, seconds / len(found))
                for n, (scores, tokens) in zip(missing[done], found, strict=True)
            ]
            known = held(done, chunks[done][1]) | {score.item.id: score for score in new}
            save(new)
            early[done] = in_order(chunks[done][1], known)
            if kept is not None:
                kept.write(done, early[done])
            told.advance(sum(items.sizes[n] for n in missing[done]))
        if number in early:
            yield places, early.pop(number)
        else:
            yield places, in_order(places, held(number, places))


def spent(times: Iterable[tuple[int, float]]) -> Took:
    """The sum of tokens and seconds, in whichever calls. An unknown time (0, for what was read from
    a file) is estimated from the speed of the others."""
    tokens = timed = 0
    seconds = 0.0
    for read, own in times:
        tokens += read
        if own:
            timed += read
            seconds += own
    return Took(tokens, seconds * tokens / timed if timed else math.nan)


def _timed(
    items: Items, scorer: TextScorer, places: Sequence[int]
) -> tuple[list[tuple[Scored, int]], float]:
    """A model's scores for some items, and the seconds that they took."""
    began = time.monotonic()
    asked = items.ask(scorer, places)
    return asked, time.monotonic() - began
