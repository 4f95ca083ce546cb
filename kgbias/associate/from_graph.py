"""Association tests from a run's graph.

Targets are groups, by their names and variants. Attributes are the words of the run's triples of
positive regard against those of negative regard, or the words of two of its topics.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgbias.associate.compare import spearman
from kgbias.associate.effect import DRAWS, NOISE, Array, effect_size, effect_sizes, unit
from kgbias.associate.seat import Embedder, in_templates
from kgbias.associate.sets import AssociationTest, WordSet
from kgbias.associate.weat import WordVectors
from kgbias.errors import DataError, UsageError
from kgbias.estimate import Estimate
from kgbias.graph.types import (
    Group,
    GroupScore,
    Run,
    Topic,
    TopicModel,
    TripleView,
    node_id,
)
from kgbias.models.base import ModelInfo
from kgbias.models.embed import LAST, Encoding
from kgbias.models.vectors import Found

MOST = 25

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_STOP = frozenset(
    """a about all also always an and any are as at be because been being but by can could did do
    does doing for from had has have he her hers him his how i if in into is it its just
    like lot many more most much my never no not of often on one only or other our out over
    own people person she should so some such than that the their them then there these they
    this those to too up us very was we were what when where which while who why will with
    would you your""".split()
)


@dataclass(frozen=True, slots=True)
class GroupAssociation:
    """One group's single-category association (SC-WEAT) next to its regard in the crawl.

    `effect` is d in the direction of positive words, with its bootstrap interval over the n
    attribute words; `words` are the group's words that the model knew. `regard` is the crawl's
    overall regard, NaN where the run was not measured.
    """

    group: Group
    effect: Estimate
    words: tuple[str, ...]
    regard: float


@dataclass(frozen=True, slots=True)
class RegardAgreement:
    """All groups, and Spearman's rank correlation of their association with their regard (NaN below
    3 groups). `positive` and `negative` are the attribute words, `missing` those that the model
    lacks."""

    model: ModelInfo
    groups: tuple[GroupAssociation, ...]
    correlation: float
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    missing: tuple[str, ...]

    def records(self) -> list[dict[str, Any]]:
        """One row per group."""
        return [
            {
                "group": g.group.name,
                "model": self.model.name,
                "effect_size": g.effect.value,
                "low": g.effect.low,
                "high": g.effect.high,
                "overall_regard": g.regard,
                "rank_correlation": self.correlation,
                "words": list(g.words),
            }
            for g in self.groups
        ]


def regard_words(
    triples: Sequence[TripleView], most: int = MOST
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words that best distinguish the run's positive triples from its negative ones, up to
    `most` on either side.

    A word of the predicates and objects counts once for each time its triple was said. With p and n
    its counts in positive and negative triples and P and N the totals, words are ordered by the
    difference of the shares over its standard error, (p / P - n / N) / sqrt(p / P^2 + n / N^2); a
    word must have been said at least twice. Function words and words of a group's name are left
    out. Raises DataError where a side has no word.
    """
    counts: dict[str, Counter[str]] = {"positive": Counter(), "negative": Counter()}
    named = {word for t in triples for word in _words(t.group)}
    for triple in triples:
        score = triple.scores.get("regard")
        if score and score.label in counts:
            for word in set(_words(f"{triple.predicate} {triple.object}")) - named:
                counts[score.label][word] += triple.count
    totals = {label: max(1, sum(words.values())) for label, words in counts.items()}

    def lean(word: str) -> float:
        p, n = (counts[label][word] / totals[label] for label in ("positive", "negative"))
        error = math.sqrt(p / totals["positive"] + n / totals["negative"])
        return (p - n) / error

    said = counts["positive"] + counts["negative"]
    leans = {word: lean(word) for word, count in said.items() if count >= 2}
    ordered = sorted(leans, key=lambda word: (-leans[word], word))
    positive = tuple(word for word in ordered[:most] if leans[word] > 0)
    negative = tuple(word for word in reversed(ordered[-most:]) if leans[word] < 0)
    if not positive or not negative:
        raise DataError(
            "the run has no words of positive and of negative regard: measure it first, or crawl "
            "more"
        )
    return positive, negative


def regard_sets(triples: Sequence[TripleView], most: int = MOST) -> tuple[WordSet, WordSet]:
    """The words of positive and of negative regard over all groups of the run, as attribute sets
    (see `regard_words`)."""
    positive, negative = regard_words(triples, most)
    return WordSet("positive regard", positive), WordSet("negative regard", negative)


def groups_test(run: Run, x: str, y: str, a: WordSet, b: WordSet) -> AssociationTest:
    """A test of two groups of a run, with `regard_sets` or `topic_sets` as attributes.

    Raises UsageError for a group that the run does not have.
    """
    return AssociationTest(
        name=f"{x} against {y}",
        title=f"{x} against {y}, words of {a.concept} against {b.concept}",
        source=f"run {run.name}",
        x=WordSet(x, _names(find_group(run, x))),
        y=WordSet(y, _names(find_group(run, y))),
        a=a,
        b=b,
        frames=("{t} are {a}.",),
    )


def topic_sets(
    run: Run, models: Sequence[TopicModel], first: str, second: str
) -> tuple[WordSet, WordSet]:
    """The words of two topics of a run as attribute sets, without the words they share.

    A topic is named by its category and number (`gender:0`), by its number alone where that is
    unambiguous, or by a word that only one topic has. Raises UsageError for a name that fits no
    topic, or several.
    """
    if not models:
        raise UsageError(f"run {run.name} has no topics: kgbias measure {run.name} --topics")
    one, other = find_topic(models, first), find_topic(models, second)
    both = set(one.words) & set(other.words)
    sets = []
    for topic in (one, other):
        words = tuple(word for word in topic.words if word not in both)
        if not words:
            raise UsageError(
                f"the topics {first} and {second} have the same words: name two different ones"
            )
        sets.append(WordSet(f"topic {topic.category}:{topic.number} ({words[0]})", words))
    return sets[0], sets[1]


def find_topic(models: Sequence[TopicModel], name: str) -> Topic:
    """A topic by `category:number`, number or word: see `topic_sets`."""
    topics = [topic for model in models for topic in model.topics]
    found = [
        topic
        for topic in topics
        if name in (f"{topic.category}:{topic.number}", str(topic.number)) or name in topic.words
    ]
    if len(found) == 1:
        return found[0]
    there = "; ".join(f"{t.category}:{t.number} {', '.join(t.words[:3])}" for t in found or topics)
    raise UsageError(
        f"{name!r} is {'more than one topic' if found else 'no topic of the run'}; there is {there}"
    )


def find_group(run: Run, name: str) -> Group:
    """A run's group by its name or a variant, ignoring case. Raises UsageError for a group that the
    run does not have."""
    for group in run.groups:
        if node_id("group", name) in {node_id("group", n) for n in _names(group)}:
            return group
    raise UsageError(
        f"run {run.name} has no group {name!r}; there is {', '.join(g.name for g in run.groups)}"
    )


def group_associations(
    run: Run,
    triples: Sequence[TripleView],
    vectors: WordVectors,
    scores: Sequence[GroupScore] = (),
    *,
    most: int = MOST,
    draws: int = DRAWS,
    seed: int = 0,
) -> RegardAgreement:
    """SC-WEAT of every group of a run against the run's words of positive and negative regard, next
    to the overall regard in `scores`.

    d(g) = (mean over A of cos(g, a) - mean over B of cos(g, b)) / std of both, with g the mean of
    the unit vectors of the group's names that the model knows. The interval draws attribute words
    with replacement. The words come from the crawl of the same groups, so this shows whether the
    vectors order the groups as the crawl does; the two are not independent measurements. Groups
    whose names the model does not know are left out.
    """
    positive, negative = regard_words(triples, most)
    a, b = vectors.find(positive), vectors.find(negative)
    if not a.forms or not b.forms:
        raise DataError(f"{vectors.info.name} knows none of the run's words of regard")
    regard = {s.group_id: s.value for s in scores if s.measure == "overall_regard"}
    rng = np.random.default_rng(seed)
    draw_a = rng.integers(0, len(a.forms), size=(draws, len(a.forms)))
    draw_b = rng.integers(0, len(b.forms), size=(draws, len(b.forms)))
    unit_a, unit_b = unit(a.vectors, "positive words"), unit(b.vectors, "negative words")
    found = []
    for group in run.groups:
        own = vectors.find(_names(group))
        if not own.forms:
            continue
        direction = unit(own.vectors, group.name).mean(axis=0)
        length = float(np.linalg.norm(direction))
        if length <= NOISE:
            continue
        x, y = unit_a @ direction / length, unit_b @ direction / length
        found.append(
            GroupAssociation(
                group,
                _effect(x, y, x[draw_a], y[draw_b]),
                tuple(own.forms),
                regard.get(group.id, math.nan),
            )
        )
    both = [g for g in found if not math.isnan(g.regard)]
    return RegardAgreement(
        vectors.info,
        tuple(found),
        spearman(np.array([g.effect.value for g in both]), np.array([g.regard for g in both])),
        tuple(a.forms),
        tuple(b.forms),
        a.missing + b.missing,
    )


class WordsInTemplates:
    """A language model as a table of word vectors: the mean of each word over bleached
    sentences."""

    def __init__(
        self,
        model: Embedder,
        encoding: Encoding = "word-average",
        layer: int = LAST,
        slot: str = "word",
    ) -> None:
        self.info: ModelInfo = model.info
        self._model, self._encoding, self._layer, self._slot = model, encoding, layer, slot

    def find(self, words: Iterable[str]) -> Found:
        """The vectors of all the words: a language model has one for any text."""
        wanted = tuple(dict.fromkeys(words))
        spans = in_templates(WordSet("words", wanted, self._slot))
        flat = [span for row in spans for span in row]
        vectors = self._model.embed(flat, self._encoding, self._layer).astype(np.float64)
        rows = unit(vectors, self.info.name).reshape(len(wanted), len(spans[0]), -1)
        return Found({word: word for word in wanted}, rows.mean(axis=1), ())


def _names(group: Group) -> tuple[str, ...]:
    return tuple(dict.fromkeys((group.name, *group.variants)))


def _words(text: str) -> list[str]:
    return [w for w in _WORD.findall(text.lower()) if len(w) > 2 and w not in _STOP]


def _effect(x: Array, y: Array, drawn_x: Array, drawn_y: Array) -> Estimate:
    """d, with its 95% percentile interval over resampled attribute words, [draws, n_a] and
    [draws, n_b]."""
    low, high = np.quantile(effect_sizes(drawn_x, drawn_y), [0.025, 0.975])
    return Estimate(effect_size(x, y), float(low), float(high), len(x) + len(y))
