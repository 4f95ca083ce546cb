"""A sentence as the network of a scorer reads it, open to gradients."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Protocol, runtime_checkable

from kgbias.measure.scorers import _masking
from kgbias.measure.scorers._base import Scorer


@dataclass(frozen=True)
class Value:
    """What is computed from the logits (batch, labels) of a network, each a tensor (batch).

    Attributes:
        score: the scorer's value.
        evidence: the value before squashing: the log-odds of a probability; for regard, the logit
            of positive minus that of negative.
    """

    score: Callable[[Any], Any]
    evidence: Callable[[Any], Any]


@dataclass(frozen=True)
class Reading:
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
    value: Value
    halves: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None = None


@runtime_checkable
class Readable(Scorer, Protocol):
    """A scorer whose network can be looked into."""

    has_states: bool  # whether a reading has `halves`

    def reading(self, text: str) -> Reading: ...


@runtime_checkable
class Masking(Scorer, Protocol):
    """A scorer that treats several words of a text as one."""

    def words(self, text: str) -> list[str]: ...


def owners(text: str, offsets: Sequence[tuple[int, int]]) -> list[int | None]:
    """For each token, given as its start and end characters, the number of the word of `text`
    (split at white space) that its last character is in; None for a token without text."""
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    return [
        next((n for n, end in enumerate(ends) if stop <= end), None) if stop > start else None
        for start, stop in offsets
    ]


def blanked(ids: Any, owner: Sequence[int | None], blank: int) -> Any:
    """Token ids (1, tokens) with those of words replaced by `blank`; [CLS] and its like stay."""
    found = ids.clone()
    found[0, [n for n, word in enumerate(owner) if word is not None]] = blank
    return found


def aligned(text: str, masked: str) -> list[tuple[str, list[int]]]:
    """The words of a text, each with the numbers of the words of its masked form
    (`_masking.neutralise`) that stand for it. A mention that was replaced is one word: "Asian
    people loves tea." is "Asian people", read as "They", "loves", read as "love", and "tea."."""
    own, read = text.split(), masked.split()
    plain = [[word.casefold() for word in words] for words in (own, read)]
    found: list[tuple[str, list[int]]] = []
    matcher = SequenceMatcher(a=plain[0], b=plain[1], autojunk=False)
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        tail = 0
        if kind == "equal":
            tail = a_end - a
        elif kind == "replace":  # a verb made to agree is a separate word
            while (
                tail < min(a_end - a, b_end - b) - 1
                and _masking.neutralise(f"Women {own[a_end - tail - 1]}")
                == f"They {read[b_end - tail - 1]}"
            ):
                tail += 1
        if a_end - tail > a:
            found.append((" ".join(own[a : a_end - tail]), list(range(b, b_end - tail))))
        elif b_end - tail > b and found:  # a word only in the masked form
            found[-1][1].extend(range(b, b_end - tail))
        found += [(own[a_end - n], [b_end - n]) for n in range(tail, 0, -1)]
    return found


def of_probability(position: int, *, sigmoid: bool) -> Value:
    """The probability of one label. `sigmoid`: each label has its own, independent of the
    others."""

    def score(logits: Any) -> Any:
        return (logits.sigmoid() if sigmoid else logits.softmax(dim=1))[:, position]

    def evidence(logits: Any) -> Any:
        if sigmoid:
            return logits[:, position]
        others = [n for n in range(logits.shape[1]) if n != position]
        return logits[:, position] - logits[:, others].logsumexp(dim=1)

    return Value(score, evidence)


def of_regard(positive: int, negative: int, labels: int, *, sigmoid: bool = False) -> Value:
    """p(positive) - p(negative), of the first `labels` columns of the logits."""

    def score(logits: Any) -> Any:
        regard = logits[:, :labels]
        probabilities = regard.sigmoid() if sigmoid else regard.softmax(dim=1)
        return probabilities[:, positive] - probabilities[:, negative]

    return Value(score, lambda logits: logits[:, positive] - logits[:, negative])
