"""The text that topics are found in: the lemmas of predicate and object, without stop words."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from kgbias.errors import MissingExtra

LEMMATISER = "spacy lookup lemmas, English stop words"
_LONGEST = 2000  # characters read of a text


def lemmatise(texts: Sequence[str]) -> list[str]:
    """Each text as its lemmas in lower case, joined by spaces, without stop words, punctuation and
    space. A text of stop words alone ("are not") keeps them; one of punctuation alone becomes "".

    The lemmas are English, looked up in a table without context; other scripts pass unchanged."""
    pipeline = _pipeline()
    return [_kept(doc) for doc in pipeline.pipe([text[:_LONGEST] for text in texts])]


def _kept(doc: Any) -> str:
    words = [t for t in doc if not (t.is_punct or t.is_space or not t.text.strip())]
    telling = [t for t in words if not (t.is_stop or t.lemma_.lower() in _contractions())]
    return " ".join(t.lemma_.lower() for t in telling or words)


@cache
def _contractions() -> frozenset[str]:
    """What spaCy splits off "can't" and "gonna", in lower case."""
    return frozenset(("ca", "wo", "n't", "n’t", "'s", "’s", "gon", "na"))


@cache
def _pipeline() -> Any:
    try:
        import spacy
        import spacy_lookups_data  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "spacy", extra="topics") from error
    pipeline = spacy.blank("en")
    pipeline.add_pipe("lemmatizer", config={"mode": "lookup"})
    pipeline.initialize()
    return pipeline
