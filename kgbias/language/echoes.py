"""Echoes: answers that repeat an example of their own prompt.

The crawler repeats such a request (outcome "echo"); `kgbias.graph.selection` leaves the echoes of
older runs out. Both read this one rule.
"""

from collections.abc import Iterable
from functools import lru_cache

from kgbias.ids import normalise

_ARTICLES = {
    "en": "a an the my your his her its our their being to very",
    "de": "ein eine einen einem einer eines der die das den dem des "
    "mein dein sein ihr unser euer meine deine seine ihre unsere eure "
    "meinen deinen seinen ihren unseren euren meinem deinem seinem ihrem unserem eurem zu sehr",
}
_IGNORED = {language: frozenset(words.split()) for language, words in _ARTICLES.items()}


def repeats(
    predicate: str, object: str, shown: Iterable[tuple[str, str]], *, language: str = "en"
) -> bool:
    """Whether an answer repeats one of the examples that it was shown (predicate and object each).

    It does where the objects are the same, where predicate and object together are the same
    wherever they are cut, or where it ends in an example's object of more than one word. Case,
    punctuation at either end, articles, possessives, "being", "to" and "very" make no difference.

    Args:
        predicate: of the answer.
        object: of the answer.
        shown: the predicates and objects of the examples, without their groups.
        language: whose articles and possessives are passed over: en or de. Another has none.
    """
    ignored = _IGNORED.get(language, frozenset[str]())
    own = _bare(object, ignored)
    whole = f"{_bare(predicate, ignored)} {own}"
    for other_predicate, other_object in shown:
        other = _bare(other_object, ignored)
        if own == other or whole == f"{_bare(other_predicate, ignored)} {other}":
            return True
        if " " in other and whole.endswith(f" {other}"):
            return True
    return False


@lru_cache(maxsize=65_536)  # an answer is another prompt's example
def _bare(text: str, ignored: frozenset[str]) -> str:
    """The text without the words that make no difference; of these alone, as it is."""
    text = normalise(text)
    return " ".join(word for word in text.split() if word not in ignored) or text
