"""Ids computed from content: the same text has the same id in every run and on every machine.

The id of a group, predicate, object or triple follows from its normalised text, a run's from its
configuration, model and how it was asked, a generation's from its run and place. Writing twice
changes nothing, and two runs meet in the same nodes.
"""

import unicodedata
from hashlib import blake2b

_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "ʼ": "'", "`": "'"})
_EDGES = " \t\n.,;:!?\"'*_-–—#()[]{}<>"


def normalise(text: str) -> str:
    """The form in which two texts count as the same: NFKC, case-folded, with straight quotes and
    single spaces, without punctuation at either end. A text of punctuation alone keeps it."""
    if text.isascii():  # nothing to compose, and one quote to straighten
        text = " ".join(text.replace("`", "'").split()).lower()
    else:
        text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
        text = " ".join(text.split()).casefold()
    return text.strip(_EDGES) or text


def content_id(kind: str, *parts: str) -> str:
    """An id of 20 hex digits (80 bits: a clash among a million texts has odds of 1 in 10^12)."""
    # The lengths keep ("ab", "c") apart from ("a", "bc").
    text = f"{len(kind)}:{kind}"
    for part in parts:
        text += f"{len(part)}:{part}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
