"""Benchmarks: what is scored, and the figures that follow.

A `Benchmark` turns what a model finds probable into figures over units. An `ItemBenchmark` is read
from the user's copy of its file and scores those of its items that a store does not hold yet;
`Sofa` and `Apx` come from probing.

The store keeps scores (`BenchmarkItem`, READ_BY) keyed by all that was asked, so nothing is scored
twice. SoFa has no items of its own: its benchmark is the `SofaResult` that probing the same set or
run left in the store, or leaves there when it is asked for. Figures follow from sums over units
(`kgbias.stats.units`), so models are resampled and exchanged over the same units, whatever the
figure.

To add a benchmark, add an `ItemBenchmark` here (its items, what is scored of each, the figures that
follow), a function in `kgbias.probe.benchmark_figures`, and a parameter in
`kgbias.study.comparison`.
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
