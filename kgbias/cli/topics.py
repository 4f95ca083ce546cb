"""`kgbias topics`: what a run's statements are about, and names for it."""

from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import json_option, run_argument, store_option
from kgbias.errors import UsageError
from kgbias.measure.topics.shares import advice, unfit, verdict


@click.command(cls=Command, examples=("kgbias topics smollm2 --rename gender:3 'Housework'",))
@run_argument
@store_option
@click.option(
    "--rename",
    nargs=2,
    metavar="ID NAME",
    help="Name a topic: its number or CATEGORY:NUMBER, then the name; an empty name removes it.",
)
@json_option
def topics(
    run_name: str | None, store_url: str, rename: tuple[str, str] | None, as_json: bool
) -> None:
    """Show the topics found by `kgbias measure --topics` and how far they can be trusted, and name
    them by hand."""
    with kgbias.open(store_url) as study:
        run = study.run(run_name)
        if rename is not None:
            run.rename_topic(*rename)
        models = run.topic_models()
    if not models:
        raise UsageError(f"run {run.name!r} has no topics: kgbias measure {run.name} --topics")
    if as_json:
        show.data({"run": run.name, "categories": [_as_data(model) for model in models]})
        return
    for model in models:
        print_topics(model)


def _as_data(model: Any) -> dict[str, Any]:
    rows = [
        {
            "id": f"{t.category}:{t.number}",
            "name": t.name,
            "size": t.size,
            "coherence": t.coherence,
            "stability": t.stability,
            "words": t.words,
        }
        for t in model.topics
    ]
    return {
        "category": model.category,
        "topics": rows,
        "unfit": unfit(model) or None,
        "settings": dict(model.settings),
    }


def print_topics(model: Any) -> None:
    """Print the topics of one category, and their quality as a whole."""
    s = model.settings
    said = f"{s['statements']} statements, " if "statements" in s else ""
    show.say(
        "",
        f"topics of {model.category}: {len(model.topics)} in {said}{s['documents']} "
        f"of them distinct; at least {s['min_cluster_size']} make a topic; {s['outliers_before']} "
        f"outliers, {s['outliers']} left",
    )
    if (rand := s.get("adjusted_rand")) is not None:
        show.say(
            f"stability over {s['seeds']} seeds: adjusted Rand index {rand:.2f}; the largest topic "
            f"holds {100 * s['largest_share']:.0f}% of the statements that have one"
        )
    elif model.topics:
        show.say("their stability was not measured: find them again with kgbias measure --topics")
    rows = []
    for t in model.topics:
        words = ", ".join(t.words[:8])
        name = f"{t.name}: {words}" if t.given else words
        rows.append(
            (
                t.number,
                t.size,
                show.figure(t.stability, ".2f"),
                show.figure(t.coherence, ".2f"),
                name,
            )
        )
    if rows:
        show.table((">id", ">size", ">stable", ">coherent", "name, and words"), rows)
    if unfit(model):
        show.say(f"{verdict(model)}; {_with_flags(advice(model))}")


def _with_flags(text: str) -> str:
    """The text with parameters of `measure` written as options."""
    from kgbias.cli.command import with_options
    from kgbias.cli.measure import measure

    return with_options(text, measure)
