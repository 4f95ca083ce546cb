"""Costs and benefits of letting OpenMP's threads sleep while they wait (kgbias/parallel/work.py).

    python benchmarks/threads.py [--busy] [--pairs 5] [--threads 2]

Scores the same sentences in processes that differ only in how threads wait: spinning, OpenMP's
default, or sleeping, as in kgbias. The two take turns, so the ratio of each pair is from the same
minute. With --busy, other processes keep every core at work meanwhile.

Exit code 1 if sleeping costs more than 3% on a quiet machine (the median over the pairs); without
--busy, a machine whose load shows that it is not quiet is not judged.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SCORING_SCRIPT = """
import os, sys, time
import kgbias
import torch
torch.set_num_threads(int(sys.argv[1]))
from kgbias.measure.scorers import load_scorer
scorer = load_scorer("regard", device="cpu")
things = ("food", "music", "long walks by the sea", "their old friends", "rain on a holiday")
scorer.score([f"Bakers love {thing}." for thing in things])
sentences = [f"Bakers number {n} love {things[n % 5]}." for n in range(int(sys.argv[2]))]
began = time.perf_counter()
scorer.score(sentences)
print(len(sentences) / (time.perf_counter() - began))
"""


def sentence_rate(waiting: str, threads: int, sentences: int) -> float:
    """Sentences per second in a process whose threads wait like this."""
    prefixes = ("OMP_", "KMP_", "GOMP_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}
    if waiting == "spinning":
        environment["KMP_LIBRARY"] = "turnaround"  # a choice, which kgbias leaves alone
    call = [sys.executable, "-c", SCORING_SCRIPT, str(threads), str(sentences)]
    result = subprocess.run(call, env=environment, capture_output=True, text=True, check=True)
    return float(result.stdout)


@contextmanager
def keep_busy(processes: int) -> Iterator[None]:
    """Run `processes` processes that each just keep a core at work."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--busy", action="store_true", help="with other work on every core")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=2000)
    options = parser.parse_args()
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    quiet = not options.busy and load < cores / 4
    ratios = []
    with keep_busy(cores if options.busy else 0):
        for pair in range(options.pairs):
            order = ("spinning", "sleeping")[:: 1 if pair % 2 else -1]
            rates = {how: sentence_rate(how, options.threads, options.sentences) for how in order}
            ratios.append(rates["sleeping"] / rates["spinning"])
            print(
                f"spinning {rates['spinning']:7.0f}/s  sleeping {rates['sleeping']:7.0f}/s  "
                f"ratio {ratios[-1]:.3f}",
                flush=True,
            )
    median_ratio = statistics.median(ratios)
    print(f"median ratio {median_ratio:.3f}; load {load:.1f} on {cores} cores at the start")
    if options.busy:
        return 0
    if not quiet:
        print("not judged: the machine is not quiet")
        return 0
    return int(median_ratio < 0.97)


if __name__ == "__main__":
    sys.exit(main())
