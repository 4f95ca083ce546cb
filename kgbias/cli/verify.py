"""`kgbias verify`: whether a store is sound."""

from dataclasses import asdict

import click

import kgbias
from kgbias.cli.options import json_option, print_json, printable, store_option


@click.command()
@store_option
@json_option
def verify(store_url: str, as_json: bool) -> int:
    """Check a store: damage, ids of nothing, ids that do not follow from their content, and a
    backup against its checksum. Reads all of it; exit code 1 where something is wrong.
    """
    with kgbias.open(store_url, progress=True) as study:
        faults = study.verify()
    if as_json:
        print_json({"store": store_url, "sound": not faults, "faults": [asdict(f) for f in faults]})
    else:
        for fault in faults:
            click.echo(printable(str(fault)))
        click.echo(f"{printable(store_url)}: {len(faults) or 'no'} fault{'s'[: len(faults) != 1]}")
    return 1 if faults else 0
