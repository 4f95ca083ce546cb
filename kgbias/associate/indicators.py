"""The words that stand for a group in association tests, and the attributes it is tested against.

A group's name alone is one word, whose effect size says nothing: with one word per side, d is
always 1.4142 or -1.4142. Indicators are declared sets of words, each with its source: terms (woman,
daughter), given names, and paraphrases (people from Mexico). Paraphrases are names of the group,
which `kgbias.evidence.names` joins with those of its seed. `wordsets/indicators.toml` has the
indicators of the published categories and shows what your own file looks like;
`wordsets/attributes.toml` has the pairs of attribute sets.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from kgbias.associate.sets import MIN_WORDS, WordSet, find_tests, parse_words, published_tests
from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.types import Group, GroupName, node_id
from kgbias.io.reading import read_toml

INDICATOR_KINDS = ("terms", "names", "paraphrases")
"""The kinds of indicators. Both groups of a test are represented by the same kind."""
NAME_MARKS = ("narrower", "self-description", "slur")
"""Why a name stands for its group only on request."""
PLEASANT = "pleasant"
SHIPPED_PATH = "kgbias/associate/wordsets/indicators.toml"
_PLACEBO_PATH = "kgbias/associate/wordsets/placebo.toml"
_NAME_KIND = "paraphrases"
_ROOT = re.compile(r"\{([^{}]+)\}")

SetPair = tuple[WordSet, WordSet]


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

    @property
    def all_names(self) -> tuple[str, ...]:
        return (self.name, *self.other_names)


@dataclass(frozen=True, slots=True)
class Indicators:
    """Declared indicators and pairs of attribute sets; `source_file` is the file to extend."""

    groups: tuple[GroupIndicators, ...]
    attributes: Mapping[str, SetPair]
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

    def names_for_concept(self, concept: str) -> tuple[str, ...]:
        """The names of the groups that a concept of an association test is about: for "European
        American male names", white people, men, and white men."""
        return tuple(
            name for group in self.groups if concept in group.concepts for name in group.all_names
        )

    def choose_for_category(
        self, groups: Sequence[Group], kind: str | None = None
    ) -> tuple[str, dict[Group, WordSet]]:
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
        return best_kind, {
            group: group_sets[best_kind]
            for group, group_sets in sets.items()
            if best_kind in group_sets and len(group_sets[best_kind].words) >= MIN_WORDS
        }

    def target_sets(self, x: Group, y: Group, kind: str | None = None) -> SetPair:
        """The sets of two groups: of `kind`, or of the first kind, in the order in which the first
        group declares them, with at least 8 for each. Words that both have are left out.

        Raises UsageError, in one line that names the file to extend, if there is no such kind.
        """
        if kind is not None and kind not in INDICATOR_KINDS:
            raise UsageError(no_such("kind of indicators", kind, INDICATOR_KINDS))
        declared = [self.find_group(group) for group in (x, y)]
        kinds: tuple[str, ...] = (kind,) if kind else ()
        if not kind and declared[0]:
            kinds = tuple(declared[0].sets)
        word_counts = {x.name: 0, y.name: 0}
        for kind_tried in kinds:
            sets = [g.sets.get(kind_tried) if g else None for g in declared]
            shared_words = set(sets[0].words if sets[0] else ()) & set(
                sets[1].words if sets[1] else ()
            )
            own_words = [
                tuple(w for w in (s.words if s else ()) if w not in shared_words) for s in sets
            ]
            if min(map(len, own_words)) >= MIN_WORDS and sets[0] and sets[1]:
                return (
                    replace(sets[0], concept=x.name, words=own_words[0]),
                    replace(sets[1], concept=y.name, words=own_words[1]),
                )
            word_counts = {
                g.name: max(word_counts[g.name], len(w))
                for g, w in zip((x, y), own_words, strict=True)
            }
        if not kinds and declared[1]:
            word_counts[y.name] = max(
                map(len, (s.words for s in declared[1].sets.values())), default=0
            )
        short = min(word_counts, key=lambda name: word_counts[name])
        raise self.too_few_error(short, word_counts[short], kind)

    def too_few_error(self, group: str, count: int, kind: str | None = None) -> UsageError:
        """The error for a test with fewer than 8 words per side."""
        file_to_extend = (
            self.source_file if self.source_file != SHIPPED_PATH else "a file of your own"
        )
        return UsageError(
            f"{group} has {count} {kind or 'indicators'} to test, and a test needs {MIN_WORDS} "
            f"per side: "
            f"declare them in {file_to_extend} (`indicators`; its form is that of {SHIPPED_PATH})"
        )

    def attribute_pair(self, name: str) -> SetPair:
        """The attribute sets with this name. Raises UsageError for an unknown name."""
        if name not in self.attributes:
            raise UsageError(no_such("attribute sets", name, (*self.attributes, "regard")))
        return self.attributes[name]


@cache
def shipped_indicators() -> Indicators:
    """The indicators and attributes that come with kgbias."""
    folder = files("kgbias.associate") / "wordsets"
    content: dict[str, Any] = {}
    for name in ("indicators.toml", "attributes.toml"):
        content |= tomllib.loads((folder / name).read_text("utf-8"))
    return _parse_indicators(content, SHIPPED_PATH, {})


def read_indicators(path: Path | None = None) -> Indicators:
    """The shipped indicators with those of a file on top: a group or pair in the file replaces the
    shipped one. Raises DataError in one line."""
    base = shipped_indicators()
    if path is None:
        return base
    file_indicators = _parse_indicators(read_toml(path), str(path), base.attributes)
    replaced_ids = {node_id("group", group.name) for group in file_indicators.groups}
    shipped_groups = tuple(
        group for group in base.groups if node_id("group", group.name) not in replaced_ids
    )
    return Indicators(
        (*file_indicators.groups, *shipped_groups),
        file_indicators.attributes,
        file_indicators.source_file,
    )


@cache
def placebo_indicators() -> Indicators:
    """Groups in real words about which a model should believe little: people with blue eyes, people
    named Alex. Their names are paraphrases, like those of other groups."""
    text = (files("kgbias.associate") / "wordsets" / "placebo.toml").read_text("utf-8")
    return _parse_indicators(tomllib.loads(text), _PLACEBO_PATH, {})


@cache
def _given_names() -> Mapping[str, tuple[str, ...]]:
    """Given names by origin, women's and men's."""
    text = (files("kgbias.associate") / "wordsets" / "given_names.toml").read_text("utf-8")
    return {
        origin: tuple(dict.fromkeys(chain(*by_gender.values())))
        for origin, by_gender in tomllib.loads(text).items()
    }


def _parse_indicators(
    content: Mapping[str, Any], location: str, shipped_pairs: Mapping[str, SetPair]
) -> Indicators:
    source = content.get("source", "")
    patterns = _check_tables(content.get("pattern", {}), f"{location}, pattern")
    rows = content.get("group", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{location}: groups must be [[group]] tables")
    pairs = dict(shipped_pairs)
    for name, table in _check_tables(
        content.get("attributes", {}), f"{location}, attributes"
    ).items():
        pairs[name] = _parse_pair(table, f"{location}, attributes {name!r}", source)
    unknown = content.keys() - {"source", "pattern", "group", "attributes"}
    if unknown or not (rows or pairs != shipped_pairs):
        problem = f"no {min(unknown)!r}" if unknown else "at least one of them"
        raise DataError(f"{location} takes [[group]] and [attributes.NAME]: {problem}")
    return Indicators(
        tuple(_parse_group(row, patterns, source, location) for row in rows), pairs, location
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
        if kind == _NAME_KIND:
            paraphrases = _parse_paraphrases(table, node_id("group", name), table_location)
            words = tuple(p.text for p in paraphrases if not p.mark)
        else:
            words = _parse_words(table, table_location)
        sets[kind] = _build_set(name, kind, words, table, source, table_location)
    aliases, concepts = (
        parse_words(row[key], f"{location}, {key}") if row.get(key) else ()
        for key in ("aliases", "concepts")
    )
    return GroupIndicators(name, aliases, concepts, sets, paraphrases)


def _apply_pattern(
    kind: str,
    table: Mapping[str, Any],
    forms: Mapping[str, Any],
    patterns: Mapping[str, Any],
    location: str,
) -> tuple[Mapping[str, Any], str]:
    """A table with the wordings of its pattern, if it names one, as its first `words`; and how an
    error names the table."""
    location = f"{location}, {kind}"
    if "pattern" not in table:
        return table, location
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
    return pattern | table | {"words": [*filled, *extra_words]}, location


def _fill_wording(wording: Any, kind: str, forms: Mapping[str, Any], location: str) -> str:
    """A wording filled with a group's forms; of several wordings, the first that they can fill. In
    paraphrases, the filled-in part is the root."""
    missing_form: Exception | None = None
    # Filled in, this leaves the form in braces ("{Elven} people"), from which `_parse_paraphrase`
    # reads the root.
    root = "{{{}}}" if kind == _NAME_KIND else "{}"
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


def _parse_words(table: Mapping[str, Any], location: str) -> tuple[str, ...]:
    """Words from the source that a table gives: a list, origins of names, or a test's concepts."""
    if "origins" in table:
        names = _given_names()
        origins = parse_words(table["origins"], f"{location}, origins")
        if unknown_origins := [origin for origin in origins if origin not in names]:
            raise DataError(f"{location}: {no_such('origin', unknown_origins[0], names)}")
        return tuple(chain(*(names[origin] for origin in origins)))
    if "concept_words" in table:
        concepts = parse_words(table["concept_words"], f"{location}, concept_words")
        sets = [s for test in published_tests().values() for s in test.sets.values()]
        words = tuple(chain(*(s.words for s in sets if s.concept in concepts)))
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
        return tuple(GroupName(text, group, "", "") for text in _parse_words(table, location))
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
    roots = _ROOT.findall(text)
    form = values["form"] or (_ROOT.sub("{}", text) if len(roots) == 1 else "")
    if form and form.count("{}") != 1:
        raise DataError(f"{location}: the form {form!r} needs one {{}} for the root")
    text = _ROOT.sub(r"\1", text)
    before, _, after = form.partition("{}")
    fits = len(text) > len(before + after) and text.startswith(before) and text.endswith(after)
    if form and not fits:
        raise DataError(f"{location}: {text!r} is not of the form {form!r}")
    root = values["root"] or (text[len(before) : len(text) - len(after)] if form else "")
    return GroupName(text, group, form, root.casefold(), values["mark"] or mark)


def _parse_pair(table: Mapping[str, Any], location: str, source: str) -> SetPair:
    if "test" in table:
        (test,) = find_tests([str(table["test"])])
        sides = parse_words(table.get("sides", ["a", "b"]), f"{location}, sides")
        if len(sides) != 2 or not set(sides) <= test.sets.keys():
            raise DataError(f"{location}: sides must be two of x, y, a and b")
        first_set, second_set = (replace(test.sets[side], source=test.source) for side in sides)
        return first_set, second_set
    if not (source := str(table.get("source", source))):
        raise DataError(f"{location} needs a source: where its words come from")
    word_sets = []
    for side in "ab":
        side_table = table.get(side)
        if not isinstance(side_table, dict):
            raise DataError(f"{location} needs a table for {side}")
        words = parse_words(side_table.get("words"), f"{location}, {side}.words")
        concept, slot = str(side_table.get("concept", side)), str(side_table.get("slot", "word"))
        word_sets.append(WordSet(concept, words, slot, source=source))
    return word_sets[0], word_sets[1]


def _check_tables(value: Any, location: str) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, dict) or not all(isinstance(part, dict) for part in value.values()):
        raise DataError(f"{location} must be tables")
    return value


def check_attributes(pair: Sequence[WordSet], remedy: str) -> None:
    """Raise UsageError where an attribute set has fewer than 8 words."""
    for words in pair:
        if len(words.words) < MIN_WORDS:
            raise UsageError(
                f"{words.concept} has {len(words.words)} words, and a test needs {MIN_WORDS} per "
                f"side: {remedy}"
            )
