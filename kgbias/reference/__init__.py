"""The reference model: a small real transformer that learned a declared world of invented peoples
and faiths, so that what kgbias finds can be held against what was planted."""

from pathlib import Path
from typing import Literal

from kgbias.reference.world import (
    PlantedCategory,
    PlantedGroup,
    Truth,
    load_truth,
)

__all__ = ["PlantedCategory", "PlantedGroup", "Truth", "load_truth", "path"]


def path(kind: Literal["causal", "masked"]) -> Path:
    """The folder of the shipped weights, in the ordinary Hugging Face format."""
    return Path(__file__).parent / kind
