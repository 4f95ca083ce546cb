"""`kgbias probe precision`: what a coarser type costs."""

from typing import Any

import click

from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import named_model, scorer_options
from kgbias.cli.probe.output import show
from kgbias.errors import UsageError
from kgbias.progress import working


@click.command(cls=Part)
@scorer_options
@json_option
def precision(as_json: bool, **given: Any) -> None:
    """Compare a model in --dtype with itself in float32: error, order of groups, speed."""
    from kgbias.probe.precision import check_precision

    spec = named_model(given)
    if not (dtype := given.pop("dtype")):
        raise UsageError("name the type to check: --dtype bfloat16")
    with as_flags(), working(True) as progress:
        found = check_precision(spec, dtype, progress=progress, **said(**given))
    show(found, str(found).splitlines(), as_json)
