"""LPBS: association in a language model's predictions, without vectors.

Kurita et al. (2019), "Measuring bias in contextualized word representations": how much more likely
does a target word become when the attribute is in the sentence? As published for masked models; for
causal models, the same ratio read from left to right.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np

from kgbias.errors import UsageError
from kgbias.methods.associations.effect import Array
from kgbias.methods.associations.permutation import PValue, permutation_test
from kgbias.methods.associations.result import (
    Association,
    SetUsage,
    Statistics,
    build_association,
    check_words,
)
from kgbias.methods.associations.sets import ROLES, AssociationTest, SentenceFrames, fill_slot
from kgbias.models.base import ModelInfo
from kgbias.models.predict import FilledTemplate, Prediction

WordChoice = Literal["full", "reduced", "simplified", "nouns"]
Pooling = Literal["mean", "sum"]

_MIN_PARTITIONS = 20  # with fewer, exchanging targets cannot give p <= 0.05


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
    words: WordChoice = "full",
    pool: Pooling = "mean",
) -> Association:
    """The log-probability bias score.

    For an attribute word t in a sentence, log p(target | t) - log p(target | t masked) is how much
    the attribute raises the target; the bias of t is the value for X minus that for Y. d = (mean
    bias over A - mean over B) / std over A u B: positive ties X to A. The permutation test
    exchanges attributes (two-tailed by default).

    Exchanging attributes takes the targets as given: it finds whatever the model associates with
    *these* names. With enough targets, `permutation_p_value` is the p-value of exchanging targets
    between X and Y, as WEAT does, on each target's mean log ratio over A minus that over B.

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
    if words not in get_args(WordChoice) or pool not in ("mean", "sum"):
        raise UsageError(
            "LPBS takes words full, reduced, simplified or nouns, and pool mean or sum"
        )
    frames, attributes, missing = choose_words(test, model, words)
    used = {
        "x": tuple(dict.fromkeys(word for frame in frames for word in frame.x)),
        "y": tuple(dict.fromkeys(word for frame in frames for word in frame.y)),
        **attributes,
    }
    sets = {role: SetUsage(used[role], missing[role]) for role in ROLES}
    check_words(test, sets, model.info)
    plan = [(frame, sentence) for frame in frames for sentence in frame.sentences]
    all_attributes = (*attributes["a"], *attributes["b"])
    filled_sentences = [
        fill_frame(sentence, target, attribute)
        for frame, sentence in plan
        for attribute in all_attributes
        for target in (*frame.x, *frame.y)
    ]
    predictions = model.predict(filled_sentences)
    bias = _biases_by_sentence([frame for frame, _ in plan], len(all_attributes), predictions, pool)
    units = bias.mean(axis=0, keepdims=True) if statistics.unit == "word" else bias
    n_a = len(attributes["a"])
    result = build_association(
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
        details=_count_multi_token(filled_sentences, predictions),
    )
    # Frames with targets of their own have no common row of targets to exchange.
    if len(frames) > 1 or comb(len(used["x"]) + len(used["y"]), len(used["x"])) < _MIN_PARTITIONS:
        return result
    shape = (len(plan), len(all_attributes), len(used["x"]) + len(used["y"]))
    ratios = np.array([p.log_joint - p.log_prior for p in predictions]).reshape(shape).mean(axis=0)
    target_associations = ratios[:n_a].mean(axis=0) - ratios[n_a:].mean(axis=0)
    return replace(
        result, permutation_p_value=_test_targets(target_associations, len(used["x"]), statistics)
    )


def _biases_by_sentence(
    frames: Sequence[SentenceFrames],
    attributes: int,
    predictions: Sequence[Prediction],
    pool: Pooling,
) -> Array:
    """The biases [sentences, attributes] for sentences in these frames, from the predictions for
    each, ordered by attribute and then by target."""
    rows, start = [], 0
    for frame in frames:
        size = (attributes, len(frame.x) + len(frame.y))
        sentence_predictions = predictions[start : start + size[0] * size[1]]
        start += len(sentence_predictions)
        joint = np.array([p.log_joint for p in sentence_predictions]).reshape(size)
        prior = np.array([p.log_prior for p in sentence_predictions]).reshape(size)
        rows.append(pool_biases(joint, prior, len(frame.x), pool))
    return np.array(rows)


def _test_targets(target_associations: Array, n_x: int, statistics: Statistics) -> PValue:
    """The permutation p-value of the targets' associations [targets], those of X first."""
    return permutation_test(
        target_associations[:n_x],
        target_associations[n_x:],
        tails=statistics.tails or "two",
        how="auto" if statistics.how == "normal" else statistics.how,
        samples=statistics.samples,
        seed=statistics.seed,
    )


def pool_biases(joint: Array, prior: Array, n_x: int, pool: Pooling = "mean") -> Array:
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


class ChosenWords(NamedTuple):
    """The frames with their targets; the attributes, and the words left out, by role."""

    frames: list[SentenceFrames]
    attributes: dict[str, tuple[str, ...]]
    missing: dict[str, tuple[str, ...]]


def choose_words(test: AssociationTest, model: Predictor, words: WordChoice) -> ChosenWords:
    """The words of a test that LPBS takes."""
    if words in ("simplified", "nouns") and not test.simplified:
        raise UsageError(f"{test.name} has no simplified sets: words must be full or reduced")
    frames = (
        list(test.simplified)
        if words in ("simplified", "nouns")
        else [SentenceFrames(test.x.words, test.y.words, test.frames)]
    )
    attributes = {
        role: (words != "nouns" and test.sets[role].adjectives) or test.sets[role].words
        for role in "ab"
    }
    missing: dict[str, tuple[str, ...]] = dict.fromkeys(ROLES, ())
    if words == "reduced":
        (full,) = frames
        known_words: dict[str, tuple[str, ...]] = {}
        for role, role_words in {"x": full.x, "y": full.y, **attributes}.items():
            known_words[role] = tuple(word for word in role_words if model.is_token(word))
            missing[role] = tuple(word for word in role_words if word not in known_words[role])
        frames = [SentenceFrames(known_words["x"], known_words["y"], full.sentences)]
        attributes = {role: known_words[role] for role in "ab"}
    return ChosenWords(frames, attributes, missing)


def fill_frame(sentence: str, target: str, attribute: str) -> FilledTemplate:
    """The sentence with both words filled in, whichever comes first."""
    first_place, second_place = ("{t}", target), ("{a}", attribute)
    if sentence.index("{a}") < sentence.index("{t}"):
        first_place, second_place = second_place, first_place
    text, first_start = fill_slot(sentence, first_place[1], first_place[0])
    text, second_start = fill_slot(text, second_place[1], second_place[0])
    places = {
        first_place[0]: (first_start, first_start + len(first_place[1])),
        second_place[0]: (second_start, second_start + len(second_place[1])),
    }
    return FilledTemplate(text, places["{t}"], places["{a}"])


def _count_multi_token(
    filled: Sequence[FilledTemplate], predictions: Sequence[Prediction]
) -> dict[str, int]:
    """How many words are more than one token; each token is masked."""
    targets, attributes = set(), set()
    for sentence, prediction in zip(filled, predictions, strict=True):
        if prediction.tokens[0] > 1:
            targets.add(sentence.text[slice(*sentence.target)])
        if prediction.tokens[1] > 1:
            attributes.add(sentence.text[slice(*sentence.attribute)])
    return {"multi_token_targets": len(targets), "multi_token_attributes": len(attributes)}
