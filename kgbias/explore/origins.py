"""Where each statement comes from: prompts, raw answers, ids, probes and association tests.

Texts repeat: a prompt's examples are other prompts' answers. They are kept as lists of lines, each
line once. The first `MAX_ANSWERS` answers of a statement are kept, the first answers of all
statements first, up to `MAX_LINE_CHARACTERS` of distinct lines; what is left out is counted and
reported.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kgbias.explore.beliefs import read_statement_beliefs
from kgbias.explore.choices import read_choices
from kgbias.explore.columns import ColumnBlock, KeyNumbers, LineTexts
from kgbias.explore.statements import RowIndex, StatementTable
from kgbias.graph.cross_mentions import MentionIndex
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    AssociationNode,
    Generation,
    ProbedEdge,
    ProbeRun,
    Triple,
    statement_id,
)
from kgbias.io.progress import Progress
from kgbias.io.text import storable
from kgbias.io.wording import pluralise

MAX_ANSWERS = 5  # answers of one statement
MAX_TEXT_CHARACTERS = 2_000  # characters of a prompt or an answer
MAX_LINE_CHARACTERS = 40_000_000  # characters of all distinct lines of the page
MAX_TOKEN_PROBES = 20_000  # probes of one model whose tokens are kept
_BATCH_ROWS = 5_000  # rows whose answers are read at once


class OriginBlock(NamedTuple):
    """Prompts and answers of the page, and how many answers there are and are left out."""

    block: ColumnBlock
    counts: dict[str, int]


def build_block(table: StatementTable, progress: Progress) -> OriginBlock:
    """The prompts and answers that the page holds, and how many answers it leaves out."""
    block, texts = ColumnBlock(), LineTexts()
    templates: KeyNumbers[str] = KeyNumbers()
    origins = _first_generations(table)
    entries_by_row: list[list[list[int]]] = [[] for _ in origins]
    kept_count, total = 0, len(table.answer_details)
    progress.stage("prompts and answers", len(origins))
    for number in range(MAX_ANSWERS):
        for source in table.sources:
            rows = [n for n in range(source.start, source.end) if len(origins[n]) > number]
            for row_chunk in (
                rows[first : first + _BATCH_ROWS] for first in range(0, len(rows), _BATCH_ROWS)
            ):
                generations = [origins[n][number] for n in row_chunk]
                if texts.characters <= MAX_LINE_CHARACTERS:
                    answers = source.run.store.answers(
                        [
                            generation.answer_key
                            for generation in generations
                            if generation.answer_key
                        ]
                    )
                    for row, generation in zip(row_chunk, generations, strict=True):
                        prompt_number = texts.add(_shorten(generation.prompt))
                        answer = answers.get(generation.answer_key)
                        answer_number = texts.add(_shorten(answer.text)) + 1 if answer else 0
                        template = _template_label(generation)
                        entries_by_row[row].append(
                            [
                                prompt_number,
                                answer_number,
                                templates.add(template, template),
                                generation.attempt + 1,
                            ]
                        )
                        kept_count += 1
                if not number:
                    progress.advance(len(row_chunk))
    flat = [entry for row_entries in entries_by_row for entry in row_entries]
    block.add_numbers("row.kept", [len(row_entries) for row_entries in entries_by_row])
    for column, name in enumerate(("prompt", "answer", "template", "attempt")):
        block.add_numbers(f"kept.{name}", [entry[column] for entry in flat])
    block.add_texts("template", [storable(t) for t in templates.texts])
    texts.write_to(block, "text")
    _add_named_groups(block, table, origins)
    return OriginBlock(block, {"answers": total, "left_out": total - kept_count})


def _add_named_groups(
    block: ColumnBlock, table: StatementTable, origins: Sequence[Sequence[Generation]]
) -> None:
    """Add the rows that name groups other than their own, and these groups."""
    rows, names = [], []
    for source in table.sources:
        mention_index = MentionIndex(source.run.groups)
        for row in range(source.start, source.end):
            triple = next((g.triple for g in origins[row] if g.triple), None)
            if triple and (other_groups := mention_index.other_groups(triple)):
                rows.append(row)
                names.append(storable(", ".join(other_groups)))
    block.add_numbers("names.row", rows)
    block.add_texts("names.others", names)


ANSWERS_PER_BATCH = 20  # answers of a statement that a server gives at a time


def read_origin(row_index: RowIndex, row: int, start: int = 0) -> dict[str, Any]:
    """Where one statement comes from, read from the store: `ANSWERS_PER_BATCH` of its answers from
    number `start` on, and with the first batch its beliefs, probes, forced choices, and the other
    groups that it names."""
    source, triple = row_index.source(row), row_index.triple_id(row)
    generations = source.run.generations_of_triple(
        triple, source.arm, offset=start, limit=ANSWERS_PER_BATCH
    )
    answers_by_key = source.run.store.answers(
        [generation.answer_key for generation in generations if generation.answer_key]
    )
    answers = [
        {
            "asked": _shorten(generation.prompt),
            "answer": _shorten(answers_by_key[generation.answer_key].text)
            if generation.answer_key in answers_by_key
            else None,
            "template": _template_label(generation),
            "attempt": generation.attempt + 1,
        }
        for generation in generations
    ]
    first_triple = next(
        (generation.triple for generation in generations if generation.triple), None
    )
    if first_triple is None or start:
        return {"answers": answers, "probes": [], "beliefs": [], "choices": [], "names": ""}
    return {
        "answers": answers,
        "probes": _read_probes(row_index, source.run, first_triple),
        "beliefs": read_statement_beliefs(row_index, source.run, first_triple),
        "choices": read_choices(row_index, source.run, first_triple),
        "names": ", ".join(MentionIndex(source.run.groups).other_groups(first_triple)),
    }


def _read_probes(row_index: RowIndex, run: StoredRun, triple: Triple) -> list[dict[str, Any]]:
    """What each model that the run was probed with finds likely before a statement."""
    probes_by_model = []
    for probe_run in run.find_all(ProbeRun):
        edges = run.find_all(
            ProbedEdge,
            asking=probe_run,
            statement_id=statement_id(triple.predicate_id, triple.object_id),
        )
        rows = [
            {
                "group": row_index.groups.find(e.group_id),
                "rank": e.rank,
                "bits": round(max(0.0, -e.statement_log_likelihood / math.log(2)), 1),
                "pieces": [storable(p) for p in e.pieces],
                "surprisal": [round(max(0.0, b), 1) for b in e.bits],
            }
            for e in sorted(edges, key=lambda e: e.rank)
            if row_index.groups.find(e.group_id) >= 0
        ]
        if rows:
            probes_by_model.append({"model": probe_run.model.title, "rows": rows})
    return probes_by_model


def _first_generations(table: StatementTable) -> list[list[Generation]]:
    """The first `MAX_ANSWERS` generations of each row, in the order of the crawl."""
    origins: list[list[Generation]] = [[] for _ in range(table.rows)]
    for run in table.runs:
        run_sources = [source for source in table.sources if source.run.id == run.id]
        row_by_triple = {
            (s.arm, table.triple_id(n)): n for s in run_sources for n in range(s.start, s.end)
        }
        for generation in run.generations():
            if (triple := generation.triple) is None:
                continue
            place = row_by_triple.get((generation.arm, triple.id))
            if place is not None and len(origins[place]) < MAX_ANSWERS:
                origins[place].append(generation)
    return origins


def _template_label(generation: Generation) -> str:
    return f"{generation.template} {generation.template_hash[:8]}".strip()


def _shorten(text: str) -> str:
    text = storable(text)
    return (
        text
        if len(text) <= MAX_TEXT_CHARACTERS
        else f"{text[:MAX_TEXT_CHARACTERS]}… ({pluralise(len(text), 'character', spec=',')})"
    )


class ProbeBlock(NamedTuple):
    """The probes of the statements, and the models that were probed."""

    block: ColumnBlock
    models: list[dict[str, Any]]


def build_probe_block(table: StatementTable) -> ProbeBlock:
    """The probes of the statements: each after every group of its category, under each model that a
    run was probed with."""
    block = ColumnBlock()
    models: list[dict[str, Any]] = []
    pieces: KeyNumbers[str] = KeyNumbers()
    for run in table.runs:
        for probe_run in run.find_all(ProbeRun):
            edges = run.find_all(ProbedEdge, asking=probe_run)
            if edges:
                _add_probe_run(block, f"probe{len(models)}", table, edges, pieces)
                models.append(
                    {"run": run.name, "model": probe_run.model.title, "edges": len(edges)}
                )
    block.add_texts("piece", [storable(t) for t in pieces.texts])
    return ProbeBlock(block, models)


class _PlacedProbe(NamedTuple):
    """A probe, with the numbers of its statement's predicate and object in the page."""

    predicate: int
    object: int
    rank: int
    edge: ProbedEdge


def _add_probe_run(
    block: ColumnBlock,
    name: str,
    table: StatementTable,
    edges: Sequence[ProbedEdge],
    pieces: KeyNumbers[str],
) -> None:
    """Add the edges of one probing, by statement and rank, with the tokens of the first
    `MAX_TOKEN_PROBES`."""
    probes = [
        _PlacedProbe(
            table.predicates.find(e.predicate_id), table.objects.find(e.object_id), e.rank, e
        )
        for e in edges
        if table.groups.find(e.group_id) >= 0
    ]
    # -1: what no statement of the page has.
    probes = [probe for probe in probes if probe.predicate >= 0 and probe.object >= 0]
    probes.sort(key=lambda probe: (probe.predicate, probe.object, probe.rank))
    block.add_numbers(f"{name}.predicate", [probe.predicate for probe in probes])
    block.add_numbers(f"{name}.object", [probe.object for probe in probes])
    block.add_numbers(f"{name}.group", [table.groups.find(p.edge.group_id) for p in probes])
    block.add_numbers(f"{name}.rank", [probe.rank for probe in probes])
    bits = [-probe.edge.statement_log_likelihood / np.log(2) for probe in probes]
    block.add_numbers(f"{name}.bits", np.round(np.maximum(bits, 0) * 10) if bits else [])
    piece_lists: list[list[int]] = []
    surprisal_lists: list[list[int]] = []
    for probe in probes[:MAX_TOKEN_PROBES]:
        piece_lists.append([pieces.add(piece, piece) for piece in probe.edge.pieces])
        surprisal_lists.append([max(0, round(b * 10)) for b in probe.edge.bits])
    without_tokens: list[list[int]] = [[] for _ in probes[MAX_TOKEN_PROBES:]]
    block.add_lists(f"{name}.piece", piece_lists + without_tokens)
    block.add_lists(f"{name}.surprisal", surprisal_lists + without_tokens)


def build_association_records(table: StatementTable) -> list[dict[str, Any]]:
    """The association tests of the runs, each with the groups, objects and topics that it is about.
    A test that several runs share appears once."""
    tests: dict[str, AssociationNode] = {
        test.id: test for run in table.runs for test in run.associations()
    }
    topics = {topic: number for (_, topic), number in table.topics.items()}
    places: dict[str, Callable[[str, int], int]] = {
        "group": table.groups.find,
        "object": table.objects.find,
        "topic": topics.get,
    }
    records = []
    for test in tests.values():
        about = []
        for edge in test.edges:
            place = places[edge.kind](edge.node_id, -1) if edge.kind in places else -1
            if place >= 0:
                about.append([edge.side, edge.kind, place])
        records.append(
            {
                "test": test.test,
                "method": test.method,
                "model": test.model.title,
                "effect": _round_finite(test.effect_size),
                "low": _round_finite(test.low),
                "high": _round_finite(test.high),
                "p": _round_finite(test.p_value),
                "about": about,
            }
        )
    return records


def _round_finite(value: float) -> float | None:
    return round(float(value), 6) if np.isfinite(value) else None
