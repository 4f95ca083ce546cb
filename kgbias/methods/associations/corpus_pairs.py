"""LPBS beyond templates: on sentences of a corpus, and as CEAT's distribution over contexts.

"Mind Your Bias" (2022), section 3.4 and appendix B.5: sentences with a target and an attribute at
most 18 words apart, and effect sizes sampled by LPBS, combined as in CEAT.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from kgbias.errors import UsageError
from kgbias.methods.associations.ceat import (
    DEFAULT_CEAT_DRAWS,
    Variance,
    cohen_variance,
    combine_draws,
    variance_ddof,
)
from kgbias.methods.associations.contexts import MAX_CONTEXTS, iter_corpus_texts
from kgbias.methods.associations.effect import EQUALITY_TOLERANCE, Array, effect_sizes
from kgbias.methods.associations.lpbs import Predictor, WordChoice, choose_words, fill_frame
from kgbias.methods.associations.result import (
    Association,
    SetUsage,
    Statistics,
    build_association,
    check_words,
)
from kgbias.methods.associations.sets import ROLES, AssociationTest
from kgbias.models.base import ModelInfo
from kgbias.models.predict import FilledTemplate

MAX_WORDS_APART = 18
"""The largest number of words between the two stimuli of a sentence (appendix B.5)."""

AttributeTarget = tuple[str, str]  # an attribute and a target


@dataclass(frozen=True, slots=True)
class CorpusPairs:
    """Sentences of a corpus with a target and an attribute, and at most `apart` words between them:
    a text file with one text per line, or JSON lines with a "text" each.

    Words are matched as by `kgbias.methods.associations.contexts.CorpusContexts`. At most `most`
    sentences per pair are kept, a uniform sample drawn with `seed`; a text counts once for a pair.
    `window` keeps that many words on either side of the two; None keeps whole lines.
    """

    path: Path
    apart: int = MAX_WORDS_APART
    most: int = MAX_CONTEXTS
    window: int | None = None
    seed: int = 0

    def find(
        self, targets: Iterable[str], attributes: Iterable[str], forwards: bool = False
    ) -> dict[AttributeTarget, list[FilledTemplate]]:
        """The sentences for each attribute and target; with `forwards`, which a causal model needs,
        only those in which the target comes first."""
        if self.most < 1 or self.apart < 0 or (self.window is not None and self.window < 0):
            raise UsageError("`most` must be positive, `apart` and `window` at least 0")
        roles = {"t": _group_by_text(targets), "a": _group_by_text(attributes)}
        texts = {text for by_text in roles.values() for text in by_text}
        alternatives = "|".join(
            re.escape(text) for text in sorted(texts, key=lambda t: (-len(t), t))
        )
        # Words and samples as in `CorpusContexts.search`: not \b, and a reservoir for each pair.
        pattern = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)
        sentences_by_pair: dict[AttributeTarget, list[FilledTemplate]] = {}
        counts: dict[AttributeTarget, int] = {}
        streams: dict[AttributeTarget, random.Random] = {}
        for line in iter_corpus_texts(self.path):
            pairs = self._find_in_line(line, list(pattern.finditer(line)), roles, forwards)
            for key, sentence in pairs.items():
                attribute, target = key
                stream = streams.setdefault(key, random.Random(f"{self.seed}:{attribute}:{target}"))
                counts[key] = counts.get(key, 0) + 1
                rows = sentences_by_pair.setdefault(key, [])
                if len(rows) < self.most:
                    rows.append(sentence)
                    continue
                place = stream.randrange(counts[key])
                if place < self.most:
                    rows[place] = sentence
        return sentences_by_pair

    def _find_in_line(
        self,
        line: str,
        matches: Sequence[re.Match[str]],
        roles: Mapping[str, Mapping[str, Sequence[str]]],
        forwards: bool,
    ) -> dict[AttributeTarget, FilledTemplate]:
        """The first place in a line of each attribute and target that stand near enough."""
        sentences: dict[AttributeTarget, FilledTemplate] = {}
        for target_match, attribute_match in permutations(matches, 2):
            if forwards and attribute_match.start() < target_match.end():
                continue
            first, second = sorted((target_match, attribute_match), key=lambda m: m.start())
            if len(line[first.end() : second.start()].split()) > self.apart:
                continue
            for target in _matching_words(target_match, roles["t"]):
                for attribute in _matching_words(attribute_match, roles["a"]):
                    # A text counts once for a pair, however often it has both words.
                    if (attribute, target) not in sentences:
                        sentences[attribute, target] = _cut_window(
                            line, target_match.span(), attribute_match.span(), self.window
                        )
        return sentences

    def describe(self) -> dict[str, Any]:
        return {
            "contexts_from": f"corpus:{self.path.name}",
            "apart": self.apart,
            "most_contexts": self.most,
            "window": self.window,
        }


@dataclass(frozen=True, slots=True)
class LogRatios:
    """How much attributes raise targets: log ratios [contexts] by (attribute, target). By role,
    `words` are those that have ratios with both sides, `missing` the rest."""

    cells: Mapping[AttributeTarget, Array]
    words: Mapping[str, tuple[str, ...]]
    missing: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Any]

    @property
    def attributes(self) -> tuple[str, ...]:
        return (*self.words["a"], *self.words["b"])

    def list_ratios(self, attribute: str, side: str) -> list[Array]:
        """The ratios of an attribute with each target of a side."""
        rows = (self.cells.get((attribute, target)) for target in self.words[side])
        return [row for row in rows if row is not None]

    def expected_biases(self) -> Array:
        """The expected bias of each attribute, [attributes]: the mean over X minus that over Y."""
        biases = [self._mean_ratio(a, "x") - self._mean_ratio(a, "y") for a in self.attributes]
        return np.array(biases)

    def _mean_ratio(self, attribute: str, side: str) -> float:
        # The mean of means: a target with many contexts counts no more than another.
        return float(np.mean([row.mean() for row in self.list_ratios(attribute, side)]))


def measure_ratios(
    test: AssociationTest,
    model: Predictor,
    words: WordChoice = "full",
    corpus: CorpusPairs | None = None,
) -> LogRatios:
    """The log ratios of a test on a model, in the test's frames or in the sentences of a corpus.
    Raises DataError if a set is left without words."""
    frames, attributes, missing = choose_words(test, model, words)
    sides = {
        "x": tuple(dict.fromkeys(word for frame in frames for word in frame.x)),
        "y": tuple(dict.fromkeys(word for frame in frames for word in frame.y)),
    }
    sentences_by_pair: dict[AttributeTarget, list[FilledTemplate]] = {}
    settings: dict[str, Any] = {"words": words, "predicts": model.kind}
    all_attributes = (*attributes["a"], *attributes["b"])
    if corpus is not None:
        targets = (*sides["x"], *sides["y"])
        sentences_by_pair = corpus.find(targets, all_attributes, forwards=model.kind == "causal")
        settings |= corpus.describe()
    else:
        for frame in frames:
            for sentence in frame.sentences:
                for attribute in all_attributes:
                    for target in (*frame.x, *frame.y):
                        filled = fill_frame(sentence, target, attribute)
                        sentences_by_pair.setdefault((attribute, target), []).append(filled)
        settings["contexts_from"] = "templates"
    # Each sentence is predicted once, whichever pairs it stands for.
    all_sentences = list(
        dict.fromkeys(filled for row in sentences_by_pair.values() for filled in row)
    )
    ratio_by_sentence = {
        filled: p.log_joint - p.log_prior
        for filled, p in zip(all_sentences, model.predict(all_sentences), strict=True)
    }
    cells: dict[AttributeTarget, Array] = {}
    for key, row in sentences_by_pair.items():
        cells[key] = np.array([ratio_by_sentence[filled] for filled in row])
    # A bias is a difference between the sides: an attribute that occurs with one alone has none,
    # and a target counts if it occurs with an attribute that has one.
    with_x = {a for a, t in cells if t in sides["x"]}
    with_y = {a for a, t in cells if t in sides["y"]}
    with_both = with_x & with_y
    targets_met = {t for a, t in cells if a in with_both}
    all_words = sides | attributes
    used_words: dict[str, tuple[str, ...]] = {}
    words_missing: dict[str, tuple[str, ...]] = {}
    for role in ROLES:
        used = targets_met if role in ("x", "y") else with_both
        used_words[role] = tuple(word for word in all_words[role] if word in used)
        unused = (word for word in all_words[role] if word not in used)
        words_missing[role] = (*missing[role], *unused)
    sets = {role: SetUsage(used_words[role], words_missing[role]) for role in ROLES}
    check_words(test, sets, model.info)
    return LogRatios(cells, used_words, words_missing, settings)


def lpbs_in_corpus(
    test: AssociationTest,
    model: Predictor,
    corpus: CorpusPairs,
    statistics: Statistics | None = None,
    *,
    words: WordChoice = "full",
) -> Association:
    """LPBS on the sentences of a corpus. The bias of an attribute is the mean, over the targets of
    X that it occurs with, of their mean log ratio, minus that over Y; an attribute that occurs with
    only one side is left out. The permutation test exchanges attributes (two-tailed by default);
    see `kgbias.methods.associations.lpbs.lpbs` for what that assumes."""
    ratios = measure_ratios(test, model, words, corpus)
    bias, n_a = ratios.expected_biases(), len(ratios.words["a"])
    return build_association(
        test,
        "lpbs",
        model.info,
        bias[:n_a],
        bias[n_a:],
        _set_usage(ratios),
        statistics or Statistics(),
        tails="two",
        settings={**ratios.settings, "pool": "mean", "unit": "word"},
        details={"contexts": sum(map(len, ratios.cells.values()))},
    )


def ceat_lpbs(
    test: AssociationTest,
    ratios: LogRatios,
    model: ModelInfo,
    statistics: Statistics | None = None,
    *,
    draws: int = DEFAULT_CEAT_DRAWS,
    variance: Variance = "published",
) -> Association:
    """CEAT's distribution over LPBS: each of N draws picks one context for each attribute and
    target and computes the effect size of the attributes' biases; a random-effects model combines
    them. As for CEAT, `p` is that of the published formula and `permutation_p_value` the
    permutation p of the expected biases; the interval is the 2.5% to 97.5% range of the draws.
    """
    statistics = statistics or Statistics()
    if draws < 2:
        raise UsageError("CEAT needs at least 2 draws")
    n_a = len(ratios.words["a"])
    ddof = variance_ddof(statistics)
    biases = _draw_biases(ratios, draws, statistics.seed)
    effects = effect_sizes(biases[:, :n_a], biases[:, n_a:], "sample" if ddof else "population")
    # A draw without spread would have infinite weight.
    spreads = np.maximum(biases.var(axis=1, ddof=ddof), EQUALITY_TOLERANCE**2)
    if variance == "cohen":
        spreads = cohen_variance(effects, n_a, biases.shape[1] - n_a)
    bias = ratios.expected_biases()
    return combine_draws(
        test,
        "ceat-lpbs",
        model,
        effects,
        spreads,
        (bias[:n_a], bias[n_a:]),
        _set_usage(ratios),
        statistics,
        settings={"variance": variance, **ratios.settings},
        contexts=sum(map(len, ratios.cells.values())),
    )


def _draw_biases(ratios: LogRatios, draws: int, seed: int) -> Array:
    """Biases [draws, attributes] with one context per cell, drawn uniformly and independently."""
    rng = np.random.default_rng(seed)
    biases = np.empty((draws, len(ratios.attributes)))
    for column, attribute in enumerate(ratios.attributes):
        side_means = []
        for side in "xy":
            rows = ratios.list_ratios(attribute, side)
            drawn = [row[rng.integers(0, len(row), draws)] for row in rows]
            side_means.append(np.mean(drawn, axis=0))
        biases[:, column] = side_means[0] - side_means[1]
    return biases


def _set_usage(ratios: LogRatios) -> dict[str, SetUsage]:
    return {role: SetUsage(ratios.words[role], ratios.missing[role]) for role in ROLES}


def _group_by_text(words: Iterable[str]) -> dict[str, list[str]]:
    by_text: dict[str, list[str]] = {}
    for word in dict.fromkeys(words):
        by_text.setdefault(word.lower(), []).append(word)
    return by_text


def _matching_words(match: "re.Match[str]", by_text: Mapping[str, Sequence[str]]) -> list[str]:
    """The words that a match stands for: with a capital as written, others in any case."""
    return [w for w in by_text.get(match[0].lower(), []) if w == w.lower() or match[0] == w]


def _cut_window(
    line: str, target: tuple[int, int], attribute: tuple[int, int], window: int | None
) -> FilledTemplate:
    """The sentence with `window` words on either side of both."""
    start, end = min(target[0], attribute[0]), max(target[1], attribute[1])
    if window is None:
        return FilledTemplate(line, target, attribute)
    text_before = " ".join(line[:start].split(" ")[-window - 1 :]) if window else ""
    text_after = " ".join(line[end:].split(" ")[: window + 1]) if window else ""
    shift = start - len(text_before)
    return FilledTemplate(
        text_before + line[start:end] + text_after,
        (target[0] - shift, target[1] - shift),
        (attribute[0] - shift, attribute[1] - shift),
    )
