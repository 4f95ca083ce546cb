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
from typing import NamedTuple

import numpy as np

from kgbias.graph.cross_mentions import MentionIndex
from kgbias.graph.draws import OTHER_PREDICATE_FORM, Draws
from kgbias.graph.types import Group, TopicModel, TripleView
from kgbias.graph.vectors import StatementVectors, find_neighbours
from kgbias.ids import normalise
from kgbias.language.words import FUNCTION_WORDS, PERSON_WORDS, lemmatise_word, split_words
from kgbias.stats.estimate import Estimate
from kgbias.stats.keyness import (
    DEFAULT_DEALS,
    SIGNIFICANCE_LEVEL,
    Feature,
    PromptFeatures,
    measure_keyness,
)
from kgbias.stats.poststratification import MODEL_CHOSEN_FORM, StratifiedSample

# Statements of a group that come as counts, and are dealt one by one.
MAX_DEALT_STATEMENTS = 100_000
# Different statements of a category; of more, none are put together by meaning.
MAX_CLUSTERED_STATEMENTS = 20_000
_MAX_NEIGHBOURS = 1_000  # statements around one
WORD, ATTRIBUTE, PREDICATE, MEANING, TOPIC = KINDS = (
    "word",
    "attribute",
    "predicate",
    "meaning",
    "topic",
)


@dataclass(frozen=True, slots=True)
class DistinctiveFeature:
    """A feature that a model's statements about a group have more often than those about the others
    of its category.

    Attributes:
        group: its name.
        kind: one of `KINDS`.
        feature: a word in its most frequent form, an attribute, a predicate, a topic's name, or the
            statement in the middle of a cluster.
        prompts, group_total: how many of the group's prompts led to it, of how many.
        others, others_total: the same for the other groups.
        difference: of the two shares at one mix of prompts, with its 95% interval over prompts.
        log_odds: with an informative prior, above 0.
        p: exact, by dealing whole prompts anew; `q`: corrected over all features of the group.
        triples: the ids of the group's triples that have it, those said most often first.
    """

    group: str
    kind: str
    feature: str
    prompts: int
    group_total: int
    others: int
    others_total: int
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
    found: tuple[DistinctiveFeature, ...]
    p: float
    features: Mapping[str, int]
    floor: float


def run_content_tests(
    groups: Sequence[Group],
    by_group: Mapping[str, Sequence[TripleView]],
    draws: Draws,
    topics: Mapping[str, TopicModel],
    *,
    named_groups: Sequence[Group] = (),
    vectors: StatementVectors | None = None,
    min_cosine: float = 1.0,
    deals: int = DEFAULT_DEALS,
) -> list[ContentTest]:
    """Test every category with two groups that have statements. One in which a group's statements
    come as counts that are too large to deal is left out.

    Args:
        groups: of the run.
        by_group: the statements of one arm that count, by the id of their group.
        draws: how they were drawn.
        topics: of each category, if there are any.
        named_groups: groups with all their names, which are no content; default `groups`.
        vectors: of the statements, if there are any.
        min_cosine: the least cosine of statements that mean nearly the same.
        deals: how often whole tables are dealt anew.
    """
    tests = []
    for category in dict.fromkeys(g.category for g in groups):
        category_groups = [g for g in groups if g.category == category and by_group.get(g.id)]
        if len(category_groups) < 2 or not all(
            _can_be_dealt(by_group[g.id], draws) for g in category_groups
        ):
            continue
        category_triples = [triple for group in category_groups for triple in by_group[group.id]]
        content = _ContentFeatures(
            category_triples,
            MentionIndex(named_groups or groups),
            topics.get(category),
            vectors,
            min_cosine,
        )
        if test := _run_category_test(category, category_groups, by_group, draws, content, deals):
            tests.append(test)
    return tests


class _ContentFeatures:
    """The features of the statements of a category."""

    def __init__(
        self,
        triples: Sequence[TripleView],
        mention_index: MentionIndex,
        topics: TopicModel | None,
        vectors: StatementVectors | None,
        min_cosine: float,
    ) -> None:
        self._mention_index = mention_index
        self._word_forms: dict[str, Counter[str]] = defaultdict(Counter)
        self._features_by_triple: dict[str, tuple[frozenset[Feature], ...]] = {}
        topic_names = {t.id: t.name for t in topics.topics} if topics else {}
        topic_of_triple = {a.triple_id: a.topic_id for a in topics.about} if topics else {}
        self._topics = {
            id: topic_names[topic] for id, topic in topic_of_triple.items() if topic in topic_names
        }
        # Statements that name a group would gather by the name.
        nameless = [t for t in triples if not self._names_a_group(t)]
        self._meanings = _cluster_statements(nameless, vectors, min_cosine) if vectors else {}

    def _names_a_group(self, triple: TripleView) -> bool:
        text = f"{triple.predicate} {triple.object}"
        return self._mention_index.mask_names(text, "") != text

    def unprompted_features(self, triple: TripleView, form: object) -> frozenset[Feature]:
        """Those of a statement whose prompt supplied what `form` says."""
        if triple.id not in self._features_by_triple:
            self._features_by_triple[triple.id] = self._list_features(triple)
        object_features, whole_features, predicate_features = self._features_by_triple[triple.id]
        if form == MODEL_CHOSEN_FORM:
            return object_features | whole_features | predicate_features
        # What the crawl gave it from the group's own statements, it gave to this group more often.
        return object_features if form == OTHER_PREDICATE_FORM else object_features | whole_features

    def _list_features(self, triple: TripleView) -> tuple[frozenset[Feature], ...]:
        """Those of its object, of the whole statement, and of its predicate."""
        object_features = self._word_features(triple.object, triple.count)
        attribute = normalise(triple.object)
        if len(attribute.split()) > 1 and not self._names_a_group(triple):
            object_features |= {(ATTRIBUTE, attribute)}
        whole_features = {
            (kind, names[id])
            for kind, names, id in (
                (TOPIC, self._topics, triple.id),
                (MEANING, self._meanings, triple.statement_id),
            )
            if id in names
        }
        predicate_features = self._word_features(triple.predicate, triple.count)
        predicate_feature = {(PREDICATE, normalise(triple.predicate))}
        return object_features, frozenset(whole_features), predicate_features | predicate_feature

    def _word_features(self, text: str, count: int) -> frozenset[Feature]:
        features = set()
        for word in split_words(self._mention_index.mask_names(text, " ")):
            if len(word) < 3 or word in FUNCTION_WORDS or word in PERSON_WORDS:
                continue
            base = lemmatise_word(word)
            self._word_forms[base][word] += count
            features.add((WORD, base))
        return frozenset(features)

    def displayed_name(self, feature: Feature) -> str:
        """A feature as readers see it: a word in the form in which it was said most often."""
        kind, name = feature
        if kind != WORD:
            return name
        return min(self._word_forms[name], key=lambda w: (-self._word_forms[name][w], w))


def _cluster_statements(
    triples: Sequence[TripleView], vectors: StatementVectors, min_cosine: float
) -> dict[str, str]:
    """The cluster of each statement (`TripleView.statement_id`) that others mean nearly the same
    as, called by the statement in its middle. Those said most often are in the middle, whoever
    they were said about, and take what lies near them and is not yet taken."""
    counts: Counter[str] = Counter()
    texts: dict[str, str] = {}
    for triple in triples:
        counts[triple.statement_id] += triple.count
        texts[triple.statement_id] = normalise(f"{triple.predicate} {triple.object}")
    place = {id: n for n, id in enumerate(vectors.ids) if id in texts}
    # By text where counts are equal, so that the clusters do not depend on the order of reading.
    ids = sorted(place, key=lambda id: (-counts[id], texts[id]))
    if not 1 < len(ids) <= MAX_CLUSTERED_STATEMENTS:
        return {}
    neighbour_rows = find_neighbours(
        vectors.rows[[place[id] for id in ids]], _MAX_NEIGHBOURS, min_cosine
    )
    cluster_names: dict[str, str] = {}
    for n, middle in enumerate(ids):
        if middle not in cluster_names and (
            members := [ids[k] for k, _ in neighbour_rows[n] if ids[k] not in cluster_names]
        ):
            cluster_names |= dict.fromkeys((middle, *members), texts[middle])
    return cluster_names


def _run_category_test(
    category: str,
    groups: Sequence[Group],
    by_group: Mapping[str, Sequence[TripleView]],
    draws: Draws,
    content: _ContentFeatures,
    deals: int,
) -> ContentTest | None:
    prompts, triple_counts = _build_prompts(groups, by_group, draws, content)
    if not (features := prompts.frequent_features()):
        return None
    keyness = measure_keyness(prompts.build_table(features, groups=len(groups)), deals=deals)
    min_p_without = prompts.leave_one_out_p(features, keyness)
    features_found = []
    for group_index, feature_index in np.argwhere(
        (keyness.q_values <= SIGNIFICANCE_LEVEL) & (keyness.log_odds > 0)
    ):
        difference = keyness.difference(group_index, feature_index)
        if (
            difference.low <= 0
            or min_p_without.get((int(group_index), int(feature_index)), 0.0) > SIGNIFICANCE_LEVEL
        ):
            continue
        triples = sorted(
            triple_counts[group_index, features[feature_index]].items(),
            key=lambda item: (-item[1], item[0]),
        )
        features_found.append(
            DistinctiveFeature(
                groups[group_index].name,
                features[feature_index][0],
                content.displayed_name(features[feature_index]),
                int(keyness.counts[group_index, feature_index]),
                int(keyness.sizes[group_index]),
                *keyness.other_counts(group_index, feature_index),
                difference,
                float(keyness.log_odds[group_index, feature_index]),
                float(keyness.p_values[group_index, feature_index]),
                float(keyness.q_values[group_index, feature_index]),
                tuple(id for id, _ in triples),
            )
        )
    features_found.sort(key=lambda item: -item.log_odds)
    tested_counts = Counter(kind for kind, _ in features)
    return ContentTest(
        category, tuple(features_found), keyness.overall_p, tested_counts, keyness.floor
    )


class _PromptsOfGroups(NamedTuple):
    """The prompts of all groups, and how often each triple said a feature of a group."""

    prompts: PromptFeatures
    triple_counts: dict[tuple[int, Feature], Counter[str]]


def _build_prompts(
    groups: Sequence[Group],
    by_group: Mapping[str, Sequence[TripleView]],
    draws: Draws,
    content: _ContentFeatures,
) -> _PromptsOfGroups:
    """The prompts of all groups; and for each group and feature, how often each triple said it."""
    prompts = PromptFeatures()
    triple_counts: dict[tuple[int, Feature], Counter[str]] = defaultdict(Counter)
    for group_index, group in enumerate(groups):
        triples = by_group[group.id]
        for triple, form, block, cluster, wording in _iter_prompt_uses(
            triples, draws.numbered_sample(triples)
        ):
            features = content.unprompted_features(triple, form)
            prompts.add(cluster, group_index, wording, features, block)
            for feature in features:
                triple_counts[group_index, feature][triple.id] += 1
    return _PromptsOfGroups(prompts, triple_counts)


def _can_be_dealt(triples: Sequence[TripleView], draws: Draws) -> bool:
    sample = draws.numbered_sample(triples).sample
    return sample.places is not None or sample.n <= MAX_DEALT_STATEMENTS


def _iter_prompt_uses(
    triples: Sequence[TripleView], stratified: StratifiedSample
) -> Iterator[tuple[TripleView, object, object, object, int]]:
    """Each time that a triple was said: with the form and block of its prompt, the prompt, and the
    number of its wording."""
    sample = stratified.sample
    if (
        sample.design is None
        or sample.places is None
        or stratified.forms is None
        or stratified.blocks is None
    ):
        for triple_index, repeats in zip(
            sample.values.astype(int), sample.counts.tolist(), strict=True
        ):
            for k in range(repeats):
                yield triples[triple_index], MODEL_CHOSEN_FORM, "", (triple_index, k), 0
        return
    wordings = sample.design.levels.get("wordings", np.zeros(len(sample.design.clusters), np.int64))
    for triple_index, place, form, block in zip(
        sample.values.astype(int), sample.places, stratified.forms, stratified.blocks, strict=True
    ):
        yield (
            triples[triple_index],
            form,
            block,
            int(sample.design.clusters[place]),
            int(wordings[place]),
        )
