"""Models on benchmarks: their scores, how certain the differences are, and whether benchmarks
agree."""

from kgbias.benchmark.board import Agreement, Board, Cost, Outcome, Standing, board, cost_of

__all__ = ["Agreement", "Board", "Cost", "Outcome", "Standing", "board", "cost_of"]
