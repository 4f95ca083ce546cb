"""Answers in a model's words, held to the statements they were given."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kgbias.ask.answer import Answer, Claim, shown_figures
from kgbias.ask.retrieve import Retrieved
from kgbias.graph.prompted import Prompted
from kgbias.io.templates import Template

PROMPTS = "ask"
TEMPLATES: Mapping[str, Mapping[str, Any]] = {
    "answer": {"question": "", "statements": (), "groups": ()},
    "cypher": {"question": "", "schema": "", "run": "", "group": "", "failed": "", "error": ""},
}
# A sentence, with the numbers that stand behind it.
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?][\"')]*(?: *\[[\d\s,;]+\])*(?=\s|$)|(?=\n)|$)")
_CITED = re.compile(r"\[([\d\s,;]+)\]")


def generated(
    question: str, run: str, found: Retrieved, model: Prompted, prompts: Mapping[str, Template]
) -> Answer:
    """The answer that a model writes from the statements that were found. Nothing is asked where
    there are none: the answer says so."""
    if not found.statements:
        return Answer(question, run, found.nothing, (), found)
    values = {
        "question": question,
        "statements": [
            {"number": n, "sentence": f.triple.sentence, "count": f.triple.count}
            for n, f in enumerate(found.statements, 1)
        ],
        "groups": [
            {"name": g.group, "statements": g.statements, "figures": shown_figures(g.figures)}
            for g in found.groups
        ],
    }
    (text,) = model.ask(prompts["answer"], [values])
    return Answer(question, run, text, claims(text, len(found.statements)), found, model.name)


def claims(text: str, sources: int) -> tuple[Claim, ...]:
    """The sentences of an answer with the numbers that each one cites. A number that stands alone
    after a sentence belongs to it."""
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
