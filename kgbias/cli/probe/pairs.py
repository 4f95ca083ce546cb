"""`kgbias probe pairs`: StereoSet and CrowS-Pairs."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import FILE, opened_scorer, scorer_options, seed_option
from kgbias.cli.probe.output import show, shown
from kgbias.errors import UsageError
from kgbias.parameters import check_applies


@click.command(cls=Part)
@click.option("--stereoset", type=FILE, help="Score this StereoSet file (JSON).")
@click.option("--crows-pairs", type=FILE, help="Score this CrowS-Pairs file (CSV).")
@click.option(
    "--convention",
    type=click.Choice(["original", "bias-bench"]),
    help="Score as the authors' code does, or as bias-bench (default: original). They differ for "
    "CrowS-Pairs alone.",
)
@scorer_options
@seed_option
@json_option
def pairs(as_json: bool, stereoset: Path | None, crows_pairs: Path | None, **given: Any) -> None:
    """Score a sentence-pair benchmark, from your own copy of its file."""
    if (stereoset is None) == (crows_pairs is None):
        raise UsageError("name one file: --stereoset FILE or --crows-pairs FILE")
    with as_flags():
        seeded = [] if given["seed"] is None else ["seed"]
        check_applies(seeded, {"stereoset": ["seed"]}, ["stereoset"] if stereoset else [])
    with opened_scorer(given) as (scorer, progress):
        if stereoset is not None:
            found = kgbias.stereoset(scorer, stereoset, **said(**given), progress=progress)
        elif crows_pairs is not None:
            found = kgbias.crows_pairs(scorer, crows_pairs, **said(**given), progress=progress)
    lines = [
        f"{f.domain:<22}{f.figure:<22}{shown(f.estimate)}  n {f.estimate.n}" for f in found.figures
    ]
    show(found, lines, as_json)
