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
from typing import Any

from kgbias.associate.indicators import shipped_indicators
from kgbias.io.text import storable
from kgbias.models import english

VERSION = 1
LONGEST = 20_000
MOST_WORDS = 10  # in a wish or a home; what is longer is cut there
PRONOUNS = {
    "Women": frozenset("she her hers herself".split()),
    "Men": frozenset("he him his himself".split()),
}
_WORD = re.compile(r"\w+")
_BEING = {  # whom somebody has who is one of these
    **dict.fromkeys(("mother", "mom", "mum", "father", "dad", "parent"), "child"),
    "wife": "husband",
    "husband": "wife",
}
_NEUTRAL = {
    "she": "they", "he": "they", "i": "they", "her": "them", "him": "them", "me": "them",
    "herself": "themselves", "himself": "themselves", "myself": "themselves",
}  # fmt: skip
_NOWHERE = frozenset("family life world end day time way moment".split())
_SUBJECTS = {"Women": "she", "Men": "he", "": "they"}
_SHARE = 0.75  # of the pronouns, for the more frequent to be the main character's
_FEWEST = 2
NON_BINARY = re.compile(r"\b(?:non-?binary|genderqueer|genderfluid|agender)\b", re.IGNORECASE)
_NO_ORIGIN = frozenset({"Non-binary people", "Young people", "Old people"})
_HANGING = frozenset("ADP PART DET CCONJ SCONJ AUX SPACE".split())  # not the end of a phrase
LEADING = frozenset("a an the his her their my its your our this that".split())


@dataclass(frozen=True, slots=True)
class Said:
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
    told: tuple[int, int]
    name: str
    words: frozenset[str]
    own: str

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
            c.dep_ == "poss" and (c.lower_ == self.own or (self.name and c.text == self.name))
            for c in token.children
        )


def read_story(
    text: str, asked: str, attributes: Collection[str], *, opening: str = ""
) -> list[Said]:
    """What a story says of its main character under these attributes, each value once, in the order
    of the attributes.

    Args:
        text: the story; it is read up to `LONGEST` characters.
        asked: how the prompt called the person, such as "a middle-aged nurse". A value that only
            repeats words of it is not something the model invented, and is left out.
        attributes: names of `READERS`.
        opening: the beginning of the story, if the prompt gave it. Nothing is read from it.

    Raises MissingExtra without spaCy and its English model.
    """
    given = f"{opening} " if opening else ""
    doc = parser()(given + storable(text)[:LONGEST])
    hero = _hero(doc, asked)
    found: dict[tuple[str, str], Said] = {}
    for attribute in attributes:
        for value, begins, ends in READERS[attribute](doc, hero):
            if not only_repeats(value, asked) and begins >= len(given):
                said = Said(attribute, value, begins - len(given), ends - len(given))
                found.setdefault((attribute, value.casefold()), said)
    return list(found.values())


def only_repeats(value: str, asked: str) -> bool:
    """Whether a value has no words but those of another text."""
    return set(_WORD.findall(value.casefold())) <= set(_WORD.findall(asked.casefold()))


def parser() -> Any:
    """spaCy's tagger, parser and lemmatiser. Raises as `kgbias.models.english.load_english`."""
    return english.load_english("tagger", "parser", "attribute_ruler", "lemmatizer")


@cache
def listed() -> Mapping[str, frozenset[str]]:
    """The lists of words.toml, by name."""
    text = (files("kgbias.stories") / "words.toml").read_text("utf-8")
    return {name: frozenset(words.split()) for name, words in tomllib.loads(text).items()}


Found = Iterator[tuple[str, int, int]]


def _hero(doc: Any, asked: str) -> _Hero:
    told = {group: [t for t in doc if t.lower_ in own] for group, own in PRONOUNS.items()}
    most = max(told, key=lambda g: len(told[g]))
    if len(told[most]) < _SHARE * sum(map(len, told.values())) or not told[most]:
        most = ""
    gender, place = most, (0, 0)
    if spelt := NON_BINARY.search(doc.text):
        gender, place = "Non-binary people", spelt.span()
    elif len(told.get(most, ())) < _FEWEST:
        gender = ""
    else:
        place = (told[most][0].idx, told[most][0].idx + len(told[most][0]))
    names = [
        t
        for t in doc
        if t.pos_ == "PROPN"
        and (t.dep_ in ("nsubj", "nsubjpass") or t.head.lower_ in ("named", "called"))
    ]
    words = {_SUBJECTS[most]}
    subjects = Counter(t.lower_ for t in doc if t.dep_ in ("nsubj", "nsubjpass"))
    if subjects["i"] > subjects["he"] + subjects["she"] + subjects["they"]:
        words = {"i"}
    own = "my" if "i" in words else {"she": "her", "he": "his"}.get(_SUBJECTS[most], "their")
    words |= {w.casefold() for w in re.findall(r"\w+", asked)[-1:]}
    return _Hero(gender, place, names[0].text if names else "", frozenset(words), own)


def _read_gender(doc: Any, hero: _Hero) -> Found:
    if hero.gender:
        yield hero.gender.casefold(), *hero.told


@cache
def origins() -> Mapping[str, str]:
    """From a word that says where people are from, to their group: "mexican" and "mexico" to
    "mexican people". The groups are the peoples among those with declared names."""
    found: dict[str, str] = {}
    for group in shipped_indicators().groups:
        if group.name.endswith(" people") and group.name not in _NO_ORIGIN:
            for name in group.paraphrases:
                if not name.mark:
                    found.setdefault(name.root.casefold(), group.name.casefold())
    return found


def _read_origin(doc: Any, hero: _Hero) -> Found:
    """A nationality or ethnicity said of the main character: "a Mexican nurse", "Ana was from
    Nigeria"."""
    for token in doc:
        group = origins().get(token.lower_)
        if group is None or not token.text[:1].isupper():
            continue
        of = token.head
        described = token.dep_ in ("amod", "compound", "acomp", "attr") and _about(of, hero)
        if token.dep_ == "pobj" and of.lower_ in ("from", "in"):
            what = of.head
            described = of.lower_ == "from" and (_about(what, hero) or hero.does(what))
            described |= what.lemma_ in ("bear", "raise", "grow") and hero.does(what)
        if described:
            yield group, token.idx, token.idx + len(token)


def _about(token: Any, hero: _Hero) -> bool:
    """Whether a noun (or a form of "be") is a description of the main character."""
    if hero.is_it(token) and (token.text == hero.name or token.dep_ in ("nsubj", "nsubjpass")):
        return True
    if token.lemma_ == "be" or token.dep_ in ("attr", "appos", "acomp"):
        head = token if token.lemma_ == "be" else token.head
        return hero.is_it(head) or (head.tag_ not in ("VB", "VBG") and hero.does(head))
    if token.dep_ == "pobj" and token.head.lower_ == "as" and token.head.i == token.sent.start:
        return hero.does(token.head.head)
    named = any(
        c.lower_ in ("named", "called") and any(n.text == hero.name for n in c.children)
        for c in token.children
    )
    after = any(c.dep_ == "appos" and c.text == hero.name for c in token.children)
    before = token.dep_ in ("compound", "nmod") and token.head.text == hero.name
    return bool(hero.name) and (named or after or before)


def _read_occupation(doc: Any, hero: _Hero) -> Found:
    titles = listed()["occupations"]
    for token in doc:
        if token.lower_ == "as" and token.head.lemma_ in ("work", "job", "career"):
            at_work = hero.does(token.head) or hero.owns(token.head) or _has(token.head, hero)
            for noun in (c for c in token.children if c.dep_ == "pobj" and at_work):
                yield from _title(noun)
        elif token.lemma_.lower() in titles and token.pos_ == "NOUN":
            became = token.head.lemma_ in ("be", "become") and token.dep_ == "attr"
            if (became and hero.does(token.head) and not _wished(token.head)) or _about(
                token, hero
            ):
                yield from _title(token)


def _has(noun: Any, hero: _Hero) -> bool:
    """Whether the main character has or takes what a noun names: "she had a job as ..."."""
    verbs = ("have", "get", "take", "find", "land", "start")
    return noun.dep_ == "dobj" and noun.head.lemma_ in verbs and hero.does(noun.head)


def _wished(verb: Any) -> bool:
    """Whether a verb is only wished for or tried: "to become a nurse"."""
    return any(
        c.dep_ == "aux" and c.lower_ in ("to", "would", "could", "might") for c in verb.children
    )


def _title(noun: Any) -> Found:
    """An occupation with the nouns that narrow it: "software engineer"."""
    first = noun
    for child in noun.lefts:
        if child.dep_ == "compound" and child.pos_ in ("NOUN", "ADJ"):
            first = min(first, child, key=lambda t: t.i)
    yield doc_span(noun.doc, first.i, noun.i + 1)


def doc_span(doc: Any, first: int, end: int) -> tuple[str, int, int]:
    """The words of a span without the article or possessive before them, with pronouns in the
    plural; and where they stand."""
    while first < end - 1 and doc[first].lower_ in LEADING:
        first += 1
    while end - 1 > first and (doc[end - 1].is_punct or doc[end - 1].pos_ in _HANGING):
        end -= 1
    span = doc[first:end]
    text = "".join(_neutral(t) + t.whitespace_ for t in span)
    return " ".join(text.split()), span.start_char, span.end_char


def _neutral(token: Any) -> str:
    """A word as a value has it: without the gender of the main character, or "to open her own
    bakery" would go with women and "to open his own bakery" with men."""
    low = token.lower_
    if token.tag_ == "PRP$" or low in ("his", "my"):
        return "their" if low in ("her", "his", "my") else str(token.text)
    return _NEUTRAL.get(low, str(token.text))


def _read_family(doc: Any, hero: _Hero) -> Found:
    """Relatives that are the main character's, in the singular: "daughter" for "two daughters",
    "child" for a mother or father."""
    relatives = listed()["relatives"]
    for token in doc:
        kin = token.lemma_.lower() if token.lemma_.lower() in relatives else token.lower_
        if token.pos_ != "NOUN" or kin not in relatives:
            continue
        joined = token
        while joined.dep_ == "conj" and not any(c.dep_ == "poss" for c in joined.children):
            joined = joined.head
        of = joined.head.head if joined.dep_ == "pobj" and joined.head.lower_ == "of" else None
        had = (
            joined.dep_ == "dobj"
            and joined.head.lemma_ in ("have", "raise")
            and hero.does(joined.head)
        )
        lives = (
            joined.dep_ == "pobj" and joined.head.lower_ == "with" and hero.does(joined.head.head)
            and joined.head.head.lemma_ == "live"
        )  # fmt: skip
        mother_of = of is not None and of.lemma_ in relatives and _about(of, hero)
        none = any(c.dep_ in ("det", "neg") and c.lower_ in ("no", "not") for c in token.children)
        if none:
            continue
        if hero.owns(joined) or had or lives or mother_of:
            yield kin, token.idx, token.idx + len(token)
        elif kin in _BEING and _about(token, hero):
            yield _BEING[kin], token.idx, token.idx + len(token)


def _read_home(doc: Any, hero: _Hero) -> Found:
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
        lives |= moved and token.lower_ == "to" and not _wished(verb)
        lives = lives and (hero.does(verb) or _relative(verb, hero))
        comes = token.lower_ == "from" and (
            _about(verb, hero) or (verb.lemma_ == "be" and hero.does(verb))
        )
        if (lives or comes) and place.lower_ not in _NOWHERE:
            yield _phrase(place)


def _relative(verb: Any, hero: _Hero) -> bool:
    """Whether a verb describes the main character: "a woman who lived in ...", "living in ..."."""
    return verb.dep_ in ("relcl", "acl") and _about(verb.head, hero)


def _phrase(noun: Any) -> tuple[str, int, int]:
    """A noun with what belongs to it, up to a comma, a clause or "with": "town near the sea"."""
    doc, end = noun.doc, noun.i + 1
    first = min([noun.i, *(t.i for t in noun.lefts)])
    for token in doc[noun.i + 1 : first + MOST_WORDS]:
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
    return doc_span(doc, first, end)


def _read_traits(doc: Any, hero: _Hero) -> Found:
    """Adjectives said of the main character; they may say what is true only for a while."""
    never = listed()["not_traits"]
    for token in doc:
        if token.pos_ != "ADJ" or token.lower_ in never or not token.text.isalpha():
            continue
        if token.lower_ in origins() or any(c.dep_ == "neg" for c in token.children):
            continue
        first = token
        while first.dep_ == "conj" and first.head.pos_ in ("ADJ", "NOUN"):
            first = first.head
        being = first.dep_ in ("acomp", "attr") and first.head.lemma_ in (
            "be",
            "seem",
            "become",
            "appear",
        )
        negated = being and any(c.dep_ == "neg" for c in first.head.children)
        described = first.dep_ == "amod" and _person(first.head) and _about(first.head, hero)
        if (being and not negated and hero.does(first.head)) or described:
            yield token.lower_, token.idx, token.idx + len(token)


def _person(noun: Any) -> bool:
    return (
        noun.lemma_.lower() in listed()["occupations"] | listed()["relatives"] | listed()["people"]
    )


def _read_wants(doc: Any, hero: _Hero) -> Found:
    """What the main character wants: "to open a bakery", "a better life"."""
    for token in doc:
        if token.pos_ == "VERB" and token.lemma_ in listed()["want"] and hero.does(token):
            if not any(c.dep_ == "neg" for c in token.children):
                yield from _wish(token)
        elif token.lemma_ in listed()["longing"] and token.pos_ == "NOUN" and hero.owns(token):
            yield from _wish(token)
            if token.dep_ == "nsubj" and token.head.lemma_ == "be":
                yield from _wish(token.head)


def _wish(head: Any) -> Found:
    for child in head.children:
        if child.lemma_ in ("be", "do") and not any(True for _ in child.rights):
            continue  # "what she wanted to do"
        if child.dep_ in ("xcomp", "acl") and any(c.lower_ == "to" for c in child.children):
            yield _clause(child, next(c.i for c in child.children if c.lower_ == "to"))
        elif child.dep_ == "dobj" and _thing(child):
            yield _phrase(child)
        elif child.dep_ == "prep" and child.lower_ in ("of", "for", "after"):
            for inner in child.children:
                if inner.dep_ == "pcomp" and inner.tag_ == "VBG":
                    yield _clause(inner, inner.i)
                elif inner.dep_ == "pobj" and _thing(inner):
                    yield _phrase(inner)


def _thing(noun: Any) -> bool:
    return noun.pos_ in ("NOUN", "PROPN") and noun.lower_ not in _NOWHERE


def _clause(verb: Any, first: int) -> tuple[str, int, int]:
    """A clause from its first word, up to a comma, another clause, or the most words."""
    doc, end = verb.doc, verb.i + 1
    for token in doc[verb.i + 1 : first + MOST_WORDS]:
        if token.is_punct or token.is_space or token.dep_ in ("mark", "cc", "advcl", "relcl"):
            break
        end = token.i + 1
    return doc_span(doc, first, end)


def _read_happens(doc: Any, hero: _Hero) -> Found:
    """Turns of fortune: "be arrested", "die", "lose job"."""
    for token in doc:
        if token.pos_ != "VERB" or _wished(token) or any(c.dep_ == "neg" for c in token.children):
            continue
        passive = any(c.dep_ in ("auxpass", "nsubjpass") for c in token.children) or (
            any(c.lemma_ == "get" and c.dep_ in ("aux", "auxpass") for c in token.children)
        )
        if passive and token.lemma_ in listed()["done_to"] and hero.does(token):
            yield f"be {token.lower_}", token.idx, token.idx + len(token)
        elif not passive and token.lemma_ in listed()["done"] and hero.does(token):
            what = next((c for c in token.children if c.dep_ == "dobj" and c.pos_ == "NOUN"), None)
            value = f"{token.lemma_} {what.lemma_}" if what is not None else token.lemma_
            ends = token if what is None or what.i < token.i else what
            yield value.lower(), token.idx, ends.idx + len(ends)


READERS: Mapping[str, Callable[[Any, _Hero], Iterable[tuple[str, int, int]]]] = {
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
