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
from typing import Any

import numpy as np

from kgbias.errors import MissingExtra, UsageError, no_such
from kgbias.graph.profiles import Profile, list_attributes, labels_of
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.profiles.classify import (
    KERNELS,
    Kernel,
    Split,
    Trials,
    chance,
    permuted,
    splits,
    trials,
)
from kgbias.profiles.words import DRAWS, Word, as_records, shifts
from kgbias.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Features:
    """The entries of all profiles: for each attribute, a sparse matrix [profiles, values]."""

    of: Mapping[str, Any]

    def matrix(self, attributes: Sequence[str]) -> Any:
        """The profiles under these attributes together, each of length 1 (or 0, if it says nothing
        under any of them)."""
        from scipy.sparse import csr_matrix, diags, hstack

        whole = csr_matrix(hstack([self.of[a] for a in attributes]))
        lengths = np.sqrt(np.asarray(whole.multiply(whole).sum(axis=1)).ravel())
        return csr_matrix(diags(1 / np.where(lengths > 0, lengths, 1)) @ whole)


def encode(profiles: Sequence[Profile], attributes: Sequence[str]) -> Features:
    """The features of profiles under these attributes."""
    try:
        from sklearn.feature_extraction import DictVectorizer
    except ModuleNotFoundError as error:
        raise MissingExtra("scikit-learn", extra="profiles") from error
    found = {}
    for attribute in attributes:
        rows = [dict.fromkeys(p.values_of(attribute), 1.0) for p in profiles]
        found[attribute] = DictVectorizer().fit_transform(rows)
    return Features(found)


KINDS = ("group", "ethnicity", "gender")
SPLITS, PERMUTATIONS = 20, 99
FEW = 5  # splits on which single attributes are tried


@dataclass(frozen=True, slots=True)
class Told:
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
    told: Mapping[str, Told]
    words: tuple[Word, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data for JSON: `accuracy` by kind of label, `without` by attribute
        and kind, `words`; and, by kind, their intervals and what to compare them with."""

        def of_kinds(name: str) -> dict[str, Any]:
            found = {kind: getattr(t, name) for kind, t in self.told.items()}
            return {k: v.as_dict() if isinstance(v, Estimate) else v for k, v in found.items()}

        def of_attributes(name: str) -> dict[str, dict[str, Estimate]]:
            return {
                a: {kind: getattr(t, name)[a] for kind, t in self.told.items()}
                for a in self.attributes
                if all(a in getattr(t, name) for t in self.told.values())
            }

        def values(name: str) -> dict[str, dict[str, float]]:
            found = of_attributes(name)
            return {a: {kind: e.value for kind, e in own.items()} for a, own in found.items()}

        def intervals(name: str) -> dict[str, dict[str, Any]]:
            found = of_attributes(name)
            return {a: {kind: e.as_dict() for kind, e in own.items()} for a, own in found.items()}

        return {
            "profiles": self.profiles,
            "names": self.names,
            "attributes": list(self.attributes),
            "accuracy": {kind: t.accuracy.value for kind, t in self.told.items()},
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
                for kind, t in self.told.items()
            },
            "words": as_records(self.words),
            "settings": dict(self.settings),
        }

    def as_rows(self) -> Rows[Told]:
        """How well each kind of label is told. Columns: kind, accuracy, low, high, classes, chance,
        p_value, by_name (accuracies are shares, in [0, 1])."""
        columns = ("kind", "accuracy", "low", "high", "classes", "chance", "p_value", "by_name")

        def record(t: Told) -> dict[str, Any]:
            a = t.accuracy
            own = {"accuracy": a.value, "low": a.low, "high": a.high, "by_name": t.by_name.value}
            return own | {name: getattr(t, name) for name in columns if name not in own}

        return Rows(self.told.values(), record, columns)

    def heading(self) -> str:
        return f"{self.profiles:,} profiles of {self.names:,} names"


def analyse(
    profiles: Sequence[Profile],
    *,
    attributes: Sequence[str] = (),
    groups: Sequence[str] = (),
    repeats: int = SPLITS,
    permutations: int = PERMUTATIONS,
    draws: int = DRAWS,
    kernel: Kernel = "linear",
    seed: int = 0,
    progress: Progress | None = None,
) -> ProfileAnalysis:
    """Whether groups can be told apart by their profiles, which carry their labels
    (`kgbias.profiles.config`), and by which words.

    `attributes` are those to look at (none: all), `groups` the labels of the groups to tell apart
    (none: all). `kernel` is that of the support vector machine. The `repeats` random splits, the
    `permutations` of the labels and the `draws` of the bootstrap follow from `seed`.

    Raises UsageError for an attribute or group that is not there, or if there is nothing to tell
    apart.
    """
    told = progress or SilentProgress()
    _check(repeats, permutations, draws)
    if kernel not in KERNELS:
        raise UsageError(no_such("kernel", kernel, KERNELS))
    profiles = _of_groups(profiles, groups)
    there = list_attributes(profiles)
    if missing := [a for a in attributes if a not in there]:
        raise UsageError(no_such("attribute", missing[0], there))
    chosen = tuple(attributes) or there
    features = encode(profiles, chosen)
    kinds = [k for k in KINDS if len({*labels_of(profiles, k)} - {""}) > 1]
    if not kinds or not chosen:
        raise UsageError(
            "there is nothing to tell apart: profiles of at least two groups of names are needed"
        )
    strata, names = labels_of(profiles, "group"), [p.name for p in profiles]
    if len(set(strata)) == len(strata):
        raise UsageError(
            "every group has a single profile: at least one group needs two, one to learn from and "
            "one to be tried on"
        )
    more = 2 if len(chosen) > 1 else 0
    told.stage("tell apart", len(kinds) * (2 + more * len(chosen) + permutations))
    by_profile = list(splits(strata, names, repeats, seed=seed))
    by_name = list(splits(strata, names, repeats, by="name", seed=seed))
    found = {
        kind: _told(
            kind, labels_of(profiles, kind), names, features, chosen, by_profile, by_name,
            permutations=permutations, kernel=kernel, seed=seed, step=told.advance,
        )
        for kind in kinds
    }  # fmt: skip
    words = shifts(profiles, strata, chosen, draws=draws, seed=seed, progress=told)
    return ProfileAnalysis(
        len(profiles),
        len({p.name for p in profiles}),
        chosen,
        found,
        tuple(words),
        {
            "splits": repeats,
            "permutations": permutations,
            "draws": draws,
            "kernel": kernel,
            "seed": seed,
        },
    )


def _told(
    kind: str,
    labels: Sequence[str],
    names: Sequence[str],
    features: Features,
    chosen: Sequence[str],
    by_profile: Sequence[Split],
    by_name: Sequence[Split],
    *,
    permutations: int,
    kernel: Kernel,
    seed: int,
    step: Callable[..., None],
) -> Told:
    """How well the labels of one kind can be told apart: by all attributes, without each one, and
    by each one alone; `step` is called after each set of trials."""
    whole = features.matrix(chosen)
    full = trials(whole, labels, by_profile, kernel)
    step()
    across = trials(whole, labels, by_name, kernel)
    step()
    without: dict[str, Trials] = {}
    alone: dict[str, Trials] = {}
    for attribute in chosen if len(chosen) > 1 else ():
        rest = features.matrix([a for a in chosen if a != attribute])
        without[attribute] = trials(rest, labels, by_profile, kernel)
        only = features.matrix([attribute])
        alone[attribute] = trials(only, labels, by_profile[:FEW], kernel)
        step(2)
    dealt, p = permuted(
        whole, labels, names, by_profile, permutations=permutations, seed=seed, kernel=kernel,
        step=step,
    )  # fmt: skip
    return Told(
        kind,
        full.estimate(),
        full.spread(),
        len(set(labels)),
        chance(labels, by_profile),
        dealt,
        p,
        across.estimate(),
        {a: t.estimate() for a, t in without.items()},
        {a: full.less(t) for a, t in without.items()},
        {a: t.estimate() for a, t in alone.items()},
        full.recognised(),
    )


def can_be_told(profiles: Sequence[Profile]) -> bool:
    """Whether the profiles have labels of more than one group, and any content."""
    return bool(list_attributes(profiles)) and len(set(labels_of(profiles, "group"))) > 1


def _check(repeats: int, permutations: int, draws: int) -> None:
    if repeats < 1:
        raise UsageError("`repeats` must be at least 1")
    if permutations < 0 or draws < 0:
        raise UsageError("`permutations` and `draws` cannot be negative")


def _of_groups(profiles: Sequence[Profile], groups: Sequence[str]) -> list[Profile]:
    """The profiles of these groups, by label in any case; all if none is named."""
    there = {label.casefold(): label for label in labels_of(profiles, "group")}
    for name in groups:
        if name.casefold() not in there:
            listed = sorted(there.values())
            raise UsageError(no_such("group", name, listed, " among the profiles"))
    wanted = {name.casefold() for name in groups} or set(there)
    return [p for p in profiles if p.labels["group"].casefold() in wanted]
