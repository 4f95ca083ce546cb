"""Asking a model with the templates of a folder, through the answer log.

Outside a crawl, this is the one place that asks a model with templates.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, ModelError, UsageError
from kgbias.graph.answers import LoggedModel
from kgbias.graph.store import Store
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.resources import resource_path
from kgbias.io.templates import PromptTemplate, read_template
from kgbias.models.base import Completer, PromptForm, Request


def load_prompts(
    name: str | Path, example_values: Mapping[str, Mapping[str, Any]]
) -> dict[str, PromptTemplate]:
    """The templates of a folder, given by its name in `prompts/` or by its path.
    `example_values` has example values for what each template may name.

    Raises UsageError if there is no such folder, DataError for a template that is missing or
    faulty."""
    shipped_folder = (
        resource_path("prompts", str(name)) if str(name) == Path(str(name)).name else None
    )
    folder = (
        shipped_folder if shipped_folder is not None and shipped_folder.is_dir() else Path(name)
    )
    if not folder.is_dir():
        raise UsageError(f"no prompts {str(name)!r}: name a folder with one file for each template")
    templates = {}
    for template, values in example_values.items():
        path = folder / f"{template}.toml"
        if not path.is_file():
            raise DataError(f"{folder} has no {template}.toml")
        templates[template] = read_template(path, values)
    return templates


class LoggedPrompter:
    """A model asked with templates. Every answer is kept in the log of `store` before it is read:
    asking again costs nothing. Each repeat has an answer of its own.

    `name` is the model's spec; without a `form`, it is asked in messages if it takes them.
    Temperature 0 gives the likeliest answer, the same in each repeat
    unless the model itself varies.
    """

    def __init__(
        self,
        model: Completer,
        store: Store,
        *,
        form: PromptForm | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.name = model.info.title
        self._progress = progress or SilentProgress()
        self._log = LoggedModel(model, store, self._progress)
        self._form = form
        self._temperature = temperature
        self._seed = seed

    def ask(
        self,
        template: PromptTemplate,
        values: Sequence[Mapping[str, Any]],
        *,
        repeat: int = 0,
        temperature: float | None = None,
    ) -> list[str]:
        """The answers to a template filled with each of the values, in order. Raises ModelError if
        the model answered none of them."""

        def build_request(form: PromptForm, template_values: Mapping[str, Any]) -> Request:
            max_tokens, stop = template.answer_limits(form)
            return Request(
                template.render(form, **template_values),
                seed=self._seed + repeat,
                temperature=self._temperature if temperature is None else temperature,
                max_tokens=max_tokens,
                stop=stop,
            )

        if self._form is None and values:
            forms: tuple[PromptForm, ...] = ("chat", "completion")
            trial_requests = {form: build_request(form, values[0]) for form in forms}
            self._form = self._log.find_form(trial_requests, "chat")
        requests = [
            build_request(self._form or "chat", template_values) for template_values in values
        ]
        self._progress.stage(f"{self.name}: {template.name}", len(requests))
        answers = self._log.ask(requests)
        if answers and all(a.finish == "error" for a in answers):
            raise ModelError(f"{self.name} gave no answer: {answers[0].details[:200]}")
        return [answer.text.strip() for answer in answers]
