"""`kgbias serve`: runs to look around in, from a server."""

from typing import Any

import click

import kgbias
from kgbias.cli.options import default, selection_options, store_option


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@store_option
@click.option(
    "--host",
    default=default(kgbias.Study.serve, "host"),
    show_default=True,
    help="The address to listen on; others than this machine's own need a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=default(kgbias.Study.serve, "port"),
    show_default=True,
    help="The port; 0 for any that is free.",
)
@selection_options
def serve(runs: tuple[str, ...], store_url: str, **options: Any) -> None:
    """Serve what `kgbias explore` writes, until Ctrl-C: for graphs too large for a file, and for a
    team. It only reads, and shows the runs (default: the newest) as they were when it began.

    Where KGBIAS_SERVE_TOKEN is set (at least 16 characters), a browser must show it: open the
    address once with ?token=... at its end. Without it nobody but this machine is answered."""
    with kgbias.open(store_url, progress=True) as study:
        study.serve(runs, listening=click.echo, **options)
