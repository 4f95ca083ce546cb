"""Said and believed: the verdicts of `kgbias.evidence` on the statements of the page; and what
else stands beside them, in stories and in tables of recorded stereotypes.

The page and a server give what a model believes about a statement in the same form: {model, rows:
[{group, lift, low, high, names, p, verdict, least, swayed}]}, a row for each group, greatest lift
first.
"""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from kgbias.evidence.evidence_table import NEVER_SAID, NOT_PROBED, REFUSED_BUT_BELIEVED, Evidence, build_evidence, select_top_rows
from kgbias.evidence.stereotype_matching import MARK_MEANINGS
from kgbias.evidence.story_evidence import StoryEvidence
from kgbias.explore.columns import Block, Dictionary, quantised
from kgbias.explore.statements import Placed, Statements
from kgbias.graph.stereotypes import BestMatch, best_matches
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BelievedEdge, BeliefRun, Triple, node_id, statement_id
from kgbias.io.progress import Progress
from kgbias.io.text import shorten, storable
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate

LIFT = 100  # lifts are stored as whole hundredths of a bit
EACH = 30  # statements per group that are believed but were never said


def add(found: Statements, block: Block, progress: Progress) -> list[dict[str, Any]]:
    """Add the columns row.verdict, row.lift and verdict (their names) for runs that were probed;
    return what is believed but was never said, greatest lift first."""
    probed = [run for run in found.runs if run.belief_runs()]
    if not probed:
        return []
    progress.stage("said and believed", len(probed))
    names: Dictionary[str] = Dictionary()
    names.add(NOT_PROBED, NOT_PROBED)
    verdicts, lifts = [0] * found.rows, [math.nan] * found.rows
    never: list[dict[str, Any]] = []
    for run in probed:
        rows = build_evidence(run, Selection(min_acceptability=0)).rows
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
            for verdict in (NEVER_SAID, REFUSED_BUT_BELIEVED)
            for entry in _never(found, run.name, verdict, rows, threshold)
        ]
        progress.advance()
    block.numbers("row.verdict", verdicts)
    block.numbers("row.lift", quantised(lifts, LIFT), "i16")
    block.texts("verdict", names.texts)
    return never


def add_told(found: Statements, block: Block) -> None:
    """Add the columns row.told and told (texts; the first is ""): how often stories by the model of
    a row's run say the same of its group. None are added if no story was read so."""
    texts: Dictionary[str] = Dictionary()
    texts.add("", "")
    rows = [0] * found.rows
    ids = [id for id, _ in found.groups.items()]
    stories = {run.id: StoryEvidence.read(run) for run in found.runs}
    for source in found.sources:
        own = stories[source.run.id]
        for row in range(source.start, source.end) if own.story_run else ():
            predicate, thing = found.predicate[row], found.object[row]
            said = Statement(found.predicates.texts[predicate], found.objects.texts[thing])
            told: Estimate = own.build_cells(ids[found.group[row]], said)["told"]
            if told.has_interval:
                text = f"{told.value:.0%} ({told.interval('.0%')}) of {told.n} prompts"
                text = f"{text}, run {storable(own.story_run)}"
                rows[row] = texts.add(text, text)
    if len(texts) > 1:
        block.numbers("row.told", rows)
        block.texts("told", texts.texts)


def add_recorded(found: Statements, block: Block) -> None:
    """Add the columns row.mark and mark (their names; the first is for statements that were not
    held against a table: of a group that no table has, left out, or said since), row.recorded
    and recorded (texts; the first is ""): what tables of recorded stereotypes have
    about a statement. None are added if no run was held against one."""
    marks = {run.id: best_matches(run.stereotype_matches()) for run in found.runs}
    if not any(marks.values()):
        return
    names, texts = ["not compared", *MARK_MEANINGS], Dictionary[str]()
    texts.add("", "")
    of_rows, numbers = [0] * found.rows, [0] * found.rows
    for source in found.sources:
        own = marks[source.run.id]
        for row in range(source.start, source.end):
            if (mark := own.get(found.triple_id(row))) is not None:
                text = storable(_nearest(mark))
                of_rows[row], numbers[row] = names.index(mark.mark), texts.add(text, text)
    block.numbers("row.mark", of_rows)
    block.texts("mark", names)
    block.numbers("row.recorded", numbers)
    block.texts("recorded", texts.texts)


def _nearest(mark: BestMatch) -> str:
    """The recorded stereotype that is nearest to a statement, and what its table says of it."""
    if (entry := mark.entry) is None:
        return f"nothing similar about this group in {mark.source}"
    parts = [f"{mark.source}, of {entry.group}", f"matched by {mark.matched_by}"]
    if not math.isnan(entry.offensiveness):
        parts.append(f"offensiveness {entry.offensiveness:+.1f}")
    if entry.annotators is not None:
        parts.append(f"{entry.annotators} of its annotators called it a stereotype")
    return f"{shorten(entry.attribute, 200)} ({'; '.join(parts)})"


def _never(
    found: Statements, run: str, verdict: str, rows: Sequence[Evidence], threshold: float
) -> list[dict[str, Any]]:
    """For each group, the most telling statements never said about it."""
    of_group: dict[str, list[Evidence]] = {}
    for row in rows:
        if (
            row.verdict == verdict and not row.acceptability < threshold
        ):  # NaN: without a score, it counts
            of_group.setdefault(row.group, []).append(row)
    return [
        {
            "run": run,
            "group": group,
            "predicate": storable(shorten(row.predicate, 200)),
            "object": storable(shorten(row.object, 200)),
            "lift": round(row.lift.value, 2),
            "verdict": verdict,
        }
        for name, own in of_group.items()
        if (group := found.groups.get(node_id("group", name))) >= 0
        for row in select_top_rows(own, EACH)
    ]


def believings(found: Placed) -> Iterator[tuple[StoredRun, BeliefRun]]:
    """Each run with each model that probed it by names."""
    return ((run, believing) for run in found.runs for believing in run.belief_runs())


def block(found: Statements) -> Block:
    """What is believed about the statements of the page, for each of `believings`: for each
    statement, in order of predicate and object, a list of one as JSON text."""
    block = Block()
    for number, (run, believing) in enumerate(believings(found)):
        edges = [
            (found.predicates.get(e.predicate_id), found.objects.get(e.object_id), e)
            for e in run.beliefs(believing.id)
        ]
        edges = sorted((row for row in edges if min(row[:2]) >= 0), key=lambda row: row[:2])
        places, texts = [], []
        for place, own in groupby(edges, key=lambda row: row[:2]):
            places.append(place)
            texts.append(json.dumps(_told(found, believing, [e for *_, e in own])))
        block.numbers(f"belief{number}.predicate", [p for p, _ in places])
        block.numbers(f"belief{number}.object", [o for _, o in places])
        block.texts(f"belief{number}.told", texts)
    return block


def beliefs_of(found: Placed, run: StoredRun, said: Triple) -> list[dict[str, Any]]:
    """What each model that probed a run by names believes about one statement, read from the
    store."""
    told = []
    for believing in run.belief_runs():
        edges = run.beliefs(believing.id, statement_id(said.predicate_id, said.object_id))
        told += _told(found, believing, edges)
    return told


def _told(found: Placed, believing: BeliefRun, edges: Sequence[BelievedEdge]) -> list[Any]:
    rows = [
        {
            "group": found.groups.get(e.group_id),
            "lift": _rounded(e.lift),
            "low": _rounded(e.low),
            "high": _rounded(e.high),
            "names": e.names,
            "p": _rounded(e.q_value),
            "verdict": e.verdict,
            "least": _rounded(e.least),
            "swayed": storable(e.swayed_by),
        }
        for e in sorted(edges, key=lambda e: (-e.lift, found.groups.get(e.group_id)))
        if found.groups.get(e.group_id) >= 0
    ]
    return [{"model": believing.model.title, "rows": rows}] if rows else []


def _rounded(x: float) -> float | None:
    return round(x, 3) if math.isfinite(x) else None
