"""Make name groups as GlobalBias made its own (Siddique et al. 2024, section 3.1), from a table of
given names with guessed genders and origins.

    python scripts/name_groups.py NAMES.csv -o FOLDER
    python scripts/name_groups.py NAMES.csv -o FOLDER --embedding hf:ID --clusters 700
    kgbias probe apx --model smollm2 --names FOLDER/names.csv
"""

import argparse
from pathlib import Path

from kgbias.errors import KgbiasError
from kgbias.measure.embedding import load_vectors
from kgbias.probe.name_groups import (
    DEFAULT_PER_GROUP,
    DEFAULT_PURITY,
    choose_name_groups,
    read_guesses,
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--embedding", default="minilm", help="as for kgbias measure")
    parser.add_argument("--per-group", type=int, default=DEFAULT_PER_GROUP)
    parser.add_argument("--purity", type=float, default=DEFAULT_PURITY)
    parser.add_argument("--clusters", type=int, help="default: 120, or fewer")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    guesses = read_guesses(arguments.table)
    vectors = load_vectors(arguments.embedding)
    result = choose_name_groups(
        guesses,
        vectors.embed([guess.name for guess in guesses.names]),
        per_group=arguments.per_group,
        purity=arguments.purity,
        clusters=arguments.clusters,
        seed=arguments.seed,
        settings={"vectors": f"{vectors.name}@{vectors.version}"},
    )
    for path in result.write(arguments.output):
        print(path)
    print(
        f"{len(result.groups)} groups of {arguments.per_group} names; {result.pure_clusters} of "
        f"{result.clusters} "
        f"clusters are of one group; mean purity {result.purity:.1%}, by chance "
        f"{result.shuffled_purity:.1%}; {len(result.missing)} groups have too few names"
    )


if __name__ == "__main__":
    try:
        main()
    except KgbiasError as error:
        raise SystemExit(f"Error: {error}") from error
