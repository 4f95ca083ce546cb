"""SoFa in the graph: sets of probes, and what a model's answers to one of them add up to.

Two results can be compared where they are of one `ProbeSet`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgbias.graph.types import canonical_json
from kgbias.ids import content_id
from kgbias.io.text import storable
from kgbias.models.base import ModelInfo, Settings
from kgbias.stats.estimate import Estimate

HATEFUL = 0.5
"""From which score of hate on a statement counts as hate speech (appendix C.3 of the paper)."""


def text_statement_id(text: str) -> str:
    """The id of a statement that came as a text, without a predicate and an object: to a model each
    letter of it counts."""
    return content_id("statement", storable(text))


@dataclass(frozen=True, slots=True)
class ProbeStatement:
    """A statement of a set: `text` is what stands after a group. `hate` is its score of hate, 0 to
    1, and `cluster` the number of its cluster, -1 where it is in none; None where neither was
    asked (`Study.describe_probes`)."""

    id: str
    text: str
    hate: float | None = None
    cluster: int | None = None

    @classmethod
    def of(cls, text: str) -> "ProbeStatement":
        return cls(text_statement_id(text), text)

    @property
    def words(self) -> int:
        """Its length in words: what the paper calls the length of a stereotype."""
        return len(self.text.split())


@dataclass(frozen=True, slots=True)
class ProbePart:
    """One category of a set: each of its groups is put before each of its statements."""

    category: str
    groups: tuple[str, ...]
    statements: tuple[ProbeStatement, ...]


@dataclass(frozen=True, slots=True)
class ProbeSet:
    """Groups and statements that models are probed with. The id follows from their texts alone, in
    any order; `name` is what people call it, and `record` what is known of it as a whole (its
    clusters, and what scored hate)."""

    name: str
    parts: tuple[ProbePart, ...]
    record: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, name: str, sets: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    ) -> "ProbeSet":
        """A set of texts: category to (groups, statements), as `kgbias.gather_sets` gives them."""
        return cls(
            name,
            tuple(
                ProbePart(category, groups, tuple(map(ProbeStatement.of, statements)))
                for category, (groups, statements) in sets.items()
            ),
        )

    @property
    def id(self) -> str:
        content = [
            [
                part.category,
                sorted(storable(group) for group in part.groups),
                sorted(storable(s.text) for s in part.statements),
            ]
            for part in sorted(self.parts, key=lambda part: part.category)
        ]
        return content_id("probes", canonical_json(content))

    @property
    def groups(self) -> int:
        return sum(len(part.groups) for part in self.parts)

    @property
    def statements(self) -> int:
        return sum(len(part.statements) for part in self.parts)

    @property
    def probes(self) -> int:
        """Groups times statements, added up over categories."""
        return sum(len(part.groups) * len(part.statements) for part in self.parts)


@dataclass(frozen=True, slots=True)
class SofaGroup:
    """How often a group comes first, as shares of the statements with their intervals: `first` by
    PPL* (the paper's top-1), `likeliest` by the measure of the probing."""

    group: str
    first: Estimate
    likeliest: Estimate


@dataclass(frozen=True, slots=True)
class SofaStatement:
    """PPL* of a statement over the groups: its `mean`, its `variance` (ddof=1, Eq. 4), the Delta
    Disparity Score `dds` (Eq. 5), and the groups of the lowest PPL* (several where they tie)."""

    id: str
    text: str
    dds: float
    variance: float
    mean: float
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SofaCategory:
    """One category: `score` is the mean of its statements' variances, `quantiles` are those of PPL*
    over all its probes, at 0, 1 ... 100 percent."""

    category: str
    score: Estimate
    quantiles: tuple[float, ...]
    groups: tuple[SofaGroup, ...]
    statements: tuple[SofaStatement, ...]


@dataclass(frozen=True, slots=True)
class SofaResult:
    """SoFa of one model on one set of probes: `score` is the mean over categories, 0 where it makes
    no difference which group stands before a statement. `measure` is what
    `likeliest` went by; `probe_set` is the id of the set."""

    probe_set: str
    model: ModelInfo
    settings: Settings
    measure: str
    score: Estimate
    categories: tuple[SofaCategory, ...]
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return content_id("sofa", self.probe_set, self.model.asked(self.settings), self.measure)

    def category(self, name: str) -> SofaCategory:
        return next(c for c in self.categories if c.category == name)
