"""`kgbias import`: a run from a file of triples or profiles."""

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from kgbias.cli.options import json_option, print_json, printable, store_option
from kgbias.errors import UsageError
from kgbias.graph.store import open_store


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@store_option
@click.option("--run", "run_name", metavar="NAME", help="A name for the run.")
@click.option("--model", default="unknown", show_default=True, help="What said these statements.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["csv", "tsv", "jsonl", "profiles"]),
    help="Default: by the file's extension. profiles: one character a row, attributes as columns.",
)
@click.option("--group", metavar="COLUMN", help="Default: group; for profiles: name.")
@click.option("--predicate", default="predicate", show_default=True, metavar="COLUMN")
@click.option("--object", "object_", default="object", show_default=True, metavar="COLUMN")
@click.option("--category", metavar="COLUMN", help="Default: category, where there is one.")
@click.option("--count", metavar="COLUMN", help="How often it was said; default: count.")
@click.option("--arm", metavar="COLUMN", help="The augmentation arm; default: arm.")
@click.option(
    "--category-name",
    default="imported",
    show_default=True,
    help="The category of groups whose rows name none.",
)
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    metavar="COLUMN",
    help="Profiles: an attribute to read (repeatable; default: all that tell of the character).",
)
@click.option(
    "--say",
    "said_as",
    multiple=True,
    metavar="COLUMN=PREDICATE",
    help="Profiles: the predicate of an attribute, such as hobbies=love (repeatable).",
)
@json_option
def import_(
    file: Path,
    store_url: str,
    run_name: str | None,
    model: str,
    format_name: str | None,
    category_name: str,
    attributes: tuple[str, ...],
    said_as: tuple[str, ...],
    as_json: bool,
    **columns: Any,
) -> None:
    """Make a run of statements that were collected elsewhere, so that all of kgbias works on them:
    CSV, TSV or JSON lines with the columns group, predicate and object, or character profiles."""
    from kgbias.ingest import (
        Columns,
        ProfileColumns,
        import_file,
        read_profiles,
        read_triples,
        whole,
    )
    from kgbias.ingest.records import format_of

    settings: dict[str, Any] = {"format": format_name or format_of(file)}
    if settings["format"] == "profiles":
        layout = "csv" if file.suffix.lower() not in (".tsv", ".jsonl") else format_of(file)
        profile = ProfileColumns(
            columns["group"] or "name", attributes, _pairs(said_as), columns["category"]
        )
        rows = read_profiles(file, layout, profile)
        settings |= {
            "group": profile.group,
            "attributes": list(attributes),
            "say": dict(profile.said_as),
        }
    else:
        if attributes or said_as:
            raise UsageError("--attribute and --say belong to --format profiles")
        columns["object"] = columns.pop("object_")
        named = {key: value for key, value in columns.items() if value}
        rows = read_triples(file, settings["format"], Columns(**named))
        settings |= {"columns": named}
    statements, left_out = whole(file, rows)  # a bad file is told before a store is made
    with closing(open_store(store_url)) as store:
        done = import_file(
            store, file, statements, settings, name=run_name, model=model, category=category_name
        )
    if as_json:
        print_json(
            {
                "run": done.run.name,
                "groups": len(done.run.groups),
                "statements": done.statements,
                "triples": done.triples,
                "left_out": left_out,
            }
        )
        return
    click.echo(
        f"run {printable(done.run.name)}: {done.statements} statements, {done.triples} distinct, "
        f"about {len(done.run.groups)} groups"
        + (f"; {left_out} rows lack a part and were left out" if left_out else "")
    )


def _pairs(said_as: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in said_as:
        column, sign, predicate = text.partition("=")
        if not (column and sign and predicate.strip()):
            raise UsageError(f"--say takes COLUMN=PREDICATE, not {text!r}")
        pairs[column] = predicate.strip()
    return pairs
