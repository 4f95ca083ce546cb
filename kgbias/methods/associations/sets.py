"""Association tests as word sets: the published ones, and a user's own from a file.

A file of tests is TOML. Only `name` and the four lists are required:

    source = "where the words come from"

    [[test]]
    name = "engineers"
    title = "Men against women, engineering against care"
    frames = ["{t} is a {a}."]    # sentences for LPBS: {t} a target, {a} an attribute
    [test.x]
    concept = "men"
    slot = "name"                 # the templates for the words: word_sets/templates.toml
    words = ["John", "Paul"]
    adjectives = []               # forms that LPBS uses instead of these attribute words
    [test.y]
    ...
    [test.a]
    ...
    [test.b]
    ...
    [[test.simplified]]           # other targets for LPBS (Kurita et al. 2019)
    x = ["he"]
    y = ["she"]
    frames = ["{t} is a {a}."]

X and Y are the targets, A and B the attributes; a positive effect ties X to A and Y to B.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from kgbias.errors import DataError, UsageError, no_such
from kgbias.evidence.indicators import MIN_WORDS, parse_words, published_test_tables
from kgbias.evidence.indicators import WordSet as WordSet
from kgbias.graph.types import canonical_json
from kgbias.ids import content_id
from kgbias.io.reading import read_head, read_json, read_text, read_toml
from kgbias.io.tables import refuse_other_formats
from kgbias.io.text import type_with_article

ROLES = ("x", "y", "a", "b")
_DEFAULT_FRAME = "{t} is {a}."


@dataclass(frozen=True, slots=True)
class SentenceFrames:
    """Sentences with places for a target {t} and an attribute {a}, and the targets to fill in."""

    x: tuple[str, ...]
    y: tuple[str, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AssociationTest:
    """Two sets of targets and two of attributes. The id depends on the words alone."""

    name: str
    x: WordSet
    y: WordSet
    a: WordSet
    b: WordSet
    title: str = ""
    source: str = ""
    frames: tuple[str, ...] = (_DEFAULT_FRAME,)
    simplified: tuple[SentenceFrames, ...] = ()

    @property
    def sets(self) -> dict[str, WordSet]:
        return {"x": self.x, "y": self.y, "a": self.a, "b": self.b}

    @property
    def has_few_words(self) -> bool:
        """Whether a set has fewer than 8 words."""
        return any(len(words.words) < MIN_WORDS for words in self.sets.values())

    @property
    def id(self) -> str:
        words = {role: sorted(words.words) for role, words in self.sets.items()}
        return content_id("association-test", canonical_json(words))


FORMS = "the name of a published one, an AssociationTest, or a dict of four lists of words"
Tests = (
    str | AssociationTest | Mapping[str, Any] | Iterable[str | AssociationTest | Mapping[str, Any]]
)
"""Association tests: names of published ones, tests, or word sets in a dict (`parse_tests`)."""


def parse_tests(tests: Tests) -> list[str | AssociationTest]:
    """Tests, or names of tests, from what a person hands over: one or several of them, or word sets
    in a dict.

    The dict has four lists of words: called x, y, a and b, or after their concepts, in the order of
    two targets and two attributes; or it holds several of such dicts, by the test's name. Raises
    DataError for word sets that are no lists of words, or not four.
    """
    if isinstance(tests, str | AssociationTest):
        return [tests]
    if isinstance(tests, Mapping):
        nested = tests and all(isinstance(word_sets, Mapping) for word_sets in tests.values())
        # Four tables called x, y, a and b are the sets of one test, and no four tests.
        if nested and not set(tests) <= set(ROLES):
            return [_test_from_sets(word_sets, str(name)) for name, word_sets in tests.items()]
        return [_test_from_sets(tests)]
    # A frame would give the names of its columns, and these are no tests.
    if hasattr(tests, "columns") or not isinstance(tests, Iterable):
        raise DataError(f"{type_with_article(tests)} is no test: give {FORMS}")
    tests_found: list[str | AssociationTest] = []
    for item in tests:
        if not isinstance(item, str | AssociationTest | Mapping):
            raise DataError(f"{str(item)[:40]!r} is no test: give {FORMS}")
        tests_found += parse_tests(item)
    return tests_found


def _test_from_sets(sets: Mapping[str, Any], name: str = "") -> AssociationTest:
    """A test of word sets by role, or by concept in the order of the roles."""
    by_role = set(sets) == set(ROLES)
    if len(sets) != len(ROLES):
        raise DataError(
            f"the word sets of {name or 'a test'} are {len(sets)}, and a test has four: two of "
            "targets (x, y) and two of attributes (a, b)"
        )
    sets_by_role = {role: sets[role] for role in ROLES} if by_role else dict(sets)
    built_sets: dict[str, WordSet] = {}
    for role, (concept, words) in zip(ROLES, sets_by_role.items(), strict=True):
        location = f"{name or 'the test'}, {concept}"
        if isinstance(words, WordSet):
            built_sets[role] = words
        elif isinstance(words, Mapping):
            built_sets[role] = _parse_word_set(words, role, location)
        else:
            is_several = isinstance(words, Iterable) and not isinstance(words, str)
            values = list(words) if is_several else words
            built_sets[role] = WordSet(str(concept), parse_words(values, location))
    x, y, a, b = (built_sets[role] for role in ROLES)
    description = f"{x.concept} against {y.concept}, {a.concept} against {b.concept}"
    return AssociationTest(name or ("own" if by_role else description), x, y, a, b)


def find_tests(names: Iterable[str], file: Path | None = None) -> list[AssociationTest]:
    """The tests with these names, in their order: published ones and those in the user's `file`,
    which take precedence. Case is ignored; C3 means C3-name. "all" is every test in the file, or
    without a file every published one with at least 8 words per set. Raises UsageError for an
    unknown name.

    Args:
        names: the names.
        file: a file of tests of your own.
    """
    own_tests = {_test_key(t.name): t for t in read_tests(file)} if file else {}
    known_tests = published_tests() | own_tests
    tests_found: dict[str, AssociationTest] = {}
    for name in names:
        key = _test_key(name)
        if key == "all":
            tests_found |= own_tests or {
                name: test for name, test in known_tests.items() if not test.has_few_words
            }
        elif test := known_tests.get(key) or known_tests.get(f"{key}-name"):
            tests_found[_test_key(test.name)] = test
        else:
            choices = (test.name for test in known_tests.values())
            raise UsageError(no_such("association test", name, choices))
    if not tests_found:
        raise UsageError("name at least one association test, for example weat6")
    return list(tests_found.values())


@cache
def published_tests() -> dict[str, AssociationTest]:
    """The published tests by lower-case name: weat1 to weat10, then those of "Mind Your Bias"."""
    tests = [
        test
        for name, content in published_test_tables().items()
        for test in _parse_tests(content, name)
    ]
    return {_test_key(test.name): test for test in tests}


def read_tests(path: Path) -> list[AssociationTest]:
    """The tests of a user's file: TOML (see the module's docstring), or the JSON of one test as
    sent-bias publishes it (May et al. 2019). Raises DataError in one line."""
    refuse_other_formats(path, read_head(path, 512))
    # By its beginning: sent-bias calls its files .jsonl, though each is one object of JSON.
    if read_text(path).lstrip().startswith("{"):
        return [_parse_sent_bias(read_json(path), path)]
    return _parse_tests(read_toml(path), str(path))


_SENT_BIAS_KEYS = ("targ1", "targ2", "attr1", "attr2")  # x, y, a and b


def _parse_sent_bias(content: Any, path: Path) -> AssociationTest:
    """A test in the form of sent-bias: sets of targets and attributes, each with its category and
    its examples."""
    sets: list[WordSet] = []
    for key in _SENT_BIAS_KEYS:
        table = content.get(key)
        words = table.get("examples") if isinstance(table, dict) else None
        if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
            raise DataError(f"{path}: {key} has no list of examples, as a test of sent-bias has")
        sets.append(WordSet(str(table.get("category") or key), tuple(words)))
    x, y, a, b = sets
    return AssociationTest(path.name.partition(".")[0], x, y, a, b, source=path.name)


@cache
def slot_templates(slot: str) -> tuple[str, ...]:
    """The bleached sentences of a slot. Raises UsageError for an unknown slot."""
    text = (files("kgbias.methods.associations") / "word_sets" / "templates.toml").read_text(
        "utf-8"
    )
    slots = tomllib.loads(text)
    if slot not in slots:
        raise UsageError(no_such("template slot", slot, slots))
    return tuple(slots[slot]["templates"])


class FilledSlot(NamedTuple):
    """A template with a word filled in, and where the word begins."""

    text: str
    start: int


def fill_slot(template: str, word: str, place: str = "{}") -> FilledSlot:
    """The template with the word filled in, and where the word begins. An "a" before the place
    becomes "an" before a vowel."""
    before, _, after = template.partition(place)
    # The word "a" alone, not one that ends in it.
    if before.endswith(("a ", "A ")) and before[:-2][-1:] in ("", " ") and word[:1] in "aeiouAEIOU":
        before = before[:-1] + "n "
    return FilledSlot(before + word + after, len(before))


def _test_key(name: str) -> str:
    """A name in the form of c3-term, which C3 (term) and C3_term also stand for."""
    return (
        name.strip().lower().replace("(", "").replace(")", "").replace("_", "-").replace(" ", "-")
    )


def _parse_tests(content: Mapping[str, Any], location: str) -> list[AssociationTest]:
    rows = content.get("test")
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{location} has no [[test]]")
    return [_parse_test(row, str(content.get("source", location)), location) for row in rows]


def _parse_test(row: Any, source: str, file_location: str) -> AssociationTest:
    if not isinstance(row, dict) or not isinstance(name := row.get("name"), str) or not name:
        raise DataError(f"{file_location}: every [[test]] needs a name")
    location = f"{file_location}, test {name!r}"
    simplified = row.get("simplified", [])
    if not isinstance(simplified, list) or not all(
        isinstance(frames_table, dict) for frames_table in simplified
    ):
        raise DataError(f"{location}: simplified must be [[test.simplified]] tables")
    return AssociationTest(
        name=name,
        title=str(row.get("title", "")),
        source=str(row.get("source", source)),
        frames=_parse_frames(row.get("frames", [_DEFAULT_FRAME]), location),
        simplified=tuple(
            SentenceFrames(
                parse_words(frames_table.get("x"), f"{location}, simplified x"),
                parse_words(frames_table.get("y"), f"{location}, simplified y"),
                _parse_frames(frames_table.get("frames", [_DEFAULT_FRAME]), location),
            )
            for frames_table in simplified
        ),
        **{role: _parse_word_set(row.get(role), role, location) for role in ROLES},
    )


def _parse_word_set(row: Any, role: str, location: str) -> WordSet:
    if not isinstance(row, dict):
        raise DataError(f"{location} needs a table [test.{role}]")
    adjectives = row.get("adjectives") or []
    return WordSet(
        concept=str(row.get("concept", role)),
        words=parse_words(row.get("words"), f"{location}, {role}.words"),
        slot=str(row.get("slot", "word")),
        adjectives=parse_words(adjectives, f"{location}, {role}.adjectives") if adjectives else (),
    )


def _parse_frames(value: Any, location: str) -> tuple[str, ...]:
    sentences = parse_words(value, f"{location}, frames")
    for sentence in sentences:
        if sentence.count("{t}") != 1 or sentence.count("{a}") != 1:
            raise DataError(f"{location}: the frame {sentence!r} needs one {{t}} and one {{a}}")
    return sentences
