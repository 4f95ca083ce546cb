"""`kgbias merge`: link near-duplicates."""

from contextlib import closing
from dataclasses import asdict

import click

from kgbias.cli.options import (
    chosen_run,
    json_option,
    print_json,
    printable,
    run_argument,
    store_option,
)
from kgbias.crawl.merge import link_run, merged
from kgbias.graph.store import open_store
from kgbias.graph.stored import StoredRun
from kgbias.models.embed import open_encoder


@click.command()
@run_argument
@store_option
@click.option(
    "--threshold",
    default=0.9,
    show_default=True,
    metavar="COSINE",
    help="Texts at least this similar are linked.",
)
@click.option(
    "--encoder", default="minilm", show_default=True, metavar="SPEC", help="What embeds the texts."
)
@click.option("--undo", is_flag=True, help="Take the links back.")
@json_option
def merge(
    run: str | None,
    run_name: str | None,
    store_url: str,
    threshold: float,
    encoder: str,
    undo: bool,
    as_json: bool,
) -> None:
    """Link objects and predicates that say the same in other words.

    Nothing is merged: all triples stay as they were said. `kgbias export --merged` counts linked
    ones as one, and `--undo` takes the links back.
    """
    with closing(open_store(store_url, create=False)) as store:
        found = StoredRun.find(store, chosen_run(run, run_name))
        if undo:
            found.save_near_duplicates([])
            links = []
        else:
            links = link_run(found, open_encoder(encoder), threshold)
        views = found.triples()
        left = len(merged(views, links))
    if as_json:
        rows = [asdict(link) for link in links]
        print_json(
            {"run": found.name, "triples": len(views), "triples_merged": left, "links": rows}
        )
        return
    for link in links:
        click.echo(
            f"{link.kind:<10}{link.similarity:.3f}  {printable(link.text)} -> "
            f"{printable(link.head_text)}"
        )
    click.echo(
        f"{len(links)} links: {len(views)} triples as said, {left} when linked ones count as one"
    )
