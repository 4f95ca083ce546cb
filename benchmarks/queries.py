"""How long each query of the library takes on a large run that was measured and probed.

    python benchmarks/queries.py FILE [--triples 1000000]
                                    SQLite; the file is created if missing
    python benchmarks/queries.py FILE --before FOLDER
                                    an earlier state of the code in FOLDER and this one, in turn
    python benchmarks/queries.py FILE --neo4j bolt://HOST:7687
                                    a server; the run is pushed to it first

In the run, each object was said about two groups, and some groups were often refused; statements
have scores and topics, groups and objects have places, one statement in ten has BELIEVED edges
to three groups, and twenty of these statements were probed after two names of each group.

Prints the rows of each query and its seconds. On SQLite these are processor time, which is
meaningful even on a busy machine: for making the view that the query reads, or reading it from the
cache folder (none if the previous query's view suffices), and for asking, the least of three. On a
server they are wall time, for the second execution.

With --before, both states begin without views, and their rows are held against each other.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

import kglite
from graph import begin_run

from kgbias.backends.neo4j import Neo4jStore
from kgbias.graph import shape
from kgbias.graph.cypher import QueryResult, Value
from kgbias.graph.push import push_run
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.sqlite.engine import answer_query
from kgbias.graph.sqlite.view_cache import ViewCache
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import (
    BeliefRun,
    BelievedEdge,
    Generation,
    GroupName,
    Metric,
    NameProbe,
    NodeCentrality,
    Run,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    Triple,
)
from kgbias.models.base import ModelInfo
from kgbias.query import NamedQuery, load_query, query_names

PAIRS, PREDICATES, TOPICS = 200, 2_000, 50  # pairs of groups: an even and an odd number each
BATCH = 20_000


def make_triples(count: int) -> Iterator[Triple]:
    """Distinct triples: in the first half about groups with an even number; in the second, with the
    same objects, about groups with an odd number."""
    rng = Random(0)
    half = count // 2
    for number in range(2 * half):
        yield Triple(
            f"Group {2 * rng.randrange(PAIRS) + number // half} people",
            f"predicate {rng.randrange(PREDICATES)}",
            f"object number {number * 7919 % half} of some length",
        )


def make_generations(run: Run, count: int) -> Iterator[Generation]:
    """The answers. "Group 10 people", 20 and so on have one refusal for each answer given."""
    for number, triple in enumerate(make_triples(count)):
        path = f"import/{number:09d}"
        fields = (run.id, path, triple.group_id, "none", "import", 0, 0)
        yield Generation(*fields, "ok", triple=triple)
        if triple.group.endswith("0 people"):
            yield Generation(run.id, f"{path}/no", *fields[2:], "refused")


def fill_store(store: Store, count: int) -> None:
    """Fill an empty store."""
    run = begin_run(store)
    store.load_import(run.id, make_generations(run, count))
    rng = Random(1)
    metrics = [Metric(measure, "benchmark", "1") for measure in shape.DERIVED_MEASURES]
    topics = [Topic("benchmark", n, (f"word {n}", "other"), count // TOPICS) for n in range(TOPICS)]
    about: list[TopicAssignment] = []
    believed: list[BelievedEdge] = []
    objects: dict[str, str] = {}
    stream = make_triples(count)
    while part := list(islice(stream, BATCH)):
        for metric, low in zip(metrics, (-1.0, 0.0, 0.4), strict=True):
            values = [rng.uniform(low, 1.0) for _ in part]
            scores = [
                Score(t.id, v, shape.TONES[round(1 - v)]) for t, v in zip(part, values, strict=True)
            ]
            store.save_scores(run.id, metric, scores)
        about += [TopicAssignment(t.id, topics[rng.randrange(TOPICS)].id, 0.5) for t in part]
        believed += make_beliefs(part[::10], rng)
        objects |= {t.object_id: t.object for t in part}
    store.save_topics(run.id, [TopicModel("benchmark", tuple(topics), tuple(about), {})])
    kinds = {"group": {g.id: g.name for g in run.groups}, "object": objects}
    places = [
        NodeCentrality(kind, id, name, rng.randrange(99), rng.random(), rng.randrange(9), 2)
        for kind, nodes in kinds.items()
        for id, name in nodes.items()
    ]
    store.save_centralities(run.id, places)
    believing = BeliefRun(ModelInfo("none"), record={"by": "benchmark"})
    store.put(run.id, BelievedEdge, believed, asking=believing)
    names = [
        GroupName(f"{kind} of {g.name}", g.id, f"{kind} of {{}}", g.name.lower())
        for g in run.groups
        for kind in ("friends", "children")
    ]
    store.save_names(names)
    ends = sorted({(e.predicate_id, e.object_id) for e in believed})[:20]
    store.put(
        run.id,
        NameProbe,
        [NameProbe(*of, name.id, (rng.uniform(-30.0, -5.0),)) for of in ends for name in names],
        asking=believing,
    )
    store.put(run.id, BeliefRun, [believing])
    store.set_status(run.id, "complete")


def make_beliefs(statements: Collection[Triple], rng: Random) -> Iterator[BelievedEdge]:
    """Each statement with its own group and two others; one in eight of these pairs is
    believed."""
    groups = sorted({t.group_id for t in statements})
    for triple in statements:
        group_ids = {triple.group_id, *rng.sample(groups, min(2, len(groups)))}
        for group in sorted(group_ids):
            lift = rng.uniform(-4.0, 4.0)
            yield BelievedEdge(
                triple.predicate_id,
                triple.object_id,
                group,
                lift,
                lift - 1.0,
                lift + 1.0,
                8,
                0.01,
                0.02,
                0.001,
                0.002,
                lift - 0.5,
                "",
                "believed" if lift > 3.0 else "",
            )


class LocalStore:
    """A SQLite store whose Cypher engine runs in this process, so its time can be measured."""

    def __init__(self, store: SQLiteStore) -> None:
        self.url = store.url
        self.find_run = store.find_run
        self.views = ViewCache()
        self.view_seconds = 0.0  # of processor time, for all views

    def query(
        self,
        text: str,
        parameters: Mapping[str, Value] | None = None,
        *,
        names: Collection[str] | None = None,
    ) -> QueryResult:
        self.view_seconds += time_work(lambda: self.views.view(self.url, names))[0]
        if hasattr(self.views, "save"):  # not in earlier states of the code
            self.views.save()
        return answer_query(self.views, self.url, text, parameters or {}, names)


def query_parameters(query: NamedQuery) -> dict[str, str]:
    """Values from a statement in the run, for parameters without a default."""
    first = next(make_triples(2))
    values = {
        "group": first.group,
        "other": "Group 1 people",
        "predicate": first.predicate,
        "object": first.object,
        "triples": first.id,
    }
    return {p.name: values[p.name] for p in query.parameters if p.default is None}


def timed_queries() -> list[str]:
    """All but those that search by the vectors of statements, which the run has none of."""
    names = query_names()
    return [n for n in names if all(p.name != "about" for p in load_query(n).parameters)]


class QueryTime(NamedTuple):
    """Processor seconds of a query, and what it answered."""

    rows: int
    view: float
    asking: float
    digest: str


def time_query(store: LocalStore, name: str) -> QueryTime:
    query = load_query(name)
    values = query_parameters(query)
    before = store.view_seconds
    query.run(cast(Store, store), values)
    view = store.view_seconds - before
    tries = [time_work(lambda: query.run(cast(Store, store), values)) for _ in range(3)]
    result = tries[0][1]
    digest = hashlib.sha256(json.dumps(result.records(), default=str).encode()).hexdigest()
    return QueryTime(len(result.rows), view, min(seconds for seconds, _ in tries), digest)


def time_local(store: SQLiteStore) -> None:
    local_store = LocalStore(store)
    print(f"{'processor seconds':<24}{'rows':>6}{'view':>8}{'asking':>8}")
    for name in timed_queries():
        spent = time_query(local_store, name)
        print(f"{name:<24}{spent.rows:6}{spent.view:8.2f}{spent.asking:8.2f}", flush=True)


def answer_names(store: SQLiteStore) -> None:
    """Time each query that a line of stdin names."""
    local_store = LocalStore(store)
    for line in sys.stdin:
        print(json.dumps(time_query(local_store, line.strip())), flush=True)


def time_trees(file: Path, before: Path) -> None:
    """Time this state of the code and an earlier one, each in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        trees = {"before": before.resolve(), "now": Path(__file__).parents[1]}
        processes = {tree: start_answering(file, path, cache) for tree, path in trees.items()}
        print(f"{'processor seconds':<24}{'rows':>6}{'view':>16}{'asking':>16}{'ratio':>8}")
        for name in timed_queries():
            spent = {tree: ask_process(process, name) for tree, process in processes.items()}
            old, new = spent["before"], spent["now"]
            print(
                f"{name:<24}{new.rows:6}{old.view:8.2f}{new.view:8.2f}"
                f"{old.asking:8.2f}{new.asking:8.2f}{new.asking / old.asking:8.2f}"
                f"{'' if old.digest == new.digest else '  other rows'}",
                flush=True,
            )
        for process in processes.values():
            process.communicate()


def start_answering(file: Path, tree: Path, cache: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tree}{os.pathsep}{Path(__file__).parent}",
        "KGBIAS_CACHE": f"{cache}/{abs(hash(tree))}",
    }
    return subprocess.Popen(
        [sys.executable, "-P", __file__, str(file), "--answer-names"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask_process(process: subprocess.Popen[str], name: str) -> QueryTime:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    return QueryTime(*json.loads(process.stdout.readline()))


def time_work(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of this process, and the result."""
    before = time.process_time()
    result = work()
    return time.process_time() - before, result


def time_server(store: Neo4jStore) -> None:
    print(f"{'seconds':<24}{'rows':>6}{'asking':>8}")
    for name in timed_queries():
        query = load_query(name)
        query.run(store, query_parameters(query))
        before = time.perf_counter()
        rows = query.run(store, query_parameters(query)).rows
        print(f"{name:<24}{len(rows):6}{time.perf_counter() - before:8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--triples", type=int, default=1_000_000, help="of a new file")
    parser.add_argument("--before", type=Path, metavar="FOLDER")
    parser.add_argument("--answer-names", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--neo4j", metavar="URL", help="ask this server; NEO4J_PASSWORD is set")
    options = parser.parse_args()
    kglite.set_query_warning_policy("silent")
    new = options.file.with_suffix(".new")
    if not options.file.exists():
        with closing(SQLiteStore(str(new))) as store:
            fill_store(store, options.triples)
        new.rename(options.file)
    if options.before is not None:
        return time_trees(options.file, options.before)
    with closing(SQLiteStore(str(options.file))) as store:
        if options.answer_names:
            return answer_names(store)
        if options.neo4j is None:
            time_local(store)
            return
        with closing(Neo4jStore(options.neo4j)) as server:
            push_run(StoredRun.find(store, "benchmark"), server)
            time_server(server)


if __name__ == "__main__":
    main()
