"""Readers that a prompt pack declares: where the predicate of a sentence about a group ends, by
lists of words in the pack's `language.toml`, so that a new language needs no code.

The predicate is what stands before the verb and belongs to it (negation, pronouns), the verb, which
is the next word, the adverbs after it and, unless the verb is an auxiliary, a preposition directly
after those. The object is the rest. If nothing would be left, the predicate ends one word earlier.

- `verb_last`: in a language with the verb at the end, the predicate is what stands before the
  statement ("अक्सर", often) or, without such a word, its first word, or the first that can stand
  by itself.
- `no_copula`: without a verb, what may stand before one is the predicate ("很 | 聪明", very clever)
- `spaces = false`: in a language without spaces, the verb is the longest of the declared `verbs`
  that the sentence goes on with.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from kgbias.crawl.readers import sentences
from kgbias.crawl.readers.base import AnswerReading
from kgbias.crawl.readers.lexicon import PlacedWord
from kgbias.crawl.readers.sentences import NoReading, SentenceGrammar
from kgbias.errors import DataError, no_such

_WORD_LISTS = (
    "before_verb",
    "verbs",
    "after_verb",
    "prepositions",
    "auxiliaries",
    "not_verbs",
    "others",
    "dangling",
    "own",
    "foreign",
    "articles",
    "abbreviations",
)
_TEXTS = ("sentence_end", "verb_endings", "script")
_SWITCHES = ("spaces", "verb_last", "no_copula")
_KEYS = (*_WORD_LISTS, *_TEXTS, *_SWITCHES)
_OPENING_MARKS = '"“„«(¿¡'
_MAX_FOREIGN_SHARE = 0.25
_MIN_SCRIPT_SHARE = 0.6


@dataclass(frozen=True)
class DeclaredReader:
    """The reader of a language.

    Attributes:
        words: the lists of words by their names, in lower case; see docs/how-to/prompts.md.
        sentence_end: the marks that end a sentence.
        verb_endings: how every finite verb ends, if all do.
        script: the name of the script of all its letters ("ARABIC"), "" for Latin.
        spaces: whether words are written with spaces between them.
        verb_last: whether the verb stands at the end.
        no_copula: whether a statement may have no verb ("always in a hurry").
    """

    words: Mapping[str, frozenset[str]]
    sentence_end: str = ".!?…"
    verb_endings: tuple[str, ...] = ()
    script: str = ""
    spaces: bool = True
    verb_last: bool = False
    no_copula: bool = False

    @classmethod
    def from_table(cls, table: Any, location: str) -> "DeclaredReader":
        """The reader that a table declares. Raises DataError for an unknown key, or a value of the
        wrong kind."""
        if not isinstance(table, dict):
            raise DataError(f"{location} must be a table")
        for key, value in table.items():
            if key not in _KEYS:
                raise DataError(f"{location}: {no_such('key', key, _KEYS)}")
            if not isinstance(value, bool if key in _SWITCHES else str):
                kind = "true or false" if key in _SWITCHES else "words with spaces between them"
                raise DataError(f"{location}: {key!r} must be {kind}")
        words = {key: frozenset(table.get(key, "").casefold().split()) for key in _WORD_LISTS}
        reader = cls(
            words,
            table.get("sentence_end", cls.sentence_end),
            tuple(table.get("verb_endings", "").split()),
            table.get("script", "").upper(),
            table.get("spaces", True),
            table.get("verb_last", False),
            table.get("no_copula", False),
        )
        if not reader.spaces and not words["verbs"]:
            raise DataError(f"{location}: a language without spaces needs its 'verbs'")
        if not reader.sentence_end.strip():
            raise DataError(f"{location}: 'sentence_end' has no marks")
        return reader

    def read(
        self, answer: str, *, ended: bool, predicate: str | None, subject: str
    ) -> AnswerReading:
        """The reading of a sentence in this language (`kgbias.crawl.parse.ReadFunction`)."""
        return sentences.read_sentence(
            self.grammar, answer, ended=ended, predicate=predicate, subject=subject
        )

    @cached_property
    def grammar(self) -> SentenceGrammar:
        """What the reader of sentences must know."""
        return SentenceGrammar(
            sentence_end=_end_pattern(
                self.sentence_end, tuple(sorted(self.words["abbreviations"])), self.spaces
            ),
            find_object=self._find_object,
            check_line=self._check_line,
            is_in_language=self._is_in_language,
            is_fragment=self._is_fragment,
            articles="|".join(map(re.escape, sorted(self.words["articles"]))),
            equivalent_forms={},
            spaces=self.spaces,
        )

    def _find_object(self, subject: str, line: str) -> int:
        words = self._split(line)
        folded = [word.text.casefold() for word in words]
        end = self._skip_words(folded, 0, "before_verb")
        if self.verb_last:
            if not end and folded[:1] and folded[0] not in self.words["dangling"]:
                return self._object_start(words, line, 1)
            if not end:  # no word by itself ("अपने", one's own): "अपने घरों में"
                end = self._skip_words(folded, 0, "dangling") + 1
            end = self._skip_words(folded, end, "prepositions")
            return self._object_start(words, line, end)
        if end == len(folded):
            raise NoReading("no object")
        verb = folded[end]
        if not self._is_verb(words[end].text):
            if self.no_copula and end:
                return self._object_start(words, line, end)  # 很 | 聪明
            raise NoReading("no verb after the group")
        end = self._skip_words(folded, end + 1, "after_verb")
        is_auxiliary = verb in self.words["auxiliaries"]
        if end + 1 < len(folded) and folded[end] in self.words["prepositions"] and not is_auxiliary:
            end += 1
        return self._object_start(words, line, end)

    def _is_verb(self, word: str) -> bool:
        folded = word.casefold()
        if not self.spaces:
            return folded in self.words["verbs"]
        if not word[:1].isalpha() or folded in self.words["not_verbs"]:
            return False
        if folded in self.words["verbs"]:
            return True
        return not self.verb_endings or (word.islower() and folded.endswith(self.verb_endings))

    def _skip_words(self, folded: Sequence[str], start: int, kind: str) -> int:
        """The place after the words of a kind that stand at `start`."""
        end = start
        while end < len(folded) and folded[end] in self.words[kind]:
            end += 1
        return end

    def _object_start(self, words: Sequence[PlacedWord], line: str, end: int) -> int:
        """Where the object starts after a predicate of `end` words, or of fewer, if nothing would
        be left."""
        end = min(end, len(words) - 1)
        if end < 1:
            raise NoReading("no object")
        place = words[end].start
        while line[place - 1] in _OPENING_MARKS:  # dicen | "el amor ..."
            place -= 1
        return place

    def _split(self, line: str) -> list[PlacedWord]:
        """The words of a line with their places; without spaces, those that are declared, and then
        the rest as one."""
        if self.spaces:
            return [PlacedWord(match.group(), match.start()) for match in _WORD.finditer(line)]
        found: list[PlacedWord] = []
        place, known = 0, self._known_words
        while word := next((w for w in known if line.startswith(w, place)), ""):
            found.append(PlacedWord(word, place))
            place += len(word)
            if word in self.words["verbs"]:
                # A sentence has one verb: what follows may only belong to it.
                known = tuple(w for w in known if w in self.words["after_verb"])
        if line[place:]:
            found.append(PlacedWord(line[place:], place))
        return found

    @cached_property
    def _known_words(self) -> tuple[str, ...]:
        kinds = ("before_verb", "verbs", "after_verb")
        known = frozenset[str]().union(*(self.words[kind] for kind in kinds))
        # The longest first: a short word may begin a longer one.
        return tuple(sorted(known, key=lambda word: (-len(word), word)))

    def _check_line(self, predicate: str | None, line: str, continues: bool) -> None:
        words = self._split(line)
        first_word = words[0].text.casefold() if words else ""
        if first_word in self.words["others"] and (predicate is None or not continues):
            raise NoReading("about others")

    def _is_in_language(self, line: str) -> bool:
        if self.script:
            letters = [character for character in line if character.isalpha()]
            # Unicode names begin with the script: "ARABIC LETTER BEH".
            own = sum(_script_of(character).startswith(self.script) for character in letters)
            return own >= _MIN_SCRIPT_SHARE * len(letters)
        words = re.findall(r"[^\W\d_]+", line.casefold())
        foreign = sum(word in self.words["foreign"] for word in words)
        # At least one: a single borrowed word is no other language.
        if foreign < max(1, len(words) * _MAX_FOREIGN_SHARE):
            return True
        return not self.words["own"].isdisjoint(words)

    def _is_fragment(self, object: str) -> bool:
        folded = object.casefold()
        if not self.spaces:
            return any(folded.endswith(word) for word in self.words["dangling"])
        return folded.split()[-1] in self.words["dangling"]


# Words with the signs of Indic vowels, which are no letters of their own.
_WORD = re.compile(r"[^\W_](?:[\w\u0300-\u036f\u0900-\u0903\u093a-\u094f]|['’.\-](?=\w))*['’]?")


@cache
def _end_pattern(marks: str, abbreviations: tuple[str, ...], spaces: bool) -> re.Pattern[str]:
    run = f"[{re.escape(marks)}]+"
    if not spaces:
        return re.compile(run)
    no_end = "".join(rf"(?<!\b{re.escape(short)})" for short in abbreviations)
    return re.compile(rf"{no_end}(?<!\d){run}(?=[\s\"')\]*_]|$)|{run}(?=[\"')\]]*$)", re.IGNORECASE)


@cache
def _script_of(character: str) -> str:
    return unicodedata.name(character, "")
