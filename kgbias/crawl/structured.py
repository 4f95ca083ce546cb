"""Structured output: the flat schemas that an answer may be asked in, and how such an answer is
turned into the text that the parser reads, so that one parser judges all answers."""

import json
import re

from kgbias.graph.types import canonical_json

JSON_TOKENS = 24  # what braces, quotes and names add to an answer's limit

_FENCE = re.compile(r"^\s*```(?:json)?\s*(.*?)\s*```\s*$", re.DOTALL)


def schema(*, names_predicate: bool) -> str:
    """A flat JSON schema, as text: an object, and a predicate where the model names it."""
    names = ("predicate", "object") if names_predicate else ("object",)
    return canonical_json(
        {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": list(names),
            "additionalProperties": False,
        }
    )


def as_text(answer: str, *, names_predicate: bool) -> str | None:
    """The answer as the plain form would have it ("predicate, line break, A: object").

    The answer itself where it is no JSON at all: the server did not honour the schema. None where
    it is JSON, or the beginning of it, but does not follow the schema.
    """
    fenced = _FENCE.match(answer)
    text = (fenced[1] if fenced else answer).strip()
    if not text.startswith("{"):
        return answer
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    names = ("predicate", "object") if names_predicate else ("object",)
    if set(found) != set(names) or not all(isinstance(v, str) for v in found.values()):
        return None
    parts = [" ".join(found[name].split()) for name in names]
    return f" {parts[0]}\nA: {parts[1]}" if names_predicate else f" {parts[0]}"
