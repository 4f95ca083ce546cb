"""Do the words of a topic belong together? The mean NPMI of their pairs.

Normalised pointwise mutual information (Bouma 2009), with p(x) the share of documents that hold x:

    NPMI(a, b) = log(p(a, b) / (p(a) p(b))) / -log p(a, b)

is 1 for words that only stand together, 0 for independent ones and -1 for words that never do. Its
mean over the pairs of a topic's best words agrees with people's ratings of topics (Lau, Newman and
Baldwin 2014). The documents are the statements that the topics were found in. These are a few words
long, so that most pairs never meet and good topics lie below 0: compare topics with each other.
"""

from collections.abc import Sequence
from itertools import combinations
from math import log

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
    """The mean NPMI of words that these documents hold."""
    values = [_npmi(len(a), len(b), len(a & b), documents) for a, b in combinations(held, 2)]
    return sum(values) / len(values) if values else None


def _npmi(a: int, b: int, both: int, documents: int) -> float:
    if not both:
        return -1.0
    if both == documents:
        return 1.0
    return log(both * documents / (a * b)) / -log(both / documents)
