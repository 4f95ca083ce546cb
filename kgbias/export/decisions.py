"""What an export holds of a review: the decisions, and the generations that they are about."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from kgbias.graph import shape
from kgbias.graph.decisions import Decision, in_effect
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Generation

_FIELDS = [
    p.name for p in shape.node("Generation").properties if p.name not in ("uid", "group_uid")
]


def decided(
    run: StoredRun, kept: Collection[str]
) -> Iterator[tuple[Generation, Sequence[Decision]]]:
    """The generations that people decided about, each with its decisions, oldest first: those that
    count as one of the triples that are kept (by id), or as none."""
    about: dict[str, list[Decision]] = {}
    for decision in run.decisions():
        about.setdefault(decision.generation_id, []).append(decision)
    for g in run.generations() if about else ():
        if g.id in about and (g.triple is None or g.triple.id in kept):
            yield g, about[g.id]


def counted(decisions: Sequence[Decision]) -> dict[str, int]:
    """How many answers each verdict is in effect for."""
    return dict(sorted(Counter(d.verdict for d in in_effect(decisions).values()).items()))


def generation_row(g: Generation) -> dict[str, object]:
    """A generation as the properties of its node."""
    own: dict[str, object] = {"uid": g.id, "group_uid": g.group_id}
    return own | {name: getattr(g, name) for name in _FIELDS}
