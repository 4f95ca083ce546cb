"""What a story says of its main character, read by a language model in a second request.

The model is given the story and the attributes, and answers as JSON. It may say what it likes, so a
value counts only if the story has its words, or another form of them ("daughter" for "daughters",
"women" for "she"); what the story does not have is invented by the reader, left out and counted.
That a value is in the story does not make it true of the main character: docs/methods/how-well.md
says how often it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgbias.graph.generation_run import classify_answer
from kgbias.graph.types import Answer, Outcome, canonical_json
from kgbias.io.reading import find_object
from kgbias.io.text import storable
from kgbias.language.words import lemmatise_word
from kgbias.models.base import PromptForm, Request
from kgbias.stories.config import StoryConfig
from kgbias.stories.read import (
    LEADING,
    LONGEST,
    MOST_WORDS,
    NON_BINARY,
    PRONOUNS,
    Said,
    doc_span,
    listed,
    only_repeats,
    origins,
    parser,
)

MOST_VALUES = 12  # of one attribute; a longer list is no reading
_GENDERS = {
    "Women": PRONOUNS["Women"] | frozenset("woman women female girl lady".split()),
    "Men": PRONOUNS["Men"] | frozenset("man men male boy gentleman".split()),
}
# What readers copy before a value: "she worked as a nurse", "lived in Rome", "was kind".
_BEFORE: Mapping[str, frozenset[str]] = {
    "occupation": frozenset("work as become job be".split()),
    "home": frozenset("live reside dwell settle grow up move in on at from near to of be".split()),
    "traits": frozenset("be seem become very so always".split()),
    "wants": frozenset("want wish hope dream long yearn aspire goal of for be".split()),
    "happens": frozenset("in the end finally".split()),
}
_SUBJECTS = frozenset("she he they i who it".split())
_AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of a reading: its outcome, and why; what was read; and the values, each with its
    attribute, that the story does not have."""

    outcome: Outcome
    reason: str = ""
    said: tuple[Said, ...] = ()
    invented: tuple[tuple[str, str], ...] = ()


def reading_request(config: StoryConfig, text: str, attributes: Sequence[str]) -> Request:
    """The request to read a story, with its beginning, for these attributes."""
    template = config.pack.reading
    assert template is not None
    form: PromptForm = config.reading_form
    most, stop = template.answer_limits(form)
    return Request(
        template.render(form, text=storable(text)[:LONGEST], attributes=list(attributes)),
        seed=0,
        temperature=0.0,
        max_tokens=most,
        stop=stop,
        schema=_schema(attributes) if config.reading_schema else None,
    )


def _schema(attributes: Sequence[str]) -> str:
    texts = {"type": "array", "items": {"type": "string"}}
    return canonical_json(
        {
            "type": "object",
            "properties": {name: texts for name in attributes},
            "required": list(attributes),
            "additionalProperties": False,
        }
    )


def read_reading(
    answer: Answer, text: str, asked: str, attributes: Sequence[str], *, opening: str = ""
) -> Reading:
    """What a reader's answer says of a story, as far as the story has it.

    Args:
        answer: the reader's answer: a JSON object with a list of texts for each attribute; a text
            alone is a list of one, and an attribute that is missing has none.
        text, asked, attributes, opening: as for `kgbias.stories.read.read_story`.

    The outcome is "unparsable" for anything else, also with a key that was not asked for.
    """
    outcome, reason = classify_answer(answer)
    if outcome == "failed" or answer.finish == "refused":
        return Reading(outcome, reason)
    values = _values(find_object(answer.text), attributes)
    if values is None:  # JSON may hold the words of a refusal
        return Reading(outcome, reason) if outcome != "ok" else Reading("unparsable", "no reading")
    given = f"{opening} " if opening else ""
    doc = parser()(given + storable(text)[:LONGEST])
    found: dict[tuple[str, str], Said] = {}
    invented = []
    for attribute, phrases in values.items():
        for phrase in phrases:
            places = list(_FINDERS.get(attribute, _find_words)(doc, attribute, phrase, len(given)))
            there = places or _span(doc, phrase, len(given), LEADING)
            if not there and not only_repeats(phrase, f"{asked} {opening}"):
                invented.append((attribute, phrase))
            for value, begins, ends in places:
                if not only_repeats(value, asked):
                    said = Said(attribute, value, begins - len(given), ends - len(given))
                    found.setdefault((attribute, value.casefold()), said)
    return Reading("ok", "", tuple(found.values()), tuple(invented))


def _values(found: Any, attributes: Sequence[str]) -> dict[str, list[str]] | None:
    """The texts of each attribute in the reader's JSON; None if it is something else."""
    if not isinstance(found, dict) or found.keys() - set(attributes):
        return None
    values = {}
    for attribute in attributes:
        said = found.get(attribute) or []
        said = said if isinstance(said, list) else [said]
        if len(said) > MOST_VALUES or not all(isinstance(v, str) for v in said):
            return None
        tidy = (" ".join(storable(v).split()).strip(" .,;:!?\"'“”") for v in said)
        values[attribute] = [v for v in dict.fromkeys(tidy) if v]
    return values


Found = Iterator[tuple[str, int, int]]  # values, and where the story has them


def _find_words(doc: Any, attribute: str, phrase: str, begins: int) -> Found:
    """The first place of the story with the words of a phrase, in any form."""
    before = _BEFORE.get(attribute, frozenset()) | _SUBJECTS
    if (span := _span(doc, phrase, begins, LEADING | before)) is None:
        return
    first, end = span
    while first < end - 1 and _forms(doc[first]) & before:
        first += 1
    if attribute == "wants" and first and doc[first - 1].lower_ == "to":
        first -= 1  # "to travel", as the rules say it
    yield doc_span(doc, first, min(end, first + MOST_WORDS))


def _span(doc: Any, phrase: str, begins: int, before: frozenset[str]) -> tuple[int, int] | None:
    """The first tokens from a character on with the words of a phrase; failing that, with its words
    but for those of `before` at its head."""
    words = [t.lower_ for t in parser().make_doc(phrase) if not (t.is_punct or t.is_space)]
    wanted = [{word, lemmatise_word(word)} for word in words]
    there = [t for t in doc if t.idx >= begins and not (t.is_punct or t.is_space)]
    while not all(forms & before for forms in wanted):
        for n in range(len(there) - len(wanted) + 1):
            if all(_forms(t) & f for t, f in zip(there[n:], wanted, strict=False)):
                return there[n].i, there[n + len(wanted) - 1].i + 1
        if not wanted[0] & before:
            return None
        wanted = wanted[1:]
    return None


def _forms(token: Any) -> set[str]:
    return {token.lower_, token.lemma_.lower(), lemmatise_word(token.lower_)}


def _find_gender(doc: Any, attribute: str, phrase: str, begins: int) -> Found:
    """The gender that a phrase names, and the first word of the story that shows it."""
    if NON_BINARY.search(phrase):
        if place := NON_BINARY.search(doc.text, begins):
            yield "non-binary people", *place.span()
        return
    words = set(re.findall(r"\w+", phrase.lower()))
    named = [group for group, own in _GENDERS.items() if own & words]
    if len(named) == 1:
        for t in doc:
            if t.idx >= begins and t.lower_ in _GENDERS[named[0]]:
                yield named[0].casefold(), t.idx, t.idx + len(t)
                return


def _find_origin(doc: Any, attribute: str, phrase: str, begins: int) -> Found:
    """The people that a phrase names, and the first word of the story for it: "Mexico" for
    "Mexican"."""
    named = {origins()[w] for w in re.findall(r"\w+", phrase.lower()) if w in origins()}
    if not named:
        yield from _find_words(doc, attribute, phrase, begins)
    for t in doc:
        group = origins().get(t.lower_)
        if group in named and t.idx >= begins and t.text[:1].isupper():
            named.discard(group)
            yield group, t.idx, t.idx + len(t)


def _find_family(doc: Any, attribute: str, phrase: str, begins: int) -> Found:
    """The relatives that a phrase names, in the singular: "daughter" for "two daughters"."""
    relatives = listed()["relatives"]
    named = {kin for w in re.findall(r"\w+", phrase.lower()) for kin in {w, lemmatise_word(w)} & relatives}
    if not named:
        yield from _find_words(doc, attribute, phrase, begins)
    for t in doc:
        if t.idx >= begins and (kin := _forms(t) & named):
            named -= kin
            yield min(kin, key=len), t.idx, t.idx + len(t)


def _find_traits(doc: Any, attribute: str, phrase: str, begins: int) -> Found:
    """Each trait of a phrase alone, in lower case."""
    for part in _AND.split(phrase):
        for value, first, end in _find_words(doc, attribute, part, begins):
            yield value.lower(), first, end


def _find_turns(doc: Any, attribute: str, phrase: str, begins: int) -> Found:
    """What becomes of the character, as the rules say it: "lose job" for "she lost her job"."""
    for _, start, stop in _find_words(doc, attribute, phrase, begins):
        span = [t for t in doc if start <= t.idx < stop]
        while len(span) > 1 and span[0].pos_ not in ("VERB", "AUX"):
            span = span[1:]
        while len(span) > 1 and span[0].lemma_ == "have" and span[1].pos_ in ("VERB", "AUX"):
            span = span[1:]
        words = [t for t in span[1:] if t.pos_ != "DET" and t.tag_ != "PRP$"]
        value = " ".join([span[0].lemma_, *(t.text for t in words)]).lower()
        yield value, span[0].idx, stop


_FINDERS: Mapping[str, Callable[[Any, str, str, int], Found]] = {
    "gender": _find_gender,
    "origin": _find_origin,
    "family": _find_family,
    "traits": _find_traits,
    "happens": _find_turns,
}
