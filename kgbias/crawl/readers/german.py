"""The German reader: where the predicate of a sentence about a group ends, with no model.

After a plural subject the finite verb comes second; it ends in -n ("lieben", "hassen", "waren"), or
is "sind". German capitals tell nouns from verbs, so this rule and a short list of exceptions are
enough.

The predicate is the finite verb with any "sich", negation, adverbs of frequency, and a preposition
or "als" directly after it: "gelten oft als | faul". The object is the rest, with everything that
German puts at the end: "können | gut kochen". If nothing would be left, the predicate ends one word
earlier. The words are in german.toml.
"""

import re

from kgbias.crawl.readers import lexicon, sentences
from kgbias.crawl.readers.base import AnswerReading
from kgbias.crawl.readers.lexicon import load_table
from kgbias.crawl.readers.sentences import NoReading, SentenceGrammar

_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bz)(?<!\bDr)(?<!\bSt)(?<!\bbzw)(?<!\bca)(?<!\d)[.!?…]+(?=[\s\"')\]*_]|$)"
    r"|[.!?…]+(?=[\"')\]]*$)"
)


def read_german(answer: str, *, ended: bool, predicate: str | None, subject: str) -> AnswerReading:
    """The reading of a German sentence."""
    return sentences.read_sentence(
        _GERMAN_GRAMMAR, answer, ended=ended, predicate=predicate, subject=subject
    )


def _find_object(subject: str, line: str) -> int:
    german = load_table("german")
    words = list(lexicon.iter_words(line))
    folded = [word.text.casefold() for word in words]
    verb = words[0].text
    if not ((verb.islower() and verb.endswith("n") and len(verb) > 2) or verb == "sind"):
        raise NoReading("no verb after the group")
    if verb in german["not_verbs"]:
        raise NoReading("no verb after the group")
    end = 1
    while end < len(folded) and folded[end] in german["adverbs"]:
        end += 1
    if (
        end + 1 < len(folded)
        and folded[end] in german["prepositions"]
        and verb not in german["modals"]
    ):
        end += 1
    end = min(end, len(words) - 1)
    if not end:
        raise NoReading("no object")
    return words[end].start


def _check_line(predicate: str | None, line: str, continues: bool) -> None:
    german = load_table("german")
    # A second word may be missing.
    first_word, second_word, *_ = [*line.casefold().split(), ""]
    if first_word in german["others"] and (predicate is None or not continues):
        raise NoReading("about others")
    if predicate is None:
        return
    if first_word in ("sind", "ist", "waren", "werden"):
        raise NoReading("a second verb")
    # Nouns have capitals, so the second word alone shows a sentence about others.
    if not continues and second_word in german["modals"] | {predicate.casefold().split()[0]}:
        raise NoReading("about others")


def _is_german(line: str) -> bool:
    words = re.findall(r"[^\W\d_]+", line.casefold())
    foreign = sum(word in load_table("german")["foreign"] for word in words)
    return foreign < max(1, len(words) / 4) or not load_table("german")["german"].isdisjoint(words)


def _is_fragment(object: str) -> bool:
    return object.casefold().split()[-1] in load_table("german")["dangling"]


_GERMAN_GRAMMAR = SentenceGrammar(
    sentence_end=_SENTENCE_END,
    find_object=_find_object,
    check_line=_check_line,
    is_in_language=_is_german,
    is_fragment=_is_fragment,
    articles="die|viele|alle",
    equivalent_forms={},
)
