"""The front door: a study is a store of runs, and everything else is one of its methods."""

from kgbias.study.costing import price
from kgbias.study.figure import Figure
from kgbias.study.plan import Plan, read_plan
from kgbias.study.reproducing import Reproduction, reproduce
from kgbias.study.rows import Rows
from kgbias.study.run import Run, model_kinds, plugins
from kgbias.study.sofa import build_sofa
from kgbias.study.study import Study, open, queries

__all__ = [
    "Figure",
    "Plan",
    "Reproduction",
    "Rows",
    "Run",
    "Study",
    "build_sofa",
    "model_kinds",
    "open",
    "plugins",
    "price",
    "queries",
    "read_plan",
    "reproduce",
]
