"""`kgbias backup`: a copy of a store that is in use."""

import click

import kgbias
from kgbias.cli.options import printable, store_option


@click.command()
@click.argument("path", metavar="FILE")
@store_option
def backup(path: str, store_url: str) -> None:
    """Copy a store to FILE, as it is at one moment, while a crawl may go on writing to it.

    FILE.sha256 has its checksum: `sha256sum --check` and `kgbias verify --store FILE` read it. Of a
    Neo4j server, dump the database (`neo4j-admin database dump`), or copy its runs to a file with
    `kgbias push --to FILE`.
    """
    with kgbias.open(store_url, progress=True) as study:
        written = study.backup(path)
    click.echo(f"wrote {printable(str(written))}")
