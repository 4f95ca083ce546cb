"""Which statements of a run people are asked to label: a random sample with known probabilities.

The statements that count are cut into strata, by group and by the label that the run's scorer gave.
Each statement has a number drawn from its id alone, and a stratum is read in the order of these
numbers: so the first n of a stratum are a simple random sample of it, for every n; a sample goes on
where it ended; and what was labelled for one run serves another that says the same (permanent
random numbers: Ohlsson 1995). The first n of any part of a stratum, such as one arm, are a simple
random sample of that part.

Strata take turns. Each group gets as many turns as any other; half of a group's turns go to its
strata alike, half by how often their statements were said, so that a rare label is seen early.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from kgbias.graph.cross_mentions import exclude_cross_mentions
from kgbias.graph.selection import SelectedStatements, Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import TripleView
from kgbias.ids import content_id

Stratum = tuple[str, str]
"""The id of a group, and the scorer's label; "" for statements without a score."""
_SHARED_ONE_IN = 5  # one of so many statements is for two raters


@dataclass(frozen=True, slots=True)
class LabelSample:
    """The statements of a run in the order in which people are to label them.

    Attributes:
        id: follows from run, measure, selection and seed.
        order: the ids of all distinct statements; those before any place are a stratified sample.
        strata: the same ids by stratum, each in order.
    """

    id: str
    order: tuple[str, ...]
    strata: Mapping[Stratum, tuple[str, ...]]

    def is_shared(self, triple_id: str) -> bool:
        """Whether a statement is for two raters, so that their agreement can be measured: one in
        five, drawn apart from the order."""
        return _is_shared(triple_id)

    def find_reached(self, seen_ids: Collection[str], ending_ids: Collection[str]) -> set[str]:
        """The random sample that labels make: of each stratum the unbroken beginning that was
        `seen_ids` (labelled or skipped), up to the last statement that is also in `ending_ids`,
        those that were seen because they were drawn. What was seen after a gap, or picked, is left
        out."""
        reached_ids: set[str] = set()
        for ids in self.strata.values():
            beginning = list(takewhile(seen_ids.__contains__, ids))
            # What was picked by hand may happen to continue the beginning; it was not drawn.
            while beginning and beginning[-1] not in ending_ids:
                beginning.pop()
            reached_ids.update(beginning)
        return reached_ids


def draw_sample(
    run: StoredRun, measure: str, selection: Selection | None = None, seed: int = 0
) -> LabelSample:
    """The sample of the statements by which groups are compared; for acceptability, of those before
    any was left out for it."""
    selection = selection or Selection()
    return draw_selected_sample(
        run,
        measure,
        exclude_cross_mentions(run, select_statements(run, selection)),
        selection,
        seed,
    )


def draw_selected_sample(
    run: StoredRun, measure: str, selected: SelectedStatements, selection: Selection, seed: int = 0
) -> LabelSample:
    """The same, if the statements that count between groups (`exclude_cross_mentions`) were read
    already."""
    sampled_triples = (
        selected.including_unacceptable if measure == "acceptability" else selected.triples
    )
    selection_key = json.dumps(selection.as_dict(), sort_keys=True)
    sample_id = content_id("sample", run.id, measure, selection_key, str(seed))
    return LabelSample(sample_id, *order_statements(sampled_triples, measure, seed))


class OrderedStatements(NamedTuple):
    """The ids of the distinct statements in their order, and by stratum."""

    order: tuple[str, ...]
    strata: dict[Stratum, tuple[str, ...]]


def order_statements(
    triples: Sequence[TripleView], measure: str, seed: int = 0
) -> OrderedStatements:
    """The order in which a sample takes statements."""
    numbers_by_id = {triple.id: _random_number(str(seed), triple.id) for triple in triples}
    members: dict[Stratum, set[str]] = defaultdict(set)
    count_by_stratum: dict[Stratum, int] = defaultdict(int)
    for triple in triples:
        members[stratum_of(triple, measure)].add(triple.id)
        count_by_stratum[stratum_of(triple, measure)] += triple.count
    strata = {s: tuple(sorted(members[s], key=numbers_by_id.__getitem__)) for s in sorted(members)}
    turn_shares = stratum_turns(count_by_stratum)
    places = [
        # The n-th statement of a stratum with a share s of turns comes after n / s turns.
        ((n + numbers_by_id[id]) / turn_shares[stratum], id)
        for stratum, ids in strata.items()
        for n, id in enumerate(ids)
    ]
    return OrderedStatements(tuple(id for _, id in sorted(places)), strata)


def stratum_of(triple: TripleView, measure: str) -> Stratum:
    """The stratum of a statement."""
    return triple.group_id, triple.scores[measure].label if measure in triple.scores else ""


def stratum_turns(count_by_stratum: Mapping[Stratum, int]) -> dict[Stratum, float]:
    """How often the turn comes to each stratum, summing to 1 for each group."""
    counts_by_group: dict[str, list[int]] = defaultdict(list)
    for (group, _), count in count_by_stratum.items():
        counts_by_group[group].append(count)
    return {
        (group, label): count / sum(counts_by_group[group]) / 2
        + 1 / len(counts_by_group[group]) / 2
        for (group, label), count in count_by_stratum.items()
    }


@lru_cache(maxsize=100_000)  # asked of every labelled statement at each request
def _is_shared(triple_id: str) -> bool:
    return int(_random_number("shared", triple_id) * _SHARED_ONE_IN) == 0


def _random_number(purpose: str, triple_id: str) -> float:
    """A number in [0, 1) that follows from the key alone."""
    # 13 hex digits are 52 bits, which a float holds exactly
    return int(content_id("drawn", purpose, triple_id)[:13], 16) / 16**13
