"""Flags of APX: descriptors that a model ties to groups of names."""

from dataclasses import dataclass

from kgbias.models.base import Settings


@dataclass(frozen=True, slots=True)
class Flag:
    """FLAGGED: a group that a descriptor is tied to. Its bias score, 0 to 1, lies `z` standard
    deviations from the descriptor's mean over groups; more negative is more strongly tied. `axis`
    is the descriptor's, "" for none."""

    group: str
    descriptor: str
    axis: str
    bias_score: float
    z: float


@dataclass(frozen=True, slots=True)
class Flagged:
    """The flags of one table of APX. The id follows from the model, how it was asked, the names and
    the descriptors. `model` is the model's name, or the file of a table from elsewhere, which has
    no revision; `level` is that of the test, `groups` how many were compared."""

    id: str
    model: str
    revision: str
    settings: Settings
    level: float
    groups: int
    flags: tuple[Flag, ...]
