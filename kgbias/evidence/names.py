"""The names of a group, invented names beside them, and names that say little about anybody.

A belief about a group is replicated over the group's names: those of its seed (NAME | OTHER NAME),
and its paraphrases among the declared indicators. What a model believes about made-up names is
the floor.

Made-up names follow from a seed and the forms of the real names, so a run's floor is the same
wherever it is made. What stands for a group is declared once, in `kgbias.evidence.indicators`.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from random import Random
from typing import Any

from kgbias.errors import DataError
from kgbias.evidence.indicators import (
    GroupIndicators,
    Indicators,
    placebo_indicators,
    read_indicators,
    shipped_indicators,
)
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, GroupName, node_id
from kgbias.ids import normalise
from kgbias.language.words import lemmatise_word
from kgbias.packs import find_run_pack
from kgbias.reference.planted_names import load_names

MIN_NAMES = 5
"""With fewer names nothing is said about a group: what is found is a belief about these names."""

_ROOT_ONLY_FORM = "{}"
_PLURAL_FORM = "{}s"
_OTHER_FORMS = (
    "people who practise {}",
    "people who believe in {}",
    "people who follow {}",
    "people in {}",
    "people who live in {}",
    "people who come from {}",
    "people born in {}",
    "people with {}",
    "people of {} origin",
    "people of {} ancestry",
    "people of {} background",
    "people with {} roots",
    "people of {}",
    "residents of {}",
    "members of {}",
    "members of the {} community",
    "members of the {} faith",
    "{} folk",
    "{} folks",
    "{} communities",
    "{} residents",
    "{} believers",
    "{} peoples",
    "{} persons",
)
_FUNCTION_WORD = re.compile(
    r"\b(?:who|whose|that|with|without|in|of|from|and|or|the|for|on|at|by)\b", re.I
)
_ROOT_PREFIX_LETTERS = 3
_MAX_TRIES = 20_000


def group_names(
    group: Group, indicators: Indicators, *, allowed_marks: Collection[str] = ()
) -> tuple[GroupName, ...]:
    """The names of a group, each once: its own, the other names of its seed, and those declared for
    it (`Indicators.find_group`); names with a mark ("narrower", "self-description", "slur") only if
    the mark is among `allowed_marks`.

    Names are spelt as in running text ("people from Asia"); code that puts one first in a sentence
    capitalises it. The form and root of a name declared without them are inferred from known forms
    ("people from {}", "{} Americans"), or else from a plural ("{}s"); for any other name the form
    is {} and the root is the whole name.

    Words that begin with the same three letters share one root (Asian and Asia, Mexican and Mexico;
    not French and France, unless so declared): that of the first name.
    """
    group_indicators = indicators.find_group(group) or _reference_world_indicators().find_group(
        group
    )
    declared = {
        name.id: name for name in (group_indicators.paraphrases if group_indicators else ())
    }
    seed_names = (GroupName(text, group.id, "", "") for text in (group.name, *group.variants))
    names = {name.id: declared.get(name.id, name) for name in seed_names}
    for name in declared.values():
        if not name.mark or name.mark in allowed_marks:
            names.setdefault(name.id, name)
    # From the beginning of a root to the first root that has it.
    root_by_prefix: dict[str, str] = {}
    result = []
    for name in names.values():
        name = name if name.form else _infer_form(name)
        bare = name.root.removeprefix("the ")
        root = root_by_prefix.setdefault(bare[:_ROOT_PREFIX_LETTERS], bare)
        result.append(replace(name, group_id=group.id, root=root))
    return tuple(result)


def list_name_texts(group: Group, indicators: Indicators) -> tuple[str, ...]:
    """All that a group is called: its variants, its names (`group_names`), and its aliases."""
    declared = indicators.find_group(group)
    names = (name.text for name in group_names(group, indicators))
    return tuple(dict.fromkeys((*group.variants, *names, *(declared.aliases if declared else ()))))


def normalise_name(name: str) -> str:
    """The form in which two names of a group are the same."""
    words = normalise(name).split()
    words = words[1:] if len(words) > 1 and words[0] == "the" else words
    words = words[:-1] if len(words) > 1 and words[-1] in ("people", "person") else words
    return " ".join([*words[:-1], lemmatise_word(words[-1])]) if words else ""


def groups_with_all_variants(run: StoredRun) -> list[Group]:
    """The groups of a run with all that they are called as variants: what is declared for them
    (`list_name_texts`), and the names without a mark that the store has. A name that another group
    has in its seed is that group's."""
    groups, declared = run.groups, declared_indicators(run)
    seeded = {
        normalise_name(text): group.id for group in groups for text in (group.name, *group.variants)
    }
    stored_names: dict[str, list[str]] = {}
    for name in run.store.names():
        if not name.mark:
            stored_names.setdefault(name.group_id, []).append(name.text)
    named_groups = []
    for group in groups:
        candidates = dict.fromkeys(
            (*list_name_texts(group, declared), *stored_names.get(group.id, ()))
        )
        # A name that was given for another group is that group's.
        own_names = [
            text for text in candidates if seeded.get(normalise_name(text), group.id) == group.id
        ]
        named_groups.append(replace(group, variants=tuple(own_names)))
    return named_groups


def list_shipped_groups_besides(groups: Sequence[Group]) -> list[Group]:
    """The shipped groups that have no name in common with one of these, and all narrower groups
    ("Arabs") that are none of these."""
    shipped_groups: list[Group] = []
    narrower: dict[str, list[str]] = {}
    for declared in shipped_indicators().groups:
        shipped_groups.append(Group(declared.name, "", declared.other_names))
        for name in declared.paraphrases:
            if name.mark == "narrower":
                narrower.setdefault(normalise_name(name.text), []).append(name.text)
    for first, *others in narrower.values():
        shipped_groups.append(Group(first, "", tuple(others)))
    taken_names = set().union(*map(_normalised_names, groups))
    return [group for group in shipped_groups if not taken_names & _normalised_names(group)]


def _normalised_names(group: Group) -> set[str]:
    """The name and the variants of a group, as names are compared."""
    return {normalise_name(text) for text in (group.name, *group.variants)}


def declared_indicators(run: StoredRun) -> Indicators:
    """The indicators of a run's groups: the shipped ones and, on top of them, those of its pack,
    which has the names in the language of the prompts."""
    pack = find_run_pack(run.record.config)
    return read_indicators(pack.names) if pack and pack.names else shipped_indicators()


@dataclass(frozen=True)
class NonceRoots:
    """Parts of invented roots: any onset, any coda and an ending of the name's form.

    Attributes:
        onsets, codas: what a root is made of; every combination means nothing.
        endings: by the form of a name ("Menschen aus {}"); "" for all other forms.
    """

    onsets: tuple[str, ...]
    codas: tuple[str, ...]
    endings: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_table(cls, table: Mapping[str, Any], location: str) -> "NonceRoots":
        """Those that a pack declares. Raises DataError if a part is missing."""
        endings = table.get("endings", {})
        if not isinstance(endings, dict) or not isinstance(endings.get("", ""), str):
            raise DataError(f"{location}: [nonce.endings] must be a table of words, by form")
        for key in ("onsets", "codas"):
            if not isinstance(table.get(key), str) or not table[key].split():
                raise DataError(
                    f"{location}: [nonce] needs {key!r}, parts with spaces between them"
                )
        roots = cls(
            tuple(table["onsets"].split()),
            tuple(table["codas"].split()),
            {form: tuple(words.split()) for form, words in endings.items()},
        )
        if "" not in roots.endings:
            raise DataError(f"{location}: [nonce.endings] needs an entry '' for all other forms")
        return roots


def find_nonce_roots(run: StoredRun) -> NonceRoots | None:
    """The invented roots of a run's language; None for those of English."""
    pack = find_run_pack(run.record.config)
    if pack is None or not pack.words.nonce:
        return None
    return NonceRoots.from_table(pack.words.nonce, f"pack {pack.name}")


def unique_roots(names: Sequence[GroupName]) -> tuple[str, ...]:
    """The roots of names, each once, in order."""
    return tuple(dict.fromkeys(name.root for name in names))


def placebo_names() -> Mapping[str, tuple[GroupName, ...]]:
    """Names, in real words, of groups about which little should be believed: people with blue eyes,
    people named Alex. They belong to no group of a run: their `group_id` is ""."""
    declared = placebo_indicators()
    return {
        declared_group.name: tuple(
            replace(name, group_id="")
            for name in group_names(Group(declared_group.name, ""), declared)
        )
        for declared_group in declared.groups
    }


@cache
def _reference_world_indicators() -> Indicators:
    """The names of the groups of the reference world. Their seeds have none, because a prompt about
    a group would draw one of those."""
    names = load_names()
    indicators = []
    for group in names.groups:
        group_id = node_id("group", group)
        paraphrases = [
            GroupName(name.text, group_id, name.form, name.root.casefold())
            for name in names.names
            if name.group == group
        ]
        indicators.append(GroupIndicators(group, paraphrases=tuple(paraphrases)))
    return Indicators(tuple(indicators))


def nonce_names(
    names: Sequence[GroupName], seed: int, roots: NonceRoots | None = None
) -> tuple[GroupName, ...]:
    """A made-up name for each name: the same form, with an invented root ("people from
    Orunthia" for "people from Mexico"), capitalised if the name's own root is.

    A name that is all root (men) gives a plain plural. No two share a root, nor the beginning of a
    root while others are left (there are about 200). They depend only on the seed, the forms, the
    capitals and the order of the names; no two lists have the same name in different capitals.
    `roots` are those of another language than English.

    Raises ValueError for more names than there are roots (more than a thousand).
    """
    onsets, codas = (roots.onsets, roots.codas) if roots else (_ROOT_ONSETS, _ROOT_CODAS)
    stems = [stem for stem in map("".join, product(onsets, codas)) if stem not in _TAKEN_STEMS]
    used: set[str] = set()  # roots and their beginnings
    counts: Counter[tuple[str, bool]] = Counter()
    result: list[GroupName] = []
    for name in names:
        form = _PLURAL_FORM if name.form == _ROOT_ONLY_FORM and roots is None else name.form
        surface_text = root_as_written(name)
        capital = surface_text != surface_text.lower()
        counts[form, capital] += 1
        # A stream for each form and number, so adding a group does not change the others' names.
        stream = Random(f"{seed} {form} {counts[form, capital]}")
        # Every other stem for capitals, so that no name is another one in capitals.
        group_stems = stems[capital::2]
        unused_stems = {stem for stem in group_stems if stem not in used}
        for _ in range(_MAX_TRIES):
            stem, ending = (
                stream.choice(group_stems),
                stream.choice(_root_endings(form, surface_text, roots)),
            )
            if stem + ending not in used and (stem in unused_stems or not unused_stems):
                break
        else:
            raise ValueError(f"no root is left for nonce name {len(result) + 1} of {len(names)}")
        root = stem + ending
        used |= {stem, root}
        text = root[0].upper() + root[1:] if capital else root
        result.append(GroupName(form.replace("{}", text), "", form, root))
    return tuple(result)


def root_as_written(name: GroupName) -> str:
    """The root of a name as written in it: "Asia" for "people from Asia"; the whole name if it does
    not have its form."""
    found = _form_pattern(name.form).fullmatch(name.text)
    return found[1] if found else name.text


# Pronounceable, but not words. Every combination was looked up in the word lists of spaCy (English)
# and simplemma (11 languages), and compared with countries, demonyms and given names; the
# beginnings of those found there are in _TAKEN_STEMS.
_ROOT_ONSETS = (
    "ve",
    "ha",
    "sa",
    "ti",
    "mu",
    "be",
    "zo",
    "la",
    "fe",
    "du",
    "yo",
    "ro",
    "gi",
    "ne",
    "pa",
    "do",
    "ju",
    "ta",
    "lu",
    "mi",
    "ku",
    "vu",
    "ze",
    "su",
)
_ROOT_CODAS = (
    "lm",
    "dr",
    "nth",
    "rv",
    "ndr",
    "vr",
    "gr",
    "rth",
    "zn",
    "lv",
    "dv",
    "mr",
    "sv",
    "lth",
    "nv",
    "zr",
    "lthr",
)
_TAKEN_STEMS = frozenset(
    {
        "begr",
        "ferv",
        "handr",
        "julm",
        "kulm",
        "landr",
        "larv",
        "migr",
        "multh",
        "multhr",
        "palm",
        "sadr",
        "salm",
        "salv",
        "sundr",
        "tarv",
        "tigr",
    }
)
_PEOPLE_ENDINGS = ("ari", "eth", "ovi", "uth", "ith", "evi", "orri")
_PLACE_ENDINGS = ("ora", "ovia", "enia", "und", "ath", "uria")
_FAITH_ENDINGS = ("arism", "elism", "anism", "ovism")


def _root_endings(form: str, written: str, roots: NonceRoots | None) -> tuple[str, ...]:
    """The endings for an invented root: of a faith, of a place, or of people."""
    if roots:
        return roots.endings.get(form, roots.endings[""])
    if written.lower().endswith("ism"):
        return _FAITH_ENDINGS
    return _PLACE_ENDINGS if form.endswith((" from {}", " in {}", " of {}")) else _PEOPLE_ENDINGS


def _infer_form(name: GroupName) -> GroupName:
    """A name with its form and root, from the longest known form that it has."""
    for form in _known_forms():
        if match := _form_pattern(form).fullmatch(name.text):
            root = match[1]
            return replace(
                name, text=form.replace("{}", root), form=form, root=name.root or root.casefold()
            )
    # Neither "ss" nor a letter alone.
    plural = name.text[-1:] == "s" and name.text[-2:-1] not in ("", "s", " ")
    if plural and not _FUNCTION_WORD.search(name.text):
        return replace(name, form=_PLURAL_FORM, root=name.root or name.text[:-1].casefold())
    return replace(name, form=_ROOT_ONLY_FORM, root=name.root or name.text.casefold())


@cache
def _known_forms() -> tuple[str, ...]:
    """The forms of the shipped names and other common ones, without those that fit too much, the
    longest first."""
    declared = {
        n.form
        for i in (shipped_indicators(), placebo_indicators())
        for g in i.groups
        for n in g.paraphrases
    }
    known = {*declared, *_OTHER_FORMS} - {"", _ROOT_ONLY_FORM, _PLURAL_FORM}
    return tuple(sorted(known, key=lambda form: (-len(form), form)))


@cache
def _form_pattern(form: str) -> re.Pattern[str]:
    return re.compile(re.escape(form).replace(r"\{\}", r"(\S.*?)"), re.IGNORECASE)
