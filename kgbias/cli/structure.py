"""`kgbias structure`: centrality, communities and bridging objects of a run."""

from dataclasses import asdict
from typing import Any

import click

import kgbias
from kgbias.cli.options import (
    default,
    json_option,
    print_json,
    printable,
    run_argument,
    selection_options,
    store_option,
)

_SHOWN = 10


@click.command()
@run_argument
@store_option
@click.option(
    "--seed",
    default=default(kgbias.Run.structure, "seed"),
    show_default=True,
    help="The random seed of the search for communities.",
)
@selection_options
@json_option
def structure(
    run_name: str | None, store_url: str, seed: int, as_json: bool, **selection: Any
) -> None:
    """Find central groups and objects, communities, and the objects that bridge groups, and write
    them to the graph. Of a run of several arms, --arm says in which."""
    with kgbias.open(store_url, progress=True) as study:
        places = study.run(run_name).structure(seed=seed, **selection)
    if as_json:
        return print_json([asdict(place) for place in places])
    communities = len({place.community for place in places})
    bridges = [place for place in places if place.kind == "object" and place.groups > 1]
    click.echo(
        f"{len(places)} nodes in {communities} communities; {len(bridges)} objects bridge groups"
    )
    for kind, chosen in (("group", places), ("object", bridges)):
        of_kind = [place for place in chosen if place.kind == kind]
        of_kind.sort(key=lambda place: (-place.betweenness, -place.degree, place.label))
        for place in of_kind[:_SHOWN]:
            click.echo(
                f"{kind:<7} betweenness {place.betweenness:.4f}  degree {place.degree:>5}  "
                f"community {place.community:>3}  groups {place.groups:>3}  "
                f"{printable(place.label)[:60]}"
            )
