"""Where each statement comes from: prompts, raw answers, ids, probes and association tests.

Texts repeat: a prompt's examples are other prompts' answers. They are kept as lists of lines, each
line once. The first `EACH` answers of a statement are kept, the first answers of all statements
first, up to `CHARACTERS` of distinct lines; what is left out is counted and reported.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kgbias.explore.beliefs import beliefs_of
from kgbias.explore.choices import choices_of
from kgbias.explore.columns import Block, Dictionary, Lines
from kgbias.explore.statements import Placed, Statements
from kgbias.graph.cross_mentions import MentionIndex
from kgbias.graph.store import StoredRun
from kgbias.graph.types import AssociationNode, Generation, ProbedEdge, Triple, statement_id
from kgbias.io.progress import Progress
from kgbias.io.text import storable

EACH = 5  # answers of one statement
LONGEST = 2_000  # characters of a prompt or an answer
CHARACTERS = 40_000_000
PROBES = 20_000  # probes of one model whose tokens are kept
_BATCH = 5_000


def block(found: Statements, progress: Progress) -> tuple[Block, dict[str, int]]:
    """The prompts and answers that the page holds, and how many answers it leaves out."""
    block, texts = Block(), Lines()
    templates: Dictionary[str] = Dictionary()
    origins = _generations(found)
    kept: list[list[list[int]]] = [[] for _ in origins]
    held, total = 0, len(found.said)
    progress.stage("prompts and answers", len(origins))
    for number in range(EACH):
        for source in found.sources:
            rows = [n for n in range(source.start, source.end) if len(origins[n]) > number]
            for part in (rows[first : first + _BATCH] for first in range(0, len(rows), _BATCH)):
                generations = [origins[n][number] for n in part]
                if texts.characters <= CHARACTERS:
                    answers = source.run.store.answers(
                        [g.answer_key for g in generations if g.answer_key]
                    )
                    for row, g in zip(part, generations, strict=True):
                        answer = answers.get(g.answer_key)
                        kept[row].append(
                            [
                                texts.add(_cut(g.prompt)),
                                texts.add(_cut(answer.text)) + 1 if answer else 0,
                                templates.add(*[_template(g)] * 2),
                                g.attempt + 1,
                            ]
                        )
                        held += 1
                if not number:
                    progress.advance(len(part))
    flat = [entry for own in kept for entry in own]
    block.numbers("row.kept", [len(own) for own in kept])
    for column, name in enumerate(("prompt", "answer", "template", "attempt")):
        block.numbers(f"kept.{name}", [entry[column] for entry in flat])
    block.texts("template", [storable(t) for t in templates.texts])
    texts.into(block, "text")
    _naming(block, found, origins)
    return block, {"answers": total, "left_out": total - held}


def _naming(block: Block, found: Statements, origins: Sequence[Sequence[Generation]]) -> None:
    """Add the rows that name groups other than their own, and these groups."""
    rows, names = [], []
    for source in found.sources:
        named = MentionIndex(source.run.groups)
        for row in range(source.start, source.end):
            said = next((g.triple for g in origins[row] if g.triple), None)
            if said and (others := named.other_groups(said)):
                rows.append(row)
                names.append(storable(", ".join(others)))
    block.numbers("names.row", rows)
    block.texts("names.others", names)


MORE = 20  # answers of a statement that a server gives at a time


def origin_of(found: Placed, row: int, first: int = 0) -> dict[str, Any]:
    """Where one statement comes from, read from the store: `MORE` of its answers from number
    `first` on, and with the first batch its beliefs, probes, forced choices, and the other groups
    that it names."""
    source, triple = found.source(row), found.triple_id(row)
    own = source.run.generations_of_triple(triple, source.arm, offset=first, limit=MORE)
    kept = source.run.store.answers([g.answer_key for g in own if g.answer_key])
    answers = [
        {
            "asked": _cut(g.prompt),
            "answer": _cut(kept[g.answer_key].text) if g.answer_key in kept else None,
            "template": _template(g),
            "attempt": g.attempt + 1,
        }
        for g in own
    ]
    said = next((g.triple for g in own if g.triple), None)
    return {
        "answers": answers,
        "probes": _probes_of(found, source.run, said) if said and not first else [],
        "beliefs": beliefs_of(found, source.run, said) if said and not first else [],
        "choices": choices_of(found, source.run, said) if said and not first else [],
        "names": ", ".join(MentionIndex(source.run.groups).other_groups(said)) if said and not first else "",
    }


def _probes_of(found: Placed, run: StoredRun, said: Triple) -> list[dict[str, Any]]:
    """What each model that the run was probed with finds likely before a statement."""
    probed = []
    for probing in run.probe_runs():
        edges = run.probes(probing.id, statement_id(said.predicate_id, said.object_id))
        rows = [
            {
                "group": found.groups.get(e.group_id),
                "rank": e.rank,
                "bits": round(max(0.0, -e.statement_log_likelihood / math.log(2)), 1),
                "pieces": [storable(p) for p in e.pieces],
                "surprisal": [round(max(0.0, b), 1) for b in e.bits],
            }
            for e in sorted(edges, key=lambda e: e.rank)
            if found.groups.get(e.group_id) >= 0
        ]
        if rows:
            probed.append({"model": probing.model.title, "rows": rows})
    return probed


def _generations(found: Statements) -> list[list[Generation]]:
    """The first `EACH` generations of each row, in the order of the crawl."""
    origins: list[list[Generation]] = [[] for _ in range(found.rows)]
    for run in found.runs:
        own = [source for source in found.sources if source.run.id == run.id]
        row = {(s.arm, found.triple_id(n)): n for s in own for n in range(s.start, s.end)}
        for generation in run.generations():
            if (triple := generation.triple) is None:
                continue
            place = row.get((generation.arm, triple.id))
            if place is not None and len(origins[place]) < EACH:
                origins[place].append(generation)
    return origins


def _template(generation: Generation) -> str:
    return f"{generation.template} {generation.template_hash[:8]}".strip()


def _cut(text: str) -> str:
    text = storable(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def probes(found: Statements) -> tuple[Block, list[dict[str, Any]]]:
    """The probes of the statements: each after every group of its category, under each model that a
    run was probed with."""
    block = Block()
    models: list[dict[str, Any]] = []
    pieces: Dictionary[str] = Dictionary()
    for run in found.runs:
        for probing in run.probe_runs():
            edges = run.probes(probing.id)
            if edges:
                _probing(block, f"probe{len(models)}", found, edges, pieces)
                models.append({"run": run.name, "model": probing.model.title, "edges": len(edges)})
    block.texts("piece", [storable(t) for t in pieces.texts])
    return block, models


def _probing(
    block: Block,
    name: str,
    found: Statements,
    edges: Sequence[ProbedEdge],
    pieces: Dictionary[str],
) -> None:
    """Add the edges of one probing, by statement and rank, with the tokens of the first
    `PROBES`."""
    placed = [
        (found.predicates.get(e.predicate_id), found.objects.get(e.object_id), e.rank, e)
        for e in edges
        if found.groups.get(e.group_id) >= 0
    ]
    placed = sorted((row for row in placed if row[0] >= 0 <= row[1]), key=lambda row: row[:3])
    block.numbers(f"{name}.predicate", [row[0] for row in placed])
    block.numbers(f"{name}.object", [row[1] for row in placed])
    block.numbers(f"{name}.group", [found.groups.get(row[3].group_id) for row in placed])
    block.numbers(f"{name}.rank", [row[2] for row in placed])
    bits = [-row[3].statement_log_likelihood / np.log(2) for row in placed]
    block.numbers(f"{name}.bits", np.round(np.maximum(bits, 0) * 10) if bits else [])
    tokens = [row[3] if n < PROBES else None for n, row in enumerate(placed)]
    block.lists(
        f"{name}.piece", [[pieces.add(p, p) for p in e.pieces] if e else [] for e in tokens]
    )
    block.lists(
        f"{name}.surprisal", [[max(0, round(b * 10)) for b in e.bits] if e else [] for e in tokens]
    )


def associations(found: Statements) -> list[dict[str, Any]]:
    """The association tests of the runs, each with the groups, objects and topics that it is about.
    A test that several runs share appears once."""
    tests: dict[str, AssociationNode] = {t.id: t for run in found.runs for t in run.associations()}
    topics = {topic: number for (_, topic), number in found.topics.items()}
    places: dict[str, Callable[[str, int], int]] = {
        "group": found.groups.get, "object": found.objects.get, "topic": topics.get
    }  # fmt: skip
    return [
        {
            "test": t.test,
            "method": t.method,
            "model": t.model.title,
            "effect": _number(t.effect_size),
            "low": _number(t.low),
            "high": _number(t.high),
            "p": _number(t.p_value),
            "about": [
                [e.side, e.kind, place]
                for e in t.edges
                if e.kind in places and (place := places[e.kind](e.node_id, -1)) >= 0
            ],
        }
        for t in tests.values()
    ]


def _number(value: float) -> float | None:
    return round(float(value), 6) if np.isfinite(value) else None
