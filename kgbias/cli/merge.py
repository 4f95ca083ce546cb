"""`kgbias merge`: link a run's near-duplicates."""

from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    device_setting,
    json_option,
    library_default,
    run_name_argument,
    store_option,
)
from kgbias.cli.show import Output
from kgbias.io.columns import Column
from kgbias.io.wording import pluralise

if TYPE_CHECKING:
    from kgbias.measure.merge import MergeResult

_RUN_METHOD = kgbias.Run.merge


@click.command(
    cls=Command,
    section="Check",
    short_help="Link a run's near-duplicates; this can be undone.",
    examples=("kgbias merge smollm2 --threshold 0.85",),
)
@run_name_argument
@store_option
@click.option(
    "--threshold",
    default=library_default(_RUN_METHOD, "threshold"),
    show_default=True,
    metavar="COSINE",
    help="Link statements at least this similar.",
)
@click.option(
    "--encoder",
    default=library_default(_RUN_METHOD, "encoder"),
    show_default=True,
    metavar="SPEC",
    help="What places the statements: minilm, hf:ID-or-PATH or vectors:FILE.",
)
@click.option("--undo", is_flag=True, help="Remove the links.")
@device_setting
@json_option
def merge(run_name: str | None, store_url: str, **options: Any) -> Output:
    """Link statements that say the same in other words, of whichever group.

    Nothing is merged: all triples stay as they were said. `kgbias export --merged` counts linked
    statements as one, and `--undo` removes the links.
    """
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        merge_result = run.merge(**options)
    data = {
        "run": run.name,
        "triples": merge_result.triples,
        "triples_merged": merge_result.triples_merged,
        "links": merge_result.links,
    }
    return Output(data, lambda: _print_links(merge_result))


def _print_links(merge_result: "MergeResult") -> None:
    show.print_table(
        (Column("", ".3f"), ""),
        (
            (link.similarity, f"{' '.join(link.said)} -> {' '.join(link.head)}")
            for link in merge_result.links
        ),
    )
    show.say(
        f"{pluralise(len(merge_result.links), 'link')}: "
        f"{pluralise(merge_result.triples, 'triple')} as said, "
        f"{merge_result.triples_merged} when "
        "linked ones count as one"
    )
