"""How a model is made to choose, and which option an answer names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from kgbias.errors import UsageError
from kgbias.graph.prompting import load_prompts
from kgbias.graph.selection import run_language
from kgbias.graph.store import StoredRun
from kgbias.ids import normalise
from kgbias.io.templates import PromptTemplate
from kgbias.language.words import is_german_refusal, is_refusal
from kgbias.models.base import FormParameter, PromptForm, Settings
from kgbias.parameters import Parameter, check_parameters

REFUSED, UNREADABLE, FAILED = "refused", "unreadable", "failed"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_LEAD = re.compile(
    r"(?i:(?:the )?(?:correct |right |best )?(?:answer|option|group|choice)(?: is)?)[\W_]+"
)
# A letter that begins no word: neither "Bakers" nor "I'm".
_LETTER = re.compile(r"([A-Z])(?![\w’'])(.*)")


def read_choice(answer: str, options: Sequence[Sequence[str]]) -> int | str:
    """The number of the option that an answer names, by its letter, by one of its names, or by
    both; else "refused" or "unreadable". Nothing is guessed: an answer that names no option, or
    whose letter and name belong to different options, is unreadable.

    `options` are the names of each option, the one shown first. Only the first line of the answer
    is read.
    """
    if is_refusal(answer) or is_german_refusal(answer):
        return REFUSED
    line = next((line for line in answer.splitlines() if line.strip()), "")
    line = line.strip(" \t*_\"'`([{<.:“”‘’")
    line = _LEAD.sub("", line, count=1) if _LEAD.match(line) else line
    names = [{normalise(name) for name in own} for own in options]
    if match := _LETTER.match(line):
        number, text_after = LETTERS.index(match[1]), normalise(match[2])
        if number < len(options):
            named_options = set()
            for n, own in enumerate(names):
                if any(_begins_with_name(text_after, name) for name in own):
                    named_options.add(n)
            if named_options:
                return number if number in named_options else UNREADABLE
            if not match[2][:1].isspace():  # "A cat" is no answer, "A) since" is one
                return number
    answer_text = normalise(line).removeprefix("the ")
    return next((n for n, own in enumerate(names) if answer_text in own), UNREADABLE)


def _begins_with_name(text: str, name: str) -> bool:
    return text.startswith(name) and not text[len(name) : len(name) + 1].isalnum()


DEFAULT_PROMPTS = "choice"
TEMPLATE_NAME = "group"
READER_VERSION = 1  # raised whenever `read_choice` reads any answer differently
_EXAMPLE: dict[str, Any] = {"statement": "love music", "options": [("A", "Bakers"), ("B", "Cooks")]}


class QuestionRounds(NamedTuple):
    """How many groups a question offers, and how many rounds there are."""

    offered: int
    rounds: int


@dataclass(frozen=True, slots=True)
class ChoiceConfig:
    """The settings that decide the questions and their answers.

    Attributes:
        template: of the question; it may name `statement` and `options`, pairs of letter and name.
        form: of the question, "chat" or "completion".
        options: the largest number of groups in a question.
        samples: the least number of times that each group is offered for each statement: it is
            rounded up to put each group in every place equally often. A group's names take turns.
        temperature: of the answers, above 0 because they are draws.
        seed: of the orders and of the answers.
    """

    template: PromptTemplate
    form: FormParameter
    options: Annotated[
        int, Parameter("Groups in a question", metavar="K", at_least=2, at_most=len(LETTERS))
    ] = 4
    samples: Annotated[
        int,
        Parameter(
            "Offer each group at least this often per statement",
            typed=True,
            metavar="N",
            at_least=1,
        ),
    ] = 24
    temperature: Annotated[
        float,
        Parameter("The temperature at which answers are drawn", above=0, at_most=10),
    ] = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_parameters(self)

    def rounds(self, groups: int) -> QuestionRounds:
        """For a category of this many groups, how many a question offers, and the number of rounds
        of questions (`kgbias.methods.choice.ask`)."""
        offered = min(self.options, groups)
        return QuestionRounds(offered, -(-self.samples // offered))

    @property
    def settings(self) -> Settings:
        """Whatever besides the model can change an answer, or how it is read."""
        return (
            ("choice", f"{self.template.label}:{self.form}"),
            ("template", self.template.hash),
            ("reader", str(READER_VERSION)),
            ("options", str(self.options)),
            ("samples", str(self.samples)),
            ("temperature", f"{self.temperature:g}"),
            ("seed", str(self.seed)),
        )


def configure_choice(
    run: StoredRun, *, form: PromptForm, prompts: str | Path | None = None, **options: Any
) -> ChoiceConfig:
    """The configuration for a run. Raises UsageError for a run in another language than the shipped
    question, and for numbers out of range."""
    if prompts is None and (spoken := run_language(run.config)) != "en":
        raise UsageError(
            f"run {run.name!r} is in {spoken!r}, and the question is in English: name a "
            f"folder of `prompts` with a {TEMPLATE_NAME}.toml of your own"
        )
    template = load_prompts(prompts or DEFAULT_PROMPTS, {TEMPLATE_NAME: _EXAMPLE})[TEMPLATE_NAME]
    set_options = {name: value for name, value in options.items() if value is not None}
    return ChoiceConfig(template, form, **set_options)
