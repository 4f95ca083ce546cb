"""Train the offline readers, measure them on what they have not seen, and write their cards.

    python -m kgbias.measure.training regard --hatecheck test_suite_cases.csv --seegull FOLDER
    python -m kgbias.measure.training attack --hatecheck test_suite_cases.csv --seegull FOLDER
    python -m kgbias.measure.training acceptability
    python -m kgbias.measure.training precision

Each has its module; `attack` is toxicity and identity attack. `precision` trains nothing: it counts
how many labels of the shipped scorers are right, and comes after any of the others.
Seeded and deterministic on one machine, whatever the number of workers.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kgbias.errors import KgbiasError
from kgbias.measure.precision import COUNTED
from kgbias.measure.training import acceptability, attack, precision, regard

SCORERS = Path(__file__).parent.parent / "scorers"


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, measure, and write weights and cards; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kgbias.measure.training")
    parts = parser.add_subparsers(dest="part", required=True)
    heads = parts.add_parser("regard", help="how highly a statement thinks of its group")
    attacks = parts.add_parser("attack", help="toxicity and identity attack")
    sense = parts.add_parser("acceptability", help="whether a statement makes sense")
    for each in (heads, attacks):
        each.add_argument(
            "--hatecheck", type=Path, required=True, help="HateCheck's test_suite_cases.csv"
        )
        each.add_argument(
            "--seegull", type=Path, required=True, help="the folder of SeeGULL's stereotypes_*.csv"
        )
    counted = parts.add_parser("precision", help="how many labels of the shipped scorers are right")
    counted.add_argument("--out", type=Path, default=COUNTED, help="the file to write")
    for each in (heads, attacks, sense):
        each.add_argument("--out", type=Path, default=SCORERS, help="the folder to write to")
        each.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    options = parser.parse_args(arguments)
    try:
        if options.part == "regard":
            regard.run(options.hatecheck, options.seegull, options.out, options.workers)
        elif options.part == "attack":
            attack.run(options.hatecheck, options.seegull, options.out, options.workers)
        elif options.part == "precision":
            precision.run(options.out)
        else:
            acceptability.run(options.out, options.workers)
    except KgbiasError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
