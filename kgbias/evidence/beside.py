"""What several models believe about the same statements, side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np

from kgbias.evidence.names import FEWEST
from kgbias.evidence.tables import NameTable, name_tables
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BelievedEdge, BeliefRun, TripleView
from kgbias.probe.belief import BELIEVED, Design, carried
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import Values, benjamini_hochberg, bootstrap_clusters

Key = tuple[str, str]  # the id of a group, and the words of a statement


@dataclass(frozen=True)
class Side:
    """What one model believes about the groups of a category; `label` tells it from the others.

    `edges` are for groups of five names or more, by group and words, wherever a crawl cut these in
    two; `floor` is how many pairs the same test found for made-up names, and out of how many;
    `naming` has the ids of the statements that name a group, `table` the lifts of each name.
    """

    label: str
    edges: Mapping[Key, BelievedEdge]
    names: Mapping[str, str]
    texts: Mapping[str, str]
    floor: tuple[float, int]
    naming: frozenset[str] = frozenset()
    table: NameTable | None = None

    @classmethod
    def of(
        cls, label: str, run: StoredRun, believing: BeliefRun, edges: Sequence[BelievedEdge],
        category: str, triples: Sequence[TripleView] | None = None,
    ) -> "Side":  # fmt: skip
        """The side of a model; `triples` are the run's, if its names are to be compared too."""
        names = {g.id: g.name for g in run.record.groups if g.category == category}
        asked = {s.key: s for s in (Statement(*words) for words in run.statements(believing.id))}
        parts = [
            part
            for part in believing.record.get("floor", [])
            if (part["category"], part["kind"]) == (category, "nonce")
        ]
        return cls(
            label,
            {
                (e.group_id, asked[e.predicate_id, e.object_id].words): e
                for e in edges
                if e.group_id in names and e.names >= FEWEST
            },
            names,
            {s.words: s.text for s in asked.values()},
            (sum(part["found"] for part in parts), sum(part["tested"] for part in parts)),
            frozenset(
                id
                for line in believing.record.get("categories", [])
                if line["category"] == category
                for id in line["naming"]
            ),
            None if triples is None else name_tables(run, believing, triples).get(category),
        )

    @property
    def groups(self) -> set[str]:
        """The ids of the groups about which something can be said."""
        return {group for group, _ in self.edges}


@dataclass(frozen=True, slots=True)
class Both:
    """Two models, by their places, and the pairs of group and statement that both were asked about:
    how many each believes, and how many both; among those that either believes, how many have lifts
    of the same sign; and the correlations of the lifts (Pearson's r) and of their ranks
    (Spearman's).

    Their intervals are a bootstrap over statements with all their groups, in which statements with
    the same predicate are drawn together; the names are the same for both models, and taken as
    given.
    """

    first: int
    second: int
    pairs: int
    believed: tuple[int, int]
    both: int
    same_sign: int
    correlation: Estimate
    rank: Estimate

    @property
    def alone(self) -> tuple[int, int]:
        """How many pairs the test showed for the first model and not for the second, and the other
        way round."""
        return self.believed[0] - self.both, self.believed[1] - self.both

    @property
    def either(self) -> int:
        return sum(self.believed) - self.both


@dataclass(frozen=True, slots=True)
class Apart:
    """By how many bits the lifts of two models differ, over the names of a group, with its 95%
    interval; and the two-sided p-value, corrected over all pairs of a group and a statement
    (Benjamini and Hochberg 1995)."""

    difference: Estimate
    p: float


@dataclass(frozen=True)
class Beside:
    """Models side by side on the pairs of group and statement that all were asked about, for the
    groups of a category."""

    sides: Sequence[Side]

    @classmethod
    def of(cls, sides: Sequence[Side]) -> "Beside | None":
        """The models side by side; None unless two or more were asked about the same groups and
        share a statement. A lift compares a group with the others, so with other groups it would
        mean something else."""
        found = cls(sides)
        same = len({frozenset(side.groups) for side in sides}) == 1
        return found if len(sides) > 1 and same and found.keys else None

    @classmethod
    def of_run(
        cls, run: StoredRun, category: str, there: Sequence[BeliefRun] | None = None,
        triples: Sequence[TripleView] | None = None,
    ) -> "Beside | None":  # fmt: skip
        """The models that one run was probed with by names, each by its first asking. `there` are
        the run's askings, if already read; `triples` its statements, if names are to be compared
        too. None as for `of`."""
        first: dict[str, BeliefRun] = {}
        for believing in run.belief_runs() if there is None else there:
            first.setdefault(believing.model.name, believing)
        titles = [believing.model.title for believing in first.values()]
        labels = titles if len(set(titles)) == len(titles) else list(first)
        if len(labels) < 2:
            return None
        return cls.of(
            [
                Side.of(label, run, own, run.beliefs(own.id), category, triples)
                for label, own in zip(labels, first.values(), strict=True)
            ]
        )

    @cached_property
    def keys(self) -> list[Key]:
        """The pairs, in the first model's order."""
        first, *rest = self.sides
        return [key for key in first.edges if all(key in side.edges for side in rest)]

    @cached_property
    def lifts(self) -> Values:
        """The lifts in bits, [models, pairs]."""
        return np.array([[side.edges[key].lift for key in self.keys] for side in self.sides])

    @cached_property
    def believed(self) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
        """Whether each model believes each pair, [models, pairs]."""
        return np.array(
            [[side.edges[key].verdict == BELIEVED for key in self.keys] for side in self.sides]
        )

    @cached_property
    def strongest(self) -> list[int]:
        """The places of the pairs that any model believes, the greatest mean lift first."""
        held = np.flatnonzero(self.believed.any(axis=0)).tolist()
        means = self.lifts.mean(axis=0)
        return sorted(held, key=lambda n: (-means[n], self.keys[n]))

    def words(self, key: Key) -> tuple[str, str]:
        """A pair's group and statement as text."""
        group, words = key
        return self.sides[0].names[group], self.sides[0].texts[words]

    def names_group(self, key: Key) -> bool:
        """Whether the pair's statement names a group of the category."""
        return self.sides[0].edges[key].statement_id in self.sides[0].naming

    def two(self) -> Iterator[Both]:
        """Every pair of models."""
        predicates = [self.sides[0].edges[key].predicate_id for key in self.keys]
        for a, b in combinations(range(len(self.sides)), 2):
            x, y = self.lifts[a], self.lifts[b]
            held = self.believed[a] | self.believed[b]
            yield Both(
                a, b, len(self.keys),
                (int(self.believed[a].sum()), int(self.believed[b].sum())),
                int((self.believed[a] & self.believed[b]).sum()),
                int((x * y > 0)[held].sum()),
                bootstrap_clusters(predicates, partial(_correlations, x, y)),
                bootstrap_clusters(predicates, partial(_rank_correlations, x, y)),
            )  # fmt: skip

    def apart(self, a: int, b: int) -> "Mapping[Key, Apart]":
        """For each pair, how many bits more the first of two models ties the statement to the group
        than the second, paired by name: the test of lifts (`kgbias.probe.belief.Design.test`) on
        the differences of their log2 probabilities. Empty unless both were asked by the same names
        after the same carriers."""
        one, two = self.sides[a].table, self.sides[b].table
        if one is None or two is None:
            return {}
        if (one.groups, one.carriers) != (two.groups, two.carriers):
            return {}
        places = [
            {Statement(*words).words: n for n, words in enumerate(table.statements)}
            for table in (one, two)
        ]
        shared = [words for words in places[0] if words in places[1]]
        if len(shared) < 2:
            return {}
        first, second = (
            table.each[:, :, [place[words] for words in shared]]
            for table, place in zip((one, two), places, strict=True)
        )
        design, every = Design(one.places, forms=one.forms), first - second
        if np.allclose(every, every.mean(axis=2, keepdims=True)):  # one model twice
            none = Apart(Estimate(0.0, 0.0, 0.0, len(one.places)), 1.0)
            return dict.fromkeys(self.keys, none)
        found = design.test(every.mean(axis=0), shared=carried(design, every), margin=0.0)
        sided = 2 * np.minimum(found.p_zeros, 1 - found.p_zeros)
        corrected = benjamini_hochberg(sided.ravel().tolist()).reshape(sided.shape)
        ids = {name: id for id, name in self.sides[a].names.items()}
        return {
            (ids[group], words): Apart(
                Estimate(float(found.lift[g, s]), float(found.low[g, s]), float(found.high[g, s]),
                         len(names)),
                float(corrected[g, s]),
            )
            for g, (group, names) in enumerate(one.groups)
            for s, words in enumerate(shared)
        }  # fmt: skip


def _correlations(x: Values, y: Values, weights: Values) -> Values:
    """Pearson's r of x and y [n] under weights [draws, n]; NaN if either does not vary."""
    share = weights / weights.sum(axis=1, keepdims=True)
    mean_x, mean_y = share @ x, share @ y
    products = share @ (x * y) - mean_x * mean_y
    norm = np.sqrt((share @ x**2 - mean_x**2) * (share @ y**2 - mean_y**2))
    found = np.full(len(norm), np.nan)
    np.divide(products, norm, where=norm > 1e-12, out=found)
    return found


def _rank_correlations(x: Values, y: Values, weights: Values) -> Values:
    """Spearman's correlation of x and y [n] under weights [draws, n], each draw ranked anew."""
    places = [np.unique(values, return_inverse=True)[1] for values in (x, y)]
    found = np.empty(len(weights))
    for n, often in enumerate(weights):
        first, second = (_ranked(place, often) for place in places)
        found[n] = _correlations(first, second, often[None, :])[0]
    return found


def _ranked(place: "np.ndarray[Any, np.dtype[np.intp]]", often: Values) -> Values:
    """The ranks of values that occur this often, from their places in order; those that are equal
    share their mean rank."""
    counts = np.bincount(place, often)
    return np.asarray((np.cumsum(counts) - counts / 2)[place], dtype=np.float64)
