"""How far the methods agree across tests and models (tables 3 to 5 of "Mind Your Bias")."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from kgbias.methods.associations.effect import Array
from kgbias.stats.inference import rank_correlation

RecordRow = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MethodAgreement:
    """How far two methods agree on one model, over the `n` tests that both were run on; NaN for
    fewer than 3 tests, or if one method is constant. `significant` counts only the tests that are
    significant by both (Holm, 5%)."""

    model: str
    methods: tuple[str, str]
    significant: bool
    n: int
    pearson: float
    spearman: float


def measure_agreements(rows: Sequence[RecordRow], alpha: float = 0.05) -> list[MethodAgreement]:
    """Pearson's and Spearman's correlations of the effect sizes of each pair of methods, by model,
    over all tests and over those significant by both. One method with different settings counts as
    different methods: see `name_distinct_methods`."""
    agreements_found = []
    by_model: dict[str, dict[tuple[str, str], RecordRow]] = {}
    for row in name_distinct_methods(rows):
        by_model.setdefault(row["model"], {})[row["method"], row["test"]] = row
    for model, model_rows in by_model.items():
        methods = dict.fromkeys(method for method, _ in model_rows)
        for first_method, second_method in combinations(methods, 2):
            tests = [
                test
                for method, test in model_rows
                if method == first_method and (second_method, test) in model_rows
            ]
            for significant in (False, True):
                pairs = [
                    (model_rows[first_method, test], model_rows[second_method, test])
                    for test in tests
                    if not significant
                    or max(
                        model_rows[first_method, test]["p_holm"],
                        model_rows[second_method, test]["p_holm"],
                    )
                    <= alpha
                ]
                x = np.array([a["effect_size"] for a, _ in pairs])
                y = np.array([b["effect_size"] for _, b in pairs])
                agreements_found.append(
                    MethodAgreement(
                        model,
                        (first_method, second_method),
                        significant,
                        len(pairs),
                        pearson(x, y),
                        spearman(x, y),
                    )
                )
    return agreements_found


def name_distinct_methods(rows: Sequence[RecordRow]) -> list[RecordRow]:
    """The rows, with methods that can be told apart: if one was run with different settings on the
    same test and model, the settings that differ become part of its name
    ("s-seat encoding=cls")."""
    settings_by_test: dict[tuple[str, str, str], list[RecordRow]] = {}
    for row in rows:
        settings_by_test.setdefault((row["method"], row["model"], row["test"]), []).append(
            row["settings"]
        )
    differing: dict[str, set[str]] = {}
    for (method, _, _), settings in settings_by_test.items():
        keys = {key for setting in settings for key in setting}
        first = settings[0]
        differing_keys = {
            key for key in keys if any(s.get(key) != first.get(key) for s in settings)
        }
        # Lists and tables would make a name that nobody can read: only if nothing else differs.
        plain_keys = {
            key
            for key in differing_keys
            if all(isinstance(s.get(key), (str, int, float, type(None))) for s in settings)
        }
        differing.setdefault(method, set()).update(plain_keys or differing_keys)
    named_rows = []
    for row in rows:
        method = row["method"]
        values = [f"{key}={row['settings'].get(key)}" for key in sorted(differing[method])]
        named_rows.append(row | {"method": " ".join([method, *values])})
    return named_rows


def pearson(x: Array, y: Array) -> float:
    """Pearson's correlation in [-1, 1]; NaN for fewer than 3 pairs, or if a side is constant."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def spearman(x: Array, y: Array) -> float:
    """Spearman's rank correlation in [-1, 1]; NaN for fewer than 3 pairs, or if a side is
    constant."""
    return rank_correlation(x, y) if len(x) >= 3 else float("nan")
