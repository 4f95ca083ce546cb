"""Tags the words of a sentence about a group by a table of English verbs: no model, no context.

The verb comes right after the name of a group, so a table does nearly as well as a tagger
(docs/methods/how-well.md has the figures).
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

Kind = Literal["verb", "-ing", "participle", "adjective", "adverb", "preposition", "other"]

_WORD = re.compile(r"[^\W_]+(?:['’.\-][^\W_]+)*['’]?|[^\w\s]|_")
_ENDINGS = (
    ("ies", "y"),
    ("es", ""),
    ("s", ""),
    ("ied", "y"),
    ("ed", "e"),
    ("ed", ""),
    ("ing", "e"),
    ("ing", ""),
)


class Word(NamedTuple):
    """A word of a line: its start, its kind and, for a verb, its lemma."""

    text: str
    start: int
    kind: Kind
    lemma: str

    @property
    def low(self) -> str:
        return self.text.casefold()

    @property
    def plain(self) -> bool:
        """Whether it has the form that follows "can" or "to"."""
        return self.low == self.lemma


@cache
def table(name: str) -> Mapping[str, Any]:
    """A table of words beside this module: each list of words as a set."""
    text = (files("kgbias.crawl.readers") / f"{name}.toml").read_text("utf-8")
    return {key: _as_sets(value) for key, value in tomllib.loads(text).items()}


def _as_sets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_sets(inner) for key, inner in value.items()}
    return frozenset(value.split())


@cache
def _irregular() -> Mapping[str, str]:
    return {form: verb for verb, forms in table("verbs")["irregular"].items() for form in forms}


def lemma(word: str) -> str | None:
    """The verb of which a lower-case word is a form."""
    verbs = table("verbs")["verbs"]
    if found := _irregular().get(word):
        return found
    if word in verbs:
        return word
    for ending, put in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[: -len(ending)] + put
            if stem in verbs:
                return stem
            if not put and stem[-1:] == stem[-2:-1] and stem[:-1] in verbs:
                return stem[:-1]
    modifier, hyphen, head = word.rpartition("-")  # "binge-watch" is as "watch"
    found = lemma(head) if hyphen else None
    return found and f"{modifier}-{found}"


def words(line: str) -> Iterator[tuple[str, int]]:
    """The words and marks of a line, each with its place."""
    return ((match.group(), match.start()) for match in _WORD.finditer(line))


def tag(line: str) -> list[Word]:
    """The words of a line, tagged by the table."""
    return [Word(text, start, *_kind(text.casefold())) for text, start in words(line)]


def _kind(word: str) -> tuple[Kind, str]:
    english, verb = table("english"), lemma(word)
    known = verb or word
    if word in english["not_verbs"] or (word in english["prepositions"] and word != "like"):
        if word in english["adverbs"]:
            return "adverb", known
        return ("preposition" if word in english["prepositions"] else "other"), known
    if word in english["adverbs"] or word in english["negations"]:
        return "adverb", known
    if verb is None:
        return ("adverb" if word.endswith("ly") else "other"), known
    if verb == word or verb == "be":
        return "verb", known
    if word.endswith("ing"):
        return "-ing", known
    if word.endswith(("ed", "en")) or word in _irregular():
        return "participle", known
    return "verb", known


def first(tagged: Sequence[Word]) -> int | None:
    """The place of the first word that is not an adverb."""
    return next((i for i, word in enumerate(tagged) if word.kind != "adverb"), None)
