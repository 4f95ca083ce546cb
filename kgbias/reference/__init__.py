"""The reference model: a small but real transformer that learned a declared world of invented
peoples and faiths, so that what kgbias finds can be compared with what was planted.

`world.toml` declares the peoples and faiths with their beliefs, and `world` computes every
probability that follows. `training/reference` writes documents with the crawler's own templates, so
that what the model learned and what the crawler asks cannot drift apart. A causal and a masked
model learn from them; the causal one is then taught the names. `truth.json`, beside the weights, is
the truth as data.
"""

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
