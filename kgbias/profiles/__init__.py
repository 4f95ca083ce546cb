"""Profiles: what a model writes about a person it knows only by name."""

from kgbias.profiles.analysis import KINDS, ProfileAnalysis, Told, analyse
from kgbias.profiles.words import Word

__all__ = ["KINDS", "ProfileAnalysis", "Told", "Word", "analyse"]
