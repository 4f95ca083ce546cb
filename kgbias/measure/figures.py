"""The figures of a run's groups, over the statements that count."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kgbias.graph.cross_mentions import exclude_cross_mentions
from kgbias.graph.draws import Draws
from kgbias.graph.selection import MIN_ACCEPTABILITY, SelectedStatements, Selection, group_triples, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import GroupScore, Run, TripleView
from kgbias.io.text import spoken_name
from kgbias.measure.corrected import corrected_figures
from kgbias.measure.topics.run import ENTROPIES, entropies
from kgbias.measures import CORRECTED, Figure, Measure, among, figures, measure_of, measures_of
from kgbias.stats.estimate import COVERS
from kgbias.stats.inference import (
    DEFAULT_DRAWS,
    STATISTICS,
    Estimate,
    Sample,
    bootstrap,
    mean,
    is_one_sided,
    is_studentised,
)
from kgbias.stats.poststratification import CHOSEN_FORM, MIN_VALUES, StratifiedSample, StandardWeights

_T, _PERCENTILES, _WILSON = "bootstrap-t", "percentile bootstrap", "Wilson's interval"
_AGRESTI = "Agresti and Coull's interval"
_OVER = {
    True: f"over prompts and rounds, within the crawl's design, {DEFAULT_DRAWS} draws",
    False: f"over statements, taken for independent, {DEFAULT_DRAWS} draws",
}


def update_figures(run: StoredRun) -> SelectedStatements:
    """Write the figures of each group in each arm, over the statements that count by default,
    replacing those that the run has. Return these statements."""
    counted = select_statements(run)
    found = [*_of_measures(run, exclude_cross_mentions(run, counted), Selection()), *entropies(run, counted)]
    there = {s.measure for s in (*run.group_scores(), *found)}
    run.save_group_scores(found, replacing=_computed(there))
    return counted


def _computed(present: Collection[str]) -> set[str]:
    """The names of the figures that follow from a run's statements, of other packages' measures
    those that are `present`."""
    of_statements = (f.name for f in figures(present).values() if f.statistic is not None)
    return {*of_statements, *ENTROPIES}


def figures_of(
    run: StoredRun, selection: Selection | None = None, counted: SelectedStatements | None = None
) -> list[GroupScore]:
    """The figures of each group in each arm, over the statements that count: as stored for the
    default selection, or else computed. A run that was not measured has none. Those corrected by
    labels are always computed: labels may be newer than what is stored.

    `counted` are the selection's statements, if they have been read already.
    """
    selection = selection or Selection()
    counted = counted or select_statements(run, selection)
    own: list[GroupScore] = []
    rest: list[GroupScore] = []
    scores = run.group_scores()
    computed = _computed({s.measure for s in scores})
    for s in scores:
        (own if s.measure in computed else rest).append(s)
    if replace(selection, arm=None) == Selection():
        labels = set(map(counted.arm_label, counted.arms))
        if found := [s for s in own if s.arm in labels and not s.method.startswith(CORRECTED)]:
            if run.store.labels():
                counts = exclude_cross_mentions(run, counted)
                draws = Draws.from_run(run, counts)
                found += corrected_figures(run, counts, selection, draws)
            return [*found, *rest]
    return [*_of_measures(run, exclude_cross_mentions(run, counted), selection), *entropies(run, counted), *rest]


def _of_measures(run: StoredRun, counted: SelectedStatements, selection: Selection) -> list[GroupScore]:
    draws = Draws.from_run(run, counted)
    found = corrected_figures(run, counted, selection, draws)
    for arm in counted.arms:
        own, every = counted.triples_of_arm(arm), [t for t in counted.including_unacceptable if t.arm == arm]
        found += group_figures(run.record, own, draws, every=every, arm=counted.arm_label(arm))
    return found


def group_figures(
    run: Run,
    triples: Sequence[TripleView],
    draws: Draws | None = None,
    *,
    every: Sequence[TripleView] | None = None,
    arm: str = "",
) -> list[GroupScore]:
    """The figures of each group that `kgbias.measures` names, with 95% intervals, for the measures
    that the group's triples have. `draws` says how they were drawn (None: independently); `every`
    are the triples before any was left out for its acceptability, which the figures of
    acceptability cover; `arm` is the arm of all of them."""
    every = triples if every is None else every
    said = [(draws or Draws({}), group_triples(triples), group_triples(every))]
    return _figures(run, said, arm)


def pooled_figures(
    runs: Sequence[StoredRun], selection: Selection | None = None
) -> list[GroupScore]:
    """The figures of each group over crawls that repeat each other: totals are means over the
    crawls, everything else is over their pooled statements. The intervals cover recrawls too
    (`kgbias.stats.designs.resample_effects`)."""
    counted = [exclude_cross_mentions(run, select_statements(run, selection)) for run in runs]
    draws = [Draws.from_run(run, c) for run, c in zip(runs, counted, strict=True)]
    found = []
    for arm in counted[0].arms:
        said = [
            (d, group_triples(c.triples_of_arm(arm)), group_triples([t for t in c.including_unacceptable if t.arm == arm]))
            for d, c in zip(draws, counted, strict=True)
        ]
        found += _figures(runs[0].record, said, counted[0].arm_label(arm))
    return found


_Triples = Mapping[str, list[TripleView]]


def _figures(
    run: Run, crawls: Sequence[tuple[Draws, _Triples, _Triples]], arm: str
) -> list[GroupScore]:
    """The figures of each group, given for each crawl how its statements were drawn, those that
    count, and those before any was left out."""
    measures = _scored(crawls)
    own: dict[tuple[str, str], StratifiedSample] = {}
    for group in run.groups:
        for measure in measures:
            parts = [
                draws.stratified_sample((whole if measure.name == "acceptability" else said)[group.id],
                            measure.name)
                for draws, said, whole in crawls
            ]  # fmt: skip
            asked = parts[0] if len(parts) == 1 else StratifiedSample.pool_recrawls(parts)
            if len(asked.sample.values):
                own[measure.name, group.id] = asked
    mixes = _mixes(run, own)
    found = []
    for group in run.groups:
        for measure in measures:
            if (asked_of := own.get((measure.name, group.id))) is None:
                continue
            mix = mixes.get((measure.name, group.category))
            for figure in measure.figures:
                if figure.statistic is not None:
                    made = _figure(figure, asked_of, mix, len(crawls))
                    if made is not None:
                        e, method = made
                        found.append(GroupScore.from_estimate(group.id, figure.name, e, method, arm))
    return found


def _scored(crawls: Sequence[tuple[Draws, _Triples, _Triples]]) -> list[Measure]:
    """The measures that any of the statements has a score for."""
    return among(
        {name for *_, whole in crawls for own in whole.values() for name in measures_of(own)}
    )


def _mixes(run: Run, own: Mapping[tuple[str, str], StratifiedSample]) -> dict[tuple[str, str], StandardWeights]:
    """By measure and category, the pooled mix of prompts of the groups that have enough
    statements, if it is known what prompts gave."""
    found = {}
    for category in dict.fromkeys(g.category for g in run.groups):
        ids = {g.id for g in run.groups if g.category == category}
        for measure in dict.fromkeys(name for name, _ in own):
            parts = [a for (name, id), a in own.items() if name == measure and id in ids]
            parts = [a for a in parts if a.n >= MIN_VALUES and a.forms is not None]
            if parts:
                found[measure, category] = StandardWeights.from_samples(parts)
    return found


def _figure(
    figure: Figure, asked: StratifiedSample, mix: StandardWeights | None, crawls: int
) -> tuple[Estimate, str] | None:
    """A figure and how its interval was computed; None without statements."""
    sample = asked.sample
    covers = ("statements",) if sample.design is None else sample.design.covers
    over = _OVER[sample.design is not None]
    end = f"; {COVERS} {', '.join(covers)}"
    if figure.over == "standardised":
        if mix is None or not mix.weights or not set(mix.weights) <= asked.sizes().keys():
            return None
        how = _T if sample.bounds is not None else _PERCENTILES
        mixed = f"; at one mix of {len(mix.weights)} forms of prompts, that of the category"
        return mix.estimate(asked), f"{how} {over}{mixed}{end}"
    assert figure.statistic is not None
    statistic, given = STATISTICS[figure.statistic], ""
    if figure.over == "chosen":
        sample = asked.form_sample(CHOSEN_FORM)
        if not len(sample.values):
            return None
        given = "; where the model chose the predicate"
    elif gave := asked.prompted_count:
        given = f"; in {gave} of {asked.n} statements the prompt gave the predicate"
    kept = sample if figure.counts is None else _equal(sample, figure.counts)
    e = bootstrap(kept, statistic)
    how = _T if is_studentised(kept, statistic) else _PERCENTILES
    if statistic.is_mean and is_one_sided(kept):
        how = _AGRESTI
    if figure.counts is not None:
        how = _WILSON
        if sample.design is None:
            over = "over statements, taken for independent"  # nothing is drawn
    return e.divide(crawls) if statistic.is_sum else e, f"{how} {over}{given}{end}"


def how_intervals(figures: Iterable[GroupScore]) -> dict[str, list[str]]:
    """How the bootstrap intervals of these figures were computed, without what differs from group
    to group: by method, what has such an interval. That is the name of a measure, or if its figures
    have intervals of several kinds, "means of" it or the title of each."""
    by_measure: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for s in figures:
        measure = measure_of(s.measure)
        if (
            measure is not None
            and s.has_interval
            and s.method.startswith((_T, _PERCENTILES, _WILSON, _AGRESTI))
        ):
            first, *rest = s.method.split("; ")
            method = "; ".join([first, *(part for part in rest if part.startswith(COVERS))])
            by_measure[measure.name][method].add(s.measure)
    found: dict[str, list[str]] = defaultdict(list)
    for measure in among(by_measure):
        for method, names in sorted(by_measure[measure.name].items()):
            own = [f for f in measure.figures if f.name in names]
            if len(by_measure[measure.name]) == 1:
                found[method].append(spoken_name(measure.name))
            elif all(f.statistic == "mean" for f in own):
                found[method].append(f"means of {spoken_name(measure.name)}")
            else:
                found[method] += [f.title for f in own]
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class FormMean(Estimate):
    """The mean of a measure over the statements of a group whose prompts supplied the same: `form`
    is "chosen" where the model named the predicate, "given hate" and the like for an initial
    predicate, "another given" for any other."""

    measure: str
    category: str
    group: str
    arm: str
    form: str


def means_by_form(
    run: StoredRun, selection: Selection | None = None, measures: Sequence[str] = ()
) -> list[FormMean]:
    """The mean of each measure by what prompts supplied, over the statements by which groups are
    compared. Empty for a run that does not say how its statements came about."""
    counted = exclude_cross_mentions(run, select_statements(run, selection))
    draws, found = Draws.from_run(run, counted), []
    for arm in counted.arms if draws.is_known else ():
        said = group_triples(counted.triples_of_arm(arm))
        for measure in among(measures or measures_of(counted.triples_of_arm(arm))):
            for group in run.groups:
                asked = draws.stratified_sample(said[group.id], measure.name)
                for form in sorted(map(str, asked.sizes())):
                    e = bootstrap(asked.form_sample(form), mean)
                    found.append(
                        FormMean(e.value, e.low, e.high, e.n, measure.name, group.category,
                                 group.name, counted.arm_label(arm), form)
                    )  # fmt: skip
    return found


def _equal(sample: Sample, wanted: float) -> Sample:
    return replace(sample, values=(sample.values == wanted).astype(np.float64))


def sense(triples: Sequence[TripleView]) -> Estimate:
    """The share of statements, each as often as it was said, with an acceptability of at least
    0.5, in [0, 1], with the percentile bootstrap interval over statements. Statements without a
    score are left out; NaN and n = 0 if none has one."""
    scored = [(t.scores["acceptability"].value, t.count) for t in triples
              if "acceptability" in t.scores]  # fmt: skip
    if not scored:
        return Estimate.missing()
    values, counts = zip(*scored, strict=True)
    makes = (np.array(values) >= MIN_ACCEPTABILITY).astype(np.float64)
    return bootstrap(Sample(makes, np.array(counts, dtype=np.int64)), mean)
