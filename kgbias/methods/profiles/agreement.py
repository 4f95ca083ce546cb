"""Does a model write what it finds probable, and say what it writes? (The paper's Table 7.)

What profiles say about groups is compared with another view of the same groups: APX, which says
after which group's names a descriptor is likeliest, or a crawl, which asked about the groups by
name. Only words that both know are compared.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kgbias.errors import UsageError
from kgbias.graph.profiles import Profile
from kgbias.graph.types import TripleView
from kgbias.io.columns import Column
from kgbias.io.rows import Rows
from kgbias.io.text import format_p_value
from kgbias.methods.profiles.words import WordShift
from kgbias.probe.apx import ApxTable, bias_scores, find_flags
from kgbias.probe.sets import format_people, readable_group
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import clustered_proportion

PERMUTATIONS = 999
_MIN_STEM_LETTERS = 5  # letters that two forms of a word share: "shinto", "Shintoist"
_ARTICLES = ("a ", "an ", "the ")


@dataclass(frozen=True, slots=True)
class SharedWord:
    """A word that both views know.

    Attributes:
        attribute, word: as in the profiles.
        known_as: as in the other view.
        written: the groups whose profiles it is typical of, the most typical first.
        other: the groups that the other view ties it to most: those flagged by APX, or the first.
        rank: in the other view, the rank of the group that it is most typical of; 1 is first, and
            ties share their mean.
    """

    attribute: str
    word: str
    known_as: str
    written: tuple[str, ...]
    other: tuple[str, ...]
    rank: float


@dataclass(frozen=True, slots=True)
class ProfileAgreement:
    """How far two views of the same groups agree: the mean reciprocal rank, over words, of the
    group that a word is most typical of, the value expected by chance, and the p-value of permuting
    the other view's groups (one-sided)."""

    source: str
    groups: int
    rows: tuple[SharedWord, ...]
    mrr: Estimate
    expected: float
    p_value: float

    def as_dict(self) -> dict[str, Any]:
        """The agreement as plain data for JSON."""
        return {
            "source": self.source,
            "groups": self.groups,
            "mrr": self.mrr.as_dict(),
            "expected": self.expected,
            "p_value": self.p_value,
            "rows": [asdict(row) for row in self.rows],
        }


def profile_agreement_rows(agreements: Sequence[ProfileAgreement]) -> Rows[ProfileAgreement]:
    """The comparisons, a row for each. `ProfileAgreement.rows` has the words."""
    columns = (
        Column("source"),
        Column("groups", "d"),
        Column("words", "d", get=lambda agreement: len(agreement.rows)),
        Column("mrr", ".3f", interval=True),
        Column("expected", ".3f"),
        Column("p_value", format_p_value),
    )
    return Rows(agreements, columns)


def compare_with_apx(
    words: Sequence[WordShift], table: ApxTable, *, source: str = "apx", seed: int = 0
) -> ProfileAgreement:
    """What profiles say, compared with what APX finds likely; a lower score is likelier."""
    labels_by_people = {readable_group(w.group).casefold(): w.group for w in words}
    label = {
        group: labels_by_people.get(readable_group(group).casefold(), group)
        for group in table.groups
    }
    labels = [label[group] for group in table.groups]
    scores = -bias_scores(table)
    view = {
        d: dict(zip(labels, map(float, scores[:, n]), strict=True))
        for n, d in enumerate(table.descriptors)
    }
    flagged_pairs = {(f.descriptor, label[f.group]) for f in find_flags(table)}
    return _compare_views(words, view, flagged_pairs, source, seed)


def compare_with_crawl(
    words: Sequence[WordShift],
    triples: Sequence[TripleView],
    labels: Mapping[str, str],
    *,
    source: str = "crawl",
    seed: int = 0,
) -> ProfileAgreement:
    """What profiles say, compared with what was said about the same groups in a crawl that named
    them; `labels` are those of groups of the crawl, by id. A group's score for a word is the share
    of its statements that have the word as their object."""
    object_counts: dict[str, Counter[str]] = {}
    for triple in triples:
        if triple.group_id in labels:
            object_counts.setdefault(labels[triple.group_id], Counter())[
                triple.object.casefold()
            ] += triple.count
    objects = sorted({o for counts in object_counts.values() for o in counts})
    view = {
        o: {label: counts[o] / counts.total() for label, counts in object_counts.items()}
        for o in objects
    }
    return _compare_views(words, view, set(), source, seed)


def find_group_labels(
    profiles: Sequence[Profile], groups: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The labels of those groups of a run, by id, that profiles were written for: a group matches
    if its name, or one of its other names, is the label or the group of the profiles."""
    labels_by_name = {p.labels["group"].casefold(): p.labels["group"] for p in profiles}
    labels_by_name |= {
        profile_people(p).casefold(): p.labels["group"] for p in profiles if profile_people(p)
    }
    labels_by_id = {p.group_id: p.labels["group"] for p in profiles}
    labels_of_groups = {}
    for group_id, names in groups.items():
        label = labels_by_id.get(group_id) or next(
            (labels_by_name[n.casefold()] for n in names if n.casefold() in labels_by_name), ""
        )
        if label:
            labels_of_groups[group_id] = label
    return labels_of_groups


def profile_people(profile: Profile) -> str:
    """The group of a profile as people: "Arab women"."""
    labels = profile.labels
    return format_people(labels.get("ethnicity", ""), labels.get("gender", ""))


def _compare_views(
    words: Sequence[WordShift],
    view: Mapping[str, Mapping[str, float]],
    flagged_pairs: Collection[tuple[str, str]],
    source: str,
    seed: int,
) -> ProfileAgreement:
    groups = sorted(
        {g for scores in view.values() for g in scores} & {word_shift.group for word_shift in words}
    )
    if len(groups) < 2:
        raise UsageError(f"{source} and the profiles share fewer than two groups to compare")
    typical: dict[tuple[str, str], list[WordShift]] = {}
    for word_shift in sorted(words, key=lambda word_shift: -word_shift.contribution):
        if word_shift.is_shown and word_shift.group in groups:
            typical.setdefault((word_shift.attribute, word_shift.word), []).append(word_shift)
    rows, scores, places = [], [], []
    for (attribute, word), typical_words in typical.items():
        known_word = next((d for d in view if _is_same_word(word, d)), None)
        if known_word is None or not any(view[known_word].get(g) for g in groups):
            continue
        values = np.array([view[known_word].get(g, 0.0) for g in groups])
        place = groups.index(typical_words[0].group)
        flagged = [g for g in groups if (known_word, g) in flagged_pairs]
        best_groups = flagged or [groups[int(i)] for i in np.argsort(-values, kind="stable")[:2]]
        rank = _rank_at(values, place)
        profile_groups = tuple(word_shift.group for word_shift in typical_words)
        rows.append(
            SharedWord(attribute, word, known_word, profile_groups, tuple(best_groups), rank)
        )
        scores.append(values)
        places.append(place)
    if not rows:
        raise UsageError(f"{source} and the profiles share no word that tells groups apart")
    reciprocal_ranks = np.array([1 / row.rank for row in rows])
    rng = np.random.default_rng(seed)
    null_means = []
    for _ in range(PERMUTATIONS):
        # One order for all words: which words go together in a group stays as it is.
        order = rng.permutation(len(groups))
        null_means.append(
            np.mean([1 / _rank_at(v[order], p) for v, p in zip(scores, places, strict=True)])
        )
    # The same mean summed in another order differs by rounding.
    reached = sum(d >= reciprocal_ranks.mean() - 1e-12 for d in null_means)
    return ProfileAgreement(
        source,
        len(groups),
        tuple(rows),
        clustered_proportion(range(len(rows)), reciprocal_ranks.tolist()),
        float(np.mean(null_means)),
        (1 + reached) / (1 + PERMUTATIONS),
    )


def _rank_at(values: Any, place: int) -> float:
    value = values[place]
    return float((values > value).sum() + ((values == value).sum() + 1) / 2)


def _is_same_word(word: str, other_word: str) -> bool:
    """Whether two words are forms of the same word: equal without an article, or one the beginning
    of the other ("shinto", "Shintoist")."""
    first, second = _strip_article(word), _strip_article(other_word)
    shorter, longer = sorted((first, second), key=len)
    return first == second or (
        len(shorter) >= _MIN_STEM_LETTERS and " " not in longer and longer.startswith(shorter)
    )


def _strip_article(text: str) -> str:
    text = " ".join(text.casefold().split())
    return next((text[len(a) :] for a in _ARTICLES if text.startswith(a)), text)
