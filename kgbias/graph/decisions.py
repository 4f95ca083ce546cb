"""What people decide about answers when they review a run.

A decision belongs to a generation, by its id, and is applied over it: a restored answer has the
statement that the person gave, a rejected one has none. How the crawl ended it (outcome, reason)
stays. Decisions are never changed or removed; the latest about a generation is in effect.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from kgbias.graph.types import Generation, Triple, storable
from kgbias.ids import content_id

Verdict = Literal["restore", "reject", "undo"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
COLUMNS = (  # what stores keep of a decision
    "uid", "verdict", "reviewer", "decided", "generation_uid", "subject", "predicate", "object",
    "read_predicate", "read_object",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decision:
    """What one person decided about one answer.

    Attributes:
        generation_id: the generation that the answer ended in.
        verdict: "restore": the answer counts as `statement`; "reject": it counts as none; "undo":
            as what the crawl had read.
        reviewer: who decided.
        decided: when (ISO 8601, UTC).
        statement: of an answer that is restored.
        read: what the crawl had read, None where it found no statement.
    """

    generation_id: str
    verdict: Verdict
    reviewer: str
    decided: str
    statement: Triple | None = None
    read: Triple | None = None

    @property
    def id(self) -> str:
        said = (self.statement.predicate, self.statement.object) if self.statement else ()
        parts = (self.generation_id, self.verdict, self.reviewer, self.decided, *said)
        return content_id("decision", *map(storable, parts))

    @property
    def triple(self) -> Triple | None:
        """The statement that the answer counts as."""
        return {"restore": self.statement, "reject": None, "undo": self.read}[self.verdict]


def in_effect(decisions: Iterable[Decision]) -> dict[str, Decision]:
    """The latest decision about each generation, by the generation's id."""
    return {d.generation_id: d for d in sorted(decisions, key=lambda d: (d.decided, d.id))}


def applied(
    generations: Sequence[Generation], effective: Mapping[str, Decision]
) -> Sequence[Generation]:
    """The generations, as a crawl read them, with the decisions in effect. One that was undone
    is as the crawl reads it now."""
    if not effective:
        return generations
    return [
        replace(g, triple=d.triple)
        if (d := effective.get(g.id)) is not None and d.verdict != "undo"
        else g
        for g in generations
    ]


def decision_row(decision: Decision) -> dict[str, str]:
    """A decision as the properties of its node: those that it has."""
    row = {
        "uid": decision.id,
        "verdict": decision.verdict,
        "reviewer": decision.reviewer,
        "decided": decision.decided,
        "generation_uid": decision.generation_id,
    }
    for prefix, t in (("", decision.statement), ("read_", decision.read)):
        if t is not None:
            row |= {
                "subject": t.group,
                f"{prefix}predicate": t.predicate,
                f"{prefix}object": t.object,
            }
    return {name: storable(value) for name, value in row.items()}


def decision_of(row: Mapping[str, str | None]) -> Decision:
    """The decision of such properties, absent or None where it does not have one."""

    def triple(predicate: str | None, object: str | None) -> Triple | None:
        if predicate is None or object is None:
            return None
        return Triple(row["subject"] or "", predicate, object)

    return Decision(
        str(row["generation_uid"]),
        row["verdict"],  # type: ignore[arg-type]
        str(row["reviewer"]),
        str(row["decided"]),
        triple(row.get("predicate"), row.get("object")),
        triple(row.get("read_predicate"), row.get("read_object")),
    )
