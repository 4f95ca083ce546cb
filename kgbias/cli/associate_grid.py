"""`kgbias associate --grid`: the parameter study of association tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import print_json, printable
from kgbias.errors import UsageError
from kgbias.graph.store import DEFAULT_STORE

if TYPE_CHECKING:
    from kgbias.associate.grid import GridCost, GridResult

AXES = (
    "contexts",
    "encoding",
    "words",
    "targets",
    "samples",
    "draws",
    "seed",
    "layer",
    "most",
    "window",
)
OPENING = ("device", "dtype", "executor", "processes")


def run(
    given: Mapping[str, Any],
    outputs: Sequence[Path],
    store_url: str | None,
    run_name: str | None,
    cache: bool,
    grid: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run the grid, or say what it takes."""
    from kgbias.cli.associate import names

    if not grid:
        raise UsageError("--dry-run belongs to --grid")
    asked = said(**given)
    models = asked.pop("models", ())
    tests, methods = names(asked.pop("tests", ())), names(asked.pop("methods", ()))
    options = {name: asked.pop(name) for name in AXES if name in asked}
    opening = {name: asked.pop(name) for name in OPENING if name in asked}
    if asked:
        flag = min(asked).replace("_", "-")
        raise UsageError(f"--{flag} has no effect with --grid")
    if len(outputs) > 1 or (outputs and outputs[0].suffix):
        raise UsageError("with --grid, -o names one folder")
    with as_flags(), kgbias.open(store_url or DEFAULT_STORE, progress=True) as study:
        if dry_run:
            cost = study.grid_cost(models, tests, methods, **options)
            if as_json:
                print_json({"cost": _as_dict(cost)})
            else:
                _print_cost(cost)
            return
        found = study.associate_grid(
            models,
            tests,
            methods,
            run=run_name,
            output=outputs[0] if outputs else None,
            cache=cache,
            **opening,
            **options,
        )
    if as_json:
        print_json(
            {"results": found.records(), "significant": found.counts(), "missing": [*found.missing]}
        )
    else:
        _print(found, outputs)


def _print(found: "GridResult", outputs: Sequence[Path]) -> None:
    counts = found.counts()
    width = max((len(printable(row["model"])) for row in counts), default=5)
    click.echo(
        f"{'model':<{width}}  {'method':<9}  {'tests':>5}  {'p <= 5%':>7}  {'BH':>5}  {'Holm':>5}"
    )
    for row in counts:
        click.echo(
            f"{printable(row['model']):<{width}}  {row['method']:<9}  {row['tests']:>5}  "
            f"{row['uncorrected']:>7}  {row['bh']:>5}  {row['holm']:>5}"
        )
    click.echo(
        f"\n{len(found.rows)} cells, {found.computed} of them computed now; permutation p, and "
        "corrected over all cells of the grid"
    )
    if found.missing:
        click.echo(f"{len(found.missing)} cells have no result, for example:")
        for line in found.missing[:3]:
            click.echo(f"  {printable(line)}")
    for folder in outputs:
        click.echo(f"tables and figures: {printable(str(folder))}")


def _print_cost(cost: "GridCost") -> None:
    click.echo(f"{'method':<9}  {'cells':>6}  {'done':>6}")
    for method, count in cost.cells.items():
        click.echo(f"{method:<9}  {count:>6}  {cost.done.get(method, 0):>6}")
    for name, counts in (("texts to embed", cost.texts), ("predictions", cost.predictions)):
        for model, count in counts.items():
            click.echo(f"{printable(model)}: {count:,} {name}")


def _as_dict(cost: "GridCost") -> dict[str, Any]:
    return {
        "cells": dict(cost.cells),
        "done": dict(cost.done),
        "texts": dict(cost.texts),
        "predictions": dict(cost.predictions),
    }
