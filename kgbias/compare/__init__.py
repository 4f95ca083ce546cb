"""Comparing: groups within a run, augmentation arms, and runs with each other."""

from kgbias.compare.families import (
    CORRECTIONS,
    GroupTest,
    OmnibusTest,
    run_arm_tests,
    arm_samples,
    run_group_tests,
    run_omnibus_tests,
)
from kgbias.compare.model_contrasts import ModelContrast, ModelRanking, contrast_models
from kgbias.compare.run_pairs import RankAgreement, RunComparison, StatementOverlap, compare_runs, measure_rank_agreement
from kgbias.compare.two_sample import TwoSampleTest, mean_difference, compare_samples

__all__ = [
    "CORRECTIONS",
    "RankAgreement",
    "RunComparison",
    "ModelContrast",
    "GroupTest",
    "OmnibusTest",
    "StatementOverlap",
    "ModelRanking",
    "TwoSampleTest",
    "run_arm_tests",
    "arm_samples",
    "compare_runs",
    "contrast_models",
    "run_group_tests",
    "mean_difference",
    "run_omnibus_tests",
    "measure_rank_agreement",
    "compare_samples",
]
