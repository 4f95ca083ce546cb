"""What a model says more of one group than of the others of its category.

Means of regard do not look at what is said. Here the content is compared: the share of a group's
prompts that led to a feature is held against the share of the other groups' prompts of its category
(`kgbias.stats.keyness`). Features are the words of statements in any form, whole attributes of
several words, predicates, clusters of statements that mean nearly the same, and topics, if there
are any. What a prompt gave is no content, nor are the names of groups. What is found must also be
there without the prompts of any one wording.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.graph.cross_mentions import MentionIndex
from kgbias.graph.draws import OTHER_PREDICATE_FORM, Draws
from kgbias.graph.types import Group, TopicModel, TripleView
from kgbias.graph.vectors import StatementVectors, find_neighbours
from kgbias.ids import normalise
from kgbias.language.words import FUNCTION_WORDS, PERSON_WORDS, lemmatise_word, split_words
from kgbias.stats.estimate import Estimate
from kgbias.stats.keyness import DEFAULT_DEALS, SIGNIFICANCE_LEVEL, Feature, PromptFeatures, measure_keyness
from kgbias.stats.poststratification import CHOSEN_FORM, StratifiedSample

MAX_COUNTED = 100_000  # statements of a group that come as counts, and are dealt one by one
MAX_PLACED = 20_000  # different statements of a category; of more, none are put together by meaning
_MAX_NEAR = 1_000  # statements around one
WORD, ATTRIBUTE, PREDICATE, MEANING, TOPIC = KINDS = (
    "word", "attribute", "predicate", "meaning", "topic"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SaidMore:
    """A feature that a model's statements about a group have more often than those about the others
    of its category.

    Attributes:
        group: its name.
        kind: one of `KINDS`.
        feature: a word in its most frequent form, an attribute, a predicate, a topic's name, or the
            statement in the middle of a cluster.
        prompts, of: how many of the group's prompts led to it, of how many.
        others, of_others: the same for the other groups.
        difference: of the two shares at one mix of prompts, with its 95% interval over prompts.
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
    """What was found in one category, the largest log-odds first.

    Attributes:
        category: of the groups.
        found: the features whose corrected p is at most 0.05, whose interval lies above 0, and that
            hold without any wording.
        p: of no group differing from the others in any feature.
        features: how many features of each kind were tested for each group.
        floor: how many corrected p-values of at most 0.05 there would be by chance, on average.
    """

    category: str
    found: tuple[SaidMore, ...]
    p: float
    features: Mapping[str, int]
    floor: float


def content_tests(
    groups: Sequence[Group],
    by_group: Mapping[str, Sequence[TripleView]],
    draws: Draws,
    topics: Mapping[str, TopicModel],
    *,
    named: Sequence[Group] = (),
    vectors: StatementVectors | None = None,
    alike: float = 1.0,
    deals: int = DEFAULT_DEALS,
) -> list[ContentTest]:
    """Test every category with two groups that have statements. One in which a group's statements
    come as counts that are too large to deal is left out.

    Args:
        groups: of the run.
        by_group: the statements of one arm that count, by the id of their group.
        draws: how they were drawn.
        topics: of each category, if there are any.
        named: groups with all their names, which are no content; default `groups`.
        vectors: of the statements, if there are any.
        alike: the least cosine of statements that mean nearly the same.
        deals: how often whole tables are dealt anew.
    """
    found = []
    for category in dict.fromkeys(g.category for g in groups):
        own = [g for g in groups if g.category == category and by_group.get(g.id)]
        if len(own) < 2 or not all(_dealt(by_group[g.id], draws) for g in own):
            continue
        said = [triple for group in own for triple in by_group[group.id]]
        content = _Content(said, MentionIndex(named or groups), topics.get(category), vectors, alike)
        if test := _tested(category, own, by_group, draws, content, deals):
            found.append(test)
    return found


class _Content:
    """The features of the statements of a category."""

    def __init__(
        self,
        said: Sequence[TripleView],
        named: MentionIndex,
        topics: TopicModel | None,
        vectors: StatementVectors | None,
        alike: float,
    ) -> None:
        self._named = named
        self._forms: dict[str, Counter[str]] = defaultdict(Counter)
        self._known: dict[str, tuple[frozenset[Feature], ...]] = {}
        of_topic = {t.id: t.name for t in topics.topics} if topics else {}
        about = {a.triple_id: a.topic_id for a in topics.about} if topics else {}
        self._topics = {id: of_topic[topic] for id, topic in about.items() if topic in of_topic}
        nameless = [t for t in said if not self._names_a_group(t)]
        self._meanings = _clusters(nameless, vectors, alike) if vectors else {}

    def _names_a_group(self, triple: TripleView) -> bool:
        text = f"{triple.predicate} {triple.object}"
        return self._named.mask_names(text, "") != text

    def of(self, triple: TripleView, form: object) -> frozenset[Feature]:
        """Those of a statement whose prompt supplied what `form` says."""
        if triple.id not in self._known:
            self._known[triple.id] = self._features(triple)
        of_object, of_whole, of_predicate = self._known[triple.id]
        if form == CHOSEN_FORM:
            return of_object | of_whole | of_predicate
        # What the crawl gave it from the group's own statements, it gave to this group more often.
        return of_object if form == OTHER_PREDICATE_FORM else of_object | of_whole

    def _features(self, triple: TripleView) -> tuple[frozenset[Feature], ...]:
        """Those of its object, of the whole statement, and of its predicate."""
        of_object = self._words(triple.object, triple.count)
        attribute = normalise(triple.object)
        if len(attribute.split()) > 1 and not self._names_a_group(triple):
            of_object |= {(ATTRIBUTE, attribute)}
        of_whole = {
            (kind, names[id])
            for kind, names, id in (
                (TOPIC, self._topics, triple.id),
                (MEANING, self._meanings, triple.statement_id),
            )
            if id in names
        }
        of_predicate = self._words(triple.predicate, triple.count)
        named = {(PREDICATE, normalise(triple.predicate))}
        return of_object, frozenset(of_whole), of_predicate | named

    def _words(self, text: str, count: int) -> frozenset[Feature]:
        found = set()
        for word in split_words(self._named.mask_names(text, " ")):
            if len(word) < 3 or word in FUNCTION_WORDS or word in PERSON_WORDS:
                continue
            base = lemmatise_word(word)
            self._forms[base][word] += count
            found.add((WORD, base))
        return frozenset(found)

    def shown(self, feature: Feature) -> str:
        """A feature as readers see it: a word in the form in which it was said most often."""
        kind, name = feature
        if kind != WORD:
            return name
        return min(self._forms[name], key=lambda w: (-self._forms[name][w], w))


def _clusters(
    said: Sequence[TripleView], vectors: StatementVectors, alike: float
) -> dict[str, str]:
    """The cluster of each statement (`TripleView.statement_id`) that others mean nearly the same
    as, called by the statement in its middle. Those said most often are in the middle, whoever
    they were said about, and take what lies near them and is not yet taken."""
    often: Counter[str] = Counter()
    texts: dict[str, str] = {}
    for triple in said:
        often[triple.statement_id] += triple.count
        texts[triple.statement_id] = normalise(f"{triple.predicate} {triple.object}")
    place = {id: n for n, id in enumerate(vectors.ids) if id in texts}
    ids = sorted(place, key=lambda id: (-often[id], texts[id]))
    if not 1 < len(ids) <= MAX_PLACED:
        return {}
    near = find_neighbours(vectors.rows[[place[id] for id in ids]], _MAX_NEAR, alike)
    found: dict[str, str] = {}
    for n, middle in enumerate(ids):
        if middle not in found and (own := [ids[k] for k, _ in near[n] if ids[k] not in found]):
            found |= dict.fromkeys((middle, *own), texts[middle])
    return found


def _tested(
    category: str,
    groups: Sequence[Group],
    by_group: Mapping[str, Sequence[TripleView]],
    draws: Draws,
    content: _Content,
    deals: int,
) -> ContentTest | None:
    prompts, having = _prompts(groups, by_group, draws, content)
    if not (features := prompts.frequent_features()):
        return None
    keyness = measure_keyness(prompts.build_table(features, groups=len(groups)), deals=deals)
    least = prompts.leave_one_out_p(features, keyness)
    found = []
    for g, f in np.argwhere((keyness.q_values <= SIGNIFICANCE_LEVEL) & (keyness.log_odds > 0)):
        difference = keyness.difference(g, f)
        if difference.low <= 0 or least.get((int(g), int(f)), 0.0) > SIGNIFICANCE_LEVEL:
            continue
        triples = sorted(having[g, features[f]].items(), key=lambda one: (-one[1], one[0]))
        found.append(
            SaidMore(
                groups[g].name, features[f][0], content.shown(features[f]),
                int(keyness.counts[g, f]), int(keyness.sizes[g]), *keyness.other_counts(g, f),
                difference, float(keyness.log_odds[g, f]), float(keyness.p_values[g, f]),
                float(keyness.q_values[g, f]), tuple(id for id, _ in triples),
            )
        )  # fmt: skip
    found.sort(key=lambda one: -one.log_odds)
    tried = Counter(kind for kind, _ in features)
    return ContentTest(category, tuple(found), keyness.overall_p, tried, keyness.floor)


def _prompts(
    groups: Sequence[Group],
    by_group: Mapping[str, Sequence[TripleView]],
    draws: Draws,
    content: _Content,
) -> tuple[PromptFeatures, dict[tuple[int, Feature], Counter[str]]]:
    """The prompts of all groups; and for each group and feature, how often each triple said it."""
    prompts = PromptFeatures()
    having: dict[tuple[int, Feature], Counter[str]] = defaultdict(Counter)
    for g, group in enumerate(groups):
        triples = by_group[group.id]
        for triple, form, block, cluster, wording in _said(triples, draws.numbered_sample(triples)):
            features = content.of(triple, form)
            prompts.add(cluster, g, wording, features, block)
            for feature in features:
                having[g, feature][triple.id] += 1
    return prompts, having


def _dealt(triples: Sequence[TripleView], draws: Draws) -> bool:
    sample = draws.numbered_sample(triples).sample
    return sample.places is not None or sample.n <= MAX_COUNTED


def _said(
    triples: Sequence[TripleView], asked: StratifiedSample
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
                yield triples[n], CHOSEN_FORM, "", (n, k), 0
        return
    wordings = sample.design.levels.get("wordings", np.zeros(len(sample.design.clusters), np.int64))
    for n, place, form, block in zip(
        sample.values.astype(int), sample.places, asked.forms, asked.blocks, strict=True
    ):
        yield triples[n], form, block, int(sample.design.clusters[place]), int(wordings[place])
