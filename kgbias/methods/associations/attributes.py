"""What groups are tested with: the sets that stand for two groups, and the pairs of attribute sets.

A group's name alone is one word, whose effect size says nothing: with one word per side, d is
always 1.4142 or -1.4142. So groups are represented by their indicators
(`kgbias.evidence.indicators`). `word_sets/attributes.toml` has the pairs of attribute sets; your
file of indicators may add more.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError, no_such
from kgbias.evidence.indicators import (
    INDICATOR_KINDS,
    MIN_WORDS,
    SHIPPED_PATH,
    Indicators,
    WordSet,
    check_tables,
    parse_words,
)
from kgbias.graph.types import Group
from kgbias.io.reading import read_toml
from kgbias.methods.associations.sets import find_tests

PLEASANT = "pleasant"
SetPair = tuple[WordSet, WordSet]


def read_attributes(path: Path | None = None) -> Mapping[str, SetPair]:
    """The shipped pairs of attribute sets by name, with those of a file of indicators on top.
    Raises DataError in one line."""
    shipped = _shipped_attributes()
    return shipped if path is None else shipped | _parse_pairs(read_toml(path), str(path))


@cache
def _shipped_attributes() -> dict[str, SetPair]:
    name = "attributes.toml"
    text = (files("kgbias.methods.associations") / "word_sets" / name).read_text("utf-8")
    return _parse_pairs(tomllib.loads(text), name)


def _parse_pairs(content: Mapping[str, Any], location: str) -> dict[str, SetPair]:
    tables = check_tables(content.get("attributes", {}), f"{location}, attributes")
    source = content.get("source", "")
    return {
        name: _parse_pair(table, f"{location}, attributes {name!r}", source)
        for name, table in tables.items()
    }


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


def attribute_pair(name: str, pairs: Mapping[str, SetPair]) -> SetPair:
    """The attribute sets with this name. Raises UsageError for an unknown name."""
    if name not in pairs:
        raise UsageError(no_such("attribute sets", name, (*pairs, "regard")))
    return pairs[name]


def check_attributes(pair: Sequence[WordSet], remedy: str) -> None:
    """Raise UsageError where an attribute set has fewer than 8 words."""
    for words in pair:
        if len(words.words) < MIN_WORDS:
            raise UsageError(
                f"{words.concept} has {len(words.words)} words, and a test needs {MIN_WORDS} per "
                f"side: {remedy}"
            )


def target_sets(indicators: Indicators, x: Group, y: Group, kind: str | None = None) -> SetPair:
    """The sets of two groups: of `kind`, or of the first kind, in the order in which the first
    group declares them, with at least 8 for each. Words that both have are left out.

    Raises UsageError, in one line that names the file to extend, if there is no such kind.
    """
    if kind is not None and kind not in INDICATOR_KINDS:
        raise UsageError(no_such("kind of indicators", kind, INDICATOR_KINDS))
    declared = [indicators.find_group(group) for group in (x, y)]
    kinds: tuple[str, ...] = (kind,) if kind else ()
    if not kind and declared[0]:
        kinds = tuple(declared[0].sets)
    word_counts = {x.name: 0, y.name: 0}
    for kind_tried in kinds:
        sets = [g.sets.get(kind_tried) if g else None for g in declared]
        shared_words = set(sets[0].words if sets[0] else ()) & set(sets[1].words if sets[1] else ())
        own_words = [
            tuple(w for w in (s.words if s else ()) if w not in shared_words) for s in sets
        ]
        if min(map(len, own_words)) >= MIN_WORDS and sets[0] and sets[1]:
            return (
                replace(sets[0], concept=x.name, words=own_words[0]),
                replace(sets[1], concept=y.name, words=own_words[1]),
            )
        word_counts = {
            g.name: max(word_counts[g.name], len(w)) for g, w in zip((x, y), own_words, strict=True)
        }
    if not kinds and declared[1]:
        word_counts[y.name] = max(map(len, (s.words for s in declared[1].sets.values())), default=0)
    short = min(word_counts, key=lambda name: word_counts[name])
    raise too_few_error(indicators, short, word_counts[short], kind)


def too_few_error(
    indicators: Indicators, group: str, count: int, kind: str | None = None
) -> UsageError:
    """The error for a test with fewer than 8 words per side."""
    file_to_extend = (
        indicators.source_file if indicators.source_file != SHIPPED_PATH else "a file of your own"
    )
    return UsageError(
        f"{group} has {count} {kind or 'indicators'} to test, and a test needs {MIN_WORDS} "
        f"per side: "
        f"declare them in {file_to_extend} (`indicators`; its form is that of {SHIPPED_PATH})"
    )
