"""The reference model: a small but real transformer that learned a declared world of invented
peoples and faiths, so that what kgbias finds can be compared with what was planted."""

from pathlib import Path
from typing import Literal

from kgbias.reference.world import (
    PlantedCategory,
    PlantedGroup,
    Truth,
    load_truth,
)

__all__ = ["PlantedCategory", "PlantedGroup", "Truth", "load_truth", "weights_path"]


def weights_path(kind: Literal["causal", "masked"]) -> Path:
    """The folder with the shipped weights, in the usual Hugging Face format."""
    return Path(__file__).parent / kind
