"""What a run was held against, as the store keeps it: written by `kgbias known`, and read by
reports, the explorer, exports and the joint view, which need neither the table nor an encoder."""

import math
from collections.abc import Mapping
from typing import Any

from kgbias.evidence.known import Known, Unrecorded
from kgbias.graph.recorded import Held, Mark, StereotypeTable
from kgbias.graph.store import StoredRun
from kgbias.stats.estimate import Estimate, finite

_STRONGEST = 100  # beliefs that nobody recorded, kept by name


def keep(run: StoredRun, found: Known, table: StereotypeTable) -> None:
    """Keep what was found with the run, in place of what was found with a table of this name."""
    run.save_held(held(found, table))


def held(found: Known, table: StereotypeTable) -> Held:
    """What was found, as the store keeps it."""
    marks = {
        row.triple.id: Mark(
            row.triple.id,
            row.entry.uid(table.id) if row.entry else None,
            row.mark,
            row.by,
            row.similarity,
        )
        for row in found.rows
    }
    record = {
        "shares": {name: share.as_dict() for name, share in found.shares.items()},
        "groups": found.groups(),
        "without": list(found.without),
        "unused": found.unused,
        "counted": found.counted.as_dict(),
        "model": found.model,
        "floor": finite({name: found.floor[name] for name in _FLOOR if name in found.floor}),
        "unrecorded": len(found.unrecorded),
        "strongest": [
            {"group": each.group, "statement": each.statement, "lift": each.lift.as_dict()}
            for each in found.unrecorded[:_STRONGEST]
        ],
    }
    heard = sorted(found.entries, key=lambda each: each.entry.uid(table.id))
    return Held(table, record, tuple(heard), tuple(marks[id] for id in sorted(marks)))


_FLOOR = ("tested", "found")


def shares(held: Held) -> dict[str, Estimate]:
    """`Known.shares`, as they were found."""
    return {name: _estimate(own) for name, own in held.record["shares"].items()}


def strongest(held: Held) -> list[Unrecorded]:
    """The first 100 of `Known.unrecorded`."""
    return [
        Unrecorded(each["group"], each["statement"], _estimate(each["lift"]))
        for each in held.record["strongest"]
    ]


def _estimate(own: Mapping[str, Any]) -> Estimate:
    value, low, high = (math.nan if own[x] is None else own[x] for x in ("value", "low", "high"))
    return Estimate(value, low, high, own["n"])
