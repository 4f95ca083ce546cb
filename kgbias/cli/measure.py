"""`kgbias measure`: a score for every triple, figures for every group."""

from contextlib import closing

import click

from kgbias.cli.options import chosen_run, json_option, print_json, run_argument, store_option
from kgbias.cli.progress import shown_progress
from kgbias.graph.store import open_store


@click.command()
@run_argument
@store_option
@click.option(
    "--regard",
    default="offline",
    show_default=True,
    metavar="SCORER",
    help="offline, or hf:ID-or-PATH of a Hugging Face classifier.",
)
@click.option(
    "--toxicity",
    default="offline",
    show_default=True,
    metavar="SCORER",
    help="offline, or hf:ID-or-PATH[:LABEL].",
)
@json_option
def measure(
    run: str | None,
    run_name: str | None,
    store_url: str,
    regard: str,
    toxicity: str,
    as_json: bool,
) -> None:
    """Score a run's triples by regard and toxicity, and write the figures of each group."""
    with closing(open_store(store_url, create=False)) as store:
        found = store.find_run(chosen_run(run, run_name))
        from kgbias.measure.scorers import load_scorer
        from kgbias.measure.scoring import measure as measure_run

        with shown_progress() as progress:
            scorers = [load_scorer("regard", regard), load_scorer("toxicity", toxicity)]
            measure_run(store, found, scorers, progress)
        figures = {(s.group_id, s.measure): s for s in store.group_scores(found.id)}
    rows = []
    for group in found.groups:
        if overall := figures.get((group.id, "overall_regard")):
            toxic = figures[group.id, "toxicity_mean"]
            rows.append((group.name, overall, toxic))
    if as_json:
        print_json(
            {
                "run": found.name,
                "groups": [
                    {
                        "group": name,
                        "n": overall.n,
                        "overall_regard": {
                            "value": overall.value,
                            "low": overall.low,
                            "high": overall.high,
                        },
                        "toxicity_mean": {
                            "value": toxic.value,
                            "low": toxic.low,
                            "high": toxic.high,
                        },
                    }
                    for name, overall, toxic in rows
                ],
            }
        )
        return
    width = max((len(name) for name, *_ in rows), default=5)
    click.echo(
        f"{'group':<{width}}  {'n':>5}  {'regard':>7}  {'95% interval':>15}  "
        f"{'toxicity':>8}  {'95% interval':>15}"
    )
    for name, overall, toxic in rows:
        click.echo(
            f"{name:<{width}}  {overall.n:>5}  {overall.value:>+7.0f}  "
            f"{f'{overall.low:+.0f} to {overall.high:+.0f}':>15}  {toxic.value:>8.3f}  "
            f"{f'{toxic.low:.3f} to {toxic.high:.3f}':>15}"
        )
