"""`kgbias measure`: a score for every triple, figures for every group."""

from typing import Any, get_args

import click

import kgbias
from kgbias.cli.options import (
    PAIR,
    default,
    device_option,
    json_option,
    print_json,
    printable,
    run_argument,
    selection_options,
    store_option,
    warn_unfinished,
)
from kgbias.graph.selection import Selecting
from kgbias.measures import figures
from kgbias.study.measuring import Outliers

_OF = kgbias.Run.measure
_SCORED = ("regard", "toxicity", "identity_attack", "acceptability")


@click.command()
@run_argument
@store_option
@click.option(
    "--regard",
    multiple=True,
    default=[default(_OF, "regard")],
    show_default=True,
    metavar="SCORER",
    help="offline, hf:ID-or-PATH of a Hugging Face classifier, llm:SPEC of a language model that "
    "judges by a rubric, scores:FILE, or none. Of several (repeat the option) the first counts, "
    "and their agreement is shown.",
)
@click.option(
    "--toxicity",
    multiple=True,
    default=[default(_OF, "toxicity")],
    show_default=True,
    metavar="SCORER",
    help="offline, hf:ID-or-PATH[:LABEL], llm:SPEC, scores:FILE[::COLUMN], openai-moderation or "
    "none.",
)
@click.option(
    "--identity-attack",
    multiple=True,
    default=[default(_OF, "identity_attack")],
    show_default=True,
    metavar="SCORER",
    help="How far a statement attacks its group, which is hidden from --toxicity: as there.",
)
@click.option(
    "--acceptability",
    multiple=True,
    default=[default(_OF, "acceptability")],
    show_default=True,
    metavar="SCORER",
    help="Whether a statement makes sense: offline, hf:ID-or-PATH[:LABEL], llm:SPEC, "
    "scores:FILE[::COLUMN] or none.",
)
@click.option(
    "--labels",
    type=PAIR,
    multiple=True,
    metavar="LABEL=MEANING",
    help="What a label of the regard classifier means, such as LABEL_0=negative (repeatable).",
)
@click.option(
    "--axes/--no-axes",
    default=default(_OF, "axes"),
    show_default=True,
    help="Whether to place statements on the axes of warmth and competence.",
)
@click.option("--topics", is_flag=True, help="Find topics, and each group's relative entropy.")
@click.option(
    "--embedding",
    default=default(_OF, "embedding"),
    show_default=True,
    metavar="VECTORS",
    help="What topics and axes are computed in: minilm, hf:ID-or-PATH, or vectors:FILE (GloVe, "
    "word2vec, fastText).",
)
@click.option(
    "--outliers",
    type=click.Choice(get_args(Outliers)),
    default=default(_OF, "outliers"),
    show_default=True,
    help="Statements in no topic: assign them to the nearest one, or keep them out.",
)
@click.option(
    "--topic-seed",
    default=default(_OF, "topic_seed"),
    show_default=True,
    help="The random seed of the topics.",
)
@device_option
@selection_options
@json_option
def measure(
    run_name: str | None, store_url: str, as_json: bool, labels: Any, **options: Any
) -> None:
    """Score a run's triples by regard, toxicity, identity attack and acceptability (whether they
    make sense), place them on the axes of warmth and competence, find their topics if asked, and
    compute the figures of each group."""
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        groups = run.measure(labels=dict(labels), **options)
        several = any(len(options[measure]) > 1 for measure in _SCORED)
        selection = {name: options[name] for name in Selecting.__annotations__}
        agreement = run.agreement(**selection) if several else ()
        topics = run.topic_models() if options["topics"] else ()
        warn_unfinished(run)
    if as_json:
        data = {"run": run.name, "groups": [_as_data(row) for row in groups]}
        if agreement:
            data["agreement"] = agreement.records()
        print_json(data)
        return
    _print_groups(groups)
    for model in topics:
        _print_topics(model)
    for found in agreement:
        _print_agreement(found)


def _as_data(row: Any) -> dict[str, Any]:
    data = {"group": row.group, "category": row.category, "arm": row.arm}
    if overall := row.figures.get("overall_regard"):
        data["n"] = overall.n
    return data | {name: figure.as_dict() for name, figure in row.figures.items()}


def _print_groups(groups: Any) -> None:
    there = {name for row in groups for name in row.figures}
    shown = [figure for figure in figures().values() if figure.column and figure.name in there]
    width = max((len(printable(row.group)) for row in groups), default=5)
    head = "".join(f"  {figure.column:>10}  {'95% interval':>16}" for figure in shown)
    several = len({row.arm for row in groups}) > 1
    arms = max(len(printable(row.arm)) for row in groups) + 2 if several else 0
    click.echo(f"{'group':<{width}}  {'arm' if several else '':<{arms}}{'n':>5}{head}")
    for row in groups:
        own = [row.figures.get(figure.name) for figure in shown]
        arm = printable(row.arm) if several else ""
        cells = "".join(
            f"  {format(e.value, f.form):>10}  {e.interval(f.form):>16}"
            if e
            else f"  {'-':>10}  {'-':>16}"
            for e, f in zip(own, shown, strict=True)
        )
        click.echo(f"{printable(row.group):<{width}}  {arm:<{arms}}{row.statements:>5}{cells}")


def _print_agreement(a: Any) -> None:
    moved = ", ".join(f"{printable(m.group)} {m.first:g} to {m.second:g}" for m in a.moved)
    click.echo(
        f"\n{a.measure} by {printable(a.first)} and by {printable(a.second)}: kappa "
        f"{a.kappa.value:.2f} ({a.kappa.interval('.2f')}), rank correlation {a.rho.value:.2f} "
        f"({a.rho.interval('.2f')}), {a.same.value:.0%} of {a.n} labels the same; groups that "
        f"change rank: {moved or 'none'}"
    )


def _print_topics(model: Any) -> None:
    s = model.settings
    click.echo(
        f"\ntopics of {printable(model.category)}: {len(model.topics)} in {s['documents']} "
        f"distinct statements; min_cluster_size {s['min_cluster_size']}; {s['outliers_before']} "
        f"outliers, {s['outliers']} left"
    )
    for topic in model.topics:
        words = ", ".join(printable(word) for word in topic.words[:8])
        click.echo(f"{topic.number:>4}  {topic.size:>5}  {words}")
