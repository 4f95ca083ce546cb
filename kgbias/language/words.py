"""Words of English texts, compared without their inflection."""

import re

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
PERSONS = frozenset("people person persons man men woman women folk folks community".split())
# Adjectives that name a group only before a person: "old people", but "old ideas".
ORDINARY = frozenset(
    "big black blind brown fat free old poor red rich short small straight tall thin white young"
    " yellow".split()
)
# What questions are made of, whatever they ask about: function words, and words for asking.
ASIDE = frozenset(
    """a about again against all also am an and any anyone are aren't around as ask associate
    associated association at attribute attributed be because been being belief beliefs believe
    believed believes between bias biased biases both but by call called can can't cannot claim
    claimed claims compare compared could did difference differences differ different differently
    do does doesn't doing don't each ever every find for from general get gets give gives group
    groups had has have he her his how i if in into is isn't it its just know language like list
    make many may me mean means mention mentioned might model models more most much my no nor not
    of often on or other others our over people person regard said same say saying says show she
    should similar so some someone speak speaks statement statements stereotype stereotypes such
    talk tell than that the their them then there these they think thinking thinks this those to
    toward towards triple triples us very view views was way we were what when where whether which
    who whom whose why will with would you your""".split()
)
ENDINGS = ("ingly", "edly", "ings", "ing", "ies", "ers", "er", "ed", "es", "ly", "s")


def words(text: str) -> list[str]:
    """The words of a text in order, lower case, with straight apostrophes."""
    return [match[0].lower().replace("’", "'") for match in _WORD.finditer(text)]


def stem(word: str) -> str:
    """A word without its inflection, roughly: "working" and "works" are "work"."""
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if len(word) > 3 else word
