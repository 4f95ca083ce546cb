"""The cost of `kgbias push` into Neo4j: processor time of this process and of the server.

    python benchmarks/push.py bolt://HOST:7687 --server PID [--statements 20000] [--times 8]

Each push is one run of new statements: a group and a predicate that the server mostly has, an
object that it lacks, a triple, a generation and a STEREOTYPE edge. A server compiles its code
during the first hundred thousand: read only the last lines, or warm it up with more `--times`. Set
NEO4J_PASSWORD; PID is the server's, on this machine.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

from graph import make_generations

from kgbias.backends.neo4j import Neo4jStore
from kgbias.graph.push import push_run
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, Run, Triple
from kgbias.models.base import ModelInfo


def import_statements(store: SQLiteStore, name: str, count: int) -> Run:
    """An import of statements with objects that no other run of this benchmark has."""
    groups = tuple(Group(f"Group {n} people", "benchmark") for n in range(400))
    run = store.begin_run(Run(name, ModelInfo("none"), {"seed": name}, groups, kind="import"))
    store.load_import(run.id, make_generations(run, make_statements(name, count)))
    store.set_status(run.id, "complete")
    return run


def make_statements(name: str, count: int) -> Iterator[Triple]:
    rng = Random(name)
    for number in range(count):
        yield Triple(
            f"Group {rng.randrange(400)} people",
            f"predicate {rng.randrange(2000)}",
            f"object number {number} of {name}",
        )


def processor_seconds(pid: int) -> float:
    """Seconds of processor time that a process has used, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--server", type=int, required=True, metavar="PID")
    parser.add_argument("--statements", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--name", default=f"push {time.time():.0f}", help="of the runs")
    options = parser.parse_args()
    count = options.statements
    with tempfile.TemporaryDirectory() as folder:
        source = SQLiteStore(str(Path(folder) / "kgbias.db"))
        with closing(source), closing(Neo4jStore(options.url)) as target:
            for number in range(options.times):
                run = import_statements(source, f"{options.name} {number}", count)
                wall = time.perf_counter()
                ours, theirs = time.process_time(), processor_seconds(options.server)
                push_run(StoredRun(source, run), target)
                wall = time.perf_counter() - wall
                ours = (time.process_time() - ours) / count * 1e6
                theirs = (processor_seconds(options.server) - theirs) / count * 1e6
                print(
                    f"{count:,} statements: {ours:6.0f} us of this process, {theirs:6.0f} us of "
                    f"the server, {ours + theirs:6.0f} us together, {count / wall:8,.0f} a second",
                    flush=True,
                )


if __name__ == "__main__":
    main()
