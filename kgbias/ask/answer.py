"""An answer to a question, and the statements that it rests on. If a model words the answer, its
claims are checked against the statements it was given."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgbias.ask.retrieve import Found, GroupFound, Retrieved
from kgbias.graph.prompting import LoggedPrompter
from kgbias.io.rows import Result, Rows
from kgbias.io.templates import PromptTemplate
from kgbias.measures import headlines
from kgbias.stats.estimate import nan_to_none


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer. `cites` are the numbers, from 1, of existing statements that it
    names; `wrong` are numbers that it names but that do not exist."""

    text: str
    cites: tuple[int, ...] = ()
    wrong: tuple[int, ...] = ()

    @property
    def cited(self) -> bool:
        """Whether it names a source, and every source it names exists."""
        return bool(self.cites) and not self.wrong


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Result):
    """An answer to a question.

    Attributes:
        question: the question as it was asked.
        run: the run's name.
        text: the answer; if nothing was found, a sentence that says so.
        claims: its sentences with their sources; empty if nothing was found.
        retrieved: what it rests on, and why.
        model: the spec of the model that wrote it; "" for an extractive answer.
    """

    question: str
    run: str
    text: str
    claims: tuple[Claim, ...]
    retrieved: Retrieved
    model: str = ""

    @property
    def statements(self) -> tuple[Found, ...]:
        """The statements that were retrieved; a claim cites them by their place, from 1."""
        return self.retrieved.statements

    @property
    def note(self) -> str:
        """Sentences to read before the text: which groups of the question the run lacks, that the
        statements found are not about the question, or that a model names no source for what it
        wrote. "" if the answer needs no note."""
        r = self.retrieved
        notes = [r.absent] if r.absent and not r.nothing.startswith(r.absent) else []
        if r.nearest:
            notes.append(
                "The nearest statements are listed; they are, or may be, about something else."
            )
        if self.model and self.statements and not any(c.cited for c in self.claims):
            what = "names no source for what it wrote" if self.claims else "wrote no answer"
            notes.append(f"{self.model} {what}: the statements are the answer.")
        return " ".join(notes)

    def as_dict(self) -> dict[str, Any]:
        """The answer as plain data for JSON."""
        r = self.retrieved
        cited = {n for claim in self.claims for n in claim.cites}
        found: dict[str, Any] = nan_to_none(
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
                        "wrong": list(c.wrong),
                        "cited": c.cited,
                    }
                    for c in self.claims
                ],
                "statements": [
                    statement_record(f) | {"number": n, "cited": n in cited}
                    for n, f in enumerate(r.statements, 1)
                ],
                "nearest": [statement_record(f) for f in r.nearest],
                "groups": [_group_record(g) for g in r.groups],
                "neighbours": [
                    {
                        "of": n.of,
                        "group": n.triple.group,
                        "predicate": n.triple.predicate,
                        "object": n.triple.object,
                        "count": n.triple.count,
                        "arm": n.triple.arm,
                    }
                    for n in r.neighbours
                ],
                "retrieval": {
                    "groups": list(r.question.groups.values()),
                    "topic": list(r.question.topic),
                    "matching": r.matching,
                    "method": r.method,
                },
            }
        )
        return found

    def as_rows(self) -> Rows[Found]:
        """The statements that were retrieved. Columns: group, predicate, object, count, arm, share
        (of all statements about the group), similarity, why."""
        columns = ("group", "predicate", "object", "count", "arm", "share", "similarity", "why")

        def record(found: Found) -> dict[str, Any]:
            own = {name: getattr(found.triple, name) for name in columns[:5]}
            more = {"share": found.share.value, "similarity": found.similarity, "why": found.why}
            return own | more

        return Rows(self.statements, record, columns)

    def __str__(self) -> str:
        return "\n".join(line for line in (self.note, self.text) if line)


def extractive(question: str, run: str, found: Retrieved) -> Answer:
    """The answer made from the statements themselves, each as a sentence with its source."""
    claims = tuple(
        Claim(f"{f.triple.sentence} [{n}]", (n,)) for n, f in enumerate(found.statements, 1)
    )
    if not claims:
        return Answer(question, run, found.nothing, (), found)
    text = " ".join([*_counts(found.groups, found), *(claim.text for claim in claims)])
    return Answer(question, run, text, claims, found)


def statement_record(f: Found) -> dict[str, Any]:
    """A retrieved statement as plain data for JSON."""
    t = f.triple
    return {
        "group": t.group,
        "predicate": t.predicate,
        "object": t.object,
        "count": t.count,
        "arm": t.arm,
        "share": f.share.as_dict(),
        "scores": {name: score.value for name, score in t.scores.items()},
        "similarity": f.similarity,
        "words": list(f.words),
        "why": f.why,
        "sentence": t.sentence,
        "id": t.id,
    }


def shown_figures(figures: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """The figures of a group that an answer shows, as (title, value with interval, the number of
    statements behind it)."""
    found = []
    for figure in headlines(figures):
        e = figures[figure.name]
        if figure.statistic and not math.isnan(e.value):
            interval = f" ({e.interval(figure.form)})" if e.has_interval else ""
            found.append((figure.title, f"{e.value:{figure.form}}{interval}", e.n))
    return found


def _group_record(g: GroupFound) -> dict[str, Any]:
    return {
        "group": g.group,
        "arm": g.arm,
        "statements": g.statements,
        "matching": g.matching.as_dict(),
        "figures": {name: score.as_dict() for name, score in g.figures.items()},
    }


def _counts(groups: Sequence[GroupFound], found: Retrieved) -> list[str]:
    """Sentences on how many statements about each group match the question."""
    several = len({g.arm for g in groups}) > 1
    lines = []
    for g in groups:
        matching = round(g.matching.value * g.statements) if g.statements else 0
        of = f"{g.group} (arm {g.arm})" if several else g.group
        if found.question.topic:
            lines.append(f"{matching} of {g.statements} statements about {of} match.")
        else:
            lines.append(f"{g.statements} statements are about {of}.")
    return lines


PROMPTS = "ask"
TEMPLATES: Mapping[str, Mapping[str, Any]] = {
    "answer": {"question": "", "statements": (), "groups": ()},
    "cypher": {"question": "", "schema": "", "run": "", "group": "", "failed": "", "error": ""},
}
# A sentence, with the numbers that follow it.
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?][\"')]*(?: *\[[\d\s,;]+\])*(?=\s|$)|(?=\n)|$)")
_CITED = re.compile(r"\[([\d\s,;]+)\]")


def generated(
    question: str, run: str, found: Retrieved, model: LoggedPrompter, prompts: Mapping[str, PromptTemplate]
) -> Answer:
    """The answer that a model writes from the statements found. If there are none, nothing is
    asked, and the answer says so."""
    if not found.statements:
        return Answer(question, run, found.nothing, (), found)
    values = {
        "question": question,
        "statements": [
            {"number": n, "sentence": f.triple.sentence, "count": f.triple.count}
            for n, f in enumerate(found.statements, 1)
        ],
        "groups": [
            {
                "name": g.group,
                "statements": g.statements,
                "figures": [(title, value) for title, value, _ in shown_figures(g.figures)],
            }
            for g in found.groups
        ],
    }
    (text,) = model.ask(prompts["answer"], [values])
    return Answer(question, run, text, claims(text, len(found.statements)), found, model.name)


def claims(text: str, sources: int) -> tuple[Claim, ...]:
    """The sentences of an answer, with the numbers that each one cites. A number on its own after a
    sentence belongs to it."""
    found: list[Claim] = []
    for part in _parts(text):
        numbers = [int(n) for m in _CITED.finditer(part) for n in re.findall(r"\d{1,6}", m[1])]
        cites = tuple(dict.fromkeys(n for n in numbers if 1 <= n <= sources))
        wrong = tuple(dict.fromkeys(n for n in numbers if not 1 <= n <= sources))
        found.append(Claim(part, cites, wrong))
    return tuple(found)


def _parts(text: str) -> Sequence[str]:
    parts = (" ".join(match[0].split()) for match in _SENTENCE.finditer(text))
    return [part for part in parts if any(c.isalnum() for c in _CITED.sub("", part))]
