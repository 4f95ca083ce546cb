"""`kgbias import`: a run from a file of triples or profiles."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import PAIR, Command
from kgbias.cli.options import (
    default,
    encoding_option,
    json_option,
    store_option,
)
from kgbias.ingest import FORMATS

_OF = kgbias.Study.import_file


@click.command(
    "import", cls=Command, examples=("kgbias import said.csv --run said --model some-model",)
)
@click.argument("file", type=click.Path(path_type=Path))
@encoding_option
@store_option
@click.option("--run", "name", metavar="NAME", help="A name for the run.")
@click.option(
    "--model",
    default=default(_OF, "model"),
    show_default=True,
    help="The source of the statements.",
)
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Default: by what the file holds. profiles: a character per row, attributes as columns. "
    "ragas: a knowledge graph from RAGAS. documents: a folder of text files. stereotales: a table "
    "of stories, of the model given.",
)
@click.option("--group", metavar="COLUMN", help="Default: group; for profiles: name.")
@click.option("--predicate", default=default(_OF, "predicate"), show_default=True, metavar="COLUMN")
@click.option("--object", default=default(_OF, "object"), show_default=True, metavar="COLUMN")
@click.option("--category", metavar="COLUMN", help="Default: category, if there is one.")
@click.option("--count", metavar="COLUMN", help="How often a statement was made; default: count.")
@click.option("--arm", metavar="COLUMN", help="The augmentation arm; default: arm.")
@click.option(
    "--category-name",
    default=default(_OF, "category_name"),
    show_default=True,
    help="The category of groups whose rows name none.",
)
@click.option(
    "--attribute",
    multiple=True,
    metavar="COLUMN",
    help="Profiles: an attribute to read (repeatable; default: all that describe the character).",
)
@click.option(
    "--say",
    type=PAIR,
    multiple=True,
    metavar="COLUMN=PREDICATE",
    help="Profiles: the predicate of an attribute, such as hobbies=love (repeatable).",
)
@json_option
def import_(
    file: Path, store_url: str, say: tuple[tuple[str, str], ...], as_json: bool, **options: Any
) -> None:
    """Make a run from statements collected elsewhere, to use all of kgbias on them: a table (CSV,
    TSV, JSON, Parquet or Excel) with the columns group, predicate and object; character profiles;
    or the statements about groups in a folder of documents or in a knowledge graph from RAGAS."""
    with kgbias.open(store_url, progress=True) as study:
        run = study.import_file(file, say=dict(say), **options)
        done, groups = run.import_result, len(run.stored.groups)
    if as_json:
        found = {
            "run": run.name,
            "groups": groups,
            "statements": done.statements,
            "triples": done.triples,
            "left_out": done.left_out,
        }
        if done.passages:
            found |= {"nodes": done.passages, "relationships": done.relations}
        return show.data(found)
    show.say(
        f"run {run.name}: {done.statements} statements, {done.triples} distinct, about "
        f"{groups} groups"
        + (f"; {done.left_out} incomplete rows were left out" if done.left_out else "")
        + (f"; {done.passages} nodes, {done.relations} relationships" if done.passages else "")
    )
