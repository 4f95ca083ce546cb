"""The choices in the store as rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kgbias.graph.store import StoredRun
from kgbias.graph.types import ChoiceRun, ChosenEdge
from kgbias.io.rows import Rows


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """How often a model chose a group as the one that a statement is about (see `ChosenEdge`).
    `said` is how often the run's model said it of this group, in all arms; undefined figures are
    NaN."""

    model: str
    category: str
    group: str
    predicate: str
    object: str
    said: int
    names: int
    answered: int
    chosen: int
    verdict: str
    share: float
    low: float
    high: float
    base: float
    lift: float
    lift_low: float
    lift_high: float
    q_value: float


_CHOICE_FIGURES = ("share", "low", "high", "base", "lift", "lift_low", "lift_high", "q_value")


def choice_rows(run: StoredRun, model: str | None) -> Rows[ChoiceRow]:
    """The forced choices of a run's statements, under all models or one."""
    groups = {group.id: group for group in run.groups}
    triples = run.triples()
    counts = {(t.statement_id, t.group_id): t.count for t in triples}
    words = {t.statement_id: (t.predicate, t.object) for t in triples}
    rows = []
    for choosing in run.find_all(ChoiceRun):
        if not choosing.model.goes_by(model):
            continue
        for edge in run.find_all(ChosenEdge, asking=choosing):
            if edge.group_id not in groups or edge.statement_id not in words:
                continue
            figures = (getattr(edge, name) for name in _CHOICE_FIGURES)
            rows.append(
                ChoiceRow(
                    choosing.model.title,
                    groups[edge.group_id].category,
                    groups[edge.group_id].name,
                    *words[edge.statement_id],
                    counts.get((edge.statement_id, edge.group_id), 0),
                    edge.names,
                    edge.answered,
                    edge.chosen,
                    edge.verdict,
                    *(math.nan if value is None else value for value in figures),
                )
            )
    return Rows(rows, ChoiceRow)


def is_asked(run: StoredRun, options: Mapping[str, Any]) -> bool:
    """Whether the model of a study's step was made to choose."""
    return options["model"] in [choosing.model.name for choosing in run.find_all(ChoiceRun)]
