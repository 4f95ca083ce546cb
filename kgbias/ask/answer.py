"""An answer to a question, and the statements that it rests on. If a model words the answer, its
claims are checked against the statements it was given."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from kgbias.ask.retrieval import Retrieval, RetrievedGroup, RetrievedStatement
from kgbias.graph.prompting import LoggedPrompter
from kgbias.graph.selection import triple_columns_at
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.templates import PromptTemplate
from kgbias.io.wording import pluralise
from kgbias.measures import pick_headlines
from kgbias.stats.estimate import nan_to_none


@dataclass(frozen=True, slots=True)
class AnswerClaim:
    """A sentence of an answer. `cites` are the numbers, from 1, of existing statements that it
    names; `missing_numbers` are numbers that it names but that do not exist."""

    text: str
    cites: tuple[int, ...] = ()
    missing_numbers: tuple[int, ...] = ()

    @property
    def has_sources(self) -> bool:
        """Whether it names a source, and every source it names exists."""
        return bool(self.cites) and not self.missing_numbers


@dataclass(frozen=True, slots=True, repr=False)
class QuestionAnswer(Result):
    """An answer to a question.

    Attributes:
        question: the question as it was asked.
        run: the run's name.
        text: the answer; if nothing was found, a sentence that says so.
        claims: its sentences with their sources; empty if nothing was found.
        retrieval: what it rests on, and why.
        model: the spec of the model that wrote it; "" for an extractive answer.
    """

    question: str
    run: str
    text: str
    claims: tuple[AnswerClaim, ...]
    retrieval: Retrieval
    model: str = ""

    @property
    def statements(self) -> tuple[RetrievedStatement, ...]:
        """The statements that were retrieved; a claim cites them by their place, from 1."""
        return self.retrieval.statements

    @property
    def note(self) -> str:
        """Sentences to read before the text: which groups of the question the run lacks, that the
        statements found are not about the question, or that a model names no source for what it
        wrote. "" if the answer needs no note."""
        retrieval = self.retrieval
        notes: list[str] = []
        # The reason why nothing was found may begin with the same sentence.
        is_said_below = retrieval.empty_reason.startswith(retrieval.absent_note)
        if retrieval.absent_note and not is_said_below:
            notes.append(retrieval.absent_note)
        if retrieval.nearest:
            notes.append(
                "The nearest statements are listed; they are, or may be, about something else."
            )
        if self.model and self.statements and not any(claim.has_sources for claim in self.claims):
            complaint = "names no source for what it wrote" if self.claims else "wrote no answer"
            notes.append(f"{self.model} {complaint}: the statements are the answer.")
        return " ".join(notes)

    def as_dict(self) -> dict[str, Any]:
        """The answer as plain data for JSON."""
        retrieval = self.retrieval
        cited = {number for claim in self.claims for number in claim.cites}
        record: dict[str, Any] = nan_to_none(
            {
                "question": self.question,
                "run": self.run,
                "model": self.model,
                "answer": self.text,
                "note": self.note,
                "claims": [
                    {
                        "text": c.text,
                        "cites": list(c.cites),
                        "wrong": list(c.missing_numbers),
                        "cited": c.has_sources,
                    }
                    for c in self.claims
                ],
                "statements": [
                    statement_record(statement) | {"number": number, "cited": number in cited}
                    for number, statement in enumerate(retrieval.statements, 1)
                ],
                "nearest": [statement_record(statement) for statement in retrieval.nearest],
                "groups": [_group_record(group) for group in retrieval.groups],
                "neighbours": [
                    {
                        "statement": neighbour.statement_number,
                        "group": neighbour.triple.group,
                        "predicate": neighbour.triple.predicate,
                        "object": neighbour.triple.object,
                        "count": neighbour.triple.count,
                        "arm": neighbour.triple.arm,
                    }
                    for neighbour in retrieval.neighbours
                ],
                "retrieval": {
                    "groups": list(retrieval.question.groups.values()),
                    "topic": list(retrieval.question.topic),
                    "matching": retrieval.matching,
                    "method": retrieval.method,
                },
            }
        )
        return record

    def as_rows(self) -> Rows[RetrievedStatement]:
        """The statements that were retrieved. Columns: group, predicate, object, count, arm, share
        (of all statements about the group), similarity, why."""
        columns = (
            *triple_columns_at("triple"),
            Column("share", ".1%", get=attrgetter("share.value")),
            Column("similarity", ".2f"),
            Column("why"),
        )
        return Rows(self.statements, columns)

    def __str__(self) -> str:
        return "\n".join(line for line in (self.note, self.text) if line)


def build_extractive_answer(question: str, run: str, retrieval: Retrieval) -> QuestionAnswer:
    """The answer made from the statements themselves, each as a sentence with its source."""
    claims = tuple(
        AnswerClaim(f"{statement.triple.sentence} [{n}]", (n,))
        for n, statement in enumerate(retrieval.statements, 1)
    )
    if not claims:
        return QuestionAnswer(question, run, retrieval.empty_reason, (), retrieval)
    text = " ".join(
        [*_describe_counts(retrieval.groups, retrieval), *(claim.text for claim in claims)]
    )
    return QuestionAnswer(question, run, text, claims, retrieval)


def statement_record(statement: RetrievedStatement) -> dict[str, Any]:
    """A retrieved statement as plain data for JSON."""
    triple = statement.triple
    return {
        "group": triple.group,
        "predicate": triple.predicate,
        "object": triple.object,
        "count": triple.count,
        "arm": triple.arm,
        "share": statement.share.as_dict(),
        "scores": {name: score.value for name, score in triple.scores.items()},
        "similarity": statement.similarity,
        "words": list(statement.words),
        "why": statement.why,
        "sentence": triple.sentence,
        "id": triple.id,
    }


class FormattedFigure(NamedTuple):
    """A figure of a group as an answer shows it: its `value` with the interval, over `n`
    statements."""

    title: str
    value: str
    n: int


def format_figures(figures: Mapping[str, Any]) -> list[FormattedFigure]:
    """The figures of a group that an answer shows."""
    formatted = []
    for figure in pick_headlines(figures):
        estimate = figures[figure.name]
        if figure.statistic and not math.isnan(estimate.value):
            interval = f" ({estimate.format_interval(figure.form)})" if estimate.is_shown else ""
            value = f"{estimate.value:{figure.form}}{interval}"
            formatted.append(FormattedFigure(figure.title, value, estimate.n))
    return formatted


def _group_record(group: RetrievedGroup) -> dict[str, Any]:
    return {
        "group": group.group,
        "arm": group.arm,
        "statements": group.statements,
        "matching": group.matching.as_dict(),
        "figures": {name: score.as_dict() for name, score in group.figures.items()},
    }


def _describe_counts(groups: Sequence[RetrievedGroup], retrieval: Retrieval) -> list[str]:
    """Sentences on how many statements about each group match the question."""
    has_several_arms = len({group.arm for group in groups}) > 1
    lines = []
    for group in groups:
        matching = round(group.matching.value * group.statements) if group.statements else 0
        group_name = f"{group.group} (arm {group.arm})" if has_several_arms else group.group
        if retrieval.question.topic:
            lines.append(f"{matching} of {group.statements} statements about {group_name} match.")
        else:
            verb = "is" if group.statements == 1 else "are"
            counted = pluralise(group.statements, "statement")
            lines.append(f"{counted} {verb} about {group_name}.")
    return lines


PROMPT_PACK = "ask"
TEMPLATE_VARIABLES: Mapping[str, Mapping[str, Any]] = {
    "answer": {"question": "", "statements": (), "groups": ()},
    "cypher": {"question": "", "schema": "", "run": "", "group": "", "failed": "", "error": ""},
}
# A sentence, with the numbers that follow it.
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?][\"')]*(?: *\[[\d\s,;]+\])*(?=\s|$)|(?=\n)|$)")
_CITATION = re.compile(r"\[([\d\s,;]+)\]")


def generate_answer(
    question: str,
    run: str,
    retrieval: Retrieval,
    model: LoggedPrompter,
    prompts: Mapping[str, PromptTemplate],
) -> QuestionAnswer:
    """The answer that a model writes from the statements found. If there are none, nothing is
    asked, and the answer says so."""
    if not retrieval.statements:
        return QuestionAnswer(question, run, retrieval.empty_reason, (), retrieval)
    values = {
        "question": question,
        "statements": [
            {"number": n, "sentence": statement.triple.sentence, "count": statement.triple.count}
            for n, statement in enumerate(retrieval.statements, 1)
        ],
        "groups": [
            {
                "name": group.group,
                "statements": group.statements,
                "figures": [(f.title, f.value) for f in format_figures(group.figures)],
            }
            for group in retrieval.groups
        ],
    }
    (text,) = model.ask(prompts["answer"], [values])
    return QuestionAnswer(
        question, run, text, split_claims(text, len(retrieval.statements)), retrieval, model.name
    )


def split_claims(text: str, sources: int) -> tuple[AnswerClaim, ...]:
    """The sentences of an answer, with the numbers that each one cites. A number on its own after a
    sentence belongs to it."""
    claims_found: list[AnswerClaim] = []
    for sentence in _split_sentences(text):
        numbers = [
            int(n) for m in _CITATION.finditer(sentence) for n in re.findall(r"\d{1,6}", m[1])
        ]
        cites = tuple(dict.fromkeys(n for n in numbers if 1 <= n <= sources))
        wrong = tuple(dict.fromkeys(n for n in numbers if not 1 <= n <= sources))
        claims_found.append(AnswerClaim(sentence, cites, wrong))
    return tuple(claims_found)


def _split_sentences(text: str) -> Sequence[str]:
    parts = (" ".join(match[0].split()) for match in _SENTENCE.finditer(text))
    return [part for part in parts if any(c.isalnum() for c in _CITATION.sub("", part))]
