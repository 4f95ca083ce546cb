"""Said and believed: the verdicts of `kgbias.evidence` on the statements of the page; and what
else stands beside them, in stories and in tables of recorded stereotypes.

The page and a server give what a model believes about a statement in the same form: {model, rows:
[{group, lift, low, high, names, q_value, verdict, min_loo_lift, most_influential_name}]}, a row for
each group, greatest lift first.
"""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from kgbias.evidence.evidence_table import (
    NEVER_SAID,
    NOT_PROBED,
    REFUSED_GROUP_BUT_BELIEVED,
    Evidence,
    build_evidence,
    select_top_rows,
)
from kgbias.evidence.story_evidence import StoryEvidence
from kgbias.explore.columns import ColumnBlock, KeyNumbers, quantise
from kgbias.explore.statements import RowIndex, StatementTable
from kgbias.graph.selection import Selection
from kgbias.graph.stereotypes import MARK_MEANINGS, BestMatch, best_matches
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BeliefRun, BelievedEdge, Triple, statement_id
from kgbias.io.progress import Progress
from kgbias.io.text import shorten, storable
from kgbias.io.wording import pluralise
from kgbias.probe.result import Statement

LIFT_SCALE = 100  # lifts are stored as whole hundredths of a bit
MAX_NEVER_SAID = 30  # statements per group that are believed but were never said


def add_verdicts(
    table: StatementTable, block: ColumnBlock, progress: Progress
) -> list[dict[str, Any]]:
    """Add the columns row.verdict, row.lift and verdict (their names) for runs that were probed;
    return what is believed but was never said, greatest lift first."""
    probed_runs = [run for run in table.runs if run.find_all(BeliefRun)]
    if not probed_runs:
        return []
    progress.stage("said and believed", len(probed_runs))
    names: KeyNumbers[str] = KeyNumbers()
    names.add(NOT_PROBED, NOT_PROBED)
    verdicts, lifts = [0] * table.rows, [math.nan] * table.rows
    never_said: list[dict[str, Any]] = []
    for run in probed_runs:
        rows = build_evidence(run, Selection(min_acceptability=0)).rows
        evidence_by_triple = {(row.arm, row.id): row for row in rows}
        for source in table.sources:
            if source.run.id != run.id:
                continue
            for place in range(source.start, source.end):
                row = evidence_by_triple.get((source.arm, table.triple_id(place)))
                if row is not None:
                    verdicts[place] = names.add(row.verdict, row.verdict)
                    lifts[place] = row.lift.value
        threshold = next(s.min_acceptability for s in table.sources if s.run.id == run.id)
        never_said += [
            entry
            for verdict in (NEVER_SAID, REFUSED_GROUP_BUT_BELIEVED)
            for entry in _list_never_said(table, run, verdict, rows, threshold)
        ]
        progress.advance()
    block.add_numbers("row.verdict", verdicts)
    block.add_numbers("row.lift", quantise(lifts, LIFT_SCALE), "i16")
    block.add_texts("verdict", names.texts)
    return never_said


def add_story_shares(table: StatementTable, block: ColumnBlock) -> None:
    """Add the columns row.story_share and story_share (texts; the first is ""): how often stories
    by the model of a row's run say the same of its group. None are added if no story was read
    so."""
    texts: KeyNumbers[str] = KeyNumbers()
    texts.add("", "")
    rows = [0] * table.rows
    ids = [id for id, _ in table.groups.items()]
    stories = {run.id: StoryEvidence.read(run) for run in table.runs}
    for source in table.sources:
        run_stories = stories[source.run.id]
        for row in range(source.start, source.end) if run_stories.story_run else ():
            predicate, object_number = table.predicate[row], table.object[row]
            statement = Statement(
                table.predicates.texts[predicate], table.objects.texts[object_number]
            )
            story_share = run_stories.find_share(ids[table.group[row]], statement)
            if story_share.has_interval:
                text = (
                    f"{story_share.value:.0%} ({story_share.format_interval('.0%')}) of "
                    f"{pluralise(story_share.n, 'prompt')}"
                )
                text = f"{text}, run {storable(run_stories.story_run)}"
                rows[row] = texts.add(text, text)
    if len(texts) > 1:
        block.add_numbers("row.story_share", rows)
        block.add_texts("story_share", texts.texts)


def add_recorded_marks(table: StatementTable, block: ColumnBlock) -> None:
    """Add the columns row.mark and mark (their names; the first is for statements that were not
    held against a table: of a group that no table has, left out, or said since), row.recorded
    and recorded (texts; the first is ""): what tables of recorded stereotypes have
    about a statement. None are added if no run was held against one."""
    marks = {run.id: best_matches(run.stereotype_matches()) for run in table.runs}
    if not any(marks.values()):
        return
    names, texts = ["not compared", *MARK_MEANINGS], KeyNumbers[str]()
    texts.add("", "")
    mark_numbers, text_numbers = [0] * table.rows, [0] * table.rows
    for source in table.sources:
        run_marks = marks[source.run.id]
        for row in range(source.start, source.end):
            mark = run_marks.get(table.triple_id(row))
            if mark is not None:
                text = storable(_describe_nearest(mark))
                mark_numbers[row] = names.index(mark.mark)
                text_numbers[row] = texts.add(text, text)
    block.add_numbers("row.mark", mark_numbers)
    block.add_texts("mark", names)
    block.add_numbers("row.recorded", text_numbers)
    block.add_texts("recorded", texts.texts)


def _describe_nearest(mark: BestMatch) -> str:
    """The recorded stereotype that is nearest to a statement, and what its table says of it."""
    stereotype = mark.entry
    if stereotype is None:
        return f"nothing similar about this group in {mark.source}"
    text_parts = [f"{mark.source}, of {stereotype.group}", f"matched by {mark.matched_by}"]
    if not math.isnan(stereotype.offensiveness):
        text_parts.append(f"offensiveness {stereotype.offensiveness:+.1f}")
    if stereotype.annotators is not None:
        text_parts.append(f"{stereotype.annotators} of its annotators called it a stereotype")
    return f"{shorten(stereotype.attribute, 200)} ({'; '.join(text_parts)})"


def _list_never_said(
    table: StatementTable, run: StoredRun, verdict: str, rows: Sequence[Evidence], threshold: float
) -> list[dict[str, Any]]:
    """For each group, the most telling statements never said about it."""
    rows_by_group: dict[str, list[Evidence]] = {}
    for row in rows:
        # "Not less": without a score (NaN), it counts.
        if row.verdict == verdict and not row.acceptability < threshold:
            rows_by_group.setdefault(row.group, []).append(row)
    never_said = []
    for name, group_rows in rows_by_group.items():
        group = table.groups.find(run.find_group(name).id)
        for row in select_top_rows(group_rows, MAX_NEVER_SAID) if group >= 0 else ():
            never_said.append(
                {
                    "run": run.name,
                    "group": group,
                    "predicate": storable(shorten(row.predicate, 200)),
                    "object": storable(shorten(row.object, 200)),
                    "lift": round(row.lift.value, 2),
                    "verdict": verdict,
                }
            )
    return never_said


def iter_belief_runs(row_index: RowIndex) -> Iterator[tuple[StoredRun, BeliefRun]]:
    """Each run with each model that probed it by names."""
    return ((run, belief_run) for run in row_index.runs for belief_run in run.find_all(BeliefRun))


def build_block(table: StatementTable) -> ColumnBlock:
    """What is believed about the statements of the page, for each of `iter_belief_runs`: for each
    statement, in order of predicate and object, a list of one as JSON text."""
    block = ColumnBlock()
    for number, (run, belief_run) in enumerate(iter_belief_runs(table)):
        edges = [
            (table.predicates.find(e.predicate_id), table.objects.find(e.object_id), e)
            for e in run.find_all(BelievedEdge, asking=belief_run)
        ]
        edges = sorted((row for row in edges if min(row[:2]) >= 0), key=lambda row: row[:2])
        places, texts = [], []
        for place, statement_edges in groupby(edges, key=lambda row: row[:2]):
            places.append(place)
            texts.append(
                json.dumps(_belief_rows(table, belief_run, [e for *_, e in statement_edges]))
            )
        block.add_numbers(f"belief{number}.predicate", [p for p, _ in places])
        block.add_numbers(f"belief{number}.object", [o for _, o in places])
        block.add_texts(f"belief{number}.rows", texts)
    return block


def read_statement_beliefs(
    row_index: RowIndex, run: StoredRun, triple: Triple
) -> list[dict[str, Any]]:
    """What each model that probed a run by names believes about one statement, read from the
    store."""
    beliefs = []
    for belief_run in run.find_all(BeliefRun):
        edges = run.find_all(
            BelievedEdge,
            asking=belief_run,
            statement_id=statement_id(triple.predicate_id, triple.object_id),
        )
        beliefs += _belief_rows(row_index, belief_run, edges)
    return beliefs


def _belief_rows(
    row_index: RowIndex, belief_run: BeliefRun, edges: Sequence[BelievedEdge]
) -> list[Any]:
    rows = [
        {
            "group": row_index.groups.find(e.group_id),
            "lift": _round_finite(e.lift),
            "low": _round_finite(e.low),
            "high": _round_finite(e.high),
            "names": e.names,
            "q_value": _round_finite(e.q_value),
            "verdict": e.verdict,
            "min_loo_lift": _round_finite(e.min_loo_lift),
            "most_influential_name": storable(e.most_influential_name),
        }
        for e in sorted(edges, key=lambda e: (-e.lift, row_index.groups.find(e.group_id)))
        if row_index.groups.find(e.group_id) >= 0
    ]
    return [{"model": belief_run.model.title, "rows": rows}] if rows else []


def _round_finite(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None
