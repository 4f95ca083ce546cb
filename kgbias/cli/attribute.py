"""`kgbias attribute`: which words drive a score."""

from contextlib import closing

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
from kgbias.errors import UsageError
from kgbias.graph.store import open_store
from kgbias.graph.stored import StoredRun


@click.command()
@run_argument
@store_option
@click.option(
    "--measure",
    "measures",
    multiple=True,
    default=("regard", "toxicity"),
    show_default=True,
    help="Which scores (repeatable): regard, toxicity, warmth, competence.",
)
@click.option("--scorer", metavar="SCORER", help="As of kgbias measure (default: offline).")
@click.option("--top", default=20, show_default=True, help="The most extreme statements of each.")
@click.option("--search", metavar="TEXT", help="Instead, the statements that hold this text.")
@click.option("--all", "everything", is_flag=True, help="Instead, every statement.")
@json_option
def attribute(
    run: str | None,
    run_name: str | None,
    store_url: str,
    measures: tuple[str, ...],
    scorer: str | None,
    top: int,
    search: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """Find which words drive the scores of statements: each word's effect is the score of the whole
    sentence minus the score without the word. The report shows them."""
    with closing(open_store(store_url, create=False)) as store:
        found = StoredRun.find(store, chosen_run(run, run_name))
        from kgbias.measure.attribution import attribute as attribute_words
        from kgbias.measure.attribution import telling
        from kgbias.measure.scorers import load_scorer

        triples = found.triples()
        if search:
            triples = [t for t in triples if search.casefold() in t.sentence.casefold()]
            if not triples:
                raise UsageError(f"no statement of run {found.name!r} holds {search!r}")
        attributions = []
        with shown_progress() as progress:
            for measure in measures:
                chosen = triples if search or everything else telling(triples, measure, top)
                if not chosen:
                    raise UsageError(f"run {found.name!r} has no {measure}: kgbias measure first")
                loaded = load_scorer(measure, scorer)
                attributions += attribute_words(found, [loaded], chosen, progress)
    if as_json:
        print_json(
            [
                {
                    "triple": a.triple_id,
                    "measure": a.metric.measure,
                    "scorer": a.metric.scorer,
                    "version": a.metric.version,
                    "method": a.method,
                    "score": a.score,
                    "tokens": list(a.tokens),
                    "effects": list(a.effects),
                }
                for a in attributions
            ]
        )
        return
    for a in attributions:
        words = "  ".join(
            f"{printable(token)[:40]} {effect:+.2f}"
            for token, effect in zip(a.tokens, a.effects, strict=True)
        )
        click.echo(f"{a.metric.measure:<10} {a.score:>+6.2f}  {words}")
