"""Bulk load of reified triples into SQLite, against a raw loop of the same statements.

    python benchmarks/graph.py [--triples 1000000] [--rounds 1]

Each triple is a group, a predicate, an object, a triple and a generation. The raw loop inserts
rows that were prepared before the clock started: what it takes is SQLite's own time; the rest is
what kgbias adds (ids, normalisation, rows). A second load of the same triples must change nothing.
"""

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.models.base import ModelInfo

TABLES = ('"group"', "predicate", "object", "triple", "generation")


def triples(count: int) -> Iterator[Triple]:
    """Distinct triples over 400 groups, 2,000 predicates and as many objects as it takes."""
    rng = Random(0)
    for number in range(count):
        yield Triple(
            f"Group {rng.randrange(400)} people",
            f"predicate {rng.randrange(2000)}",
            f"object number {number * 7919 % count} of some length",
        )


def generations(run: Run, count: int) -> Iterator[Generation]:
    run_id = run.id
    for number, triple in enumerate(triples(count)):
        yield Generation(
            run_id=run_id,
            path=f"import/{number:09d}",
            group_id=triple.group_id,
            arm="none",
            strategy="import",
            iteration=0,
            attempt=0,
            outcome="ok",
            triple=triple,
        )


def load(path: Path, count: int) -> tuple[float, float]:
    """Seconds of the first load and of the same load again."""
    store = SQLiteStore(str(path))
    groups = tuple(Group(f"Group {n} people", "benchmark") for n in range(400))
    run = store.begin(Run("benchmark", ModelInfo("none"), {}, groups, kind="import"))
    ready = list(generations(run, count))
    times = []
    for _ in range(2):
        start = time.perf_counter()
        store.load(run.id, ready)
        times.append(time.perf_counter() - start)
    store.close()
    return times[0], times[1]


def raw(source: Path, target: Path) -> float:
    """Seconds to insert the rows of `source`, held ready, into an empty file of the same schema."""
    SQLiteStore(str(target)).close()
    old, new = sqlite3.connect(source), sqlite3.connect(target, isolation_level=None)
    new.execute("PRAGMA synchronous = FULL")
    new.execute("PRAGMA cache_size = -262144")
    rows = {table: old.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    start = time.perf_counter()
    for table, ready in rows.items():
        marks = ", ".join("?" * len(ready[0]))
        new.execute("BEGIN")
        new.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", ready)
        new.execute("COMMIT")
    return time.perf_counter() - start


def counts(path: Path) -> dict[str, int]:
    with sqlite3.connect(path) as db:
        return {t: db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in TABLES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kgbias.db"
            first, again = load(path, options.triples)
            size = path.stat().st_size / 2**20
            reference = raw(path, Path(folder) / "raw.db")
            print(f"rows             {counts(path)}, {size:.0f} MiB")
            print(f"kgbias load      {first:8.1f} s  {options.triples / first:10,.0f} triples/s")
            print(f"the same again   {again:8.1f} s  changes nothing")
            print(f"raw statements   {reference:8.1f} s  ratio {first / reference:.2f}")


if __name__ == "__main__":
    main()
