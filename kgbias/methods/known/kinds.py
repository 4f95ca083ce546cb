"""Traits and things: what a recorded attribute says of people.

A model knows that sushi goes with Japan and vodka with Russia. That is knowledge of the world, and
easier to find than what people are said to be like. So figures about recorded stereotypes are given
for traits (generous, noisy) and for things (sushi, tango lover, blonde) apart, and never pooled.

The rule is for English: an attribute is a trait if its last word is an adjective of character by
its ending, or is listed in `recorded/traits.txt`. A table's own column overrides it.
"""

import re
from functools import cache
from importlib.resources import files

TRAIT, THING = "trait", "thing"
KINDS = (TRAIT, THING)

_TRAIT_ENDING = re.compile(
    r"[a-z]{3,}(?:ful|less|ous|ive|able|ible|ant|ent|some|hearted|minded|tempered|natured)$"
)
# Words with such an ending that say something else: origin, faith, looks, circumstance, a noun.
_NOT_TRAITS = frozenset(
    """indigenous religious-people native student students president government restaurant elephant
    immigrant merchant servant vegetable table different independent protestant adolescent parent
    tent accent croissant current wealthy giant mutant descent content event homeless jobless
    stateless famous prosperous mountainous numerous resident innocent attractive expensive
    restaurants tyrant enterprising expressive olive""".split()
)
_LAST_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*$")
_MAX_TRAIT_WORDS = 3


def stereotype_kind(attribute: str) -> str:
    """`TRAIT` or `THING`, by the last word of an English attribute of at most three words."""
    text = attribute.casefold().strip(" .,!")
    words = text.split()
    last = _LAST_WORD.search(text)
    if last is None or len(words) > _MAX_TRAIT_WORDS:
        return THING
    word = last[0]
    if word in _trait_words() or "-".join(words[-2:]) in _trait_words():
        return TRAIT
    return TRAIT if _TRAIT_ENDING.match(word) and word not in _NOT_TRAITS else THING


@cache
def _trait_words() -> frozenset[str]:
    text = (files("kgbias.methods.known") / "recorded" / "traits.txt").read_text(encoding="utf-8")
    return frozenset(
        word for line in text.splitlines() if not line.startswith("#") for word in line.split()
    )
