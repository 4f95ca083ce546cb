"""Scorers that read a text together: each form of it passes through the encoder once, for all that
read that form, whichever measures they are of."""

from collections.abc import Sequence
from typing import TypeGuard

from kgbias.measure.embedding import MiniLM
from kgbias.measure.scorers._axes import AxisScorer
from kgbias.measure.scorers._base import Judgement, Scorer
from kgbias.measure.scorers._offline import Head, OfflineScorer

Joined = OfflineScorer | AxisScorer


def joins(scorer: Scorer) -> TypeGuard[Joined]:
    """Whether a scorer reads together with others: the offline ones, and axes in their encoder."""
    return isinstance(scorer, OfflineScorer) or (
        isinstance(scorer, AxisScorer) and isinstance(scorer.vectors, MiniLM)
    )


def on_cpu(scorers: Sequence[Joined]) -> bool:
    """Whether all of them run on the CPU, where processes share the work."""
    from kgbias.models.load import find_device

    return all(find_device(scorer.device) == "cpu" for scorer in scorers)


def judge(scorers: Sequence[Joined], texts: Sequence[str]) -> list[list[Judgement]]:
    """What each scorer says of each text, a list for each scorer. It follows from these texts
    alone: what was read before is forgotten, since sums in floating point follow the batch."""
    _read_ahead(scorers, texts)
    return [scorer.score(texts) for scorer in scorers]


def _read_ahead(scorers: Sequence[Joined], texts: Sequence[str]) -> None:
    """Read the texts as the scorers will, so that these find what was said."""
    networks = {s.network for s in scorers if isinstance(s, OfflineScorer)}
    vectors = {v for s in scorers if isinstance(v := getattr(s, "vectors", None), MiniLM)}
    for network in networks:
        network.forget()
    for encoder in vectors:
        encoder.forget()
    if not networks:
        return  # axes alone compute a vector once anyway
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
