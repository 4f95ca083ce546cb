"""The answers of a run of pairs, read from the store."""

from dataclasses import dataclass

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


def answers_of(run: StoredRun) -> list[tuple[PairAnswer, str]]:
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
            text, truncated = (answer.text, answer.finish == "length") if answer else ("", False)
            answered.append(
                (PairAnswer(place, generation.outcome, text, truncated), generation.prompt)
            )
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
        for a, prompt in answers_of(run)
    ]
    return Rows(rows, AnswerRow)
