"""The text that topics are found in: the lemmas of predicate and object, without stop words."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from kgbias.errors import MissingExtra
from kgbias.models import english

_LONGEST = 2000  # characters read of a text
_AHEAD = "They "  # spaCy's model reads a statement as a sentence


def lemmatiser() -> str:
    """What `lemmatise` uses here: spaCy's English model if it is installed, which can tell from the
    sentence that "left" comes from "leave" in "left home", or else its table of lemmas."""
    if english.installed():
        return f"{english.NAME}, English stop words"
    return "spacy lookup lemmas, English stop words"


def lemmatise(texts: Sequence[str]) -> list[str]:
    """Each text as its lemmas in lower case, joined by spaces, without stop words, punctuation and
    space. A text of stop words alone ("are not") keeps them; one of punctuation alone becomes "".

    The lemmas are English; other scripts pass unchanged."""
    pipeline, ahead = _pipeline()
    docs = pipeline.pipe([ahead + text[:_LONGEST] for text in texts])
    return [_kept([token for token in doc if token.idx >= len(ahead)]) for doc in docs]


def _kept(tokens: Sequence[Any]) -> str:
    words = [t for t in tokens if not (t.is_punct or t.is_space or not t.text.strip())]
    telling = [t for t in words if not (t.is_stop or t.lower_ in _contractions())]
    return " ".join(t.lemma_.lower() for t in telling or words)


@cache
def _contractions() -> frozenset[str]:
    """What spaCy splits off "can't" and "gonna", in lower case."""
    return frozenset(("ca", "wo", "n't", "n’t", "'s", "’s", "gon", "na"))


@cache
def _pipeline() -> tuple[Any, str]:
    """The pipeline, and the words to put before a text."""
    if english.installed():
        return english.load("tagger", "attribute_ruler", "lemmatizer"), _AHEAD
    try:
        import spacy
        import spacy_lookups_data  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "spacy", extra="topics") from error
    pipeline = spacy.blank("en")
    pipeline.add_pipe("lemmatizer", config={"mode": "lookup"})
    pipeline.initialize()
    return pipeline, ""
