"""The scorers at hand: how far each agrees with each set of labels, and whether it reacts to the
name of a group.

A scorer is read in two ways. One that is opened reads the texts of all sets of its measure, and is
tried on names (`kgbias.measure.swapped`). For labels of a store's statements, scores that are in
the store already are taken as they are, whoever gave them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kgbias.errors import DataError
from kgbias.graph.cross_mentions import is_swapped
from kgbias.graph.store import Store
from kgbias.graph.types import Metric, verbalise
from kgbias.io.progress import Progress
from kgbias.measure.labelled import LabelledSet, labels_kept
from kgbias.measure.precision import Checked, checks
from kgbias.measure.scorers import OWN, Scorer
from kgbias.measure.swapped import TRIED, effects, reads_names, swappable, tried
from kgbias.measures import MEASURES
from kgbias.stats.estimate import Estimate

_LICENSES = {"minilm-heads": "Apache-2.0"}
"""Of the scorers whose licence is known here: ours, encoder and heads."""


@dataclass(frozen=True, slots=True)
class Named:
    """The largest effect of a group's name on a scorer's mean score, in units of the measure, 0 if
    it is blind to names; and the name, and the kind of statements, in which it is the largest."""

    effect: Estimate
    name: str
    kind: str
    blind: bool


@dataclass(frozen=True, slots=True)
class AtHand:
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
    named: Named | None
    checked: tuple[Checked, ...] = ()
    why: str = ""


def own_scorers() -> dict[str, list[str]]:
    """The scorers that ship with kgbias, as specs by measure: those of statements."""
    return {name: [OWN] for name, m in MEASURES.own_entries.items() if m.heads is not None}


def read(
    scorer: Scorer, spec: str, sets: Sequence[LabelledSet], names: Mapping[str, Sequence[str]]
) -> AtHand:
    """Have a scorer read the sets of its measure, and try it on the names of each category. Scores
    made elsewhere are read against the sets that they cover; raises DataError if they cover none,
    though there are some."""
    checked: list[Checked] = []
    left_out: DataError | None = None
    foreign: dict[str, None] = {}
    reads = getattr(scorer, "language", None)
    for one in sets:
        if one.measure == scorer.measure:
            if reads not in (None, one.language):
                foreign[
                    f"it does not read {one.name}, which is in the language {one.language!r}"
                ] = None
                continue
            try:
                judged = scorer.score([x.text for x in one.statements])
            except DataError as error:
                if swappable(spec):
                    raise
                left_out = error
            else:
                checked += checks(scorer.name, one, judged)
    if left_out is not None and not checked:
        raise left_out
    found = _tried(scorer, names) if to_try(scorer.measure, spec, names) else None
    row = _at_hand(scorer.measure, scorer.name, scorer.version, found, checked)
    return replace(row, why="; ".join(foreign))


def to_try(measure: str, spec: str, names: Mapping[str, Sequence[str]]) -> int:
    """How many texts a scorer reads to be tried on names; 0 if it is not tried."""
    if not (tried(measure) and swappable(spec)):
        return 0
    return sum(map(len, TRIED.values())) * sum(map(len, names.values()))


def _tried(scorer: Scorer, names: Mapping[str, Sequence[str]]) -> Named | None:
    found: dict[str, tuple[Estimate, str]] = {}
    for own in names.values():
        kind, by_name = effects(scorer, own)
        found |= {name: (effect, kind) for name, effect in by_name.items()}
    if not found:
        return None
    name = max(found, key=lambda name: abs(found[name][0].value))
    effect, kind = found[name]
    return Named(effect, name, kind, not reads_names(scorer.measure, [effect]))


def kept(
    store: Store, name: str, progress: Progress
) -> tuple[list[LabelledSet], dict[Metric, list[Checked]]]:
    """The labels of a store's statements as sets of this name, and what every scorer in the store
    says of these statements, as far as it scored them."""
    if not (labels := store.labels()):
        return [], {}
    wanted = {x.triple_id for x in labels}
    texts: dict[str, tuple[str, str]] = {}
    metrics: dict[Metric, None] = {}
    runs = [summary.run.id for summary in store.summaries()]
    progress.stage("labels", len(runs))
    for run in runs:
        said = (row for row in store.distinct_triples(run) if row[0] in wanted)
        texts |= {id: (group, verbalise(group, p, o)) for id, group, p, o in said}
        metrics |= {m: None for m in store.scorers(run) if not is_swapped(m)}
        progress.advance()
    sets = labels_kept(name, labels, texts)
    found = {}
    for metric in metrics:
        own = [one for one in sets if one.measure == metric.measure]
        scores = store.scores(metric, list(texts)) if own else {}
        found[metric] = [
            row
            for one in own
            for row in checks(metric.scorer, one, [scores.get(x.unit) for x in one.statements])
        ]
    return sets, found


def together(
    opened: Iterable[AtHand], stored: Mapping[Metric, Sequence[Checked]]
) -> Iterator[AtHand]:
    """Every scorer once, by measure and name: those that were opened, with what the store has of
    the same version, then the others of the store."""
    left = {(m.measure, m.scorer, m.version): list(rows) for m, rows in stored.items()}
    found = []
    for one in opened:
        more = left.pop((one.measure, one.scorer, one.version), [])
        found.append(replace(one, checked=(*one.checked, *more)))
    found += [_at_hand(*key, None, rows) for key, rows in left.items()]
    order = list(MEASURES.own_entries)
    yield from sorted(
        found,
        key=lambda x: (order.index(x.measure) if x.measure in order else len(order), x.measure,
                       x.scorer, x.version),
    )  # fmt: skip


def _at_hand(
    measure: str, scorer: str, version: str, named: Named | None, checked: Sequence[Checked]
) -> AtHand:
    license = _LICENSES.get(scorer, "")
    return AtHand(measure, scorer, version, license, named, tuple(checked))
