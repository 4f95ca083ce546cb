"""The rules that bring a stereotype into one form: a statement that follows any group.

"Women are bad drivers" and "is bad drivers" both become "are bad drivers". What cannot be brought
into this form is left out, with the reason (Marchiori Manerba et al. 2023, appendix B.1). The paper
names the rules and not their code; where it is silent, the stricter reading is taken: a statement
begins with its verb, in the present tense.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kgbias.io.reading import read_toml
from kgbias.probe.sets import read_identities

REASONS = {
    "empty": "it is empty",
    "historical": "it refers to a historical event",
    "terminology": "it is about how people are called",
    "offence": "it describes an offence or a joke",
    "no verb": "it has no verb",
    "gerund": "its only verbs are gerunds",
    "no subject": "it expects no subject that is a group",
    "tense": "it does not begin with a verb in the present tense",
    "target": "it names a target itself",
}
_DATA = Path(__file__).parent.parent / "data"
_WORDS, _TARGETS = _DATA / "sofa_rules.toml", _DATA / "sofa_targets.toml"
_SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass")
_AUXILIARIES = ("aux", "auxpass")
_PRESENT = ("VBP", "VBZ")
_PERSONS = frozenset("person people man woman men women boy girl guy folk they".split())
_NUMBERS = (("man", "men"), ("y", "ies"), ("", "s"))  # how one and many of a group end
# Which name a group before "people" alone: "little people", but "little money".
_ORDINARY = frozenset("little normal brown colored coloured english".split())
_EDGE = " \t\"'“”‘’.,;:!?*-()[]"
_NOT = ("n't", "n’t", "nt")
_IRREGULAR = {
    **dict.fromkeys(("is", "are", "am", "ai", "'s", "’s", "'re", "’re"), "are"),
    **dict.fromkeys(("has", "have", "'ve", "’ve"), "have"),
    **dict.fromkeys(("does", "do"), "do"),
}


@dataclass(frozen=True, slots=True)
class Ruled:
    """A stereotype as the rules left it: the statement, or "" with the `reason` (`REASONS`)."""

    source: str
    statement: str
    reason: str = ""


class Rules:
    """The rules. No statement may name a target: an identity of SoFa, a people, a place or a faith
    (sofa_targets.toml), or one of the groups that statements will follow.

    Args:
        parser: spaCy's English model with its parser (`kgbias.models.english.load`).
        targets: the groups that statements will follow.
    """

    def __init__(self, parser: Any, targets: Iterable[str]) -> None:
        self._parser = parser
        self._verbs = frozenset(
            parser.get_pipe("lemmatizer").lookups.get_table("lemma_index")["verb"]
        )
        self._targets = _any_of(_forms((*targets, *_known_targets())))

    def apply(self, stereotypes: Sequence[str]) -> Iterator[Ruled]:
        """Each stereotype as the rules leave it, in order."""
        texts = [" ".join(text.split()).strip(_EDGE).lower() for text in stereotypes]
        plain = self._parser.pipe(texts, batch_size=256)
        # A statement without a subject is parsed as what it will be: something said of them.
        told = self._parser.pipe((f"they {text}." for text in texts), batch_size=256)
        for source, text, own, after in zip(stereotypes, texts, plain, told, strict=True):
            statement, reason = self._rule(text, own, after)
            yield Ruled(source, statement, reason)

    def _rule(self, text: str, own: Any, after: Any) -> tuple[str, str]:
        if not text:
            return "", "empty"
        for reason, pattern in _patterns().items():
            if pattern.search(text):
                return "", reason
        with_subject = _subject(own)
        verbs = any(t.pos_ in ("VERB", "AUX") for t in after[1:])
        if with_subject is None and (not verbs or _is_adjective(own)):
            return "", "no verb"
        rest, reason = self._after(own, with_subject) if with_subject else self._said(after)
        if reason == "no subject" and not self._said(after)[1]:
            rest, reason = self._said(after)  # "hate being late", where "hate" looks like a noun
        if not reason and self._targets.search(rest):
            reason = "target"
        return ("" if reason else rest), reason

    def _after(self, doc: Any, subject: Any) -> tuple[str, str]:
        """What is said of a subject that the sentence has itself."""
        if subject.dep_ == "expl" or not _is_group(subject):
            return "", "no subject"
        return self._from_verb(doc, subject.right_edge.i + 1, subject.head)

    def _said(self, doc: Any) -> tuple[str, str]:
        """What is said of them, in a sentence that begins with "they"."""
        root = next((t for t in doc if t.dep_ == "ROOT"), doc[0])
        verbs = [t for t in doc[1:] if t.pos_ in ("VERB", "AUX")]
        if all(t.tag_ == "VBG" for t in verbs):
            return "", "gerund"
        return self._from_verb(doc, 1, root)

    def _from_verb(self, doc: Any, start: int, root: Any) -> tuple[str, str]:
        """The text from its verb on, the verb in the plural; where it begins with another word, or
        the verb is of another tense, the reason."""
        finite = min([root, *(t for t in root.lefts if t.dep_ in _AUXILIARIES)], key=lambda t: t.i)
        first = doc[start] if start < len(doc) else None
        if first is None or finite.tag_ == "VBG":
            return "", "gerund" if finite.tag_ == "VBG" else "no verb"
        if first.i != finite.i or not self._is_present(finite):
            return "", "tense"
        after = doc[finite.i + 1 :]
        if len(after) and after[0].text in _NOT:
            return f"{_plural(finite)}n't {after[1:].text}".strip(_EDGE), ""
        return f"{_plural(finite)}{finite.whitespace_}{after.text}".strip(_EDGE), ""

    def _is_present(self, verb: Any) -> bool:
        """Whether a verb is of the present tense. A tagger takes "born" and much else for one: it
        has to be a form of a verb that there is (WordNet's, by which the parser lemmatises)."""
        if verb.tag_ not in _PRESENT:
            return False
        plain = verb.lower_ if verb.tag_ == "VBP" else verb.lemma_
        return plain in self._verbs or verb.lower_ in _IRREGULAR


def _subject(doc: Any) -> Any:
    """The subject of the main verb, where the sentence begins with it."""
    for root in (t for t in doc if t.dep_ == "ROOT" and t.pos_ in ("VERB", "AUX")):
        for child in root.lefts:
            if child.dep_ in (*_SUBJECTS, "expl") and child.left_edge.i == 0:
                return child
    return None


def _is_adjective(doc: Any) -> bool:
    """Whether a text is an adjective, "dumb" or "fat and lazy", which a parser takes for a verb
    behind "they"."""
    if len(doc) == 1:
        return doc[0].pos_ not in ("VERB", "AUX")
    return bool(doc[0].dep_ == "ROOT" and doc[0].pos_ == "ADJ")


def _plural(verb: Any) -> str:
    """A verb of the present in the plural: "is" becomes "are", "steals" "steal"."""
    return _IRREGULAR.get(verb.text) or str(verb.lemma_ if verb.tag_ == "VBZ" else verb.text)


def _is_group(subject: Any) -> bool:
    """Whether a subject is a group of people: "they", a plural, "the poor", or one person for all
    of them; not what is somebody's ("their eyes")."""
    if any(t.dep_ == "poss" for t in subject.lefts):
        return False
    if subject.tag_ in ("NNS", "NNPS") or subject.lemma_.lower() in _PERSONS:
        return True
    return subject.tag_ in ("JJ", "VBN") and any(t.lower_ == "the" for t in subject.lefts)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {reason: _any_of(words) for reason, words in read_toml(_WORDS).items()}


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Any of these as whole words, in any case; a * stands for any ending."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    each = "|".join(re.escape(word).replace(r"\*", r"\w*") for word in ordered)
    return re.compile(rf"(?<!\w)(?:{each})(?!\w)", re.IGNORECASE)


@cache
def _known_targets() -> tuple[str, ...]:
    """What names a target whoever is probed."""
    identities, words = read_identities("sofa"), read_toml(_TARGETS)
    return tuple(name for names in (*identities.values(), *words.values()) for name in names)


def _forms(targets: Iterable[str]) -> set[str]:
    """A target as a statement may name it: "Asian people" also as "asian" and "asians", "Women" as
    "woman", "gypsy" as "gypsies"."""
    found = set()
    for target in targets:
        plain = target.lower().removesuffix(" people").removesuffix(" folks").strip()
        found |= {target.lower(), plain}
        for one, many in _NUMBERS:
            if plain.endswith(many):
                found.add(plain.removesuffix(many) + one)
            elif plain.endswith(one):
                found.add(plain.removesuffix(one) + many)
    return {form for form in found if len(form) > 2 and form not in _ORDINARY}
