"""Attributions combined: the words that drive the scores of each group, or of each cell of the
confusion between two scorers, and how far attributions can be relied on."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.graph.types import Attribution
from kgbias.measure.attribution import Words, without
from kgbias.measure.scorers import Scorer
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import bootstrap

_PUNCTUATION = ".,;:!?\"'()[]“”‘’"


@dataclass(frozen=True, slots=True)
class WordEffect:
    """The effect of a word on the scores of one group's statements, or one cell's.

    Attributes:
        measure, method: which effects; their unit is the method's.
        cell: the group; or, in a confusion, "LABEL / LABEL": the scorer's and the other's.
        statements: the statements of the cell.
        word: in lower case, without punctuation at its ends.
        n: the statements of the cell that contain the word.
        effect: the mean effect on those; if a statement contains it twice, the sum counts.
        total: the sum of its effects over all statements of the cell.
    """

    measure: str
    method: str
    cell: str
    statements: int
    word: str
    n: int
    effect: float
    total: float


def word_effects(
    attributions: Sequence[Attribution], cells: Mapping[str, str], *, top: int = 10
) -> list[WordEffect]:
    """The words of each cell with the largest totals, up or down, by measure, method and cell.
    `cells` maps triples to cells; triples without one are left out."""
    found: dict[tuple[str, str, str], list[Attribution]] = defaultdict(list)
    for a in attributions:
        if a.triple_id in cells:
            method = a.method.partition("@")[0]
            found[a.metric.measure, method, cells[a.triple_id]].append(a)
    rows: list[WordEffect] = []
    for (measure, method, cell), here in sorted(found.items()):
        effects: dict[str, list[float]] = defaultdict(list)
        for a in here:
            own: dict[str, float] = defaultdict(float)
            for word, effect in zip(a.tokens, a.effects, strict=True):
                own[word.casefold().strip(_PUNCTUATION)] += effect
            for word, effect in own.items():
                effects[word].append(effect)
        words = [
            WordEffect(measure, method, cell, len(here), word, len(e), sum(e) / len(e), sum(e))
            for word, e in effects.items()
            if word
        ]
        rows += sorted(words, key=lambda w: (-abs(w.total), w.word))[:top]
    return rows


@dataclass(frozen=True, slots=True)
class Deletion:
    """How far the score falls when a sentence loses its most effective words.

    Attributes:
        measure: what is scored.
        method: by whose effects words are removed; "random": in random order.
        removed: how many words.
        drop: the mean over sentences of how far the score moved back towards the other side of 0,
            in units of the score, with a bootstrap interval over sentences. A good attribution has
            a larger drop than random order, after fewer words.
    """

    measure: str
    method: str
    removed: int
    drop: Estimate


def deletion_curves(
    scorer: Scorer, by_method: Mapping[str, Sequence[Words]], *, removed: int = 3, seed: int = 0
) -> list[Deletion]:
    """Remove the words of sentences one by one, starting with those that most support the score,
    and score what is left (Samek et al. 2017), against random order (the mean of 5 orders).

    Args:
        scorer: whose scores the attributions are of.
        by_method: the attributions of the same sentences by each method, as
            `kgbias.measure.attribution.effects` gives them.
        removed: the most words to remove; sentences with no more words than that are left out.
        seed: of the random orders.
    """
    rng = random.Random(f"deletion:{seed}")
    orders: dict[str, list[list[tuple[list[str], list[int], float]]]] = {"random": []}
    for method, attributed in by_method.items():
        orders[method] = [
            [(words, sorted(range(len(words)), key=lambda n: -_side(score) * effects[n]), score)]
            for words, effects, score in attributed
            if len(words) > removed
        ]
    for words, _, score in next(iter(by_method.values()), ()):
        if len(words) > removed:
            shuffled = [rng.sample(range(len(words)), len(words)) for _ in range(5)]
            orders["random"].append([(words, order, score) for order in shuffled])
    found = []
    for method, sentences in orders.items():
        for count in range(1, removed + 1):
            texts = [without(w, set(order[:count])) for same in sentences for w, order, _ in same]
            left = iter(scorer.score(texts))
            drops = []
            for same in sentences:
                judged = [(score, next(left)) for _, _, score in same]
                moved = [_side(score) * (score - j.value) for score, j in judged if j]
                if moved:
                    drops.append(sum(moved) / len(moved))
            drop = bootstrap(np.array(drops), lambda v: v.mean(axis=-1)) if drops else None
            found.append(Deletion(scorer.measure, method, count, drop or Estimate.missing()))
    return found


def _side(score: float) -> int:
    return -1 if score < 0 else 1
