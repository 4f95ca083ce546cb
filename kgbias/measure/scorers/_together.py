"""Scorers that read a text together: each form of it passes through the encoder once for all that
read that form, whatever their measures. Also, scoring as work that other processes may do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from kgbias.measure.embedding import MiniLM
from kgbias.measure.scorers._axes import AxisScorer
from kgbias.measure.scorers._base import Judgement, Scorer
from kgbias.measure.scorers._huggingface import HuggingFaceScorer
from kgbias.measure.scorers._offline import Head, OfflineScorer

Joined = OfflineScorer | AxisScorer
Spread = Joined | HuggingFaceScorer


def joins(scorer: Scorer) -> TypeGuard[Joined]:
    """Whether a scorer reads together with others: the offline ones, and axes in their encoder."""
    return isinstance(scorer, OfflineScorer) or (
        isinstance(scorer, AxisScorer) and isinstance(scorer.vectors, MiniLM)
    )


def spreads(scorer: Scorer) -> TypeGuard[Spread]:
    """Whether a scorer's answers depend only on the texts, so that it may be asked elsewhere: those
    that read together, and classifiers."""
    return joins(scorer) or isinstance(scorer, HuggingFaceScorer)


def on_cpu(scorers: Sequence[Spread]) -> bool:
    """Whether all of them run on the CPU, where processes share the work."""
    from kgbias.models.load import find_device

    return all(find_device(scorer.device) == "cpu" for scorer in scorers)


@dataclass(frozen=True)
class Judging:
    """Scoring of texts, as work whose pieces are lists of texts (`kgbias.parallel.Work`)."""

    scorers: Sequence[Spread]
    threads: int

    @property
    def version(self) -> str:
        return "; ".join(f"{s.measure} by {s.name} {s.version}" for s in self.scorers)

    @property
    def device(self) -> str:
        return self.scorers[0].device

    def open(self) -> str:
        for scorer in self.scorers:
            if joins(scorer):  # a classifier has been open since it was made or unpickled
                scorer.open()
        return self.version

    def __call__(self, piece: Sequence[str]) -> list[list[Judgement]]:
        """A list for each scorer. It depends only on these texts: what was read before is
        forgotten, because floating-point sums depend on the batch."""
        self.open()
        _read_ahead([scorer for scorer in self.scorers if joins(scorer)], piece)
        return [scorer.score(piece) for scorer in self.scorers]


def _read_ahead(scorers: Sequence[Joined], texts: Sequence[str]) -> None:
    """Read the texts ahead for the scorers, which then find the answers remembered."""
    networks = {s.network for s in scorers if isinstance(s, OfflineScorer)}
    vectors = {v for s in scorers if isinstance(v := getattr(s, "vectors", None), MiniLM)}
    for network in networks:
        network.forget()
    for encoder in vectors:
        encoder.forget()
    if not networks:
        return  # axes by themselves compute a vector only once anyway
    (network,) = networks
    (read,) = vectors or (None,)
    wanted: dict[str, set[Head | None]] = {}  # None: the vector
    for scorer in scorers:
        head = scorer.head if isinstance(scorer, OfflineScorer) else None
        for text in texts:
            wanted.setdefault(scorer.form(text), set()).add(head)
    alike: dict[frozenset[Head | None], list[str]] = {}
    for text, heads in wanted.items():
        alike.setdefault(frozenset(heads), []).append(text)
    for wanting, own in alike.items():
        by_name = sorted(head for head in wanting if head is not None)
        found = network.read(own, by_name, vectors=None in wanting)
        if read is not None:
            read.know(found)
