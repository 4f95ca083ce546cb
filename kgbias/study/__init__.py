"""The front door: a study is a store of runs, and everything else is one of its methods."""

from kgbias.study.plan import Plan, read_plan
from kgbias.study.records import Figure
from kgbias.study.reproducing import Reproduction, reproduce
from kgbias.study.rows import Rows
from kgbias.study.run import Run
from kgbias.study.study import Study, model_kinds, open, price, queries
from kgbias.study.tested import build_sofa

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
    "price",
    "queries",
    "read_plan",
    "reproduce",
]
