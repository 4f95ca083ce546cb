"""The interface of scorers, and helpers for judgements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgbias.measures import get_measure


@dataclass(frozen=True, slots=True)
class Judgement:
    """A scorer's judgement of one text.

    Attributes:
        value: in the range of the measure (`kgbias.measures.Measure`). Regard: p(positive) -
            p(negative), in [-1, 1], higher is more positive. Toxicity, identity attack and
            acceptability: a probability, in [0, 1]; higher is more toxic, more of an attack on the
            group, or more likely a grammatical and meaningful sentence.
        label: one of the measure's labels. Regard: "positive", "neutral" or "negative" ("other"
            from models that have it), the most probable one. For a probability, which side of 0.5
            the value is on: "toxic" from 0.5 up, "not toxic" below.
        probabilities: probability of each label the model has, in [0, 1].
    """

    value: float
    label: str
    probabilities: Mapping[str, float]


class Scorer(Protocol):
    """Scores texts on one measure.

    Attributes:
        measure: what it scores: a name in `kgbias.measures.MEASURES`.
        name: which scorer, such as "minilm-heads" or "hf:sasha/regardv3".
        version: changes whenever an answer could change; a cache key together with name and text.
        language: the one language that it reads, such as "en"; None if not known.
    """

    @property
    def measure(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def language(self) -> str | None: ...

    def score(self, texts: Sequence[str]) -> Sequence[Judgement | None]:
        """Judge each text; one answer per text, in order, whatever else is in the batch. None: no
        judgement, which only happens with a language model as judge."""
        ...


def class_judgement(measure: str, probabilities: Mapping[str, float]) -> Judgement:
    """Judge a measure of classes, such as regard, from the probability of each of them.

    The value is that of the class at one end minus that at the other (`Measure.ends`), clamped to
    [-1, 1]; ties go to the label named first."""
    ends = get_measure(measure).ends
    assert ends, f"{measure} has no classes"
    value = probabilities[ends[0]] - probabilities[ends[1]]
    label = max(probabilities, key=probabilities.__getitem__)
    return Judgement(max(-1.0, min(1.0, value)), label, probabilities)


def probability_judgement(
    measure: str, value: float, probabilities: Mapping[str, float] | None = None
) -> Judgement:
    """Judge a measure that is a probability: toxic, an attack or meaningful from 0.5 up.

    `probabilities` are those of the model's labels, if they are not these two."""
    sides = get_measure(measure).sides
    assert sides, f"{measure} is no probability"
    positive_label, negative_label = sides
    if probabilities is None:
        probabilities = {positive_label: value, negative_label: round(1 - value, 6)}
    return Judgement(value, positive_label if value >= 0.5 else negative_label, probabilities)


def same_length_batches(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Group indices of texts of equal length; a batch has at most `tokens` tokens, or one text.

    No batch is padded, so what else is in it cannot change an answer.
    """
    by_length: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        by_length.setdefault(length, []).append(index)
    batches = []
    for length, indices in sorted(by_length.items()):
        size = max(1, tokens // max(1, length))
        batches += [indices[start : start + size] for start in range(0, len(indices), size)]
    return batches
