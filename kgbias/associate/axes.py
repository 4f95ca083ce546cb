"""The cells of the parameter study of "Mind Your Bias" (2022): which settings of which methods on
which tests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from kgbias.associate.sets import AssociationTest, find_tests
from kgbias.errors import UsageError
from kgbias.graph.types import canonical_json
from kgbias.ids import content_id

TESTS = ("C1", "C3-name", "C3-term", "C6-name", "C6-term", "C9-name", "Dis", "Occ-name", "Occ-term",
         "I1-name", "I1-term", "I2-name", "I2-term")  # fmt: skip
"""The tests of the paper; C9-term has fewer than 8 words a set."""
METHODS = ("s-seat", "w-seat", "ceat", "lpbs", "ceat-lpbs")
WORDS = ("full", "reduced", "simplified")
SENTENCE = "sentence"
ENCODINGS = ("word-average", "word-first", "word-last", SENTENCE)
WINDOWS = (6, 12, 18)
"""Words between target and attribute in a corpus, at most: figure 4."""

_OF = {
    "s-seat": (SENTENCE,),
    "w-seat": ENCODINGS[:3],
    "ceat": ENCODINGS,
    "lpbs": ("",),
    "ceat-lpbs": ("",),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One test by one method in one setting on one model (a spec). `contexts` is templates or
    corpus; `encoding` "sentence" is the model's own, "" where the method has none; `apart` are the
    words between the stimuli of LPBS in a corpus, 0 elsewhere."""

    model: str
    test: str
    method: str
    contexts: str
    encoding: str
    words: str
    apart: int = 0

    @property
    def concept(self) -> str:
        """The test without its kind of targets: C3 of C3-name."""
        return self.test.removesuffix("-name").removesuffix("-term")

    @property
    def targets(self) -> str:
        """ "names" or "terms", "" where the test has no other of the kind."""
        return {"-name": "names", "-term": "terms"}.get(self.test[-5:], "")

    def key(self, rest: Mapping[str, Any]) -> str:
        """What the cell is stored under: all that can change its result."""
        return content_id("grid cell", canonical_json(asdict(self) | dict(rest)))

    def __str__(self) -> str:
        apart = f"{self.apart} apart" if self.apart else ""
        parts = (self.method, self.contexts, self.encoding, self.words, apart)
        return f"{self.test} on {self.model}: {', '.join(part for part in parts if part)}"


def encodings_of(methods: Iterable[str]) -> set[str]:
    """The encodings that these methods take."""
    return {encoding for method in methods for encoding in _OF[method] if encoding}


def tests_of(names: Sequence[str]) -> list[AssociationTest]:
    """The tests of a grid: those of the paper, or of these names. C3 is both C3-name and C3-term.
    Raises UsageError for an unknown one."""
    if not names:
        return find_tests(TESTS)
    found: dict[str, AssociationTest] = {}
    for name in names:
        (first, *more) = find_tests([name])
        both = [first, *more]
        if not name.lower().endswith(("name", "term")) and first.name.endswith("-name"):
            both += find_tests([first.name.removesuffix("name") + "term"])
        found |= {test.name: test for test in both if not test.few}
    if not found:
        raise UsageError("these tests have fewer than 8 words a set")
    return list(found.values())


def cells(
    models: Iterable[str],
    tests: Sequence[AssociationTest],
    methods: Sequence[str] = METHODS,
    *,
    corpus: bool = False,
    encodings: Sequence[str] = ENCODINGS,
    words: Sequence[str] = WORDS,
    targets: Sequence[str] = ("names", "terms"),
) -> Iterator[Cell]:
    """Every valid combination, model by model and test by test: s-SEAT takes sentences, w-SEAT
    words, CEAT both, and LPBS neither; simplified sets are those of Kurita et al. (2019)."""
    for model, test in product(models, tests):
        sets = [each for each in words if each != "simplified" or test.simplified]
        for method, contexts, each in product(
            methods, ("templates", "corpus") if corpus else ("templates",), sets
        ):
            for encoding in _OF[method]:
                cell = Cell(model, test.name, method, contexts, encoding, each)
                if (cell.targets and cell.targets not in targets) or (
                    encoding and encoding not in encodings
                ):
                    continue
                if encoding or contexts == "templates":
                    yield cell
                else:
                    yield from (replace(cell, apart=apart) for apart in WINDOWS)
