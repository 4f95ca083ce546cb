"""What products by oneDNN save, on the processors where kgbias takes it: processor time of answers
and of probes with MKL and with oneDNN, in turn, and by how much the results differ.

    OMP_NUM_THREADS=1 python benchmarks/products.py [--model smollm2] [--requests 64]

Exit code 1 if an answer differs. Says so, and stops, on a processor for which kgbias stays with
MKL.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from generate import crawl_requests
from processes import GROUPS, make_statements

from kgbias.models import open_model, open_scorer, products

STATEMENTS = 60
ROUNDS = 2


def compare(name: str, compute: Callable[[], Any]) -> tuple[Any, Any]:
    """What it gives with MKL and with oneDNN; prints the least processor time of each."""
    given: dict[bool, Any] = {}
    seconds = {False: float("inf"), True: float("inf")}
    for is_fast in (False, True) * ROUNDS:
        with patch.object(products, "prefers_onednn", lambda fast=is_fast: fast):
            began = time.process_time()
            given[is_fast] = compute()
            seconds[is_fast] = min(seconds[is_fast], time.process_time() - began)
    print(
        f"{name}: MKL {seconds[False]:.2f} s, oneDNN {seconds[True]:.2f} s "
        f"({seconds[True] / seconds[False]:.2f} times as long)",
        flush=True,
    )
    return given[False], given[True]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--requests", type=int, default=64)
    options = parser.parse_args()
    if not products.prefers_onednn():
        sys.exit("kgbias stays with MKL on this processor")
    model: Any = open_model(options.model)
    requests = crawl_requests("sentences", 0)[: options.requests]

    def answer() -> list[str]:
        model.__dict__.pop("_sampler", None)  # it has found its layers
        answers = dict(pair for finished in model.complete(requests) for pair in finished)
        return [answers[number].text for number in range(len(requests))]

    answers = compare(f"{len(requests)} answers", answer)
    differing = sum(a != b for a, b in zip(*answers, strict=True))
    print(f"answers that differ: {differing}")
    scorer = open_scorer(options.model)
    statements = make_statements(STATEMENTS)
    plain, fast = (
        grid.statement.log_likelihoods
        for grid in compare(
            f"{len(GROUPS) * STATEMENTS} probes", lambda: scorer.grid(GROUPS, statements)
        )
    )
    print(f"log-probabilities differ by at most {np.abs(1 - fast / plain).max():.1e} of them")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
