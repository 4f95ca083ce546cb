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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import MissingExtra, UsageError
from kgbias.measure.embedding import TextVectors, Vectors
from kgbias.models import english
from kgbias.parallel.local import keeping_threads

_LONGEST = 2000  # characters read of a text
_AHEAD = "They "  # spaCy's model reads a statement as a sentence


def lemmatiser() -> str:
    """What `lemmatise` uses here: spaCy's English model if it is installed, which can tell from the
    sentence that "left" comes from "leave" in "left home", or else its table of lemmas."""
    if english.is_installed():
        return f"{english.MODEL_NAME}, English stop words"
    return "spacy lookup lemmas, English stop words"


def lemmatise(texts: Sequence[str]) -> list[str]:
    """Each text as its lemmas in lower case, joined by spaces, without stop words, punctuation and
    space. A text of stop words alone ("are not") keeps them; one of punctuation alone becomes "".

    The lemmas are English; other scripts pass unchanged."""
    pipeline, ahead = _pipeline()
    docs = pipeline.pipe([ahead + text[:_LONGEST] for text in texts])
    return [_kept([token for token in doc if token.idx >= len(ahead)]) for doc in docs]


def _kept(tokens: Sequence[Any]) -> str:
    words = [t for t in tokens if not (t.is_punct or t.is_space or not t.text.strip())]
    telling = [t for t in words if not (t.is_stop or t.lower_ in _contractions())]
    return " ".join(t.lemma_.lower() for t in telling or words)


@cache
def _contractions() -> frozenset[str]:
    """What spaCy splits off "can't" and "gonna", in lower case."""
    return frozenset(("ca", "wo", "n't", "n’t", "'s", "’s", "gon", "na"))


@cache
def _pipeline() -> tuple[Any, str]:
    """The pipeline, and the words to put before a text."""
    if english.is_installed():
        return english.load_english("tagger", "attribute_ruler", "lemmatizer"), _AHEAD
    try:
        import spacy
        import spacy_lookups_data  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "spacy", extra="topics") from error
    pipeline = spacy.blank("en")
    pipeline.add_pipe("lemmatizer", config={"mode": "lookup"})
    pipeline.initialize()
    return pipeline, ""


SEEDS = 5
Labels = NDArray[np.int64]  # the topic of each document, -1 for none


def agreement(labels: Sequence[Labels]) -> float:
    """The mean adjusted Rand index over all pairs of clusterings of the same documents, at most
    1."""
    try:
        from sklearn.metrics import adjusted_rand_score
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "scikit-learn", extra="topics") from error
    pairs = combinations(labels, 2)
    return float(np.mean([adjusted_rand_score(one, other) for one, other in pairs]))


def overlaps(labels: Labels, others: Sequence[Labels]) -> list[float]:
    """For each topic of a clustering, in order of number: the Jaccard overlap with the topic of
    another clustering that it shares most with, averaged over the other clusterings; in [0, 1]."""
    return [
        float(np.mean([_best(labels == number, other) for other in others]))
        for number in np.unique(labels[labels >= 0])
    ]


def _best(topic: NDArray[np.bool_], other: Labels) -> float:
    found = [
        float((topic & (other == number)).sum() / (topic | (other == number)).sum())
        for number in np.unique(other[topic])
        if number >= 0
    ]
    return max(found, default=0.0)


FOLDS = 5
_LEFT_OUT = -2


def kept(labels: Labels, others: Sequence[Labels]) -> list[float | None]:
    """For each topic of a clustering, in order of number: the share of the pairs of its documents
    that are together in other clusterings too, in [0, 1], over all of their pairs. A document that
    another clustering left out is -2 there. None for a topic without such a pair."""
    found = []
    for number in np.unique(labels[labels >= 0]):
        own = [other[(labels == number) & (other != _LEFT_OUT)] for other in others]
        pairs = sum(_pairs(len(rest)) for rest in own)
        together = sum(_together(rest) for rest in own)
        found.append(together / pairs if pairs else None)
    return found


def kept_in_all(labels: Labels, others: Sequence[Labels]) -> tuple[float, float]:
    """The same over the pairs of all topics, and what it would be by chance: the share of all pairs
    that are together in the other clusterings; NaN without pairs."""
    own = [other[other != _LEFT_OUT] for other in others]
    topics = np.unique(labels[labels >= 0])
    mine = [o[(labels == n) & (o != _LEFT_OUT)] for o in others for n in topics]
    pairs, every = sum(_pairs(len(x)) for x in mine), sum(_pairs(len(x)) for x in own)
    if not pairs or not every:
        return float("nan"), float("nan")
    return sum(map(_together, mine)) / pairs, sum(map(_together, own)) / every


def _pairs(n: int) -> int:
    return n * (n - 1) // 2


def _together(labels: Labels) -> int:
    """The pairs that share a topic."""
    return sum(_pairs(int(n)) for n in np.unique(labels[labels >= 0], return_counts=True)[1])


COHERENCE = "mean NPMI of the words' pairs in the statements (Lau et al. 2014)"


def coherences(topics: Sequence[Sequence[str]], documents: Sequence[str]) -> list[float | None]:
    """The coherence of the words of each topic in these documents (words joined by spaces), in
    [-1, 1]; None for a topic of a single word."""
    held: dict[str, set[int]] = {word: set() for words in topics for word in words}
    for number, document in enumerate(documents):
        for word in held.keys() & document.split():
            held[word].add(number)
    return [_coherence([held[word] for word in words], len(documents)) for words in topics]


def _coherence(held: Sequence[set[int]], documents: int) -> float | None:
    """The mean NPMI of words, given the documents that contain each."""
    values = [_npmi(len(a), len(b), len(a & b), documents) for a, b in combinations(held, 2)]
    return sum(values) / len(values) if values else None


def _npmi(a: int, b: int, both: int, documents: int) -> float:
    if not both:
        return -1.0
    if both == documents:
        return 1.0
    return log(both * documents / (a * b)) / -log(both / documents)


Outliers = Literal["assign", "keep"]
Selects = Literal["leaf", "eom"]
EntropyForm = Literal["divergence", "as_published"]
FEWEST = 20  # distinct vectors; with fewer, there is nothing to cluster
_SMALLEST_CLUSTER = 5
_DIVISOR = 40  # Salinas et al. 2023, section 5.4
_NUMBA = ".numba_config.yaml"  # read from the current folder, which may be a stranger's
_DIMENSIONS, _NEIGHBOURS = 5, 15  # of UMAP, BERTopic's own


@dataclass(frozen=True)
class TopicSettings:
    """How topics are found.

    Attributes:
        embedding: what the documents are embedded in (`kgbias.measure.embedding.load_vectors`).
        min_topic_size: HDBSCAN's min_cluster_size, the fewest distinct statements that make a
            topic. None: the number of statements, each as often as it was said, divided by 40 as
            in Salinas et al. 2023, and at least 5.
        outliers: what happens to statements that HDBSCAN puts in no cluster: "keep" leaves them
            without a topic, "assign" gives each to the topic with the nearest centre.
        clusters: which clusters of its tree HDBSCAN takes: "leaf", the smallest ones, or "eom",
            those that persist longest (its default and BERTopic's), which on statements often
            makes one cluster of most of them.
        seed: of UMAP. Four more seeds follow it, to see whether the topics come up again.
        words: how many words describe a topic.
        entropy: the form of relative entropy in tables and figures: "divergence", withheld if the
            topics do not support it, or "as_published", Eq. 1 as printed.
    """

    embedding: str = "minilm"
    min_topic_size: int | None = None
    outliers: Outliers = "keep"
    clusters: Selects = "leaf"
    seed: int = 0
    words: int = 10
    entropy: EntropyForm = "divergence"

    def __post_init__(self) -> None:
        if self.min_topic_size is not None and self.min_topic_size < 2:
            raise UsageError("`min_topic_size` must be at least 2")
        if self.words < 1:
            raise UsageError("`words` must be at least 1")
        if not 0 <= self.seed <= 2**32 - SEEDS:
            raise UsageError(f"the seed of the topics must lie between 0 and 2^32 - {SEEDS}")

    def smallest(self, statements: int) -> int:
        """The fewest distinct statements that make a topic, among this many statements."""
        return self.min_topic_size or max(_SMALLEST_CLUSTER, statements // _DIVISOR)


@dataclass(frozen=True, slots=True)
class Fit:
    """The topics of documents.

    Attributes:
        topics: the words of each, largest topic first.
        labels: the topic of each document, -1 for none.
        strengths: the cluster membership in [0, 1], 0 if HDBSCAN left the document out.
        coherences: that of each topic's words.
        stabilities: each topic's overlap with the nearest topic of other seeds, in [0, 1].
        kept: the share of each topic's pairs of documents that share a topic without a fifth of the
            documents, in [0, 1]; None for a topic without pairs.
        settings: everything that the outcome depends on, and what is known about it as a whole.
    """

    topics: tuple[tuple[str, ...], ...]
    labels: tuple[int, ...]
    strengths: tuple[float, ...]
    coherences: tuple[float | None, ...]
    stabilities: tuple[float, ...]
    kept: tuple[float | None, ...]
    settings: dict[str, Any]


def fit_topics(
    documents: Sequence[str],
    vectors: TextVectors,
    settings: TopicSettings,
    *,
    statements: int | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Fit:
    """Topics of lemmatised documents: vectors, UMAP, HDBSCAN, and class-based TF-IDF for the words;
    found with five seeds, of which the first gives the topics and the others say how stable they
    are, and with the first seed five times more, without a fifth of the documents.

    `statements` is how many statements the documents stand for (None: one each); `advance` is
    called each time that topics were found. The documents are sorted first and UMAP is seeded, so
    that neither their order nor chance affects the outcome. An empty document has no topic; nor has
    any document if fewer than 20 of them have different vectors, or if HDBSCAN finds no cluster."""
    order = sorted((n for n, text in enumerate(documents) if text), key=lambda n: documents[n])
    texts = [documents[n] for n in order]
    size = settings.smallest(len(documents) if statements is None else statements)
    labels, strengths = [-1] * len(documents), [0.0] * len(documents)
    words: tuple[tuple[str, ...], ...] = ()
    coherent: tuple[float | None, ...] = ()
    stable: tuple[float, ...] = ()
    pairs: tuple[float | None, ...] = ()
    rand = share = chance = None
    outliers = len(texts)
    rows = _embedded(texts, vectors) if len(texts) >= FEWEST else np.zeros((0, 1))
    distinct = len(np.unique(rows, axis=0))
    if distinct >= FEWEST:
        runs = []
        for seed in range(settings.seed, settings.seed + SEEDS):
            runs.append(clustered(rows, size, seed, settings))
            advance()
        before, strength = runs[0]
        outliers = int((before < 0).sum())
        found = [_settled(own, rows, settings) for own, _ in runs]
        if (found[0] >= 0).any():
            rand = round(agreement(found), 6)
            stable = tuple(round(x, 6) for x in overlaps(found[0], found[1:]))
            rest = [_without_fifth(rows, size, n, settings, advance) for n in range(FOLDS)]
            pairs = tuple(None if x is None else round(x, 6) for x in kept(found[0], rest))
            share, chance = (round(x, 6) for x in kept_in_all(found[0], rest))
            words = _words(texts, found[0], settings.words)
            coherent = tuple(
                None if value is None else round(value, 6) for value in coherences(words, texts)
            )
        for place, label, member in zip(order, found[0], strength, strict=True):
            labels[place], strengths[place] = int(label), float(member)
    record = {
        "documents": len(documents),
        "empty": len(documents) - len(texts),
        "distinct": distinct,
        "min_cluster_size": size,
        "min_cluster_size_rule": f"statements / {_DIVISOR}, at least {_SMALLEST_CLUSTER}"
        if settings.min_topic_size is None
        else "given",
        "cluster_selection": settings.clusters,
        "outliers_before": outliers,
        "outliers": sum(label < 0 for label in labels) - (len(documents) - len(texts)),
        "outlier_rule": settings.outliers,
        "adjusted_rand": rand,
        "kept": share,
        "kept_by_chance": chance,
        "coherence": COHERENCE,
        "embedding": vectors.name,
        "embedding_version": vectors.version,
        "lemmatiser": lemmatiser(),
        "umap": {"components": _DIMENSIONS, "neighbours": _NEIGHBOURS, "metric": "cosine"},
        "seed": settings.seed,
        "seeds": SEEDS,
        "entropy": settings.entropy,
        "versions": _versions(),
    }
    return Fit(words, tuple(labels), tuple(strengths), coherent, stable, pairs, record)


def _without_fifth(
    rows: Vectors, size: int, fold: int, settings: TopicSettings, advance: Callable[[], None]
) -> Labels:
    """The topics of the rows without one fifth of them (-2), at random but the same each time. The
    fewest that make a topic are four fifths as many."""
    order = np.random.Generator(np.random.PCG64(settings.seed)).permutation(len(rows))
    kept = np.sort(np.delete(order, np.arange(fold, len(rows), FOLDS)))
    fewest = max(2, round(size * (FOLDS - 1) / FOLDS))
    labels = np.full(len(rows), _LEFT_OUT, dtype=np.int64)
    found, _ = clustered(rows[kept], fewest, settings.seed, settings)
    labels[kept] = _settled(found, rows[kept], settings)
    advance()
    return labels


def _embedded(texts: Sequence[str], vectors: TextVectors) -> Vectors:
    distinct = list(dict.fromkeys(texts))
    place = {text: n for n, text in enumerate(distinct)}
    return vectors.embed(distinct)[[place[text] for text in texts]]


def clustered(
    rows: Vectors,
    size: int,
    seed: int,
    settings: TopicSettings,
    *,
    dimensions: int = _DIMENSIONS,
) -> tuple[Labels, NDArray[np.float64]]:
    """The cluster of each row, -1 for none, and the strength of its membership."""
    try:
        from hdbscan import HDBSCAN

        umap = load_umap()
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "hdbscan", extra="topics") from error
    import warnings

    def placed(init: str) -> Any:
        return umap(
            n_neighbors=min(_NEIGHBOURS, len(rows) - 1),
            n_components=min(dimensions, len(rows) - 2),
            min_dist=0.0,
            metric="cosine",
            random_state=seed,
            init=init,
            n_jobs=1,
        ).fit_transform(rows)

    with warnings.catch_warnings(), keeping_threads():
        warnings.simplefilter("ignore")  # deprecations within the libraries
        try:
            places = placed("spectral")
        except (TypeError, ValueError):  # few points that are far apart have no spectral layout
            places = placed("random")
        found = HDBSCAN(
            min_cluster_size=size, metric="euclidean", cluster_selection_method=settings.clusters
        ).fit(places)
    labels = np.asarray(found.labels_, dtype=np.int64)
    strengths = np.where(labels >= 0, np.asarray(found.probabilities_, dtype=np.float64), 0.0)
    return labels, strengths.round(6)


@cache
def load_umap() -> Any:
    """UMAP, with everything that Numba compiles for it kept in Numba's cache. UMAP requests that
    only in some places; the rest costs each process that finds topics nine seconds of processor
    time."""
    if (settings := Path(_NUMBA).absolute()).exists():
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


def _settled(labels: Labels, rows: Vectors, settings: TopicSettings) -> Labels:
    """The labels with the outliers handled, largest topic first."""
    if settings.outliers == "assign" and (labels < 0).any() and (labels >= 0).any():
        labels = _assigned(labels, rows)
    found, counts = np.unique(labels[labels >= 0], return_counts=True)
    place = {int(found[n]): rank for rank, n in enumerate(np.lexsort((found, -counts)))}
    return np.array([place.get(int(label), -1) for label in labels], dtype=np.int64)


def _assigned(labels: Labels, rows: Vectors) -> Labels:
    """The labels, each outlier moved to the topic with the most similar mean vector."""
    numbers = sorted(set(labels[labels >= 0]))
    centres = np.stack([rows[labels == number].mean(axis=0) for number in numbers])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    nearest = np.array(numbers)[(rows @ centres.T).argmax(axis=1)]
    return np.where(labels < 0, nearest, labels)


def _words(texts: Sequence[str], labels: Labels, most: int) -> tuple[tuple[str, ...], ...]:
    """The words of each topic with the highest class-based TF-IDF, best first."""
    try:
        from sklearn.feature_extraction.text import CountVectorizer
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "scikit-learn", extra="topics") from error
    weigh = _load_weighting()
    numbers = range(-1 if (labels < 0).any() else 0, int(labels.max()) + 1)
    joined = [
        " ".join(text for text, label in zip(texts, labels, strict=True) if label == number)
        for number in numbers
    ]
    vectorizer = CountVectorizer(token_pattern=r"\S+")
    counts = vectorizer.fit_transform(joined)
    weights = weigh().fit_transform(counts).toarray()
    names = vectorizer.get_feature_names_out()
    best = np.argsort(-weights, axis=1, kind="stable")[:, :most]
    return tuple(
        tuple(str(names[n]) for n in row if weight[n] > 0)
        for number, row, weight in zip(numbers, best, weights, strict=True)
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


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("bertopic", "umap-learn", "hdbscan", "spacy")}
