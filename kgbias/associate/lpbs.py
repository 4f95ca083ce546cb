"""LPBS: association in a language model's predictions, without vectors.

Kurita et al. (2019), "Measuring bias in contextualized word representations": how much more likely
does a target word become when the attribute is in the sentence? As published for masked models; for
causal models, the same ratio read from left to right.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import Literal, Protocol, get_args

import numpy as np

from kgbias.associate.effect import Array
from kgbias.associate.permutation import PValue, permutation_test
from kgbias.associate.result import (
    Association,
    SetUse,
    Statistics,
    conclude,
    need_words,
)
from kgbias.associate.sets import ROLES, AssociationTest, Frames, fill
from kgbias.errors import UsageError
from kgbias.models.base import ModelInfo
from kgbias.models.predict import FilledTemplate, Prediction

Words = Literal["full", "reduced", "simplified", "nouns"]
Pool = Literal["mean", "sum"]

_PARTITIONS = 20  # with fewer, exchanging targets cannot give p <= 0.05


class Predictor(Protocol):
    """A language model that predicts words in sentences."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def kind(self) -> str:
        """ "masked" or "causal"."""
        ...

    def is_token(self, word: str) -> bool:
        """Whether the word is one token of the vocabulary."""
        ...

    def predict(self, sentences: Sequence[FilledTemplate]) -> list[Prediction]: ...


def lpbs(
    test: AssociationTest,
    model: Predictor,
    statistics: Statistics | None = None,
    *,
    words: Words = "full",
    pool: Pool = "mean",
) -> Association:
    """The log-probability bias score.

    For an attribute word t in a sentence, log p(target | t) - log p(target | t masked) is how much
    the attribute raises the target; the bias of t is the value for X minus that for Y. d = (mean
    bias over A - mean over B) / std over A u B: positive ties X to A. The permutation test
    exchanges attributes (two-tailed by default).

    Exchanging attributes takes the targets as given: it finds whatever the model associates with
    *these* names. With enough targets, `calibrated` is the p-value of exchanging targets between X
    and Y, as WEAT does, on each target's mean log ratio over A minus that over B.

    `pool` combines the targets of a set: "mean" averages their log ratios, giving each word the
    same weight; "sum" adds their probabilities before the logarithm (Kurita et al.'s code), which
    lets the most frequent word dominate. `words`: the "full" sets, "reduced" to words that are one
    token of the model's vocabulary, or the "simplified" targets of Kurita et al. If a set has
    adjective forms, these replace its nouns, except with "nouns": the simplified targets with the
    attributes as they are. All computation is in logarithms: rare words give
    small numbers, never NaN. Raises UsageError for a test without simplified sets, DataError if no
    word is left.
    """
    statistics = statistics or Statistics()
    if words not in get_args(Words) or pool not in ("mean", "sum"):
        raise UsageError(
            "LPBS takes words full, reduced, simplified or nouns, and pool mean or sum"
        )
    frames, attributes, missing = chosen(test, model, words)
    used = {
        "x": tuple(dict.fromkeys(word for frame in frames for word in frame.x)),
        "y": tuple(dict.fromkeys(word for frame in frames for word in frame.y)),
        **attributes,
    }
    sets = {role: SetUse(used[role], missing[role]) for role in ROLES}
    need_words(test, sets, model.info)
    plan = [(frame, sentence) for frame in frames for sentence in frame.sentences]
    everything = (*attributes["a"], *attributes["b"])
    filled = [
        fill_both(sentence, target, attribute)
        for frame, sentence in plan
        for attribute in everything
        for target in (*frame.x, *frame.y)
    ]
    predictions = model.predict(filled)
    bias = _by_sentence([frame for frame, _ in plan], len(everything), predictions, pool)
    units = bias.mean(axis=0, keepdims=True) if statistics.unit == "word" else bias
    n_a = len(attributes["a"])
    result = conclude(
        test,
        "lpbs",
        model.info,
        units[:, :n_a].ravel(),
        units[:, n_a:].ravel(),
        sets,
        statistics,
        tails="two",
        settings={
            "words": words,
            "pool": pool,
            "predicts": model.kind,
            "unit": statistics.unit,
            "frames": [sentence for _, sentence in plan],
        },
        details=_multi_token(filled, predictions),
    )
    if len(frames) > 1 or comb(len(used["x"]) + len(used["y"]), len(used["x"])) < _PARTITIONS:
        return result
    shape = (len(plan), len(everything), len(used["x"]) + len(used["y"]))
    ratios = np.array([p.log_joint - p.log_prior for p in predictions]).reshape(shape).mean(axis=0)
    s = ratios[:n_a].mean(axis=0) - ratios[n_a:].mean(axis=0)
    return replace(result, calibrated=_of_targets(s, len(used["x"]), statistics))


def _by_sentence(
    frames: Sequence[Frames], attributes: int, predictions: Sequence[Prediction], pool: Pool
) -> Array:
    """The biases [sentences, attributes] for sentences in these frames, from the predictions for
    each, ordered by attribute and then by target."""
    rows, start = [], 0
    for frame in frames:
        size = (attributes, len(frame.x) + len(frame.y))
        part = predictions[start : start + size[0] * size[1]]
        start += len(part)
        joint = np.array([p.log_joint for p in part]).reshape(size)
        prior = np.array([p.log_prior for p in part]).reshape(size)
        rows.append(biases(joint, prior, len(frame.x), pool))
    return np.array(rows)


def _of_targets(s: Array, n_x: int, statistics: Statistics) -> PValue:
    """The permutation p-value of the targets' associations [targets], those of X first."""
    return permutation_test(
        s[:n_x],
        s[n_x:],
        tails=statistics.tails or "two",
        how="auto" if statistics.how == "normal" else statistics.how,
        samples=statistics.samples,
        seed=statistics.seed,
    )


def biases(joint: Array, prior: Array, n_x: int, pool: Pool = "mean") -> Array:
    """The bias of each attribute, [attributes], from `joint` and `prior` [attributes, targets],
    whose first `n_x` columns are X: the pooled log ratio of X minus that of Y."""
    if pool == "mean":
        ratio = joint - prior
        return np.asarray(ratio[:, :n_x].mean(axis=1) - ratio[:, n_x:].mean(axis=1))

    def pooled(part: slice) -> Array:
        return np.asarray(
            np.logaddexp.reduce(joint[:, part], axis=1)
            - np.logaddexp.reduce(prior[:, part], axis=1)
        )

    return pooled(slice(None, n_x)) - pooled(slice(n_x, None))


def chosen(
    test: AssociationTest, model: Predictor, words: Words
) -> tuple[list[Frames], dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """The frames with their targets, then the attributes and the words left out, by role."""
    if words in ("simplified", "nouns") and not test.simplified:
        raise UsageError(f"{test.name} has no simplified sets: words must be full or reduced")
    frames = (
        list(test.simplified)
        if words in ("simplified", "nouns")
        else [Frames(test.x.words, test.y.words, test.frames)]
    )
    attributes = {
        role: (words != "nouns" and test.sets[role].adjectives) or test.sets[role].words
        for role in "ab"
    }
    missing: dict[str, tuple[str, ...]] = dict.fromkeys(ROLES, ())
    if words == "reduced":
        (full,) = frames
        kept = {
            role: tuple(word for word in sets if model.is_token(word))
            for role, sets in {"x": full.x, "y": full.y, **attributes}.items()
        }
        missing = {
            role: tuple(word for word in sets if word not in kept[role])
            for role, sets in {"x": full.x, "y": full.y, **attributes}.items()
        }
        frames = [Frames(kept["x"], kept["y"], full.sentences)]
        attributes = {role: kept[role] for role in "ab"}
    return frames, attributes, missing


def fill_both(sentence: str, target: str, attribute: str) -> FilledTemplate:
    """The sentence with both words filled in, whichever comes first."""
    first, second = ("{t}", target), ("{a}", attribute)
    if sentence.index("{a}") < sentence.index("{t}"):
        first, second = second, first
    text, one = fill(sentence, first[1], first[0])
    text, two = fill(text, second[1], second[0])
    places = {first[0]: (one, one + len(first[1])), second[0]: (two, two + len(second[1]))}
    return FilledTemplate(text, places["{t}"], places["{a}"])


def _multi_token(filled: Sequence[FilledTemplate], predictions: Sequence[Prediction]) -> dict[str, int]:
    """How many words are more than one token; each token is masked."""
    targets, attributes = set(), set()
    for sentence, prediction in zip(filled, predictions, strict=True):
        if prediction.tokens[0] > 1:
            targets.add(sentence.text[slice(*sentence.target)])
        if prediction.tokens[1] > 1:
            attributes.add(sentence.text[slice(*sentence.attribute)])
    return {"multi_token_targets": len(targets), "multi_token_attributes": len(attributes)}
