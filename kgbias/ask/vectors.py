"""How near statements are to what a question is about: an index of sentence embeddings."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kgbias.graph.types import TripleView
from kgbias.models.sentences import SentenceVectors


class Index(Protocol):
    """Statements by what they say. `method` says in one line how it finds them."""

    @property
    def method(self) -> str: ...

    def nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        """The cosine in [-1, 1] of the topic with what statements say of their groups, by triple
        id; an index may leave out those that are far."""
        ...


class InMemory:
    """Every statement compared with the question, in memory."""

    def __init__(self, embed: SentenceVectors) -> None:
        self._embed = embed
        self.method = f"cosine of {embed.name} embeddings, in memory"

    def nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        said = {t.id: said_of(t) for t in triples}
        if not said:
            return {}
        texts = sorted(set(said.values()))
        question, rows = self._embed([topic])[0], self._embed(texts)
        near = dict(zip(texts, (rows @ question).tolist(), strict=True))
        return {id: near[text] for id, text in said.items()}


def said_of(triple: TripleView) -> str:
    """What a statement says of its group, whichever that is."""
    return f"{triple.predicate} {triple.object}"
