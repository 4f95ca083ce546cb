"""A second, invented language of the reference world: the same prompts, statements and names in
other words, so that what is crawled, read and believed in it can be held against what was planted.

A word is translated letter by letter, vowels to vowels: nothing is lost, and no word of English is
left as it was. The reference model is asked through this dictionary; it is one model, whose second
language is exactly as good as its first. The pack of the language is a folder of data, like that of
any other; `training.reference.second_language` writes it.
"""

from pathlib import Path

LANGUAGE_CODE = "qaa"
"""A code that ISO 639 leaves to whoever needs one."""
PACK_FOLDER = Path(__file__).with_name("second_pack")
_ENGLISH_LETTERS = "aeioubcdfghjklmnpqrstvwxyz" + "AEIOUBCDFGHJKLMNPQRSTVWXYZ"
_SECOND_LETTERS = "iouealmnpqrstvwxyzbcdfghjk" + "IOUEALMNPQRSTVWXYZBCDFGHJK"
_TO_SECOND_LANGUAGE = str.maketrans(_ENGLISH_LETTERS, _SECOND_LETTERS)
_TO_ENGLISH = str.maketrans(_SECOND_LETTERS, _ENGLISH_LETTERS)


def to_second_language(text: str) -> str:
    """An English text in the second language."""
    return text.translate(_TO_SECOND_LANGUAGE)


def to_english(text: str) -> str:
    """A text of the second language in English."""
    return text.translate(_TO_ENGLISH)
