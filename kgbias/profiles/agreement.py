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
from kgbias.probe.apx import ApxTable, bias_scores, find_flags
from kgbias.probe.sets import people_name, name_people
from kgbias.profiles.words import Word
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import bootstrap, mean

PERMUTATIONS = 999
_STEM = 5  # letters that two forms of a word share: "shinto", "Shintoist"
_ARTICLES = ("a ", "an ", "the ")


@dataclass(frozen=True, slots=True)
class Agreed:
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
class Agreement:
    """How far two views of the same groups agree: the mean reciprocal rank, over words, of the
    group that a word is most typical of, the value expected by chance, and the p-value of permuting
    the other view's groups (one-sided)."""

    source: str
    groups: int
    rows: tuple[Agreed, ...]
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


def with_apx(
    words: Sequence[Word], table: ApxTable, *, source: str = "apx", seed: int = 0
) -> Agreement:
    """What profiles say, compared with what APX finds likely; a lower score is likelier."""
    known = {name_people(w.group).casefold(): w.group for w in words}
    label = {group: known.get(name_people(group).casefold(), group) for group in table.groups}
    labels = [label[group] for group in table.groups]
    scores = -bias_scores(table)
    view = {
        d: dict(zip(labels, map(float, scores[:, n]), strict=True))
        for n, d in enumerate(table.descriptors)
    }
    marked = {(f.descriptor, label[f.group]) for f in find_flags(table)}
    return _agreement(words, view, marked, source, seed)


def with_crawl(
    words: Sequence[Word],
    triples: Sequence[TripleView],
    labels: Mapping[str, str],
    *,
    source: str = "crawl",
    seed: int = 0,
) -> Agreement:
    """What profiles say, compared with what was said about the same groups in a crawl that named
    them; `labels` are those of groups of the crawl, by id. A group's score for a word is the share
    of its statements that have the word as their object."""
    said: dict[str, Counter[str]] = {}
    for t in triples:
        if t.group_id in labels:
            said.setdefault(labels[t.group_id], Counter())[t.object.casefold()] += t.count
    objects = sorted({o for counts in said.values() for o in counts})
    view = {
        o: {label: counts[o] / counts.total() for label, counts in said.items()} for o in objects
    }
    return _agreement(words, view, set(), source, seed)


def group_labels(
    profiles: Sequence[Profile], groups: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The labels of those groups of a run, by id, that profiles were written for: a group matches
    if its name, or one of its other names, is the label or the group of the profiles."""
    known = {p.labels["group"].casefold(): p.labels["group"] for p in profiles}
    known |= {people(p).casefold(): p.labels["group"] for p in profiles if people(p)}
    own = {p.group_id: p.labels["group"] for p in profiles}
    found = {}
    for id, names in groups.items():
        label = own.get(id) or next(
            (known[n.casefold()] for n in names if n.casefold() in known), ""
        )
        if label:
            found[id] = label
    return found


def people(profile: Profile) -> str:
    """The group of a profile as people: "Arab women"."""
    labels = profile.labels
    return people_name(labels.get("ethnicity", ""), labels.get("gender", ""))


def _agreement(
    words: Sequence[Word],
    view: Mapping[str, Mapping[str, float]],
    marked: Collection[tuple[str, str]],
    source: str,
    seed: int,
) -> Agreement:
    groups = sorted({g for scores in view.values() for g in scores} & {w.group for w in words})
    if len(groups) < 2:
        raise UsageError(f"{source} and the profiles share fewer than two groups to compare")
    typical: dict[tuple[str, str], list[Word]] = {}
    for w in sorted(words, key=lambda w: -w.contribution):
        if w.told and w.group in groups:
            typical.setdefault((w.attribute, w.word), []).append(w)
    rows, scores, places = [], [], []
    for (attribute, word), own in typical.items():
        known = next((d for d in view if _same(word, d)), None)
        if known is None or not any(view[known].get(g) for g in groups):
            continue
        values = np.array([view[known].get(g, 0.0) for g in groups])
        place = groups.index(own[0].group)
        flagged = [g for g in groups if (known, g) in marked]
        best = flagged or [groups[int(i)] for i in np.argsort(-values, kind="stable")[:2]]
        rank = _rank(values, place)
        written = tuple(w.group for w in own)
        rows.append(Agreed(attribute, word, known, written, tuple(best), rank))
        scores.append(values)
        places.append(place)
    if not rows:
        raise UsageError(f"{source} and the profiles share no word that tells groups apart")
    found = np.array([1 / row.rank for row in rows])
    rng = np.random.default_rng(seed)
    dealt = []
    for _ in range(PERMUTATIONS):
        order = rng.permutation(len(groups))
        dealt.append(np.mean([1 / _rank(v[order], p) for v, p in zip(scores, places, strict=True)]))
    reached = sum(d >= found.mean() - 1e-12 for d in dealt)
    return Agreement(
        source,
        len(groups),
        tuple(rows),
        bootstrap(found, mean, seed=seed),
        float(np.mean(dealt)),
        (1 + reached) / (1 + PERMUTATIONS),
    )


def _rank(values: Any, place: int) -> float:
    own = values[place]
    return float((values > own).sum() + ((values == own).sum() + 1) / 2)


def _same(word: str, other: str) -> bool:
    """Whether two words are forms of the same word: equal without an article, or one the beginning
    of the other ("shinto", "Shintoist")."""
    a, b = _bare(word), _bare(other)
    shorter, longer = sorted((a, b), key=len)
    return a == b or (len(shorter) >= _STEM and " " not in longer and longer.startswith(shorter))


def _bare(word: str) -> str:
    word = " ".join(word.casefold().split())
    return next((word[len(a) :] for a in _ARTICLES if word.startswith(a)), word)
