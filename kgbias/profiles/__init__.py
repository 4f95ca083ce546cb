"""Profiles: what a model writes about a person whom it knows only by name."""

from kgbias.profiles.agreement import ProfileAgreement, compare_with_apx, compare_with_crawl
from kgbias.profiles.analysis import (
    LABEL_KINDS,
    PERMUTATIONS,
    SPLITS,
    LabelClassification,
    ProfileAnalysis,
    analyse_profiles,
    can_classify,
)
from kgbias.profiles.words import WordShift

__all__ = [
    "LABEL_KINDS",
    "PERMUTATIONS",
    "SPLITS",
    "LabelClassification",
    "ProfileAgreement",
    "ProfileAnalysis",
    "WordShift",
    "analyse_profiles",
    "can_classify",
    "compare_with_apx",
    "compare_with_crawl",
]
