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

from kgbias.reading import read_toml

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
_WORDS = Path(__file__).parent.parent / "data" / "sofa_rules.toml"
_SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass")
_AUXILIARIES = ("aux", "auxpass")
_PRESENT = ("VBP", "VBZ")
_PERSONS = frozenset("person people man woman men women boy girl guy folk they".split())
_EDGE = " \t\"'“”‘’.,;:!?*-()[]"
_IRREGULAR = {"is": "are", "'s": "are", "’s": "are", "has": "have", "does": "do"}


@dataclass(frozen=True, slots=True)
class Ruled:
    """A stereotype as the rules left it: the statement, or "" with the `reason` (`REASONS`)."""

    source: str
    statement: str
    reason: str = ""


class Rules:
    """The rules, for targets of which no statement may name one.

    Args:
        parser: spaCy's English model with its parser (`kgbias.models.english.load`).
        targets: the groups that statements will follow.
    """

    def __init__(self, parser: Any, targets: Iterable[str]) -> None:
        self._parser = parser
        self._targets = _any_of(_forms(targets))

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
        lone = len(own) == 1 and own[0].pos_ not in ("VERB", "AUX")  # "dumb" behind "they"
        if with_subject is None and (lone or not verbs):
            return "", "no verb"
        rest, reason = _after(own, with_subject) if with_subject else _said(after)
        if not reason and self._targets.search(rest):
            reason = "target"
        return ("" if reason else rest), reason


def _subject(doc: Any) -> Any:
    """The subject of the main verb, where the sentence begins with it."""
    for root in (t for t in doc if t.dep_ == "ROOT" and t.pos_ in ("VERB", "AUX")):
        for child in root.lefts:
            if child.dep_ in (*_SUBJECTS, "expl") and child.left_edge.i == 0:
                return child
    return None


def _after(doc: Any, subject: Any) -> tuple[str, str]:
    """What is said of a subject that the sentence has itself."""
    if subject.dep_ == "expl" or not _is_group(subject):
        return "", "no subject"
    return _from_verb(doc, subject.right_edge.i + 1, subject.head)


def _said(doc: Any) -> tuple[str, str]:
    """What is said of them, in a sentence that begins with "they"."""
    root = next((t for t in doc if t.dep_ == "ROOT"), doc[0])
    verbs = [t for t in doc[1:] if t.pos_ in ("VERB", "AUX")]
    if all(t.tag_ == "VBG" for t in verbs):
        return "", "gerund"
    return _from_verb(doc, 1, root)


def _from_verb(doc: Any, start: int, root: Any) -> tuple[str, str]:
    """The text from its verb on, the verb in the plural; where it begins with another word, or the
    verb is of another tense, the reason."""
    finite = min([root, *(t for t in root.lefts if t.dep_ in _AUXILIARIES)], key=lambda t: t.i)
    first = doc[start] if start < len(doc) else None
    if first is None or finite.tag_ == "VBG":
        return "", "gerund" if finite.tag_ == "VBG" else "no verb"
    if first.i != finite.i or finite.tag_ not in _PRESENT:
        return "", "tense"
    rest = doc[finite.i + 1 :].text
    spaced = rest if rest[:3] in ("n't", "n’t") else f" {rest}"
    return (_plural(finite) + spaced).strip(_EDGE), ""


def _plural(verb: Any) -> str:
    """A verb of the present in the plural: "is" becomes "are", "steals" "steal"."""
    word = verb.text
    if verb.tag_ != "VBZ":
        return "are" if word in ("am", "'re", "’re") else str(word)
    return _IRREGULAR.get(word) or str(verb.lemma_)


def _is_group(subject: Any) -> bool:
    """Whether a subject is a group of people: "they", a plural, "the poor", or one person for all
    of them."""
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


def _forms(targets: Iterable[str]) -> set[str]:
    """A group as a statement may name it: "Asian people" also as "asian" and "asians", "Women" as
    "woman"."""
    found = set()
    for target in targets:
        plain = target.lower().removesuffix(" people").removesuffix(" folks").strip()
        found |= {target.lower(), plain}
        if plain.endswith("men"):
            found.add(plain.removesuffix("men") + "man")
        else:
            found.add(plain.removesuffix("s") if plain.endswith("s") else plain + "s")
    return {form for form in found if len(form) > 2}
