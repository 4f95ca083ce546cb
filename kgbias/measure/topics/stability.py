"""Would the topics be found again? The same documents, clustered with other random seeds.

Two clusterings agree as far as they put the same pairs of documents together: the adjusted Rand
index (Hubert and Arabie 1985) is 1 where they are equal and about 0 where they agree no more than
chance would have it. Documents in no topic count as a class of their own, since a document that
falls out of its topic has moved. A topic by itself is as stable as its best Jaccard overlap with a
topic of another seed, in the mean over the seeds; below 0.6 it should not be trusted (Hennig 2007,
"Cluster-wise assessment of cluster stability").
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import MissingExtra

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
    """For each topic of a clustering, in the order of its numbers: the Jaccard overlap with the
    topic of another clustering that it shares most with, in the mean over the others; in
    [0, 1]."""
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
