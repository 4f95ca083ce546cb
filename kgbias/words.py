"""Words of English texts, compared without their inflection."""

import re

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ENDINGS = ("ingly", "edly", "ings", "ing", "ies", "ers", "er", "ed", "es", "ly", "s")


def words(text: str) -> list[str]:
    """The words of a text in order, lower case, with straight apostrophes."""
    return [match[0].lower().replace("’", "'") for match in _WORD.finditer(text)]


def stem(word: str) -> str:
    """A word without its inflection, roughly: "working" and "works" are "work"."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if len(word) > 3 else word
