"""Topics by BERTopic (Grootendorst 2022), made reproducible: equal statements give equal topics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kgbias.errors import MissingExtra, UsageError
from kgbias.measure.embedding import TextVectors, Vectors
from kgbias.measure.topics.lemmas import LEMMATISER

Outliers = Literal["assign", "keep"]
FEWEST = 20  # distinct vectors; below, there is nothing to cluster
_SMALLEST_CLUSTER = 5
_DIMENSIONS, _NEIGHBOURS = 5, 15  # of UMAP, BERTopic's own


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """How topics are found.

    `divisor` sets HDBSCAN's min_cluster_size to the number of triples / `divisor`, at least 5 (the
    paper's is 40). `outliers` says what happens to triples that HDBSCAN puts in no cluster:
    "assign" gives each to the topic with the nearest centre, "keep" leaves them without one."""

    embedding: str = "minilm"
    divisor: int = 40
    outliers: Outliers = "assign"
    seed: int = 0
    words: int = 10

    def __post_init__(self) -> None:
        if self.divisor < 1 or self.words < 1:
            raise UsageError("`divisor` and `words` must be at least 1")
        if not 0 <= self.seed < 2**32:
            raise UsageError("the seed of the topics must lie between 0 and 2^32 - 1")

    def min_cluster_size(self, triples: int) -> int:
        return max(_SMALLEST_CLUSTER, triples // self.divisor)


@dataclass(frozen=True, slots=True)
class Fit:
    """The topics of documents. `topics` holds the words of each, largest topic first; `labels` the
    topic of each document, -1 for none; `strengths` the cluster membership in [0, 1], 0 where
    HDBSCAN left the document out; `settings` everything that the outcome depends on."""

    topics: tuple[tuple[str, ...], ...]
    labels: tuple[int, ...]
    strengths: tuple[float, ...]
    settings: dict[str, Any]


def fit_topics(documents: Sequence[str], vectors: TextVectors, settings: TopicSettings) -> Fit:
    """Topics of lemmatised documents: vectors, UMAP, HDBSCAN, and class-based TF-IDF for the words.

    The documents are sorted first and UMAP is seeded, so that neither their order nor chance
    affects the outcome. An empty document has no topic; nor has any document where fewer than 20 of
    them have different vectors, or where HDBSCAN finds no cluster."""
    order = sorted((n for n, text in enumerate(documents) if text), key=lambda n: documents[n])
    texts = [documents[n] for n in order]
    size = settings.min_cluster_size(len(texts))
    labels, strengths = [-1] * len(documents), [0.0] * len(documents)
    topics: tuple[tuple[str, ...], ...] = ()
    outliers = len(texts)
    rows = _embedded(texts, vectors) if len(texts) >= FEWEST else np.zeros((0, 1))
    if len(np.unique(rows, axis=0)) >= FEWEST:
        found, chance, topics = _bertopic(texts, rows, size, settings)
        outliers = int((found[0] < 0).sum())
        for place, label, strength in zip(order, found[1], chance, strict=True):
            labels[place], strengths[place] = int(label), float(strength)
    record = {
        "documents": len(documents),
        "empty": len(documents) - len(texts),
        "min_cluster_size": size,
        "outliers_before": outliers,
        "outliers": sum(label < 0 for label in labels) - (len(documents) - len(texts)),
        "outlier_rule": settings.outliers,
        "embedding": vectors.name,
        "embedding_version": vectors.version,
        "lemmatiser": LEMMATISER,
        "umap": {"components": _DIMENSIONS, "neighbours": _NEIGHBOURS, "metric": "cosine"},
        "seed": settings.seed,
        "versions": _versions(),
    }
    return Fit(topics, tuple(labels), tuple(strengths), record)


def _embedded(texts: Sequence[str], vectors: TextVectors) -> Vectors:
    distinct = list(dict.fromkeys(texts))
    place = {text: n for n, text in enumerate(distinct)}
    return vectors.embed(distinct)[[place[text] for text in texts]]


def _bertopic(
    texts: Sequence[str], rows: Vectors, size: int, settings: TopicSettings
) -> tuple[tuple[Any, Any], Any, tuple[tuple[str, ...], ...]]:
    """Labels before and after the outliers were handled, strengths, and the words of the topics."""
    try:
        from bertopic import BERTopic
        from hdbscan import HDBSCAN
        from sklearn.feature_extraction.text import CountVectorizer
        from umap import UMAP
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "bertopic", extra="topics") from error
    import logging
    import warnings

    def model_with(init: str) -> Any:
        return BERTopic(
            embedding_model=None,
            umap_model=UMAP(
                n_neighbors=min(_NEIGHBOURS, len(texts) - 1),
                n_components=min(_DIMENSIONS, len(texts) - 2),
                min_dist=0.0,
                metric="cosine",
                random_state=settings.seed,
                init=init,
                n_jobs=1,
            ),
            hdbscan_model=HDBSCAN(
                min_cluster_size=size, metric="euclidean", cluster_selection_method="eom"
            ),
            vectorizer_model=CountVectorizer(token_pattern=r"\S+"),
            top_n_words=settings.words,
            verbose=False,
        )

    model = model_with("spectral")
    logging.getLogger("BERTopic").setLevel(logging.ERROR)  # its warnings are of what is intended
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations within the libraries
        try:
            before, chance = model.fit_transform(list(texts), rows)
        except (TypeError, ValueError):  # few points far apart have no spectral layout
            model = model_with("random")
            before, chance = model.fit_transform(list(texts), rows)
        before = np.array(before)
        after = before
        if settings.outliers == "assign" and (before < 0).any() and (before >= 0).any():
            after = _assigned(before, rows)
            model.update_topics(
                list(texts), topics=list(after), vectorizer_model=model.vectorizer_model
            )
    strengths = np.where(before >= 0, np.asarray(chance, dtype=np.float64), 0.0).round(6)
    numbers, after = _by_size(after)
    words = tuple(
        tuple(word for word, _ in model.get_topic(number) if word)[: settings.words]
        for number in numbers
    )
    return (before, after), strengths, words


def _assigned(labels: Any, rows: Vectors) -> Any:
    """The labels, each outlier moved to the topic with the most similar mean vector."""
    numbers = sorted(set(labels[labels >= 0]))
    centres = np.stack([rows[labels == number].mean(axis=0) for number in numbers])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    nearest = np.array(numbers)[(rows @ centres.T).argmax(axis=1)]
    return np.where(labels < 0, nearest, labels)


def _by_size(labels: Any) -> tuple[list[int], Any]:
    """The topics' old numbers, largest topic first, and the labels in new numbers."""
    found, counts = np.unique(labels[labels >= 0], return_counts=True)
    numbers = [int(found[n]) for n in np.lexsort((found, -counts))]
    place = {number: n for n, number in enumerate(numbers)}
    return numbers, np.array([place.get(int(label), -1) for label in labels])


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("bertopic", "umap-learn", "hdbscan", "spacy")}
