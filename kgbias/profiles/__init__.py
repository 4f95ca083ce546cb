"""Profiles: what a model writes about a person whom it knows only by name."""

from kgbias.profiles.agreement import Agreement, with_apx, with_crawl
from kgbias.profiles.analysis import (
    KINDS,
    PERMUTATIONS,
    SPLITS,
    ProfileAnalysis,
    Told,
    analyse,
    can_be_told,
)
from kgbias.profiles.words import Word

__all__ = [
    "KINDS",
    "PERMUTATIONS",
    "SPLITS",
    "Agreement",
    "ProfileAnalysis",
    "Told",
    "Word",
    "analyse",
    "can_be_told",
    "with_apx",
    "with_crawl",
]
