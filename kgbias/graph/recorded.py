"""What a run was held against: stereotypes that people recorded in a table, and the mark that each
statement got (`kgbias.evidence.known`).

The marks of a run and a table are replaced as a whole, by the table's name: an edited file takes
the place of what it was. A table is its content, so two runs held against the same one meet in the
same nodes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from kgbias.graph.record import Called, InOrder, OrNaN
from kgbias.ids import content_id, normalise
from kgbias.io.text import storable
from kgbias.stats.estimate import Estimate, nan_to_none


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
    group: Annotated[str, "whom it is about, as the table calls them", Called("people")]
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
class Heard:
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
    group: Annotated[str, "the group, as the run calls it", Called("said_of")]
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
class Mark:
    """RECORDED: what a table has about a statement: "known" or "related", with the stereotype that
    is nearest; or NEW_TO: "new" to the table, and no stereotype."""

    triple_id: str
    stereotype_id: str | None
    mark: Annotated[str, "known or related"]
    by: Annotated[str, "how they go together: by words or by meaning", Called("matched_by")] = ""
    similarity: Annotated[OrNaN, "cosine of what the two claim, -1 to 1"] = math.nan


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A belief to which the table records nothing similar: the group, the statement, and its lift
    in bits."""

    group: str
    statement: str
    lift: Estimate


KNOWN, NEW = "known", "new"
"""The marks of statements that a table has, and of those to which it has nothing similar."""


@dataclass(frozen=True)
class Held:
    """HELD_AGAINST: a run held against a table.

    Attributes:
        table: the table.
        record: what was found in all: `shares`, `strongest`, how many beliefs are `unrecorded`,
            and what else `of` was given.
        heard: the recorded stereotypes of the run's groups, by id.
        marks: of the statements about these groups, by triple.
    """

    table: StereotypeTable
    record: Annotated[Mapping[str, Any], InOrder(), "what was found in all, as JSON"]
    heard: tuple[Heard, ...] = ()
    marks: tuple[Mark, ...] = ()

    @classmethod
    def of(
        cls,
        table: StereotypeTable,
        heard: Iterable[Heard],
        marks: Iterable[Mark],
        *,
        shares: Mapping[str, Estimate],
        unrecorded: Sequence[Unrecorded],
        **found: Any,
    ) -> "Held":
        """What was found. Of the beliefs that are not recorded, strongest first, a hundred are
        kept by name."""
        strongest = [
            {"group": each.group, "statement": each.statement, "lift": each.lift.as_dict()}
            for each in unrecorded[:_STRONGEST]
        ]
        record = {
            "shares": {name: share.as_dict() for name, share in shares.items()},
            "unrecorded": len(unrecorded),
            "strongest": strongest,
            **nan_to_none(found),
        }
        by_triple = {mark.triple_id: mark for mark in marks}  # one for each, whatever the arms
        return cls(
            table,
            record,
            tuple(sorted(heard, key=lambda each: each.entry.uid(table.id))),
            tuple(by_triple[id] for id in sorted(by_triple)),
        )

    @property
    def shares(self) -> dict[str, Estimate]:
        """`kgbias.evidence.known.Known.shares`, as they were found."""
        return {name: _estimate(own) for name, own in self.record["shares"].items()}

    @property
    def strongest(self) -> list[Unrecorded]:
        """The strongest beliefs to which the table has nothing similar, at most a hundred."""
        return [
            Unrecorded(own["group"], own["statement"], _estimate(own["lift"]))
            for own in self.record["strongest"]
        ]

    @cached_property
    def entries(self) -> Mapping[str, Stereotype]:
        """The recorded stereotypes, by id."""
        return {each.entry.uid(self.table.id): each.entry for each in self.heard}


_STRONGEST = 100


def _estimate(own: Mapping[str, Any]) -> Estimate:
    value, low, high = (math.nan if own[x] is None else own[x] for x in ("value", "low", "high"))
    return Estimate(value, low, high, own["n"])


COLUMNS = ("recorded", "recorded_as", "recorded_source")
"""What a statement's columns are called where it is exported: the mark, the attribute of the
nearest stereotype ("" if it is new), and the table."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the tables that a run was held against have about a statement: the mark, the name of
    the table, or of all those to which it is new, and the nearest stereotype unless it is new."""

    mark: str
    source: str
    entry: Stereotype | None = None
    by: str = ""
    similarity: float = math.nan

    @property
    def cells(self) -> dict[str, Any]:
        """The columns of a statement with this mark."""
        named = self.entry.attribute if self.entry else ""
        return dict(zip(COLUMNS, (self.mark, named, self.source), strict=True))


def recorded(tables: Iterable[Held]) -> dict[str, Recorded]:
    """The marks of a run's statements, by the triple's id: of several tables the strongest (known
    before related before new, then words before meaning, then the higher cosine; of equal ones the
    first table)."""
    best: dict[str, Recorded] = {}
    for each in tables:
        for mark in each.marks:
            entry = each.entries[mark.stereotype_id] if mark.stereotype_id else None
            own = Recorded(mark.mark, each.table.name, entry, mark.by, mark.similarity)
            before = best.get(mark.triple_id)
            if before is None or _strength(own) > _strength(before):
                best[mark.triple_id] = own
            elif own.mark == before.mark == NEW:
                best[mark.triple_id] = Recorded(NEW, f"{before.source}, {own.source}")
    return best


def _strength(own: Recorded) -> tuple[bool, bool, bool, float]:
    similarity = own.similarity if own.similarity == own.similarity else -math.inf
    return own.mark == KNOWN, own.mark != NEW, own.by == "words", similarity
