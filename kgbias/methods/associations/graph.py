"""Association tests from a run's graph, and back into it.

Targets are groups, by their declared indicators. Attributes are word sets from the literature, the
words of two of the run's topics, or the words of its statements of positive and negative regard.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kgbias.errors import DataError, UsageError
from kgbias.evidence.indicators import MIN_WORDS, Indicators, WordSet, shipped_indicators
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import (
    AssociationNode,
    Group,
    GroupScore,
    Run,
    Topic,
    TopicModel,
    TripleView,
    WordSetEdge,
    node_id,
)
from kgbias.io.wording import how, pluralise
from kgbias.language.words import FUNCTION_WORDS
from kgbias.measure.topics import find_topic
from kgbias.methods.associations.effect import EQUALITY_TOLERANCE, effect_estimate, scale_to_unit
from kgbias.methods.associations.method_agreement import spearman
from kgbias.methods.associations.result import Association
from kgbias.methods.associations.sets import AssociationTest
from kgbias.methods.associations.weat import SetVectors
from kgbias.models.base import ModelInfo
from kgbias.stats.estimate import Estimate

MAX_REGARD_WORDS = 25

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class GroupAssociation:
    """One group's single-category association (SC-WEAT) next to its regard in the crawl.

    `effect` is d in the direction of the first attributes, with its interval over the n attribute
    words; `words` are the indicators of the group that the model knew. `regard` is the crawl's
    overall regard, NaN if the run was not measured.
    """

    group: Group
    effect: Estimate
    words: tuple[str, ...]
    regard: float


@dataclass(frozen=True, slots=True)
class RegardAgreement:
    """All groups, and Spearman's rank correlation of their association with their regard (NaN for
    fewer than 3 groups). `a` and `b` are the attributes that the model knows, `missing` those that
    it lacks; `left_out` are the groups with fewer than 8 indicators."""

    model: ModelInfo
    groups: tuple[GroupAssociation, ...]
    correlation: float
    a: WordSet
    b: WordSet
    missing: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def records(self) -> list[dict[str, Any]]:
        """One row per group."""
        return [
            {
                "group": g.group.name,
                "model": self.model.title,
                "effect_size": g.effect.value,
                "low": g.effect.low,
                "high": g.effect.high,
                "overall_regard": g.regard,
                "rank_correlation": self.correlation,
                "attributes": [self.a.concept, self.b.concept],
                "words": list(g.words),
            }
            for g in self.groups
        ]


def regard_words(
    triples: Sequence[TripleView], max_words: int = MAX_REGARD_WORDS
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words that best distinguish the run's positive triples from its negative ones, up to
    `max_words` on either side.

    A word of the predicates and objects counts once for each time its triple was said. With p and n
    its counts in positive and negative triples and P and N the totals, words are ordered by the
    difference of the shares over its standard error, (p / P - n / N) / sqrt(p / P^2 + n / N^2); a
    word must have been said at least twice. Function words and words of a group's name are left
    out. Raises DataError if a side has no words.
    """
    counts: dict[str, Counter[str]] = {"positive": Counter(), "negative": Counter()}
    group_words = {word for t in triples for word in _content_words(t.group)}
    for triple in triples:
        score = triple.scores.get("regard")
        if score and score.label in counts:
            for word in set(_content_words(f"{triple.predicate} {triple.object}")) - group_words:
                counts[score.label][word] += triple.count
    totals = {label: max(1, sum(words.values())) for label, words in counts.items()}

    def lean(word: str) -> float:
        p, n = (counts[label][word] / totals[label] for label in ("positive", "negative"))
        error = math.sqrt(p / totals["positive"] + n / totals["negative"])
        return (p - n) / error

    counts_said = counts["positive"] + counts["negative"]
    leans = {word: lean(word) for word, count in counts_said.items() if count >= 2}
    ordered_words = sorted(leans, key=lambda word: (-leans[word], word))
    positive = tuple(word for word in ordered_words[:max_words] if leans[word] > 0)
    negative = tuple(word for word in reversed(ordered_words[-max_words:]) if leans[word] < 0)
    if not positive or not negative:
        raise DataError(
            "the run lacks words of positive or negative regard: measure it first, or crawl more"
        )
    return positive, negative


def regard_attribute_sets(
    triples: Sequence[TripleView], max_words: int = MAX_REGARD_WORDS
) -> tuple[WordSet, WordSet]:
    """The words of positive and of negative regard over all groups of the run, as attribute sets
    (see `regard_words`)."""
    positive, negative = regard_words(triples, max_words)
    source = "statements of the same crawl"
    return (
        WordSet("positive regard", positive, source=source),
        WordSet("negative regard", negative, source=source),
    )


def build_groups_test(x: WordSet, y: WordSet, a: WordSet, b: WordSet) -> AssociationTest:
    """A test of two groups, by their indicators (`target_sets`), with attributes from
    `attribute_pair`, `regard_attribute_sets` or `topic_attribute_sets`."""
    sources = dict.fromkeys(words.source for words in (x, y, a, b) if words.source)
    return AssociationTest(
        name=f"{x.concept} against {y.concept}",
        title=f"{x.concept} against {y.concept}, words of {a.concept} against {b.concept}",
        source="; ".join(sources),
        x=x,
        y=y,
        a=a,
        b=b,
        frames=("{t} are {a}.",),
    )


def topic_attribute_sets(
    run: Run, models: Sequence[TopicModel], first: str, second: str
) -> tuple[WordSet, WordSet]:
    """The words of two topics of a run as attribute sets, without the words they share.

    A topic is named as for `kgbias.measure.topics.find_topic`.
    """
    if not models:
        todo = how("run.measure(topics=True)", f"kgbias measure {run.name} --topics")
        raise UsageError(f"run {run.name} has no topics: {todo}")
    first_topic, second_topic = find_topic(models, first), find_topic(models, second)
    shared_words = set(first_topic.words) & set(second_topic.words)
    sets = []
    for topic in (first_topic, second_topic):
        words = tuple(word for word in topic.words if word not in shared_words)
        if not words:
            raise UsageError(
                f"the topics {first} and {second} have the same words: name two different ones"
            )
        concept = f"topic {topic.category}:{topic.number} ({words[0]})"
        sets.append(WordSet(concept, words, source=f"topics of run {run.name}"))
    return sets[0], sets[1]


class GroupTargets(NamedTuple):
    """The words that stand for each group, and the names of the groups with fewer than 8."""

    targets: dict[Group, WordSet]
    left_out: tuple[str, ...]


def find_targets(run: Run, indicators: Indicators, kind: str | None = None) -> GroupTargets:
    """The indicators of each group of the run (`Indicators.choose_for_category`)."""
    sets_by_group: dict[Group, WordSet] = {}
    for category in dict.fromkeys(group.category for group in run.groups):
        groups = [group for group in run.groups if group.category == category]
        sets_by_group |= indicators.choose_for_category(groups, kind)[1]
    left_out = tuple(group.name for group in run.groups if group not in sets_by_group)
    # In the order of the run, not of its categories.
    targets = {group: sets_by_group[group] for group in run.groups if group in sets_by_group}
    return GroupTargets(targets, left_out)


def associate_groups(
    targets: Mapping[Group, WordSet],
    a: WordSet,
    b: WordSet,
    vectors: SetVectors,
    scores: Sequence[GroupScore] = (),
    *,
    left_out: Sequence[str] = (),
) -> RegardAgreement:
    """SC-WEAT of groups by their indicators against two sets of attributes, next to the overall
    regard in `scores`.

    d(g) = (mean over A of cos(g, a) - mean over B of cos(g, b)) / std of both, with g the mean of
    the unit vectors of the group's indicators that the model knows. The interval is over attribute
    words (`effect_estimate`). Groups for which the model knows fewer than 8 indicators are left
    out, and named. Raises DataError if it knows fewer than 8 words of an attribute set.
    """
    found_a, found_b = vectors.find_set(a), vectors.find_set(b)
    for attribute_vectors, words in ((found_a, a), (found_b, b)):
        if len(attribute_vectors.forms) < MIN_WORDS:
            raise DataError(
                f"{vectors.info.name} knows {pluralise(len(attribute_vectors.forms), 'word')} of "
                f"{words.concept}, and a "
                f"test needs {MIN_WORDS} a side"
            )
    regard = {s.group_id: s.value for s in scores if s.measure == "overall_regard"}
    unit_a, unit_b = (
        scale_to_unit(found_a.vectors, a.concept),
        scale_to_unit(found_b.vectors, b.concept),
    )
    results, groups_without = [], list(left_out)
    for group, words in targets.items():
        group_vectors = vectors.find_set(words)
        direction = (
            scale_to_unit(group_vectors.vectors, group.name).mean(axis=0)
            if group_vectors.forms
            else np.zeros(1)
        )
        length = float(np.linalg.norm(direction))
        if len(group_vectors.forms) < MIN_WORDS or length <= EQUALITY_TOLERANCE:
            groups_without.append(group.name)
            continue
        x, y = unit_a @ direction / length, unit_b @ direction / length
        results.append(
            GroupAssociation(
                group,
                effect_estimate(x, y),
                tuple(group_vectors.forms),
                regard.get(group.id, math.nan),
            )
        )
    with_regard = [g for g in results if not math.isnan(g.regard)]
    return RegardAgreement(
        vectors.info,
        tuple(results),
        spearman(
            np.array([g.effect.value for g in with_regard]),
            np.array([g.regard for g in with_regard]),
        ),
        WordSet(a.concept, tuple(found_a.forms), source=a.source),
        WordSet(b.concept, tuple(found_b.forms), source=b.source),
        found_a.missing + found_b.missing,
        tuple(groups_without),
    )


def _group_names(group: Group) -> tuple[str, ...]:
    return tuple(dict.fromkeys((group.name, *group.variants)))


def _content_words(text: str) -> list[str]:
    return [w for w in _WORD.findall(text.lower()) if len(w) > 2 and w not in FUNCTION_WORDS]


SC_WEAT_MEASURE = "sc_weat"
MIN_TOPIC_WORDS = 3
"""How many of a topic's words an attribute set must hold to be about it."""


def save_results(
    store: Store,
    run: Run | None,
    results: Sequence[Association],
    rows: Sequence[dict[str, Any]],
    indicators: Indicators | None = None,
) -> None:
    """Write results to the graph, tied to `run` if there is one; `rows` are their records.

    A test gets edges to nodes that are in the graph: to each group that a word or concept of a set
    names, or that `indicators` (None: the shipped ones) say the concept is about, TARGET for X or
    Y, ATTRIBUTE for A or B (the male terms of WEAT 7). It gets an ATTRIBUTE edge to each object
    whose text is an attribute word, and to each topic of the run that shares at least
    `MIN_TOPIC_WORDS` words with an attribute set.
    """
    nodes = [
        AssociationNode(
            id=result.id,
            test=result.test.name,
            method=result.method,
            model=result.model,
            effect_size=result.effect_size,
            p_value=result.test_p_value.value,
            low=result.effect.low,
            high=result.effect.high,
            record=row,
            edges=build_edges(store, run, result.test, indicators),
            p_published=result.p_value.value if result.permutation_p_value else math.nan,
            p_holm=row["p_holm"],
            p_bh=row["p_bh"],
            n_x=len(result.sets["x"].known),
            n_y=len(result.sets["y"].known),
        )
        for result, row in zip(results, rows, strict=True)
    ]
    store.save_associations(run.id if run else None, nodes)


def save_groups(run: StoredRun, agreement: RegardAgreement) -> None:
    """Write each group's single-category association as a figure of the group."""
    method = (
        f"SC-WEAT on {agreement.model.title}, {agreement.a.concept} against {agreement.b.concept}; "
        "noncentral t over attribute words"
    )
    run.put(
        GroupScore,
        [
            GroupScore.from_estimate(g.group.id, SC_WEAT_MEASURE, g.effect, method)
            for g in agreement.groups
        ],
    )


def build_edges(
    store: Store, run: Run | None, test: AssociationTest, indicators: Indicators | None = None
) -> tuple[WordSetEdge, ...]:
    """The edges from a test to what the graph holds now (see `save_results`)."""
    topics = [topic for model in store.topics(run.id) for topic in model.topics] if run else []
    declared = indicators or shipped_indicators()
    edges_found = [
        WordSetEdge(side, "topic", id) for side, id in sorted(_related_topics(test, topics))
    ]
    for side, words in test.sets.items():
        concept_names = {words.concept, *_names_for_concept(declared, words.concept)}
        texts = {"group": concept_names | (set(words.words) if side in ("x", "y") else set())}
        if side in ("a", "b"):
            texts["object"] = set(words.words)
        for kind, node_texts in texts.items():
            ids = store.known_nodes(kind, [node_id(kind, text) for text in node_texts])
            edges_found += [WordSetEdge(side, kind, id) for id in sorted(ids)]
    return tuple(edges_found)


def _names_for_concept(indicators: Indicators, concept: str) -> Iterator[str]:
    """The names of the groups that a concept of an association test is about: for "European
    American male names", white people, men, and white men."""
    for group in indicators.groups:
        if concept in group.concepts:
            yield from (group.name, *group.other_names)


def _related_topics(test: AssociationTest, topics: Sequence[Topic]) -> set[tuple[str, str]]:
    """The attribute sides that are about a topic, with its id: a side is if it holds
    `MIN_TOPIC_WORDS` of the topic's words, or all of them, or all but those that the topic of the
    other side also has (`topic_attribute_sets`)."""
    a, b = set(test.a.words), set(test.b.words)
    sides_found: set[tuple[str, str]] = set()
    for topic in topics:
        words = set(topic.words)
        sides_found |= {
            (side, topic.id)
            for side, attribute_words in (("a", a), ("b", b))
            if attribute_words == words or len(attribute_words & words) >= MIN_TOPIC_WORDS
        }
        # `topic_attribute_sets` took the words that two topics share out of both: this side is
        # about its topic if what it lacks is what another topic, the other side's, lacks too.
        if a < words:
            for other_topic in topics:
                remaining_words = set(other_topic.words) - b
                if remaining_words and remaining_words == words - a and b < set(other_topic.words):
                    sides_found |= {("a", topic.id), ("b", other_topic.id)}
    return sides_found
