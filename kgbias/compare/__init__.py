"""Comparing: groups within a run, augmentation arms, and runs with each other."""

from kgbias.compare.families import (
    CORRECTIONS,
    GroupTest,
    Omnibus,
    arm_tests,
    arm_values,
    group_tests,
    omnibus,
)
from kgbias.compare.models import Contrast, Ranking, contrasts
from kgbias.compare.runs import Agreement, Comparison, Overlap, compare_runs, rank_agreement
from kgbias.compare.two_sample import TwoSample, mean_difference, two_sample

__all__ = [
    "CORRECTIONS",
    "Agreement",
    "Comparison",
    "Contrast",
    "GroupTest",
    "Omnibus",
    "Overlap",
    "Ranking",
    "TwoSample",
    "arm_tests",
    "arm_values",
    "compare_runs",
    "contrasts",
    "group_tests",
    "mean_difference",
    "omnibus",
    "rank_agreement",
    "two_sample",
]
