"""`kgbias push`: copy runs between stores."""

from contextlib import closing

import click

from kgbias.cli.options import printable, with_password
from kgbias.cli.progress import shown_progress
from kgbias.errors import UsageError
from kgbias.graph.push import push as push_run
from kgbias.graph.store import open_store
from kgbias.graph.stored import StoredRun


@click.command()
@click.option(
    "--from",
    "source_url",
    required=True,
    metavar="PATH-or-URL",
    callback=with_password,
    help="Copy from this store.",
)
@click.option(
    "--to",
    "target_url",
    required=True,
    metavar="PATH-or-URL",
    callback=with_password,
    help="To this one.",
)
@click.option("--run", "names", multiple=True, metavar="NAME", help="Default: all (repeatable).")
def push(source_url: str, target_url: str, names: tuple[str, ...]) -> None:
    """Copy runs from one store to another, with their answers, scores and tests.

    What is there already is left as it is: the same command again goes on where it was stopped.
    """
    if source_url == target_url:
        raise UsageError("name two stores: --from and --to are the same")
    with (
        shown_progress() as progress,
        closing(open_store(source_url, create=False, notify=progress.note)) as source,
        closing(open_store(target_url, notify=progress.note)) as target,
    ):
        runs = [source.find_run(name) for name in names] or [s.run for s in source.summaries()]
        if not runs:
            raise UsageError(f"there is no run in {source_url}")
        for run in runs:
            written = push_run(StoredRun(source, run), target, progress)
            progress.note(f"run {printable(run.name)}: {written} generations were new")
