"""What a short English text says of people, as far as its words show: its claims.

A claim is what is left of a text without the words that only attach it to people ("are known for
being"), with its polarity and its stance: "do not support gun control" denies support of gun
control. Vectors alone do not tell these apart: the cosine of "pro-gun control" and "anti-gun
control" is close to 1.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kgbias.language.words import lemma

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[,&]")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_BETWEEN = _set(", & and or but")
_DENIALS = _set(
    "not no non never neither nor none nobody nothing without cannot hardly rarely seldom less least "
    "few little"
)
# In a text of what could, should or used to be, of comparisons, and of what people think, nothing
# is said of what they are.
_OTHERWISE = _set(
    "should must can could cannot can't couldn't shouldn't would wouldn't may might will won't shall "
    "ought need needs want wants wish hope deserve try able supposed was were wasn't weren't used if "
    "than except think thinks know knows say says feel feels claim pretend assume expect imagine"
)
_DETERMINERS = _set("a an the their his her its our your my this these that those")
_BEING = _set("are is am be been being aren't isn't")
_SMALL = (
    _DETERMINERS
    | _BEING
    | _set(
        "of in at on to with by from for into about over within around also very really so too quite "
        "extremely often always usually generally typically mostly mainly more most all just pretty "
        "highly incredibly especially particularly commonly sometimes some many much rather fairly "
        "strongly deeply overly truly widely any every who which they them we us you it there as own "
        "even still both such lot lots bunch kind type sort plenty"
    )
)
_ATTACHING = _set(
    "known seen considered thought called described viewed perceived regarded stereotyped said "
    "believed associated characterized characterised labeled labelled renowned famous infamous "
    "notorious noted recognized recognised deemed portrayed depicted become becoming seem seems "
    "appear tend tends reputation tendency stereotype stereotypes look act"
)
_DOING = _set("have has do does don't doesn't go practice practise play work live get")
_FOR = _set(
    "love loves like enjoy prefer support supports supporting supportive favor favour advocate "
    "advocates endorse promote defend champion pro supporters proponents fans lovers"
)
_AGAINST = _set("anti against oppose opposes opposed hate hates dislike reject opponents")
_PEOPLE = _set(
    "people person persons folk folks individual individuals man woman men women citizen citizens "
    "inhabitants resident residents"
)
_FRAME = _SMALL | _ATTACHING | _DOING | _FOR | _AGAINST | _DENIALS


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about people.

    Attributes:
        lemmas: of its content words; never empty.
        stance: 1 for what they like or are for, -1 for what they are against, 0 for what they are
            or have.
        denied: whether it is denied.
        phrase: its content words, in lower case.
    """

    lemmas: frozenset[str]
    stance: int
    denied: bool
    phrase: str

    def sides_with(self, recorded: "Claim") -> bool:
        """Whether polarity and stance are those of a recorded claim. What people like counts as
        theirs: "love fishing" sides with "fishing", but "fish" not with "pro-fishing"."""
        same = self.stance == recorded.stance or (self.stance, recorded.stance) == (1, 0)
        return same and self.denied == recorded.denied


def claims(text: str) -> tuple[Claim, ...]:
    """The claims of a statement without its subject, or of an attribute: one for each part of a
    list ("are poor and proud"). None for a text that does not say what people are, have or do."""
    tokens = [token.replace("’", "'").lower() for token in _TOKEN.findall(text)]
    if "believe" in tokens[:1]:
        if tokens[1:2] != ["in"]:
            return ()
        tokens = ["support", *tokens[2:]]
    if any(token in _OTHERWISE for token in tokens):
        return ()
    found: list[Claim] = []
    frame = _Frame()
    for part in _parts(tokens):
        frame = frame.read(part)
        if claim := frame.claim(part):
            found.append(claim)
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Frame:
    """What stands before the content of a part of a text: how many tokens, the stance, whether it
    denies, and whether it says what people are (rather than have or do)."""

    length: int = 0
    stance: int = 0
    denied: bool = False
    of_people: bool = True

    def read(self, part: list[str]) -> "_Frame":
        """The frame of the next part: its own or, without a verb of its own, this one's."""
        length, stance, denied, of_people, verb = 0, 0, False, True, False
        for token in part:
            if token not in _FRAME and not token.endswith("n't"):
                break
            length += 1
            denied ^= token in _DENIALS or token.endswith("n't")
            stance = 1 if token in _FOR else -1 if token in _AGAINST else stance
            of_people &= token not in _DOING | _FOR | _AGAINST
            verb |= token not in _SMALL | _DENIALS or token in _BEING
        if verb or not self.length:
            return _Frame(length, stance, denied, of_people)
        return _Frame(length, self.stance, self.denied ^ denied, self.of_people)

    def claim(self, part: list[str]) -> Claim | None:
        """The claim of a part with this frame; None if it has no content."""
        rest = part[self.length :]
        if not rest:  # a frame alone: its last word is the content ("have fans")
            rest = [token for token in part if token not in _SMALL | _DENIALS][-1:]
        content = [t for t in rest if t not in _SMALL and t not in _DENIALS]
        if self.of_people and any(t not in _PEOPLE for t in content):
            content = [t for t in content if t not in _PEOPLE]
        if not content:
            return None
        denied = self.denied ^ (sum(_is_denial(t) for t in rest) % 2 == 1)
        return Claim(frozenset(map(lemma, content)), self.stance, denied, " ".join(content))


def _is_denial(token: str) -> bool:
    return token in _DENIALS or token.endswith("n't")


def _parts(tokens: Iterable[str]) -> Iterator[list[str]]:
    """The parts of a list. A list of what somebody's thing is ("love their rich and diverse
    history") stays whole: its parts are not said of the people."""
    tokens = list(tokens)
    of_things = bool(_DETERMINERS & set(tokens)) and bool((_DOING | _FOR) & set(tokens[:3]))
    part: list[str] = []
    for token in tokens:
        if token in _BETWEEN and not of_things:
            if part:
                yield part
            part = []
        elif token not in _BETWEEN:
            part.append(token)
    if part:
        yield part
