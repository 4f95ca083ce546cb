"""Benchmarks: what is scored, and the figures that follow.

A `Benchmark` turns what a model finds probable into figures over units. An `ItemBenchmark` is read
from the user's copy of its file and scores those of its items that a store does not hold yet;
`Sofa` and `Apx` come from probing.
"""

from kgbias.probe.benchmarks.apx import Apx
from kgbias.probe.benchmarks.base import (
    OVERALL,
    Benchmark,
    BenchmarkResult,
    DomainFigure,
    FigureInfo,
    ItemBenchmark,
)
from kgbias.probe.benchmarks.bbq import BBQ, read_bbq
from kgbias.probe.benchmarks.crows import CrowsPairs, read_crows_pairs
from kgbias.probe.benchmarks.sofa import Sofa, SofaOfRun, SofaOfSets
from kgbias.probe.benchmarks.stereoset import StereoSet, read_stereoset
from kgbias.probe.benchmarks.winogender import Winogender, read_winogender
from kgbias.probe.items import StoredAmount

__all__ = [
    "BBQ",
    "OVERALL",
    "Apx",
    "Benchmark",
    "BenchmarkResult",
    "CrowsPairs",
    "DomainFigure",
    "FigureInfo",
    "ItemBenchmark",
    "Sofa",
    "SofaOfRun",
    "SofaOfSets",
    "StereoSet",
    "StoredAmount",
    "Winogender",
    "read_bbq",
    "read_crows_pairs",
    "read_stereoset",
    "read_winogender",
]
