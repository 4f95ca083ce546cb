"""Decisions that people make about answers when they review a run.

A decision belongs to a generation, by its id, and overrides it: a restored answer has the statement
that the person gave, a rejected one has none. How the crawl ended it (outcome, reason) stays.
Decisions are never changed or removed; the latest about a generation is in effect.

`Store.record_round` and `Store.load_import` apply the latest decision over what the crawl read. So
generations hold what is in effect, a resumed crawl keeps decisions, and nothing that a crawl asks
depends on them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, get_args

from kgbias.graph.record import StoredAs, properties, to_properties
from kgbias.graph.types import Generation, Triple, storable
from kgbias.ids import content_id

Verdict = Literal["restore", "reject", "undo"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, slots=True)
class Decision:
    """One person's decision about one answer.

    Attributes:
        verdict: "restore": the answer counts as `statement`; "reject": it does not count; "undo":
            it counts as the crawl had read it.
        decided: when, in ISO 8601.
        statement: that of a restored answer.
        read: the statement that the crawl had read; None if it found none.
    """

    generation_id: Annotated[str, "uid of the generation", StoredAs("generation_uid")]
    verdict: Annotated[Verdict, "restore, reject or undo"]
    reviewer: Annotated[str, "who decided"]
    decided: Annotated[str, "when, UTC; the latest about a generation is in effect"]
    statement: Triple | None = None
    read: Triple | None = None

    @property
    def id(self) -> str:
        statement_words = (
            (self.statement.predicate, self.statement.object) if self.statement else ()
        )
        parts = (self.generation_id, self.verdict, self.reviewer, self.decided, *statement_words)
        return content_id("decision", *map(storable, parts))

    @property
    def triple(self) -> Triple | None:
        """The statement that the answer counts as; None if it does not count."""
        return {"restore": self.statement, "reject": None, "undo": self.read}[self.verdict]

    @property
    def subject(self) -> Annotated[str | None, "the group"]:
        subject_statement = self.read or self.statement
        return subject_statement.subject if subject_statement else None

    @property
    def predicate(self) -> Annotated[str | None, "of the statement that was restored"]:
        return self.statement.predicate if self.statement else None

    @property
    def object(self) -> Annotated[str | None, "of the statement that was restored"]:
        return self.statement.object if self.statement else None

    @property
    def read_predicate(self) -> Annotated[str | None, "as the crawl had read it"]:
        return self.read.predicate if self.read else None

    @property
    def read_object(self) -> Annotated[str | None, "as the crawl had read it"]:
        return self.read.object if self.read else None


def latest_decisions(decisions: Iterable[Decision]) -> dict[str, Decision]:
    """The latest decision about each generation, by the generation's id."""
    # By id too: of two at the same moment, the same one in every store.
    return {d.generation_id: d for d in sorted(decisions, key=lambda d: (d.decided, d.id))}


def apply_decisions(
    generations: Sequence[Generation], effective: Mapping[str, Decision]
) -> Sequence[Generation]:
    """The generations, as a crawl read them, with the decisions in effect. A generation whose
    decision was undone is as the crawl reads it now."""
    if not effective:
        return generations
    return [
        replace(generation, triple=decision.triple)
        if (decision := effective.get(generation.id)) is not None and decision.verdict != "undo"
        else generation
        for generation in generations
    ]


DECISION_PROPERTIES = properties(Decision, moved_first=("verdict", "reviewer", "decided"))
DECISION_COLUMNS = ("uid", *(p.name for p in DECISION_PROPERTIES))
"""What stores keep for a decision."""


def decision_properties(decision: Decision) -> dict[str, str]:
    """A decision as the properties of its node, without absent ones."""
    row = {"uid": decision.id, **to_properties(decision)}
    return {name: row[name] for name in DECISION_COLUMNS if row[name] is not None}


def read_decision(row: Mapping[str, str | None]) -> Decision:
    """The decision with these properties; absent ones may be missing or None."""

    def read_triple(predicate: str | None, object: str | None) -> Triple | None:
        if predicate is None or object is None:
            return None
        return Triple(row["subject"] or "", predicate, object)

    return Decision(
        str(row["generation_uid"]),
        row["verdict"],  # type: ignore[arg-type]
        str(row["reviewer"]),
        str(row["decided"]),
        read_triple(row.get("predicate"), row.get("object")),
        read_triple(row.get("read_predicate"), row.get("read_object")),
    )
