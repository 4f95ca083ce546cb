"""`kgbias attribute`: which words drive a score."""

from typing import Any

import click

import kgbias
from kgbias.cli.options import (
    default,
    device_option,
    json_option,
    print_json,
    printable,
    run_argument,
    store_option,
)

_OF = kgbias.Run.attribute


@click.command()
@run_argument
@store_option
@click.option(
    "--measure",
    multiple=True,
    default=default(_OF, "measure"),
    show_default=True,
    help="Which scores (repeatable): regard, toxicity, identity_attack, acceptability, warmth, "
    "competence.",
)
@click.option(
    "--method",
    multiple=True,
    default=default(_OF, "method"),
    show_default=True,
    help="How (repeatable): occlusion, which works for any scorer; integrated or gradient, by the "
    "gradients of the offline scorers and of hf: ones; cam, of the offline ones alone.",
)
@click.option(
    "--scorer", metavar="SCORER", help="The scorer, as for kgbias measure (default: offline)."
)
@click.option(
    "--top",
    default=default(_OF, "top"),
    show_default=True,
    help="How many of the most extreme statements of each measure.",
)
@click.option("--search", metavar="TEXT", help="Instead, the statements that contain this text.")
@click.option("--all", "everything", is_flag=True, help="Instead, every statement.")
@device_option
@json_option
def attribute(run_name: str | None, store_url: str, as_json: bool, **options: Any) -> None:
    """Find which words drive the scores of statements: what each word does to the score of its
    sentence, by leaving it out or by the gradients of the scorer. The report shows them."""
    with kgbias.open(store_url, progress=True) as study:
        found = study.run(run_name).attribute(**options)
    if as_json:
        print_json([_as_data(a) for a in found])
        return
    for a in found:
        words = "  ".join(
            f"{printable(token)[:40]} {effect:+.2f}"
            for token, effect in zip(a.tokens, a.effects, strict=True)
        )
        by = a.method.partition("@")[0]
        click.echo(f"{a.metric.measure:<10} {by:<10} {a.score:>+6.2f}  {words}")


def _as_data(a: Any) -> dict[str, Any]:
    return {
        "triple": a.triple_id,
        "measure": a.metric.measure,
        "scorer": a.metric.scorer,
        "version": a.metric.version,
        "method": a.method,
        "score": a.score,
        "tokens": list(a.tokens),
        "effects": list(a.effects),
    }
