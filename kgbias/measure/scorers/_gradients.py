"""A sentence as the network of a scorer reads it, open to gradients."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Protocol, runtime_checkable

from kgbias.measure.scorers import _masking
from kgbias.measure.scorers._base import Scorer


@dataclass(frozen=True)
class LogitReadout:
    """What is computed from the logits (batch, labels) of a network, each a tensor (batch).

    Attributes:
        score: the scorer's value.
        evidence: the value before squashing: the log-odds of a probability; for regard, the logit
            of positive minus that of negative.
    """

    score: Callable[[Any], Any]
    evidence: Callable[[Any], Any]


@dataclass(frozen=True)
class GradientReading:
    """One sentence on its way through a network. Tensors have a batch dimension in front.

    Attributes:
        words: the words of the sentence; a mention of a group that the scorer masks is one word.
        owners: for each token, the number of its word; None for tokens of no word ([CLS] ...).
        inputs: the tokens' embeddings (1, tokens, width), before positions are added.
        blank: the same without the words: the model's padding token in their place.
        logits: from embeddings (batch, tokens, width) to logits (batch, labels).
        value: what the logits say.
        halves: if the network has final token states: embeddings to states (batch, tokens,
            width), and states to logits.
    """

    words: list[str]
    owners: list[int | None]
    inputs: Any
    blank: Any
    logits: Callable[[Any], Any]
    value: LogitReadout
    halves: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None = None


@runtime_checkable
class DifferentiableScorer(Scorer, Protocol):
    """A scorer whose network can be looked into."""

    has_states: bool  # whether a reading has `halves`

    def gradient_reading(self, text: str) -> GradientReading: ...


@runtime_checkable
class MaskingScorer(Scorer, Protocol):
    """A scorer that treats several words of a text as one."""

    def words(self, text: str) -> list[str]: ...


def token_owners(text: str, offsets: Sequence[tuple[int, int]]) -> list[int | None]:
    """For each token, given as its start and end characters, the number of the word of `text`
    (split at white space) that its last character is in; None for a token without text."""
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    return [
        next((n for n, end in enumerate(ends) if stop <= end), None) if stop > start else None
        for start, stop in offsets
    ]


def blank_words(ids: Any, owner: Sequence[int | None], blank: int) -> Any:
    """Token ids (1, tokens) with those of words replaced by `blank`; [CLS] and its like stay."""
    blanked_ids = ids.clone()
    blanked_ids[0, [n for n, word in enumerate(owner) if word is not None]] = blank
    return blanked_ids


def align_words(text: str, masked_text: str) -> list[tuple[str, list[int]]]:
    """The words of a text, each with the numbers of the words of its masked form
    (`_masking.neutralise`) that stand for it. A mention that was replaced is one word: "Asian
    people loves tea." is "Asian people", read as "They", "loves", read as "love", and "tea."."""
    own_words, read_words = text.split(), masked_text.split()
    folded_words = [[word.casefold() for word in words] for words in (own_words, read_words)]
    words_and_places: list[tuple[str, list[int]]] = []
    # `autojunk` would skip words that are frequent in long texts.
    matcher = SequenceMatcher(a=folded_words[0], b=folded_words[1], autojunk=False)
    for kind, own_start, own_end, read_start, read_end in matcher.get_opcodes():
        equal_tail = 0
        if kind == "equal":
            equal_tail = own_end - own_start
        elif kind == "replace":  # a verb made to agree is a separate word
            while (
                equal_tail < min(own_end - own_start, read_end - read_start) - 1
                and _masking.neutralise(f"Women {own_words[own_end - equal_tail - 1]}")
                == f"They {read_words[read_end - equal_tail - 1]}"
            ):
                equal_tail += 1
        if own_end - equal_tail > own_start:
            words_and_places.append(
                (
                    " ".join(own_words[own_start : own_end - equal_tail]),
                    list(range(read_start, read_end - equal_tail)),
                )
            )
        elif (
            read_end - equal_tail > read_start and words_and_places
        ):  # a word only in the masked form
            words_and_places[-1][1].extend(range(read_start, read_end - equal_tail))
        words_and_places += [
            (own_words[own_end - n], [read_end - n]) for n in range(equal_tail, 0, -1)
        ]
    return words_and_places


def probability_readout(position: int, *, sigmoid: bool) -> LogitReadout:
    """The probability of one label. `sigmoid`: each label has its own, independent of the
    others."""

    def score(logits: Any) -> Any:
        return (logits.sigmoid() if sigmoid else logits.softmax(dim=1))[:, position]

    def evidence(logits: Any) -> Any:
        if sigmoid:
            return logits[:, position]
        other_positions = [n for n in range(logits.shape[1]) if n != position]
        return logits[:, position] - logits[:, other_positions].logsumexp(dim=1)

    return LogitReadout(score, evidence)


def regard_readout(
    positive: int, negative: int, labels: int, *, sigmoid: bool = False
) -> LogitReadout:
    """p(positive) - p(negative), of the first `labels` columns of the logits."""

    def score(logits: Any) -> Any:
        regard = logits[:, :labels]
        probabilities = regard.sigmoid() if sigmoid else regard.softmax(dim=1)
        return probabilities[:, positive] - probabilities[:, negative]

    return LogitReadout(score, lambda logits: logits[:, positive] - logits[:, negative])
