"""Items to ask a model: the scores of all of them, each computed once."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from kgbias.graph.store import Store
from kgbias.graph.types import BenchmarkItem, ItemScore, canonical_json, storable
from kgbias.ids import content_id
from kgbias.io.progress import Progress, SilentProgress
from kgbias.models.base import ModelInfo
from kgbias.models.score.base import TextScorer
from kgbias.models.score.distributed import AnyScorer, iter_answers
from kgbias.probe.result import ProbeUsage

ItemScores = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StoredCounts:
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
    def ask(self, scorer: TextScorer, places: Sequence[int]) -> list[tuple[ItemScores, int]]:
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
        by_category: dict[str, tuple[int, int]] = {}
        for item, size in zip(self.items, self.sizes, strict=True):
            items, texts = by_category.get(item.category, (0, 0))
            by_category[item.category] = (items + 1, texts + size)
        return by_category

    def stored_counts(self, model: ModelInfo, store: Store) -> StoredCounts:
        """How much the store holds of a model, for the way of asking that it holds most of."""
        ids = [stored_item.id for stored_item in self.items]
        score_sets = [
            store.item_scores(model, settings, ids) for settings in store.item_settings(model)
        ]
        largest = max(score_sets, key=len, default={})
        texts = sum(n for id, n in zip(ids, self.sizes, strict=True) if id in largest)
        return StoredCounts(len(largest), texts, sum(score.seconds for score in largest.values()))

    def chunks(self) -> list[range]:
        """The places of all items, in chunks that are scored together, however many of the scores
        are known."""
        starts, room_left = list[int](), 0
        for n, size in enumerate(self.sizes):
            if not starts or room_left < size:
                starts.append(n)
                room_left = self.chunk
            room_left -= size
        return [range(*ends) for ends in zip(starts, [*starts[1:], self.count], strict=True)]


class ScoreFile(Protocol):
    """Chunks of scores in a file."""

    def read(self, chunk: int) -> list[ItemScore] | None: ...

    def write(self, chunk: int, scores: Sequence[ItemScore]) -> None: ...


def make_item(benchmark: str, name: str, category: str, *asked: object) -> BenchmarkItem:
    """An item, whose id follows from its name and everything that is asked."""
    return BenchmarkItem(
        content_id("item", benchmark, storable(name), canonical_json(asked)),
        benchmark,
        name,
        category,
    )


def score_items(
    items: Items, scorer: AnyScorer, store: Store | None = None, progress: Progress | None = None
) -> list[ItemScore]:
    """The score of every item, in order, computed or read (see `iter_scores`)."""
    by_id = {
        score.item.id: score
        for _, scores in iter_scores(items, scorer, store, progress=progress)
        for score in scores
    }
    return [by_id[wanted_item.id] for wanted_item in items.items]


def iter_scores(
    items: Items,
    scorer: AnyScorer,
    store: Store | None = None,
    score_file: ScoreFile | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[range, list[ItemScore]]]:
    """The scores of all items, a chunk at a time and in order, with their places. What the store or
    the file holds is not computed again; what either lacks is written to it as soon as it is known.
    If workers share the items, chunks done early wait for those before them."""
    reporter = progress or SilentProgress()
    reporter.stage(f"{items.title} of {scorer.info.title}", items.texts)
    chunks = list(enumerate(items.chunks()))

    def save(scores: list[ItemScore]) -> None:
        if store is not None and scores:
            store.save_item_scores(scorer.info, scorer.settings, scores)

    def read_known(number: int, places: range) -> dict[str, ItemScore]:
        """What the store or the file holds of a chunk; afterwards, both hold it."""
        ids = [items.items[n].id for n in places]
        stored = store.item_scores(scorer.info, scorer.settings, ids) if store is not None else {}
        file_scores = score_file.read(number) if score_file is not None else None
        save([score for score in file_scores or () if score.item.id not in stored])
        known_scores = {score.item.id: score for score in file_scores or ()} | stored
        if score_file is not None and file_scores is None and len(known_scores) == len(places):
            score_file.write(number, [known_scores[id] for id in ids])
        return known_scores

    def in_order(places: range, known: dict[str, ItemScore]) -> list[ItemScore]:
        return [known[items.items[n].id] for n in places]

    # First what is known already, up to the first chunk that lacks something.
    missing_places: dict[int, list[int]] = {}  # the places that each incomplete chunk lacks
    for number, places in chunks:
        known_scores = read_known(number, places)
        lacking = [n for n in places if items.items[n].id not in known_scores]
        reporter.advance(sum(items.sizes[n] for n in places) - sum(items.sizes[n] for n in lacking))
        if lacking:
            missing_places[number] = lacking
        elif not missing_places:
            yield places, in_order(places, known_scores)
    # Then from that chunk on, in order: workers may answer in another, so what comes early waits.
    early_scores: dict[int, list[ItemScore]] = {}
    numbers = list(missing_places)
    answers_asked = iter_answers(scorer, partial(_time_items, items), list(missing_places.values()))
    for number, places in chunks[numbers[0] :] if numbers else ():
        while number in missing_places and number not in early_scores:
            place, (new_scores, seconds) = next(answers_asked)
            done_number = numbers[place]
            new = [
                ItemScore(items.items[n], scores, tokens, seconds / len(new_scores))
                for n, (scores, tokens) in zip(missing_places[done_number], new_scores, strict=True)
            ]
            known_scores = read_known(done_number, chunks[done_number][1]) | {
                score.item.id: score for score in new
            }
            save(new)
            early_scores[done_number] = in_order(chunks[done_number][1], known_scores)
            if score_file is not None:
                score_file.write(done_number, early_scores[done_number])
            reporter.advance(sum(items.sizes[n] for n in missing_places[done_number]))
        if number in early_scores:
            yield places, early_scores.pop(number)
        else:
            yield places, in_order(places, read_known(number, places))


def sum_usage(times: Iterable[tuple[int, float]]) -> ProbeUsage:
    """The sum of tokens and seconds, in whichever calls. An unknown time (0, for what was read from
    a file) is estimated from the speed of the others."""
    tokens = timed_tokens = 0
    seconds = 0.0
    for tokens_read, own_seconds in times:
        tokens += tokens_read
        if own_seconds:
            timed_tokens += tokens_read
            seconds += own_seconds
    return ProbeUsage(tokens, seconds * tokens / timed_tokens if timed_tokens else math.nan)


class _TimedItems(NamedTuple):
    """Scores of some items, and what they took."""

    scores: list[tuple[ItemScores, int]]
    seconds: float


def _time_items(items: Items, scorer: TextScorer, places: Sequence[int]) -> _TimedItems:
    """A model's scores for some items, and the seconds that they took."""
    began = time.monotonic()
    asked = items.ask(scorer, places)
    return _TimedItems(asked, time.monotonic() - began)
