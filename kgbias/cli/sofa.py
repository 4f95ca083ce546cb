"""`kgbias sofa`: probing data sets like SoFa's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Parts
from kgbias.cli.options import (
    correction_setting,
    default,
    device_setting,
    encoding_option,
    json_option,
    model_settings,
    said,
    selection_options,
    store_option,
)
from kgbias.cli.probe import print_comparison
from kgbias.cli.settings import setting, settings
from kgbias.errors import UsageError
from kgbias.graph.sofa import MIN_HATE_SCORE

_OF = kgbias.build_sofa


@click.group(cls=Parts, examples=("kgbias sofa build sbic.csv -o probes",))
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
    default=default(_OF, "identities"),
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
    default=default(_OF, "acceptability"),
    metavar="SCORER",
    help="The scorer that judges good English, as for kgbias measure, or none.",
)
@setting(
    "cut",
    default=default(_OF, "cut"),
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
    as_json: bool,
    arm: str | None,
    without_echoes: bool,
    **options: Any,
) -> None:
    """Build probes from SOURCE: a copy of SBIC (CSV), a table of statements, or a text file.

    Strips each stereotype of its subject, puts its first verb in the plural, filters, and puts the
    rest after every identity of its category. Writes statements.csv, probes.csv, a data statement,
    a manifest, and exhibits of what the filters took."""
    if (source is None) == (run_name is None):
        raise UsageError("sofa build takes a file or --run NAME")
    asked = {k: v for k, v in options.items() if v is not None}
    asked["identities"] = None if identities == "run" else identities
    if run_name is None:
        if arm is not None:
            raise UsageError("--arm needs --run")
        built = kgbias.build_sofa(source, progress=True, **asked)  # type: ignore[arg-type]
    else:
        with kgbias.open(store_url, progress=True) as study:
            chosen: Any = {"arm": arm, "without_echoes": without_echoes}
            built = kgbias.build_sofa(study.run(run_name), progress=True, selection=chosen, **asked)
    if as_json:
        show.data(built.as_dict())
        return
    show.table(
        ("", ">came", ">stayed", ""),
        ((taken.name, taken.came, taken.kept, _why(taken.reasons)) for taken in built.filters),
    )
    data = built.as_dict()
    show.say(
        f"{data['identities']} identities, {data['statements']} statements, "
        f"{data['probes']} probes: {options['output']}"
    )


def _why(reasons: Mapping[str, int]) -> str:
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
    as_json: bool,
) -> None:
    """Rank models by SoFa on a SET of probes: ranks, scores by category, paired tests.

    SET is the name of a set or the beginning of its id; default: the set that most models were
    probed with (kgbias probe RUN --model A --model B, or probe sets). With -o, writes tables 1 to
    3, 5 and 6 and figures 2, 3 and 5 to 9 of the paper."""
    if beside is not None and output is None:
        raise UsageError("--beside needs -o: it adds columns to table 1")
    with kgbias.open(store_url, progress=True) as study:
        chosen: Any = {"probe_set": probe_set, "run": run_name, "correction": correction}
        found = study.sofa(**chosen)
        files = [] if output is None else study.sofa_figures(output, beside=beside, **chosen)
    if as_json:
        show.data(found.as_dict())
        return
    print_comparison(found)
    for path in files:
        show.say(path)


@sofa.command(examples=("kgbias sofa describe",))
@click.argument("probe_set", required=False, metavar="[SET]")
@store_option
@click.option(
    "--hate",
    default=default(kgbias.Study.describe_probes, "hate"),
    show_default=True,
    metavar="SCORER",
    help="The scorer that says which statements are hate speech: one of toxicity, as for kgbias "
    "measure, or none.",
)
@setting(
    "embedding",
    default=default(kgbias.Study.describe_probes, "embedding"),
    metavar="SPEC",
    help="The embedding to cluster statements in, as for kgbias measure, or none.",
)
@setting(
    "min-cluster-size", type=int, metavar="N", help="Default: 1% of the statements, at least 5."
)
@device_setting
@settings("seed")
@json_option
def describe(
    probe_set: str | None,
    store_url: str,
    hate: str,
    embedding: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Show what the statements of a SET are about, and which of them are hate speech.

    Figures 5 and 6 of kgbias sofa results -o show the clusters and the split."""
    asked = {"hate": hate, "embedding": embedding}
    chosen: Any = {k: None if v == "none" else v for k, v in asked.items()} | said(**options)
    with kgbias.open(store_url, progress=True) as study:
        found = study.describe_probes(probe_set, **chosen)
    if as_json:
        parts = {
            part.category: [
                {"statement": s.text, "hate": s.hate, "cluster": s.cluster} for s in part.statements
            ]
            for part in found.parts
        }
        show.data({"name": found.name, "id": found.id, **found.record, "statements": parts})
        return
    for part in found.parts:
        hateful = sum((s.hate or 0) >= MIN_HATE_SCORE for s in part.statements)
        if "hate" in found.record:
            show.say(f"{part.category}: {hateful} of {len(part.statements)} are hate")
    clusters = found.record.get("clusters", {}).get("found", ())
    show.table((">", ""), ((c["size"], ", ".join(c["words"][:6])) for c in clusters))
