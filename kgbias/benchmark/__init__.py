"""Models on benchmarks: what each scores, how surely they differ, and whether benchmarks agree."""

from kgbias.benchmark.board import Agreement, Board, Outcome, Standing, board
from kgbias.benchmark.cost import Cost, cost_of

__all__ = ["Agreement", "Board", "Cost", "Outcome", "Standing", "board", "cost_of"]
