"""Models on benchmarks: their scores, how certain the differences are, and whether benchmarks
agree."""

from kgbias.benchmark.board import (
    BenchmarkCost,
    BenchmarkOutcome,
    Board,
    Standing,
    StandingAgreement,
    build_board,
    estimate_benchmark_cost,
)

__all__ = [
    "BenchmarkCost",
    "BenchmarkOutcome",
    "Board",
    "Standing",
    "StandingAgreement",
    "build_board",
    "estimate_benchmark_cost",
]
