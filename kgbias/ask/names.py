"""Which groups of a run a question names, and what else it is about."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgbias.graph.types import Group
from kgbias.words import ASIDE, ORDINARY, PERSONS, words

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_PEOPLE = re.compile(r"\s+people$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it is read: the groups that it names, each with the words that named it, and
    the words that say what else it is about, in order."""

    text: str
    groups: Mapping[str, str]  # group id -> as the question says it
    topic: tuple[str, ...]


def read_question(text: str, groups: Sequence[Group]) -> Question:
    """What a question asks of these groups.

    A group is found in any case, by its name or another of its names, in the singular too, and
    where its name ends in "people" also without it ("Nigerians", "Nigerian culture"). Of names
    that overlap, the longest is meant.
    """
    found: dict[str, str] = {}
    left = text
    spans = sorted(_spans(text, groups), key=lambda s: (s[0] - s[1], s[0]))  # the longest first
    taken: list[tuple[int, int]] = []
    for start, end, group in spans:
        if any(start < stop and begin < end for begin, stop in taken):
            if any((start, end) == span for span in taken):
                found.setdefault(group, text[start:end])
            continue
        taken.append((start, end))
        found.setdefault(group, text[start:end])
    for start, end in taken:
        left = left[:start] + " " * (end - start) + left[end:]
    order = {g.id: n for n, g in enumerate(groups)}
    named = {id: found[id] for id in sorted(found, key=lambda id: order[id])}
    return Question(text, named, tuple(topic_words(left)))


def topic_words(text: str) -> list[str]:
    """The words of a text that say what it is about, each once."""
    return list(dict.fromkeys(word for word in words(text) if word not in ASIDE))


def _spans(text: str, groups: Iterable[Group]) -> Iterator[tuple[int, int, str]]:
    """Where a group is named: start, end and id."""
    for group in groups:
        for name in (group.name, *group.variants):
            for form in _forms(name):
                for match in _pattern(form).finditer(text):
                    yield match.start(), match.end(), group.id
            bare = _PEOPLE.sub("", name)
            if bare != name:
                for match in _pattern(bare).finditer(text):
                    if _names_people(text, match):
                        yield match.start(), match.end(), group.id


def _forms(name: str) -> set[str]:
    """A name in the plural and in the singular."""
    forms = {name}
    head, space, last = name.rpartition(" ")
    low = last.lower()
    if low in ("men", "women"):
        forms.add(f"{head}{space}{last[:-2]}an")
    elif low == "people":
        forms |= {f"{head}{space}person", f"{head}s"} if head else set()
    elif low.endswith("s") and len(last) > 3:
        forms.add(name[:-1])
    return forms


def _names_people(text: str, match: re.Match[str]) -> bool:
    """Whether the name of a group without its "people" means the group here. A word that is said of
    things as well does where a person follows, or where it has a capital letter in a sentence."""
    if match[0].lower() not in ORDINARY:
        return True
    after = _WORD.match(text, match.end() + 1)
    if after is not None and after[0].lower() in PERSONS:
        return True
    return match[0][:1].isupper() and bool(text[: match.start()].strip())


def _pattern(form: str) -> re.Pattern[str]:
    spaced = r"[\s-]+".join(re.escape(part) for part in re.split(r"[\s-]+", form) if part)
    return re.compile(rf"(?<![\w-]){spaced}(?![\w-])", re.IGNORECASE)
