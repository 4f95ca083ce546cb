"""How good the readers are: held-out figures, baselines, and the counterfactual test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgbias.stats.estimate import Estimate
from training.scorers.data import REGARD, Example, Row

RESAMPLES = 2000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Predicted:
    """Examples, and the logits (rows, 3), in the order of REGARD, of readers that saw nothing of
    what the examples were held out with."""

    examples: Sequence[Example]
    logits: Floats


@dataclass(frozen=True, slots=True)
class Attacks:
    """Rows, and the results of readers that saw nothing of their crawl, function or attribute:
    probabilities with the group in place (`seen`) and replaced (`hidden`) and, for what models
    said, the acceptability (`sense`); NaN if there is none."""

    rows: Sequence[Row]
    seen: Floats
    hidden: Floats
    sense: Floats

    def of(self, *sources: str) -> "Attacks":
        """The rows from some sources."""
        kept = [n for n, row in enumerate(self.rows) if row.source in sources]
        said = (self.seen[kept], self.hidden[kept], self.sense[kept])
        return Attacks([self.rows[n] for n in kept], *said)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What was held out: our sentences (whole clusters), narrative sentences (whole forms),
    HateCheck (whole functions), crawled statements (whole crawls), and SeeGULL (whole
    attributes)."""

    sentences: Predicted
    narratives: Predicted
    hatecheck: Predicted
    crawled: Predicted
    seegull: Predicted


def bootstrap(statistic: Callable[[Ints], float], groups: Sequence[str]) -> Estimate:
    """The 95% percentile bootstrap interval of a statistic of rows, resampling whole groups of rows
    (one group name per row) with replacement; `n` counts the rows.

    Resamples with a NaN statistic (a class is missing) are left out. Seed 0.
    """
    keys = np.asarray(groups)
    rows = np.arange(len(keys))
    members = [rows[keys == key] for key in np.unique(keys)]
    rng = np.random.default_rng(0)
    values = []
    for _ in range(RESAMPLES):
        drawn = rng.integers(len(members), size=len(members))
        values.append(statistic(np.concatenate([members[i] for i in drawn])))
    low, high = np.nanquantile(values, [0.025, 0.975])
    return Estimate(statistic(rows), float(low), float(high), len(rows))


def shown(estimate: Estimate, form: str) -> str:
    """A figure with its interval: "0.82 [0.77, 0.88]" for the form ".2f"."""
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"


def accuracy(truth: Ints, predicted: Ints) -> float:
    """Share of rows predicted right, in [0, 1]."""
    return float(np.mean(truth == predicted))


def share(values: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
    """Share of the rows in `among` for which `values` holds, in [0, 1]; NaN if there are none."""
    return float(np.mean(values[among])) if among.any() else float("nan")


def macro_f1(truth: Ints, predicted: Ints) -> float:
    """Mean over the classes in `truth` of F1 = 2 TP / (2 TP + FP + FN), in [0, 1]."""
    scores = []
    for label in np.unique(truth):
        right = np.sum((truth == label) & (predicted == label))
        total = np.sum(truth == label) + np.sum(predicted == label)
        scores.append(2 * right / total)
    return float(np.mean(scores))


def auc(truth: Ints, score: Floats) -> float:
    """Probability that a positive row scores above a negative one, ties counted half.

    NaN if a class is missing. Equals the Mann-Whitney U over the product of the class sizes.
    """
    positive, negative = score[truth == 1], np.sort(score[truth == 0])
    if not len(positive) or not len(negative):
        return float("nan")
    below = np.searchsorted(negative, positive, side="left")
    not_above = np.searchsorted(negative, positive, side="right")
    return float(np.mean(below + not_above) / 2 / len(negative))


def macro_auc(truth: Ints, probabilities: Floats) -> float:
    """Mean over the classes of the one-against-rest AUC, of probabilities (rows, classes)."""
    return float(
        np.mean([auc((truth == k).astype(np.int64), probabilities[:, k]) for k in np.unique(truth)])
    )


def confusion(truth: Ints, predicted: Ints, classes: int) -> Ints:
    """Counts (classes, classes): rows the truth, columns the prediction."""
    table = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(table, (truth, predicted), 1)
    return table


def vader(texts: Sequence[str]) -> tuple[Floats, Floats]:
    """Baseline: VADER's compound sentiment as regard probabilities and as toxicity.

    Returns (rows, 3) probabilities whose largest follows VADER's own cuts at -0.05 and 0.05, and
    (rows,) toxicity (1 - compound) / 2, toxic above 0.525, which is the same cut.
    """
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyser = SentimentIntensityAnalyzer()
    compound = np.array([analyser.polarity_scores(text)["compound"] for text in texts])
    regard = np.zeros((len(texts), len(REGARD)))
    regard[:, 0] = np.maximum(-compound, 0)
    regard[:, 2] = np.maximum(compound, 0)
    regard[:, 1] = np.where(np.abs(compound) < 0.05, 1.0, 0.0)
    return regard, (1 - compound) / 2 - 0.025
