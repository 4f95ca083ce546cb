"""Models on benchmarks: their scores, how certain the differences are, and whether benchmarks
agree."""

from kgbias.benchmark.board import StandingAgreement, Board, BenchmarkCost, BenchmarkOutcome, Standing, build_board, estimate_benchmark_cost

__all__ = ["StandingAgreement", "Board", "BenchmarkCost", "BenchmarkOutcome", "Standing", "build_board", "estimate_benchmark_cost"]
