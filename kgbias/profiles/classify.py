"""Can groups be told apart by what was written about their names?

A support vector machine learns the groups from some of the profiles and is tested on the rest
(Siddique et al. 2024, section 6.1). The paper does not name its kernel: linear is the default here,
and the radial one reproduces the paper's figures for profiles without religion.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import MissingExtra
from kgbias.stats.estimate import Estimate

Places = NDArray[np.int64]
Split = tuple[Places, Places]  # of the profiles to learn from, and of those to test on
By = Literal["profile", "name"]

TESTED = 0.3  # the share of profiles that the classifier is tested on (section 6.1)


def splits(
    groups: Sequence[str], names: Sequence[str], count: int, *, by: By = "profile", seed: int = 0
) -> Iterator[Split]:
    """Random splits, 70 to 30, each with 30% of every group in the test part.

    By "profile", as in the paper, the profiles of one name may be on both sides, so what the model
    always writes about one name counts as if it were written about its group. By "name", all
    profiles of a name are on one side: 30% of each group's names, rounded, at least one and never
    all, are tested. A group with a single unit is only learnt from.
    """
    units = [(g, str(n)) for n, g in enumerate(groups)]
    if by == "name":
        units = list(zip(groups, names, strict=True))
    of_group: dict[str, list[str]] = {}
    for group, unit in dict.fromkeys(units):
        of_group.setdefault(group, []).append(unit)
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        tried: set[str] = set()
        chosen: set[tuple[str, str]] = set()
        for group, own in of_group.items():
            many = min(max(1, round(TESTED * len(own))), len(own) - 1)
            picked = [own[i] for i in rng.permutation(len(own))[:many]]
            chosen |= {(group, unit) for unit in picked}
            tried |= set(picked)
        # A name that two groups share is tested if either group's draw says so.
        tests = [u in chosen or (by == "name" and u[1] in tried) for u in units]
        mask = np.array(tests)
        yield np.flatnonzero(~mask), np.flatnonzero(mask)


Kernel = Literal["linear", "radial"]
KERNELS: tuple[Kernel, ...] = ("linear", "radial")
_COST = 1.0  # of an error while learning: scikit-learn's default for support vector machines


@dataclass(frozen=True, slots=True)
class Trials:
    """The accuracies of the same classifier on several random splits, [splits], the numbers of
    profiles learnt from and tested on, and how often each label was recognised on each split."""

    accuracies: NDArray[np.float64]
    learnt: int
    tried: int
    recalls: Mapping[str, Sequence[float]]

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean()) if len(self.accuracies) else math.nan

    def estimate(self) -> Estimate:
        """The mean accuracy with a 95% interval. Splits of one set of profiles overlap, and so
        agree more than new profiles would; the interval is widened to allow for that (Nadeau and
        Bengio 2003, Inference for the Generalization Error, section 3): t(J - 1) times the square
        root of (1/J + tried/learnt) times the variance over the J splits."""
        return _corrected(self.accuracies, self.learnt, self.tried)

    def spread(self) -> Estimate:
        """The range of accuracies that holds 95% of the splits: what one split, such as the
        paper's, could have given."""
        return _middle(self.accuracies)

    def recognised(self) -> dict[str, Estimate]:
        """The share of each label's profiles that are recognised, and the range of 95% of the
        splits."""
        return {label: _middle(shares) for label, shares in sorted(self.recalls.items())}

    def less(self, other: "Trials") -> Estimate:
        """How much higher the mean accuracy is than another's on the same splits, with the same
        kind of interval."""
        return _corrected(self.accuracies - other.accuracies, self.learnt, self.tried)


def trials(
    features: Any, labels: Sequence[str], chosen: Sequence[Split], kernel: Kernel = "linear"
) -> Trials:
    """The accuracy, on each split, of a support vector machine (one label against all others) that
    learns `labels` from a sparse matrix [profiles, values]."""
    names, classes = np.unique(np.asarray(labels), return_inverse=True)
    # A split by names tries nothing where each group has a single name.
    chosen = [(learnt, tried) for learnt, tried in chosen if len(learnt) and len(tried)]
    accuracies = []
    recalls: dict[str, list[float]] = {}
    machine = _machine(features, classes, kernel)
    for split in chosen:
        own = classes[split[1]]
        right = machine(split) == own
        accuracies.append(right.mean())
        for n in np.unique(own):
            recalls.setdefault(str(names[n]), []).append(float(right[own == n].mean()))
    if not chosen:
        return Trials(np.array([]), 0, 0, {})
    learnt, tried = (round(float(np.mean([len(s[n]) for s in chosen]))) for n in (0, 1))
    return Trials(np.array(accuracies), learnt, tried, recalls)


def chance(labels: Sequence[str], chosen: Sequence[Split]) -> float:
    """The mean accuracy of always naming the most common group in the learning part."""
    classes = np.unique(np.asarray(labels), return_inverse=True)[1]
    shares = [
        float(np.mean(classes[tried] == _commonest(classes[learnt]))) for learnt, tried in chosen
    ]
    return float(np.mean(shares)) if shares else math.nan


def permuted(
    features: Any,
    labels: Sequence[str],
    names: Sequence[str],
    chosen: Sequence[Split],
    *,
    permutations: int,
    seed: int = 0,
    kernel: Kernel = "linear",
    step: Any = lambda: None,
) -> tuple[Estimate, float]:
    """The accuracy when labels mean nothing, and the p-value of the accuracy that was found.

    The labels are permuted over the given names, all profiles of a name together: what the model
    always writes about one name is not evidence about a group. The permutations are tried on the
    first splits in turn; p = (1 + those at least as accurate as the mean over all splits) /
    (1 + permutations), one-sided. The interval holds 95% of the permutations.
    """
    places: dict[tuple[str, str], int] = {}
    unit = [places.setdefault(key, len(places)) for key in zip(names, labels, strict=True)]
    of_unit = np.array([label for _, label in places])
    rng = np.random.default_rng([seed, len(places)])
    observed = trials(features, labels, chosen, kernel).mean
    found = []
    for number in range(permutations):
        dealt = rng.permutation(of_unit)[unit]
        split = chosen[number % len(chosen)]
        found.append(trials(features, dealt.tolist(), [split], kernel).mean)
        step()
    if not found:
        return Estimate.missing(), math.nan
    p = (1 + sum(a >= observed - 1e-12 for a in found)) / (1 + permutations)
    return _middle(found), p


def _machine(
    features: Any, classes: NDArray[Any], kernel: Kernel
) -> Callable[[Split], NDArray[Any]]:
    """A function that learns from one side of a split and predicts the classes of the other."""
    predict = _linear(features, classes) if kernel == "linear" else _radial(features, classes)

    def machine(split: Split) -> NDArray[Any]:
        learnt, tried = split
        if len(np.unique(classes[learnt])) < 2:
            return np.full(len(tried), _commonest(classes[learnt]))
        return predict(split)

    return machine


def _linear(features: Any, classes: NDArray[Any]) -> Callable[[Split], NDArray[Any]]:
    try:
        from sklearn.svm import LinearSVC
    except ModuleNotFoundError as error:
        raise MissingExtra("scikit-learn", extra="profiles") from error

    def predict(split: Split) -> NDArray[Any]:
        learnt, tried = split
        machine = LinearSVC(loss="hinge", C=_COST, tol=1e-3, random_state=0)
        found: NDArray[Any] = machine.fit(features[learnt], classes[learnt]).predict(
            features[tried]
        )
        return found

    return predict


def _radial(features: Any, classes: NDArray[Any]) -> Callable[[Split], NDArray[Any]]:
    """exp(-g |x - y|^2) with g = 1 / (values times their variance), scikit-learn's own choice,
    between profiles in which each value counts 1, whatever the length of the profile."""
    try:
        from sklearn.metrics.pairwise import euclidean_distances
        from sklearn.svm import SVC
    except ModuleNotFoundError as error:
        raise MissingExtra("scikit-learn", extra="profiles") from error
    held = (features > 0).astype(np.float64)
    distances = euclidean_distances(held, squared=True)

    def predict(split: Split) -> NDArray[Any]:
        learnt, tried = split
        share = held[learnt].mean()  # values are 0 or 1
        near = np.exp(-distances / (held.shape[1] * share * (1 - share) or 1.0))
        between, beside = near[np.ix_(learnt, learnt)], near[np.ix_(tried, learnt)]
        labels = np.unique(classes[learnt])
        scores = [
            SVC(C=_COST, kernel="precomputed")
            .fit(between, classes[learnt] == label)
            .decision_function(beside)
            for label in labels
        ]
        found: NDArray[Any] = labels[np.argmax(scores, axis=0)]
        return found

    return predict


def _commonest(classes: NDArray[Any]) -> Any:
    values, counts = np.unique(classes, return_counts=True)
    return values[counts.argmax()]


def _middle(values: Sequence[float] | NDArray[np.float64]) -> Estimate:
    """The mean, and the range that holds 95% of the values; no range where all are equal."""
    low, high = np.quantile(values, [0.025, 0.975])
    mean = float(np.mean(values))
    if low == high:
        return Estimate.missing(len(values), mean)
    return Estimate(mean, float(low), float(high), len(values))


def _corrected(values: NDArray[np.float64], learnt: int, tried: int) -> Estimate:
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    if n < 2 or not learnt:
        return Estimate.missing(n, mean)
    from scipy.stats import t

    error = math.sqrt((1 / n + tried / learnt) * float(values.var(ddof=1)))
    half = float(t.ppf(0.975, n - 1)) * error
    return Estimate(mean, mean - half, mean + half, n)
