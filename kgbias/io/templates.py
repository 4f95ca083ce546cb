"""Prompt templates: one TOML file each, with a name, a version, a form for completion models and
one for chat models. The rendered text is exactly what the model reads.

A template is a stranger's file like any other (`kgbias crawl --prompts FOLDER`). It may print, test
and loop over the values it is given; calls, assignments and all else that could reach out are
refused before it runs. It is rendered in Jinja's sandbox, in a separate process with little time
and memory (`kgbias.io.aside`). A name without a value is an error, not an empty text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kgbias.errors import DataError
from kgbias.ids import content_id
from kgbias.io.aside import Aside, serve
from kgbias.io.reading import read_text, read_toml

Form = Literal["completion", "chat"]
_ENVIRONMENT = ImmutableSandboxedEnvironment(
    autoescape=False, keep_trailing_newline=False, undefined=jinja2.StrictUndefined
)
_ENVIRONMENT.globals.clear()  # a template has what it is given, the same at each call
_renderer = Aside("kgbias.io.templates")
_PARTS = (
    nodes.Output, nodes.TemplateData, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Slice,
    nodes.Const, nodes.Tuple, nodes.List, nodes.If, nodes.CondExpr, nodes.For, nodes.Not,
    nodes.And, nodes.Or, nodes.Compare, nodes.Operand, nodes.Add, nodes.Sub, nodes.Concat,
    nodes.Filter, nodes.Test, nodes.Keyword,
)  # fmt: skip
_FILTERS = frozenset(
    "capitalize count d default first join last length list lower reverse sort title trim unique "
    "upper".split()
)
_TESTS = frozenset("defined eq even ge gt in le lt mapping ne none number odd string true".split())
_VALUES: Mapping[str, Any] = {
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


@dataclass(frozen=True)
class Template:
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

    def limits(self, form: Form) -> tuple[int, tuple[str, ...]]:
        """The maximum number of tokens in an answer, and the texts that end it."""
        if form == "completion":
            return self.max_tokens, self.stop
        return self.chat_max_tokens, self.chat_stop

    @property
    def label(self) -> str:
        return f"{self.name}@{self.version}"

    def worded(self, wording: int) -> str:
        """The label with the number of the wording, counted from 1, such as "object@1.2"."""
        return f"{self.label}.{wording + 1}" if self.wordings else self.label

    def render(
        self, form: Form = "completion", *, wording: int = 0, **values: Any
    ) -> str | tuple[tuple[str, str], ...]:
        """The prompt: a text or, in the chat form, a tuple of (role, content) messages."""
        given = {**_VALUES, **values}
        if self.wordings:
            given["header"] = self.wordings[wording]
        if form == "completion":
            return render(self.completion, given)
        return tuple((role, render(text, given)) for role, text in self.chat)


def render(text: str, values: Mapping[str, Any]) -> str:
    """The text of a template with these values. Raises DataError for a faulty template."""
    return _renderer.rendered({"template": text, "values": values}, DataError, "a prompt template")


def _answer(question: Mapping[str, Any]) -> str:
    return _compiled(question["template"]).render(question["values"])


@lru_cache(256)
def _compiled(text: str) -> jinja2.Template:
    _check(_ENVIRONMENT.parse(text))
    return _ENVIRONMENT.from_string(text)


def _check(node: nodes.Node) -> None:
    """Raise a TemplateError for anything that a template may not contain."""
    for part in node.iter_child_nodes():
        if isinstance(part, nodes.Filter | nodes.Test):
            known = _FILTERS if isinstance(part, nodes.Filter) else _TESTS
            if part.name not in known:
                raise jinja2.TemplateError(
                    f"line {part.lineno}: it may not use {part.name!r}, only "
                    f"{', '.join(sorted(known))}"
                )
        elif not isinstance(part, _PARTS):
            raise jinja2.TemplateError(
                f"line {part.lineno}: it may not use {_called(type(part).__name__)}"
            )
        _check(part)


def _called(node: str) -> str:
    """A part of a template, in words."""
    return {
        "Call": "calls", "Assign": "`set`", "AssignBlock": "`set`", "Mul": "`*`", "Mod": "`%`",
        "Pow": "`**`", "Div": "`/`", "FloorDiv": "`//`", "Macro": "macros",
    }.get(node, node)  # fmt: skip


def read_template(path: Path, values: Mapping[str, Any] | None = None) -> Template:
    """The template in a file. `values` are examples of the names it may use besides those of a
    crawl's templates. Raises DataError for a file that is not a template."""
    data = read_toml(path)
    kinds = {"name": str, "version": int, "max_tokens": int, "stop": list, "completion": str}
    for key, kind in {**kinds, "chat": dict}.items():
        if not isinstance(data.get(key), kind):
            raise DataError(f"{path}: a prompt template needs {key!r}, {_KINDS[kind]}")
    for key in ("stop", "chat_stop", "wordings"):
        if not isinstance(words := data.get(key, []), list) or not all(
            isinstance(word, str) and word for word in words
        ):
            raise DataError(f"{path}: {key!r} must be {_KINDS[list]}")
    if not all(isinstance(text, str) for text in data["chat"].values()):
        raise DataError(f"{path}: 'chat' must hold a text for each role")
    for key in ("max_tokens", "chat_max_tokens"):
        if not isinstance(most := data.get(key, 1), int) or most < 1:
            raise DataError(f"{path}: {key!r} must be a whole number of at least 1")
    template = Template(
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
        template.render("completion", **(values or {}))
        template.render("chat", **(values or {}))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return template


_KINDS = {str: "a text", int: "a whole number", list: "a list of texts", dict: "a table"}


if __name__ == "__main__":
    serve(_answer)
