"""Small stores and files for the attacks to begin with."""

import csv
import shutil
from pathlib import Path

from kgbias.measures import MEASURES
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
MANY = "many.csv"
SCORED_MEASURES = [
    m.name for m in MEASURES.values() if not m.in_vectors
]  # a file has scores of these


def write_files(folder: Path) -> None:
    """A table of triples, and a table of scores for them."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / TRIPLES).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("group", "predicate", "object", "category", "count"), *ROWS])
    with (folder / "scores.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(("sentence", "label", *SCORED_MEASURES))
        for n, (group, predicate, object, *_) in enumerate(ROWS):
            label = ("positive", "neutral", "negative")[n % 3]
            values = dict.fromkeys(SCORED_MEASURES, 0.05 * (n % 9))
            values["regard"] = {"positive": 0.5, "neutral": 0.0, "negative": -0.5}[label]
            values["acceptability"] = 0.5 + 0.02 * n  # all of them count
            sentence = f"{group[:1].upper()}{group[1:]} {predicate} {object}."
            out.writerow((sentence, label, *values.values()))


def write_many(folder: Path) -> None:
    """A table of more triples than a store writes as they come, each object in two forms."""
    with (folder / MANY).open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(("group", "predicate", "object", "category"))
        for n in range(60_000):
            form = ("thing {}", "Thing {}")[n % 2]
            place = n * 7919 % 30_011  # so that both forms of an object are far apart
            out.writerow((f"people {n % 37}", f"make {n % 53}", form.format(place), "trade"))


def measure_options(scorer: str = "scores:scores.csv", **others: str) -> tuple[str, ...]:
    """The options of `measure` that take every measure from this scorer, but these from others."""
    scorers = dict.fromkeys(SCORED_MEASURES, scorer) | others
    given = [word for name, s in scorers.items() for word in ("--scorer", f"{name}={s}")]
    return (*given, "--no-axes")


MEASURE = measure_options()


class AttackWorld:
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
