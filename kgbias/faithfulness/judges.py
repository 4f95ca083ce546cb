"""Judges, which decide whether a statement follows from a context.

`rule` and `minilm` run offline and do what their names say: the first compares words and negations,
the second also the cosine of sentence embeddings. Neither infers anything. A model's spec names a
language model, which is asked with the prompts of the RAGAS paper (Es et al. 2023, section 3).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from kgbias.errors import UsageError, no_such
from kgbias.faithfulness.rules import content, says
from kgbias.graph.prompting import LoggedPrompter
from kgbias.io.templates import PromptTemplate
from kgbias.language.words import is_negated

LOCAL = ("rule", "minilm")
NEAR = 0.8  # the least cosine at which two sentences count as saying the same
ABOUT = 0.4  # the least cosine at which a sentence is about a question
QUESTIONS = 3  # made from each answer
ASPECTS = ("faithfulness", "answer_relevance", "context_relevance")
TEMPLATES: dict[str, dict[str, object]] = {
    "statements": {"question": "", "answer": ""},
    "verdicts": {"context": "", "statements": ()},
    "question": {"answer": ""},
    "sentences": {"question": "", "context": ""},
    **{f"score-{aspect}": {"question": "", "answer": "", "context": ""} for aspect in ASPECTS},
    **{
        f"rank-{aspect}": {"question": "", "answer": "", "context": "", "first": "", "second": ""}
        for aspect in ASPECTS
    },
}

Embed = Callable[[Sequence[str]], np.ndarray]
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+")
_ITEM = re.compile(
    r"^\s*(?:[-*•]|\(?\d+[.):]|(?:statement|question|sentence)\s*\d*:)\s*", re.IGNORECASE
)
_VERDICT = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_CITE = re.compile(r"\s*\[\d+(?:\s*,\s*\d+)*\]")
_NUMBER = re.compile(r"(?<![\d.])(10(?:\.0+)?|\d(?:\.\d+)?)(?![\d])")


class Judge(Protocol):
    """A judge. Lists have one place for each thing asked, in order; `repeat` numbers judgements of
    the same thing, which may differ."""

    name: str

    def statements(self, asked: Sequence[tuple[str, str]], repeat: int = 0) -> list[list[str]]:
        """The statements made by each answer, from pairs of (question, answer)."""
        ...

    def verdicts(
        self, asked: Sequence[tuple[str, Sequence[str]]], repeat: int = 0
    ) -> list[list[bool | None]]:
        """Whether each statement follows from its context, from pairs of (context, statements);
        None for a verdict that could not be read."""
        ...

    def questions(self, answers: Sequence[str], repeat: int = 0) -> list[list[str]]:
        """Questions that each answer would answer."""
        ...

    def sentences(self, asked: Sequence[tuple[str, str]], repeat: int = 0) -> list[list[str]]:
        """The sentences of each context that help to answer the question, from pairs of (question,
        context)."""
        ...


class LocalJudge:
    """An offline judge by words, negations and, with `embed`, the cosine of sentence embeddings.

    A statement is supported if one sentence of the context has all its words and the same negation
    (`kgbias.faithfulness.rules`), or with `embed`, if one has a cosine of at least 0.8 with it and
    the same negation. This judge writes no questions, so it gives no answer relevance: the cosine
    of a question with the answer itself tells a complete answer from an evasive one no better than
    chance (docs/methods/how-well.md).
    """

    def __init__(self, embed: Embed | None = None) -> None:
        self.name = "minilm" if embed else "rule"
        self._embed = embed

    def statements(self, asked: Sequence[tuple[str, str]], repeat: int = 0) -> list[list[str]]:
        return [split(answer) for _, answer in asked]

    def verdicts(
        self, asked: Sequence[tuple[str, Sequence[str]]], repeat: int = 0
    ) -> list[list[bool | None]]:
        return [[self._supported(split(context), s) for s in own] for context, own in asked]

    def questions(self, answers: Sequence[str], repeat: int = 0) -> list[list[str]]:
        return [[] for _ in answers]

    def sentences(self, asked: Sequence[tuple[str, str]], repeat: int = 0) -> list[list[str]]:
        found = []
        for question, context in asked:
            wanted = set(content(question))
            own = split(context)
            near = self._cosines(question, own)
            found.append(
                [
                    sentence
                    for sentence, cosine in zip(own, near, strict=True)
                    if wanted & set(content(sentence)) or cosine >= ABOUT
                ]
            )
        return found

    def _supported(self, sentences: Sequence[str], statement: str) -> bool:
        if any(says(sentence, statement).supported for sentence in sentences):
            return True
        return any(
            cosine >= NEAR and is_negated(sentence) == is_negated(statement)
            for sentence, cosine in zip(sentences, self._cosines(statement, sentences), strict=True)
        )

    def _cosines(self, text: str, others: Sequence[str]) -> list[float]:
        if self._embed is None or not others:
            return [0.0] * len(others)
        rows = self._embed([text, *others])
        cosines: list[float] = (rows[1:] @ rows[0]).tolist()
        return cosines


class ModelJudge:
    """A language model with the prompts of the paper."""

    def __init__(self, model: LoggedPrompter, prompts: dict[str, PromptTemplate]) -> None:
        self.name = model.name
        self._model = model
        self._prompts = prompts

    def statements(self, asked: Sequence[tuple[str, str]], repeat: int = 0) -> list[list[str]]:
        values = [{"question": q, "answer": uncited(a)} for q, a in asked]
        return [items(text) for text in self._ask("statements", values, repeat)]

    def verdicts(
        self, asked: Sequence[tuple[str, Sequence[str]]], repeat: int = 0
    ) -> list[list[bool | None]]:
        filled = [(context, own) for context, own in asked if own]
        values = [{"context": context, "statements": list(own)} for context, own in filled]
        answers = iter(self._ask("verdicts", values, repeat))
        return [read_verdicts(next(answers), len(own)) if own else [] for _, own in asked]

    def questions(self, answers: Sequence[str], repeat: int = 0) -> list[list[str]]:
        values = [{"answer": uncited(answer)} for answer in answers]
        rounds = [
            self._ask("question", values, repeat * QUESTIONS + n, temperature=0.8)
            for n in range(QUESTIONS)
        ]
        return [
            [item for text in texts if (item := " ".join(items(text)[:1]))]
            for texts in zip(*rounds, strict=True)
        ]

    def sentences(self, asked: Sequence[tuple[str, str]], repeat: int = 0) -> list[list[str]]:
        values = [{"question": q, "context": context} for q, context in asked]
        return [
            [] if "insufficient information" in text.lower() else items(text)
            for text in self._ask("sentences", values, repeat)
        ]

    def scores(
        self, aspect: str, asked: Sequence[tuple[str, str, str]], repeat: int = 0
    ) -> list[float | None]:
        """The baseline "GPT score": 0 to 10 for (question, answer, context); None where no number
        could be read."""
        values = [{"question": q, "answer": a, "context": c} for q, a, c in asked]
        found = []
        for text in self._ask(f"score-{aspect}", values, repeat):
            match = _NUMBER.search(text)
            found.append(float(match[1]) if match else None)
        return found

    def rankings(
        self, aspect: str, asked: Sequence[dict[str, str]], repeat: int = 0
    ) -> list[int | None]:
        """The baseline "GPT ranking": which of two is better, 1 or 2."""
        found: list[int | None] = []
        for text in self._ask(f"rank-{aspect}", asked, repeat):
            match = re.search(r"\b([12])\b", text)
            found.append(int(match[1]) if match else None)
        return found

    def _ask(
        self, name: str, values: Sequence[Mapping[str, object]],
        repeat: int, temperature: float | None = None,
    ) -> list[str]:  # fmt: skip
        return self._model.ask(self._prompts[name], values, repeat=repeat, temperature=temperature)


def local_judge(name: str, embed: Callable[[], Embed]) -> LocalJudge:
    """An offline judge by name."""
    if name not in LOCAL:
        raise UsageError(f"{no_such('judge', name, LOCAL)}, or a model's spec")
    return LocalJudge(embed() if name == "minilm" else None)


def split(text: str) -> list[str]:
    """The sentences of a text, without the numbers of its sources."""
    found = (" ".join(part.split()) for part in _SENTENCE.split(uncited(text)))
    return [sentence for sentence in found if any(c.isalnum() for c in sentence)]


def uncited(text: str) -> str:
    """The text without the numbers of its sources, such as [1]."""
    return _CITE.sub("", text)


def items(text: str) -> list[str]:
    """The lines of an answer in the form of a list, without bullets and numbers."""
    lines = (_ITEM.sub("", line).strip() for line in text.splitlines())
    return [line for line in lines if any(c.isalnum() for c in line) and not line.endswith(":")]


def read_verdicts(text: str, expected: int) -> list[bool | None]:
    """The verdicts in an answer, taken from its end: the prompt asks for explanations first, then
    all verdicts in order. None for each if there are too few."""
    final = re.split(r"final verdicts?\b[^\n:]*:?", text, flags=re.IGNORECASE)[-1]
    found = [match[1].lower() == "yes" for match in _VERDICT.finditer(final)]
    if len(found) < expected:
        found = [match[1].lower() == "yes" for match in _VERDICT.finditer(text)]
    if len(found) < expected:
        return [None] * expected
    return list(found[-expected:])
