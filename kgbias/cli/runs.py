"""`kgbias runs`: what a store holds."""

from contextlib import closing

import click

from kgbias.cli.options import json_option, print_json, printable, store_option
from kgbias.graph.store import open_store


@click.command()
@store_option
@json_option
def runs(store_url: str, as_json: bool) -> None:
    """List the runs in a store, oldest first."""
    with closing(open_store(store_url, create=False)) as store:
        summaries = store.summaries()
    if as_json:
        print_json(
            [
                {
                    "name": s.run.name,
                    "model": s.run.model.name,
                    "revision": s.run.model.revision,
                    "kind": s.run.kind,
                    "status": s.run.status,
                    "created": s.run.created,
                    "groups": [group.name for group in s.run.groups],
                    "categories": sorted({group.category for group in s.run.groups}),
                    "triples": s.triples,
                    "generations": s.generations,
                    "refused": s.refused,
                    "invalid": s.invalid,
                    "failed": s.failed,
                    "resampled": s.resampled,
                    "prompt_tokens": s.prompt_tokens,
                    "completion_tokens": s.completion_tokens,
                }
                for s in summaries
            ]
        )
        return
    if not summaries:
        click.echo(f"no runs in {store_url}: start one with kgbias crawl", err=True)
    for s in summaries:
        click.echo(
            f"{printable(s.run.name)}  {printable(s.run.model.name)}  {s.run.status}  "
            f"{len(s.run.groups)} groups  {s.triples} triples  {s.generations} generations  "
            f"{s.refused} refused  {s.invalid} invalid"
        )
