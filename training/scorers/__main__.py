"""Train the offline readers, evaluate them on unseen data, and write their cards.

    python -m training.scorers regard --hatecheck test_suite_cases.csv --seegull FOLDER
    python -m training.scorers attack --hatecheck test_suite_cases.csv --seegull FOLDER
    python -m training.scorers acceptability
    python -m training.scorers multilingual --regard written.csv --hatecheck FOLDER --vectors FOLDER
    python -m training.scorers precision
    python -m training.scorers labelled

Each has its own module; `attack` is toxicity and identity attack. `precision` trains nothing: it
counts how many labels of the shipped scorers are right, and is run after any of the others.
`labelled` draws the labelled statements that ship.
Seeded and deterministic on one machine, whatever the number of workers.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kgbias.errors import KgbiasError
from kgbias.measure.labelled_sets import SHIPPED_LABELS
from kgbias.measure.precision import PRECISION_FILE
from training.scorers import acceptability, attack, labelled, multilingual, precision, regard

SCORERS = PRECISION_FILE.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, measure, and write weights and cards; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m training.scorers")
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
    sense.add_argument(
        "--held-out",
        type=Path,
        default=acceptability.HELD_OUT,
        help="the file of held-out logits to write",
    )
    counted.add_argument("--out", type=Path, default=PRECISION_FILE, help="the file to write")
    drawn = parts.add_parser("labelled", help="the statements by which a judge is checked")
    drawn.add_argument("--out", type=Path, default=SHIPPED_LABELS, help="the file to write")
    others = parts.add_parser("multilingual", help="regard and attacks in other languages")
    others.add_argument(
        "--regard", type=Path, required=True, help="the German sentences of Kraft 2021"
    )
    others.add_argument(
        "--hatecheck", type=Path, required=True, help="the folder of Multilingual HateCheck"
    )
    others.add_argument("--vectors", type=Path, required=True, help="a folder to keep vectors in")
    others.add_argument("--out", type=Path, default=SCORERS, help="the folder to write to")
    for each in (heads, attacks, sense):
        each.add_argument("--out", type=Path, default=SCORERS, help="the folder to write to")
        each.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    options = parser.parse_args(arguments)
    try:
        if options.part == "regard":
            regard.run(options.hatecheck, options.seegull, options.out, options.workers)
        elif options.part == "attack":
            attack.run(options.hatecheck, options.seegull, options.out, options.workers)
        elif options.part == "multilingual":
            multilingual.run(options.regard, options.hatecheck, options.out, options.vectors)
        elif options.part == "precision":
            precision.run(options.out)
        elif options.part == "labelled":
            labelled.run(options.out)
        else:
            acceptability.run(options.out, options.held_out, options.workers)
    except KgbiasError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
