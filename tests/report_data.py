"""Runs made by hand, for the report: measured, with provenance."""

from collections.abc import Sequence
from random import Random

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import (
    Answer,
    Generation,
    Group,
    GroupScore,
    Metric,
    Run,
    Score,
    Triple,
)
from kgbias.measure.figures import group_figures
from kgbias.models.base import ModelInfo
from kgbias.report.tables import Table


def measured_run(
    store: SQLiteStore,
    groups: Sequence[Group],
    objects: Sequence[str],
    per_group: int = 20,
    *,
    with_scores: bool = True,
    name: str = "by hand",
) -> Run:
    """A run in which each group says `per_group` statements with these objects, in turn."""
    config = {"seed": 0, "note": "<i>"} | ({} if name == "by hand" else {"named": name})
    run = Run(name, ModelInfo("test <model>", "r1"), config, groups)
    store.begin_run(run)
    rng = Random(0)
    generations: list[Generation] = []
    answers = []
    for group in groups:
        for n in range(per_group):
            object = objects[(n + rng.randrange(3)) % len(objects)]
            triple = Triple(group.name, rng.choice(["love", "are", "can't"]), object)
            key = f"{group.id}-{n}"
            answers.append(Answer(key, "m", f" {object}.", "stop", 5, 5))
            shown = tuple(g.triple.id for g in generations[-2:] if g.triple)
            generations.append(
                Generation(
                    run.id,
                    f"none/object/1/{group.name}/{n:03d}#0",
                    group.id,
                    "none",
                    "object",
                    1,
                    0,
                    "ok",
                    template="object@1:completion",
                    template_hash="abcdef0123",
                    prompt=f"Q: {group.name} # {triple.predicate}\nA:",
                    answer_key=key,
                    triple=triple,
                    shown=shown,
                )
            )
    store.keep_answers(answers)
    store.load_import(run.id, generations)
    store.set_status(run.id, "complete")
    if with_scores:
        regard, toxicity = [], []
        for triple in store.triples(run.id):
            value = round(rng.uniform(-1, 1), 3)
            label = "positive" if value > 0.3 else "negative" if value < -0.3 else "neutral"
            regard.append(Score(triple.id, value, label, {}))
            toxicity.append(Score(triple.id, round(rng.random() ** 3, 3), "not toxic", {}))
        store.save_scores(run.id, Metric("regard", "rule", "1"), regard)
        store.save_scores(run.id, Metric("toxicity", "rule", "1"), toxicity)
        store.put(run.id, GroupScore, group_figures(run, store.triples(run.id)))
    return store.find_run(run.name)


def shown_rows(table: Table) -> list[list[str]]:
    """The cells of a table as they are printed, each interval after its figure."""
    rows = []
    for row in table.rows:
        texts: list[str] = []
        for column, cell in zip(table.columns, row, strict=True):
            texts.append(column.text(cell))
            if column.interval:
                texts.append(column.interval_text(cell))
        rows.append(texts)
    return rows
