"""The words that stand for a group.

Indicators are declared sets of words for a group, each with its source: terms (woman, daughter),
given names, and paraphrases (people from Mexico). Paraphrases are names of the group, which
`kgbias.evidence.names` joins with those of its seed. In vectors, a group is the mean of its
indicators. `word_sets/indicators.toml` has the indicators of the published categories and shows
what your own file looks like; what such a file says of attributes, the association tests read.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from kgbias.errors import DataError, no_such
from kgbias.graph.types import Group, GroupName, node_id
from kgbias.io.reading import read_toml

INDICATOR_KINDS = ("terms", "names", "paraphrases")
"""The kinds of indicators. Both groups of a test are represented by the same kind."""
NAME_MARKS = ("narrower", "self-description", "slur")
"""Why a name stands for its group only on request."""
MIN_WORDS = 8
"""With fewer words a set represents its concept poorly (Caliskan et al. 2017)."""
SHIPPED_PATH = "kgbias/evidence/word_sets/indicators.toml"
_PLACEBO_PATH = "kgbias/evidence/word_sets/placebo.toml"
_PARAPHRASE_KIND = "paraphrases"
_BRACED_ROOT = re.compile(r"\{([^{}]+)\}")

_PUBLISHED_FILES = ("caliskan2017.toml", "mind_your_bias2022.toml")
_WORD_SET_ROLES = ("x", "y", "a", "b")  # of the four word sets of an association test


@dataclass(frozen=True, slots=True)
class WordSet:
    """Words for one concept. `slot` names their templates; `adjectives` are forms for LPBS;
    `source` says where the words come from, if the test does not."""

    concept: str
    words: tuple[str, ...]
    slot: str = "word"
    adjectives: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class GroupIndicators:
    """The declarations for one group: its `sets` by kind, in order of preference; `aliases`, what
    else a crawl may call it; `concepts`, the concepts of association tests about it; and
    `paraphrases`, its names, including those with a mark. A name without a declared form has the
    form ""."""

    name: str
    aliases: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    sets: Mapping[str, WordSet] = field(default_factory=dict)
    paraphrases: tuple[GroupName, ...] = ()

    @property
    def other_names(self) -> tuple[str, ...]:
        """What else the group is called: its aliases, and its names without a mark."""
        return (*self.aliases, *(name.text for name in self.paraphrases if not name.mark))


class CategoryIndicators(NamedTuple):
    """The indicators of a category's groups, all of one kind."""

    kind: str
    words_by_group: dict[Group, WordSet]


@dataclass(frozen=True, slots=True)
class Indicators:
    """Declared indicators; `source_file` is the file to extend."""

    groups: tuple[GroupIndicators, ...]
    source_file: str = SHIPPED_PATH

    def find_group(self, group: Group) -> GroupIndicators | None:
        """The declarations for a group, by its name or a variant, ignoring case; the names of
        groups take precedence over what else they are called."""
        name_ids = {node_id("group", name) for name in (group.name, *group.variants)}
        by_name = (g for g in self.groups if node_id("group", g.name) in name_ids)
        by_alias = (
            g for g in self.groups if name_ids & {node_id("group", name) for name in g.other_names}
        )
        return next(chain(by_name, by_alias), None)

    def choose_for_category(
        self, groups: Sequence[Group], kind: str | None = None
    ) -> CategoryIndicators:
        """The indicators of a category's groups, all of one kind so that they can be compared: of
        `kind`, or of the kind that most of them have (in a tie, the one that they declare first).
        Returns the kind ("" if there is none), and the set of each group with at least 8 of it."""
        sets: dict[Group, Mapping[str, WordSet]] = {}
        for group in groups:
            declared = self.find_group(group)
            if declared is not None:
                sets[group] = declared.sets
        usable = [
            each
            for group_sets in sets.values()
            for each, words in group_sets.items()
            if len(words.words) >= MIN_WORDS
        ]
        best_kind = kind or max(dict.fromkeys(usable), key=usable.count, default="")
        return CategoryIndicators(
            best_kind,
            {
                group: group_sets[best_kind]
                for group, group_sets in sets.items()
                if best_kind in group_sets and len(group_sets[best_kind].words) >= MIN_WORDS
            },
        )


@cache
def shipped_indicators() -> Indicators:
    """The indicators that come with kgbias."""
    return _parse_indicators(_read_shipped("indicators.toml"), SHIPPED_PATH)


def read_indicators(path: Path | None = None) -> Indicators:
    """The shipped indicators with those of a file on top: a group in the file replaces the
    shipped one. Raises DataError in one line."""
    base = shipped_indicators()
    if path is None:
        return base
    file_indicators = _parse_indicators(read_toml(path), str(path))
    replaced_ids = {node_id("group", group.name) for group in file_indicators.groups}
    shipped_groups = tuple(
        group for group in base.groups if node_id("group", group.name) not in replaced_ids
    )
    return Indicators((*file_indicators.groups, *shipped_groups), file_indicators.source_file)


@cache
def placebo_indicators() -> Indicators:
    """Groups in real words about which a model should believe little: people with blue eyes, people
    named Alex. Their names are paraphrases, like those of other groups."""
    return _parse_indicators(_read_shipped("placebo.toml"), _PLACEBO_PATH)


@cache
def _given_names() -> Mapping[str, tuple[str, ...]]:
    """Given names by origin, women's and men's."""
    return {
        origin: tuple(dict.fromkeys(chain(*by_gender.values())))
        for origin, by_gender in _read_shipped("given_names.toml").items()
    }


@cache
def published_test_tables() -> dict[str, Mapping[str, Any]]:
    """The published association tests, as their files have them, by the name of the file. Their
    word sets stand for groups too."""
    return {name: _read_shipped(name) for name in _PUBLISHED_FILES}


def _read_shipped(name: str) -> dict[str, Any]:
    return tomllib.loads((files("kgbias.evidence") / "word_sets" / name).read_text("utf-8"))


def _parse_indicators(content: Mapping[str, Any], location: str) -> Indicators:
    source = content.get("source", "")
    patterns = check_tables(content.get("pattern", {}), f"{location}, pattern")
    rows = content.get("group", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{location}: groups must be [[group]] tables")
    # The pairs of attributes are read by the association tests.
    unknown = content.keys() - {"source", "pattern", "group", "attributes"}
    if unknown or not (rows or content.get("attributes")):
        problem = f"no {min(unknown)!r}" if unknown else "at least one of them"
        raise DataError(f"{location} takes [[group]] and [attributes.NAME]: {problem}")
    return Indicators(
        tuple(_parse_group(row, patterns, source, location) for row in rows), location
    )


def _parse_group(
    row: Mapping[str, Any], patterns: Mapping[str, Any], source: str, file_location: str
) -> GroupIndicators:
    if not isinstance(name := row.get("name"), str) or not name.strip():
        raise DataError(f"{file_location}: every [[group]] needs a name")
    location = f"{file_location}, group {name!r}"
    known_entries = {"name", "aliases", "concepts", "forms", *INDICATOR_KINDS}
    if unknown := row.keys() - known_entries:
        raise DataError(f"{location}: {no_such('entry', min(unknown), sorted(known_entries))}")
    sets: dict[str, WordSet] = {}
    paraphrases: tuple[GroupName, ...] = ()
    for kind, table in row.items():
        if kind not in INDICATOR_KINDS:
            continue
        if not isinstance(table, dict):
            raise DataError(f"{location}: {kind} must be a table [group.{kind}]")
        table, table_location = _apply_pattern(
            kind, table, row.get("forms", {}), patterns, location
        )
        if kind == _PARAPHRASE_KIND:
            paraphrases = _parse_paraphrases(table, node_id("group", name), table_location)
            words = tuple(p.text for p in paraphrases if not p.mark)
        else:
            words = _resolve_words(table, table_location)
        sets[kind] = _build_set(name, kind, words, table, source, table_location)
    aliases, concepts = (
        parse_words(row[key], f"{location}, {key}") if row.get(key) else ()
        for key in ("aliases", "concepts")
    )
    return GroupIndicators(name, aliases, concepts, sets, paraphrases)


class _PatternTable(NamedTuple):
    """A table with the wordings of its pattern, and how an error names it."""

    table: Mapping[str, Any]
    location: str


def _apply_pattern(
    kind: str,
    table: Mapping[str, Any],
    forms: Mapping[str, Any],
    patterns: Mapping[str, Any],
    location: str,
) -> _PatternTable:
    """A table with the wordings of its pattern, if it names one, as its first `words`; and how an
    error names the table."""
    location = f"{location}, {kind}"
    if "pattern" not in table:
        return _PatternTable(table, location)
    pattern = patterns.get(str(table["pattern"]))
    if pattern is None or kind not in pattern:
        raise DataError(f"{location}: no pattern {table['pattern']!r} of {kind}")
    if not isinstance(wordings := pattern[kind], list) or not wordings:
        raise DataError(f"{location}: the pattern's {kind} must be a list of wordings")
    if not isinstance(forms, dict):
        raise DataError(f"{location}: forms must be a table")
    if not isinstance(extra_words := table.get("words", []), list):
        raise DataError(f"{location}, words must be a list of words")
    filled = [_fill_wording(wording, kind, forms, location) for wording in wordings]
    return _PatternTable(pattern | table | {"words": [*filled, *extra_words]}, location)


def _fill_wording(wording: Any, kind: str, forms: Mapping[str, Any], location: str) -> str:
    """A wording filled with a group's forms; of several wordings, the first that they can fill. In
    paraphrases, the filled-in part is the root."""
    missing_form: Exception | None = None
    # Filled in, this leaves the form in braces ("{Elven} people"), from which `_parse_paraphrase`
    # reads the root.
    root = "{{{}}}" if kind == _PARAPHRASE_KIND else "{}"
    marked_forms = {name: root.format(form) for name, form in forms.items()}
    for candidate in parse_words(
        [wording] if isinstance(wording, str) else wording, f"{location}, wordings"
    ):
        try:
            return candidate.format_map(marked_forms)
        # What `format_map` raises for a form that is missing, and for wordings that are no
        # templates.
        except (KeyError, ValueError, IndexError, AttributeError) as error:
            missing_form = error
    raise DataError(f"{location}: the pattern needs the form {missing_form}") from missing_form


def _resolve_words(table: Mapping[str, Any], location: str) -> tuple[str, ...]:
    """Words from the source that a table gives: a list, origins of names, or a test's concepts."""
    if "origins" in table:
        names = _given_names()
        origins = parse_words(table["origins"], f"{location}, origins")
        if unknown_origins := [origin for origin in origins if origin not in names]:
            raise DataError(f"{location}: {no_such('origin', unknown_origins[0], names)}")
        return tuple(chain(*(names[origin] for origin in origins)))
    if "concept_words" in table:
        concepts = parse_words(table["concept_words"], f"{location}, concept_words")
        tables = [
            test[role]
            for content in published_test_tables().values()
            for test in content["test"]
            for role in _WORD_SET_ROLES
        ]
        words = tuple(chain(*(t["words"] for t in tables if t["concept"] in concepts)))
        if not words:
            raise DataError(f"{location}: no published test has the concept {concepts[0]!r}")
        return words
    return parse_words(table.get("words"), f"{location}, words")


def _build_set(
    group: str,
    kind: str,
    words: Sequence[str],
    table: Mapping[str, Any],
    source: str,
    location: str,
) -> WordSet:
    if not (source := str(table.get("source", source))):
        raise DataError(f"{location} needs a source: where its words come from")
    slot = str(table.get("slot", "word"))
    return WordSet(group, tuple(dict.fromkeys(words)), slot, source=f"{kind}: {source}")


def _parse_paraphrases(
    table: Mapping[str, Any], group: str, location: str
) -> tuple[GroupName, ...]:
    """The names of a group, each once: `words`, and those with a mark."""
    if "origins" in table or "concept_words" in table:
        return tuple(GroupName(text, group, "", "") for text in _resolve_words(table, location))
    one_root_names = table.get("one_root")
    shared_root = (
        [w.casefold() for w in parse_words(one_root_names, f"{location}, one_root")]
        if one_root_names
        else []
    )
    names_by_id: dict[str, GroupName] = {}
    # Each mark is also the key of the list of names that have it.
    for key, mark in (("words", ""), *zip(NAME_MARKS, NAME_MARKS, strict=True)):
        rows = table.get(key) if key == "words" else table.get(key, [])
        if not isinstance(rows, list) or (key == "words" and not rows):
            raise DataError(f"{location}, {key} must be a list of words")
        for row in rows:
            name = _parse_paraphrase(row, group, mark, f"{location}, {key}")
            if name.root in shared_root:
                name = replace(name, root=shared_root[0])
            names_by_id.setdefault(name.id, name)
    return tuple(names_by_id.values())


def _parse_paraphrase(row: Any, group: str, mark: str, location: str) -> GroupName:
    """A name from "{Elven} people", with its root in braces; "elves"; or a table of its parts."""
    fields = row if isinstance(row, dict) else {"name": row}
    if unknown := fields.keys() - {"name", "form", "root", "mark"}:
        raise DataError(f"{location}: no {min(unknown)!r}; a name takes name, form, root and mark")
    (text,) = parse_words([fields.get("name")], location)
    values = {key: str(fields.get(key, "")).strip() for key in ("form", "root", "mark")}
    if values["mark"] and values["mark"] not in NAME_MARKS:
        raise DataError(f"{location}: {no_such('mark', values['mark'], NAME_MARKS)}")
    roots = _BRACED_ROOT.findall(text)
    form = values["form"] or (_BRACED_ROOT.sub("{}", text) if len(roots) == 1 else "")
    if form and form.count("{}") != 1:
        raise DataError(f"{location}: the form {form!r} needs one {{}} for the root")
    text = _BRACED_ROOT.sub(r"\1", text)
    before, _, after = form.partition("{}")
    fits = len(text) > len(before + after) and text.startswith(before) and text.endswith(after)
    if form and not fits:
        raise DataError(f"{location}: {text!r} is not of the form {form!r}")
    root = values["root"] or (text[len(before) : len(text) - len(after)] if form else "")
    return GroupName(text, group, form, root.casefold(), values["mark"] or mark)


def check_tables(value: Any, location: str) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, dict) or not all(isinstance(part, dict) for part in value.values()):
        raise DataError(f"{location} must be tables")
    return value


def parse_words(value: Any, location: str) -> tuple[str, ...]:
    """The words in a list, without repetitions, in order. Raises DataError for anything else."""
    if (
        not isinstance(value, Sequence)
        or isinstance(value, str)
        or not value
        or not all(isinstance(word, str) and word.strip() for word in value)
    ):
        raise DataError(f"{location} must be a list of words")
    return tuple(dict.fromkeys(word.strip() for word in value))
