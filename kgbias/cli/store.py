"""Keep a store: `kgbias runs`, `rename-model`, `delete`, `verify`, `backup`, `compact` and
`push`."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import ask_password, json_option, runs_argument, store_option
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.io.columns import CellWithForm, Column
from kgbias.io.text import format_duration, spoken_name
from kgbias.io.wording import pluralise
from kgbias.study.series import Series

if TYPE_CHECKING:
    from kgbias.study.series import CrawlSpread


@click.command(
    cls=Command,
    section="Main workflow",
    short_help="List the runs in a store.",
    examples=("kgbias runs",),
)
@store_option
@click.option(
    "--series",
    metavar="NAME",
    help="Instead, show how much each figure varies between the crawls of this series.",
)
@json_option
def runs(store_url: str, series: str | None) -> Output:
    """List the runs in a store, oldest first."""
    with kgbias.open(store_url, progress=True) as study:
        if series is not None:
            return _build_series_output(study.series(series))
        runs_found = study.runs()
        records = runs_found.records()
        failures = [
            run.stored.failures() if row["failed"] else Counter[str]()
            for run, row in zip(runs_found, records, strict=True)
        ]
    return Output(records, lambda: _print_runs(store_url, records, failures))


def _print_runs(
    store_url: str, records: Sequence[Mapping[str, Any]], failures: Sequence[Counter[str]]
) -> None:
    if not records:
        show.say(f"no runs in {store_url}: start one with kgbias crawl", err=True)
    for row, failed in zip(records, failures, strict=True):
        triples, statements = row["triples"], row["statements"]
        distinct = f" ({triples / statements:.0%} distinct)" if statements else ""
        show.say(
            f"{row['name']}  {row['model']}{_in_language(row['language'])}  {row['status']}  "
            f"{pluralise(len(row['groups']), 'group')}  "
            f"{pluralise(statements, 'statement')}{distinct}  "
            f"{pluralise(row['generations'], 'generation')}  {row['refused']} refused  "
            f"{row['invalid']} invalid  {row['echoes']} rejected echoes  {row['nonsense']} nonsense"
            + ("" if row["seconds"] is None else f"  asked in {format_duration(row['seconds'])}")
            + (f"  repeats {row['series']}" if row["series"] else "")
        )
        for reason, times in failed.most_common(1):
            show.say(f"  {row['failed']} failed, {times} of them: {reason}")


def _in_language(language: str) -> str:
    return f" in {language}" if language not in ("", "en") else ""


def _build_series_output(series: Series) -> Output:
    spreads = series.figures()
    names = [run.name for run in series]
    data = {"series": series.name, "runs": names, "figures": spreads}
    return Output(data, lambda: _print_series(series, spreads))


def _print_series(series: Series, series_figures: "kgbias.Rows[CrawlSpread]") -> None:
    show.say(f"series {series.name}: {', '.join(r.name for r in series)}")
    if not series_figures:
        show.say("no figures yet: run kgbias measure on each of these runs", err=True)
        return
    columns = (
        Column("measure"),
        Column("group"),
        Column("crawls", "d"),
        Column("mean", ".3g"),
        Column("sd", ".3g"),
        Column("in each crawl", joiner=" "),
    )
    rows = []
    for spread in series_figures:
        group = f"{spread.group} [{spread.arm}]" if spread.arm else spread.group
        values = CellWithForm(spread.values, ".3g")
        rows.append((spoken_name(spread.measure), group, spread.n, spread.mean, spread.sd, values))
    show.print_table(columns, rows)


@click.command(
    cls=Command,
    section="Maintain",
    short_help="Give a model in a store a name of your own.",
    examples=('kgbias rename-model smollm2 "Model A"',),
)
@click.argument("model")
@click.argument("name")
@store_option
def rename_model(model: str, name: str, store_url: str) -> None:
    """Give a model in the store a name of your own.

    Titles, tables, figures, pages and exports show it from then on; no id and no answer depends on
    it. MODEL is its spec, or the name it goes by; "" as NAME takes yours away.
    """
    with kgbias.open(store_url, progress=True) as study:
        name_before = study.store.rename_model(model, name)
    new_name = " ".join(name.split())
    show.say(
        f"{name_before} is called {new_name}"
        if new_name
        else f"{name_before} has its own name again"
    )


@click.command(
    cls=Command,
    section="Maintain",
    short_help="Delete a run and everything that only it holds.",
    examples=("kgbias delete smollm2",),
)
@click.argument("run")
@store_option
@click.option("--yes", is_flag=True, help="Delete without asking.")
@json_option
def delete(run: str, store_url: str, yes: bool) -> Output:
    """Delete a run and everything that only it holds, from its model's answers to the nodes that no
    other run shares.

    Lists what would go, and asks first. `kgbias compact` gives the space back to the disk.
    """
    with kgbias.open(store_url, progress=True) as study:
        run_found = study.run(run)
        if not yes:
            for label, count in study.store.delete(run_found, dry_run=True).items():
                show.say(f"{count:>14,}  {label}", err=True)
            description = f"run {run_found.name} of {run_found.model.title} ({run_found.status})"
            if not sys.stdin.isatty():
                raise UsageError(
                    f"{description} would be deleted with all of this: confirm with --yes"
                )
            show.confirm(f"Delete {description} with all of this?")
        deleted = study.store.delete(run_found)
    nodes = sum(deleted.values())
    line = f"deleted run {run_found.name}: {nodes:,} nodes that only it held"
    return Output({"run": run_found.name, "deleted": deleted}, lambda: show.say(line))


@click.command(
    cls=Command,
    section="Maintain",
    short_help="Check that a store is sound.",
    examples=("kgbias verify",),
)
@store_option
@json_option
def verify(store_url: str) -> Output:
    """Check a store for damage, dangling ids and ids that do not follow from their content, and a
    backup against its checksum. Reads all of it; exits with 1 if something is wrong.
    """
    with kgbias.open(store_url, progress=True) as study:
        faults = study.store.verify()
    data = {"store": store_url, "sound": not faults, "faults": faults}
    count = pluralise(len(faults), "fault") if faults else "no faults"
    total = f"{store_url}: {count}"
    return Output(data, lambda: show.say(*faults, total), lambda: int(bool(faults)))


@click.command(
    cls=Command,
    section="Maintain",
    short_help="Copy a store to a file, even while it is in use.",
    examples=("kgbias backup backup.db",),
)
@click.argument("path", metavar="FILE")
@store_option
def backup(path: str, store_url: str) -> None:
    """Copy a store to FILE as it is at one moment, even while a crawl is writing to it.

    FILE.sha256 has the checksum, for `sha256sum --check` and `kgbias verify --store FILE`. For a
    Neo4j server, dump the database (`neo4j-admin database dump`), or copy its runs to a file with
    `kgbias push --from URL --to FILE`.
    """
    with kgbias.open(store_url, progress=True) as study:
        backup_path = study.store.backup(path)
    show.say(f"wrote {backup_path}")


@click.command(
    cls=Command,
    section="Maintain",
    short_help="Shrink a store's file to the size of its content.",
    examples=("kgbias compact",),
)
@store_option
@json_option
def compact(store_url: str) -> Output:
    """Shrink a store's file to the size of its content, for example after `kgbias delete`.

    Needs as much free disk space as the store takes. A Neo4j server does this by itself.
    """
    with kgbias.open(store_url, progress=True) as study:
        sizes = study.store.compact()
    size_before, size_after = (f"{size / 2**20:,.1f} MiB" for size in (sizes.before, sizes.after))
    return Output(sizes, lambda: show.say(f"{size_before} before, {size_after} now"))


@click.command(
    cls=Command,
    section="Maintain",
    short_help="Copy runs between stores.",
    examples=("kgbias push --from kgbias.db --to neo4j://localhost:7687",),
)
@runs_argument
@click.option(
    "--from",
    "source",
    required=True,
    metavar="PATH-or-URL",
    callback=ask_password,
    help="Copy from this store.",
)
@click.option(
    "--to",
    "target",
    required=True,
    metavar="PATH-or-URL",
    callback=ask_password,
    help="Copy to this store.",
)
def push(source: str, target: str, runs: tuple[str, ...]) -> None:
    """Copy runs (default: all) from one store to another, with their answers, scores and tests.

    What the target already has stays as it is: the same command continues where it stopped.
    """
    with kgbias.open(source, progress=True) as study:
        generations_by_run = study.store.push(target, run=runs)
    for name, new_count in generations_by_run.items():
        show.say(f"run {name}: {new_count} generations were new", err=True)
