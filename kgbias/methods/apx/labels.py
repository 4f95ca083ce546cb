"""Whether APX finds the groups that people tie descriptors to.

Ghavami and Peplau (2013) asked people which stereotypes they know of four ethnicities. Names of
these ethnicities are put before the descriptors that people gave for one ethnicity only, and the
ethnicity with the lowest score is compared with the one that people named (Siddique et al. 2024,
section 4.4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgbias.errors import DataError
from kgbias.probe.apx import ApxTable, Array, GroupMeans, adjust_perplexities, bias_scores
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import bootstrap, clustered_proportion, mean, proportion


@dataclass(frozen=True, slots=True)
class LabelRecovery:
    """How well scores recover the labelled group of each descriptor: `accuracy`, the share of
    descriptors whose label ranks first (Wilson interval), and `mrr`, the mean reciprocal rank
    (bootstrap over descriptors), 0 to 1, higher is better. `reciprocal_ranks` has the reciprocal
    rank for each descriptor, for comparing two scores on the same descriptors."""

    accuracy: Estimate
    mrr: Estimate
    reciprocal_ranks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ApxValidation:
    """APX and plain perplexity on the labelled descriptors (the paper's Tables 3 and 4).

    `labels` are the labels that a descriptor can have: with k of them, chance accuracy is 1 / k and
    chance MRR the mean of 1 / 1 to 1 / k. `gain` is how much higher the MRR of APX is (paired
    bootstrap over descriptors).
    """

    labels: tuple[str, ...]
    apx: LabelRecovery
    perplexity: LabelRecovery
    gain: Estimate

    @property
    def chance_scores(self) -> dict[str, float]:
        """The accuracy and MRR of scores that say nothing."""
        k = len(self.labels)
        return {"accuracy": 1 / k, "mrr": sum(1 / n for n in range(1, k + 1)) / k}

    def as_dict(self) -> dict[str, Any]:
        """The validation as plain data for JSON."""
        recoveries = {
            name: {"accuracy": recovery.accuracy.as_dict(), "mrr": recovery.mrr.as_dict()}
            for name, recovery in (("apx", self.apx), ("perplexity", self.perplexity))
        }
        details = {"labels": list(self.labels), **self.chance_scores, "gain": self.gain.as_dict()}
        return {**recoveries, "validation": details}


def validate_apx(
    means: GroupMeans,
    descriptor_labels: Sequence[str],
    group_labels: Mapping[str, str],
    *,
    as_published: bool = False,
    seed: int = 0,
) -> ApxValidation | None:
    """How well APX, and perplexity without it, find the label of each labelled descriptor.

    Both are computed on the labelled part alone, as in the paper: groups whose label in
    `group_labels` is also a descriptor's (`descriptor_labels`, "" for none), and descriptors whose
    label is also a group's (GlobalBias labels nonsense words "nonce", which is no group's label).
    A label's score is the mean over the names of its groups. None if fewer than two labels or two
    descriptors are left.
    """
    shared_labels = set(descriptor_labels) & set(group_labels.values()) - {""}
    columns = [n for n, label in enumerate(descriptor_labels) if label in shared_labels]
    rows = [n for n, group in enumerate(means.groups) if group_labels.get(group) in shared_labels]
    labels = tuple(dict.fromkeys(group_labels[means.groups[n]] for n in rows))
    if len(labels) < 2 or len(columns) < 2:
        return None
    values = means.values[:, rows][:, :, columns]
    name_counts = means.name_counts[rows]
    texts = tuple(means.descriptors[n] for n in columns)
    truth = dict(zip(texts, (descriptor_labels[n] for n in columns), strict=True))
    has_label = np.array(
        [[group_labels[means.groups[n]] == label for n in rows] for label in labels]
    )
    weights = has_label * name_counts / (has_label @ name_counts)[:, None]

    def score_by(scores: Array) -> LabelRecovery:
        merged = np.einsum("lg,tgd->tld", weights, scores)
        table = ApxTable(labels, texts, ("",) * len(texts), merged)
        return compare_with_labels(bias_scores(table), labels, texts, truth)

    apx, plain_perplexity = (
        score_by(adjust_perplexities(values, name_counts, as_published=as_published)),
        score_by(values),
    )
    gains = np.array(apx.reciprocal_ranks) - np.array(plain_perplexity.reciprocal_ranks)
    return ApxValidation(labels, apx, plain_perplexity, bootstrap(gains, mean, seed=seed))


def compare_with_labels(
    scores: Array,
    groups: Sequence[str],
    descriptors: Sequence[str],
    labels: Mapping[str, str],
) -> LabelRecovery:
    """Compare scores of shape [groups, descriptors], lower is more strongly tied, with each
    descriptor's label.

    Ties take the worse rank, so a constant score earns nothing. Raises DataError for a label
    that is not a group, or if no descriptor is labelled.
    """
    places = {group: n for n, group in enumerate(groups)}
    ranks = []
    for column, descriptor in enumerate(descriptors):
        label = labels.get(descriptor)
        if label is None:
            continue
        if label not in places:
            raise DataError(f"{descriptor!r} is labelled {label!r}, which is not one of the groups")
        label_score = scores[places[label], column]
        ranks.append(int((scores[:, column] <= label_score).sum()))
    if not ranks:
        raise DataError("no descriptor has a label")
    rank_values = np.array(ranks, dtype=np.float64)
    accuracy = proportion(int((rank_values == 1).sum()), len(ranks))
    reciprocal = tuple((1 / rank_values).tolist())
    return LabelRecovery(accuracy, clustered_proportion(range(len(ranks)), reciprocal), reciprocal)
