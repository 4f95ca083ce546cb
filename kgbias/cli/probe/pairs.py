"""`kgbias probe pairs`: StereoSet, CrowS-Pairs, BBQ and Winogender."""

from contextlib import ExitStack
from typing import Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option, workers_options
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import FILE, opened_scorer, scorer_options, seed_option
from kgbias.cli.probe.output import show, shown
from kgbias.errors import UsageError
from kgbias.graph.store import open_store
from kgbias.parameters import check_applies

_TAKES = {
    "stereoset": ["convention", "seed"],
    "crows_pairs": ["convention"],
    "bbq": ["seed"],
    "winogender": ["seed"],
}


@click.command(cls=Part)
@click.option("--stereoset", type=FILE, help="Score this StereoSet file (JSON).")
@click.option("--crows-pairs", type=FILE, help="Score this CrowS-Pairs file (CSV).")
@click.option(
    "--bbq",
    type=FILE,
    multiple=True,
    help="Score this BBQ file (JSON lines; repeatable, also for its additional_metadata.csv).",
)
@click.option("--winogender", type=FILE, help="Score Winogender's all_sentences.tsv.")
@click.option(
    "--convention",
    type=click.Choice(["original", "bias-bench"]),
    help="Score as the authors' code does, or as bias-bench (default: original). They differ for "
    "CrowS-Pairs alone.",
)
@click.option(
    "--store",
    "store_url",
    metavar="PATH-or-URL",
    help="Keep the scores of the items in this store, and compute none that it holds.",
)
@scorer_options
@workers_options
@seed_option
@json_option
def pairs(as_json: bool, store_url: str | None, **given: Any) -> None:
    """Score a benchmark of sentences, from your own copy of its file."""
    files = {name: given.pop(name) for name in _TAKES}
    chosen = [name for name, value in files.items() if value]
    if len(chosen) != 1:
        raise UsageError(
            "name one file: --stereoset FILE, --crows-pairs FILE, --bbq FILE or --winogender FILE"
        )
    name = chosen[0]
    with as_flags():
        check_applies(said(convention=given["convention"]), _TAKES, chosen)
        check_applies([] if given["seed"] is None else ["seed"], _TAKES, chosen)
    score = getattr(kgbias, name)
    with ExitStack() as opened, opened_scorer(given) as (scorer, progress):
        if store_url is not None:
            given["store"] = opened.enter_context(open_store(store_url, notify=progress.note))
        found = score(scorer, files[name], **said(**given), progress=progress)
    lines = [
        f"{f.domain:<22} {f.figure:<24} {shown(f.estimate)}  n {f.estimate.n}"
        for f in found.figures
    ]
    show(found, [*lines, *found.remarks], as_json)
