"""SEAT at every layer, with a p-value that allows for having looked at all of them.

Which layer and encoding shows an association is not known beforehand, and the best of many is
significant too often. The permutation test of the maximum (Westfall and Young 1993) corrects for
that exactly: each partition of the targets is judged by its best setting, like the observed one.
"""

from collections.abc import Iterable
from itertools import combinations
from math import comb
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError
from kgbias.methods.associations.effect import (
    EQUALITY_TOLERANCE,
    Array,
    effect_estimate,
    scale_to_unit,
)
from kgbias.methods.associations.permutation import PValue, Tails
from kgbias.methods.associations.result import (
    Association,
    SetUsage,
    Statistics,
    statistics_settings,
)
from kgbias.methods.associations.sets import ROLES, AssociationTest
from kgbias.methods.associations.weat import Embedder, SeatMethod, fill_slot_templates
from kgbias.models.embed import Span, VectorSource

MAX_EXACT_PARTITIONS = 200_000  # up to this many partitions, all are counted
_CHUNK_PARTITIONS = 4096


class LayeredEmbedder(Embedder, Protocol):
    """A model whose layers can be read, all in one pass."""

    @property
    def layers(self) -> int: ...

    @property
    def sentence_encodings(self) -> tuple[Any, ...]: ...

    def embed_many(self, spans: Any, wanted_places: Iterable[VectorSource]) -> Any: ...


def search_seat(
    test: AssociationTest,
    model: LayeredEmbedder,
    method: SeatMethod = "s-seat",
    statistics: Statistics | None = None,
) -> Association:
    """SEAT by the setting with the largest effect, of all hidden layers (0 the input embeddings)
    and, for s-SEAT, all encodings of a sentence; w-SEAT takes the mean of a word's tokens.

    `p_value` is corrected for the search: the share of partitions of the targets whose largest d
    over all settings is at least the observed one's (largest |d| for two tails), exact up to
    `MAX_EXACT_PARTITIONS` partitions, otherwise from `Statistics.samples` drawn ones. A setting in
    which all targets are alike is not a candidate. `details["searched"]` has the d of each setting.
    """
    statistics = statistics or Statistics()
    tails: Tails = statistics.tails or "one"
    encodings = ("word-average",) if method == "w-seat" else model.sentence_encodings
    places = [(encoding, layer) for encoding in encodings for layer in range(model.layers + 1)]
    setting_associations, varying_places = _associations_by_setting(test, model, places)
    if not varying_places:
        raise DataError(f"{test.name}: the targets are all alike in every layer of the model")
    n_x = len(test.x.words)
    # Standardised once, d of any partition is a sum over X (`_setting_effects`).
    standardised = (
        setting_associations - setting_associations.mean(axis=1, keepdims=True)
    ) / setting_associations.std(axis=1, ddof=1, keepdims=True)
    observed = _setting_effects(standardised, np.arange(setting_associations.shape[1]) < n_x)[:, 0]
    best_setting = int(np.argmax(observed if tails == "one" else np.abs(observed)))
    bound = (
        observed[best_setting] if tails == "one" else abs(observed[best_setting])
    ) - EQUALITY_TOLERANCE * setting_associations.shape[1]
    partitions, exact = _list_partitions(setting_associations.shape[1], n_x, statistics)
    count = total = 0
    for memberships in partitions:
        effects = _setting_effects(standardised, memberships)
        count += int(((effects if tails == "one" else np.abs(effects)).max(axis=0) >= bound).sum())
        total += len(memberships)
    if not exact:  # the observed partition is one of them
        count, total = count + 1, total + 1
    p_method = "exact" if exact else "sampled"
    p_value = PValue(
        count / total, p_method, tails, total, count, None if exact else statistics.seed
    )
    x, y = setting_associations[best_setting][:n_x], setting_associations[best_setting][n_x:]
    encoding, layer = varying_places[best_setting]
    return Association(
        test=test,
        method=method,
        model=model.info,
        effect=effect_estimate(x, y, statistics.spread),
        p_value=p_value,
        statistic=float(x.mean() - y.mean()),
        sets={role: SetUsage(test.sets[role].words) for role in ROLES},
        settings=statistics_settings(statistics, tails)
        | {"encoding": encoding, "layer": layer, "unit": "word", "search": "largest of all layers"},
        details={
            "searched": [
                {"encoding": encoding, "layer": layer, "effect_size": float(effect_size)}
                for (encoding, layer), effect_size in zip(varying_places, observed, strict=True)
            ]
        },
    )


def _associations_by_setting(
    test: AssociationTest, model: LayeredEmbedder, places: list[VectorSource]
) -> tuple[Array, list[VectorSource]]:
    """s(w, A, B) of each target, [settings, targets], and the settings in which targets differ."""
    spans = {role: fill_slot_templates(test.sets[role]) for role in ROLES}
    flat: list[Span] = [span for role in ROLES for row in spans[role] for span in row]
    tables = model.embed_many(flat, places)
    rows, varying_places = [], []
    for place in places:
        vectors = scale_to_unit(tables[place].astype(np.float64), model.info.name)
        means, start = {}, 0
        for role in ROLES:
            shape = (len(spans[role]), len(spans[role][0]))
            role_vectors = vectors[start : start + shape[0] * shape[1]].reshape(*shape, -1)
            means[role] = role_vectors.mean(axis=1)
            start += shape[0] * shape[1]
        direction = means["a"].mean(axis=0) - means["b"].mean(axis=0)
        place_associations = np.concatenate([means["x"], means["y"]]) @ direction
        if place_associations.std(ddof=1) > 1e-7:  # equal float32 vectors differ by less
            rows.append(place_associations)
            varying_places.append(place)
    return np.array(rows), varying_places


def _setting_effects(z: Array, in_x: NDArray[np.bool_]) -> Array:
    """d of each setting and partition, [settings, partitions], from standardised associations and
    membership in X, [partitions, targets] or [targets]."""
    in_x = np.atleast_2d(in_x)
    sizes = in_x.sum(axis=1)
    sums = z @ in_x.T
    # The mean of z is 0, so what X gains, Y loses.
    return np.asarray(sums / sizes + sums / (z.shape[1] - sizes))


def _list_partitions(
    target_count: int, n_x: int, statistics: Statistics
) -> tuple[Iterable[NDArray[np.bool_]], bool]:
    """Memberships in X in chunks, and whether they cover every partition."""
    if comb(target_count, n_x) <= MAX_EXACT_PARTITIONS and statistics.how in ("auto", "exact"):
        members = np.array(list(combinations(range(target_count), n_x)))
        everything = np.zeros((len(members), target_count), dtype=bool)
        np.put_along_axis(everything, members, True, axis=1)
        return (
            everything[i : i + _CHUNK_PARTITIONS]
            for i in range(0, len(everything), _CHUNK_PARTITIONS)
        ), True
    rng = np.random.default_rng(statistics.seed)

    def drawn() -> Iterable[NDArray[np.bool_]]:
        for start in range(0, statistics.samples, _CHUNK_PARTITIONS):
            size = min(_CHUNK_PARTITIONS, statistics.samples - start)
            yield rng.permuted(np.tile(np.arange(target_count) < n_x, (size, 1)), axis=1)

    return drawn(), False
