"""How long measuring takes, and whether the scores are the same with any number of processes.

    python benchmarks/measure.py [--statements 19000] [--processes 1 2] [--ray] [--store kgbias.db]

Imports statements (from the newest run of a store, repeated for one group after another until there
are enough, or made up) into a new store for each number of processes, measures them with all
offline scorers and both axes, and prints wall time, processor time (including that of child
processes) and the peak memory of this process. With --ray, once more on a Ray on this machine, with
one worker per core: how long that Ray took to start, and how the rest compares with the first. Exit
code 1 if two stores differ in any score.

On a busy machine, compare processor time.
"""

import argparse
import csv
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice, product
from pathlib import Path
from typing import Any

import psutil

import kgbias
from kgbias.backends.ray.cluster import join_ray

GROUPS = "Women,Men,Bakers,Muslims,Dutch people,Nurses,Black people,Teenagers,Poor people".split(
    ","
)
PREDICATES = "love,hate,are often seen as,can't stand,are known for,believe in,should have".split(
    ","
)
OBJECTS = "music,long walks by the sea,lazy,their families,the rain,good at cooking rice".split(",")


def make_statements(store: str | None) -> Iterator[tuple[str, str, str]]:
    """Endless distinct statements: group, predicate, object. Those that are made up say different
    things of different groups, so that scorers that do not see the group read each of them."""
    if store is None:
        places = product(range(10**6), GROUPS, PREDICATES, OBJECTS)
        for number, (_, group, predicate, object_text) in enumerate(places):
            yield group, predicate, f"{object_text} {number}"
    with kgbias.open(store) as study:
        triples = list(study.run().triples(min_acceptability=0))
    groups = list(dict.fromkeys([*(t.group for t in triples), *GROUPS]))
    for number in range(10**6):  # each time about the next group
        for t in triples:
            group = groups[(groups.index(t.group) + number) % len(groups)]
            again = number // len(groups)
            yield group, t.predicate, f"{t.object} {again}" if again else t.object


def read_clocks() -> tuple[float, float]:
    """Wall time, and processor time of this process and its children."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    used_seconds = sum(u.ru_utime + u.ru_stime for u in usages)
    child_times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return time.perf_counter(), used_seconds + sum(sum(times[:4]) for times in child_times)


def measure_store(
    table: Path, folder: Path, processes: int | None
) -> tuple[list[Any], float, float]:
    """Every score of a store measured by `processes` processes (None: on Ray), and the seconds of
    wall and processor time."""
    path = folder / f"{processes}.db"
    how: Any = {"processes": processes} if processes else {"executor": "ray"}
    with kgbias.open(path, progress=True) as study:
        run = study.import_file(table, name="benchmark")
        wall, cpu = read_clocks()
        run.measure(**how)
        wall, cpu = (
            after - before for before, after in zip((wall, cpu), read_clocks(), strict=True)
        )
        count = len(run.stored.distinct_triples())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    method_text = f"{processes} processes" if processes else "Ray"
    print(
        f"{method_text}: {count:,} statements in {wall:.1f} s, {cpu:.1f} s of processor "
        f"time ({cpu / count * 1e3:.2f} ms a statement), at most {memory:,.0f} MiB"
    )
    with closing(sqlite3.connect(path)) as db:
        scores = db.execute("SELECT * FROM score ORDER BY metric_id, triple_id").fetchall()
    return scores, wall, cpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--statements", type=int, default=19_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 1], metavar="N")
    parser.add_argument("--ray", action="store_true", help="measure on Ray as well")
    parser.add_argument("--store", help="take the statements of its newest run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = folder / "statements.csv"
        with table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["group", "predicate", "object"])
            writer.writerows(islice(make_statements(options.store), options.statements))
        results = [measure_store(table, folder, number) for number in options.processes]
        if options.ray:
            wall, cpu = read_clocks()
            with join_ray(""):
                wall, cpu = (b - a for a, b in zip((wall, cpu), read_clocks(), strict=True))
                print(f"Ray started in {wall:.1f} s, {cpu:.1f} s of processor time")
                results.append(measure_store(table, folder, None))
    if options.ray:
        comparison = f"of those of {options.processes[0]} processes"
        wall, cpu = (results[-1][n] / results[0][n] for n in (1, 2))
        print(f"Ray: {wall:.2f} {comparison} on the clock, {cpu:.2f} of processor time")
    is_same = all(scores == results[0][0] for scores, _, _ in results)
    if len(results) > 1:
        print("the scores are the same" if is_same else "the scores differ")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
