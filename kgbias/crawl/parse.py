"""From a raw answer to a predicate and an object, or to the reason why there is none.

Filters first say whether the model refused. Then a reader reads: which one is named by the prompt
pack, since it belongs to the form of the question. Readers are strict, the same for every model,
and take time linear in the length of the answer; the raw text stays in the answer log.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kgbias.crawl.readers import english, german, lists, spacy_tagger
from kgbias.crawl.readers.base import Reading
from kgbias.errors import UsageError
from kgbias.refusals import FILTERS


class Read(Protocol):
    """Reads one answer: `ended` is False where it reached the token limit, `predicate` is None
    where the prompt asks for one, `subject` is the group as the prompt names it."""

    def __call__(
        self, answer: str, *, ended: bool, predicate: str | None, subject: str
    ) -> Reading: ...


class Reader(NamedTuple):
    """A reader, its version, which rises whenever it reads any answer in another way, and what
    loads the packages that it needs."""

    read: Read
    version: int
    load: Callable[[], object] = lambda: None


READERS = {
    "list": Reader(lists.read, 1),
    "english": Reader(english.read, 1),
    "english-spacy": Reader(english.read_with_spacy, 1, spacy_tagger.model),
    "german": Reader(german.read, 1),
}
"""How answers are read, by the name that a prompt pack gives."""


def reader_label(name: str) -> str:
    """The reader with its version, as a run keeps it: "english@1".

    Raises UsageError for an unknown name, MissingExtra where the reader needs a package that is not
    installed."""
    reader = _reader(name)
    reader.load()
    return f"{name}@{reader.version}"


def read_answer(
    text: str,
    finish: str,
    *,
    predicate: str | None,
    filters: Sequence[str],
    subject: str = "",
    reader: str = "list",
) -> Reading:
    """Read the answer to a prompt that gives the predicate, or that asks for both (None). If the
    answer repeats the beginning of the sentence ("Men love music" for "Men love"), as chat models
    do, `subject` and predicate are removed.

    Raises UsageError for an unknown filter or reader.
    """
    for name in filters:
        if name not in FILTERS:
            raise UsageError(f"no filter {name!r}; there is: {', '.join(FILTERS)}")
        if FILTERS[name](text):
            return Reading("refused", name)
    return _reader(reader).read(
        text, ended=finish != "length", predicate=predicate, subject=subject
    )


def _reader(name: str) -> Reader:
    if name not in READERS:
        raise UsageError(f"no reader {name!r}; there is: {', '.join(READERS)}")
    return READERS[name]
