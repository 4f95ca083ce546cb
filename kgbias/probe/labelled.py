"""Whether APX finds the groups that people tie descriptors to (Siddique et al. 2024, section 4.4).

Ghavami and Peplau (2013) asked people which stereotypes they know of four ethnicities. The groups
of names that belong to one of them are put before the descriptors that were said of one alone, and
the ethnicity with the lowest score is held against the one that people named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgbias.errors import DataError
from kgbias.probe.apx import ApxTable, Array, GroupMeans, adjusted, bias_scores
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import bootstrap, mean, proportion


@dataclass(frozen=True, slots=True)
class Labelled:
    """How well scores recover the labelled group of each descriptor: `accuracy`, the share of
    descriptors whose label ranks first (Wilson interval), and `mrr`, the mean reciprocal rank
    (bootstrap over descriptors), 0 to 1, higher is better. `reciprocal` is that of each descriptor,
    so that two scores can be compared on the same descriptors."""

    accuracy: Estimate
    mrr: Estimate
    reciprocal: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Validation:
    """APX and plain perplexity on the labelled descriptors (the paper's Tables 3 and 4).

    `labels` are what a descriptor can be labelled: by chance the accuracy is 1 / k of k labels, the
    MRR the mean of 1 / 1 to 1 / k. `gain` is how much higher the MRR of APX is (paired bootstrap
    over descriptors).
    """

    labels: tuple[str, ...]
    apx: Labelled
    perplexity: Labelled
    gain: Estimate

    @property
    def by_chance(self) -> dict[str, float]:
        """The accuracy and MRR of scores that say nothing."""
        k = len(self.labels)
        return {"accuracy": 1 / k, "mrr": sum(1 / n for n in range(1, k + 1)) / k}

    def as_dict(self) -> dict[str, Any]:
        """The validation as JSON has it."""
        parts = {
            name: {"accuracy": found.accuracy.as_dict(), "mrr": found.mrr.as_dict()}
            for name, found in (("apx", self.apx), ("perplexity", self.perplexity))
        }
        more = {"labels": list(self.labels), **self.by_chance, "gain": self.gain.as_dict()}
        return {**parts, "validation": more}


def validate(
    means: GroupMeans,
    descriptor_labels: Sequence[str],
    group_labels: Mapping[str, str],
    *,
    as_published: bool = False,
    seed: int = 0,
) -> Validation | None:
    """How well APX, and perplexity without it, find the label of each labelled descriptor.

    Both are computed on the labelled part alone, as in the paper: groups whose label in
    `group_labels` some descriptor has (`descriptor_labels`, "" for none), and descriptors whose
    label some group has (GlobalBias labels nonsense words as "nonce", which no group is). A label's
    score is the mean over the names of its groups. None where fewer than two labels or two
    descriptors are left.
    """
    used = set(descriptor_labels) & set(group_labels.values()) - {""}
    columns = [n for n, label in enumerate(descriptor_labels) if label in used]
    rows = [n for n, group in enumerate(means.groups) if group_labels.get(group) in used]
    labels = tuple(dict.fromkeys(group_labels[means.groups[n]] for n in rows))
    if len(labels) < 2 or len(columns) < 2:
        return None
    values, names = means.values[:, rows][:, :, columns], means.names[rows]
    texts = tuple(means.descriptors[n] for n in columns)
    truth = dict(zip(texts, (descriptor_labels[n] for n in columns), strict=True))
    parts = np.array([[group_labels[means.groups[n]] == label for n in rows] for label in labels])
    weights = parts * names / (parts @ names)[:, None]

    def by(scores: Array) -> Labelled:
        merged = np.einsum("lg,tgd->tld", weights, scores)
        table = ApxTable(labels, texts, ("",) * len(texts), merged)
        return against_labels(bias_scores(table), labels, texts, truth, seed=seed)

    apx, plain = by(adjusted(values, names, as_published=as_published)), by(values)
    gains = np.array(apx.reciprocal) - np.array(plain.reciprocal)
    return Validation(labels, apx, plain, bootstrap(gains, mean, seed=seed))


def against_labels(
    scores: Array,
    groups: Sequence[str],
    descriptors: Sequence[str],
    labels: Mapping[str, str],
    *,
    seed: int = 0,
) -> Labelled:
    """Compare scores of shape [groups, descriptors], lower is more strongly tied, with each
    descriptor's label.

    Ties take the worse rank, so that a constant score earns nothing. Raises DataError for a label
    that is not a group, or where no descriptor is labelled.
    """
    places = {group: n for n, group in enumerate(groups)}
    ranks = []
    for column, descriptor in enumerate(descriptors):
        label = labels.get(descriptor)
        if label is None:
            continue
        if label not in places:
            raise DataError(f"{descriptor!r} is labelled {label!r}, which is not one of the groups")
        own = scores[places[label], column]
        ranks.append(int((scores[:, column] <= own).sum()))
    if not ranks:
        raise DataError("no descriptor has a label")
    found = np.array(ranks, dtype=np.float64)
    accuracy = proportion(int((found == 1).sum()), len(ranks))
    reciprocal = tuple((1 / found).tolist())
    return Labelled(accuracy, bootstrap(1 / found, mean, seed=seed), reciprocal)
