"""The process that renders prompt templates (`kgbias.io.templates`), and what a template may hold.

Only this process imports Jinja, which takes as long as a small command in all.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kgbias.io.sandbox import serve

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    autoescape=False, keep_trailing_newline=False, undefined=jinja2.StrictUndefined
)
_ENVIRONMENT.globals.clear()  # a template has what it is given, the same at each call
_ALLOWED_NODES = (
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Const,
    nodes.Tuple,
    nodes.List,
    nodes.If,
    nodes.CondExpr,
    nodes.For,
    nodes.Not,
    nodes.And,
    nodes.Or,
    nodes.Compare,
    nodes.Operand,
    nodes.Add,
    nodes.Sub,
    nodes.Concat,
    nodes.Filter,
    nodes.Test,
    nodes.Keyword,
)
_ALLOWED_FILTERS = frozenset(
    "capitalize count d default first join last length list lower reverse sort title trim unique "
    "upper".split()
)
_ALLOWED_TESTS = frozenset(
    "defined eq even ge gt in le lt mapping ne none number odd string true".split()
)


def _answer_question(question: Mapping[str, Any]) -> str:
    return _compile_template(question["template"]).render(question["values"])


@lru_cache(256)
def _compile_template(text: str) -> jinja2.Template:
    _check_nodes(_ENVIRONMENT.parse(text))
    return _ENVIRONMENT.from_string(text)


def _check_nodes(node: nodes.Node) -> None:
    """Raise a TemplateError for anything that a template may not contain."""
    for child in node.iter_child_nodes():
        if isinstance(child, nodes.Filter | nodes.Test):
            allowed = _ALLOWED_FILTERS if isinstance(child, nodes.Filter) else _ALLOWED_TESTS
            if child.name not in allowed:
                raise jinja2.TemplateError(
                    f"line {child.lineno}: it may not use {child.name!r}, only "
                    f"{', '.join(sorted(allowed))}"
                )
        elif not isinstance(child, _ALLOWED_NODES):
            raise jinja2.TemplateError(
                f"line {child.lineno}: it may not use {_describe_node(type(child).__name__)}"
            )
        _check_nodes(child)


def _describe_node(node: str) -> str:
    """A part of a template, in words."""
    return {
        "Call": "calls",
        "Assign": "`set`",
        "AssignBlock": "`set`",
        "Mul": "`*`",
        "Mod": "`%`",
        "Pow": "`**`",
        "Div": "`/`",
        "FloorDiv": "`//`",
        "Macro": "macros",
    }.get(node, node)


if __name__ == "__main__":
    serve(_answer_question)
