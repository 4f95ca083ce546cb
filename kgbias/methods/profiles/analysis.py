"""Can groups be told apart by their profiles, by which attributes, and by which words?

To the classifier, each value of each attribute is an entry of 1, as it was written: capitals count,
because writing "Catholic" for one group and "catholic" for another is a habit too. Every profile is
then scaled to length 1, so one with many values does not weigh more than one with few. The paper
(section 6.1) uses one-hot vectors for attributes with one value, as here, and for lists the shares
of their words; docs/methods/how-well.md says what was tried, and what gives the published
accuracies.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from kgbias.errors import MissingExtra, UsageError, no_such
from kgbias.graph.profiles import Profile, list_attributes, list_profile_labels
from kgbias.io.columns import Column
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.io.text import format_p_value
from kgbias.io.wording import pluralise
from kgbias.methods.profiles.classify import (
    KERNELS,
    Kernel,
    Split,
    Trials,
    chance_accuracy,
    permute_labels,
    random_splits,
    run_trials,
)
from kgbias.methods.profiles.words import DEFAULT_DRAWS, WordShift, word_shift_records, word_shifts
from kgbias.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class FeatureMatrices:
    """The entries of all profiles: for each attribute, a sparse matrix [profiles, values]."""

    by_attribute: Mapping[str, Any]

    def matrix(self, attributes: Sequence[str]) -> Any:
        """The profiles under these attributes together, each of length 1 (or 0, if it says nothing
        under any of them)."""
        from scipy.sparse import csr_matrix, diags, hstack

        joined_matrix = csr_matrix(hstack([self.by_attribute[a] for a in attributes]))
        lengths = np.sqrt(np.asarray(joined_matrix.multiply(joined_matrix).sum(axis=1)).ravel())
        return csr_matrix(diags(1 / np.where(lengths > 0, lengths, 1)) @ joined_matrix)


def encode_profiles(profiles: Sequence[Profile], attributes: Sequence[str]) -> FeatureMatrices:
    """The features of profiles under these attributes."""
    try:
        from sklearn.feature_extraction import DictVectorizer
    except ModuleNotFoundError as error:
        raise MissingExtra("scikit-learn", extra="profiles") from error
    matrices = {}
    for attribute in attributes:
        rows = [dict.fromkeys(p.values_of(attribute), 1.0) for p in profiles]
        matrices[attribute] = DictVectorizer().fit_transform(rows)
    return FeatureMatrices(matrices)


LABEL_KINDS = ("group", "ethnicity", "gender")
DEFAULT_SPLITS, DEFAULT_PERMUTATIONS = 20, 99
MAX_ALONE_SPLITS = 5  # splits on which single attributes are tried


@dataclass(frozen=True, slots=True)
class LabelClassification:
    """How well the profiles tell one kind of label (group, ethnicity or gender).

    Attributes:
        kind: the kind of label.
        accuracy: the mean over splits of the profiles, with its interval.
        spread: the range of 95% of the splits.
        classes: the number of labels.
        chance: the accuracy of always naming the most common label.
        permuted: the accuracy with labels permuted over names, and the range of 95% of the
            permutations.
        p_value: of the accuracy, one-sided; NaN without permutations.
        by_name: the mean over splits of the names, with its interval.
        without: the accuracy without each attribute.
        cost: how much lower that is than with all, on the same splits.
        alone: the accuracy with each attribute alone.
        groups: how often each label is recognised.
    """

    kind: str
    accuracy: Estimate
    spread: Estimate
    classes: int
    chance: float
    permuted: Estimate
    p_value: float
    by_name: Estimate
    without: Mapping[str, Estimate]
    cost: Mapping[str, Estimate]
    alone: Mapping[str, Estimate]
    groups: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, repr=False)
class ProfileAnalysis(Result):
    """What a run's profiles reveal about their groups. `as_dict` is its JSON; accuracies are shares
    in [0, 1], contributions are in bits."""

    profiles: int
    names: int
    attributes: tuple[str, ...]
    classifications: Mapping[str, LabelClassification]
    words: tuple[WordShift, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data for JSON: `accuracy` by kind of label, `without` by attribute
        and kind, `words`; and, by kind, their intervals and what to compare them with."""

        def of_kinds(name: str) -> dict[str, Any]:
            values_by_kind = {
                kind: getattr(classification, name)
                for kind, classification in self.classifications.items()
            }
            return {
                k: v.as_dict() if isinstance(v, Estimate) else v for k, v in values_by_kind.items()
            }

        def of_attributes(name: str) -> dict[str, dict[str, Estimate]]:
            by_kind: dict[str, Mapping[str, Estimate]] = {
                kind: getattr(classification, name)
                for kind, classification in self.classifications.items()
            }
            by_attribute = {}
            for attribute in self.attributes:
                # With a single attribute, none was left out or tried alone.
                if all(attribute in estimates for estimates in by_kind.values()):
                    by_attribute[attribute] = {
                        kind: estimates[attribute] for kind, estimates in by_kind.items()
                    }
            return by_attribute

        def values(name: str) -> dict[str, dict[str, float]]:
            estimates = of_attributes(name)
            return {
                a: {kind: estimate.value for kind, estimate in by_kind.items()}
                for a, by_kind in estimates.items()
            }

        def intervals(name: str) -> dict[str, dict[str, Any]]:
            estimates = of_attributes(name)
            return {
                a: {kind: estimate.as_dict() for kind, estimate in by_kind.items()}
                for a, by_kind in estimates.items()
            }

        return {
            "profiles": self.profiles,
            "names": self.names,
            "attributes": list(self.attributes),
            "accuracy": {kind: t.accuracy.value for kind, t in self.classifications.items()},
            "intervals": of_kinds("accuracy"),
            "splits": of_kinds("spread"),
            "classes": of_kinds("classes"),
            "chance": of_kinds("chance"),
            "permuted": of_kinds("permuted"),
            "p_value": of_kinds("p_value"),
            "by_name": of_kinds("by_name"),
            "without": values("without"),
            "cost": intervals("cost"),
            "alone": values("alone"),
            "recognised": {
                kind: {label: e.as_dict() for label, e in t.groups.items()}
                for kind, t in self.classifications.items()
            },
            "words": word_shift_records(self.words),
            "settings": dict(self.settings),
        }

    def as_rows(self) -> Rows[LabelClassification]:
        """How well each kind of label is told. Columns: kind, accuracy, low, high, classes, chance,
        p_value, by_name (accuracies are shares, in [0, 1])."""
        columns = (
            Column("kind"),
            Column("accuracy", ".3f", interval=True, ends=("low", "high")),
            Column("classes", "d"),
            Column("chance", ".3f"),
            Column("p_value", format_p_value),
            Column("by_name", ".3f", get=attrgetter("by_name.value")),
        )
        return Rows(self.classifications.values(), columns)

    def heading(self) -> str:
        return f"{pluralise(self.profiles, 'profile', spec=',')} of {self.names:,} names"


def analyse_profiles(
    profiles: Sequence[Profile],
    *,
    attributes: Sequence[str] = (),
    groups: Sequence[str] = (),
    repeats: int = DEFAULT_SPLITS,
    permutations: int = DEFAULT_PERMUTATIONS,
    draws: int = DEFAULT_DRAWS,
    kernel: Kernel = "linear",
    seed: int = 0,
    progress: Progress | None = None,
) -> ProfileAnalysis:
    """Whether groups can be told apart by their profiles, which carry their labels
    (`kgbias.methods.profiles.config`), and by which words.

    `attributes` are those to look at (none: all), `groups` the labels of the groups to tell apart
    (none: all). `kernel` is that of the support vector machine. The `repeats` random splits, the
    `permutations` of the labels and the `draws` of the bootstrap follow from `seed`.

    Raises UsageError for an attribute or group that is not there, or if there is nothing to tell
    apart.
    """
    reporter = progress or SilentProgress()
    _check_counts(repeats, permutations, draws)
    if kernel not in KERNELS:
        raise UsageError(no_such("kernel", kernel, KERNELS))
    profiles = _select_groups(profiles, groups)
    known_attributes = list_attributes(profiles)
    if unknown := [a for a in attributes if a not in known_attributes]:
        raise UsageError(no_such("attribute", unknown[0], known_attributes))
    attributes_chosen = tuple(attributes) or known_attributes
    features = encode_profiles(profiles, attributes_chosen)
    kinds = [k for k in LABEL_KINDS if len({*list_profile_labels(profiles, k)} - {""}) > 1]
    if not kinds or not attributes_chosen:
        raise UsageError(
            "there is nothing to tell apart: profiles of at least two groups of names are needed"
        )
    strata, names = list_profile_labels(profiles, "group"), [p.name for p in profiles]
    if len(set(strata)) == len(strata):
        raise UsageError(
            "every group has a single profile: at least one group needs two, one to learn from and "
            "one to be tried on"
        )
    trials_each = 2 if len(attributes_chosen) > 1 else 0
    reporter.stage(
        "tell apart", len(kinds) * (2 + trials_each * len(attributes_chosen) + permutations)
    )
    by_profile = list(random_splits(strata, names, repeats, seed=seed))
    by_name = list(random_splits(strata, names, repeats, split_by="name", seed=seed))
    classifications = {
        kind: _classify_labels(
            kind,
            list_profile_labels(profiles, kind),
            names,
            features,
            attributes_chosen,
            by_profile,
            by_name,
            permutations=permutations,
            kernel=kernel,
            seed=seed,
            step=reporter.advance,
        )
        for kind in kinds
    }
    words = word_shifts(
        profiles, strata, attributes_chosen, draws=draws, seed=seed, progress=reporter
    )
    return ProfileAnalysis(
        len(profiles),
        len({p.name for p in profiles}),
        attributes_chosen,
        classifications,
        tuple(words),
        {
            "splits": repeats,
            "permutations": permutations,
            "draws": draws,
            "kernel": kernel,
            "seed": seed,
        },
    )


def _classify_labels(
    kind: str,
    labels: Sequence[str],
    names: Sequence[str],
    features: FeatureMatrices,
    attributes: Sequence[str],
    by_profile: Sequence[Split],
    by_name: Sequence[Split],
    *,
    permutations: int,
    kernel: Kernel,
    seed: int,
    step: Callable[..., None],
) -> LabelClassification:
    """How well the labels of one kind can be told apart: by all attributes, without each one, and
    by each one alone; `step` is called after each set of trials."""
    full_matrix = features.matrix(attributes)
    full_trials = run_trials(full_matrix, labels, by_profile, kernel)
    step()
    name_trials = run_trials(full_matrix, labels, by_name, kernel)
    step()
    without: dict[str, Trials] = {}
    alone: dict[str, Trials] = {}
    for attribute in attributes if len(attributes) > 1 else ():
        matrix_without = features.matrix([a for a in attributes if a != attribute])
        without[attribute] = run_trials(matrix_without, labels, by_profile, kernel)
        matrix_alone = features.matrix([attribute])
        alone[attribute] = run_trials(matrix_alone, labels, by_profile[:MAX_ALONE_SPLITS], kernel)
        step(2)
    permuted_accuracy, p_value = permute_labels(
        full_matrix,
        labels,
        names,
        by_profile,
        permutations=permutations,
        seed=seed,
        kernel=kernel,
        step=step,
    )
    return LabelClassification(
        kind,
        full_trials.estimate(),
        full_trials.spread(),
        len(set(labels)),
        chance_accuracy(labels, by_profile),
        permuted_accuracy,
        p_value,
        name_trials.estimate(),
        {a: t.estimate() for a, t in without.items()},
        {a: full_trials.accuracy_gain(t) for a, t in without.items()},
        {a: t.estimate() for a, t in alone.items()},
        full_trials.recall_estimates(),
    )


def can_classify(profiles: Sequence[Profile]) -> bool:
    """Whether the profiles have labels of more than one group, and any content."""
    return bool(list_attributes(profiles)) and len(set(list_profile_labels(profiles, "group"))) > 1


def _check_counts(repeats: int, permutations: int, draws: int) -> None:
    if repeats < 1:
        raise UsageError("`repeats` must be at least 1")
    if permutations < 0 or draws < 0:
        raise UsageError("`permutations` and `draws` cannot be negative")


def _select_groups(profiles: Sequence[Profile], groups: Sequence[str]) -> list[Profile]:
    """The profiles of these groups, by label in any case; all if none is named."""
    labels_by_name = {label.casefold(): label for label in list_profile_labels(profiles, "group")}
    for name in groups:
        if name.casefold() not in labels_by_name:
            label_list = sorted(labels_by_name.values())
            raise UsageError(no_such("group", name, label_list, " among the profiles"))
    wanted_labels = {name.casefold() for name in groups} or set(labels_by_name)
    return [p for p in profiles if p.labels["group"].casefold() in wanted_labels]
