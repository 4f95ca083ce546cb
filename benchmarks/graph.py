"""How fast the graph is: loads against raw loops, and measuring.

    python benchmarks/graph.py [--triples 1000000]                         SQLite
    python benchmarks/graph.py --alone --triples 10000000
                                              the load alone, as the file grows
    python benchmarks/graph.py --neo4j bolt://HOST:7687 [--triples 100000] and an empty Neo4j
    python benchmarks/graph.py --neo4j bolt://HOST:7687 --measure 10000 100000 300000
                                              measuring in Neo4j alone, at each of these sizes

Measuring uses a scorer that answers at once; its time per triple must not differ by more than a
factor of 1.3 between the sizes. Start with a new server: emptying one with 100,000 triples takes
minutes. The library's queries are timed by `benchmarks/queries.py`.

Each triple is a group, a predicate, an object, a triple and a generation. The raw loops write the
same rows, ready before the clock starts, so a ratio is what kgbias adds (ids, normalisation, rows)
minus what it saves (sorted keys). Seconds are wall time, followed by the CPU time of this process;
compare that on a busy machine. A second load of the same triples must change nothing.
"""

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

from kgbias.backends.neo4j import Neo4jStore
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.measure.scorers import Judgement
from kgbias.measure.scoring import measure_run
from kgbias.models.base import ModelInfo

TABLES = ('"group"', "predicate", "object", "triple", "generation")


def make_triples(count: int) -> Iterator[Triple]:
    """Distinct triples over 400 groups, 2,000 predicates and as many objects as needed."""
    rng = Random(0)
    for number in range(count):
        yield Triple(
            f"Group {rng.randrange(400)} people",
            f"predicate {rng.randrange(2000)}",
            f"object number {number * 7919 % count} of some length",
        )


def make_generations(run: Run, statements: Iterable[Triple]) -> Iterator[Generation]:
    """An import's generations of these statements."""
    run_id = run.id
    for number, triple in enumerate(statements):
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


def begin_run(store: Store) -> Run:
    groups = tuple(Group(f"Group {n} people", "benchmark") for n in range(400))
    return store.begin_run(Run("benchmark", ModelInfo("none"), {}, groups, kind="import"))


def time_work(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def print_line(name: str, seconds: tuple[float, float], count: int, note: str = "") -> None:
    wall, cpu = seconds
    print(f"{name:<26}{wall:8.1f} s {cpu:8.1f} s CPU {count / wall:10,.0f} triples/s  {note}")


def raw_loop(source: Path, target: Path) -> tuple[float, float]:
    """Seconds of a raw loop over prepared rows, in order of arrival, with one SQL statement each,
    committed as often as kgbias commits."""
    new = _empty_store(target)
    columns = {table: _placeholders(source, table) for table in TABLES}
    statements = [f"INSERT OR IGNORE INTO {t} VALUES ({columns[t]})" for t in TABLES]
    old = sqlite3.connect(source)
    nodes = [dict(old.execute(f"SELECT * FROM {table}").fetchall()) for table in TABLES[:3]]
    triple_rows = {row[0]: row for row in old.execute("SELECT * FROM triple")}
    ready = []
    for generation in old.execute("SELECT * FROM generation ORDER BY path"):
        triple = triple_rows[generation[14]]
        ends = [(id, texts[id]) for id, texts in zip(triple[1:], nodes, strict=True)]
        ready.append([*ends, triple, generation])

    def work() -> None:
        for first in range(0, len(ready), 50_000):
            new.execute("BEGIN")
            for rows in ready[first : first + 50_000]:
                for statement, row in zip(statements, rows, strict=True):
                    new.execute(statement, row)
            new.execute("COMMIT")

    return time_work(work)


def raw_tables(source: Path, target: Path) -> tuple[float, float]:
    """Seconds to write the same rows at SQLite's own speed: prepared, distinct, in key order, one
    table at a time. No loader that computes ids can be as fast; this is the floor."""
    new = _empty_store(target)
    old = sqlite3.connect(source)
    rows = {table: old.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}

    def work() -> None:
        for table, ready in rows.items():
            new.execute("BEGIN")
            marks = _placeholders(source, table)
            new.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", ready)
            new.execute("COMMIT")

    return time_work(work)


def _empty_store(path: Path) -> sqlite3.Connection:
    SQLiteStore(str(path)).close()
    new = sqlite3.connect(path, isolation_level=None)
    new.execute("PRAGMA synchronous = FULL")
    new.execute("PRAGMA cache_size = -262144")
    return new


def _placeholders(source: Path, table: str) -> str:
    with sqlite3.connect(source) as db:
        width = len(db.execute(f"SELECT * FROM {table} LIMIT 1").fetchone())
    return ", ".join("?" * width)


def count_rows(path: Path) -> dict[str, int]:
    with sqlite3.connect(path) as db:
        return {t: db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in TABLES}


_RAW_NEO4J = """
MATCH (run:Run {uid: $run})
UNWIND $rows AS r
MERGE (g:SocialGroup {uid: r.group[0]}) ON CREATE SET g.name = r.group[1]
MERGE (p:Predicate {uid: r.predicate[0]}) ON CREATE SET p.text = r.predicate[1]
MERGE (o:Object {uid: r.object[0]}) ON CREATE SET o.text = r.object[1]
MERGE (t:Triple {uid: r.uid}) ON CREATE SET t.text = r.text
MERGE (t)-[:SUBJECT]->(g)
MERGE (t)-[:PREDICATE]->(p)
MERGE (t)-[:OBJECT]->(o)
MERGE (n:Generation {uid: r.generation.uid}) SET n = r.generation
MERGE (n)-[:IN]->(run)
MERGE (n)-[y:YIELDED]->(t) SET y.count = 1"""


def raw_unwind(store: Neo4jStore, run: Run, ready: list[Generation]) -> Callable[[], None]:
    """A raw UNWIND loop with the driver: the same graph, with one statement per batch of 5,000."""
    rows = []
    for generation in ready:
        triple = generation.triple
        assert triple is not None
        rows.append(
            {
                "group": [triple.group_id, triple.group],
                "predicate": [triple.predicate_id, triple.predicate],
                "object": [triple.object_id, triple.object],
                "uid": triple.id,
                "text": f"{triple.group} {triple.predicate} {triple.object}",
                "generation": {
                    "uid": generation.id,
                    "path": generation.path,
                    "arm": generation.arm,
                    "strategy": generation.strategy,
                    "iteration": 0,
                    "attempt": 0,
                    "outcome": "ok",
                    "reason": "",
                    "template": "",
                    "template_hash": "",
                    "answer_key": "",
                    "prompt": "",
                    "count": 1,
                    "group_uid": generation.group_id,
                },
            }
        )
    driver = store._driver

    def work() -> None:
        with driver.session() as session:
            for first in range(0, len(rows), 5_000):
                batch = rows[first : first + 5_000]
                session.execute_write(
                    lambda tx, batch=batch: tx.run(_RAW_NEO4J, run=run.id, rows=batch).consume()
                )

    return work


def time_sqlite(count: int, folder: Path) -> None:
    path = folder / "kgbias.db"
    store = SQLiteStore(str(path))
    run = begin_run(store)
    ready = list(make_generations(run, make_triples(count)))
    load_seconds = time_work(lambda: store.load_import(run.id, ready))
    second_seconds = time_work(lambda: store.load_import(run.id, ready))
    ready.clear()
    loop_seconds = raw_loop(path, folder / "loop.db")
    table_seconds = raw_tables(path, folder / "tables.db")
    print(f"SQLite: {count_rows(path)}, {path.stat().st_size / 2**20:.0f} MiB")
    print_line("kgbias load", load_seconds, count)
    print_line("the same again", second_seconds, count, "changes nothing")
    print_line(
        "raw loop of statements", loop_seconds, count, format_ratio(load_seconds, loop_seconds)
    )
    print_line(
        "sorted tables, the floor", table_seconds, count, format_ratio(load_seconds, table_seconds)
    )
    store.close()


def time_load(count: int, folder: Path) -> None:
    """The load alone, as the file grows: the seconds for each tenth, which is made before its clock
    starts."""
    path = folder / "kgbias.db"
    with closing(SQLiteStore(str(path))) as store:
        run = begin_run(store)
        stream, step = make_generations(run, make_triples(count)), -(-count // 10)
        while part := list(islice(stream, step)):
            seconds = time_work(partial(store.load_import, run.id, part))
            print_line("kgbias load", seconds, len(part), f"{path.stat().st_size / 2**20:,.0f} MiB")
        print(count_rows(path))


def format_ratio(ours: tuple[float, float], theirs: tuple[float, float]) -> str:
    return f"ratio {ours[0] / theirs[0]:.2f} (CPU {ours[1] / theirs[1]:.2f})"


def time_neo4j(url: str, count: int) -> None:
    with closing(Neo4jStore(url)) as store:
        run = begin_run(store)
        ready = list(make_generations(run, make_triples(count)))

        def clear() -> None:
            store.write_alone(
                "MATCH (n) WHERE n:Generation OR n:Triple OR n:Predicate OR n:Object "
                "CALL { WITH n DETACH DELETE n } IN TRANSACTIONS OF 10000 ROWS"
            )

        clear()
        loop_seconds = time_work(raw_unwind(store, run, ready))
        clear()
        load_seconds = time_work(lambda: store.load_import(run.id, ready))
        print("Neo4j")
        print_line("kgbias load", load_seconds, count)
        print_line(
            "raw UNWIND loop",
            loop_seconds,
            count,
            format_ratio(load_seconds, loop_seconds).split(" (")[0],
        )
        print_line(
            "STEREOTYPE edges", time_work(lambda: store.set_status(run.id, "complete")), count
        )


class InstantScorer:
    """A scorer that takes no time, so all the time is the store's."""

    name, version = "benchmark", "1"

    def __init__(self, measure: str) -> None:
        self.measure = measure

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        return [Judgement(0.5, "positive", {"positive": 0.5, "negative": 0.0}) for _ in texts]


def time_measuring(url: str, sizes: Sequence[int]) -> None:
    """Time `measure_run` on runs of these sizes, each in an emptied server. First the smallest is
    measured repeatedly until its time stops falling, because a new server compiles its code."""
    print("warming up")
    latest = measure_seconds(url, min(sizes))
    for _ in range(9):
        before, latest = latest, measure_seconds(url, min(sizes))
        if latest > 0.95 * before:
            break
    print("measuring")
    per_triple = [measure_seconds(url, count) for count in sorted(sizes)]
    spread = max(per_triple) / min(per_triple)
    print(f"the longest time per triple over the shortest: {spread:.2f}")


def measure_seconds(url: str, count: int) -> float:
    """Seconds per triple to measure a run of `count` triples, in a server that holds nothing
    else."""
    with closing(Neo4jStore(url)) as store:
        empty_server(store)
        run = begin_run(store)
        store.load_import(run.id, make_generations(run, make_triples(count)))
        seconds = time_work(partial(measure_run, StoredRun(store, run), [InstantScorer("regard")]))
    print_line(f"{count:,} triples", seconds, count, f"{seconds[0] / count * 1e6:.0f} us a triple")
    return seconds[0] / count


def empty_server(store: Neo4jStore) -> None:
    """Empty a server, edges first: a metric has one to each triple, too many for one
    transaction."""
    store.write_alone("MATCH ()-[e]->() CALL { WITH e DELETE e } IN TRANSACTIONS OF 10000 ROWS")
    store.write_alone("MATCH (n) CALL { WITH n DELETE n } IN TRANSACTIONS OF 10000 ROWS")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--neo4j", metavar="URL", help="an empty server; NEO4J_PASSWORD is set")
    parser.add_argument("--alone", action="store_true", help="SQLite's load alone, in tenths")
    parser.add_argument("--measure", type=int, nargs="+", metavar="N", help="see above")
    options = parser.parse_args()
    if options.measure:
        if not options.neo4j:
            parser.error("--measure needs --neo4j")
        time_measuring(options.neo4j, options.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        if options.alone:
            time_load(options.triples, Path(folder))
            return
        time_sqlite(options.triples, Path(folder))
    if options.neo4j:
        time_neo4j(options.neo4j, options.triples)


if __name__ == "__main__":
    main()
