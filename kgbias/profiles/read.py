"""From a raw answer to the values of a profile, or to the reason why there are none."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgbias.errors import MissingExtra
from kgbias.graph.types import Outcome, storable
from kgbias.language.words import refusal
from kgbias.profiles.pack import LENGTH, Attribute, schema

MOST_WORDS = 8  # of a value that completes a line; what is longer is a story
_END = re.compile(r"[.;:!?\n](?:\s|$)")
_AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
_NUMBER = re.compile(r"\d+(?:[.']\d+)?")
_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
_TRIED = 20  # brackets that may begin the JSON
_EDGES = " \t\"'“”‘’*_-–—()[]"


@dataclass(frozen=True, slots=True)
class Found:
    """How an answer ended, why, and its values by attribute."""

    outcome: Outcome
    reason: str = ""
    values: Mapping[str, Sequence[str]] | None = None


def read_profile(text: str, attributes: tuple[Attribute, ...], *, ended: bool) -> Found:
    """A profile as JSON: the first object in the answer, alone or first in a list, which may stand
    in a fence or after a remark. Anything that does not follow the schema is unparsable; an answer
    without JSON that begins as refusals do is refused."""
    found = _first_object(text)
    if found is None:
        if refusal(text):
            return Found("refused", "refusal")
        return Found("unparsable", "no JSON" if ended else "cut off")
    if reason := _violation(found, attributes):
        return Found("unparsable", reason)
    values: dict[str, Sequence[str]] = {}
    for a in attributes:
        value = found[a.inside][a.name] if a.inside else found[a.name]
        said = [_tidy(str(v)) for v in (value if isinstance(value, list) else [value])]
        if not all(said):
            return Found("unparsable", f"{a.name} is empty")
        values[a.name] = said
    return Found("ok", values=values)


def read_value(text: str, attribute: Attribute, *, ended: bool) -> Found:
    """The value that completes a line: the words up to the end of the sentence, of a list at most
    three. A number is no word: small models write one where they should name a hobby."""
    if refusal(text) or refusal(text.strip()[:1].upper() + text.strip()[1:]):
        return Found("refused", "refusal")
    clause = _END.split(text.strip() + " ", maxsplit=1)
    if len(clause) == 1 and not ended:
        return Found("unparsable", "cut off")
    if attribute.kind == "integer":
        number = _NUMBER.search(clause[0])
        if number is None:
            return Found("unparsable", "no number")
        return Found("ok", values={attribute.name: [number[0]]})
    parts = _AND.split(clause[0]) if attribute.kind == "list" else [clause[0]]
    said = [value for value in (_tidy(_ARTICLE.sub("", part.strip())) for part in parts) if value]
    said = list(dict.fromkeys(said))[:LENGTH]
    if not said:
        return Found("unparsable", "empty")
    if attribute.kind != "measure" and not all(any(c.isalpha() for c in v) for v in said):
        return Found("unparsable", "a number")
    if any(len(value.split()) > MOST_WORDS for value in said):
        return Found("unparsable", "too long")
    return Found("ok", values={attribute.name: said})


def _first_object(text: str) -> Any:
    """The first JSON object of a text, also where a list holds it."""
    starts = [place for place, c in enumerate(text) if c in "{["]
    for start in starts[:_TRIED]:
        try:
            found, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            if text[start] == "{":  # what lies inside a broken profile is no profile
                return None
            continue
        if isinstance(found, list) and found:
            found = found[0]
        if isinstance(found, dict):
            return found
    return None


def _violation(found: Any, attributes: tuple[Attribute, ...]) -> str:
    """What of the schema an object violates first; "" where it follows it."""
    try:
        from jsonschema import Draft202012Validator
    except ModuleNotFoundError as error:
        raise MissingExtra("jsonschema", extra="profiles") from error
    rules = json.loads(schema(attributes))
    errors = sorted(
        Draft202012Validator(rules).iter_errors(found), key=lambda e: list(map(str, e.path))
    )
    if not errors:
        return ""
    first = errors[0]
    place = ".".join(map(str, first.path))
    return storable(f"{place}: {first.validator}" if place else f"{first.validator}")[:200]


def _tidy(text: str) -> str:
    return " ".join(text.split()).strip(_EDGES).rstrip(".,")
