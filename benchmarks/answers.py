"""What several answers per prompt and a neutral core of predicates do for the demo: the crawl as it
was asked before, compared with the crawl as it is asked now, in one run.

    python benchmarks/answers.py [--model smollm2] [--category NAME ...] [--store FOLDER]

The two run side by side, each in its own process with one thread, so both meet the same machine
conditions. Before: one answer per prompt, rejected ones asked for again with new examples, the
predicates love, hate, are, can't, five samples of each, ten prompts for each strategy and round.
For each crawl: the CPU time, the statements, the number of distinct ones, and the smallest
difference in regard that the report's own test (one group against the rest of its category, by
permutation of whole prompts) finds in 80% of such crawls. Exit code 1 if there are fewer than
--times as many distinct statements in the same CPU time, or if a difference larger than
--difference would be missed.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kgbias

OLD_OPTIONS: dict[str, Any] = {
    "initial_predicates": ("love", "hate", "are", "can't"),
    "samples": 5,
    "answers": 1,
    "predicate_prompts": 10,
    "object_prompts": 10,
    "max_attempts": 5,
    "redraw": False,
}
DEMO_CATEGORIES = ("gender", "ethnicity")


@dataclass(frozen=True)
class CrawlYield:
    """The cost and yield of a crawl."""

    cpu_seconds: float
    answers: int
    statements: int
    distinct: int
    detectable: dict[str, float]

    def __str__(self) -> str:
        differences = ", ".join(f"{c} {100 * x:.0f}" for c, x in self.detectable.items())
        return (
            f"{self.cpu_seconds:7.1f} s of CPU  {self.answers:>5} answers  {self.statements:>5} "
            f"statements  "
            f"{self.distinct:>5} different ({self.distinct / self.cpu_seconds:.2f} a second)  "
            f"finds in 100: {differences}"
        )


def crawl_in_process(folder: Path, model: str, categories: list[str], name: str) -> CrawlYield:
    import torch

    torch.set_num_threads(1)
    loaded_model: Any = kgbias.open_model(model)
    list(loaded_model.complete([]))  # loading is not part of the measurement
    with kgbias.open(folder / f"{name}.db", progress=False) as study:
        return _time_crawl(study, model, categories, name)


def _time_crawl(study: kgbias.Study, model: str, categories: list[str], name: str) -> CrawlYield:
    began = time.process_time()
    run = study.crawl(
        model, name=name, category=categories, **(OLD_OPTIONS if name == "before" else {})
    )
    cpu = time.process_time() - began
    if run.crawl_result.cached_count:
        sys.exit(
            f"{name}: {run.crawl_result.cached_count} answers already exist: name an empty folder"
        )
    run.measure(axes=False)
    detectable: dict[str, float] = {}
    for test in run.compare_groups(measures=["regard"]):
        largest = max(detectable.get(test.category, 0.0), test.detectable)
        detectable[test.category] = largest
    statements = run.crawl_result.outcomes["ok"]
    return CrawlYield(cpu, run.crawl_result.asked_count, statements, len(run.triples()), detectable)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--category", nargs="+", default=list(DEMO_CATEGORIES))
    parser.add_argument("--store", type=Path, help="a folder that keeps the two stores")
    parser.add_argument("--times", type=float, default=2.0)
    parser.add_argument("--difference", type=float, default=0.30)
    options = parser.parse_args()
    yields = {}
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as temporary, ProcessPoolExecutor(2, spawn) as pool:
        folder = options.store or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        running = {
            name: pool.submit(crawl_in_process, folder, options.model, options.category, name)
            for name in ("now", "before")
        }
        for name, job in running.items():
            yields[name] = job.result()
            print(f"{name:<7}{yields[name]}", flush=True)
    now, before = yields["now"], yields["before"]
    times = (now.distinct / now.cpu_seconds) / (before.distinct / before.cpu_seconds)
    largest = max(now.detectable.values())
    print(f"{times:.2f} times as many different statements in the same CPU time")
    print(f"a difference in regard of {100 * largest:.0f} in 100 is found in 80% of such crawls")
    sys.exit(times < options.times or largest > options.difference)


if __name__ == "__main__":
    main()
