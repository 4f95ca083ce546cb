"""What several models believe about the same statements, side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from kgbias.evidence.names import MIN_NAMES
from kgbias.evidence.probe_tables import NameTable, build_name_tables
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BeliefRun, BelievedEdge, TripleView
from kgbias.probe.belief import BELIEVED, NameDesign, carrier_phrase_variance
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import Values, benjamini_hochberg, bootstrap_clusters

GroupStatement = tuple[str, str]  # the id of a group, and the words of a statement


class FloorCount(NamedTuple):
    """How many pairs of made-up names the test found, the mean over deals, of how many."""

    found: float
    tested: int


@dataclass(frozen=True)
class ModelBeliefs:
    """What one model believes about the groups of a category; `label` tells it from the others.

    `edges` are for groups of five names or more, by group and words, wherever a crawl cut these in
    two; `floor` is how many pairs the same test found for made-up names;
    `naming_ids` has the ids of the statements that name a group, `name_table` the lifts of each
    name.
    """

    label: str
    edges: Mapping[GroupStatement, BelievedEdge]
    group_names: Mapping[str, str]
    statement_texts: Mapping[str, str]
    floor: FloorCount
    naming_ids: frozenset[str] = frozenset()
    name_table: NameTable | None = None

    @classmethod
    def from_run(
        cls,
        label: str,
        run: StoredRun,
        belief_run: BeliefRun,
        edges: Sequence[BelievedEdge],
        category: str,
        triples: Sequence[TripleView] | None = None,
    ) -> "ModelBeliefs":
        """The side of a model; `triples` are the run's, if its names are to be compared too."""
        names = {g.id: g.name for g in run.record.groups if g.category == category}
        statements = {
            s.key: s for s in (Statement(*words) for words in run.statements(belief_run.id))
        }
        floor_parts = [
            part
            for part in belief_run.record.get("floor", [])
            if (part["category"], part["kind"]) == (category, "nonce")
        ]
        return cls(
            label,
            {
                (e.group_id, statements[e.predicate_id, e.object_id].words): e
                for e in edges
                if e.group_id in names and e.names >= MIN_NAMES
            },
            names,
            {s.words: s.text for s in statements.values()},
            FloorCount(
                sum(part["found"] for part in floor_parts),
                sum(part["tested"] for part in floor_parts),
            ),
            frozenset(
                id
                for line in belief_run.record.get("categories", [])
                if line["category"] == category
                for id in line["naming"]
            ),
            None if triples is None else build_name_tables(run, belief_run, triples).get(category),
        )

    @property
    def groups(self) -> set[str]:
        """The ids of the groups about which something can be said."""
        return {group for group, _ in self.edges}


class BelievedByOneCounts(NamedTuple):
    """How many pairs the test showed for one of two models alone."""

    first_alone: int
    second_alone: int


@dataclass(frozen=True, slots=True)
class ModelAgreement:
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
    believed_counts: tuple[int, int]
    both_believed: int
    same_sign: int
    correlation: Estimate
    rank_correlation: Estimate

    @property
    def believed_by_one(self) -> BelievedByOneCounts:
        """How many pairs the test showed for the first model and not for the second, and the other
        way round."""
        return BelievedByOneCounts(
            self.believed_counts[0] - self.both_believed,
            self.believed_counts[1] - self.both_believed,
        )

    @property
    def either_believed(self) -> int:
        return sum(self.believed_counts) - self.both_believed


def lift_estimate(edge: BelievedEdge) -> Estimate:
    """A lift with its interval over names."""
    return Estimate(edge.lift, edge.low, edge.high, edge.names)


@dataclass(frozen=True, slots=True)
class LiftDifference:
    """By how many bits the lifts of two models differ, over the names of a group, with its 95%
    interval; and the two-sided p-value, corrected over all pairs of a group and a statement
    (Benjamini and Hochberg 1995)."""

    difference: Estimate
    q_value: float


class PairText(NamedTuple):
    """A pair's group and statement as text."""

    group: str
    statement: str


@dataclass(frozen=True)
class BeliefComparison:
    """Models side by side on the pairs of group and statement that all were asked about, for the
    groups of a category."""

    models: Sequence[ModelBeliefs]

    sides: ClassVar[str] = "models"
    """What is compared, in words."""
    difference_note: ClassVar[str] = (
        "Difference: how many bits more the first model ties the statement to the group than the "
        "second, beyond what each name makes likelier anyway among the statements that both were "
        "asked about, with its interval over names; q by the test of lifts on the differences "
        "between the models, name by name, two-sided, corrected over all pairs of a group and a "
        "statement that both were asked about (Benjamini and Hochberg)."
    )
    """What `compare_lifts` tests, in words."""

    @classmethod
    def from_models(cls, sides: Sequence[ModelBeliefs]) -> "BeliefComparison | None":
        """The models side by side; None unless two or more were asked about the same groups and
        share a statement. A lift compares a group with the others, so with other groups it would
        mean something else."""
        comparison = cls(sides)
        same_groups = len({frozenset(side.groups) for side in sides}) == 1
        return comparison if len(sides) > 1 and same_groups and comparison.pairs else None

    @classmethod
    def from_run(
        cls,
        run: StoredRun,
        category: str,
        belief_runs: Sequence[BeliefRun] | None = None,
        triples: Sequence[TripleView] | None = None,
    ) -> "BeliefComparison | None":
        """The models that one run was probed with by names, each by its first asking. `belief_runs`
        are the run's askings, if already read; `triples` its statements, if names are to be
        compared too. None as for `from_models`."""
        by_model: dict[str, BeliefRun] = {}
        for belief_run in run.find_all(BeliefRun) if belief_runs is None else belief_runs:
            by_model.setdefault(belief_run.model.name, belief_run)
        titles = [belief_run.model.title for belief_run in by_model.values()]
        # Two models of one title are told apart by their whole names.
        labels = titles if len(set(titles)) == len(titles) else list(by_model)
        if len(labels) < 2:
            return None
        return cls.from_models(
            [
                ModelBeliefs.from_run(
                    label,
                    run,
                    model_run,
                    run.find_all(BelievedEdge, asking=model_run),
                    category,
                    triples,
                )
                for label, model_run in zip(labels, by_model.values(), strict=True)
            ]
        )

    @cached_property
    def pairs(self) -> list[GroupStatement]:
        """The pairs, in the first model's order."""
        first, *rest = self.models
        return [key for key in first.edges if all(key in side.edges for side in rest)]

    @cached_property
    def lifts(self) -> Values:
        """The lifts in bits, [models, pairs]."""
        return np.array([[side.edges[key].lift for key in self.pairs] for side in self.models])

    @cached_property
    def is_believed(self) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
        """Whether each model believes each pair, [models, pairs]."""
        return np.array(
            [[side.edges[key].verdict == BELIEVED for key in self.pairs] for side in self.models]
        )

    @cached_property
    def strongest_pairs(self) -> list[int]:
        """The places of the pairs that any model believes, the greatest mean lift first."""
        believed_places = np.flatnonzero(self.is_believed.any(axis=0)).tolist()
        means = self.lifts.mean(axis=0)
        return sorted(believed_places, key=lambda n: (-means[n], self.pairs[n]))

    def pair_text(self, key: GroupStatement) -> PairText:
        """A pair's group and statement as text."""
        group, words = key
        return PairText(self.models[0].group_names[group], self.models[0].statement_texts[words])

    def names_group(self, key: GroupStatement) -> bool:
        """Whether the pair's statement names a group of the category."""
        return self.models[0].edges[key].statement_id in self.models[0].naming_ids

    def iter_agreements(self) -> Iterator[ModelAgreement]:
        """Every pair of models."""
        predicates = [self.models[0].edges[key].predicate_id for key in self.pairs]
        for first, second in combinations(range(len(self.models)), 2):
            first_lifts, second_lifts = self.lifts[first], self.lifts[second]
            either_believed = self.is_believed[first] | self.is_believed[second]
            yield ModelAgreement(
                first,
                second,
                len(self.pairs),
                (int(self.is_believed[first].sum()), int(self.is_believed[second].sum())),
                int((self.is_believed[first] & self.is_believed[second]).sum()),
                int((first_lifts * second_lifts > 0)[either_believed].sum()),
                bootstrap_clusters(
                    predicates, partial(_weighted_pearson, first_lifts, second_lifts)
                ),
                bootstrap_clusters(
                    predicates, partial(_weighted_spearman, first_lifts, second_lifts)
                ),
            )

    def compare_lifts(
        self, first_model: int, second_model: int
    ) -> "Mapping[GroupStatement, LiftDifference]":
        """For each pair, how many bits more the first of two models ties the statement to the group
        than the second, paired by name: the test of lifts (`kgbias.probe.belief.NameDesign.test`)
        on the differences of their log2 probabilities. Empty unless both were asked by the same
        names after the same carriers."""
        first_table, second_table = (
            self.models[first_model].name_table,
            self.models[second_model].name_table,
        )
        if first_table is None or second_table is None:
            return {}
        if (first_table.groups, first_table.carriers) != (
            second_table.groups,
            second_table.carriers,
        ):
            return {}
        places = [
            {Statement(*words).words: n for n, words in enumerate(table.statements)}
            for table in (first_table, second_table)
        ]
        shared = [words for words in places[0] if words in places[1]]
        if len(shared) < 2:
            return {}
        first_bits, second_bits = (
            table.log_probs[:, :, [place[words] for words in shared]]
            for table, place in zip((first_table, second_table), places, strict=True)
        )
        design, differences = (
            NameDesign(first_table.group_indices, forms=first_table.forms),
            first_bits - second_bits,
        )
        if np.allclose(differences, differences.mean(axis=2, keepdims=True)):  # one model twice
            no_difference = LiftDifference(
                Estimate(0.0, 0.0, 0.0, len(first_table.group_indices)), 1.0
            )
            return dict.fromkeys(self.pairs, no_difference)
        result = design.test(
            differences.mean(axis=0),
            shared=carrier_phrase_variance(design, differences),
            margin=0.0,
        )
        # The test is one-sided: the other side is what is left of 1.
        two_sided = 2 * np.minimum(result.p_zeros, 1 - result.p_zeros)
        q_values = benjamini_hochberg(two_sided.ravel().tolist()).reshape(two_sided.shape)
        ids = {name: id for id, name in self.models[first_model].group_names.items()}
        return {
            (ids[group], words): LiftDifference(
                Estimate(
                    float(result.lift[g, s]),
                    float(result.low[g, s]),
                    float(result.high[g, s]),
                    len(names),
                ),
                float(q_values[g, s]),
            )
            for g, (group, names) in enumerate(first_table.groups)
            for s, words in enumerate(shared)
        }


def _weighted_pearson(x: Values, y: Values, weights: Values) -> Values:
    """Pearson's r of x and y [n] under weights [draws, n]; NaN if either does not vary."""
    share = weights / weights.sum(axis=1, keepdims=True)
    mean_x, mean_y = share @ x, share @ y
    products = share @ (x * y) - mean_x * mean_y
    norm = np.sqrt((share @ x**2 - mean_x**2) * (share @ y**2 - mean_y**2))
    correlations = np.full(len(norm), np.nan)
    np.divide(products, norm, where=norm > 1e-12, out=correlations)
    return correlations


def _weighted_spearman(x: Values, y: Values, weights: Values) -> Values:
    """Spearman's correlation of x and y [n] under weights [draws, n], each draw ranked anew."""
    places = [np.unique(values, return_inverse=True)[1] for values in (x, y)]
    correlations = np.empty(len(weights))
    for n, draw_weights in enumerate(weights):
        first_ranks, second_ranks = (_weighted_ranks(place, draw_weights) for place in places)
        correlations[n] = _weighted_pearson(first_ranks, second_ranks, draw_weights[None, :])[0]
    return correlations


def _weighted_ranks(place: "np.ndarray[Any, np.dtype[np.intp]]", weights: Values) -> Values:
    """The ranks of values that occur this often, from their places in order; those that are equal
    share their mean rank."""
    counts = np.bincount(place, weights)
    return np.asarray((np.cumsum(counts) - counts / 2)[place], dtype=np.float64)
