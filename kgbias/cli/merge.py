"""`kgbias merge`: link a run's near-duplicates."""

from dataclasses import asdict
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    default,
    device_setting,
    json_option,
    run_argument,
    store_option,
)

_OF = kgbias.Run.merge


@click.command(cls=Command, examples=("kgbias merge smollm2 --threshold 0.85",))
@run_argument
@store_option
@click.option(
    "--threshold",
    default=default(_OF, "threshold"),
    show_default=True,
    metavar="COSINE",
    help="Link statements at least this similar.",
)
@click.option(
    "--encoder",
    default=default(_OF, "encoder"),
    show_default=True,
    metavar="SPEC",
    help="What places the statements: minilm, hf:ID-or-PATH or vectors:FILE.",
)
@click.option("--undo", is_flag=True, help="Remove the links.")
@device_setting
@json_option
def merge(run_name: str | None, store_url: str, as_json: bool, **options: Any) -> None:
    """Link statements that say the same in other words, of whichever group.

    Nothing is merged: all triples stay as they were said. `kgbias export --merged` counts linked
    statements as one, and `--undo` removes the links.
    """
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        found = run.merge(**options)
    if as_json:
        counts = {"triples": found.triples, "triples_merged": found.triples_merged}
        show.data({"run": run.name, **counts, "links": [asdict(link) for link in found.links]})
        return
    show.table(
        (">", ""),
        (
            (f"{link.similarity:.3f}", f"{' '.join(link.said)} -> {' '.join(link.head)}")
            for link in found.links
        ),
    )
    show.say(
        f"{len(found.links)} links: {found.triples} triples as said, {found.triples_merged} when "
        "linked ones count as one"
    )
