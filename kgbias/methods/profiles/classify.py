"""Can groups be told apart by what was written about their names?

A support vector machine learns the groups from some of the profiles and is tested on the rest
(Siddique et al. 2024, section 6.1). The paper does not name its kernel: linear is the default here,
and the radial one reproduces the paper's figures for profiles without religion.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import MissingExtra
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import share_interval, student_quantile

Places = NDArray[np.int64]


class Split(NamedTuple):
    """The places of the profiles to learn from, and of those to test on."""

    learn: Places
    test: Places


SplitUnit = Literal["profile", "name"]

TEST_SHARE = 0.3  # the share of profiles that the classifier is tested on (section 6.1)


def random_splits(
    groups: Sequence[str],
    names: Sequence[str],
    count: int,
    *,
    split_by: SplitUnit = "profile",
    seed: int = 0,
) -> Iterator[Split]:
    """Random splits, 70 to 30, each with 30% of every group in the test part.

    By "profile", as in the paper, the profiles of one name may be on both sides, so what the model
    always writes about one name counts as if it were written about its group. By "name", all
    profiles of a name are on one side: 30% of each group's names, rounded, at least one and never
    all, are tested. A group with a single unit is only learnt from.
    """
    units = [(g, str(n)) for n, g in enumerate(groups)]
    if split_by == "name":
        units = list(zip(groups, names, strict=True))
    of_group: dict[str, list[str]] = {}
    for group, unit in dict.fromkeys(units):
        of_group.setdefault(group, []).append(unit)
    for number in range(count):
        # A stream for each split: more splits do not change the first ones.
        rng = np.random.default_rng([seed, number])
        tested_names: set[str] = set()
        tested_units: set[tuple[str, str]] = set()
        for group, group_units in of_group.items():
            test_count = min(max(1, round(TEST_SHARE * len(group_units))), len(group_units) - 1)
            tested = [group_units[i] for i in rng.permutation(len(group_units))[:test_count]]
            tested_units |= {(group, unit) for unit in tested}
            tested_names |= set(tested)
        # A name that two groups share is tested if either group's draw says so.
        tests = [u in tested_units or (split_by == "name" and u[1] in tested_names) for u in units]
        mask = np.array(tests)
        yield Split(np.flatnonzero(~mask), np.flatnonzero(mask))


Kernel = Literal["linear", "radial"]
KERNELS: tuple[Kernel, ...] = ("linear", "radial")
_SVM_COST = 1.0  # of an error while learning: scikit-learn's default for support vector machines


@dataclass(frozen=True, slots=True)
class Trials:
    """The accuracies of the same classifier on several random splits, [splits], the numbers of
    profiles learnt from and tested on, and how often each label was recognised on each split."""

    accuracies: NDArray[np.float64]
    learn_count: int
    test_count: int
    recalls: Mapping[str, Sequence[float]]

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean()) if len(self.accuracies) else math.nan

    def estimate(self) -> Estimate:
        """The mean accuracy with a 95% interval. Splits of one set of profiles overlap, and so
        agree more than new profiles would; their variance allows for that (Nadeau and Bengio 2003,
        Inference for the Generalization Error, section 3): (1/J + tried/learnt) times that over the
        J splits. The interval is that of a share which varies so: Student's ends too near to 1, and
        holds an accuracy of .95 of forty names in .89 of cases. None where all splits agree."""
        n, mean = len(self.accuracies), self.mean
        variance = self._corrected_variance(self.accuracies)
        if not variance > 0:
            return Estimate.missing(n, mean)
        return Estimate(mean, *share_interval(mean, variance, self.test_count, n - 1), n)

    def spread(self) -> Estimate:
        """The range of accuracies that holds 95% of the splits: what one split, such as the
        paper's, could have given."""
        return _middle_range(self.accuracies)

    def recall_estimates(self) -> dict[str, Estimate]:
        """The share of each label's profiles that are recognised, and the range of 95% of the
        splits."""
        return {label: _middle_range(shares) for label, shares in sorted(self.recalls.items())}

    def accuracy_gain(self, other: "Trials") -> Estimate:
        """How much higher the mean accuracy is than another's on the same splits, with Student's
        interval of the same variance."""
        gains = self.accuracies - other.accuracies
        n, mean = len(gains), float(gains.mean()) if len(gains) else math.nan
        variance = self._corrected_variance(gains)
        if not variance > 0:
            return Estimate.missing(n, mean)
        half = student_quantile(0.975, n - 1) * math.sqrt(variance)
        return Estimate(mean, mean - half, mean + half, n)

    def _corrected_variance(self, values: NDArray[np.float64]) -> float:
        """The variance of a mean over the splits; NaN for fewer than two."""
        n = len(values)
        if n < 2 or not self.learn_count:
            return math.nan
        return (1 / n + self.test_count / self.learn_count) * float(values.var(ddof=1))


def run_trials(
    features: Any, labels: Sequence[str], used_splits: Sequence[Split], kernel: Kernel = "linear"
) -> Trials:
    """The accuracy, on each split, of a support vector machine (one label against all others) that
    learns `labels` from a sparse matrix [profiles, values]."""
    names, classes = np.unique(np.asarray(labels), return_inverse=True)
    # A split by names tries nothing where each group has a single name.
    used_splits = [split for split in used_splits if len(split.learn) and len(split.test)]
    accuracies = []
    recalls: dict[str, list[float]] = {}
    machine = _build_classifier(features, classes, kernel)
    for split in used_splits:
        true_classes = classes[split.test]
        is_right = machine(split) == true_classes
        accuracies.append(is_right.mean())
        for class_number in np.unique(true_classes):
            recalls.setdefault(str(names[class_number]), []).append(
                float(is_right[true_classes == class_number].mean())
            )
    if not used_splits:
        return Trials(np.array([]), 0, 0, {})
    learn_count = round(float(np.mean([len(split.learn) for split in used_splits])))
    test_count = round(float(np.mean([len(split.test) for split in used_splits])))
    return Trials(np.array(accuracies), learn_count, test_count, recalls)


def chance_accuracy(labels: Sequence[str], chosen: Sequence[Split]) -> float:
    """The mean accuracy of always naming the most common group in the learning part."""
    classes = np.unique(np.asarray(labels), return_inverse=True)[1]
    shares = [
        float(np.mean(classes[tried] == _commonest_class(classes[learnt])))
        for learnt, tried in chosen
    ]
    return float(np.mean(shares)) if shares else math.nan


class PermutedAccuracy(NamedTuple):
    """The accuracy when labels mean nothing, and the p-value of what was found."""

    accuracy: Estimate
    p_value: float


def permute_labels(
    features: Any,
    labels: Sequence[str],
    names: Sequence[str],
    used_splits: Sequence[Split],
    *,
    permutations: int,
    seed: int = 0,
    kernel: Kernel = "linear",
    step: Any = lambda: None,
) -> PermutedAccuracy:
    """The accuracy when labels mean nothing, and the p-value of the accuracy that was found.

    The labels are permuted over the given names, all profiles of a name together: what the model
    always writes about one name is not evidence about a group. The permutations are tried on the
    first splits in turn; p = (1 + those at least as accurate as the mean over all splits) /
    (1 + permutations), one-sided. The interval holds 95% of the permutations.
    """
    places: dict[tuple[str, str], int] = {}
    unit_places = [places.setdefault(key, len(places)) for key in zip(names, labels, strict=True)]
    of_unit = np.array([label for _, label in places])
    rng = np.random.default_rng([seed, len(places)])
    observed = run_trials(features, labels, used_splits, kernel).mean
    accuracies = []
    for number in range(permutations):
        permuted_labels = rng.permutation(of_unit)[unit_places]
        split = used_splits[number % len(used_splits)]
        accuracies.append(run_trials(features, permuted_labels.tolist(), [split], kernel).mean)
        step()
    if not accuracies:
        return PermutedAccuracy(Estimate.missing(), math.nan)
    p_value = (1 + sum(a >= observed - 1e-12 for a in accuracies)) / (1 + permutations)
    return PermutedAccuracy(_middle_range(accuracies), p_value)


def _build_classifier(
    features: Any, classes: NDArray[Any], kernel: Kernel
) -> Callable[[Split], NDArray[Any]]:
    """A function that learns from one side of a split and predicts the classes of the other."""
    predict = (
        _linear_classifier(features, classes)
        if kernel == "linear"
        else _radial_classifier(features, classes)
    )

    def classify(split: Split) -> NDArray[Any]:
        learnt, tried = split
        if len(np.unique(classes[learnt])) < 2:
            return np.full(len(tried), _commonest_class(classes[learnt]))
        return predict(split)

    return classify


def _linear_classifier(features: Any, classes: NDArray[Any]) -> Callable[[Split], NDArray[Any]]:
    try:
        from sklearn.svm import LinearSVC
    except ModuleNotFoundError as error:
        raise MissingExtra("scikit-learn", extra="profiles") from error

    def predict(split: Split) -> NDArray[Any]:
        learnt, tried = split
        machine = LinearSVC(loss="hinge", C=_SVM_COST, tol=1e-3, random_state=0)
        classes_found: NDArray[Any] = machine.fit(features[learnt], classes[learnt]).predict(
            features[tried]
        )
        return classes_found

    return predict


def _radial_classifier(features: Any, classes: NDArray[Any]) -> Callable[[Split], NDArray[Any]]:
    """exp(-g |x - y|^2) with g = 1 / (values times their variance), scikit-learn's own choice,
    between profiles in which each value counts 1, whatever the length of the profile."""
    try:
        from sklearn.metrics.pairwise import euclidean_distances
        from sklearn.svm import SVC
    except ModuleNotFoundError as error:
        raise MissingExtra("scikit-learn", extra="profiles") from error
    has_value = (features > 0).astype(np.float64)
    distances = euclidean_distances(has_value, squared=True)

    def predict(split: Split) -> NDArray[Any]:
        learnt, tried = split
        share = has_value[learnt].mean()  # values are 0 or 1
        similarity = np.exp(-distances / (has_value.shape[1] * share * (1 - share) or 1.0))
        learn_kernel, test_kernel = (
            similarity[np.ix_(learnt, learnt)],
            similarity[np.ix_(tried, learnt)],
        )
        labels = np.unique(classes[learnt])
        scores = [
            SVC(C=_SVM_COST, kernel="precomputed")
            .fit(learn_kernel, classes[learnt] == label)
            .decision_function(test_kernel)
            for label in labels
        ]
        classes_found: NDArray[Any] = labels[np.argmax(scores, axis=0)]
        return classes_found

    return predict


def _commonest_class(classes: NDArray[Any]) -> Any:
    values, counts = np.unique(classes, return_counts=True)
    return values[counts.argmax()]


def _middle_range(values: Sequence[float] | NDArray[np.float64]) -> Estimate:
    """The mean, and the range that holds 95% of the values; no range where all are equal."""
    low, high = np.quantile(values, [0.025, 0.975])
    mean = float(np.mean(values))
    if low == high:
        return Estimate.missing(len(values), mean)
    return Estimate(mean, float(low), float(high), len(values))
