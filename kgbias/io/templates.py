"""Prompt templates: one TOML file each, with a name, a version, a form for completion models and
one for chat models. The rendered text is exactly what the model reads.

A template is a stranger's file like any other (`kgbias crawl --prompts FOLDER`). It may print, test
and loop over the values it is given; calls, assignments and all else that could reach out are
refused before it runs. It is rendered in Jinja's sandbox, in a separate process with little time
and memory (`kgbias.io.template_process`). A name without a value is an error, not an empty text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kgbias.errors import DataError
from kgbias.ids import content_id
from kgbias.io.reading import read_text, read_toml
from kgbias.io.sandbox import TemplateSandbox

PromptForm = Literal["completion", "chat"]
_sandbox = TemplateSandbox("kgbias.io.template_process")
_DEFAULT_VALUES: Mapping[str, Any] = {
    "group": "",
    "predicate": "",
    "prefix": "",
    "offensive": False,
    "examples": (),
    "plural": "",
    "text": "",
    "name": "",
    "fields": (),
    "line": "",
}
"""The names that a template can use, besides `header`, its wording."""


class AnswerLimits(NamedTuple):
    """The maximum number of tokens in an answer, and the texts that end it."""

    max_tokens: int
    stop: tuple[str, ...]


@dataclass(frozen=True)
class PromptTemplate:
    """A prompt template. `max_tokens` bounds the answer, which ends before the first of `stop`;
    `chat_max_tokens` and `chat_stop` do the same in the chat form, where many answers begin with a
    remark. `wordings` are headers to choose from, which the template calls `header`; empty for a
    template with one wording."""

    name: str
    version: int
    max_tokens: int
    stop: tuple[str, ...]
    completion: str
    chat: tuple[tuple[str, str], ...]
    wordings: tuple[str, ...]
    hash: str
    chat_max_tokens: int
    chat_stop: tuple[str, ...]

    def answer_limits(self, form: PromptForm) -> AnswerLimits:
        """What ends an answer in this form."""
        if form == "completion":
            return AnswerLimits(self.max_tokens, self.stop)
        return AnswerLimits(self.chat_max_tokens, self.chat_stop)

    @property
    def label(self) -> str:
        return f"{self.name}@{self.version}"

    def wording_label(self, wording: int) -> str:
        """The label with the number of the wording, counted from 1, such as "object@1.2"."""
        return f"{self.label}.{wording + 1}" if self.wordings else self.label

    def render(
        self, form: PromptForm = "completion", *, wording: int = 0, **values: Any
    ) -> str | tuple[tuple[str, str], ...]:
        """The prompt: a text or, in the chat form, a tuple of (role, content) messages."""
        all_values = {**_DEFAULT_VALUES, **values}
        if self.wordings:
            all_values["header"] = self.wordings[wording]
        if form == "completion":
            return render_template(self.completion, all_values)
        return tuple((role, render_template(text, all_values)) for role, text in self.chat)


def render_template(text: str, values: Mapping[str, Any]) -> str:
    """The text of a template with these values. Raises DataError for a faulty template."""
    return _sandbox.render({"template": text, "values": values}, DataError, "a prompt template")


def read_template(path: Path, values: Mapping[str, Any] | None = None) -> PromptTemplate:
    """The template in a file. `values` are examples of the names it may use besides those of a
    crawl's templates. Raises DataError for a file that is not a template."""
    data = read_toml(path)
    kinds = {"name": str, "version": int, "max_tokens": int, "stop": list, "completion": str}
    for key, kind in {**kinds, "chat": dict}.items():
        if not isinstance(data.get(key), kind):
            raise DataError(f"{path}: a prompt template needs {key!r}, {_TYPE_WORDS[kind]}")
    for key in ("stop", "chat_stop", "wordings"):
        if not isinstance(words := data.get(key, []), list) or not all(
            isinstance(word, str) and word for word in words
        ):
            raise DataError(f"{path}: {key!r} must be {_TYPE_WORDS[list]}")
    if not all(isinstance(text, str) for text in data["chat"].values()):
        raise DataError(f"{path}: 'chat' must hold a text for each role")
    for key in ("max_tokens", "chat_max_tokens"):
        if not isinstance(most := data.get(key, 1), int) or most < 1:
            raise DataError(f"{path}: {key!r} must be a whole number of at least 1")
    template = PromptTemplate(
        name=data["name"],
        version=data["version"],
        max_tokens=data["max_tokens"],
        stop=tuple(data["stop"]),
        completion=data["completion"],
        chat=tuple(data["chat"].items()),
        wordings=tuple(data.get("wordings", ())),
        hash=content_id("template", read_text(path)),
        chat_max_tokens=data.get("chat_max_tokens", data["max_tokens"]),
        chat_stop=tuple(data.get("chat_stop", data["stop"])),
    )
    try:
        # A faulty template shows now, and not after hours of a crawl.
        template.render("completion", **(values or {}))
        template.render("chat", **(values or {}))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return template


_TYPE_WORDS = {str: "a text", int: "a whole number", list: "a list of texts", dict: "a table"}
