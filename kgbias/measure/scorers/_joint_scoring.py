"""Scorers that read a text together: each form of it passes through the encoder once for all that
read that form, whatever their measures. Also, scoring as work that other processes may do.

The statements are cut into pieces without regard to who reads them, and what is said of a piece
follows from the piece alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from kgbias.measure.embedding import MiniLM
from kgbias.measure.scorers._axes import AxisScorer
from kgbias.measure.scorers._base import Judgement, Scorer
from kgbias.measure.scorers._huggingface import HuggingFaceScorer
from kgbias.measure.scorers._offline import HeadKey, OfflineScorer

JointScorer = OfflineScorer | AxisScorer
DistributableScorer = JointScorer | HuggingFaceScorer


def reads_jointly(scorer: Scorer) -> TypeGuard[JointScorer]:
    """Whether a scorer reads together with others: the offline ones, and axes in their encoder."""
    return isinstance(scorer, OfflineScorer) or (
        isinstance(scorer, AxisScorer) and isinstance(scorer.vectors, MiniLM)
    )


def is_distributable(scorer: Scorer) -> TypeGuard[DistributableScorer]:
    """Whether a scorer's answers depend only on the texts, so that it may be asked elsewhere: those
    that read together, and classifiers."""
    return reads_jointly(scorer) or isinstance(scorer, HuggingFaceScorer)


def all_on_cpu(scorers: Sequence[DistributableScorer]) -> bool:
    """Whether all of them run on the CPU, where processes share the work."""
    from kgbias.models.load import find_device

    return all(find_device(scorer.device) == "cpu" for scorer in scorers)


@dataclass(frozen=True)
class ScoringTask:
    """Scoring of texts, as work whose pieces are lists of texts (`kgbias.parallel.Work`)."""

    scorers: Sequence[DistributableScorer]
    threads: int

    @property
    def version(self) -> str:
        return "; ".join(f"{s.measure} by {s.name} {s.version}" for s in self.scorers)

    @property
    def device(self) -> str:
        return self.scorers[0].device

    def open(self) -> str:
        for scorer in self.scorers:
            if reads_jointly(scorer):  # a classifier has been open since it was made or unpickled
                scorer.open()
        return self.version

    def __call__(self, piece: Sequence[str]) -> list[list[Judgement]]:
        """A list for each scorer. It depends only on these texts: what was read before is
        forgotten, because floating-point sums depend on the batch."""
        self.open()
        _read_ahead([scorer for scorer in self.scorers if reads_jointly(scorer)], piece)
        return [scorer.score(piece) for scorer in self.scorers]


def _read_ahead(scorers: Sequence[JointScorer], texts: Sequence[str]) -> None:
    """Read the texts ahead for the scorers, which then find the answers remembered."""
    networks = {s.network for s in scorers if isinstance(s, OfflineScorer)}
    # `load_vectors` is cached: all axes in MiniLM share one encoder.
    axis_vectors = [s.vectors for s in scorers if isinstance(s, AxisScorer)]
    vectors = {v for v in axis_vectors if isinstance(v, MiniLM)}
    for network in networks:
        network.forget_answers()
    for encoder in vectors:
        encoder.forget()
    if not networks:
        return  # axes by themselves compute a vector only once anyway
    # One device, so one network: all scorers of a task have the same.
    (network,) = networks
    (vector_encoder,) = vectors or (None,)
    heads_by_form: dict[str, set[HeadKey | None]] = {}  # None: the vector
    for scorer in scorers:
        head = scorer.head if isinstance(scorer, OfflineScorer) else None
        for text in texts:
            heads_by_form.setdefault(scorer.masked_form(text), set()).add(head)
    forms_by_heads: dict[frozenset[HeadKey | None], list[str]] = {}
    for text, heads in heads_by_form.items():
        forms_by_heads.setdefault(frozenset(heads), []).append(text)
    for head_set, forms in forms_by_heads.items():
        sorted_heads = sorted(head for head in head_set if head is not None)
        texts_and_means = network.read_texts(forms, sorted_heads, vectors=None in head_set)
        if vector_encoder is not None:
            vector_encoder.remember_vectors(texts_and_means)
