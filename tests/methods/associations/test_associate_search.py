"""SEAT at every layer, corrected for having searched."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from zlib import crc32

import numpy as np
import pytest

from kgbias.errors import DataError
from kgbias.methods.associations.result import Statistics
from kgbias.methods.associations.search import search_seat
from kgbias.methods.associations.sets import AssociationTest, WordSet
from kgbias.methods.associations.weat import seat
from kgbias.models.base import ModelInfo
from kgbias.models.embed import Span, VectorSource
from tests.simulation import Simulation
from tests.texts import Texts

NAMES = tuple(f"name{n}" for n in range(10))


def shuffled(seed: int) -> AssociationTest:
    names = list(np.random.default_rng(seed).permutation(NAMES))
    return AssociationTest(
        "t",
        WordSet("x", tuple(names[:5]), "name"),
        WordSet("y", tuple(names[5:]), "name"),
        WordSet("a", ("kind", "warm"), "quality"),
        WordSet("b", ("rude", "cold"), "quality"),
    )


@cache
def vector(text: str) -> np.ndarray:
    return np.random.default_rng(crc32(text.encode())).normal(size=8)


class Layers:
    """Vectors of noise; at layer 0 of a sentence all are alike."""

    info = ModelInfo("stub")
    sentence_encoding = "last"
    sentence_encodings = ("last", "mean")
    layers = 3

    def embed(self, spans: Sequence[Span], encoding: str, layer: int = -1) -> np.ndarray:
        rows = []
        for span in spans:
            word = span.text[span.start : span.end]
            if (encoding, layer) == ("last", 0):
                word = "."
            rows.append(vector(f"{word} {encoding} {layer}"))
        return np.array(rows, dtype=np.float32)

    def embed_many(
        self, spans: Sequence[Span], wanted: Iterable[VectorSource]
    ) -> dict[VectorSource, np.ndarray]:
        return {place: self.embed(spans, *place) for place in wanted}


def test_the_best_setting_is_what_seat_finds_there() -> None:
    test, model = shuffled(3), Layers()
    result = search_seat(test, model, "s-seat")
    searched = {
        (row["encoding"], row["layer"]): row["effect_size"] for row in result.details["searched"]
    }
    assert len(searched) == 7 and ("last", 0) not in searched  # where all are alike
    for (encoding, layer), d in searched.items():
        alone = seat(test, model, "s-seat", encoding=encoding, layer=layer)  # type: ignore[arg-type]
        assert d == pytest.approx(alone.effect_size, abs=1e-6)
    best = max(searched, key=lambda place: searched[place])
    assert (result.settings["encoding"], result.settings["layer"]) == best
    assert result.effect_size == pytest.approx(searched[best], abs=1e-6)


def test_p_is_that_of_the_largest_effect_of_each_partition() -> None:
    test, model = shuffled(4), Layers()
    words = (*test.x.words, *test.y.words)
    largest = []
    for chosen in combinations(range(10), 5):
        x = WordSet("x", tuple(words[i] for i in chosen), "name")
        y = WordSet("y", tuple(w for i, w in enumerate(words) if i not in chosen), "name")
        parted = AssociationTest("t", x, y, test.a, test.b)
        quick = Statistics()
        largest.append(search_seat(parted, model, "w-seat", quick).effect_size)
        if len(largest) == 20:  # enough of the 252 to compare their order
            break
    ps = [
        search_seat(
            AssociationTest(
                "t",
                WordSet("x", tuple(words[i] for i in chosen), "name"),
                WordSet("y", tuple(w for i, w in enumerate(words) if i not in chosen), "name"),
                test.a,
                test.b,
            ),
            model,
            "w-seat",
            Statistics(),
        ).p_value.value
        for chosen in list(combinations(range(10), 5))[:20]
    ]
    assert np.argsort(ps).tolist()[0] == int(np.argmax(largest))
    assert all(p >= 1 / 252 and round(p * 252) == pytest.approx(p * 252) for p in ps)


def test_the_search_keeps_its_level(simulation: Simulation) -> None:
    """The best of four layers, uncorrected, is significant far too often."""
    model, quick = Layers(), Statistics()
    seeds = [int(rng.integers(2**31)) for rng in simulation.worlds(20)]
    results = [search_seat(shuffled(n), model, "w-seat", quick) for n in seeds]
    found = sum(r.p_value.value <= 0.05 for r in results)
    simulation.check("corrected", found, len(seeds), 0.0, 0.05)
    naive = [
        min(
            seat(
                shuffled(n), model, "w-seat", quick, encoding="word-average", layer=layer
            ).p_value.value
            for layer in range(4)
        )
        for n in seeds
    ]
    found = sum(p <= 0.05 for p in naive)
    simulation.check("uncorrected", found, len(seeds), 0.1, 1.0)


def test_many_partitions_are_sampled_and_nothing_to_search_is_an_error(texts: Texts) -> None:
    test = shuffled(1)
    sampled = search_seat(
        test, Layers(), "w-seat", Statistics(how="sampled", samples=99, tails="two")
    )
    assert (sampled.p_value.method, sampled.p_value.partitions, sampled.p_value.seed) == (
        "sampled",
        100,
        0,
    )
    exact = search_seat(test, Layers(), "w-seat", Statistics(tails="two"))
    assert exact.p_value.method == "exact" and exact.p_value.partitions == 252
    assert sampled.p_value.value == pytest.approx(exact.p_value.value, abs=0.15)

    class Alike(Layers):
        layers = 0
        sentence_encodings = ("last",)

    with texts.raises(DataError):
        search_seat(test, Alike(), "s-seat")
