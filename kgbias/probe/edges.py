"""PROBED edges as the grid that they were made from."""

from collections.abc import Sequence

import numpy as np

from kgbias.graph.types import ProbedEdge
from kgbias.models.score.base import Grid, Scores


def edges_grid(edges: Sequence[Sequence[ProbedEdge]]) -> Grid:
    """The grid that edges [groups][statements] add up to."""

    def scores(value: str, tokens: str) -> Scores:
        return Scores(
            np.array([[getattr(e, value) for e in row] for row in edges], dtype=np.float64),
            np.array([[getattr(e, tokens) for e in row] for row in edges], dtype=np.int64),
        )

    group = scores("group_log_likelihood", "group_tokens")
    return Grid(
        whole=scores("log_likelihood", "tokens"),
        statement=scores("statement_log_likelihood", "statement_tokens"),
        group=Scores(group.log_likelihoods[:, 0], group.tokens[:, 0]),
    )
