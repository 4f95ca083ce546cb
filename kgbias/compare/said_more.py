"""What a model says more of one group than of the others: words, and topics if there are any.

Means of regard do not look at what is said. Here the content is compared: for each word of the
statements (in any form; of a predicate only where the model named it itself, and without the names
of groups) and each topic, the share of a group's prompts that led to it is held against the share
of the other groups' prompts of its category (`kgbias.stats.keyness`). What is found must also be
there without the prompts of any one wording.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.graph.between import Named
from kgbias.graph.draws import Draws
from kgbias.graph.types import Group, TopicModel, TripleView
from kgbias.language.words import FUNCTION_WORDS, PERSONS, lemma, words
from kgbias.stats.estimate import Estimate
from kgbias.stats.keyness import DEALS, LEVEL, FeatureTable, Keyness, measure_keyness
from kgbias.stats.standardised import CHOSEN, Asked

MAX_COUNTED = 100_000  # statements of a group that come as counts, and are dealt one by one
MIN_PROMPTS = 3  # of all groups, that led to a feature, for it to be tested
Feature = tuple[str, str]  # "word" or "topic", and which


@dataclass(frozen=True, slots=True)
class SaidMore:
    """A word or topic that a model says more of a group than of the others of its category.

    Attributes:
        group: its name.
        kind: "word" or "topic".
        feature: the word in its most frequent form, or the topic's name.
        prompts, of: how many of the group's prompts led to it, of how many.
        others, of_others: the same for the other groups.
        difference: of the two shares, with its 95% interval.
        log_odds: with an informative prior, above 0.
        p: exact, by dealing whole prompts anew; `q`: corrected over all features of the group.
        triples: the ids of the group's triples that have it, those said most often first.
    """

    group: str
    kind: str
    feature: str
    prompts: int
    of: int
    others: int
    of_others: int
    difference: Estimate
    log_odds: float
    p: float
    q: float
    triples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContentTest:
    """What was found in one category, by group and log-odds.

    Attributes:
        category: of the groups.
        found: the features whose corrected p is at most 0.05 and that hold without any wording.
        p: of no group differing from the others in any feature.
        features: how many features were tested for each group.
        floor: how many corrected p-values of at most 0.05 there would be by chance, on average.
    """

    category: str
    found: tuple[SaidMore, ...]
    p: float
    features: int
    floor: float


@dataclass(slots=True)
class _Prompts:
    """The prompts of a category with the features of their statements, and, for the prompts of
    each wording, which of them there would be without it."""

    groups: list[int]
    blocks: list[int]
    wordings: list[dict[int, set[Feature]]]  # of each prompt: the features under each wording


def content_tests(
    groups: Sequence[Group],
    by_group: Mapping[str, Sequence[TripleView]],
    draws: Draws,
    topics: Mapping[str, TopicModel],
    *,
    named: Sequence[Group] = (),
    deals: int = DEALS,
) -> list[ContentTest]:
    """Test every category with two groups that have statements. One in which a group's statements
    come as counts that are too large to deal is left out.

    Args:
        groups: of the run.
        by_group: the statements of one arm that count, by the id of their group.
        draws: how they were drawn.
        topics: of each category, if there are any.
        named: groups with all their names, which are no content; default `groups`.
        deals: how often whole tables are dealt anew.
    """
    content = _Content(named or groups)
    found = []
    for category in dict.fromkeys(g.category for g in groups):
        own = [g for g in groups if g.category == category and by_group.get(g.id)]
        about = (
            {a.triple_id: a.topic_id for a in topics[category].about} if category in topics else {}
        )
        names = {t.id: t.name for t in topics[category].topics} if category in topics else {}
        named_topics = {id: names[topic] for id, topic in about.items() if topic in names}
        dealt = all(_dealt(by_group[g.id], draws) for g in own)
        if (
            dealt
            and len(own) > 1
            and (test := _tested(category, own, by_group, draws, content, named_topics, deals))
        ):
            found.append(test)
    return found


class _Content:
    """The features of statements."""

    def __init__(self, named: Sequence[Group]) -> None:
        self._named = Named(named)
        self._forms: dict[str, Counter[str]] = defaultdict(Counter)
        self._known: dict[str, tuple[frozenset[Feature], frozenset[Feature]]] = {}

    def of(self, triple: TripleView, form: object) -> frozenset[Feature]:
        """Those of a statement whose prompt supplied what `form` says."""
        if triple.id not in self._known:
            self._known[triple.id] = (
                self._words(triple.object, triple.count),
                self._words(f"{triple.predicate} {triple.object}", triple.count),
            )
        of_object, of_both = self._known[triple.id]
        return of_both if form == CHOSEN else of_object

    def _words(self, text: str, count: int) -> frozenset[Feature]:
        found = set()
        for word in words(self._named.masked(text, " ")):
            if len(word) < 3 or word in FUNCTION_WORDS or word in PERSONS:
                continue
            base = lemma(word)
            self._forms[base][word] += count
            found.add(("word", base))
        return frozenset(found)

    def shown(self, feature: Feature) -> str:
        """A feature as readers see it: a word in the form in which it was said most often."""
        kind, name = feature
        return (
            min(self._forms[name], key=lambda w: (-self._forms[name][w], w))
            if kind == "word"
            else name
        )


def _tested(
    category: str,
    groups: Sequence[Group],
    by_group: Mapping[str, Sequence[TripleView]],
    draws: Draws,
    content: _Content,
    topics: Mapping[str, str],
    deals: int,
) -> ContentTest | None:
    prompts, having = _prompts(groups, by_group, draws, content, topics)
    often: Counter[Feature] = Counter()
    for of_wordings in prompts.wordings:
        often.update(set().union(*of_wordings.values()))
    features = sorted(f for f, n in often.items() if MIN_PROMPTS <= n < len(prompts.groups))
    if not features:
        return None
    keyness = measure_keyness(_table(prompts, features, len(groups)), deals=deals)
    confirmed = _confirmed(prompts, features, len(groups), keyness)
    found = []
    for g, f in np.argwhere(confirmed):
        feature = features[f]
        triples = sorted(having[g, feature].items(), key=lambda one: (-one[1], one[0]))
        own, size = int(keyness.counts[g, f]), int(keyness.sizes[g])
        others, of_others = int(keyness.counts[:, f].sum()) - own, int(keyness.sizes.sum()) - size
        found.append(
            SaidMore(
                groups[g].name, feature[0], content.shown(feature),
                own, size, others, of_others,
                keyness.difference(g, f), float(keyness.log_odds[g, f]), float(keyness.p[g, f]),
                float(keyness.q[g, f]), tuple(id for id, _ in triples),
            )
        )  # fmt: skip
    found.sort(key=lambda one: -one.log_odds)
    return ContentTest(category, tuple(found), keyness.any, len(features), keyness.floor)


def _prompts(
    groups: Sequence[Group],
    by_group: Mapping[str, Sequence[TripleView]],
    draws: Draws,
    content: _Content,
    topics: Mapping[str, str],
) -> tuple[_Prompts, dict[tuple[int, Feature], Counter[str]]]:
    """The prompts of all groups; and for each group and feature, how often each triple said it."""
    prompts = _Prompts([], [], [])
    blocks: dict[object, int] = {}
    having: dict[tuple[int, Feature], Counter[str]] = defaultdict(Counter)
    for g, group in enumerate(groups):
        triples = by_group[group.id]
        numbers: dict[object, int] = {}
        for triple, form, block, cluster, wording in _said(triples, draws.numbered(triples)):
            features = set(content.of(triple, form))
            if triple.id in topics:
                features.add(("topic", topics[triple.id]))
            if cluster not in numbers:
                numbers[cluster] = len(prompts.groups)
                prompts.groups.append(g)
                prompts.blocks.append(blocks.setdefault(block, len(blocks)))
                prompts.wordings.append(defaultdict(set))
            prompts.wordings[numbers[cluster]][wording] |= features
            for feature in features:
                having[g, feature][triple.id] += 1
    return prompts, having


def _dealt(triples: Sequence[TripleView], draws: Draws) -> bool:
    sample = draws.numbered(triples).sample
    return sample.places is not None or sample.n <= MAX_COUNTED


def _said(
    triples: Sequence[TripleView], asked: Asked
) -> Iterator[tuple[TripleView, object, object, object, int]]:
    """Each time that a triple was said: with the form and block of its prompt, the prompt, and the
    number of its wording."""
    sample = asked.sample
    if (
        sample.design is None
        or sample.places is None
        or asked.forms is None
        or asked.blocks is None
    ):
        for n, times in zip(sample.values.astype(int), sample.counts.tolist(), strict=True):
            for k in range(times):
                yield triples[n], CHOSEN, "", (n, k), 0
        return
    wordings = sample.design.levels.get("wordings", np.zeros(len(sample.design.clusters), np.int64))
    for n, place, form, block in zip(
        sample.values.astype(int), sample.places, asked.forms, asked.blocks, strict=True
    ):
        yield triples[n], form, block, int(sample.design.clusters[place]), int(wordings[place])


def _table(
    prompts: _Prompts, features: Sequence[Feature], groups: int, without: int | None = None
) -> FeatureTable:
    """The prompts with their features; `without` a wording: what is left of them."""
    number = {feature: n for n, feature in enumerate(features)}
    kept: list[int] = []
    rows: list[int] = []
    columns: list[int] = []
    for n, of_wordings in enumerate(prompts.wordings):
        left = [own for wording, own in of_wordings.items() if wording != without]
        if not left:
            continue
        own = [number[f] for f in set().union(*left) if f in number]
        rows += [len(kept)] * len(own)
        columns += own
        kept.append(n)
    return FeatureTable(
        groups,
        np.array([prompts.groups[n] for n in kept], dtype=np.int64),
        np.array([prompts.blocks[n] for n in kept], dtype=np.int64),
        len(features),
        np.array(rows, dtype=np.int64),
        np.array(columns, dtype=np.int64),
    )


def _confirmed(
    prompts: _Prompts, features: Sequence[Feature], groups: int, keyness: Keyness
) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]]":
    """Which features of which group are found, [g, f]: more than of the others, and with any one
    wording left out."""
    found = (keyness.q <= LEVEL) & (keyness.log_odds > 0)
    there = {wording for own in prompts.wordings for wording in own}
    if len(there) > 1 and found.any():
        for wording in sorted(there):
            left = measure_keyness(_table(prompts, features, groups, wording), deals=0)
            found &= (left.p <= LEVEL) & (left.log_odds > 0)
    return found
