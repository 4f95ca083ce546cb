"""`kgbias import`: a run from a file of triples or profiles."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import NAME_VALUE, Command
from kgbias.cli.options import (
    encoding_option,
    json_option,
    library_default,
    store_option,
)
from kgbias.cli.settings import setting
from kgbias.cli.show import Output
from kgbias.ingest.formats import describe_formats
from kgbias.ingest.statement_file import TABLE_FORMATS
from kgbias.io.wording import pluralise

_STUDY_METHOD = kgbias.Study.import_file


@click.command(
    "import",
    cls=Command,
    section="Get statements",
    short_help="Make a run from a file of triples or profiles.",
    examples=("kgbias import said.csv --run said --model some-model",),
)
@click.argument("file", type=click.Path(path_type=Path))
@encoding_option
@store_option
@click.option("--run", "name", metavar="NAME", help="A name for the run.")
@click.option(
    "--model",
    default=library_default(_STUDY_METHOD, "model"),
    show_default=True,
    help="The source of the statements.",
)
@click.option(
    "--format",
    metavar="NAME",
    help=f"{', '.join(TABLE_FORMATS)}, or another (default: by what the file holds). profiles: a "
    f"character per row, attributes as columns. {' '.join(describe_formats())}",
)
@click.option("--group", metavar="COLUMN", help="Default: group; for profiles: name.")
@click.option(
    "--predicate",
    default=library_default(_STUDY_METHOD, "predicate"),
    show_default=True,
    metavar="COLUMN",
)
@click.option(
    "--object",
    default=library_default(_STUDY_METHOD, "object"),
    show_default=True,
    metavar="COLUMN",
)
@click.option("--category", metavar="COLUMN", help="Default: category, if there is one.")
@click.option("--count", metavar="COLUMN", help="How often a statement was made; default: count.")
@click.option("--arm", metavar="COLUMN", help="The augmentation arm; default: arm.")
@setting(
    "category-name",
    metavar="NAME",
    default=library_default(_STUDY_METHOD, "category_name"),
    help="The category of groups whose rows name none "
    f"(default: {library_default(_STUDY_METHOD, 'category_name')}).",
)
@click.option(
    "--attribute",
    multiple=True,
    metavar="COLUMN",
    help="Profiles: an attribute to read (repeatable; default: all that describe the character).",
)
@click.option(
    "--attribute-predicate",
    "attribute_predicates",
    type=NAME_VALUE,
    multiple=True,
    metavar="COLUMN=PREDICATE",
    help="Profiles: the predicate of an attribute, such as hobbies=love (repeatable).",
)
@json_option
def import_(
    file: Path, store_url: str, attribute_predicates: tuple[tuple[str, str], ...], **options: Any
) -> Output:
    """Make a run from statements collected elsewhere, to use all of kgbias on them: a table (CSV,
    TSV, JSON, Parquet or Excel) with the columns group, predicate and object; character profiles;
    or the statements about groups in a folder of documents or in a knowledge graph from RAGAS."""
    with kgbias.open(store_url, progress=True) as study:
        run = study.import_file(file, attribute_predicates=dict(attribute_predicates), **options)
        imported, groups = run.import_result, len(run.stored.groups)
    data = {
        "run": run.name,
        "groups": groups,
        "statements": imported.statements,
        "triples": imported.triples,
        "left_out": imported.left_out,
    }
    line = (
        f"run {run.name}: "
        f"{pluralise(imported.statements, 'statement')}, {imported.triples} distinct, about "
        f"{groups} group{'s' if groups != 1 else ''}"
    )
    if imported.left_out:
        line += (
            f"; {pluralise(imported.left_out, 'row')} left out, incomplete or with a group "
            "that is no plain text"
        )
    if imported.passages:
        data |= {"nodes": imported.passages, "relationships": imported.relations}
        line += (
            f"; {pluralise(imported.passages, 'node')}, "
            f"{pluralise(imported.relations, 'relationship')}"
        )
    return Output(data, lambda: show.say(line))
