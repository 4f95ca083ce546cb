"""Structured output: the flat JSON schemas that answers are requested in, and how such an answer is
turned into the text that the parser reads, so that one parser judges all answers."""

import json

from kgbias.graph.types import canonical_json

JSON_TOKENS = 24  # added to an answer's token limit for braces, quotes and names

_FENCE = "```"


def schema(*, names_predicate: bool) -> str:
    """A flat JSON schema, as text: an object, and a predicate if the model is to name it."""
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
    """The answer in the plain form ("predicate, line break, A: object").

    An answer that is not JSON at all is returned as it is: the server did not honour the schema.
    None for JSON, or the beginning of it, that does not follow the schema.
    """
    text = answer.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE) and len(text) >= 2 * len(_FENCE):
        text = text[len(_FENCE) : -len(_FENCE)].removeprefix("json").strip()
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
