"""Topics by BERTopic (Grootendorst 2022), made reproducible: equal statements give equal topics.
Topics are found in the lemmas of predicate and object, without stop words.

Coherence: do the words of a topic belong together? Normalised pointwise mutual information (Bouma
2009), with p(x) the share of documents that contain x,

    NPMI(a, b) = log(p(a, b) / (p(a) p(b))) / -log p(a, b)

is 1 for words that only occur together, 0 for independent ones and -1 for words that never do. Its
mean over the pairs of a topic's best words agrees with people's ratings of topics (Lau, Newman and
Baldwin 2014). The documents are the statements that the topics were found in. These are a few words
long, so most pairs never meet and good topics lie below 0: compare topics only with each other.

Stability: would the topics be found again if the same documents were clustered with other seeds?
Two clusterings agree as far as they put the same pairs of documents together: the adjusted Rand
index (Hubert and Arabie 1985) is 1 if they are equal and about 0 if they agree no more than by
chance. Documents in no topic count as a class of their own, since a document that falls out of its
topic has moved. A single topic is as stable as its best Jaccard overlap with a topic of another
seed, averaged over the seeds; below 0.6 it should not be trusted (Hennig 2007,
"Cluster-wise assessment of cluster stability").

Other seeds keep the statements, so they do not say whether there were enough of them. Therefore
topics are also found without a fifth of the documents, each fifth left out in turn: of the pairs of
documents that share a topic, the share that still do is *kept* (a topic's own pairs for one topic).
By chance it would be the share of all pairs that are then together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import combinations
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import MissingExtra, UsageError
from kgbias.measure.embedding import TextVectors, Vectors
from kgbias.measure.topics.settings import (
    MIN_CLUSTER_SIZE,
    SEED_COUNT,
    STATEMENTS_PER_MIN_SIZE,
    TopicSettings,
)
from kgbias.models import english
from kgbias.parallel.local import keeping_threads

_MAX_CHARACTERS = 2000  # characters read of a text
_SENTENCE_START = "They "  # spaCy's model reads a statement as a sentence


def lemmatiser_name() -> str:
    """What `lemmatise` uses here: spaCy's English model if it is installed, which can tell from the
    sentence that "left" comes from "leave" in "left home", or else its table of lemmas."""
    if english.is_installed():
        return f"{english.MODEL_NAME}, English stop words"
    return "spacy lookup lemmas, English stop words"


def lemmatise(texts: Sequence[str]) -> list[str]:
    """Each text as its lemmas in lower case, joined by spaces, without stop words, punctuation and
    space. A text of stop words alone ("are not") keeps them; one of punctuation alone becomes "".

    The lemmas are English; other scripts pass unchanged."""
    pipeline, sentence_start = _pipeline()
    docs = pipeline.pipe([sentence_start + text[:_MAX_CHARACTERS] for text in texts])
    return [
        _kept_lemmas([token for token in doc if token.idx >= len(sentence_start)]) for doc in docs
    ]


def _kept_lemmas(tokens: Sequence[Any]) -> str:
    words = [t for t in tokens if not (t.is_punct or t.is_space or not t.text.strip())]
    content_tokens = [t for t in words if not (t.is_stop or t.lower_ in _contractions())]
    return " ".join(t.lemma_.lower() for t in content_tokens or words)


@cache
def _contractions() -> frozenset[str]:
    """What spaCy splits off "can't" and "gonna", in lower case."""
    return frozenset(("ca", "wo", "n't", "n’t", "'s", "’s", "gon", "na"))


@cache
def _pipeline() -> tuple[Any, str]:
    """The pipeline, and the words to put before a text."""
    if english.is_installed():
        return english.load_english("tagger", "attribute_ruler", "lemmatizer"), _SENTENCE_START
    try:
        import spacy
        import spacy_lookups_data  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "spacy", extra="topics") from error
    pipeline = spacy.blank("en")
    pipeline.add_pipe("lemmatizer", config={"mode": "lookup"})
    pipeline.initialize()
    return pipeline, ""


TopicLabels = NDArray[np.int64]  # the topic of each document, -1 for none


def mean_adjusted_rand(labels: Sequence[TopicLabels]) -> float:
    """The mean adjusted Rand index over all pairs of clusterings of the same documents, at most
    1."""
    try:
        from sklearn.metrics import adjusted_rand_score
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "scikit-learn", extra="topics") from error
    pairs = combinations(labels, 2)
    return float(np.mean([adjusted_rand_score(one, other) for one, other in pairs]))


def topic_overlaps(labels: TopicLabels, other_labels: Sequence[TopicLabels]) -> list[float]:
    """For each topic of a clustering, in order of number: the Jaccard overlap with the topic of
    another clustering that it shares most with, averaged over the other clusterings; in [0, 1]."""
    return [
        float(np.mean([_best_overlap(labels == number, other) for other in other_labels]))
        for number in np.unique(labels[labels >= 0])
    ]


def _best_overlap(topic: NDArray[np.bool_], other_labels: TopicLabels) -> float:
    overlaps_found = [
        float((topic & (other_labels == number)).sum() / (topic | (other_labels == number)).sum())
        for number in np.unique(other_labels[topic])
        if number >= 0
    ]
    return max(overlaps_found, default=0.0)


FOLD_COUNT = 5
_LEFT_OUT_LABEL = -2


def kept_pair_shares(
    labels: TopicLabels, other_clusterings: Sequence[TopicLabels]
) -> list[float | None]:
    """For each topic of a clustering, in order of number: the share of the pairs of its documents
    that are together in other clusterings too, in [0, 1], over all of their pairs. A document that
    another clustering left out is -2 there. None for a topic without such a pair."""
    shares = []
    for number in np.unique(labels[labels >= 0]):
        other_labels = [
            other[(labels == number) & (other != _LEFT_OUT_LABEL)] for other in other_clusterings
        ]
        pairs = sum(_count_pairs(len(labels_of_topic)) for labels_of_topic in other_labels)
        joined_pairs = sum(_count_joined_pairs(labels_of_topic) for labels_of_topic in other_labels)
        shares.append(joined_pairs / pairs if pairs else None)
    return shares


class KeptShare(NamedTuple):
    """The share of pairs that stay together, and what it would be by chance."""

    kept: float
    by_chance: float


def overall_kept_share(labels: TopicLabels, other_clusterings: Sequence[TopicLabels]) -> KeptShare:
    """The same over the pairs of all topics, and what it would be by chance: the share of all pairs
    that are together in the other clusterings; NaN without pairs."""
    clustered_labels = [other[other != _LEFT_OUT_LABEL] for other in other_clusterings]
    topics = np.unique(labels[labels >= 0])
    labels_by_topic = [
        o[(labels == n) & (o != _LEFT_OUT_LABEL)] for o in other_clusterings for n in topics
    ]
    pairs, every = (
        sum(_count_pairs(len(x)) for x in labels_by_topic),
        sum(_count_pairs(len(x)) for x in clustered_labels),
    )
    if not pairs or not every:
        return KeptShare(float("nan"), float("nan"))
    return KeptShare(
        sum(map(_count_joined_pairs, labels_by_topic)) / pairs,
        sum(map(_count_joined_pairs, clustered_labels)) / every,
    )


def _count_pairs(n: int) -> int:
    return n * (n - 1) // 2


def _count_joined_pairs(labels: TopicLabels) -> int:
    """The pairs that share a topic."""
    return sum(_count_pairs(int(n)) for n in np.unique(labels[labels >= 0], return_counts=True)[1])


COHERENCE_METHOD = "mean NPMI of the words' pairs in the statements (Lau et al. 2014)"


def topic_coherences(
    topics: Sequence[Sequence[str]], documents: Sequence[str]
) -> list[float | None]:
    """The coherence of the words of each topic in these documents (words joined by spaces), in
    [-1, 1]; None for a topic of a single word."""
    documents_by_word: dict[str, set[int]] = {word: set() for words in topics for word in words}
    for number, document in enumerate(documents):
        for word in documents_by_word.keys() & document.split():
            documents_by_word[word].add(number)
    return [
        _words_coherence([documents_by_word[word] for word in words], len(documents))
        for words in topics
    ]


def _words_coherence(document_sets: Sequence[set[int]], documents: int) -> float | None:
    """The mean NPMI of words, given the documents that contain each."""
    values = [
        _npmi(len(a), len(b), len(a & b), documents) for a, b in combinations(document_sets, 2)
    ]
    return sum(values) / len(values) if values else None


def _npmi(first_count: int, second_count: int, joint_count: int, documents: int) -> float:
    if not joint_count:  # the limit as p(a, b) goes to 0
        return -1.0
    if joint_count == documents:  # -log p(a, b) would be 0
        return 1.0
    return log(joint_count * documents / (first_count * second_count)) / -log(
        joint_count / documents
    )


MIN_DISTINCT_VECTORS = 20  # distinct vectors; with fewer, there is nothing to cluster
_NUMBA_CONFIG = ".numba_config.yaml"  # read from the current folder, which may be a stranger's
_UMAP_DIMENSIONS, _UMAP_NEIGHBOURS = 5, 15  # of UMAP, BERTopic's own


@dataclass(frozen=True, slots=True)
class TopicFit:
    """The topics of documents.

    Attributes:
        topics: the words of each, largest topic first.
        labels: the topic of each document, -1 for none.
        strengths: the cluster membership in [0, 1], 0 if HDBSCAN left the document out.
        coherences: that of each topic's words.
        stabilities: each topic's overlap with the nearest topic of other seeds, in [0, 1].
        kept_shares: the share of each topic's pairs of documents that share a topic without a fifth
            of the documents, in [0, 1]; None for a topic without pairs.
        settings: everything that the outcome depends on, and what is known about it as a whole.
    """

    topics: tuple[tuple[str, ...], ...]
    labels: tuple[int, ...]
    strengths: tuple[float, ...]
    coherences: tuple[float | None, ...]
    stabilities: tuple[float, ...]
    kept_shares: tuple[float | None, ...]
    settings: dict[str, Any]


def fit_topics(
    documents: Sequence[str],
    vectors: TextVectors,
    settings: TopicSettings,
    *,
    statements: int | None = None,
    advance: Callable[[], None] = lambda: None,
) -> TopicFit:
    """Topics of lemmatised documents: vectors, UMAP, HDBSCAN, and class-based TF-IDF for the words;
    found with five seeds, of which the first gives the topics and the others say how stable they
    are, and with the first seed five times more, without a fifth of the documents.

    `statements` is how many statements the documents stand for (None: one each); `advance` is
    called each time that topics were found. The documents are sorted first and UMAP is seeded, so
    that neither their order nor chance affects the outcome. An empty document has no topic; nor has
    any document if fewer than 20 of them have different vectors, or if HDBSCAN finds no cluster."""
    order = sorted((n for n, text in enumerate(documents) if text), key=lambda n: documents[n])
    texts = [documents[n] for n in order]
    size = settings.min_topic_statements(len(documents) if statements is None else statements)
    labels, strengths = [-1] * len(documents), [0.0] * len(documents)
    words: tuple[tuple[str, ...], ...] = ()
    coherence_values: tuple[float | None, ...] = ()
    stabilities: tuple[float, ...] = ()
    kept_shares: tuple[float | None, ...] = ()
    rand_index = kept_share = chance_share = None
    outliers = len(texts)
    rows = (
        _embed_distinct(texts, vectors) if len(texts) >= MIN_DISTINCT_VECTORS else np.zeros((0, 1))
    )
    distinct = len(np.unique(rows, axis=0))
    if distinct >= MIN_DISTINCT_VECTORS:
        clusterings = []
        for seed in range(settings.seed, settings.seed + SEED_COUNT):
            clusterings.append(cluster_rows(rows, size, seed, settings))
            advance()
        raw_labels, strength = clusterings[0]
        outliers = int((raw_labels < 0).sum())
        settled_labels = [
            _settle_labels(cluster_labels, rows, settings) for cluster_labels, _ in clusterings
        ]
        if (settled_labels[0] >= 0).any():
            # These numbers are stored: the last bits differ between processors.
            rand_index = round(mean_adjusted_rand(settled_labels), 6)
            stabilities = tuple(
                round(overlap, 6)
                for overlap in topic_overlaps(settled_labels[0], settled_labels[1:])
            )
            fold_labels = [
                _cluster_without_fold(rows, size, n, settings, advance) for n in range(FOLD_COUNT)
            ]
            kept_shares = tuple(
                None if share is None else round(share, 6)
                for share in kept_pair_shares(settled_labels[0], fold_labels)
            )
            kept_share, chance_share = (
                round(share, 6) for share in overall_kept_share(settled_labels[0], fold_labels)
            )
            words = _topic_words(texts, settled_labels[0], settings.words)
            coherence_values = tuple(
                None if value is None else round(value, 6)
                for value in topic_coherences(words, texts)
            )
        for place, label, member in zip(order, settled_labels[0], strength, strict=True):
            labels[place], strengths[place] = int(label), float(member)
    record = {
        "documents": len(documents),
        "empty": len(documents) - len(texts),
        "distinct": distinct,
        "min_cluster_size": size,
        "min_cluster_size_rule": f"statements / {STATEMENTS_PER_MIN_SIZE}, at least "
        f"{MIN_CLUSTER_SIZE}"
        if settings.min_topic_size is None
        else "given",
        "cluster_selection": settings.clusters,
        "outliers_before": outliers,
        "outliers": sum(label < 0 for label in labels) - (len(documents) - len(texts)),
        "outlier_rule": settings.outliers,
        "adjusted_rand": rand_index,
        "kept": kept_share,
        "kept_by_chance": chance_share,
        "coherence": COHERENCE_METHOD,
        "embedding": vectors.name,
        "embedding_version": vectors.version,
        "lemmatiser": lemmatiser_name(),
        "umap": {
            "components": _UMAP_DIMENSIONS,
            "neighbours": _UMAP_NEIGHBOURS,
            "metric": "cosine",
        },
        "seed": settings.seed,
        "seeds": SEED_COUNT,
        "entropy": settings.entropy,
        "versions": _package_versions(),
    }
    return TopicFit(
        words, tuple(labels), tuple(strengths), coherence_values, stabilities, kept_shares, record
    )


def _cluster_without_fold(
    rows: Vectors, size: int, fold: int, settings: TopicSettings, advance: Callable[[], None]
) -> TopicLabels:
    """The topics of the rows without one fifth of them (-2), at random but the same each time. The
    fewest that make a topic are four fifths as many."""
    order = np.random.Generator(np.random.PCG64(settings.seed)).permutation(len(rows))
    # Every fifth of one shuffled order: the folds are disjoint and of equal size.
    kept_places = np.sort(np.delete(order, np.arange(fold, len(rows), FOLD_COUNT)))
    min_size = max(2, round(size * (FOLD_COUNT - 1) / FOLD_COUNT))
    labels = np.full(len(rows), _LEFT_OUT_LABEL, dtype=np.int64)
    raw_labels, _ = cluster_rows(rows[kept_places], min_size, settings.seed, settings)
    labels[kept_places] = _settle_labels(raw_labels, rows[kept_places], settings)
    advance()
    return labels


def _embed_distinct(texts: Sequence[str], vectors: TextVectors) -> Vectors:
    # Equal statements get equal rows, whatever shares their batch, and each is read once.
    distinct = list(dict.fromkeys(texts))
    place = {text: n for n, text in enumerate(distinct)}
    return vectors.embed(distinct)[[place[text] for text in texts]]


class ClusteredRows(NamedTuple):
    """The cluster of each row, -1 for none, and the strength of its membership."""

    labels: TopicLabels
    strengths: NDArray[np.float64]


def cluster_rows(
    rows: Vectors,
    size: int,
    seed: int,
    settings: TopicSettings,
    *,
    dimensions: int = _UMAP_DIMENSIONS,
) -> ClusteredRows:
    """The cluster of each row, -1 for none, and the strength of its membership."""
    try:
        from hdbscan import HDBSCAN

        umap = load_umap()
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "hdbscan", extra="topics") from error
    import warnings

    def embed_rows(init: str) -> Any:
        return umap(
            # UMAP refuses more neighbours than there are other points.
            n_neighbors=min(_UMAP_NEIGHBOURS, len(rows) - 1),
            # A spectral layout takes one eigenvector more, and must have fewer than points.
            n_components=min(dimensions, len(rows) - 2),
            # points that belong together are packed: a layout to cluster, not to look at
            min_dist=0.0,
            metric="cosine",
            random_state=seed,
            init=init,
            n_jobs=1,  # UMAP repeats itself with a seed only on one thread, and warns otherwise
        ).fit_transform(rows)

    with warnings.catch_warnings(), keeping_threads():
        warnings.simplefilter("ignore")  # deprecations within the libraries
        try:
            places = embed_rows("spectral")
        except (TypeError, ValueError):  # few points that are far apart have no spectral layout
            places = embed_rows("random")
        clustering = HDBSCAN(
            min_cluster_size=size, metric="euclidean", cluster_selection_method=settings.clusters
        ).fit(places)
    labels = np.asarray(clustering.labels_, dtype=np.int64)
    strengths = np.where(labels >= 0, np.asarray(clustering.probabilities_, dtype=np.float64), 0.0)
    return ClusteredRows(labels, strengths.round(6))


@cache
def load_umap() -> Any:
    """UMAP, with everything that Numba compiles for it kept in Numba's cache. UMAP requests that
    only in some places; the rest costs each process that finds topics nine seconds of processor
    time."""
    if (settings := Path(_NUMBA_CONFIG).absolute()).exists():
        raise UsageError(
            f"topics cannot be found beside {settings}, which says where Numba loads compiled code "
            "from: remove it if it is not yours, or work in another folder"
        )
    try:
        from umap import UMAP, distances, layouts, spectral, umap_, utils
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "umap", extra="topics") from error

    for module in (distances, layouts, spectral, umap_, utils):
        for function in vars(module).values():
            if hasattr(function, "enable_caching"):
                function.enable_caching()
    return UMAP


def _settle_labels(labels: TopicLabels, rows: Vectors, settings: TopicSettings) -> TopicLabels:
    """The labels with the outliers handled, largest topic first."""
    if settings.outliers == "assign" and (labels < 0).any() and (labels >= 0).any():
        labels = _assign_outliers(labels, rows)
    topic_numbers, counts = np.unique(labels[labels >= 0], return_counts=True)
    place = {
        # `lexsort` sorts by its last key first: by size, equal sizes by number.
        int(topic_numbers[n]): rank
        for rank, n in enumerate(np.lexsort((topic_numbers, -counts)))
    }
    return np.array([place.get(int(label), -1) for label in labels], dtype=np.int64)


def _assign_outliers(labels: TopicLabels, rows: Vectors) -> TopicLabels:
    """The labels, each outlier moved to the topic with the most similar mean vector."""
    numbers = sorted(set(labels[labels >= 0]))
    centres = np.stack([rows[labels == number].mean(axis=0) for number in numbers])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    nearest = np.array(numbers)[(rows @ centres.T).argmax(axis=1)]
    return np.where(labels < 0, nearest, labels)


def _topic_words(
    texts: Sequence[str], labels: TopicLabels, max_words: int
) -> tuple[tuple[str, ...], ...]:
    """The words of each topic with the highest class-based TF-IDF, best first."""
    try:
        from sklearn.feature_extraction.text import CountVectorizer
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "scikit-learn", extra="topics") from error
    weigh = _load_weighting()
    # Statements of no topic are a document too, as in BERTopic: what is common there tells no topic
    # apart.
    numbers = range(-1 if (labels < 0).any() else 0, int(labels.max()) + 1)
    texts_by_number: dict[int, list[str]] = {number: [] for number in numbers}
    for text, label in zip(texts, labels.tolist(), strict=True):
        texts_by_number[label].append(text)
    topic_documents = [" ".join(texts_by_number[number]) for number in numbers]
    vectorizer = CountVectorizer(token_pattern=r"\S+")  # its own pattern drops words of one letter
    counts = vectorizer.fit_transform(topic_documents)
    weights = weigh().fit_transform(counts).toarray()
    word_names = vectorizer.get_feature_names_out()
    # Equal weights stay in the order of the alphabet, on every machine.
    best_words = np.argsort(-weights, axis=1, kind="stable")[:, :max_words]
    return tuple(
        tuple(str(word_names[n]) for n in row if weight[n] > 0)
        for number, row, weight in zip(numbers, best_words, weights, strict=True)
        if number >= 0
    )


@cache
def _load_weighting() -> Any:
    """BERTopic's class-based TF-IDF, from its file alone: the package imports every model of
    embeddings that is installed, which takes seven seconds of processor time and is not used."""
    package = find_spec("bertopic")
    if package is None or not package.submodule_search_locations:
        raise MissingExtra("bertopic", extra="topics")
    file = Path(package.submodule_search_locations[0]) / "vectorizers" / "_ctfidf.py"
    found = spec_from_file_location("_kgbias_ctfidf", file)
    assert found is not None and found.loader is not None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module.ClassTfidfTransformer


def _package_versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("bertopic", "umap-learn", "hdbscan", "spacy")}
