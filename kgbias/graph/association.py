"""Association tests as nodes of the graph."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kgbias.models.base import ModelInfo


@dataclass(frozen=True, slots=True)
class AssociationEdge:
    """What a set of an association test is about: TARGET (X, Y) or ATTRIBUTE (A, B) to a node that
    is in the graph. `side` is x, y, a or b; `kind` is group, object or topic."""

    side: str
    kind: str
    node_id: str

    @property
    def name(self) -> str:
        return "TARGET" if self.side in ("x", "y") else "ATTRIBUTE"


@dataclass(frozen=True, slots=True)
class AssociationNode:
    """An association test with its outcome on one model. The id follows from the words, the method,
    the model and the settings; `record` is everything that the outcome rests on.

    `p_value` is that of the permutation test; `p_holm` and `p_bh` are corrected for the tests of
    the same call; `p_published` is the p of the method's paper where that is another one (CEAT).
    `n_x` and `n_y` count the targets that the model knew. What was not computed is NaN.
    """

    id: str
    test: str
    method: str
    model: ModelInfo
    effect_size: float
    p_value: float
    low: float
    high: float
    record: Mapping[str, Any]
    edges: tuple[AssociationEdge, ...] = ()
    p_published: float = math.nan
    p_holm: float = math.nan
    p_bh: float = math.nan
    n_x: int = 0
    n_y: int = 0


def figures_of(record: str) -> dict[str, float]:
    """The figures of an association test in its record, as JSON: what stores written before these
    were properties of their own are brought up to date with."""
    row = json.loads(record)
    found = {name: row[name] for name in ("p_permutation", "p_holm", "p_bh") if name in row}
    sizes = row.get("n")
    if isinstance(sizes, dict):
        found |= {f"n_{side}": sizes[side] for side in ("x", "y") if side in sizes}
    return found
