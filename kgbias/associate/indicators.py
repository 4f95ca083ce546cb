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

from kgbias.associate.sets import FEW, WordSet, find_tests, published, words_of
from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.types import Group, GroupName, node_id
from kgbias.io.reading import read_toml

KINDS = ("terms", "names", "paraphrases")
"""The kinds of indicators. Both groups of a test are represented by the same kind."""
MARKS = ("narrower", "self-description", "slur")
"""Why a name stands for its group only on request."""
PLEASANT = "pleasant"
SHIPPED = "kgbias/associate/wordsets/indicators.toml"
_PLACEBO = "kgbias/associate/wordsets/placebo.toml"
_NAMES = "paraphrases"
_ROOT = re.compile(r"\{([^{}]+)\}")

Pair = tuple[WordSet, WordSet]


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
    def others(self) -> tuple[str, ...]:
        """What else the group is called: its aliases, and its names without a mark."""
        return (*self.aliases, *(name.text for name in self.paraphrases if not name.mark))

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.others)


@dataclass(frozen=True, slots=True)
class Indicators:
    """Declared indicators and pairs of attribute sets; `where` is the file to extend."""

    groups: tuple[GroupIndicators, ...]
    attributes: Mapping[str, Pair]
    where: str = SHIPPED

    def of(self, group: Group) -> GroupIndicators | None:
        """The declarations for a group, by its name or a variant, ignoring case; the names of
        groups take precedence over what else they are called."""
        wanted = {node_id("group", name) for name in (group.name, *group.variants)}
        by_name = (g for g in self.groups if node_id("group", g.name) in wanted)
        by_alias = (
            g for g in self.groups if wanted & {node_id("group", name) for name in g.others}
        )
        return next(chain(by_name, by_alias), None)

    def named_by(self, concept: str) -> tuple[str, ...]:
        """The names of the groups that a concept of an association test is about: for "European
        American male names", white people, men, and white men."""
        return tuple(
            name for group in self.groups if concept in group.concepts for name in group.names
        )

    def of_category(
        self, groups: Sequence[Group], kind: str | None = None
    ) -> tuple[str, dict[Group, WordSet]]:
        """The indicators of a category's groups, all of one kind so that they can be compared: of
        `kind`, or of the kind that most of them have (in a tie, the one that they declare first).
        Returns the kind ("" if there is none), and the set of each group with at least 8 of it."""
        sets = {group: found.sets for group in groups if (found := self.of(group))}
        usable = [
            each for own in sets.values() for each, words in own.items() if len(words.words) >= FEW
        ]
        best = kind or max(dict.fromkeys(usable), key=usable.count, default="")
        return best, {
            group: own[best]
            for group, own in sets.items()
            if best in own and len(own[best].words) >= FEW
        }

    def targets(self, x: Group, y: Group, kind: str | None = None) -> Pair:
        """The sets of two groups: of `kind`, or of the first kind, in the order in which the first
        group declares them, with at least 8 for each. Words that both have are left out.

        Raises UsageError, in one line that names the file to extend, if there is no such kind.
        """
        if kind is not None and kind not in KINDS:
            raise UsageError(no_such("kind of indicators", kind, KINDS))
        found = [self.of(group) for group in (x, y)]
        kinds = (kind,) if kind else tuple(found[0].sets) if found[0] else ()
        most = {x.name: 0, y.name: 0}
        for each in kinds:
            sets = [g.sets.get(each) if g else None for g in found]
            both = set(sets[0].words if sets[0] else ()) & set(sets[1].words if sets[1] else ())
            own = [tuple(w for w in (s.words if s else ()) if w not in both) for s in sets]
            if min(map(len, own)) >= FEW and sets[0] and sets[1]:
                return (
                    replace(sets[0], concept=x.name, words=own[0]),
                    replace(sets[1], concept=y.name, words=own[1]),
                )
            most = {g.name: max(most[g.name], len(w)) for g, w in zip((x, y), own, strict=True)}
        if not kinds and found[1]:
            most[y.name] = max(map(len, (s.words for s in found[1].sets.values())), default=0)
        short = min(most, key=lambda name: most[name])
        raise self.too_few(short, most[short], kind)

    def too_few(self, group: str, count: int, kind: str | None = None) -> UsageError:
        """The error for a test with fewer than 8 words per side."""
        own = self.where if self.where != SHIPPED else "a file of your own"
        return UsageError(
            f"{group} has {count} {kind or 'indicators'} to test, and a test needs {FEW} per side: "
            f"declare them in {own} (`indicators`; its form is that of {SHIPPED})"
        )

    def pair(self, name: str) -> Pair:
        """The attribute sets with this name. Raises UsageError for an unknown name."""
        if name not in self.attributes:
            raise UsageError(no_such("attribute sets", name, (*self.attributes, "regard")))
        return self.attributes[name]


@cache
def shipped() -> Indicators:
    """The indicators and attributes that come with kgbias."""
    folder = files("kgbias.associate") / "wordsets"
    content: dict[str, Any] = {}
    for name in ("indicators.toml", "attributes.toml"):
        content |= tomllib.loads((folder / name).read_text("utf-8"))
    return _parse(content, SHIPPED, {})


def read_indicators(path: Path | None = None) -> Indicators:
    """The shipped indicators with those of a file on top: a group or pair in the file replaces the
    shipped one. Raises DataError in one line."""
    base = shipped()
    if path is None:
        return base
    own = _parse(read_toml(path), str(path), base.attributes)
    theirs = {node_id("group", group.name) for group in own.groups}
    rest = tuple(group for group in base.groups if node_id("group", group.name) not in theirs)
    return Indicators((*own.groups, *rest), own.attributes, own.where)


@cache
def placebo() -> Indicators:
    """Groups in real words about which a model should believe little: people with blue eyes, people
    named Alex. Their names are paraphrases, like those of other groups."""
    text = (files("kgbias.associate") / "wordsets" / "placebo.toml").read_text("utf-8")
    return _parse(tomllib.loads(text), _PLACEBO, {})


@cache
def _given_names() -> Mapping[str, tuple[str, ...]]:
    """Given names by origin, women's and men's."""
    text = (files("kgbias.associate") / "wordsets" / "given_names.toml").read_text("utf-8")
    return {
        origin: tuple(dict.fromkeys(chain(*by_gender.values())))
        for origin, by_gender in tomllib.loads(text).items()
    }


def _parse(content: Mapping[str, Any], where: str, known: Mapping[str, Pair]) -> Indicators:
    source = content.get("source", "")
    patterns = _tables(content.get("pattern", {}), f"{where}, pattern")
    rows = content.get("group", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{where}: groups must be [[group]] tables")
    pairs = dict(known)
    for name, table in _tables(content.get("attributes", {}), f"{where}, attributes").items():
        pairs[name] = _pair(table, f"{where}, attributes {name!r}", source)
    unknown = content.keys() - {"source", "pattern", "group", "attributes"}
    if unknown or not (rows or pairs != known):
        what = f"no {min(unknown)!r}" if unknown else "at least one of them"
        raise DataError(f"{where} takes [[group]] and [attributes.NAME]: {what}")
    return Indicators(tuple(_group(row, patterns, source, where) for row in rows), pairs, where)


def _group(
    row: Mapping[str, Any], patterns: Mapping[str, Any], source: str, where: str
) -> GroupIndicators:
    if not isinstance(name := row.get("name"), str) or not name.strip():
        raise DataError(f"{where}: every [[group]] needs a name")
    here = f"{where}, group {name!r}"
    known = {"name", "aliases", "concepts", "forms", *KINDS}
    if unknown := row.keys() - known:
        raise DataError(f"{here}: {no_such('entry', min(unknown), sorted(known))}")
    sets: dict[str, WordSet] = {}
    paraphrases: tuple[GroupName, ...] = ()
    for kind, table in row.items():
        if kind not in KINDS:
            continue
        if not isinstance(table, dict):
            raise DataError(f"{here}: {kind} must be a table [group.{kind}]")
        table, at = _patterned(kind, table, row.get("forms", {}), patterns, here)
        if kind == _NAMES:
            paraphrases = _paraphrases(table, node_id("group", name), at)
            words = tuple(p.text for p in paraphrases if not p.mark)
        else:
            words = _words(table, at)
        sets[kind] = _set(name, kind, words, table, source, at)
    aliases, concepts = (
        words_of(row[key], f"{here}, {key}") if row.get(key) else ()
        for key in ("aliases", "concepts")
    )
    return GroupIndicators(name, aliases, concepts, sets, paraphrases)


def _patterned(
    kind: str,
    table: Mapping[str, Any],
    forms: Mapping[str, Any],
    patterns: Mapping[str, Any],
    here: str,
) -> tuple[Mapping[str, Any], str]:
    """A table with the wordings of its pattern, if it names one, as its first `words`; and how an
    error names the table."""
    here = f"{here}, {kind}"
    if "pattern" not in table:
        return table, here
    pattern = patterns.get(str(table["pattern"]))
    if pattern is None or kind not in pattern:
        raise DataError(f"{here}: no pattern {table['pattern']!r} of {kind}")
    if not isinstance(wordings := pattern[kind], list) or not wordings:
        raise DataError(f"{here}: the pattern's {kind} must be a list of wordings")
    if not isinstance(forms, dict):
        raise DataError(f"{here}: forms must be a table")
    if not isinstance(more := table.get("words", []), list):
        raise DataError(f"{here}, words must be a list of words")
    filled = [_filled(wording, kind, forms, here) for wording in wordings]
    return pattern | table | {"words": [*filled, *more]}, here


def _filled(wording: Any, kind: str, forms: Mapping[str, Any], here: str) -> str:
    """A wording filled with a group's forms; of several wordings, the first that they can fill. In
    paraphrases, the filled-in part is the root."""
    lacking: Exception | None = None
    root = "{{{}}}" if kind == _NAMES else "{}"
    marked = {name: root.format(form) for name, form in forms.items()}
    for each in words_of([wording] if isinstance(wording, str) else wording, f"{here}, wordings"):
        try:
            return each.format_map(marked)
        except (KeyError, ValueError, IndexError, AttributeError) as error:
            lacking = error
    raise DataError(f"{here}: the pattern needs the form {lacking}") from lacking


def _words(table: Mapping[str, Any], here: str) -> tuple[str, ...]:
    """Words from the source that a table gives: a list, origins of names, or a test's concepts."""
    if "origins" in table:
        names = _given_names()
        origins = words_of(table["origins"], f"{here}, origins")
        if lacking := [origin for origin in origins if origin not in names]:
            raise DataError(f"{here}: {no_such('origin', lacking[0], names)}")
        return tuple(chain(*(names[origin] for origin in origins)))
    if "concept_words" in table:
        concepts = words_of(table["concept_words"], f"{here}, concept_words")
        sets = [s for test in published().values() for s in test.sets.values()]
        words = tuple(chain(*(s.words for s in sets if s.concept in concepts)))
        if not words:
            raise DataError(f"{here}: no published test has the concept {concepts[0]!r}")
        return words
    return words_of(table.get("words"), f"{here}, words")


def _set(
    group: str, kind: str, words: Sequence[str], table: Mapping[str, Any], source: str, here: str
) -> WordSet:
    if not (source := str(table.get("source", source))):
        raise DataError(f"{here} needs a source: where its words come from")
    slot = str(table.get("slot", "word"))
    return WordSet(group, tuple(dict.fromkeys(words)), slot, source=f"{kind}: {source}")


def _paraphrases(table: Mapping[str, Any], group: str, here: str) -> tuple[GroupName, ...]:
    """The names of a group, each once: `words`, and those with a mark."""
    if "origins" in table or "concept_words" in table:
        return tuple(GroupName(text, group, "", "") for text in _words(table, here))
    listed = table.get("one_root")
    one = [w.casefold() for w in words_of(listed, f"{here}, one_root")] if listed else []
    found: dict[str, GroupName] = {}
    for key, mark in (("words", ""), *zip(MARKS, MARKS, strict=True)):
        rows = table.get(key) if key == "words" else table.get(key, [])
        if not isinstance(rows, list) or (key == "words" and not rows):
            raise DataError(f"{here}, {key} must be a list of words")
        for row in rows:
            name = _paraphrase(row, group, mark, f"{here}, {key}")
            if name.root in one:
                name = replace(name, root=one[0])
            found.setdefault(name.id, name)
    return tuple(found.values())


def _paraphrase(row: Any, group: str, mark: str, here: str) -> GroupName:
    """A name from "{Elven} people", with its root in braces; "elves"; or a table of its parts."""
    parts = row if isinstance(row, dict) else {"name": row}
    if unknown := parts.keys() - {"name", "form", "root", "mark"}:
        raise DataError(f"{here}: no {min(unknown)!r}; a name takes name, form, root and mark")
    (text,) = words_of([parts.get("name")], here)
    given = {key: str(parts.get(key, "")).strip() for key in ("form", "root", "mark")}
    if given["mark"] and given["mark"] not in MARKS:
        raise DataError(f"{here}: {no_such('mark', given['mark'], MARKS)}")
    roots = _ROOT.findall(text)
    form = given["form"] or (_ROOT.sub("{}", text) if len(roots) == 1 else "")
    if form and form.count("{}") != 1:
        raise DataError(f"{here}: the form {form!r} needs one {{}} for the root")
    text = _ROOT.sub(r"\1", text)
    before, _, after = form.partition("{}")
    fits = len(text) > len(before + after) and text.startswith(before) and text.endswith(after)
    if form and not fits:
        raise DataError(f"{here}: {text!r} is not of the form {form!r}")
    root = given["root"] or (text[len(before) : len(text) - len(after)] if form else "")
    return GroupName(text, group, form, root.casefold(), given["mark"] or mark)


def _pair(table: Mapping[str, Any], here: str, source: str) -> Pair:
    if "test" in table:
        (test,) = find_tests([str(table["test"])])
        sides = words_of(table.get("sides", ["a", "b"]), f"{here}, sides")
        if len(sides) != 2 or not set(sides) <= test.sets.keys():
            raise DataError(f"{here}: sides must be two of x, y, a and b")
        one, other = (replace(test.sets[side], source=test.source) for side in sides)
        return one, other
    if not (source := str(table.get("source", source))):
        raise DataError(f"{here} needs a source: where its words come from")
    both = []
    for side in "ab":
        part = table.get(side)
        if not isinstance(part, dict):
            raise DataError(f"{here} needs a table for {side}")
        words = words_of(part.get("words"), f"{here}, {side}.words")
        concept, slot = str(part.get("concept", side)), str(part.get("slot", "word"))
        both.append(WordSet(concept, words, slot, source=source))
    return both[0], both[1]


def _tables(value: Any, here: str) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, dict) or not all(isinstance(part, dict) for part in value.values()):
        raise DataError(f"{here} must be tables")
    return value


def need_attributes(pair: Sequence[WordSet], where: str) -> None:
    """Raise UsageError where an attribute set has fewer than 8 words."""
    for words in pair:
        if len(words.words) < FEW:
            raise UsageError(
                f"{words.concept} has {len(words.words)} words, and a test needs {FEW} per "
                f"side: {where}"
            )
