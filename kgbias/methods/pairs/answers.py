"""The answers of a run of pairs, read from the store."""

from dataclasses import dataclass
from typing import NamedTuple

from kgbias.errors import UsageError
from kgbias.graph.store import StoredRun
from kgbias.io.rows import Rows
from kgbias.io.wording import how
from kgbias.methods.pairs.config import PairAnswer, stored_places


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer of a run of pairs: the `request` by its name, about whom (`name`, of a `group` of a
    `category`), how it was asked ("asked", "asked again", "with a greeting"), the prompt, how it
    ended ("ok", "refused", "unparsable" if empty, "failed"), and the text, whole."""

    request: str
    category: str
    group: str
    name: str
    how: str
    prompt: str
    outcome: str
    text: str


class PromptedAnswer(NamedTuple):
    """An answer, and the prompt that it answers."""

    answer: PairAnswer
    prompt: str


def require_answers(run: StoredRun) -> list[PromptedAnswer]:
    """The answers of a run of pairs so far, each with its prompt. Raises UsageError if it is not
    such a run."""
    if run.record.kind != "pairs":
        asks = how("pairs.ask_pairs", "kgbias pairs")
        raise UsageError(f"run {run.name!r} has no pairs: ask some with {asks}")
    generations = {
        generation.path.rpartition("#")[0]: generation for generation in run.generations()
    }
    answers = run.store.answers([generation.answer_key for generation in generations.values()])
    answered = []
    for place in stored_places(run.config):
        if generation := generations.get(place.path):
            answer = answers.get(generation.answer_key)  # a failed one is not kept
            pair_answer = PairAnswer(
                place,
                generation.outcome,
                answer.text if answer else "",
                truncated=answer is not None and answer.finish == "length",
            )
            answered.append(PromptedAnswer(pair_answer, generation.prompt))
    return answered


def answer_rows(run: StoredRun) -> Rows[AnswerRow]:
    """The answers of a run of pairs, in its order."""
    rows = [
        AnswerRow(
            a.place.wording.request,
            a.place.person.category,
            a.place.person.group,
            a.place.person.name,
            a.place.round_name,
            prompt,
            a.outcome,
            a.text,
        )
        for a, prompt in require_answers(run)
    ]
    return Rows(rows, AnswerRow)
