"""`kgbias figures`, `report`, `export`, `publish` and `reproduce`: a run's outputs."""

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    base_url_option,
    correction_setting,
    json_option,
    library_default,
    model_settings,
    output_option,
    parallel_option,
    run_name_argument,
    runs_argument,
    selection_options,
    store_option,
)
from kgbias.cli.settings import setting
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.export import FORMATS
from kgbias.io.wording import pluralise
from kgbias.study.reproduction import Difference, Reproduction


@click.command(
    cls=Command,
    section="Main workflow",
    short_help="Write a run's figures and tables for a paper.",
    examples=("kgbias figures smollm2 -o figures",),
)
@runs_argument
@store_option
@output_option(kgbias.Study.figures, "folder", "The folder to write to.")
@correction_setting
@selection_options
def figures(
    runs: tuple[str, ...], store_url: str, folder: Path, correction: str, **selection: Any
) -> None:
    """Write a run's figures as SVG, PDF and PNG, one column wide, each with its numbers as a LaTeX
    table, modelled on those of Salinas et al. 2023; manifest.json says which is which. Each arm has
    its own. For two to six runs: small multiples, ranks, overlap and differences."""
    with kgbias.open(store_url, progress=True) as study:
        files = study.figures(runs, folder, correction=correction, **selection)
    for path in files:
        show.say(path)


@click.command(
    cls=Command,
    section="Main workflow",
    short_help="Write a run's report as an HTML page.",
    examples=("kgbias report smollm2 -o report.html",),
)
@runs_argument
@store_option
@output_option(kgbias.Study.report, "path", "The page to write.")
@click.option(
    "--explorer",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the runs' explorer to this file; the report links to its views.",
)
@click.option(
    "--summary",
    is_flag=True,
    help="Instead, write a page to hand in: what was asked, refused, found, not shown, the limits, "
    "and statements drawn at random. Markdown (default file: summary.md), or PDF with -o FILE.pdf.",
)
@parallel_option
@selection_options
@click.pass_context
def report(
    context: click.Context,
    /,
    runs: tuple[str, ...],
    store_url: str,
    path: Path,
    explorer: Path | None,
    summary: bool,
    parallel: str | None,
    **selection: Any,
) -> None:
    """Write the report of a run (default: the newest) as one page: findings, figures, an
    interactive graph and every triple, with several arms side by side. For two to six runs: small
    multiples, ranks, overlap and differences; for two in different languages: what one model
    believes in each."""
    with kgbias.open(store_url, progress=True) as study:
        if summary:
            if len(runs) > 1 or explorer or parallel:
                raise UsageError("--summary is of one run, without an explorer or --parallel")
            if context.get_parameter_source("path") is ParameterSource.DEFAULT:
                path = Path("summary.md")
            page_path = study.run(*runs).summarise(path, **selection)
        else:
            page_path = study.report(runs, path, explorer=explorer, parallel=parallel, **selection)
    for page in (page_path, explorer):
        if page is not None:
            show.say_where(page)


@click.command(
    cls=Command,
    section="Main workflow",
    short_help="Write a run's triples for other tools.",
    examples=("kgbias export smollm2 -o triples.csv --min-count 2",),
)
@run_name_argument
@store_option
@click.option(
    "--format",
    metavar="NAME",
    help=f"{', '.join(FORMATS.own_names)}, or one added by a package (default: by the file's "
    f"extension, "
    "jsonl on stdout).",
)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path),
    help="The file to write; a folder for neo4j-admin (default: stdout).",
)
@click.option(
    "--only", "group", multiple=True, metavar="NAME", help="Only this group (repeatable)."
)
@click.option("--predicate", metavar="TEXT", help="Only triples with this predicate.")
@click.option("--topic", metavar="TEXT", help="Only triples whose topic has this text in its name.")
@click.option(
    "--min-count",
    type=click.IntRange(min=1),
    default=library_default(kgbias.Run.export, "min_count"),
    help="Only statements made at least this often.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), help="At most this many, the most frequent first."
)
@click.option(
    "--per-group",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most this many per group (default for pictures: as many as are legible).",
)
@click.option("--merged", is_flag=True, help="Count near-duplicates as one (see kgbias merge).")
@setting(
    "width",
    type=click.FloatRange(3, 20),
    default=library_default(kgbias.Run.export, "width"),
    help="How wide a picture is, in inches: 3.1 for a column of LaTeX's two-column article.",
)
@selection_options
def export(run_name: str | None, store_url: str, path: Path | None, **options: Any) -> None:
    """Write a run's triples with counts and scores, as tables, graphs or pictures."""
    with kgbias.open(store_url, progress=True) as study:
        triple_count = study.run(run_name).export(path or sys.stdout, **options)
    if path is not None:
        format = options["format"]
        whole = format in FORMATS and FORMATS[format].whole
        description = "all that was read" if whole else pluralise(triple_count, "triple")
        show.say(f"{description} to {path}", err=True)


@click.command(
    cls=Command,
    section="Publish",
    short_help="Write a run as a data set for others.",
    examples=("kgbias publish smollm2 -o data --license CC-BY-4.0",),
)
@run_name_argument
@store_option
@output_option(kgbias.Run.publish, "folder", "The folder to write to, new or empty.")
@click.option(
    "--license",
    metavar="TEXT",
    default=library_default(kgbias.Run.publish, "license"),
    help="The licence of the model's outputs: an SPDX identifier, an address or words (default: "
    "marked as not stated).",
)
@click.option(
    "--author", multiple=True, metavar="NAME", help="Who publishes the data (repeatable)."
)
@click.option("--figures", is_flag=True, help="Also write the run's figures and tables.")
@selection_options
def publish(run_name: str | None, store_url: str, folder: Path, **options: Any) -> None:
    """Write a run's statements as a data set that others can load, cite and reproduce: Parquet and
    JSON lines, a dataset card with a data statement, Croissant metadata, group figures in the
    schema of Every Eval Ever, a citation, the configuration, and checksums."""
    with kgbias.open(store_url, progress=True) as study:
        files = study.run(run_name).publish(folder, **options)
    for path in files:
        show.say(path)


_MAX_SHOWN = 20


@click.command(
    cls=Command,
    section="Publish",
    short_help="Repeat a published run, and say what differs.",
    examples=("kgbias reproduce data --check",),
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Only check the files against their checksums.")
@click.option(
    "--store",
    metavar="PATH-or-URL",
    help="The store to make the run in (default: a temporary one). With a store of your own, the "
    "same command continues where it stopped.",
)
@click.option("--model", metavar="SPEC", help="Ask this model (default: the published one).")
@click.option("--prompts", metavar="FOLDER", help="The prompt pack, if kgbias lacks it.")
@setting(
    "rounding",
    type=click.FloatRange(min=0),
    default=library_default(kgbias.reproduce, "rounding"),
    help="Scores that differ by no more than this count as the same.",
)
@base_url_option
@model_settings
@json_option
def reproduce(folder: Path, **options: Any) -> Output:
    """Repeat a published run from the configuration in FOLDER, and say what differs: the files (by
    their checksums), the model, the statements, how often they were made, and their scores. Exits
    with 1 if anything differs."""
    reproduction = kgbias.reproduce(folder, progress=True, **options)
    data = {
        "run": reproduction.run,
        "same": reproduction.same,
        "statements": reproduction.statements,
        "made": reproduction.made,
        "asked": reproduction.asked,
        "cached": reproduction.cached,
        "notes": reproduction.notes,
        "differences": reproduction.differences,
    }
    return Output(
        data, lambda: _print_reproduction(reproduction), lambda: int(not reproduction.same)
    )


def _print_reproduction(reproduction: Reproduction) -> None:
    for note in reproduction.notes:
        show.say(note)
    for difference in reproduction.differences[:_MAX_SHOWN]:
        show.say(_difference_line(difference))
    if len(reproduction.differences) > _MAX_SHOWN:
        show.say(f"... and {len(reproduction.differences) - _MAX_SHOWN} more; --json shows all")
    if reproduction.made is None:
        files = "all files are" if reproduction.same else "not all files are"
        show.say(f"{files} as they were published")
        return
    show.say(
        f"{reproduction.run}: "
        f"{pluralise(reproduction.statements, 'statement')} published, {reproduction.made} "
        f"made here "
        f"from {pluralise(reproduction.asked, 'new answer')} and {reproduction.cached} in the store"
    )
    number = len(reproduction.differences)
    show.say("nothing differs" if reproduction.same else pluralise(number, "difference"))


def _difference_line(difference: Difference) -> str:
    if difference.what == "file":
        return f"file {difference.published} is {difference.here}"
    statement_text = (
        f"{difference.arm}: {difference.group} / {difference.predicate} / {difference.object}: "
        if difference.group
        else ""
    )
    if difference.what == "statement":
        place_text = "made only here" if difference.here else "not made here"
        return f"{statement_text}{place_text}"
    return (
        f"{statement_text}{difference.what} was {difference.published or 'nothing'}, is "
        f"{difference.here or 'nothing'}"
    )
