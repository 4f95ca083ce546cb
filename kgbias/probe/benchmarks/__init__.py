"""Benchmarks of items: what is scored of each, and the figures that follow.

A `Benchmark` is read from the user's copy of its file (or made from groups and statements), asks a
model for the scores of its items, and turns them into figures over units. `answered` asks for what
a store does not hold yet.
"""

from kgbias.probe.benchmarks.base import OVERALL, Benchmark, FigureInfo, Measured, answered
from kgbias.probe.benchmarks.bbq import BBQ, read_bbq
from kgbias.probe.benchmarks.crows import CrowsPairs, read_crows_pairs
from kgbias.probe.benchmarks.grids import Apx, Sofa
from kgbias.probe.benchmarks.stereoset import StereoSet, read_stereoset
from kgbias.probe.benchmarks.winogender import Winogender, read_winogender

__all__ = [
    "BBQ",
    "OVERALL",
    "Apx",
    "Benchmark",
    "CrowsPairs",
    "FigureInfo",
    "Measured",
    "Sofa",
    "StereoSet",
    "Winogender",
    "answered",
    "read_bbq",
    "read_crows_pairs",
    "read_stereoset",
    "read_winogender",
]
