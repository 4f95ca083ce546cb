"""Small stores and files for the attacks to begin with."""

import csv
import shutil
from pathlib import Path

from tests.attack.commands import Commands

ROWS = [
    (group, predicate, object, category, count)
    for group, category in (
        ("women", "gender"),
        ("men", "gender"),
        ("bakers", "trade"),
        ("smiths", "trade"),
    )
    for n, (predicate, object) in enumerate(
        (("like", "music"), ("are", "kind"), ("fear", "rain"), ("are", "lazy"), ("make", "bread"))
    )
    for count in (1 + n % 3,)
]
TRIPLES = "triples.csv"


def write_files(folder: Path) -> None:
    """A table of triples, and a table of scores for them."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / TRIPLES).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("group", "predicate", "object", "category", "count"), *ROWS])
    with (folder / "scores.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(("sentence", "label", "regard", "toxicity", "acceptability"))
        for n, (group, predicate, object, *_) in enumerate(ROWS):
            label = ("positive", "neutral", "negative")[n % 3]
            value = {"positive": 0.5, "neutral": 0.0, "negative": -0.5}[label]
            out.writerow(
                (
                    f"{group[:1].upper()}{group[1:]} {predicate} {object}.",
                    label,
                    value,
                    0.05 * (n % 9),
                    0.5 + 0.02 * n,
                )
            )


_SCORES = "scores:scores.csv"
MEASURE = (
    "--regard", _SCORES, "--toxicity", _SCORES, "--acceptability", _SCORES, "--no-axes",
)  # fmt: skip


class World:
    """A folder with a measured store, made once and copied for each attack."""

    def __init__(self, commands: Commands, folder: Path) -> None:
        self.folder = folder
        write_files(folder)
        for argv in (("import", TRIPLES, "--run", "r"), ("measure", "r", *MEASURE)):
            done = commands.run(*argv, cwd=folder)
            if done.code:
                raise RuntimeError(f"the world cannot be made: {done}")
        (folder / "kgbias.db-wal").unlink(missing_ok=True)

    def copy(self, to: Path) -> Path:
        shutil.copytree(self.folder, to)
        return to
