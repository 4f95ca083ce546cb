"""What a short English text says of people, as far as its words show: its claims.

A claim is what is left of a text without the words that only attach it to people ("are known for
being"), with its polarity and its stance: "do not support gun control" denies support of gun
control. Vectors alone do not tell these apart: the cosine of "pro-gun control" and "anti-gun
control" is close to 1.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from kgbias.language.words import NEGATION_WORDS, is_negation, lemmatise_word

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[,&]")
_KIND_OF = re.compile(r"\b(?:kind|sort|type)s? of\b", re.IGNORECASE)


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SEPARATORS = _word_set(", & and but")
_DENIALS = NEGATION_WORDS | _word_set("non less least few little")
# In a text of what could, should or used to be, of comparisons and alternatives, and of what people
# think, nothing is said of what they are.
_HYPOTHETICAL_WORDS = _word_set(
    "should must can could cannot can't couldn't shouldn't would wouldn't may might will won't "
    "shall ought need needs want wants wish hope deserve try able supposed was were wasn't weren't "
    "used if than except think thinks know knows say says feel feels claim pretend assume expect "
    "imagine likely expected told allowed asked opposite or either"
)
_HYPOTHETICAL_PAIRS = {
    ("have", "to"),
    ("has", "to"),
    ("right", "to"),
    ("not", "just"),
    ("not", "only"),
}
_PREPOSITIONS = _word_set("of in at on to with from for into about over within around")
_INDEFINITE_ARTICLES = _word_set("a an")
_DETERMINERS = _INDEFINITE_ARTICLES | _word_set(
    "the their his her its our your my this these that those"
)
_BE_FORMS = _word_set("are is am be been being aren't isn't")
_FUNCTION_WORDS = (
    _PREPOSITIONS
    | _DETERMINERS
    | _BE_FORMS
    | _word_set(
        "by also very really so too quite extremely often always usually generally typically "
        "mostly mainly more most all highly incredibly especially particularly commonly sometimes "
        "some many much rather fairly strongly deeply overly truly widely any every who which they "
        "them we us you it there as own even still both such lot lots bunch plenty"
    )
)
_FILLERS_UNLESS_LAST = _word_set("pretty just")  # "pretty rude", but "are pretty"
_ATTRIBUTION_WORDS = _word_set(
    "known seen considered thought called described viewed perceived regarded stereotyped said "
    "believed associated characterized characterised labeled labelled renowned famous infamous "
    "notorious noted recognized recognised deemed portrayed depicted become becoming seem seems "
    "appear tend tends reputation tendency stereotype stereotypes look act"
)
_LIGHT_VERBS = _word_set("have has do does don't doesn't go practice practise play work live get")
_SUPPORT_WORDS = _word_set(
    "love loves like enjoy prefer support supports supporting supportive favor favour advocate "
    "advocates endorse promote defend champion pro supporters proponents fans lovers"
)
_STANCE_PREFIXES = _word_set("pro anti against")
_OPPOSITION_WORDS = _word_set(
    "anti against oppose opposes opposed hate hates dislike reject opponents"
)
_PEOPLE_NOUNS = _word_set(
    "people person persons folk folks individual individuals man woman men women citizen citizens "
    "inhabitants resident residents"
)
_MAX_PART_WORDS = 3  # content words of a part of a list
_FRAME_WORDS = (
    _FUNCTION_WORDS
    | _FILLERS_UNLESS_LAST
    | _ATTRIBUTION_WORDS
    | _LIGHT_VERBS
    | _SUPPORT_WORDS
    | _OPPOSITION_WORDS
    | _DENIALS
)
# Words of which one excludes the other, by what they are about, each row with its poles.
_POLES = [
    [_word_set(pole) for pole in row.split("|")]
    for row in """
    left leftist | right rightist | moderate centrist
    liberal progressive | conservative | moderate
    rich wealthy richer wealthier | poor poorer | middle
    good better best great | bad worse worst
    small smaller tiny short shorter low | medium | large larger big bigger huge tall taller long
    young younger | middle | old older elderly
    male men man masculine he husband boy | female women woman feminine she wife girl
    homosexual gay | heterosexual straight | bisexual
    underweight thin skinny | overweight fat obese
    urban city | rural country
    light pale fair white | dark black brown | red | blue | green
    smart intelligent clever | dumb stupid
    polite kind nice friendly | rude unkind unfriendly hostile
    happy cheerful | sad unhappy upset | angry
    strong | weak
    loud | quiet
    fearful afraid | fearless brave
    north northern | south southern | east eastern | west western
    social socially | fiscal fiscally economic economically
    rarely seldom | often
    democratic democrat democrats | republican republicans
    """.strip().splitlines()
]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about people.

    Attributes:
        lemmas: of its content words; never empty.
        stance: 1 for what they like or are for, -1 for what they are against, 0 for what they are
            or have.
        is_negated: whether it is denied.
        verb: "have" if it says what they have or do, "are" if it says what they are; "" for an
            attribute such as "fishing", which does not say.
        of_things: whether its content follows "the" or a possessive ("love the old").
        phrase: its content words, in lower case.
    """

    lemmas: frozenset[str]
    stance: int
    is_negated: bool
    verb: str
    of_things: bool
    phrase: str

    def has_stance_of(self, recorded: "Claim") -> bool:
        """Whether polarity and stance are those of a recorded claim, and the kind of verb if that
        has one."""
        same = (self.stance, self.is_negated) == (recorded.stance, recorded.is_negated)
        return same and (not recorded.verb or recorded.verb == self.verb)

    def likes(self, recorded: "Claim") -> bool:
        """Whether this says that people like what is recorded of them: "love fishing" is known from
        "fishing", but "love a gambler" not from "a gambler", nor "love the old" from "old"."""
        like = (self.stance, recorded.stance) == (1, 0) and not (
            self.is_negated or recorded.is_negated
        )
        adjective = any(recorded.words & pole for row in _POLES for pole in row)
        return like and not (recorded.verb or self.of_things or adjective)

    @property
    def words(self) -> frozenset[str]:
        """Its content words, nouns in the singular."""
        # But class, bus and tennis.
        return frozenset(re.sub(r"(?<=[^sui])s$", "", word) for word in self.phrase.split())


def have_opposed_words(first: Claim, second: Claim) -> bool:
    """Whether words of the two claims exclude each other ("tall" and "short") or name different
    numbers."""
    first_words, second_words = (
        set(claim.phrase.split()) - set(rival.phrase.split())
        for claim, rival in ((first, second), (second, first))
    )
    if {w for w in first_words if w.isdigit()} != {w for w in second_words if w.isdigit()}:
        return True
    return any(
        a is not b and first_words & a and second_words & b
        for row in _POLES
        for a in row
        for b in row
    )


def extract_claims(text: str) -> tuple[Claim, ...]:
    """The claims of a statement without its subject, or of an attribute: one for each part of a
    list ("are poor and proud"). None for a text that does not say what people are, have or do."""
    tokens = [token.replace("’", "'").lower() for token in _TOKEN.findall(_KIND_OF.sub("", text))]
    if "believe" in tokens[:1]:
        if tokens[1:2] != ["in"]:
            return ()
        tokens = ["support", *tokens[2:]]
    pairs = set(pairwise(tokens))
    # Also with a word between: "love to be".
    near_pairs = pairs | set(zip(tokens, tokens[2:], strict=False))
    is_wish = any(
        a in _SUPPORT_WORDS | _OPPOSITION_WORDS and b in _BE_FORMS for a, b in near_pairs
    )  # "love to be rich"
    is_hypothetical = (
        _HYPOTHETICAL_WORDS & set(tokens)
        or _HYPOTHETICAL_PAIRS & pairs
        or _SEPARATORS & set(tokens[:1])
    )
    if is_wish or is_hypothetical:
        return ()
    claims_found: list[Claim] = []
    frame = _ClaimFrame()
    for part in _split_parts(tokens):
        frame = frame.read_next(part)
        if claim := frame.build_claim(part):
            claims_found.append(claim)
    return tuple(dict.fromkeys(claims_found))


@dataclass(frozen=True, slots=True)
class _ClaimFrame:
    """What stands before the content of a part of a text: how many tokens, the stance, whether it
    denies, and its verb (`Claim.verb`)."""

    length: int = 0
    stance: int = 0
    is_negated: bool = False
    verb: str = ""

    def read_next(self, part: list[str]) -> "_ClaimFrame":
        """The frame of the next part: its own or, without a verb of its own, this one's."""
        length, stance, is_negated, verb = 0, 0, False, ""
        for token in part:
            if token not in _FRAME_WORDS and not _is_denial(token):
                break
            length += 1
            # Two denials say what none does.
            is_negated ^= _is_denial(token)
            if token in _SUPPORT_WORDS:
                stance = 1
            elif token in _OPPOSITION_WORDS:
                stance = -1
            if token in _BE_FORMS | _ATTRIBUTION_WORDS:
                verb = "are"
            elif (
                token in _LIGHT_VERBS | _SUPPORT_WORDS | _OPPOSITION_WORDS
                and token not in _STANCE_PREFIXES
            ):
                verb = verb or "have"
        if verb or not self.length:
            return _ClaimFrame(length, stance, is_negated, verb)
        return _ClaimFrame(length, self.stance, self.is_negated ^ is_negated, self.verb)

    def build_claim(self, part: list[str]) -> Claim | None:
        """The claim of a part with this frame; None if it has no content."""
        content_tokens = part[self.length :]
        if not content_tokens:  # a frame alone: its last word is the content ("have fans")
            content_tokens = [token for token in part if token not in _FUNCTION_WORDS | _DENIALS][
                -1:
            ]
        content = [t for t in content_tokens if t not in _FUNCTION_WORDS | _DENIALS]
        content = [t for t in content[:-1] if t not in _FILLERS_UNLESS_LAST] + content[-1:]
        if self.verb != "have" and any(t not in _PEOPLE_NOUNS for t in content):
            content = [t for t in content if t not in _PEOPLE_NOUNS]
        if not content:
            return None
        is_negated = self.is_negated ^ (sum(_is_denial(t) for t in content_tokens) % 2 == 1)
        verb = "" if not (self.verb or _INDEFINITE_ARTICLES & set(part)) else self.verb or "are"
        of_things = bool((_DETERMINERS - _INDEFINITE_ARTICLES) & set(part))
        lemmas = frozenset(map(lemmatise_word, content))
        return Claim(lemmas, self.stance, is_negated, verb, of_things, " ".join(content))


def _is_denial(token: str) -> bool:
    return token in _DENIALS or is_negation(token)


def _split_parts(tokens: list[str]) -> Iterator[list[str]]:
    """The parts of a list of short parts. A list inside a phrase ("a mix of old and new") or of
    what somebody's thing is ("love their rich and diverse history") stays whole: its parts are not
    said of the people."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token in _SEPARATORS:
            parts.append([])
        else:
            parts[-1].append(token)
    contents = [[t for t in part if t not in _FRAME_WORDS] for part in parts]
    first_part, first_content = parts[0], contents[0]
    is_inside_phrase = first_content and _PREPOSITIONS & set(
        first_part[first_part.index(first_content[0]) :]
    )
    of_things = _DETERMINERS & set(first_part) and (_LIGHT_VERBS | _SUPPORT_WORDS) & set(
        first_part[:3]
    )
    if is_inside_phrase or of_things or any(len(content) > _MAX_PART_WORDS for content in contents):
        yield [token for token in tokens if token not in _SEPARATORS]
    else:
        yield from filter(None, parts)
