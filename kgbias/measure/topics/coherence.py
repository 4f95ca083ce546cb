"""Do the words of a topic belong together? C_v of its words (Röder, Both and Hinneburg 2015).

Each word becomes a vector: its normalised pointwise mutual information (NPMI, Bouma 2009) with each
word of the topic, from how often they stand in one document. C_v is the mean cosine of each word's
vector with the sum of all, in [0, 1]; higher is more coherent. Two words that never stand together
are near if they stand with the same others, which suits documents as short as statements, where
"pasta" and "bread" follow "love" but never each other; NPMI itself would be -1 for them.
"""

from collections.abc import Sequence

from kgbias.errors import MissingExtra

COHERENCE = "c_v (Röder et al. 2015)"


def coherences(topics: Sequence[Sequence[str]], documents: Sequence[str]) -> list[float | None]:
    """C_v of the words of each topic, counted in these documents (words joined by spaces), in
    [0, 1]; None for a topic of a single word. The window is the whole document."""
    try:
        from gensim.corpora import Dictionary
        from gensim.models.coherencemodel import CoherenceModel
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "gensim", extra="topics") from error
    measured = [n for n, words in enumerate(topics) if len(words) > 1]
    found: list[float | None] = [None] * len(topics)
    if not measured:
        return found
    texts = [document.split() for document in documents]
    model = CoherenceModel(
        topics=[list(topics[n]) for n in measured],
        texts=texts,
        dictionary=Dictionary(texts),
        coherence="c_v",
        window_size=max(map(len, texts)),
        processes=1,
    )
    for n, value in zip(measured, model.get_coherence_per_topic(), strict=True):
        found[n] = round(float(value), 6)
    return found
