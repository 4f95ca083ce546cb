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
from kgbias.models.score.load import open_scorer
from kgbias.models.score.distributed import DistributedScorer
from kgbias.parallel import open_executor
from kgbias.parallel.local import LocalExecutor, count_torch_threads
from kgbias.probe import probe_sets

GROUPS = ("Women", "Men", "Bakers", "Muslims", "Dutch people", "Nurses", "Teenagers", "Poor people")
SAID = ("love", "hate", "are often seen as", "can't stand", "are known for", "believe in")
THINGS = ("music", "long walks by the sea", "lazy", "their families", "the rain", "cooking rice")
FIRST = 64
CHUNK = 128  # probes read together


def statements(count: int) -> list[str]:
    """Distinct statements."""
    made = (
        f"{said} {thing}{f' number {n}' if n else ''}."
        for n, thing, said in product(range(count), THINGS, SAID)
    )
    return list(islice(made, count))


def seconds() -> tuple[float, float]:
    """Wall time, and processor time of this process and its children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ended = sum(u.ru_utime + u.ru_stime for u in used)
    there = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return time.perf_counter(), ended + sum(sum(times[:2]) for times in there)


def probed(model: str, asked: list[str], processes: int) -> tuple[float, list[Any]]:
    """Processor seconds per probe, and the results of all probes."""
    found: list[Any] = []
    times = []
    with open_executor("local", processes=processes) as workers:
        scorer = DistributedScorer(workers, model, {}, SilentProgress()) if workers else open_scorer(model)
        for part in (asked[:FIRST], asked[FIRST:]):
            sets = {"made up": (GROUPS, tuple(part))}
            before = seconds()
            found.append(repr(probe_sets(scorer, sets, chunk=CHUNK).bias))
            times.append([after - b for b, after in zip(before, seconds(), strict=True)])
            for helper in workers._helpers if isinstance(workers, LocalExecutor) else ():
                with helper._request_lock:  # held until the helper is ready
                    pass
    unload()
    _, (wall, cpu) = times
    count = len(GROUPS) * (len(asked) - FIRST)
    print(
        f"{processes} processes: {count:,} probes in {wall:.1f} s, {cpu:.1f} s of processor time "
        f"({cpu / count * 1e3:.2f} ms a probe)",
        flush=True,
    )
    return cpu / count, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--statements", type=int, default=300)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], metavar="N")
    options = parser.parse_args()
    print(f"{count_torch_threads()} threads")
    asked = statements(options.statements)
    found = [probed(options.model, asked, n) for n in options.processes]
    for number, (each, _) in zip(options.processes[1:], found[1:], strict=True):
        gain = number * found[0][0] / each
        print(f"{number} processes on as many quiet cores: {gain:.2f} times as fast as the first")
    same = all(said == found[0][1] for _, said in found)
    if len(found) > 1:
        print("the probes are the same" if same else "the probes differ")
    return 0 if same or count_torch_threads() > 1 else 1


if __name__ == "__main__":
    sys.exit(main())
