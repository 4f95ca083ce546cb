"""Comparing: groups within a run, augmentation arms, and runs with each other."""

from kgbias.compare.families import (
    CORRECTIONS,
    GroupTest,
    OmnibusTest,
    arm_samples,
    run_arm_tests,
    run_group_tests,
    run_omnibus_tests,
)
from kgbias.compare.model_contrasts import ModelContrast, ModelRanking, contrast_models
from kgbias.compare.run_pairs import (
    RankAgreement,
    RunComparison,
    StatementOverlap,
    compare_runs,
    measure_rank_agreement,
)
from kgbias.compare.two_sample import TwoSampleTest, compare_samples, mean_difference

__all__ = [
    "CORRECTIONS",
    "GroupTest",
    "ModelContrast",
    "ModelRanking",
    "OmnibusTest",
    "RankAgreement",
    "RunComparison",
    "StatementOverlap",
    "TwoSampleTest",
    "arm_samples",
    "compare_runs",
    "compare_samples",
    "contrast_models",
    "mean_difference",
    "measure_rank_agreement",
    "run_arm_tests",
    "run_group_tests",
    "run_omnibus_tests",
]
