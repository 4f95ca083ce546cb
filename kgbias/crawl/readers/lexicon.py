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


class TaggedWord(NamedTuple):
    """A word of a line: its start, its kind and, for a verb, its lemma."""

    text: str
    start: int
    kind: Kind
    lemma: str

    @property
    def folded(self) -> str:
        return self.text.casefold()

    @property
    def is_base_form(self) -> bool:
        """Whether it has the form that follows "can" or "to"."""
        return self.folded == self.lemma


@cache
def load_table(name: str) -> Mapping[str, Any]:
    """A table of words beside this module: each list of words as a set."""
    text = (files("kgbias.crawl.readers") / f"{name}.toml").read_text("utf-8")
    return {key: _as_sets(value) for key, value in tomllib.loads(text).items()}


def _as_sets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_sets(inner) for key, inner in value.items()}
    return frozenset(value.split())


@cache
def _irregular_forms() -> Mapping[str, str]:
    return {
        form: verb for verb, forms in load_table("verbs")["irregular"].items() for form in forms
    }


def verb_lemma(word: str) -> str | None:
    """The verb of which a lower-case word is a form."""
    verbs = load_table("verbs")["verbs"]
    if verb := _irregular_forms().get(word):
        return verb
    if word in verbs:
        return word
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[: -len(ending)] + replacement
            if stem in verbs:
                return stem
            # "stopping": the last letter is doubled.
            if not replacement and stem[-1:] == stem[-2:-1] and stem[:-1] in verbs:
                return stem[:-1]
    modifier, hyphen, head = word.rpartition("-")  # "binge-watch" is as "watch"
    verb = verb_lemma(head) if hyphen else None
    return verb and f"{modifier}-{verb}"


class PlacedWord(NamedTuple):
    """A word of a line, and where it starts."""

    text: str
    start: int


def iter_words(line: str) -> Iterator[PlacedWord]:
    """The words and marks of a line, each with its place."""
    return (PlacedWord(match.group(), match.start()) for match in _WORD.finditer(line))


def tag_words(line: str) -> list[TaggedWord]:
    """The words of a line, tagged by the table."""
    return [
        TaggedWord(text, start, *_classify_word(text.casefold()))
        for text, start in iter_words(line)
    ]


class _ClassifiedWord(NamedTuple):
    """What a word is, and its lemma."""

    kind: Kind
    lemma: str


def _classify_word(word: str) -> _ClassifiedWord:
    english, verb = load_table("english"), verb_lemma(word)
    lemma_or_word = verb or word
    # "like" is both; after a group it is nearly always the verb.
    if word in english["not_verbs"] or (word in english["prepositions"] and word != "like"):
        if word in english["adverbs"]:
            return _ClassifiedWord("adverb", lemma_or_word)
        return _ClassifiedWord(
            ("preposition" if word in english["prepositions"] else "other"), lemma_or_word
        )
    if word in english["adverbs"] or word in english["negations"]:
        return _ClassifiedWord("adverb", lemma_or_word)
    if verb is None:
        return _ClassifiedWord(("adverb" if word.endswith("ly") else "other"), lemma_or_word)
    if verb == word or verb == "be":
        return _ClassifiedWord("verb", lemma_or_word)
    if word.endswith("ing"):
        return _ClassifiedWord("-ing", lemma_or_word)
    if word.endswith(("ed", "en")) or word in _irregular_forms():
        return _ClassifiedWord("participle", lemma_or_word)
    return _ClassifiedWord("verb", lemma_or_word)


def first_non_adverb_index(tagged: Sequence[TaggedWord]) -> int | None:
    """The place of the first word that is not an adverb."""
    return next((index for index, word in enumerate(tagged) if word.kind != "adverb"), None)
