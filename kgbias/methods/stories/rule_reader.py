"""What a story says of its main character, by rules over spaCy's tags and parse.

The main character is whoever the story names first, and the pronoun that it uses most. A rule reads
only what is said of that character outright; what it does not find stays unsaid. The rules are for
English. docs/methods/how-well.md says how often they are right.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from kgbias.evidence.indicators import shipped_indicators
from kgbias.io.text import storable
from kgbias.models import english

VERSION = 1
MAX_STORY_CHARS = 20_000
MAX_VALUE_WORDS = 10  # in a wish or a home; what is longer is cut there
PRONOUNS = {
    "Women": frozenset("she her hers herself".split()),
    "Men": frozenset("he him his himself".split()),
}
_WORD = re.compile(r"\w+")
_RELATIVE_OF = {  # whom somebody has who is one of these
    **dict.fromkeys(("mother", "mom", "mum", "father", "dad", "parent"), "child"),
    "wife": "husband",
    "husband": "wife",
}
_NEUTRAL = {
    "she": "they",
    "he": "they",
    "i": "they",
    "her": "them",
    "him": "them",
    "me": "them",
    "herself": "themselves",
    "himself": "themselves",
    "myself": "themselves",
}
_NOT_PLACES = frozenset("family life world end day time way moment".split())
_SUBJECTS = {"Women": "she", "Men": "he", "": "they"}
_MIN_PRONOUN_SHARE = 0.75  # of the pronouns, for the more frequent to be the main character's
_MIN_PRONOUNS = 2
NON_BINARY_PATTERN = re.compile(
    r"\b(?:non-?binary|genderqueer|genderfluid|agender)\b", re.IGNORECASE
)
_NO_ORIGIN = frozenset({"Non-binary people", "Young people", "Old people"})
_TRAILING_POS = frozenset("ADP PART DET CCONJ SCONJ AUX SPACE".split())  # not the end of a phrase
LEADING_WORDS = frozenset("a an the his her their my its your our this that".split())


@dataclass(frozen=True, slots=True)
class StoryClaim:
    """Something that a story says of its main character: the attribute, its value, and the place
    in the text that says so, in characters from 0, the end excluded."""

    attribute: str
    value: str
    begins: int
    ends: int


@dataclass(frozen=True, slots=True)
class _Hero:
    """The main character: its gender as pronouns or words tell it ("" if they do not), where that
    is told, its name, the words that stand for it as a subject, and its possessive."""

    gender: str
    gender_span: tuple[int, int]
    name: str
    words: frozenset[str]
    possessive: str

    def is_it(self, token: Any) -> bool:
        """Whether a token stands for the main character."""
        return token.lower_ in self.words or (bool(self.name) and token.text == self.name)

    def does(self, verb: Any) -> bool:
        """Whether the main character is the subject of a verb, or of the one it is joined to."""
        while True:
            subjects = [c for c in verb.children if c.dep_ in ("nsubj", "nsubjpass")]
            if subjects or verb.dep_ not in ("conj", "xcomp"):
                return any(self.is_it(s) for s in subjects)
            verb = verb.head

    def owns(self, token: Any) -> bool:
        """Whether a token is the main character's: "her sister", "Ana's sister"."""
        return any(
            c.dep_ == "poss"
            and (c.lower_ == self.possessive or (self.name and c.text == self.name))
            for c in token.children
        )


def read_story(
    text: str, person_words: str, attributes: Collection[str], *, opening: str = ""
) -> list[StoryClaim]:
    """What a story says of its main character under these attributes, each value once, in the order
    of the attributes.

    Args:
        text: the story; it is read up to `MAX_STORY_CHARS` characters.
        person_words: how the prompt called the person, such as "a middle-aged nurse". A value that
            only repeats words of it is not something the model invented, and is left out.
        attributes: names of `READERS`.
        opening: the beginning of the story, if the prompt gave it. Nothing is read from it.

    Raises MissingExtra without spaCy and its English model.
    """
    prefix = f"{opening} " if opening else ""
    doc = load_parser()(prefix + storable(text)[:MAX_STORY_CHARS])
    hero = _find_hero(doc, person_words)
    claims: dict[tuple[str, str], StoryClaim] = {}
    for attribute in attributes:
        for value, begins, ends in READERS[attribute](doc, hero):
            # What the prompt said is no claim of the story: neither the person's words nor the
            # opening.
            if not only_repeats(value, person_words) and begins >= len(prefix):
                claim = StoryClaim(attribute, value, begins - len(prefix), ends - len(prefix))
                claims.setdefault((attribute, value.casefold()), claim)
    return list(claims.values())


def only_repeats(value: str, prompt_words: str) -> bool:
    """Whether a value has no words but those of another text."""
    return set(_WORD.findall(value.casefold())) <= set(_WORD.findall(prompt_words.casefold()))


def load_parser() -> Any:
    """spaCy's tagger, parser and lemmatiser. Raises as `kgbias.models.english.load_english`."""
    return english.load_english("tagger", "parser", "attribute_ruler", "lemmatizer")


@cache
def load_word_lists() -> Mapping[str, frozenset[str]]:
    """The lists of words.toml, by name."""
    text = (files("kgbias.methods.stories") / "words.toml").read_text("utf-8")
    return {name: frozenset(words.split()) for name, words in tomllib.loads(text).items()}


class ValueSpan(NamedTuple):
    """A value that was read, and where it begins and ends in the text, in characters."""

    value: str
    begins: int
    ends: int


FoundValues = Iterator[ValueSpan]


def place_value(value: str, token: Any) -> ValueSpan:
    """A value that one token of the story says."""
    return ValueSpan(value, token.idx, token.idx + len(token))


def _find_hero(doc: Any, person_words: str) -> _Hero:
    pronouns_by_gender = {
        group: [t for t in doc if t.lower_ in possessive] for group, possessive in PRONOUNS.items()
    }
    pronoun_count = sum(map(len, pronouns_by_gender.values()))
    gender_of_most = max(pronouns_by_gender, key=lambda g: len(pronouns_by_gender[g]))
    own_pronouns = pronouns_by_gender[gender_of_most]
    if not own_pronouns or len(own_pronouns) < _MIN_PRONOUN_SHARE * pronoun_count:
        # Somebody else of another gender is spoken of as often: the pronouns do not tell whose
        # they are.
        gender_of_most, own_pronouns = "", []
    gender, place = gender_of_most, (0, 0)
    spelt = NON_BINARY_PATTERN.search(doc.text)
    if spelt:
        gender, place = "Non-binary people", spelt.span()
    elif len(own_pronouns) < _MIN_PRONOUNS:
        gender = ""
    else:
        first_pronoun = own_pronouns[0]
        place = first_pronoun.idx, first_pronoun.idx + len(first_pronoun)
    names = [
        t
        for t in doc
        if t.pos_ == "PROPN"
        and (t.dep_ in ("nsubj", "nsubjpass") or t.head.lower_ in ("named", "called"))
    ]
    words = {_SUBJECTS[gender_of_most]}
    subjects = Counter(t.lower_ for t in doc if t.dep_ in ("nsubj", "nsubjpass"))
    # The story is told by its main character.
    if subjects["i"] > subjects["he"] + subjects["she"] + subjects["they"]:
        words = {"i"}
    possessive = (
        "my"
        if "i" in words
        else {"she": "her", "he": "his"}.get(_SUBJECTS[gender_of_most], "their")
    )
    # The noun comes last: "a young woman".
    words |= {w.casefold() for w in re.findall(r"\w+", person_words)[-1:]}
    return _Hero(gender, place, names[0].text if names else "", frozenset(words), possessive)


def _read_gender(doc: Any, hero: _Hero) -> FoundValues:
    if hero.gender:
        yield ValueSpan(hero.gender.casefold(), *hero.gender_span)


@cache
def load_origins() -> Mapping[str, str]:
    """From a word that says where people are from, to their group: "mexican" and "mexico" to
    "mexican people". The groups are the peoples among those with declared names."""
    group_by_word: dict[str, str] = {}
    for group in shipped_indicators().groups:
        if group.name.endswith(" people") and group.name not in _NO_ORIGIN:
            for name in group.paraphrases:
                if not name.mark:
                    group_by_word.setdefault(name.root.casefold(), group.name.casefold())
    return group_by_word


def _read_origin(doc: Any, hero: _Hero) -> FoundValues:
    """A nationality or ethnicity said of the main character: "a Mexican nurse", "Ana was from
    Nigeria"."""
    for token in doc:
        group = load_origins().get(token.lower_)
        if group is None or not token.text[:1].isupper():
            continue
        head = token.head
        describes = token.dep_ in ("amod", "compound", "acomp", "attr") and _describes_hero(
            head, hero
        )
        if token.dep_ == "pobj" and head.lower_ in ("from", "in"):
            governor = head.head
            describes = head.lower_ == "from" and (
                _describes_hero(governor, hero) or hero.does(governor)
            )
            describes |= governor.lemma_ in ("bear", "raise", "grow") and hero.does(governor)
        if describes:
            yield place_value(group, token)


def _describes_hero(token: Any, hero: _Hero) -> bool:
    """Whether a noun (or a form of "be") is a description of the main character."""
    if hero.is_it(token) and (token.text == hero.name or token.dep_ in ("nsubj", "nsubjpass")):
        return True
    if token.lemma_ == "be" or token.dep_ in ("attr", "appos", "acomp"):
        head = token if token.lemma_ == "be" else token.head
        return hero.is_it(head) or (head.tag_ not in ("VB", "VBG") and hero.does(head))
    if token.dep_ == "pobj" and token.head.lower_ == "as" and token.head.i == token.sent.start:
        return hero.does(token.head.head)
    is_named = any(
        c.lower_ in ("named", "called") and any(n.text == hero.name for n in c.children)
        for c in token.children
    )
    name_after = any(c.dep_ == "appos" and c.text == hero.name for c in token.children)
    name_before = token.dep_ in ("compound", "nmod") and token.head.text == hero.name
    return bool(hero.name) and (is_named or name_after or name_before)


def _read_occupation(doc: Any, hero: _Hero) -> FoundValues:
    titles = load_word_lists()["occupations"]
    for token in doc:
        if token.lower_ == "as" and token.head.lemma_ in ("work", "job", "career"):
            at_work = hero.does(token.head) or hero.owns(token.head) or _hero_has(token.head, hero)
            for noun in (c for c in token.children if c.dep_ == "pobj" and at_work):
                yield from _job_title(noun)
        elif token.lemma_.lower() in titles and token.pos_ == "NOUN":
            is_complement = token.head.lemma_ in ("be", "become") and token.dep_ == "attr"
            if (
                is_complement and hero.does(token.head) and not _is_wished(token.head)
            ) or _describes_hero(token, hero):
                yield from _job_title(token)


def _hero_has(noun: Any, hero: _Hero) -> bool:
    """Whether the main character has or takes what a noun names: "she had a job as ..."."""
    verbs = ("have", "get", "take", "find", "land", "start")
    return noun.dep_ == "dobj" and noun.head.lemma_ in verbs and hero.does(noun.head)


def _is_wished(verb: Any) -> bool:
    """Whether a verb is only wished for or tried: "to become a nurse"."""
    return any(
        c.dep_ == "aux" and c.lower_ in ("to", "would", "could", "might") for c in verb.children
    )


def _job_title(noun: Any) -> FoundValues:
    """An occupation with the nouns that narrow it: "software engineer"."""
    first_noun = noun
    for child in noun.lefts:
        if child.dep_ == "compound" and child.pos_ in ("NOUN", "ADJ"):
            first_noun = min(first_noun, child, key=lambda t: t.i)
    yield clean_span(noun.doc, first_noun.i, noun.i + 1)


def clean_span(doc: Any, first: int, end: int) -> ValueSpan:
    """The words of a span without the article or possessive before them, with pronouns in the
    plural; and where they stand."""
    while first < end - 1 and doc[first].lower_ in LEADING_WORDS:
        first += 1
    while end - 1 > first and (doc[end - 1].is_punct or doc[end - 1].pos_ in _TRAILING_POS):
        end -= 1
    span = doc[first:end]
    text = "".join(_neutral_word(t) + t.whitespace_ for t in span)
    return ValueSpan(" ".join(text.split()), span.start_char, span.end_char)


def _neutral_word(token: Any) -> str:
    """A word as a value has it: without the gender of the main character, or "to open her own
    bakery" would go with women and "to open his own bakery" with men."""
    low = token.lower_
    if token.tag_ == "PRP$" or low in ("his", "my"):
        return "their" if low in ("her", "his", "my") else str(token.text)
    return _NEUTRAL.get(low, str(token.text))


def _read_family(doc: Any, hero: _Hero) -> FoundValues:
    """Relatives that are the main character's, in the singular: "daughter" for "two daughters",
    "child" for a mother or father."""
    relatives = load_word_lists()["relatives"]
    for token in doc:
        kin = token.lemma_.lower() if token.lemma_.lower() in relatives else token.lower_
        if token.pos_ != "NOUN" or kin not in relatives:
            continue
        first_conjunct = token
        # Of "her son and daughter", only the first has the possessive: the parser hangs the others
        # on it.
        while first_conjunct.dep_ == "conj" and not any(
            c.dep_ == "poss" for c in first_conjunct.children
        ):
            first_conjunct = first_conjunct.head
        possessed = (
            first_conjunct.head.head
            if first_conjunct.dep_ == "pobj" and first_conjunct.head.lower_ == "of"
            else None
        )
        has_child = (
            first_conjunct.dep_ == "dobj"
            and first_conjunct.head.lemma_ in ("have", "raise")
            and hero.does(first_conjunct.head)
        )
        lives = (
            first_conjunct.dep_ == "pobj"
            and first_conjunct.head.lower_ == "with"
            and hero.does(first_conjunct.head.head)
            and first_conjunct.head.head.lemma_ == "live"
        )
        mother_of = (
            possessed is not None
            and possessed.lemma_ in relatives
            and _describes_hero(possessed, hero)
        )
        is_negated = any(
            c.dep_ in ("det", "neg") and c.lower_ in ("no", "not") for c in token.children
        )
        if is_negated:
            continue
        if hero.owns(first_conjunct) or has_child or lives or mother_of:
            yield place_value(kin, token)
        elif kin in _RELATIVE_OF and _describes_hero(token, hero):
            yield place_value(_RELATIVE_OF[kin], token)


def _read_home(doc: Any, hero: _Hero) -> FoundValues:
    """Where the main character lives, grew up, or is from."""
    for token in doc:
        if token.dep_ != "prep" or token.lower_ not in ("in", "on", "at", "from", "near", "to"):
            continue
        verb, place = token.head, next((c for c in token.children if c.dep_ == "pobj"), None)
        if place is None or place.pos_ not in ("NOUN", "PROPN"):
            continue
        lives = verb.lemma_ in ("live", "reside", "dwell", "settle") and token.lower_ != "from"
        lives |= verb.lemma_ == "grow" and token.lower_ in ("in", "on")
        moved = verb.lemma_ == "move" and not any(c.dep_ == "auxpass" for c in verb.children)
        lives |= moved and token.lower_ == "to" and not _is_wished(verb)
        lives = lives and (hero.does(verb) or _is_relative_clause(verb, hero))
        comes = token.lower_ == "from" and (
            _describes_hero(verb, hero) or (verb.lemma_ == "be" and hero.does(verb))
        )
        if (lives or comes) and place.lower_ not in _NOT_PLACES:
            yield _noun_phrase(place)


def _is_relative_clause(verb: Any, hero: _Hero) -> bool:
    """Whether a verb describes the main character: "a woman who lived in ...", "living in ..."."""
    return verb.dep_ in ("relcl", "acl") and _describes_hero(verb.head, hero)


def _noun_phrase(noun: Any) -> ValueSpan:
    """A noun with what belongs to it, up to a comma, a clause or "with": "town near the sea"."""
    doc, end = noun.doc, noun.i + 1
    first_place = min([noun.i, *(t.i for t in noun.lefts)])
    for token in doc[noun.i + 1 : first_place + MAX_VALUE_WORDS]:
        if (
            token.is_punct
            or token.is_space
            or token.dep_ in ("cc", "mark")
            or token.pos_ == "SCONJ"
        ):
            break
        if (
            token.lower_ == "with"
            or not noun.is_ancestor(token)
            or any(
                a.dep_ in ("relcl", "acl") and noun.is_ancestor(a)
                for a in (token, *token.ancestors)
            )
        ):
            break
        end = token.i + 1
    return clean_span(doc, first_place, end)


def _read_traits(doc: Any, hero: _Hero) -> FoundValues:
    """Adjectives said of the main character; they may say what is true only for a while."""
    never = load_word_lists()["not_traits"]
    for token in doc:
        if token.pos_ != "ADJ" or token.lower_ in never or not token.text.isalpha():
            continue
        if token.lower_ in load_origins() or any(c.dep_ == "neg" for c in token.children):
            continue
        first_conjunct = token
        while first_conjunct.dep_ == "conj" and first_conjunct.head.pos_ in ("ADJ", "NOUN"):
            first_conjunct = first_conjunct.head
        is_complement = first_conjunct.dep_ in ("acomp", "attr") and first_conjunct.head.lemma_ in (
            "be",
            "seem",
            "become",
            "appear",
        )
        negated = is_complement and any(c.dep_ == "neg" for c in first_conjunct.head.children)
        describes = (
            first_conjunct.dep_ == "amod"
            and _is_person(first_conjunct.head)
            and _describes_hero(first_conjunct.head, hero)
        )
        if (is_complement and not negated and hero.does(first_conjunct.head)) or describes:
            yield place_value(token.lower_, token)


def _is_person(noun: Any) -> bool:
    return (
        noun.lemma_.lower()
        in load_word_lists()["occupations"]
        | load_word_lists()["relatives"]
        | load_word_lists()["people"]
    )


def _read_wants(doc: Any, hero: _Hero) -> FoundValues:
    """What the main character wants: "to open a bakery", "a better life"."""
    for token in doc:
        if token.pos_ == "VERB" and token.lemma_ in load_word_lists()["want"] and hero.does(token):
            if not any(c.dep_ == "neg" for c in token.children):
                yield from _wish_phrases(token)
        elif (
            token.lemma_ in load_word_lists()["longing"]
            and token.pos_ == "NOUN"
            and hero.owns(token)
        ):
            yield from _wish_phrases(token)
            if token.dep_ == "nsubj" and token.head.lemma_ == "be":
                yield from _wish_phrases(token.head)


def _wish_phrases(head: Any) -> FoundValues:
    for child in head.children:
        if child.lemma_ in ("be", "do") and not any(True for _ in child.rights):
            continue  # "what she wanted to do"
        if child.dep_ in ("xcomp", "acl") and any(c.lower_ == "to" for c in child.children):
            yield _verb_clause(child, next(c.i for c in child.children if c.lower_ == "to"))
        elif child.dep_ == "dobj" and _is_thing(child):
            yield _noun_phrase(child)
        elif child.dep_ == "prep" and child.lower_ in ("of", "for", "after"):
            for inner in child.children:
                if inner.dep_ == "pcomp" and inner.tag_ == "VBG":
                    yield _verb_clause(inner, inner.i)
                elif inner.dep_ == "pobj" and _is_thing(inner):
                    yield _noun_phrase(inner)


def _is_thing(noun: Any) -> bool:
    return noun.pos_ in ("NOUN", "PROPN") and noun.lower_ not in _NOT_PLACES


def _verb_clause(verb: Any, first: int) -> ValueSpan:
    """A clause from its first word, up to a comma, another clause, or the most words."""
    doc, end = verb.doc, verb.i + 1
    for token in doc[verb.i + 1 : first + MAX_VALUE_WORDS]:
        if token.is_punct or token.is_space or token.dep_ in ("mark", "cc", "advcl", "relcl"):
            break
        end = token.i + 1
    return clean_span(doc, first, end)


def _read_happens(doc: Any, hero: _Hero) -> FoundValues:
    """Turns of fortune: "be arrested", "die", "lose job"."""
    for token in doc:
        if (
            token.pos_ != "VERB"
            or _is_wished(token)
            or any(c.dep_ == "neg" for c in token.children)
        ):
            continue
        passive = any(c.dep_ in ("auxpass", "nsubjpass") for c in token.children) or (
            any(c.lemma_ == "get" and c.dep_ in ("aux", "auxpass") for c in token.children)
        )
        if passive and token.lemma_ in load_word_lists()["done_to"] and hero.does(token):
            yield place_value(f"be {token.lower_}", token)
        elif not passive and token.lemma_ in load_word_lists()["done"] and hero.does(token):
            direct_object = next(
                (c for c in token.children if c.dep_ == "dobj" and c.pos_ == "NOUN"), None
            )
            value = (
                f"{token.lemma_} {direct_object.lemma_}"
                if direct_object is not None
                else token.lemma_
            )
            ends = token if direct_object is None or direct_object.i < token.i else direct_object
            yield ValueSpan(value.lower(), token.idx, ends.idx + len(ends))


READERS: Mapping[str, Callable[[Any, _Hero], Iterable[ValueSpan]]] = {
    "gender": _read_gender,
    "origin": _read_origin,
    "occupation": _read_occupation,
    "family": _read_family,
    "home": _read_home,
    "traits": _read_traits,
    "wants": _read_wants,
    "happens": _read_happens,
}
"""What reads each attribute, by its name in a pack of stories."""
