"""What short texts are about, as SoFa describes its stereotypes (Marchiori Manerba et al. 2023,
appendix C.2): sentence vectors, UMAP, HDBSCAN, and the words and texts that tell clusters apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from kgbias.errors import MissingExtra, UsageError
from kgbias.io.wording import pluralise
from kgbias.measure.embedding import TextVectors, Vectors
from kgbias.measure.topics.model import MIN_DISTINCT_VECTORS, cluster_rows
from kgbias.measure.topics.settings import TopicSettings

UMAP_DIMENSIONS = 15  # of UMAP, as in the paper
_MIN_CLUSTER_SHARE, _MIN_CLUSTER_SIZE = (
    0.01,
    5,
)  # the share of texts that makes a cluster, and the fewest
_MAX_CLUSTER_WORDS, _MAX_CLUSTER_TEXTS = 10, 5


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster: its most telling words and word pairs (TF-IDF), best first, and the texts nearest
    to its centre and furthest from it."""

    size: int
    words: tuple[str, ...]
    nearest: tuple[str, ...]
    furthest: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its three best words."""
        return ", ".join(self.words[:3])

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "size": self.size,
            "words": list(self.words),
            "nearest": list(self.nearest),
            "furthest": list(self.furthest),
        }


@dataclass(frozen=True, slots=True)
class TextClustering:
    """Texts by cluster, largest first; `labels` has the number of each text's cluster, -1 for
    none."""

    clusters: tuple[Cluster, ...]
    labels: tuple[int, ...]
    method: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "found": [c.as_dict() for c in self.clusters],
            "various": sum(label < 0 for label in self.labels),
            "method": self.method,
        }


def cluster_texts(
    texts: Sequence[str],
    vectors: TextVectors,
    *,
    min_cluster_size: int | None = None,
    seed: int = 0,
) -> TextClustering:
    """Cluster distinct texts.

    Args:
        texts: each once, in any order: neither order nor chance affects the outcome.
        vectors: what they are embedded in (the paper: gte-base-en-v1.5).
        min_cluster_size: HDBSCAN's; None: 1% of the texts (the paper's 90 of 9,102), at least 5.
        seed: of UMAP.

    Fewer than 20 texts with different vectors get no cluster. Raises MissingExtra.
    """
    if min_cluster_size is not None and min_cluster_size < 2:
        raise UsageError("`min_cluster_size` must be at least 2")
    size = min_cluster_size or max(_MIN_CLUSTER_SIZE, round(_MIN_CLUSTER_SHARE * len(texts)))
    # UMAP's layout depends on the order of its rows.
    order = sorted(range(len(texts)), key=lambda index: texts[index])
    ordered_texts = [texts[index] for index in order]
    rows = (
        vectors.embed(ordered_texts)
        if len(ordered_texts) >= MIN_DISTINCT_VECTORS
        else np.zeros((0, 1))
    )
    cluster_numbers = np.full(len(ordered_texts), -1)
    if len(np.unique(rows, axis=0)) >= MIN_DISTINCT_VECTORS:
        # HDBSCAN's default, as in the paper.
        settings = TopicSettings(clusters="eom")
        cluster_numbers, _ = cluster_rows(rows, size, seed, settings, dimensions=UMAP_DIMENSIONS)
    numbers, counts = np.unique(cluster_numbers[cluster_numbers >= 0], return_counts=True)
    ranked_numbers = numbers[np.lexsort((numbers, -counts))]
    place = {int(number): rank for rank, number in enumerate(ranked_numbers)}
    texts_by_number: dict[int, list[str]] = {int(number): [] for number in ranked_numbers}
    for text, number in zip(ordered_texts, cluster_numbers, strict=True):
        if number >= 0:
            texts_by_number[int(number)].append(text)
    words = distinctive_words(list(texts_by_number.values()))
    clusters = tuple(
        _make_cluster(np.flatnonzero(cluster_numbers == number), ordered_texts, rows, text_cluster)
        for number, text_cluster in zip(ranked_numbers, words, strict=True)
    )
    labels = [-1] * len(texts)
    for index, label in zip(order, cluster_numbers, strict=True):
        labels[index] = place.get(int(label), -1)
    method = (
        f"{vectors.name}, UMAP to {UMAP_DIMENSIONS} dimensions, HDBSCAN from "
        f"{pluralise(size, 'statement')} on, "
        f"seed {seed}"
    )
    return TextClustering(clusters, tuple(labels), method)


def _make_cluster(
    member_places: Any, texts: Sequence[str], rows: Vectors, words: tuple[str, ...]
) -> Cluster:
    members = rows[member_places]
    distance = np.linalg.norm(members - members.mean(axis=0), axis=1)
    texts_by_distance = [texts[member_places[n]] for n in np.argsort(distance, kind="stable")]
    return Cluster(
        len(member_places),
        words,
        tuple(texts_by_distance[:_MAX_CLUSTER_TEXTS]),
        tuple(texts_by_distance[::-1][:_MAX_CLUSTER_TEXTS]),
    )


def distinctive_words(clusters: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The words and word pairs with the highest TF-IDF, taking each cluster as one document; no
    pair spans two texts."""
    if not clusters:
        return []
    try:
        from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    except ModuleNotFoundError as error:
        raise MissingExtra("scikit-learn", extra="topics") from error
    grams = CountVectorizer(
        ngram_range=(1, 2), stop_words="english", token_pattern=r"(?u)\b[\w']+\b"
    ).build_analyzer()
    vectorizer = CountVectorizer(analyzer=lambda own: list(chain.from_iterable(map(grams, own))))
    try:
        counts = vectorizer.fit_transform(clusters)
    except ValueError:  # only stop words
        return [()] * len(clusters)
    weights = TfidfTransformer().fit_transform(counts).toarray()
    word_names = vectorizer.get_feature_names_out()
    best_words = np.argsort(-weights, axis=1, kind="stable")[:, :_MAX_CLUSTER_WORDS]
    return [
        tuple(str(word_names[n]) for n in row if weight[n] > 0)
        for row, weight in zip(best_words, weights, strict=True)
    ]
