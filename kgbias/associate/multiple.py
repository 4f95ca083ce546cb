"""Corrections for a family of tests."""

from collections.abc import Sequence

import numpy as np

from kgbias.associate.effect import Array


def holm(p: Sequence[float]) -> Array:
    """Holm's (1979) step-down adjusted p-values, in the order given: the chance of any false
    positive in the family is at most alpha when those <= alpha are rejected, whatever depends on
    what. The i-th smallest of m becomes max over j <= i of min(1, (m - j + 1) p_(j))."""
    values = _checked(p)
    order = np.argsort(values, kind="stable")
    steps = np.arange(len(values), 0, -1) * values[order]
    return _placed(np.maximum.accumulate(np.minimum(steps, 1.0)), order)


def benjamini_hochberg(p: Sequence[float]) -> Array:
    """Benjamini and Hochberg's (1995) step-up adjusted p-values, in the order given: of those <= q
    an expected share of at most q is false, for independent or positively dependent tests. The i-th
    smallest of m becomes min over j >= i of min(1, m p_(j) / j)."""
    values = _checked(p)
    order = np.argsort(values, kind="stable")
    steps = values[order] * len(values) / np.arange(1, len(values) + 1)
    lowest = np.minimum.accumulate(steps[::-1])[::-1] if len(steps) else steps
    return _placed(np.minimum(lowest, 1.0), order)


def _checked(p: Sequence[float]) -> Array:
    values = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("p-values lie in [0, 1]")
    return values


def _placed(sorted_values: Array, order: np.ndarray) -> Array:
    adjusted = np.empty_like(sorted_values)
    adjusted[order] = sorted_values
    return adjusted
