"""Said and believed: the verdicts of `kgbias.evidence` on the statements of the page."""

import math
from collections.abc import Sequence
from typing import Any

from kgbias.evidence import Evidence, joint, telling
from kgbias.evidence.verdicts import NEVER_SAID, NOT_PROBED, REFUSED
from kgbias.explore.columns import Block, Dictionary, quantised
from kgbias.explore.statements import Statements
from kgbias.graph.selection import Selection
from kgbias.graph.types import node_id
from kgbias.progress import Progress
from kgbias.text import shortened, storable

LIFT = 100  # a lift is held as whole hundredths of a bit
EACH = 30  # statements of one group that are believed of it and were never said


def add(found: Statements, block: Block, progress: Progress) -> list[dict[str, Any]]:
    """Add the columns row.verdict, row.lift and verdict (their names) for runs that were probed;
    returns what is believed and was never said, the greatest lift first."""
    probed = [run for run in found.runs if run.believings()]
    if not probed:
        return []
    progress.stage("said and believed", len(probed))
    names: Dictionary[str] = Dictionary()
    names.add(NOT_PROBED, NOT_PROBED)
    verdicts, lifts = [0] * found.rows, [math.nan] * found.rows
    never: list[dict[str, Any]] = []
    for run in probed:
        rows = joint(run, Selection(min_acceptability=0)).rows
        of_triple = {(row.arm, row.id): row for row in rows}
        for source in found.sources:
            if source.run.id != run.id:
                continue
            for place in range(source.start, source.end):
                row = of_triple.get((source.arm, found.triple_id(place)))
                if row is not None:
                    verdicts[place] = names.add(row.verdict, row.verdict)
                    lifts[place] = row.lift.value
        threshold = next(s.threshold for s in found.sources if s.run.id == run.id)
        never += [
            entry
            for verdict in (NEVER_SAID, REFUSED)
            for entry in _never(found, run.name, verdict, rows, threshold)
        ]
        progress.advance()
    block.numbers("row.verdict", verdicts)
    block.numbers("row.lift", quantised(lifts, LIFT), "i16")
    block.texts("verdict", names.texts)
    return never


def _never(
    found: Statements, run: str, verdict: str, rows: Sequence[Evidence], threshold: float
) -> list[dict[str, Any]]:
    """The most telling of each group of what was never said of it."""
    of_group: dict[str, list[Evidence]] = {}
    for row in rows:
        if row.verdict == verdict and not row.acceptability < threshold:  # nan: no score, it counts
            of_group.setdefault(row.group, []).append(row)
    return [
        {
            "run": run,
            "group": group,
            "predicate": storable(shortened(row.predicate, 200)),
            "object": storable(shortened(row.object, 200)),
            "lift": round(row.lift.value, 2),
            "verdict": verdict,
        }
        for name, own in of_group.items()
        if (group := found.groups.get(node_id("group", name))) >= 0
        for row in telling(own, EACH)
    ]
