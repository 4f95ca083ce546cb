"""The scorers at hand: how far each agrees with each set of labels, and whether it reacts to the
name of a group.

A scorer is read in two ways. One that is opened reads the texts of all sets of its measure, and is
tried on names (`kgbias.measure.counterfactual`). For labels of a store's statements, scores that
are in the store already are taken as they are, whoever gave them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kgbias.errors import DataError
from kgbias.graph.cross_mentions import is_swapped
from kgbias.graph.store import Store
from kgbias.graph.types import Metric, verbalise
from kgbias.io.progress import Progress
from kgbias.measure.counterfactual import (
    TRIAL_STATEMENTS,
    can_swap_names,
    is_tried_on_names,
    name_effects,
    reads_names,
)
from kgbias.measure.labelled_sets import LabelledSet, sets_of_labels
from kgbias.measure.precision import LabelAgreement, check_by_group
from kgbias.measure.scorers import OFFLINE_SPEC, Scorer
from kgbias.measures import MEASURES
from kgbias.stats.estimate import Estimate

_LICENSES = {"minilm-heads": "Apache-2.0"}
"""Of the scorers whose licence is known here: ours, encoder and heads."""


@dataclass(frozen=True, slots=True)
class NameEffect:
    """The largest effect of a group's name on a scorer's mean score, in units of the measure, 0 if
    it is blind to names; and the name, and the kind of statements, in which it is the largest."""

    effect: Estimate
    name: str
    kind: str
    is_blind: bool


@dataclass(frozen=True, slots=True)
class ScorerReliability:
    """A scorer at hand.

    Attributes:
        measure, scorer, version: which scorer.
        license: its licence, as an SPDX id; "" if it is not known here.
        named: whether it reacts to names; None if it was not tried.
        checked: its agreement with each set of its measure, over all statements and by group.
        why: why it could not be opened, or which sets it did not read; "" if neither.
    """

    measure: str
    scorer: str
    version: str
    license: str
    named: NameEffect | None
    checked: tuple[LabelAgreement, ...] = ()
    why: str = ""


def shipped_scorers() -> dict[str, list[str]]:
    """The scorers that ship with kgbias, as specs by measure: those of statements."""
    return {name: [OFFLINE_SPEC] for name, m in MEASURES.own_entries.items() if m.heads is not None}


def check_scorer(
    scorer: Scorer,
    spec: str,
    sets: Sequence[LabelledSet],
    names_by_category: Mapping[str, Sequence[str]],
) -> ScorerReliability:
    """Have a scorer read the sets of its measure, and try it on the names of each category. Scores
    made elsewhere are read against the sets that they cover; raises DataError if they cover none,
    though there are some."""
    agreements: list[LabelAgreement] = []
    missing_error: DataError | None = None
    foreign_remarks: dict[str, None] = {}
    scorer_language = getattr(scorer, "language", None)
    for labelled_set in sets:
        if labelled_set.measure == scorer.measure:
            if scorer_language not in (None, labelled_set.language):
                foreign_remarks[
                    f"it does not read {labelled_set.name}, which is in the language "
                    f"{labelled_set.language!r}"
                ] = None
                continue
            try:
                judgements = scorer.score([x.text for x in labelled_set.statements])
            except DataError as error:
                # Scores from a file cover some sets only: the others are passed over.
                if can_swap_names(spec):
                    raise
                missing_error = error
            else:
                agreements += check_by_group(scorer.name, labelled_set, judgements)
    if missing_error is not None and not agreements:
        raise missing_error
    name_effect = (
        _try_names(scorer, names_by_category)
        if count_trial_texts(scorer.measure, spec, names_by_category)
        else None
    )
    row = _make_reliability(scorer.measure, scorer.name, scorer.version, name_effect, agreements)
    return replace(row, why="; ".join(foreign_remarks))


def count_trial_texts(
    measure: str, spec: str, names_by_category: Mapping[str, Sequence[str]]
) -> int:
    """How many texts a scorer reads to be tried on names; 0 if it is not tried."""
    if not (is_tried_on_names(measure) and can_swap_names(spec)):
        return 0
    return sum(map(len, TRIAL_STATEMENTS.values())) * sum(map(len, names_by_category.values()))


def _try_names(scorer: Scorer, names_by_category: Mapping[str, Sequence[str]]) -> NameEffect | None:
    effects_by_name: dict[str, tuple[Estimate, str]] = {}
    for category_names in names_by_category.values():
        kind, by_name = name_effects(scorer, category_names)
        effects_by_name |= {name: (effect, kind) for name, effect in by_name.items()}
    if not effects_by_name:
        return None
    name = max(effects_by_name, key=lambda name: abs(effects_by_name[name][0].value))
    effect, kind = effects_by_name[name]
    return NameEffect(effect, name, kind, not reads_names(scorer.measure, [effect]))


class StoredScores(NamedTuple):
    """The labels of a store's statements, and what its scorers say of these."""

    sets: list[LabelledSet]
    agreements: dict[Metric, list[LabelAgreement]]


def read_stored_scores(store: Store, name: str, progress: Progress) -> StoredScores:
    """The labels of a store's statements as sets of this name, and what every scorer in the store
    says of these statements, as far as it scored them."""
    if not (labels := store.labels()):
        return StoredScores([], {})
    wanted_ids = {x.triple_id for x in labels}
    texts: dict[str, tuple[str, str]] = {}
    metrics: dict[Metric, None] = {}
    run_ids = [run.id for run in store.runs()]
    progress.stage("labels", len(run_ids))
    for run in run_ids:
        wanted_rows = (row for row in store.distinct_triples(run) if row[0] in wanted_ids)
        texts |= {id: (group, verbalise(group, p, o)) for id, group, p, o in wanted_rows}
        metrics |= {m: None for m in store.scorers(run) if not is_swapped(m)}
        progress.advance()
    sets = sets_of_labels(name, labels, texts)
    agreements_by_metric = {}
    for metric in metrics:
        measure_sets = [
            labelled_set for labelled_set in sets if labelled_set.measure == metric.measure
        ]
        scores = store.scores(metric, list(texts)) if measure_sets else {}
        agreements_by_metric[metric] = [
            row
            for labelled_set in measure_sets
            for row in check_by_group(
                metric.scorer, labelled_set, [scores.get(x.unit) for x in labelled_set.statements]
            )
        ]
    return StoredScores(sets, agreements_by_metric)


def merge_reliabilities(
    opened: Iterable[ScorerReliability], stored: Mapping[Metric, Sequence[LabelAgreement]]
) -> Iterator[ScorerReliability]:
    """Every scorer once, by measure and name: those that were opened, with what the store has of
    the same version, then the others of the store."""
    remaining = {(m.measure, m.scorer, m.version): list(rows) for m, rows in stored.items()}
    reliabilities = []
    for reliability in opened:
        stored_rows = remaining.pop(
            (reliability.measure, reliability.scorer, reliability.version), []
        )
        reliabilities.append(replace(reliability, checked=(*reliability.checked, *stored_rows)))
    reliabilities += [_make_reliability(*key, None, rows) for key, rows in remaining.items()]
    order = list(MEASURES.own_entries)
    yield from sorted(
        reliabilities,
        key=lambda x: (
            order.index(x.measure) if x.measure in order else len(order),
            x.measure,
            x.scorer,
            x.version,
        ),
    )


def _make_reliability(
    measure: str,
    scorer: str,
    version: str,
    name_effect: NameEffect | None,
    agreements: Sequence[LabelAgreement],
) -> ScorerReliability:
    license = _LICENSES.get(scorer, "")
    return ScorerReliability(measure, scorer, version, license, name_effect, tuple(agreements))
