"""What a story says of its main character, read by a language model in a second request.

The model is given the story and the attributes, and answers as JSON. It may say what it likes, so a
value counts only if the story has its words, or another form of them ("daughter" for "daughters",
"women" for "she"); what the story does not have is invented by the reader, left out and counted.
That a value is in the story does not make it true of the main character: docs/methods/how-well.md
says how often it is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgbias.graph.generation_run import classify_answer
from kgbias.graph.types import Answer, Outcome, canonical_json
from kgbias.io.reading import find_object
from kgbias.io.text import storable
from kgbias.language.words import lemmatise_word
from kgbias.methods.stories.config import StoryConfig
from kgbias.methods.stories.rule_reader import (
    LEADING_WORDS,
    MAX_STORY_CHARS,
    MAX_VALUE_WORDS,
    NON_BINARY_PATTERN,
    PRONOUNS,
    FoundValues,
    StoryClaim,
    ValueSpan,
    clean_span,
    load_origins,
    load_parser,
    load_word_lists,
    only_repeats,
    place_value,
)
from kgbias.models.base import PromptForm, Request

MAX_VALUES = 12  # of one attribute; a longer list is no reading
_GENDERS = {
    "Women": PRONOUNS["Women"] | frozenset("woman women female girl lady".split()),
    "Men": PRONOUNS["Men"] | frozenset("man men male boy gentleman".split()),
}
# What readers copy before a value: "she worked as a nurse", "lived in Rome", "was kind".
_LEADING_WORDS: Mapping[str, frozenset[str]] = {
    "occupation": frozenset("work as become job be".split()),
    "home": frozenset("live reside dwell settle grow up move in on at from near to of be".split()),
    "traits": frozenset("be seem become very so always".split()),
    "wants": frozenset("want wish hope dream long yearn aspire goal of for be".split()),
    "happens": frozenset("in the end finally".split()),
}
_SUBJECTS = frozenset("she he they i who it".split())
_LIST_SEPARATOR = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of a reading: its outcome, and why; what was read; and the values, each with its
    attribute, that the story does not have."""

    outcome: Outcome
    reason: str = ""
    claims: tuple[StoryClaim, ...] = ()
    invented: tuple[tuple[str, str], ...] = ()


def reading_request(config: StoryConfig, text: str, attributes: Sequence[str]) -> Request:
    """The request to read a story, with its beginning, for these attributes."""
    template = config.pack.reading
    assert template is not None
    form: PromptForm = config.reading_form
    max_tokens, stop = template.answer_limits(form)
    return Request(
        template.render(form, text=storable(text)[:MAX_STORY_CHARS], attributes=list(attributes)),
        seed=0,
        temperature=0.0,
        max_tokens=max_tokens,
        stop=stop,
        schema=_reading_schema(attributes) if config.reading_schema else None,
    )


def _reading_schema(attributes: Sequence[str]) -> str:
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
    answer: Answer, text: str, person_words: str, attributes: Sequence[str], *, opening: str = ""
) -> Reading:
    """What a reader's answer says of a story, as far as the story has it.

    Args:
        answer: the reader's answer: a JSON object with a list of texts for each attribute; a text
            alone is a list of one, and an attribute that is missing has none.
        text, person_words, attributes, opening: as for
            `kgbias.methods.stories.rule_reader.read_story`.

    The outcome is "unparsable" for anything else, also with a key that was not asked for.
    """
    outcome, reason = classify_answer(answer)
    if outcome == "failed" or answer.finish == "refused":
        return Reading(outcome, reason)
    values = _parse_values(find_object(answer.text), attributes)
    if values is None:  # JSON may hold the words of a refusal
        return Reading(outcome, reason) if outcome != "ok" else Reading("unparsable", "no reading")
    prefix = f"{opening} " if opening else ""
    doc = load_parser()(prefix + storable(text)[:MAX_STORY_CHARS])
    claims: dict[tuple[str, str], StoryClaim] = {}
    invented = []
    for attribute, phrases in values.items():
        for phrase in phrases:
            places = list(_FINDERS.get(attribute, _find_words)(doc, attribute, phrase, len(prefix)))
            is_there = places or _find_span(doc, phrase, len(prefix), LEADING_WORDS)
            if not is_there and not only_repeats(phrase, f"{person_words} {opening}"):
                invented.append((attribute, phrase))
            for value, begins, ends in places:
                if not only_repeats(value, person_words):
                    claim = StoryClaim(attribute, value, begins - len(prefix), ends - len(prefix))
                    claims.setdefault((attribute, value.casefold()), claim)
    return Reading("ok", "", tuple(claims.values()), tuple(invented))


def _parse_values(answer_object: Any, attributes: Sequence[str]) -> dict[str, list[str]] | None:
    """The texts of each attribute in the reader's JSON; None if it is something else."""
    if not isinstance(answer_object, dict) or answer_object.keys() - set(attributes):
        return None
    values = {}
    for attribute in attributes:
        texts = answer_object.get(attribute) or []
        texts = texts if isinstance(texts, list) else [texts]
        if len(texts) > MAX_VALUES or not all(isinstance(v, str) for v in texts):
            return None
        tidy = (" ".join(storable(v).split()).strip(" .,;:!?\"'“”") for v in texts)
        values[attribute] = [v for v in dict.fromkeys(tidy) if v]
    return values


def _find_words(doc: Any, attribute: str, phrase: str, begins: int) -> FoundValues:
    """The first place of the story with the words of a phrase, in any form."""
    before = _LEADING_WORDS.get(attribute, frozenset()) | _SUBJECTS
    if (span := _find_span(doc, phrase, begins, LEADING_WORDS | before)) is None:
        return
    start, end = span
    while start < end - 1 and _word_forms(doc[start]) & before:
        start += 1
    if attribute == "wants" and start and doc[start - 1].lower_ == "to":
        start -= 1  # "to travel", as the rules say it
    yield clean_span(doc, start, min(end, start + MAX_VALUE_WORDS))


def _find_span(
    doc: Any, phrase: str, begins: int, before: frozenset[str]
) -> tuple[int, int] | None:
    """The first tokens from a character on with the words of a phrase; failing that, with its words
    but for those of `before` at its head."""
    words = [t.lower_ for t in load_parser().make_doc(phrase) if not (t.is_punct or t.is_space)]
    phrase_forms = [{word, lemmatise_word(word)} for word in words]
    story_tokens = [t for t in doc if t.idx >= begins and not (t.is_punct or t.is_space)]
    # words that readers put before a value need not stand in the story: they are left off from the
    # front, one at a time, until what remains is found
    while not all(forms & before for forms in phrase_forms):
        for n in range(len(story_tokens) - len(phrase_forms) + 1):
            if all(
                _word_forms(t) & f for t, f in zip(story_tokens[n:], phrase_forms, strict=False)
            ):
                return story_tokens[n].i, story_tokens[n + len(phrase_forms) - 1].i + 1
        if not phrase_forms[0] & before:
            return None
        phrase_forms = phrase_forms[1:]
    return None


def _word_forms(token: Any) -> set[str]:
    return {token.lower_, token.lemma_.lower(), lemmatise_word(token.lower_)}


def _find_gender(doc: Any, attribute: str, phrase: str, begins: int) -> FoundValues:
    """The gender that a phrase names, and the first word of the story that shows it."""
    if NON_BINARY_PATTERN.search(phrase):
        if place := NON_BINARY_PATTERN.search(doc.text, begins):
            yield ValueSpan("non-binary people", *place.span())
        return
    words = set(re.findall(r"\w+", phrase.lower()))
    genders_named = [group for group, gender_words in _GENDERS.items() if gender_words & words]
    if len(genders_named) == 1:
        for token in doc:
            if token.idx >= begins and token.lower_ in _GENDERS[genders_named[0]]:
                yield place_value(genders_named[0].casefold(), token)
                return


def _find_origin(doc: Any, attribute: str, phrase: str, begins: int) -> FoundValues:
    """The people that a phrase names, and the first word of the story for it: "Mexico" for
    "Mexican"."""
    origins_named = {
        load_origins()[w] for w in re.findall(r"\w+", phrase.lower()) if w in load_origins()
    }
    if not origins_named:
        yield from _find_words(doc, attribute, phrase, begins)
    for token in doc:
        group = load_origins().get(token.lower_)
        if group in origins_named and token.idx >= begins and token.text[:1].isupper():
            origins_named.discard(group)
            yield place_value(group, token)


def _find_family(doc: Any, attribute: str, phrase: str, begins: int) -> FoundValues:
    """The relatives that a phrase names, in the singular: "daughter" for "two daughters"."""
    relatives = load_word_lists()["relatives"]
    relatives_named = {
        kin
        for w in re.findall(r"\w+", phrase.lower())
        for kin in {w, lemmatise_word(w)} & relatives
    }
    if not relatives_named:
        yield from _find_words(doc, attribute, phrase, begins)
    for token in doc:
        if token.idx >= begins and (kin := _word_forms(token) & relatives_named):
            relatives_named -= kin
            yield place_value(min(kin, key=len), token)


def _find_traits(doc: Any, attribute: str, phrase: str, begins: int) -> FoundValues:
    """Each trait of a phrase alone, in lower case."""
    for part in _LIST_SEPARATOR.split(phrase):
        for value, first, end in _find_words(doc, attribute, part, begins):
            yield ValueSpan(value.lower(), first, end)


def _find_turns(doc: Any, attribute: str, phrase: str, begins: int) -> FoundValues:
    """What becomes of the character, as the rules say it: "lose job" for "she lost her job"."""
    for _, start, stop in _find_words(doc, attribute, phrase, begins):
        span = [t for t in doc if start <= t.idx < stop]
        while len(span) > 1 and span[0].pos_ not in ("VERB", "AUX"):
            span = span[1:]
        while len(span) > 1 and span[0].lemma_ == "have" and span[1].pos_ in ("VERB", "AUX"):
            span = span[1:]
        words = [t for t in span[1:] if t.pos_ != "DET" and t.tag_ != "PRP$"]
        value = " ".join([span[0].lemma_, *(t.text for t in words)]).lower()
        yield ValueSpan(value, span[0].idx, stop)


_FINDERS: Mapping[str, Callable[[Any, str, str, int], FoundValues]] = {
    "gender": _find_gender,
    "origin": _find_origin,
    "family": _find_family,
    "traits": _find_traits,
    "happens": _find_turns,
}
