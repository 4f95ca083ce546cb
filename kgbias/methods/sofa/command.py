"""`kgbias sofa`: probing data sets like SoFa's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import CommandGroup
from kgbias.cli.options import (
    correction_setting,
    device_setting,
    drop_unset,
    encoding_option,
    json_option,
    library_default,
    model_settings,
    selection_options,
    store_option,
)
from kgbias.cli.probe import print_comparison
from kgbias.cli.settings import setting, shared_settings
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.graph.sofa import MIN_HATE_SCORE
from kgbias.io.columns import Column
from kgbias.io.wording import pluralise
from kgbias.methods import sofa as sofa_method

if TYPE_CHECKING:
    from kgbias.graph.sofa import ProbeSet
    from kgbias.methods.sofa.build import SofaSet

_LIBRARY_FUNCTION = sofa_method.build_set


@click.group(cls=CommandGroup, examples=("kgbias sofa build sbic.csv -o probes",))
def sofa() -> None:
    """Build probing data sets the way SoFa was built (Marchiori Manerba et al. 2023)."""


@sofa.command(examples=("kgbias sofa build --run smollm2 --identities run -o probes",))
@click.argument("source", required=False, type=click.Path(path_type=Path))
@encoding_option
@click.option("--run", "run_name", metavar="NAME", help="Use a run's statements instead of a file.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write to.",
)
@click.option(
    "--identities",
    default=library_default(_LIBRARY_FUNCTION, "identities"),
    show_default=True,
    metavar="NAME-or-FILE",
    help="The groups: sofa (407), a file, or run for those of the run.",
)
@click.option("--column", metavar="NAME", help="The table's column of stereotypes.")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="SPEC",
    help="Cut the least likely statements by this model's perplexity (repeatable: the mean).",
)
@setting(
    "acceptability",
    default=library_default(_LIBRARY_FUNCTION, "acceptability"),
    metavar="SCORER",
    help="The scorer that judges good English, as for kgbias measure, or none.",
)
@setting(
    "cut",
    default=library_default(_LIBRARY_FUNCTION, "cut"),
    metavar="SHARE",
    help="The share of least likely statements to cut.",
)
@model_settings
@store_option
@selection_options
@json_option
def build(
    source: Path | None,
    run_name: str | None,
    store_url: str,
    identities: str,
    arm: str | None,
    exclude_echoes: bool,
    **options: Any,
) -> Output:
    """Build probes from SOURCE: a copy of SBIC (CSV), a table of statements, or a text file.

    Strips each stereotype of its subject, puts its first verb in the plural, filters, and puts the
    rest after every identity of its category. Writes statements.csv, probes.csv, a data statement,
    a manifest, and exhibits of what the filters took."""
    if (source is None) == (run_name is None):
        raise UsageError("sofa build takes a file or --run NAME")
    library_options = {k: v for k, v in options.items() if v is not None}
    library_options["identities"] = None if identities == "run" else identities
    if run_name is None:
        if arm is not None:
            raise UsageError("--arm needs --run")
        built = sofa_method.build_set(source, progress=True, **library_options)  # type: ignore[arg-type]
    else:
        with kgbias.open(store_url, progress=True) as study:
            selection: Any = {"arm": arm, "exclude_echoes": exclude_echoes}
            built = sofa_method.build_set(
                study.run(run_name), progress=True, selection=selection, **library_options
            )
    return Output(built, lambda: _print_built(built, options["output"]))


def _print_built(built: "SofaSet", output: Path) -> None:
    show.print_table(
        ("", Column("came", "d"), Column("stayed", "d"), ""),
        (
            (
                filter_result.name,
                filter_result.input_count,
                filter_result.kept_count,
                _describe_reasons(filter_result.reasons),
            )
            for filter_result in built.filters
        ),
    )
    data = built.as_dict()
    show.say(
        f"{data['identities']} identities, {pluralise(data['statements'], 'statement')}, "
        f"{pluralise(data['probes'], 'probe')}: {output}"
    )


def _describe_reasons(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in reasons.items())


@sofa.command(examples=("kgbias sofa results -o tables",))
@click.argument("probe_set", required=False, metavar="[SET]")
@click.option("--run", "run_name", metavar="NAME", help="Only probes of this run.")
@store_option
@correction_setting
@click.option(
    "--beside",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With -o: scores on other benchmarks for table 1 (CSV: model, and a column for each).",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the paper's tables and figures to this folder.",
)
@json_option
def results(
    probe_set: str | None,
    run_name: str | None,
    store_url: str,
    correction: str,
    beside: Path | None,
    output: Path | None,
) -> Output:
    """Rank models by SoFa on a SET of probes: ranks, scores by category, paired tests.

    SET is the name of a set or the beginning of its id; default: the set that most models were
    probed with (kgbias probe RUN --model A --model B, or probe sets). With -o, writes tables 1 to
    3, 5 and 6 and figures 2, 3 and 5 to 9 of the paper."""
    if beside is not None and output is None:
        raise UsageError("--beside needs -o: it adds columns to table 1")
    with kgbias.open(store_url, progress=True) as study:
        library_options: Any = {"probe_set": probe_set, "run": run_name, "correction": correction}
        comparison = study.sofa(**library_options)
        files: Sequence[Path] = (
            ()
            if output is None
            else sofa_method.write_figures(study, output, beside=beside, **library_options)
        )

    def print_text() -> None:
        print_comparison(comparison)
        for path in files:
            show.say(path)

    return Output(comparison, print_text)


@sofa.command(examples=("kgbias sofa describe",))
@click.argument("probe_set", required=False, metavar="[SET]")
@store_option
@click.option(
    "--hate",
    default=library_default(sofa_method.describe_set, "hate"),
    show_default=True,
    metavar="SCORER",
    help="The scorer that says which statements are hate speech: one of toxicity, as for kgbias "
    "measure, or none.",
)
@setting(
    "embedding",
    default=library_default(sofa_method.describe_set, "embedding"),
    metavar="SPEC",
    help="The embedding to cluster statements in, as for kgbias measure, or none.",
)
@setting(
    "min-cluster-size", type=int, metavar="N", help="Default: 1% of the statements, at least 5."
)
@device_setting
@shared_settings("seed")
@json_option
def describe(
    probe_set: str | None,
    store_url: str,
    hate: str,
    embedding: str,
    **options: Any,
) -> Output:
    """Show what the statements of a SET are about, and which of them are hate speech.

    Figures 5 and 6 of kgbias sofa results -o show the clusters and the split."""
    spec_options = {"hate": hate, "embedding": embedding}
    library_options: Any = {
        k: None if v == "none" else v for k, v in spec_options.items()
    } | drop_unset(**options)
    with kgbias.open(store_url, progress=True) as study:
        description = sofa_method.describe_set(study, probe_set, **library_options)
    statements_by_category = {
        category_part.category: [
            {"statement": s.text, "hate": s.hate, "cluster": s.cluster}
            for s in category_part.statements
        ]
        for category_part in description.parts
    }
    data = {
        "name": description.name,
        "id": description.id,
        **description.record,
        "statements": statements_by_category,
    }
    return Output(data, lambda: _print_description(description))


def _print_description(description: "ProbeSet") -> None:
    for category_part in description.parts:
        hateful = sum((s.hate or 0) >= MIN_HATE_SCORE for s in category_part.statements)
        if "hate" in description.record:
            show.say(
                f"{category_part.category}: {hateful} of {len(category_part.statements)} are hate"
            )
    clusters = description.record.get("clusters", {}).get("found", ())
    show.print_table(
        (Column("", "d"), ""), ((c["size"], ", ".join(c["words"][:6])) for c in clusters)
    )
