"""Association tests as word sets: the published ones, and a user's own from a file.

A file of tests is TOML. Only `name` and the four lists are required:

    source = "where the words come from"

    [[test]]
    name = "engineers"
    title = "Men against women, engineering against care"
    frames = ["{t} is a {a}."]    # sentences for LPBS: {t} a target, {a} an attribute
    [test.x]
    concept = "men"
    slot = "name"                 # the templates for the words: wordsets/templates.toml
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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.types import canonical_json
from kgbias.ids import content_id
from kgbias.io.reading import read_json, read_text, read_toml

ROLES = ("x", "y", "a", "b")
FEW = 8
"""With fewer stimuli a set represents its concept poorly (Caliskan et al. 2017)."""

_PUBLISHED = ("caliskan2017.toml", "mind_your_bias2022.toml")
_BARE_FRAME = "{t} is {a}."


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
class Frames:
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
    frames: tuple[str, ...] = (_BARE_FRAME,)
    simplified: tuple[Frames, ...] = ()

    @property
    def sets(self) -> dict[str, WordSet]:
        return {"x": self.x, "y": self.y, "a": self.a, "b": self.b}

    @property
    def few(self) -> bool:
        """Whether a set has fewer than 8 words."""
        return any(len(words.words) < FEW for words in self.sets.values())

    @property
    def id(self) -> str:
        words = {role: sorted(words.words) for role, words in self.sets.items()}
        return content_id("association-test", canonical_json(words))


FORMS = "the name of a published one, a kgbias.AssociationTest, or a dict of four lists of words"
Tests = (
    str | AssociationTest | Mapping[str, Any] | Iterable[str | AssociationTest | Mapping[str, Any]]
)
"""Association tests: names of published ones, tests, or word sets in a dict (`tests_of`)."""


def tests_of(given: Tests) -> list[str | AssociationTest]:
    """Tests, or names of tests, from what a person hands over: one or several of them, or word sets
    in a dict.

    The dict has four lists of words: called x, y, a and b, or after their concepts, in the order of
    two targets and two attributes; or it holds several of such dicts, by the test's name. Raises
    DataError for word sets that are no lists of words, or not four.
    """
    if isinstance(given, str | AssociationTest):
        return [given]
    if isinstance(given, Mapping):
        nested = given and all(isinstance(own, Mapping) for own in given.values())
        if nested and not set(given) <= set(ROLES):
            return [_of_words(own, str(name)) for name, own in given.items()]
        return [_of_words(given)]
    found: list[str | AssociationTest] = []
    for each in given:
        if not isinstance(each, str | AssociationTest | Mapping):
            raise DataError(f"{str(each)[:40]!r} is no test: give {FORMS}")
        found += tests_of(each)
    return found


def _of_words(sets: Mapping[str, Any], name: str = "") -> AssociationTest:
    """A test of word sets by role, or by concept in the order of the roles."""
    by_role = set(sets) == set(ROLES)
    if len(sets) != len(ROLES):
        raise DataError(
            f"the word sets of {name or 'a test'} are {len(sets)}, and a test has four: two of "
            "targets (x, y) and two of attributes (a, b)"
        )
    ordered = {role: sets[role] for role in ROLES} if by_role else dict(sets)
    made: dict[str, WordSet] = {}
    for role, (concept, words) in zip(ROLES, ordered.items(), strict=True):
        here = f"{name or 'the test'}, {concept}"
        if isinstance(words, WordSet):
            made[role] = words
        elif isinstance(words, Mapping):
            made[role] = _word_set(words, role, here)
        else:
            several = isinstance(words, Iterable) and not isinstance(words, str)
            values = list(words) if several else words
            made[role] = WordSet(str(concept), words_of(values, here))
    x, y, a, b = (made[role] for role in ROLES)
    about = f"{x.concept} against {y.concept}, {a.concept} against {b.concept}"
    return AssociationTest(name or ("own" if by_role else about), x, y, a, b)


def find_tests(names: Iterable[str], file: Path | None = None) -> list[AssociationTest]:
    """The tests with these names, in their order: published ones and those in the user's `file`,
    which take precedence. Case is ignored; C3 means C3-name. "all" is every test in the file, or
    without a file every published one with at least 8 words per set. Raises UsageError for an
    unknown name.

    Args:
        names: the names.
        file: a file of tests of your own.
    """
    own = {_key(t.name): t for t in read_tests(file)} if file else {}
    known = published() | own
    found: dict[str, AssociationTest] = {}
    for name in names:
        key = _key(name)
        if key == "all":
            found |= own or {name: test for name, test in known.items() if not test.few}
        elif test := known.get(key) or known.get(f"{key}-name"):
            found[_key(test.name)] = test
        else:
            there = (test.name for test in known.values())
            raise UsageError(no_such("association test", name, there))
    if not found:
        raise UsageError("name at least one association test, for example weat6")
    return list(found.values())


@cache
def published() -> dict[str, AssociationTest]:
    """The published tests by lower-case name: weat1 to weat10, then those of "Mind Your Bias"."""
    folder = files("kgbias.associate") / "wordsets"
    tests = [
        test
        for name in _PUBLISHED
        for test in _parse(tomllib.loads((folder / name).read_text("utf-8")), name)
    ]
    return {_key(test.name): test for test in tests}


def read_tests(path: Path) -> list[AssociationTest]:
    """The tests of a user's file: TOML (see the module's docstring), or the JSON of one test as
    sent-bias publishes it (May et al. 2019). Raises DataError in one line."""
    if read_text(path).lstrip().startswith("{"):
        return [_sent_bias(read_json(path), path)]
    return _parse(read_toml(path), str(path))


_SENT_BIAS = ("targ1", "targ2", "attr1", "attr2")  # x, y, a and b


def _sent_bias(found: Any, path: Path) -> AssociationTest:
    """A test in the form of sent-bias: sets of targets and attributes, each with its category and
    its examples."""
    sets: list[WordSet] = []
    for key in _SENT_BIAS:
        own = found.get(key)
        words = own.get("examples") if isinstance(own, dict) else None
        if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
            raise DataError(f"{path}: {key} has no list of examples, as a test of sent-bias has")
        sets.append(WordSet(str(own.get("category") or key), tuple(words)))
    x, y, a, b = sets
    return AssociationTest(path.name.partition(".")[0], x, y, a, b, source=path.name)


@cache
def templates(slot: str) -> tuple[str, ...]:
    """The bleached sentences of a slot. Raises UsageError for an unknown slot."""
    text = (files("kgbias.associate") / "wordsets" / "templates.toml").read_text("utf-8")
    slots = tomllib.loads(text)
    if slot not in slots:
        raise UsageError(no_such("template slot", slot, slots))
    return tuple(slots[slot]["templates"])


def fill(template: str, word: str, place: str = "{}") -> tuple[str, int]:
    """The template with the word filled in, and where the word begins. An "a" before the place
    becomes "an" before a vowel."""
    before, _, after = template.partition(place)
    if before.endswith(("a ", "A ")) and before[:-2][-1:] in ("", " ") and word[:1] in "aeiouAEIOU":
        before = before[:-1] + "n "
    return before + word + after, len(before)


def _key(name: str) -> str:
    """A name in the form of c3-term, which C3 (term) and C3_term also stand for."""
    return (
        name.strip().lower().replace("(", "").replace(")", "").replace("_", "-").replace(" ", "-")
    )


def _parse(content: Mapping[str, Any], where: str) -> list[AssociationTest]:
    rows = content.get("test")
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{where} has no [[test]]")
    return [_test(row, str(content.get("source", where)), where) for row in rows]


def _test(row: Any, source: str, where: str) -> AssociationTest:
    if not isinstance(row, dict) or not isinstance(name := row.get("name"), str) or not name:
        raise DataError(f"{where}: every [[test]] needs a name")
    here = f"{where}, test {name!r}"
    simplified = row.get("simplified", [])
    if not isinstance(simplified, list) or not all(isinstance(part, dict) for part in simplified):
        raise DataError(f"{here}: simplified must be [[test.simplified]] tables")
    return AssociationTest(
        name=name,
        title=str(row.get("title", "")),
        source=str(row.get("source", source)),
        frames=_sentences(row.get("frames", [_BARE_FRAME]), here),
        simplified=tuple(
            Frames(
                words_of(part.get("x"), f"{here}, simplified x"),
                words_of(part.get("y"), f"{here}, simplified y"),
                _sentences(part.get("frames", [_BARE_FRAME]), here),
            )
            for part in simplified
        ),
        **{role: _word_set(row.get(role), role, here) for role in ROLES},
    )


def _word_set(row: Any, role: str, here: str) -> WordSet:
    if not isinstance(row, dict):
        raise DataError(f"{here} needs a table [test.{role}]")
    adjectives = row.get("adjectives") or []
    return WordSet(
        concept=str(row.get("concept", role)),
        words=words_of(row.get("words"), f"{here}, {role}.words"),
        slot=str(row.get("slot", "word")),
        adjectives=words_of(adjectives, f"{here}, {role}.adjectives") if adjectives else (),
    )


def words_of(value: Any, here: str) -> tuple[str, ...]:
    """The words in a list, without repetitions, in order. Raises DataError for anything else."""
    if (
        not isinstance(value, Sequence)
        or isinstance(value, str)
        or not value
        or not all(isinstance(word, str) and word.strip() for word in value)
    ):
        raise DataError(f"{here} must be a list of words")
    return tuple(dict.fromkeys(word.strip() for word in value))


def _sentences(value: Any, here: str) -> tuple[str, ...]:
    sentences = words_of(value, f"{here}, frames")
    for sentence in sentences:
        if sentence.count("{t}") != 1 or sentence.count("{a}") != 1:
            raise DataError(f"{here}: the frame {sentence!r} needs one {{t}} and one {{a}}")
    return sentences
