"""How much processor time probes take in several processes, and whether they are the same.

    python benchmarks/processes.py [--model smollm2] [--statements 300] [--processes 1 2]

Probes made-up statements about eight groups, and prints wall time and processor time (including
that of child processes). The clock starts after 64 statements, when the processes are running and
have the model. One process uses all of torch's threads, several share them, and sums may depend on
the number of threads: with OMP_NUM_THREADS=1 each has one, and the probes are the same (exit code 1
if they are not).

On a quiet machine with as many cores, processes are faster by the number of processes times the
ratio of processor time per probe; on a busy machine, wall time says nothing.
"""

import argparse
import resource
import sys
import time
from itertools import islice, product
from typing import Any

import psutil

from kgbias.io.progress import SilentProgress
from kgbias.models.load import unload
from kgbias.models.score.distributed import DistributedScorer
from kgbias.models.score.load import open_scorer
from kgbias.parallel import open_executor
from kgbias.parallel.local import LocalExecutor, count_torch_threads
from kgbias.probe import probe_sets

GROUPS = ("Women", "Men", "Bakers", "Muslims", "Dutch people", "Nurses", "Teenagers", "Poor people")
PREDICATES = ("love", "hate", "are often seen as", "can't stand", "are known for", "believe in")
OBJECTS = ("music", "long walks by the sea", "lazy", "their families", "the rain", "cooking rice")
WARM_UP_STATEMENTS = 64
CHUNK_PROBES = 128  # probes read together


def make_statements(count: int) -> list[str]:
    """Distinct statements."""
    texts = (
        f"{said} {thing}{f' number {n}' if n else ''}."
        for n, thing, said in product(range(count), OBJECTS, PREDICATES)
    )
    return list(islice(texts, count))


def read_clocks() -> tuple[float, float]:
    """Wall time, and processor time of this process and its children."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    used_seconds = sum(u.ru_utime + u.ru_stime for u in usages)
    child_times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return time.perf_counter(), used_seconds + sum(sum(times[:2]) for times in child_times)


def probe_seconds(model: str, texts: list[str], processes: int) -> tuple[float, list[Any]]:
    """Processor seconds per probe, and the results of all probes."""
    biases: list[Any] = []
    times = []
    with open_executor("local", processes=processes) as workers:
        scorer = (
            DistributedScorer(workers, model, {}, SilentProgress())
            if workers
            else open_scorer(model)
        )
        for part in (texts[:WARM_UP_STATEMENTS], texts[WARM_UP_STATEMENTS:]):
            sets = {"made up": (GROUPS, tuple(part))}
            before = read_clocks()
            biases.append(repr(probe_sets(scorer, sets, chunk=CHUNK_PROBES).bias))
            times.append([after - b for b, after in zip(before, read_clocks(), strict=True)])
            for helper in workers._helpers if isinstance(workers, LocalExecutor) else ():
                with helper._request_lock:  # held until the helper is ready
                    pass
    unload()
    _, (wall, cpu) = times
    count = len(GROUPS) * (len(texts) - WARM_UP_STATEMENTS)
    print(
        f"{processes} processes: {count:,} probes in {wall:.1f} s, {cpu:.1f} s of processor time "
        f"({cpu / count * 1e3:.2f} ms a probe)",
        flush=True,
    )
    return cpu / count, biases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--statements", type=int, default=300)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], metavar="N")
    options = parser.parse_args()
    print(f"{count_torch_threads()} threads")
    texts = make_statements(options.statements)
    results = [probe_seconds(options.model, texts, n) for n in options.processes]
    for number, (probe_time, _) in zip(options.processes[1:], results[1:], strict=True):
        gain = number * results[0][0] / probe_time
        print(f"{number} processes on as many quiet cores: {gain:.2f} times as fast as the first")
    is_same = all(said == results[0][1] for _, said in results)
    if len(results) > 1:
        print("the probes are the same" if is_same else "the probes differ")
    return 0 if is_same or count_torch_threads() > 1 else 1


if __name__ == "__main__":
    sys.exit(main())
