"""Judges, which decide whether a statement follows from a context.

`rule` and `minilm` run offline and do what their names say: the first compares words and negations,
the second also the cosine of sentence embeddings. Neither infers anything. A model's spec names a
language model, which is asked with the prompts of the RAGAS paper (Es et al. 2023, section 3).

What a judge says comes with its reliability (`kgbias.methods.rag.judge_reliability`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

from kgbias.errors import UsageError, no_such
from kgbias.graph.prompting import LoggedPrompter, load_prompts
from kgbias.graph.store import Store
from kgbias.io.progress import Progress
from kgbias.io.templates import PromptTemplate
from kgbias.language.words import is_negated
from kgbias.methods.rag.rules import check_statement, content_stems
from kgbias.models.base import Completer
from kgbias.parameters import JudgeOptions

PAPER_PROMPTS = Path(__file__).with_name("prompts")
LOCAL_JUDGES = ("rule", "minilm")
MIN_SAME_COSINE = 0.8  # the least cosine at which two sentences count as saying the same
MIN_TOPIC_COSINE = 0.4  # the least cosine at which a sentence is about a question
QUESTIONS_PER_ANSWER = 3  # made from each answer
ASPECTS = ("faithfulness", "answer_relevance", "context_relevance")
TEMPLATE_VALUES: dict[str, dict[str, object]] = {
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

EmbedSentences = Callable[[Sequence[str]], np.ndarray]
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+")
_LIST_MARKER = re.compile(
    r"^\s*(?:[-*•]|\(?\d+[.):]|(?:statement|question|sentence)\s*\d*:)\s*", re.IGNORECASE
)
_VERDICT = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_CITATION = re.compile(r"\s*\[\d+(?:\s*,\s*\d+)*\]")
_SCORE_NUMBER = re.compile(r"(?<![\d.])(10(?:\.0+)?|\d(?:\.\d+)?)(?![\d])")


class Judge(Protocol):
    """A judge. Lists have one place for each thing asked, in order; `repeat` numbers judgements of
    the same thing, which may differ."""

    name: str

    def extract_statements(
        self, queries: Sequence[tuple[str, str]], repeat: int = 0
    ) -> list[list[str]]:
        """The statements made by each answer, from pairs of (question, answer)."""
        ...

    def judge_statements(
        self, queries: Sequence[tuple[str, Sequence[str]]], repeat: int = 0
    ) -> list[list[bool | None]]:
        """Whether each statement follows from its context, from pairs of (context, statements);
        None for a verdict that could not be read."""
        ...

    def write_questions(self, answers: Sequence[str], repeat: int = 0) -> list[list[str]]:
        """Questions that each answer would answer."""
        ...

    def select_sentences(
        self, queries: Sequence[tuple[str, str]], repeat: int = 0
    ) -> list[list[str]]:
        """The sentences of each context that help to answer the question, from pairs of (question,
        context)."""
        ...


class LocalJudge:
    """An offline judge by words, negations and, with `embed`, the cosine of sentence embeddings.

    A statement is supported if one sentence of the context has all its words and the same negation
    (`kgbias.methods.rag.rules`), or with `embed`, if one has a cosine of at least 0.8 with it and
    the same negation. This judge writes no questions, so it gives no answer relevance: the cosine
    of a question with the answer itself tells a complete answer from an evasive one no better than
    chance (docs/methods/how-well.md).
    """

    def __init__(self, embed: EmbedSentences | None = None) -> None:
        self.name = "minilm" if embed else "rule"
        self._embed = embed

    def extract_statements(
        self, queries: Sequence[tuple[str, str]], repeat: int = 0
    ) -> list[list[str]]:
        return [split_answer_sentences(answer) for _, answer in queries]

    def judge_statements(
        self, queries: Sequence[tuple[str, Sequence[str]]], repeat: int = 0
    ) -> list[list[bool | None]]:
        return [
            [
                self._is_supported(split_answer_sentences(context), statement)
                for statement in statements
            ]
            for context, statements in queries
        ]

    def write_questions(self, answers: Sequence[str], repeat: int = 0) -> list[list[str]]:
        return [[] for _ in answers]

    def select_sentences(
        self, queries: Sequence[tuple[str, str]], repeat: int = 0
    ) -> list[list[str]]:
        selected = []
        for question, context in queries:
            question_stems = set(content_stems(question))
            context_sentences = split_answer_sentences(context)
            cosines = self._cosines_with(question, context_sentences)
            selected.append(
                [
                    sentence
                    for sentence, cosine in zip(context_sentences, cosines, strict=True)
                    if question_stems & set(content_stems(sentence)) or cosine >= MIN_TOPIC_COSINE
                ]
            )
        return selected

    def _is_supported(self, sentences: Sequence[str], statement: str) -> bool:
        if any(check_statement(sentence, statement).supported for sentence in sentences):
            return True
        return any(
            cosine >= MIN_SAME_COSINE and is_negated(sentence) == is_negated(statement)
            for sentence, cosine in zip(
                sentences, self._cosines_with(statement, sentences), strict=True
            )
        )

    def _cosines_with(self, text: str, others: Sequence[str]) -> list[float]:
        if self._embed is None or not others:
            return [0.0] * len(others)
        vectors = self._embed([text, *others])
        cosines: list[float] = (vectors[1:] @ vectors[0]).tolist()
        return cosines


class ModelJudge:
    """A language model with the prompts of the paper."""

    def __init__(self, model: LoggedPrompter, prompts: dict[str, PromptTemplate]) -> None:
        self.name = model.name
        self._model = model
        self._prompts = prompts

    def extract_statements(
        self, queries: Sequence[tuple[str, str]], repeat: int = 0
    ) -> list[list[str]]:
        values = [
            {"question": question, "answer": strip_citations(answer)}
            for question, answer in queries
        ]
        return [list_items(text) for text in self._ask_model("statements", values, repeat)]

    def judge_statements(
        self, queries: Sequence[tuple[str, Sequence[str]]], repeat: int = 0
    ) -> list[list[bool | None]]:
        with_statements = [(context, statements) for context, statements in queries if statements]
        values = [
            {"context": context, "statements": list(statements)}
            for context, statements in with_statements
        ]
        answers = iter(self._ask_model("verdicts", values, repeat))
        return [
            read_verdicts(next(answers), len(statements)) if statements else []
            for _, statements in queries
        ]

    def write_questions(self, answers: Sequence[str], repeat: int = 0) -> list[list[str]]:
        values = [{"answer": strip_citations(answer)} for answer in answers]
        rounds = [
            self._ask_model(
                "question", values, repeat * QUESTIONS_PER_ANSWER + number, temperature=0.8
            )
            for number in range(QUESTIONS_PER_ANSWER)
        ]
        questions = []
        for texts in zip(*rounds, strict=True):
            first_items = [" ".join(list_items(text)[:1]) for text in texts]
            questions.append([item for item in first_items if item])
        return questions

    def select_sentences(
        self, queries: Sequence[tuple[str, str]], repeat: int = 0
    ) -> list[list[str]]:
        values = [{"question": question, "context": context} for question, context in queries]
        return [
            [] if "insufficient information" in text.lower() else list_items(text)
            for text in self._ask_model("sentences", values, repeat)
        ]

    def score_answers(
        self, aspect: str, queries: Sequence[tuple[str, str, str]], repeat: int = 0
    ) -> list[float | None]:
        """The baseline "GPT score": 0 to 10 for (question, answer, context); None where no number
        could be read."""
        values = [
            {"question": question, "answer": answer, "context": context}
            for question, answer, context in queries
        ]
        scores_read = []
        for text in self._ask_model(f"score-{aspect}", values, repeat):
            match = _SCORE_NUMBER.search(text)
            scores_read.append(float(match[1]) if match else None)
        return scores_read

    def rank_pairs(
        self, aspect: str, queries: Sequence[dict[str, str]], repeat: int = 0
    ) -> list[int | None]:
        """The baseline "GPT ranking": which of two is better, 1 or 2."""
        rankings_read: list[int | None] = []
        for text in self._ask_model(f"rank-{aspect}", queries, repeat):
            match = re.search(r"\b([12])\b", text)
            rankings_read.append(int(match[1]) if match else None)
        return rankings_read

    def _ask_model(
        self,
        name: str,
        values: Sequence[Mapping[str, object]],
        repeat: int,
        temperature: float | None = None,
    ) -> list[str]:
        return self._model.ask(self._prompts[name], values, repeat=repeat, temperature=temperature)


def make_local_judge(name: str, embed: Callable[[], EmbedSentences]) -> LocalJudge:
    """An offline judge by name."""
    if name not in LOCAL_JUDGES:
        raise UsageError(f"{no_such('judge', name, LOCAL_JUDGES)}, or a model's spec")
    return LocalJudge(embed() if name == "minilm" else None)


@contextmanager
def open_judge(
    judge: str | Completer,
    store: Store | None,
    progress: Progress,
    seed: int,
    judging: JudgeOptions,
) -> Iterator[Judge]:
    """The judge given by a name, a spec or an open model; its answers go through the log of
    `store`."""
    from kgbias.study.opening import open_prompter

    if isinstance(judge, str) and judge in LOCAL_JUDGES:
        yield make_local_judge(judge, lambda: make_lazy_embedder(progress))
        return
    assert store is not None
    prompts = load_prompts(judging.get("prompts", PAPER_PROMPTS), TEMPLATE_VALUES)
    with open_prompter(judge, store, progress, seed, judging) as prompted:
        yield ModelJudge(prompted, prompts)


def check_judge_options(repeats: int, judge: object, judging: JudgeOptions) -> None:
    if repeats < 1:
        raise UsageError("`repeats` must be at least 1")
    set_options = [name for name, value in judging.items() if value is not None]
    if set_options and (judge is None or judge in LOCAL_JUDGES):
        raise UsageError(f"`{set_options[0]}` needs a judge that is a language model")


def make_lazy_embedder(progress: Progress) -> EmbedSentences:
    """The offline sentence embeddings, loaded when the first text is embedded."""

    @cache
    def vectors() -> EmbedSentences:
        from kgbias.models.embed import SentenceVectors

        return SentenceVectors(notify=progress.note)

    return lambda texts: vectors()(texts)


def split_answer_sentences(text: str) -> list[str]:
    """The sentences of a text, without the numbers of its sources."""
    candidates = (" ".join(part.split()) for part in _SENTENCE_END.split(strip_citations(text)))
    return [
        sentence for sentence in candidates if any(character.isalnum() for character in sentence)
    ]


def strip_citations(text: str) -> str:
    """The text without the numbers of its sources, such as [1]."""
    return _CITATION.sub("", text)


def list_items(text: str) -> list[str]:
    """The lines of an answer in the form of a list, without bullets and numbers."""
    lines = (_LIST_MARKER.sub("", line).strip() for line in text.splitlines())
    return [
        line
        for line in lines
        if any(character.isalnum() for character in line) and not line.endswith(":")
    ]


def read_verdicts(text: str, expected: int) -> list[bool | None]:
    """The verdicts in an answer, taken from its end: the prompt asks for explanations first, then
    all verdicts in order. None for each if there are too few."""
    final = re.split(r"final verdicts?\b[^\n:]*:?", text, flags=re.IGNORECASE)[-1]
    verdicts = [match[1].lower() == "yes" for match in _VERDICT.finditer(final)]
    if len(verdicts) < expected:
        verdicts = [match[1].lower() == "yes" for match in _VERDICT.finditer(text)]
    if len(verdicts) < expected:
        return [None] * expected
    return list(verdicts[-expected:])
