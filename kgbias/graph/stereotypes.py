"""What a run was held against: stereotypes that people recorded in a table, and the mark that each
statement got (`kgbias known`).

The marks of a run and a table are replaced as a whole, by the table's name: an edited file takes
the place of what it was. A table is its content, so two runs held against the same one meet in the
same nodes.

Reports, the explorer and exports read these rows alone, so they need neither the table nor an
encoder. A statement that was said since then has no mark; the figures stay those of that day.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, NamedTuple

from kgbias.graph.node_records import NodeRecord, declare_node
from kgbias.graph.record import KeepsOrder, OrNaN, StoredAs
from kgbias.ids import content_id, normalise
from kgbias.io.text import storable
from kgbias.stats.estimate import Estimate, nan_to_none


@declare_node(
    NodeRecord(
        "StereotypeTable",
        "a table of stereotypes that people recorded",
        "name",
        table="stereotype_table",
        checked=("name", "checksum"),
    )
)
@dataclass(frozen=True, slots=True)
class StereotypeTable:
    """A table of stereotypes that people recorded. The id is computed from its name and content."""

    name: Annotated[str, "seegull, or what its file is called"]
    license: Annotated[str, "of the table; empty if kgbias does not know it"] = ""
    checksum: Annotated[str, "SHA-256 of its file"] = ""

    @property
    def id(self) -> str:
        return table_id(self.name, self.checksum)


def table_id(name: str, checksum: str) -> str:
    """The id of a table with this name and content."""
    return content_id("stereotype table", storable(name), checksum)


@dataclass(frozen=True, slots=True)
class Stereotype:
    """A stereotype that people recorded in a table.

    Attributes:
        source: the name of the table.
        group: whom it is about, as the table calls them.
        attribute: what is said of them.
        category: of the group; "" if the table does not say.
        offensiveness: the mean rating by the table's annotators (SeeGULL: -1, not offensive, to
            4); NaN without one.
        annotators: how many of the table's annotators took it for a stereotype of the group; None
            if the table does not say.
        statement: a wording to ask a model about; "" if the table has none.
    """

    source: str
    group: Annotated[str, "whom it is about, as the table calls them", StoredAs("people")]
    attribute: Annotated[str, "what is said of them"]
    category: Annotated[str, "of the people; empty if the table does not say"] = ""
    offensiveness: Annotated[
        OrNaN, "mean rating by the table's annotators; in SeeGULL -1, not offensive, to 4"
    ] = math.nan
    annotators: Annotated[
        int | None, "how many of the table's annotators took it for a stereotype of these people"
    ] = None
    statement: Annotated[str, "a wording to ask a model about; empty if the table has none"] = ""

    def uid(self, table: str) -> str:
        """Its id as a row of the table with this id."""
        return stereotype_id(table, self.group, self.attribute)


def stereotype_id(table: str, group: str, attribute: str) -> str:
    """The id of what a table, by its id, records about a group."""
    parts = (normalise(storable(text)) for text in (group, attribute))
    return content_id("stereotype", table, *parts)


@dataclass(frozen=True, slots=True)
class StereotypeCount:
    """SOUGHT: a recorded stereotype of a group of the run.

    Attributes:
        entry: the stereotype.
        group: the group, as the run calls it.
        statements: how many distinct statements of the run say it of the group.
        elsewhere: the share of the other groups of the category, without those that the table has
            it of too, of which the run said it; NaN if there are none.
        lift: in bits, of the stereotype as a statement after the group's names
            (`kgbias.probe.belief`), with its interval; NaN if the model was not asked about it.
        believed: whether that is a belief; None if the model was not asked.
        believed_elsewhere: as `elsewhere`, for beliefs, over the groups that were asked about.
    """

    entry: Stereotype
    group: Annotated[str, "the group, as the run calls it", StoredAs("said_of")]
    statements: Annotated[int, "distinct statements of the run that say it of the group"]
    elsewhere: Annotated[
        OrNaN, "share of the category's groups it is not recorded of, of which the run says it"
    ]
    lift: Annotated[
        Estimate, "in bits, how much likelier it is after the group's names; absent if not asked"
    ] = field(default_factory=Estimate.missing)
    believed: Annotated[bool | None, "whether the model believes it; absent if not asked"] = None
    believed_elsewhere: Annotated[OrNaN, "as elsewhere, of what the model believes"] = math.nan


@dataclass(frozen=True, slots=True)
class StereotypeMatch:
    """RECORDED: what a table has about a statement: "known" or "related", with the stereotype that
    is nearest; or NEW_TO: "new" to the table, and no stereotype."""

    triple_id: str
    stereotype_id: str | None
    mark: Annotated[str, "known or related"]
    by: Annotated[str, "how they go together: by words or by meaning", StoredAs("matched_by")] = ""
    similarity: Annotated[OrNaN, "cosine of what the two claim, -1 to 1"] = math.nan


@dataclass(frozen=True, slots=True)
class UnrecordedBelief:
    """A belief to which the table records nothing similar: the group, the statement, and its lift
    in bits."""

    group: str
    statement: str
    lift: Estimate


KNOWN, NEW = "known", "new"
"""The marks of statements that a table has, and of those to which it has nothing similar."""
MARK_MEANINGS: Mapping[str, str] = {
    KNOWN: "the table records it about this group",
    "related": "the table records something similar about this group",
    NEW: "the table records nothing similar about this group",
}
"""Each mark with what it means."""


@dataclass(frozen=True)
class StereotypeMatches:
    """HELD_AGAINST: a run held against a table.

    Attributes:
        table: the table.
        record: what was found in all: `shares`, `strongest`, how many beliefs are `unrecorded`,
            and what else `from_matches` was given.
        heard: the recorded stereotypes of the run's groups, by id.
        marks: of the statements about these groups, by triple.
    """

    table: StereotypeTable
    record: Annotated[Mapping[str, Any], KeepsOrder(), "what was found in all, as JSON"]
    heard: tuple[StereotypeCount, ...] = ()
    marks: tuple[StereotypeMatch, ...] = ()

    @classmethod
    def from_matches(
        cls,
        table: StereotypeTable,
        counts: Iterable[StereotypeCount],
        marks: Iterable[StereotypeMatch],
        *,
        shares: Mapping[str, Estimate],
        unrecorded: Sequence[UnrecordedBelief],
        **other_results: Any,
    ) -> "StereotypeMatches":
        """What was found. Of the beliefs that are not recorded, strongest first, a hundred are
        kept by name."""
        strongest = [
            {"group": belief.group, "statement": belief.statement, "lift": belief.lift.as_dict()}
            for belief in unrecorded[:_MAX_STRONGEST]
        ]
        record = {
            "shares": {name: share.as_dict() for name, share in shares.items()},
            "unrecorded": len(unrecorded),
            "strongest": strongest,
            **nan_to_none(other_results),
        }
        by_triple = {mark.triple_id: mark for mark in marks}  # one for each, whatever the arms
        return cls(
            table,
            record,
            tuple(sorted(counts, key=lambda belief: belief.entry.uid(table.id))),
            tuple(by_triple[id] for id in sorted(by_triple)),
        )

    @property
    def shares(self) -> dict[str, Estimate]:
        """The shares of the table that are said and believed, as they were found."""
        return {name: _read_estimate(values) for name, values in self.record["shares"].items()}

    @property
    def strongest(self) -> list[UnrecordedBelief]:
        """The strongest beliefs to which the table has nothing similar, at most a hundred."""
        return [
            UnrecordedBelief(belief["group"], belief["statement"], _read_estimate(belief["lift"]))
            for belief in self.record["strongest"]
        ]

    @cached_property
    def entries(self) -> Mapping[str, Stereotype]:
        """The recorded stereotypes, by id."""
        return {count.entry.uid(self.table.id): count.entry for count in self.heard}


_MAX_STRONGEST = 100


def _read_estimate(values: Mapping[str, Any]) -> Estimate:
    value, low, high = (
        math.nan if values[x] is None else values[x] for x in ("value", "low", "high")
    )
    return Estimate(value, low, high, values["n"])


@dataclass(frozen=True, slots=True)
class BestMatch:
    """What the tables that a run was held against have about a statement: the mark, the name of
    the table, or of all those to which it is new, and the nearest stereotype unless it is new."""

    mark: str
    source: str
    entry: Stereotype | None = None
    matched_by: str = ""
    similarity: float = math.nan

    @property
    def attribute(self) -> str:
        """The attribute of the nearest stereotype, "" if the statement is new."""
        return self.entry.attribute if self.entry else ""


def best_matches(tables: Iterable[StereotypeMatches]) -> dict[str, BestMatch]:
    """The marks of a run's statements, by the triple's id: of several tables the strongest (known
    before related before new, then words before meaning, then the higher cosine; of equal ones the
    first table)."""
    best: dict[str, BestMatch] = {}
    for table_matches in tables:
        for mark in table_matches.marks:
            entry = table_matches.entries[mark.stereotype_id] if mark.stereotype_id else None
            candidate = BestMatch(
                mark.mark, table_matches.table.name, entry, mark.by, mark.similarity
            )
            best_so_far = best.get(mark.triple_id)
            if best_so_far is None or _match_strength(candidate) > _match_strength(best_so_far):
                best[mark.triple_id] = candidate
            elif candidate.mark == best_so_far.mark == NEW:
                best[mark.triple_id] = BestMatch(NEW, f"{best_so_far.source}, {candidate.source}")
    return best


class _MatchStrength(NamedTuple):
    """What makes one match stronger than another, in order of weight."""

    is_known: bool
    is_recorded: bool
    is_by_words: bool
    similarity: float


def _match_strength(best_match: BestMatch) -> _MatchStrength:
    # NaN is neither more nor less than a number: no order would come of it.
    similarity = -math.inf if math.isnan(best_match.similarity) else best_match.similarity
    return _MatchStrength(
        best_match.mark == KNOWN,
        best_match.mark != NEW,
        best_match.matched_by == "words",
        similarity,
    )
