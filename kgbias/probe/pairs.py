"""StereoSet (Nadeem et al. 2021) and CrowS-Pairs (Nangia et al. 2020), from the user's copy.

Both ask which of two sentences a model prefers, and both have been criticised for their sentences
(Blodgett et al. 2021): use them to compare with published figures. 50 means no preference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np

from kgbias.errors import DataError, UsageError
from kgbias.models.score.base import Array, Ids, TextScorer
from kgbias.probe.result import Figure, PairFigures, ScoredBy
from kgbias.progress import Progress, Silent
from kgbias.reading import read_json, read_table
from kgbias.statistics import Estimate, bootstrap, mean, proportion

CONVENTIONS = ("original", "bias-bench")
_LABELS = ("stereotype", "anti-stereotype", "unrelated")
_DECIMALS = 3  # the published codes round a masked model's scores: near ties become ties


@dataclass(frozen=True, slots=True)
class _Example:
    target: str
    domain: str
    context: str
    sentences: tuple[str, str, str]  # in the order of _LABELS


def crows_pairs(
    scorer: TextScorer,
    path: Path,
    convention: str = "original",
    *,
    progress: Progress | None = None,
) -> PairFigures:
    """The share of pairs whose more stereotypical sentence scores higher, in percent, with Wilson
    intervals; ties count as not preferred.

    - original: the summed pseudo-log-likelihood of the tokens that both sentences share. For a
      causal model, which the paper does not cover, their log-likelihood.
    - bias-bench (Meade et al. 2022): the mean log-probability of the tokens that differ for a
      masked model (pairs without any are left out), of all tokens for a causal one.
    """
    _known(convention)
    pairs = _read_pairs(path)
    masked = scorer.convention.kind == "masked"
    texts: list[Ids] = []
    places: list[Sequence[int]] = []
    domains = []
    for more, less, domain in pairs:
        first, second = scorer.tokens(more), scorer.tokens(less)
        if convention == "bias-bench" and not masked:
            spans: tuple[Sequence[int], Sequence[int]] = range(len(first)), range(len(second))
        else:
            spans = _spans(first, second, shared=convention == "original")
        if not spans[0] or not spans[1]:
            continue
        texts += [first, second]
        places += spans
        domains.append(domain)
    if not texts:
        raise DataError(f"{path} has no pair that can be scored")
    told = progress or Silent()
    told.stage("CrowS-Pairs", len(texts))
    pool: Callable[[Array], Any] = np.sum if convention == "original" else np.mean
    scores = np.array([pool(row) for row in scorer.token_scores(texts, places, told)])
    if masked:
        scores = scores.round(_DECIMALS)
    preferred = scores[0::2] > scores[1::2]
    figures = []
    for domain in ("overall", *dict.fromkeys(domains)):
        own = np.array([domain in ("overall", d) for d in domains])
        share = proportion(int(preferred[own].sum()), int(own.sum()))
        figures.append(Figure(domain, "metric score", _percent(share)))
    return PairFigures(ScoredBy.of(scorer), convention, tuple(figures))


def stereoset(
    scorer: TextScorer,
    path: Path,
    convention: str = "original",
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> PairFigures:
    """LMS, SS and ICAT of the intrasentence examples, in percent: means over target terms, with
    bootstrap intervals over terms (ICAT follows from the two). Both conventions score them the same
    way.

    A masked model fills the blank: the score is the mean probability of the word's tokens, each
    predicted from those before it, with none after it. For a causal model it is the geometric mean
    probability of the tokens of the whole sentence.
    """
    _known(convention)
    examples = _read_stereoset(path)
    told = progress or Silent()
    told.stage("StereoSet", len(examples) * len(_LABELS))
    texts = [sentence for example in examples for sentence in example.sentences]
    if scorer.convention.kind == "masked":
        scores = _filled(scorer, examples, told)
    else:
        found = scorer.score(texts, told)
        scores = np.exp(found.log_likelihoods / found.tokens)
    rows = scores.reshape(-1, len(_LABELS))
    figures: list[Figure] = []
    for domain in ("overall", *dict.fromkeys(example.domain for example in examples)):
        own = [n for n, e in enumerate(examples) if domain in ("overall", e.domain)]
        figures += _figures(domain, [examples[n].target for n in own], rows[own], seed)
    return PairFigures(ScoredBy.of(scorer), convention, tuple(figures))


def _figures(domain: str, targets: Sequence[str], scores: Array, seed: int) -> list[Figure]:
    stereotype, other, unrelated = scores.T
    prefers = (stereotype > other).astype(np.float64)
    related = ((stereotype > unrelated).astype(np.float64) + (other > unrelated)) / 2
    _, term = np.unique(targets, return_inverse=True)
    counts = np.bincount(term)
    ss, lms = (100 * np.bincount(term, values) / counts for values in (prefers, related))
    both = bootstrap(lms, mean, seed=seed), bootstrap(ss, mean, seed=seed)
    icat = both[0].value * min(both[1].value, 100 - both[1].value) / 50
    nan = float("nan")
    return [
        Figure(domain, "LMS", both[0]),
        Figure(domain, "SS", both[1]),
        Figure(domain, "ICAT", Estimate(icat, nan, nan, len(counts))),
    ]


def _filled(scorer: TextScorer, examples: Sequence[_Example], progress: Progress) -> Array:
    """The mean probability in the blank of each candidate's tokens."""
    texts: list[Ids] = []
    places: list[Sequence[int]] = []
    owner = []
    number = 0
    for example in examples:
        before, after = example.context.split("BLANK", 1)
        for sentence in example.sentences:
            word = sentence[len(before) : len(sentence) - len(after)]
            if not word.strip():
                raise DataError(f"no word stands in the blank of {example.context!r}")
            lead, whole = scorer.tokens(before), scorer.tokens(before + word)
            ids = whole[len(lead) :] if whole[: len(lead)] == lead else scorer.tokens(word)
            rest = scorer.tokens(after)
            for n in range(len(ids)):
                texts.append((*lead, *ids[: n + 1], *rest))
                places.append([len(lead) + n])
                owner.append(number)
            number += 1
    values = np.array([np.exp(row[0]) for row in scorer.token_scores(texts, places)])
    progress.advance(number)
    return np.asarray(np.bincount(owner, values) / np.bincount(owner), dtype=np.float64)


def _spans(first: Ids, second: Ids, shared: bool) -> tuple[list[int], list[int]]:
    """The positions of the tokens that two sentences share, or of those that differ."""
    found: tuple[list[int], list[int]] = ([], [])
    for tag, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if (tag == "equal") == shared:
            found[0].extend(range(a, b))
            found[1].extend(range(c, d))
    return found


def _read_pairs(path: Path) -> list[tuple[str, str, str]]:
    pairs = []
    for line, row in read_table(path, ("sent_more", "sent_less", "bias_type"))[1]:
        if not (row["sent_more"].strip() and row["sent_less"].strip()):
            raise DataError(f"{path}, line {line}: a sentence is missing")
        pairs.append((row["sent_more"], row["sent_less"], row["bias_type"]))
    return pairs


def _read_stereoset(path: Path) -> list[_Example]:
    data = read_json(path)
    examples: list[_Example] = []
    try:
        for entry in data["data"]["intrasentence"]:
            by_label = {s["gold_label"]: s["sentence"] for s in entry["sentences"]}
            sentences = tuple(by_label[label] for label in _LABELS)
            example = _Example(entry["target"], entry["bias_type"], entry["context"], sentences)
            texts = (example.target, example.domain, example.context, *sentences)
            if not all(isinstance(text, str) and text.strip() for text in texts):
                raise DataError(f"{path}: a field of example {len(examples) + 1} is not text")
            if "BLANK" not in example.context:
                raise DataError(f"{path}: no BLANK in {example.context!r}")
            examples.append(example)
    except (KeyError, TypeError) as error:
        raise DataError(f"{path} is not a StereoSet file: {error!r}") from error
    if not examples:
        raise DataError(f"{path} has no intrasentence examples")
    return examples


def _known(convention: str) -> None:
    if convention not in CONVENTIONS:
        raise UsageError(f"no convention {convention!r}; there is {', '.join(CONVENTIONS)}")


def _percent(e: Estimate) -> Estimate:
    return Estimate(100 * e.value, 100 * e.low, 100 * e.high, e.n)
