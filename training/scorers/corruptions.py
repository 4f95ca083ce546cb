"""Statements broken on purpose, in the ways in which language models break them.

Each keeps most of the words of a meaningful statement, so words alone give nothing away. A few turn
out meaningful all the same, which is why they weigh less than what was read and labelled.
"""

from collections.abc import Callable, Sequence
from random import Random

Body = tuple[str, str]  # predicate and object

_MODALS = frozenset(
    "can can't cannot could may might must should shouldn't will won't would".split()
)
_BE = frozenset("are aren't were".split())
_FILLERS = (
    "the of and is to that not 's they it are in (i.e 100% Q A: # their or which a for you with "
    "people by was 4000 etc he"
).split()
_LEFTOVERS = (
    "This is a good example of {}",
    "These are just a few examples of {}",
    "Another sentence",
    "People are asked to say something about {}",
    "I'm ready to help you with {}",
    "This sentence is about {}",
    "The list is incomplete without {}",
    "Here is a list of {}",
    "In this sentence the speaker talks about {}",
    "Where to begin",
    "One of them is {}",
    "These sentences all convey {}",
    "It is true that they {}",
    "I would love to continue",
    "The following is a list of {}",
    "Some people think they {}",
)
_OPEN = frozenset(
    "a an and as at be by for in more most of on or than that the their to too very with".split()
)
_LINKS = frozenset("about as at be by for from have in of than to with".split())
_SUBJECTS = (
    "they",
    "it",
    "people",
    "the women",
    "some people",
    "he",
    "everyone",
    "I",
    "they all",
)
_NUMBERS = ("1.04 {}", "4000", "#", "Q", "2 3 4", "A: {}", "{} 100", "i.e {}", "{}, i.e")


def broken(body: Body, others: Sequence[Body], words: Sequence[str], rng: Random) -> str:
    """A statement's predicate and object, broken.

    Args:
        body: of a meaningful statement.
        others: other meaningful ones, to take parts from.
        words: single words, to take nonsense from.
        rng: decides what is done, and with which of them.
    """
    while True:
        text = rng.choice(_WAYS)(body, rng.choice(others), words, rng)
        if text and text != " ".join(body):
            return text


def _kind(predicate: str) -> str:
    first = predicate.split()[0].lower()
    return "modal" if first in _MODALS else "be" if first in _BE else "verb"


def _wrong_object(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    """An object for another kind of predicate: "can't very passionate about food"."""
    kinds = _kind(body[0]), _kind(other[0])
    first = other[1].split()[0]
    if kinds[0] == kinds[1] or any(p.split()[-1] in ("to", "be") for p in (body[0], other[0])):
        return ""
    if kinds == ("verb", "be") and rng.random() < 0.7:  # "love farmers" is right
        return ""
    if kinds == ("be", "verb") and (
        first.lower() in ("a", "an", "the", "their", "to") or first.endswith("ing")
    ):
        return ""
    if kinds[0] == "be" and rng.random() < 0.6:
        return ""
    return f"{body[0]} {other[1]}"


def _no_predicate(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    if _kind(body[0]) != "verb" and rng.random() < 0.5:
        return ""
    return body[1] if rng.random() < 0.5 else f"{other[1]} {body[1]}"


def _clause(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    """A whole sentence as the object: "are they are very independent"."""
    return f"{body[0]} {rng.choice(_SUBJECTS)} {other[0]} {other[1]}"


def _leftover(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    return f"{body[0]} {rng.choice(_LEFTOVERS).format(other[1])}"


def _cut_off(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    own = body[1].split()
    ends = [n for n in range(1, len(own)) if own[n - 1].lower() in _OPEN]
    if ends:
        return f"{body[0]} {' '.join(own[: rng.choice(ends)])}"
    return f"{body[0]} {body[1]} {rng.choice(sorted(_OPEN))}" if rng.random() < 0.5 else ""


def _inserted(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    own = body[1].split()
    for _ in range(rng.randint(1, 2)):
        own.insert(rng.randint(0, len(own)), rng.choice(_FILLERS))
    return f"{body[0]} {' '.join(own)}"


def _dropped(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    own = body[1].split()
    links = [n for n, word in enumerate(own[:-1]) if word.lower() in _LINKS]
    if not links or len(own) < 3:
        return ""
    del own[rng.choice(links)]
    return f"{body[0]} {' '.join(own)}"


def _shuffled(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    own = body[1].split()
    rng.shuffle(own)
    return f"{body[0]} {' '.join(own)}" if len(own) > 2 else ""


def _doubled(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    twice = (body[0], *body) if rng.random() < 0.5 else (*body, body[1])
    return " ".join(twice)


def _run_on(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    return " ".join((*body, *other))


def _spliced(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    own, their = body[1].split(), other[1].split()
    if len(own) < 2 or len(their) < 2:
        return ""
    mixed = own[: rng.randint(1, len(own) - 1)] + their[rng.randint(1, len(their) - 1) :]
    return f"{body[0]} {' '.join(mixed)}" if len(mixed) > 2 else ""


def _soup(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    """Words without structure, after part or none of the object."""
    drawn = [rng.choice(words) for _ in range(rng.randint(2, 5))]
    if rng.random() < 0.5:
        own = body[1].split()
        drawn = own[: rng.randint(0, len(own) - 1)] + drawn[: max(2, len(drawn) - 1)]
    return f"{body[0]} {' '.join(drawn)}"


def _no_word(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    """A made-up word: "yard onslolicies"."""
    own = body[1].split()
    place = max(range(len(own)), key=lambda n: (len(own[n]), rng.random()))
    letters = list(own[place])
    if len(letters) < 4:
        return ""
    if rng.random() < 0.5:
        cut = rng.randrange(1, len(letters) - 1)
        letters[cut:cut] = rng.choice(words)[:3]
    else:
        rng.shuffle(letters)
    own[place] = "".join(letters)
    return f"{body[0]} {' '.join(own)}"


def _disagreeing(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    predicate, own = body
    first, _, rest = own.partition(" ")
    kind = _kind(predicate)
    if kind == "verb" and first == "to" and rest:
        return f"{predicate} {rest}"
    ways = {
        "modal": (
            f"{predicate} to {own}",
            f"{predicate} {first}s {rest}",
            f"{predicate} {first}ing {rest}",
            f"are {predicate} {own}",
            f"{predicate} are {own}",
        ),
        "be": (
            f"is {own}",
            f"{predicate} be {own}",
            f"{predicate} love {own}",
            f"{predicate} can {own}",
            f"{predicate} to {own}",
            f"do {own}",
        ),
        "verb": (
            f"are {predicate} {own}",
            f"{predicate}s {own}",
            f"{predicate} to {own}",
            f"is {predicate} {own}",
            f"can't to {predicate} {own}",
            f"{predicate} be {own}",
        ),
    }
    return rng.choice(ways[kind]).strip()


def _numbered(body: Body, other: Body, words: Sequence[str], rng: Random) -> str:
    return f"{body[0]} {rng.choice(_NUMBERS).format(body[1])}"


_Way = Callable[[Body, Body, Sequence[str], Random], str]
_SHARES: dict[_Way, int] = {  # about as often as models do it
    _wrong_object: 5,
    _soup: 5,
    _disagreeing: 4,
    _clause: 3,
    _cut_off: 3,
    _spliced: 3,
    _no_word: 3,
    _no_predicate: 2,
    _leftover: 2,
    _inserted: 2,
    _dropped: 2,
    _shuffled: 2,
    _run_on: 2,
    _doubled: 1,
    _numbered: 1,
}
_WAYS = [way for way, share in _SHARES.items() for _ in range(share)]
