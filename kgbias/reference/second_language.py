"""A second, invented language of the reference world: the same prompts, statements and names in
other words, so that what is crawled, read and believed in it can be held against what was planted.

A word is translated letter by letter, vowels to vowels: nothing is lost, and no word of English is
left as it was. The reference model is asked through this dictionary; it is one model, whose second
language is exactly as good as its first. The pack of the language is a folder of data, like that of
any other; `training.reference.second_language` writes it.
"""

from pathlib import Path

LANGUAGE = "qaa"
"""A code that ISO 639 leaves to whoever needs one."""
FOLDER = Path(__file__).with_name("second_pack")
_LETTERS = "aeioubcdfghjklmnpqrstvwxyz"
_OTHERS = "iouealmnpqrstvwxyzbcdfghjk"
_THERE = str.maketrans(_LETTERS + _LETTERS.upper(), _OTHERS + _OTHERS.upper())
_BACK = str.maketrans(_OTHERS + _OTHERS.upper(), _LETTERS + _LETTERS.upper())


def to_second_language(text: str) -> str:
    """An English text in the second language."""
    return text.translate(_THERE)


def to_english(text: str) -> str:
    """A text of the second language in English."""
    return text.translate(_BACK)
