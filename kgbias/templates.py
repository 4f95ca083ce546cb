"""Prompt templates: one TOML file each in `prompts/`, with a name, a version, and a form for
completion models and one for chat models. The rendered text is what the model reads, to the
letter."""

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import jinja2

from kgbias.errors import UsageError
from kgbias.ids import content_id
from kgbias.resources import resource

Form = Literal["completion", "chat"]
_ENVIRONMENT = jinja2.Environment(autoescape=False, keep_trailing_newline=False)


@dataclass(frozen=True)
class Template:
    """A prompt template. `max_tokens` bounds the answer, which ends before the first of `stop`."""

    name: str
    version: int
    max_tokens: int
    stop: tuple[str, ...]
    completion: str
    chat: tuple[tuple[str, str], ...]
    hash: str

    @property
    def label(self) -> str:
        return f"{self.name}@{self.version}"

    def render(self, form: Form = "completion", **values: Any) -> str | tuple[tuple[str, str], ...]:
        """The prompt: a text, or in the chat form a tuple of (role, content) messages."""
        if form == "completion":
            return _compiled(self.completion).render(**values)
        return tuple((role, _compiled(text).render(**values)) for role, text in self.chat)


@cache
def _compiled(text: str) -> jinja2.Template:
    return _ENVIRONMENT.from_string(text)


@cache
def load_template(name: str) -> Template:
    path = resource("prompts", f"{name}.toml")
    if not path.is_file():
        raise UsageError(f"there is no prompt template {name!r} in prompts/")
    text = path.read_text("utf-8")
    data = tomllib.loads(text)
    return Template(
        name=data["name"],
        version=data["version"],
        max_tokens=data["max_tokens"],
        stop=tuple(data["stop"]),
        completion=data["completion"],
        chat=tuple(data["chat"].items()),
        hash=content_id("template", text),
    )
