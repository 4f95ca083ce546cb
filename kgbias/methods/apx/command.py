"""`kgbias probe apx`: the descriptors that a model ties to groups of names."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import drop_unset, json_option, workers_settings
from kgbias.cli.probe import FILE_TYPE, format_estimate, pop_model, scorer_options
from kgbias.cli.settings import drop_shared, keep_applicable, setting, shared_settings
from kgbias.cli.show import Output
from kgbias.io.wording import pluralise
from kgbias.methods.apx import flag_table, probe_names
from kgbias.parallel import LOCAL_EXECUTOR
from kgbias.parameters import check_applies

if TYPE_CHECKING:
    from kgbias.methods.apx.result import ApxResult


@click.command(
    cls=Command,
    short_help="Probe names x descriptors x templates: APX.",
    examples=("kgbias probe apx --model smollm2 -o apx.csv",),
)
@click.option(
    "--names", metavar="NAME-or-FILE", help="Names and their groups (default: globalbias)."
)
@click.option("--descriptors", metavar="NAME-or-FILE", help="Descriptors (default: globalbias).")
@click.option(
    "--from",
    "table",
    type=FILE_TYPE,
    help="Probe nothing; flag from an APX table (CSV).",
)
@click.option(
    "--exclude-axis",
    "exclude_axes",
    multiple=True,
    metavar="AXIS",
    help="Flag no descriptors of this axis.",
)
@scorer_options
@workers_settings
@click.option("--as-published", is_flag=True, help="Round as the paper's code does.")
@shared_settings("seed")
@click.option(
    "-o",
    "--output",
    type=FILE_TYPE,
    help="Write the APX table (.csv), for --from. The same command continues where it stopped.",
)
@setting(
    "perplexities",
    type=click.Path(path_type=Path),
    help="Write every sentence's perplexity: a .jsonl file or a .parquet folder (default: "
    "TABLE.perplexities.jsonl, beside the table).",
)
@click.option(
    "--store",
    "store_url",
    envvar="KGBIAS_STORE",
    metavar="PATH-or-URL",
    help="Keep the scores in this graph store, and write the flags to it as edges from groups to "
    "descriptors. Scores already there are reused.",
)
@json_option
def apx(
    store_url: str | None,
    table: Path | None,
    exclude_axes: tuple[str, ...],
    names: str | None,
    descriptors: str | None,
    **options: Any,
) -> Output:
    """Flag the descriptors that a model ties to groups of names (APX).

    Some names make every sentence unlikely; Adjusted Perplexity across Descriptors corrects for it.
    """
    if options["executor"] == LOCAL_EXECUTOR:
        options["executor"] = None
    if table is not None:
        options = drop_shared(options)  # nothing is probed
    library_options = drop_unset(names=names, descriptors=descriptors, **options)
    axes = drop_unset(exclude_axes=exclude_axes)
    with kgbias.open(store_url, progress=True) as study:
        keep = store_url is not None
        if table is not None:
            check_applies(library_options, {"spec": {"names", "descriptors", *options}}, ())
            result = flag_table(study, table, keep=keep, **axes)
        else:
            spec = pop_model(options)
            model_options = drop_unset(
                names=names, descriptors=descriptors, **keep_applicable(options, [spec], "scorer")
            )
            result = probe_names(study, spec, keep=keep, **axes, **model_options)
    return Output(result, lambda: _print_result(result))


def _print_result(result: "ApxResult") -> None:
    """Print the flagged descriptors by group, and how they compare with people and chance."""
    from kgbias.probe.apx import can_flag, chance_share

    table = result.table
    by_group: dict[str, list[str]] = {}
    for flag in result.flags:
        by_group.setdefault(flag.group, []).append(flag.descriptor)
    show.say(*(f"{group}: {', '.join(names)}" for group, names in by_group.items()), "")
    if validation := result.validation:
        by_chance_figures = validation.chance_scores
        show.say(
            f"{validation.gain.n} descriptors that people tie to {', '.join(validation.labels)}"
        )
        for name, method_figures in (
            ("perplexity", validation.perplexity),
            ("APX", validation.apx),
        ):
            show.say(
                f"  found by {name}: accuracy {format_estimate(method_figures.accuracy)}, MRR "
                f"{format_estimate(method_figures.mrr)}"
            )
        show.say(
            f"  by chance {by_chance_figures['accuracy']:.3f} and {by_chance_figures['mrr']:.3f}; "
            f"the MRR of APX less that "
            f"of perplexity is {format_estimate(validation.gain)}"
        )
    show.say(
        f"{pluralise(len(result.flags), 'flag')} on {result.flagged_count} of "
        f"{result.tested_count} descriptors ({format_estimate(result.share)}), "
        f"{pluralise(len(table.groups), 'group')}, {len(table.values)} "
        f"templates, "
        f"one-tailed {result.level:.0%} each, not corrected for how many were looked at"
    )
    if can_flag(len(table.groups)):
        chance = chance_share(len(table.groups), result.level)
        show.say(f"by chance alone {chance:.3f}, were scores normal and the groups alike")
    else:
        show.say("so few groups cannot be told apart at this level: no flag is possible")
