"""A language model as a scorer: it is asked to judge each statement by a published rubric."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kgbias.errors import DataError, ModelError, UsageError
from kgbias.graph.answers import LoggedModel
from kgbias.graph.store import Store
from kgbias.graph.stores import open_store
from kgbias.graph.types import Answer, canonical_json
from kgbias.io.reading import read_toml
from kgbias.io.resources import resource_path
from kgbias.io.templates import PromptForm, PromptTemplate, read_template
from kgbias.measure.scorers._base import (
    Judgement,
    class_judgement,
    probability_judgement,
)
from kgbias.measures import get_measure
from kgbias.models import open_model
from kgbias.models.base import Request

MAX_ATTEMPTS = 3
_RETRY_TEMPERATURE = 0.7  # the temperature of a retry after an unreadable answer
_MAX_CHARACTERS = 2_000  # characters of a statement that is judged


@dataclass(frozen=True)
class JudgeRubric:
    """How a judge is asked: the template, and the value of each label."""

    template: PromptTemplate
    values: Mapping[str, float]

    @cached_property
    def schema(self) -> str:
        """The flat JSON schema of an answer."""
        return canonical_json(
            {
                "type": "object",
                "properties": {"label": {"type": "string", "enum": list(self.values)}},
                "required": ["label"],
                "additionalProperties": False,
            }
        )

    def read_answer(self, answer: str) -> str | None:
        """The label of an answer: the one in its JSON, the word that it begins with, or the only
        label in its first line; None if there is none, or several."""
        # Models wrap their JSON in words or a code fence.
        json_match = re.search(r"\{[^{}]*\}", answer)
        if json_match:
            try:
                label: str = str(json.loads(json_match[0]).get("label")).lower()
            except (ValueError, RecursionError):
                return None
            return label if label in self.values else None
        words: list[str] = re.findall(r"[a-z]+", answer.strip().partition("\n")[0].lower())
        if words and words[0] in self.values:
            return words[0]
        labels = {word for word in words if word in self.values}
        return labels.pop() if len(labels) == 1 else None


def read_rubric(measure: str) -> JudgeRubric:
    """The rubric of a measure, `prompts/judges/MEASURE.toml`, or that of the package that adds the
    measure. Raises UsageError if there is none."""
    entry, name = get_measure(measure), f"{measure}.toml"
    path = entry.folder / name if entry.folder else resource_path("prompts", f"judges/{name}")
    if not path.is_file():
        raise UsageError(f"there is no rubric for {measure}: a language model cannot judge it")
    template, values = read_template(path), read_toml(path).get("values")
    if not isinstance(values, dict) or not values:
        raise DataError(f"{path}: a rubric needs [values], a number for each label")
    if entry.ends and not set(entry.ends) <= set(values) <= set(entry.labels):
        raise DataError(f"{path}: the labels of {measure} are {', '.join(entry.labels)}")
    return JudgeRubric(template, {str(label): float(value) for label, value in values.items()})


class LlmScorer:
    """A chat or completion model that judges by a rubric (`prompts/judges`), at temperature 0.

    Answers are kept in the answer log of `store`, so that nothing is asked twice; without a store,
    in a temporary log of this scorer. If an answer has no readable label, the question is asked up
    to twice more; a statement that still has none, or that got no answer, has no judgement. A model
    is asked in messages if it takes them.
    """

    language = None
    batch_size = 64

    def __init__(
        self, measure: str, spec: str, store: Store | None = None, device: str = "auto"
    ) -> None:
        self.measure: str = measure
        self._rubric = read_rubric(measure)
        open_options: dict[str, Any] = {} if device == "auto" else {"device": device}
        self._model = open_model(spec, **open_options)
        if store is None:
            # Kept, because the folder goes when this object does.
            self._folder = TemporaryDirectory(prefix="kgbias-")
            store = open_store(str(Path(self._folder.name) / "answers.db"))
        self._log = LoggedModel(self._model, store)
        self._form: PromptForm | None = None
        info = self._model.info
        self.name = f"llm:{info.public_name if info.is_local else spec}"
        template = self._rubric.template
        revision = self._model.info.revision or "unknown"
        # A changed rubric is another scorer.
        self.version = f"{revision}:{template.label}:{template.hash[:12]}"

    def score(self, texts: Sequence[str]) -> list[Judgement | None]:
        """Judge each text, in order; None if the model gave no judgement. Raises ModelError if it
        gave none on any of several texts."""
        labels: list[str | None] = [None] * len(texts)
        answer_count = 0
        for attempt in range(MAX_ATTEMPTS):
            todo = [index for index, label in enumerate(labels) if label is None]
            requests = [
                self._request(texts[index], attempt, self._form_for(texts[0])) for index in todo
            ]
            answers = self._log.ask(requests)
            for index, answer in zip(todo, answers, strict=True):
                labels[index] = self._read_label(answer)
                answer_count += answer.finish != "error"
        if texts and not answer_count:
            raise ModelError(f"{self.name} gave no answer: {_failure_reason(answers[0])}")
        return [None if label is None else self._judgement(label) for label in labels]

    def _request(self, text: str, attempt: int, form: PromptForm) -> Request:
        template = self._rubric.template
        tokens, stop = template.answer_limits(form)
        return Request(
            template.render(form, text=" ".join(text.split())[:_MAX_CHARACTERS]),
            # Another seed is another key in the answer log: the retry is asked, and not read back.
            seed=attempt,
            temperature=_RETRY_TEMPERATURE if attempt else 0.0,
            max_tokens=tokens,
            # A base model would go on and make up the next statement.
            stop=stop or (("\n",) if form == "completion" else ()),
            schema=self._rubric.schema if form == "chat" else None,
        )

    def _form_for(self, text: str) -> PromptForm:
        if self._form is None:
            forms: tuple[PromptForm, ...] = ("chat", "completion")
            firsts = {form: self._request(text, 0, form) for form in forms}
            try:
                self._form = self._log.find_form(firsts, "chat")
            except ModelError as error:
                raise ModelError(f"{self.name} gave no answer: {error}") from error
        return self._form

    def _read_label(self, answer: Answer) -> str | None:
        return None if answer.finish == "error" else self._rubric.read_answer(answer.text)

    def _judgement(self, label: str) -> Judgement:
        shares = {name: float(name == label) for name in self._rubric.values}
        measure, value = get_measure(self.measure), self._rubric.values[label]
        if measure.ends:
            return class_judgement(self.measure, shares)
        if measure.sides:
            return probability_judgement(self.measure, value, shares)
        return Judgement(value, label, shares)


def _failure_reason(answer: Answer) -> str:
    try:
        return str(json.loads(answer.details)["error"])
    except (ValueError, KeyError, TypeError):
        return "no reason given"
