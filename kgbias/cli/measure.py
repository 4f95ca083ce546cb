"""`kgbias measure`: a score for every triple, figures for every group."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import click

from kgbias.cli.options import (
    chosen_run,
    json_option,
    print_json,
    printable,
    run_argument,
    store_option,
)
from kgbias.cli.progress import shown_progress
from kgbias.graph.store import open_store
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Group, GroupScore, Run, TopicModel

# measure, title and format of a column of the printed table
_COLUMNS = (
    ("overall_regard", "regard", "+.0f"),
    ("toxicity_mean", "toxicity", ".3f"),
    ("warmth_mean", "warmth", "+.2f"),
    ("competence_mean", "competence", "+.2f"),
    ("relative_entropy", "entropy", ".3f"),
)


@click.command()
@run_argument
@store_option
@click.option(
    "--regard",
    default="offline",
    show_default=True,
    metavar="SCORER",
    help="offline, hf:ID-or-PATH of a Hugging Face classifier, or scores:FILE.",
)
@click.option(
    "--toxicity",
    default="offline",
    show_default=True,
    metavar="SCORER",
    help="offline, hf:ID-or-PATH[:LABEL], scores:FILE[::COLUMN] or openai-moderation.",
)
@click.option(
    "--axes/--no-axes", default=True, show_default=True, help="Warmth and competence too."
)
@click.option("--topics", is_flag=True, help="Find topics too, and each group's relative entropy.")
@click.option(
    "--embedding",
    default="minilm",
    show_default=True,
    metavar="VECTORS",
    help="Of topics and axes: minilm, hf:ID-or-PATH, or vectors:FILE (GloVe, word2vec, fastText).",
)
@click.option(
    "--outliers",
    type=click.Choice(["assign", "keep"]),
    default="assign",
    show_default=True,
    help="Statements in no topic: to the nearest one, or left without.",
)
@click.option("--topic-seed", default=0, show_default=True, help="Of the topics.")
@json_option
def measure(
    run: str | None,
    run_name: str | None,
    store_url: str,
    regard: str,
    toxicity: str,
    axes: bool,
    topics: bool,
    embedding: str,
    outliers: Any,
    topic_seed: int,
    as_json: bool,
) -> None:
    """Score a run's triples by regard and toxicity, place them on the axes of warmth and
    competence, find their topics if asked, and write the figures of each group."""
    with closing(open_store(store_url, create=False)) as store:
        found = StoredRun.find(store, chosen_run(run, run_name))
        from kgbias.measure.scorers import AXES, load_scorer
        from kgbias.measure.scoring import measure as measure_run
        from kgbias.measure.topics import TopicSettings, measure_topics

        models: list[TopicModel] = []
        with shown_progress() as progress:
            scorers = [load_scorer("regard", regard), load_scorer("toxicity", toxicity)]
            if axes:
                scorers += [load_scorer(axis, embedding) for axis in AXES]
            measure_run(found, scorers, progress)
            if topics:
                settings = TopicSettings(embedding, outliers=outliers, seed=topic_seed)
                models = measure_topics(found, settings, progress)
        figures = {(s.group_id, s.measure): s for s in found.group_scores()}
    if as_json:
        print_json({"run": found.name, "groups": [_group_json(g, figures) for g in found.groups]})
        return
    _print_table(found.record, figures)
    for model in models:
        _print_topics(model)


Figures = Mapping[tuple[str, str], GroupScore]


def _group_json(group: Group, figures: Figures) -> dict[str, Any]:
    own = {s.measure: s for (id, _), s in figures.items() if id == group.id}
    numbers: dict[str, Any] = {"group": group.name, "category": group.category}
    if overall := own.get("overall_regard"):
        numbers["n"] = overall.n
    for name, s in own.items():
        parts = {"value": s.value, "low": s.low, "high": s.high}
        numbers[name] = {k: None if v != v else v for k, v in parts.items()} | {"n": s.n}
    return numbers


def _print_table(run: Run, figures: Figures) -> None:
    shown = [c for c in _COLUMNS if any(measure == c[0] for _, measure in figures)]
    width = max((len(printable(g.name)) for g in run.groups), default=5)
    head = "".join(f"  {title:>9}  {'95% interval':>16}" for _, title, _ in shown)
    click.echo(f"{'group':<{width}}  {'n':>5}{head}")
    for group in run.groups:
        own = [figures.get((group.id, measure)) for measure, *_ in shown]
        n = max((s.n for s in own if s), default=0)
        cells = "".join(
            f"  {'-':>9}  {'-':>16}"
            if s is None
            else f"  {format(s.value, form):>9}  {_interval(s, form)}"
            for s, (_, _, form) in zip(own, shown, strict=True)
        )
        click.echo(f"{printable(group.name):<{width}}  {n:>5}{cells}")


def _interval(s: GroupScore, form: str) -> str:
    return f"{'-' if s.low != s.low else f'{s.low:{form}} to {s.high:{form}}':>16}"


def _print_topics(model: TopicModel) -> None:
    s = model.settings
    click.echo(
        f"\ntopics of {printable(model.category)}: {len(model.topics)} in {s['documents']} "
        f"distinct statements; min_cluster_size {s['min_cluster_size']}; {s['outliers_before']} "
        f"outliers, {s['outliers']} left"
    )
    for topic in model.topics:
        words = ", ".join(printable(word) for word in topic.words[:8])
        click.echo(f"{topic.number:>4}  {topic.size:>5}  {words}")
