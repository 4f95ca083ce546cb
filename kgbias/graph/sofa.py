"""SoFa in the graph: sets of probes, and a model's results on them.

Two results can be compared if they are on the same `ProbeSet`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from kgbias.graph.node_records import NodeRecord, declare_node
from kgbias.graph.record import OrNaN, canonical_json
from kgbias.ids import content_id
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.text import storable
from kgbias.models.base import ModelInfo, Settings
from kgbias.stats.estimate import Estimate

MIN_HATE_SCORE = 0.5
"""The hate score from which a statement counts as hate speech (appendix C.3 of the paper)."""


def text_statement_id(text: str) -> str:
    """The id of a statement that came as a text, without a predicate and an object. Texts that
    differ in a single letter differ, as they do to a model."""
    return content_id("statement", storable(text))


@dataclass(frozen=True, slots=True)
class ProbeStatement:
    """A statement of a set: `text` follows the group. Hate and cluster are None if they were not
    asked for (`kgbias.methods.sofa.describe_set`)."""

    id: str
    text: Annotated[str, "as it appears in a probe"]
    hate: Annotated[float | None, "of the statement, 0 to 1"] = None
    cluster: Annotated[int | None, "of the statement, from 0; -1 for none"] = None

    @classmethod
    def from_text(cls, text: str) -> "ProbeStatement":
        return cls(text_statement_id(text), text)

    @property
    def words(self) -> Annotated[int, "of the statement"]:
        """Its length in words, which the paper calls the length of a stereotype."""
        return len(self.text.split())


@dataclass(frozen=True, slots=True)
class ProbePart:
    """One category of a set. Each of its groups is put before each of its statements."""

    category: str
    groups: tuple[str, ...]
    statements: tuple[ProbeStatement, ...]


@declare_node(
    NodeRecord(
        "ProbeSet",
        "groups and statements that models are probed with",
        "name",
        table="probe_set",
        last=("record",),
    )
)
@dataclass(frozen=True, slots=True, repr=False)
class ProbeSet(Result):
    """Groups and statements that models are probed with. The id is computed from their texts alone,
    in any order."""

    name: Annotated[str, "what people call it"]
    parts: tuple[ProbePart, ...]
    record: Annotated[Mapping[str, Any], "its clusters, and what scored hate, as JSON"] = field(
        default_factory=dict
    )

    @classmethod
    def from_texts(
        cls, name: str, sets: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    ) -> "ProbeSet":
        """A set from texts: category to (groups, statements), as from `kgbias.gather_sets`."""
        return cls(
            name,
            tuple(
                ProbePart(category, groups, tuple(map(ProbeStatement.from_text, statements)))
                for category, (groups, statements) in sets.items()
            ),
        )

    def as_rows(self) -> Rows[ProbePart]:
        """The categories. Columns: category, groups and statements (how many)."""
        columns = (
            Column("category"),
            Column("groups", "d", get=lambda part: len(part.groups)),
            Column("statements", "d", get=lambda part: len(part.statements)),
        )
        return Rows(self.parts, columns)

    def heading(self) -> str:
        return f"probe set {self.name}"

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
    def groups(self) -> Annotated[int, "in all categories"]:
        return sum(len(part.groups) for part in self.parts)

    @property
    def statements(self) -> Annotated[int, "in all categories"]:
        return sum(len(part.statements) for part in self.parts)

    @property
    def probes(self) -> Annotated[int, "each group with each statement of its category"]:
        return sum(len(part.groups) * len(part.statements) for part in self.parts)


@dataclass(frozen=True, slots=True)
class SofaGroup:
    """PUTS_FIRST: how often a group comes first. `first`, by PPL*, is the paper's top-1."""

    group: str
    first: Annotated[Estimate, "share of the statements with the lowest PPL* for the group"]
    likeliest: Annotated[Estimate, "the same share by the result's own measure"]


@dataclass(frozen=True, slots=True)
class SofaStatement:
    """DISPARITY: PPL* of a statement over the groups. The variance is that of Eq. 4 (ddof=1), `dds`
    is Eq. 5. Groups that tie are all `first`."""

    id: str
    text: str
    dds: Annotated[OrNaN, "Delta Disparity Score: highest minus lowest PPL* over groups"]
    variance: Annotated[OrNaN, "of PPL* over groups"]
    mean: Annotated[OrNaN, "of PPL* over groups"]
    first: Annotated[tuple[str, ...], "the groups with the lowest PPL*"]


@dataclass(frozen=True, slots=True)
class SofaCategory:
    """SCORES: SoFa in one category."""

    category: str
    score: Annotated[Estimate, "mean variance of PPL* over groups; higher: groups further apart"]
    quantiles: Annotated[tuple[float, ...], "of PPL* over the probes, at 0, 1 ... 100 percent"]
    groups: tuple[SofaGroup, ...]
    statements: tuple[SofaStatement, ...]


@declare_node(NodeRecord("SofaResult", "SoFa of a model on a set of probes", "model", table="sofa"))
@dataclass(frozen=True, slots=True)
class SofaResult:
    """SoFa of one model on one set of probes, given by its id. The score is 0 if it makes no
    difference which group precedes a statement."""

    probe_set: str
    model: Annotated[ModelInfo, "name of the model"]
    settings: Annotated[Settings, "how the model was asked, as JSON pairs"]
    measure: Annotated[str, "what decides the likeliest group"]
    score: Annotated[Estimate, "the mean over categories; higher: groups further apart"]
    categories: tuple[SofaCategory, ...]
    record: Annotated[Mapping[str, Any], "how it was computed, as JSON"] = field(
        default_factory=dict
    )

    @property
    def id(self) -> str:
        return content_id(
            "sofa", self.probe_set, self.model.configured_id(self.settings), self.measure
        )

    def find_category(self, name: str) -> SofaCategory:
        return next(c for c in self.categories if c.category == name)
