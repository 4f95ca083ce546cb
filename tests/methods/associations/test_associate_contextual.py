"""SEAT, CEAT and LPBS: golden values by hand and by direct transcription of the formulas."""

import math
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import pytest

from kgbias.errors import DataError, UsageError
from kgbias.methods.associations.ceat import (
    ContextVectors,
    _choose_rows,
    ceat,
    cohen_variance,
    draw_effects,
    expected_associations,
    fit_random_effects,
)
from kgbias.methods.associations.effect import effect_size
from kgbias.methods.associations.lpbs import lpbs, pool_biases
from kgbias.methods.associations.result import Statistics, published_statistics
from kgbias.methods.associations.sets import AssociationTest, WordSet
from kgbias.methods.associations.weat import fill_slot_templates, seat
from kgbias.models.base import ModelInfo
from kgbias.models.embed import Encoding, Span
from kgbias.models.predict import FilledTemplate, Prediction
from tests.simulation import Simulation
from tests.texts import Texts

Floats = np.ndarray
INFO = ModelInfo("stub", "1")
TEST = AssociationTest(
    name="stub",
    x=WordSet("x", ("Ann", "Eve", "Amy"), "name"),
    y=WordSet("y", ("Bob", "Tom"), "name"),
    a=WordSet("a", ("kind", "wise"), "quality"),
    b=WordSet("b", ("rude", "mean", "idle"), "quality"),
)


class StubEmbedder:
    """Vectors that follow from the text, the span and the encoding alone."""

    info = INFO
    sentence_encoding: Encoding = "last"

    def __init__(self) -> None:
        self.asked: list[Span] = []

    def embed(self, spans: Sequence[Span], encoding: Encoding, layer: int = -1) -> Floats:
        self.asked += spans
        return np.array([vector(span, encoding) for span in spans], dtype=np.float32)


def vector(span: Span, encoding: str) -> Floats:
    word = f"{span.start}:{span.end}" if encoding.startswith("word") else ""
    seed = int.from_bytes(sha256(f"{span.text}|{word}|{encoding}".encode()).digest()[:4])
    return np.random.default_rng(seed).normal(size=8)


def cosine(v: Floats, w: Floats) -> float:
    return float(v @ w / math.sqrt(float(v @ v) * float(w @ w)))


@pytest.mark.parametrize(("method", "encoding"), [("s-seat", "last"), ("w-seat", "word-average")])
@pytest.mark.parametrize("unit", ["word", "sentence"])
def test_seat_is_weat_on_sentences(method: str, encoding: str, unit: str) -> None:
    def rows(words: WordSet) -> list[list[Floats]]:
        return [
            [vector(s, encoding).astype(np.float32).astype(float) for s in row]
            for row in fill_slot_templates(words)
        ]

    a, b = ([v for row in rows(w) for v in row] for w in (TEST.a, TEST.b))

    def s(words: WordSet) -> Floats:
        values = np.array(
            [
                [
                    np.mean([cosine(v, w) for w in a]) - np.mean([cosine(v, w) for w in b])
                    for v in row
                ]
                for row in rows(words)
            ]
        )
        return values.mean(axis=1) if unit == "word" else values.ravel()

    result = seat(TEST, StubEmbedder(), method, Statistics(unit=unit))  # type: ignore[arg-type]
    x, y = s(TEST.x), s(TEST.y)
    assert result.effect_size == pytest.approx(effect_size(x, y), abs=1e-9)
    assert result.statistic == pytest.approx(x.mean() - y.mean(), abs=1e-9)
    assert result.p_value.partitions == (10 if unit == "word" else math.comb(35, 14))
    assert result.settings["encoding"] == encoding and result.settings["unit"] == unit


def test_seat_refuses_an_encoding_of_the_other_kind(texts: Texts) -> None:
    with texts.raises(UsageError):
        seat(TEST, StubEmbedder(), "s-seat", encoding="word-first")
    assert published_statistics("w-seat").unit == "sentence"


def some_contexts(seed: int = 0, counts: tuple[int, ...] = (3, 1, 5)) -> list[list[Floats]]:
    rng = np.random.default_rng(seed)
    return [
        [rng.normal(size=(counts[n % len(counts)], 7)) for n in range(words)]
        for words in (5, 4, 6, 3)
    ]


def published_draw(x: Floats, y: Floats, a: Floats, b: Floats) -> tuple[float, float]:
    """One draw as in Guo and Caliskan's code, with plain loops."""

    def associate(w: Floats) -> float:
        return float(np.mean([cosine(w, v) for v in a]) - np.mean([cosine(w, v) for v in b]))

    delta = np.mean([associate(w) for w in x]) - np.mean([associate(w) for w in y])
    std = float(np.std([associate(w) for w in np.concatenate([x, y])], ddof=1))
    return float(delta) / std, std**2


def published_model(effects: Floats, variances: Floats) -> tuple[float, float, float, float]:
    """Their random-effects model: combined effect size, two-tailed p, error, tau squared."""
    weights = 1 / variances
    q = np.sum(weights * effects**2) - np.sum(weights * effects) ** 2 / np.sum(weights)
    df = len(effects) - 1
    c = np.sum(weights) - np.sum(weights**2) / np.sum(weights)
    tau = (q - df) / c if q > df else 0.0
    star = 1 / (variances + tau)
    combined = np.sum(star * effects) / np.sum(star)
    error = math.sqrt(1 / np.sum(star))
    return combined, math.erfc(abs(combined / error) / math.sqrt(2)), error, tau


@pytest.mark.parametrize("looked_up", [True, False])
def test_ceat_is_a_transcription_of_its_formulas(
    monkeypatch: pytest.MonkeyPatch, looked_up: bool
) -> None:
    if not looked_up:
        monkeypatch.setattr("kgbias.methods.associations.ceat._MAX_TABLE_COSINES", 0)
    x, y, a, b = tables = some_contexts()
    effects, variances = draw_effects(*tables, draws=300, seed=5)
    chosen = _choose_rows(np.random.default_rng((5, 0)), [*x, *y], 300)
    against = _choose_rows(np.random.default_rng((5, 1)), [*a, *b], 300)
    targets, attributes = np.concatenate([*x, *y]), np.concatenate([*a, *b])
    drawn = [
        published_draw(targets[t[:5]], targets[t[5:]], attributes[u[:6]], attributes[u[6:]])
        for t, u in zip(chosen, against, strict=True)
    ]
    assert effects == pytest.approx([d for d, _ in drawn], abs=1e-9)
    assert variances == pytest.approx([v for _, v in drawn], abs=1e-9)
    combined = fit_random_effects(effects, variances)
    value, p, error, tau = published_model(effects, variances)
    assert combined.value == pytest.approx(value, abs=1e-9)
    assert combined.error == pytest.approx(error, abs=1e-9)
    assert combined.tau_squared == pytest.approx(tau, abs=1e-9)
    assert combined.p_value == pytest.approx(p, abs=1e-9)


def test_every_context_is_drawn_evenly_and_chunks_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = [np.zeros((n, 2)) for n in (3, 1, 5)]
    rows = _choose_rows(np.random.default_rng(0), tables, 30_000)
    assert np.bincount(rows[:, 0], minlength=9)[:4] == pytest.approx([10_000] * 3 + [0], abs=300)
    assert set(rows[:, 1]) == {3} and set(rows[:, 2]) == {4, 5, 6, 7, 8}
    first = draw_effects(*some_contexts(), draws=200)
    monkeypatch.setattr("kgbias.methods.associations.ceat._CHUNK_DRAWS", 7)
    for one, other in zip(first, draw_effects(*some_contexts(), draws=200), strict=True):
        assert one == pytest.approx(other, abs=1e-12)


def test_random_effects_by_hand() -> None:
    # Q = 2 x 10 x 0.2^2 = 0.8 < 1: no variance between; SE = sqrt(1 / 20)
    calm = fit_random_effects(np.array([0.2, 0.6]), np.array([0.1, 0.1]))
    assert (calm.value, calm.tau_squared) == (pytest.approx(0.4), 0)
    assert (calm.cochran_q, calm.error) == pytest.approx((0.8, math.sqrt(1 / 20)))
    # Q = 2 x 10 x 0.5^2 = 5, c = 20 - 200 / 20 = 10, tau^2 = 0.4, v = 2 each; z = 1
    wild = fit_random_effects(np.array([0.0, 1.0]), np.array([0.1, 0.1]))
    assert (wild.value, wild.tau_squared, wild.error) == pytest.approx((0.5, 0.4, 0.5))
    assert wild.p_value == pytest.approx(0.31731051)
    assert fit_random_effects(
        np.array([0.0, 1.0]), np.array([0.1, 0.1]), "one"
    ).p_value == pytest.approx(0.31731051 / 2)
    assert cohen_variance(np.array([2.0]), 4, 4) == pytest.approx([8 / 16 + 4 / 16])


def test_expected_association_is_the_mean_over_all_choices() -> None:
    x, y, a, b = some_contexts(counts=(2, 3))
    s_x, _ = expected_associations(x, y, a, b)
    # s of one target word is linear in each attribute word, so all pairs of contexts suffice.
    by_hand = [
        np.mean([np.mean([[cosine(w, v) for v in t] for w in word]) for t in a])
        - np.mean([np.mean([[cosine(w, v) for v in t] for w in word]) for t in b])
        for word in x
    ]
    assert s_x == pytest.approx(by_hand, abs=1e-12)


def contexts(tables: list[list[Floats]]) -> dict[str, ContextVectors]:
    return {
        role: ContextVectors(tuple(f"{role}{n}" for n in range(len(rows))), tuple(rows))
        for role, rows in zip("xyab", tables, strict=True)
    }


def test_ceat_result() -> None:
    tables = some_contexts(3)
    result = ceat(TEST, contexts(tables), INFO, draws=500)
    effects, variances = draw_effects(*tables, draws=500)
    assert result.effect_size == fit_random_effects(effects, variances).value
    assert result.p_value.tails == "two" and result.p_value.method == "random-effects"
    assert (
        result.permutation_p_value is not None
        and result.permutation_p_value.partitions == math.comb(9, 5)
    )
    assert result.record()["p_permutation"] == result.test_p_value.value
    swapped = ceat(TEST, contexts([tables[1], tables[0], *tables[2:]]), INFO, draws=4000)
    assert swapped.effect_size == pytest.approx(-result.effect_size, abs=0.1)
    again = ceat(TEST, contexts(tables), INFO, Statistics(seed=1), draws=500)
    assert again.effect_size != result.effect_size and again.id != result.id
    with pytest.raises(DataError, match="knows none"):
        ceat(TEST, contexts(tables) | {"a": ContextVectors((), (), ("gone",))}, INFO)
    with pytest.raises(UsageError, match="2 draws"):
        ceat(TEST, contexts(tables), INFO, draws=1)


def test_published_p_of_ceat_rejects_true_nulls_and_the_permutation_does_not(
    simulation: Simulation,
) -> None:
    """Words are drawn from one distribution, so there is nothing to find."""
    published, permuted = [], []
    for rng in simulation.worlds(25):
        tables = [
            [rng.normal(size=(1, 10)) + rng.normal(size=(5, 10)) for _ in range(6)]
            for _ in range(4)
        ]
        result = ceat(TEST, contexts(tables), INFO, draws=400)
        assert result.permutation_p_value is not None
        published.append(result.p_value.value)
        permuted.append(result.permutation_p_value.value)
    tried = len(published)
    simulation.check("published", sum(p <= 0.05 for p in published), tried, 0.5, 1.0)
    simulation.check("permuted", sum(p <= 0.05 for p in permuted), tried, 0.0, 0.05)


def test_biases_by_hand() -> None:
    joint = np.log(np.array([[0.2, 0.1, 0.3], [0.1, 0.1, 0.2]]))
    prior = np.log(np.array([[0.1, 0.1, 0.1], [0.1, 0.2, 0.4]]))
    # X is the first two columns. Ratios: 2, 1 against 3; 1, 1/2 against 1/2.
    assert pool_biases(joint, prior, 2) == pytest.approx(
        [math.log(2) / 2 - math.log(3), math.log(0.5) / 2 - math.log(0.5)]
    )
    # Sums: 0.3 / 0.2 against 3; 0.2 / 0.3 against 1/2.
    assert pool_biases(joint, prior, 2, "sum") == pytest.approx(
        [math.log(1.5) - math.log(3), math.log(2 / 3) - math.log(0.5)]
    )
    rare = pool_biases(joint - 2000, prior - 2000, 2, "sum")  # probabilities far below any float
    assert rare == pytest.approx(pool_biases(joint, prior, 2, "sum"))


class StubPredictor:
    """A model for which Ann, Eve and Amy go with the attributes of A."""

    info = INFO
    kind = "masked"

    def is_token(self, word: str) -> bool:
        return len(word) == 3

    def predict(self, sentences: Sequence[FilledTemplate]) -> list[Prediction]:
        found = []
        for sentence in sentences:
            target = sentence.text[slice(*sentence.target)]
            attribute = sentence.text[slice(*sentence.attribute)]
            fits = (target in TEST.x.words) == (attribute in TEST.a.words)
            wobble = len(attribute) / 100 + ord(attribute[0]) / 1000
            tokens = (1, 2 if attribute == "idle" else 1)
            found.append(Prediction(-1.0 if fits else -2.0 - wobble, -1.5, tokens))
        return found


def test_lpbs_from_predictions(texts: Texts) -> None:
    result = lpbs(TEST, StubPredictor())
    record = result.record()
    # Bias of a in A: (-1 + 1.5) - (-2 - w + 1.5) = 1 + w; of b in B the negative.
    w = {v: len(v) / 100 + ord(v[0]) / 1000 for v in (*TEST.a.words, *TEST.b.words)}
    x = np.array([1 + w[v] for v in TEST.a.words])
    y = np.array([-1 - w[v] for v in TEST.b.words])
    assert result.effect_size == pytest.approx(effect_size(x, y))
    assert (record["p_value"], record["tails"]) == (1 / 10, "two")
    assert (record["multi_token_targets"], record["multi_token_attributes"]) == (0, 1)
    with pytest.raises(UsageError, match="no simplified"):
        lpbs(TEST, StubPredictor(), words="simplified")
    with texts.raises(DataError):
        lpbs(TEST, StubPredictor(), words="reduced")
