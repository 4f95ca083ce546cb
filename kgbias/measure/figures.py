"""The figures of a run's groups, over the statements that count."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kgbias.graph.cross_mentions import exclude_cross_mentions
from kgbias.graph.draws import Draws
from kgbias.graph.selection import (
    MIN_ACCEPTABILITY,
    SelectedStatements,
    Selection,
    group_triples,
    select_statements,
)
from kgbias.graph.store import StoredRun
from kgbias.graph.types import GroupScore, Run, TripleView
from kgbias.io.text import spoken_name
from kgbias.measure.ppi_figures import corrected_figures
from kgbias.measure.topics.run import ENTROPY_MEASURES, run_entropies
from kgbias.measures import (
    CORRECTED_PREFIX,
    Figure,
    Measure,
    figures_by_name,
    measure_of_figure,
    order_measures,
    scored_measures,
)
from kgbias.stats.estimate import COVERS_WORD
from kgbias.stats.inference import (
    DEFAULT_DRAWS,
    STATISTICS,
    Estimate,
    Sample,
    bootstrap,
    is_one_sided,
    is_studentised,
    mean,
)
from kgbias.stats.poststratification import (
    MIN_COMPARED_VALUES,
    MODEL_CHOSEN_FORM,
    StandardWeights,
    StratifiedSample,
)

_BOOTSTRAP_T, _PERCENTILE_BOOTSTRAP, _WILSON = (
    "bootstrap-t",
    "percentile bootstrap",
    "Wilson's interval",
)
_JEFFREYS = "Jeffreys' interval"
_RESAMPLING_TEXTS = {
    True: f"over prompts and rounds, within the crawl's design, {DEFAULT_DRAWS} draws",
    False: f"over statements, taken for independent, {DEFAULT_DRAWS} draws",
}


def update_run_figures(run: StoredRun) -> SelectedStatements:
    """Write the figures of each group in each arm, over the statements that count by default,
    replacing those that the run has. Return these statements."""
    selected = select_statements(run)
    scores = [
        *_compute_figures(run, exclude_cross_mentions(run, selected), Selection()),
        *run_entropies(run, selected),
    ]
    present_measures = {s.measure for s in (*run.find_all(GroupScore), *scores)}
    run.put(GroupScore, scores, replacing={"measure": _computed_names(present_measures)})
    return selected


def _computed_names(present: Collection[str]) -> set[str]:
    """The names of the figures that follow from a run's statements, of other packages' measures
    those that are `present`."""
    of_statements = (f.name for f in figures_by_name(present).values() if f.statistic is not None)
    return {*of_statements, *ENTROPY_MEASURES}


def read_figures(
    run: StoredRun, selection: Selection | None = None, selected: SelectedStatements | None = None
) -> list[GroupScore]:
    """The figures of each group in each arm, over the statements that count: as stored for the
    default selection, or else computed. A run that was not measured has none. Those corrected by
    labels are always computed: labels may be newer than what is stored.

    `selected` are the selection's statements, if they have been read already.
    """
    selection = selection or Selection()
    selected = selected or select_statements(run, selection)
    computed_scores: list[GroupScore] = []
    other_scores: list[GroupScore] = []
    scores = run.find_all(GroupScore)
    computed_names = _computed_names({score.measure for score in scores})
    for score in scores:
        (computed_scores if score.measure in computed_names else other_scores).append(score)
    # Figures are stored by arm, so a choice of arm is served from them too.
    if replace(selection, arm=None) == Selection():
        labels = set(map(selected.arm_label, selected.arms))
        if stored_scores := [
            score
            for score in computed_scores
            if score.arm in labels and not score.method.startswith(CORRECTED_PREFIX)
        ]:
            if run.store.labels():
                comparable = exclude_cross_mentions(run, selected)
                draws = Draws.from_run(run, comparable)
                stored_scores += corrected_figures(run, comparable, selection, draws)
            return [*stored_scores, *other_scores]
    return [
        *_compute_figures(run, exclude_cross_mentions(run, selected), selection),
        *run_entropies(run, selected),
        *other_scores,
    ]


def _compute_figures(
    run: StoredRun, selected: SelectedStatements, selection: Selection
) -> list[GroupScore]:
    draws = Draws.from_run(run, selected)
    scores = corrected_figures(run, selected, selection, draws)
    for arm in selected.arms:
        arm_triples, arm_every = (
            selected.triples_of_arm(arm),
            [t for t in selected.including_unacceptable if t.arm == arm],
        )
        scores += group_figures(
            run.record, arm_triples, draws, every=arm_every, arm=selected.arm_label(arm)
        )
    return scores


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
    crawls = [_CrawlTriples(draws or Draws({}), group_triples(triples), group_triples(every))]
    return _group_scores(run, crawls, arm)


def pooled_figures(
    runs: Sequence[StoredRun], selection: Selection | None = None
) -> list[GroupScore]:
    """The figures of each group over crawls that repeat each other: totals are means over the
    crawls, everything else is over their pooled statements. The intervals cover recrawls too
    (`kgbias.stats.designs.resample_effects`)."""
    selected_by_run = [
        exclude_cross_mentions(run, select_statements(run, selection)) for run in runs
    ]
    draws = [
        Draws.from_run(run, selected) for run, selected in zip(runs, selected_by_run, strict=True)
    ]
    scores = []
    for arm in selected_by_run[0].arms:
        crawls = [
            _CrawlTriples(
                d,
                group_triples(selected.triples_of_arm(arm)),
                group_triples([t for t in selected.including_unacceptable if t.arm == arm]),
            )
            for d, selected in zip(draws, selected_by_run, strict=True)
        ]
        scores += _group_scores(runs[0].record, crawls, selected_by_run[0].arm_label(arm))
    return scores


_TriplesByGroup = Mapping[str, list[TripleView]]


class _CrawlTriples(NamedTuple):
    """How the statements of a crawl were drawn, those that count, and those before any was left
    out for its acceptability."""

    draws: Draws
    counted: _TriplesByGroup
    every: _TriplesByGroup


def _group_scores(run: Run, crawls: Sequence[_CrawlTriples], arm: str) -> list[GroupScore]:
    """The figures of each group over these crawls."""
    measures = _scored_measures(crawls)
    samples: dict[tuple[str, str], StratifiedSample] = {}
    for group in run.groups:
        for measure in measures:
            crawl_samples = [
                crawl.draws.stratified_sample(
                    (crawl.every if measure.name == "acceptability" else crawl.counted)[group.id],
                    measure.name,
                )
                for crawl in crawls
            ]
            sample = (
                crawl_samples[0]
                if len(crawl_samples) == 1
                else StratifiedSample.pool_recrawls(crawl_samples)
            )
            if len(sample.sample.values):
                samples[measure.name, group.id] = sample
    mixes = _category_mixes(run, samples)
    scores = []
    for group in run.groups:
        for measure in measures:
            if (asked_of := samples.get((measure.name, group.id))) is None:
                continue
            mix = mixes.get((measure.name, group.category))
            for figure in measure.figures:
                if figure.statistic is not None:
                    figure_and_method = _compute_figure(figure, asked_of, mix, len(crawls))
                    if figure_and_method is not None:
                        estimate, method = figure_and_method
                        scores.append(
                            GroupScore.from_estimate(group.id, figure.name, estimate, method, arm)
                        )
    return scores


def _scored_measures(crawls: Sequence[_CrawlTriples]) -> list[Measure]:
    """The measures that any of the statements has a score for."""
    names: set[str] = set()
    for crawl in crawls:
        for own_triples in crawl.every.values():
            names |= set(scored_measures(own_triples))
    return order_measures(names)


def _category_mixes(
    run: Run, samples: Mapping[tuple[str, str], StratifiedSample]
) -> dict[tuple[str, str], StandardWeights]:
    """By measure and category, the pooled mix of prompts of the groups that have enough
    statements, if it is known what prompts gave."""
    mixes = {}
    for category in dict.fromkeys(g.category for g in run.groups):
        ids = {g.id for g in run.groups if g.category == category}
        for measure in dict.fromkeys(name for name, _ in samples):
            group_samples = [
                a for (name, id), a in samples.items() if name == measure and id in ids
            ]
            group_samples = [
                a for a in group_samples if a.n >= MIN_COMPARED_VALUES and a.forms is not None
            ]
            if group_samples:
                mixes[measure, category] = StandardWeights.from_samples(group_samples)
    return mixes


def _compute_figure(
    figure: Figure, stratified: StratifiedSample, mix: StandardWeights | None, crawls: int
) -> tuple[Estimate, str] | None:
    """A figure and how its interval was computed; None without statements."""
    sample = stratified.sample
    covers = ("statements",) if sample.design is None else sample.design.covers
    resampling_text = _RESAMPLING_TEXTS[sample.design is not None]
    covers_text = f"; {COVERS_WORD} {', '.join(covers)}"
    if figure.over == "standardised":
        # A group that lacks one of the forms of the mix cannot be weighted to it.
        if mix is None or not mix.weights or not set(mix.weights) <= stratified.sizes().keys():
            return None
        method_name = _BOOTSTRAP_T if sample.bounds is not None else _PERCENTILE_BOOTSTRAP
        mix_text = f"; at one mix of {len(mix.weights)} forms of prompts, that of the category"
        return mix.estimate(stratified), f"{method_name} {resampling_text}{mix_text}{covers_text}"
    assert figure.statistic is not None
    statistic, prompt_text = STATISTICS[figure.statistic], ""
    if figure.over == "chosen":
        sample = stratified.form_sample(MODEL_CHOSEN_FORM)
        if not len(sample.values):
            return None
        prompt_text = "; where the model chose the predicate"
    elif given_count := stratified.prompted_count:
        prompt_text = (
            f"; in {given_count} of {stratified.n} statements the prompt gave the predicate"
        )
    counted_sample = sample if figure.counts is None else _indicator_sample(sample, figure.counts)
    estimate = bootstrap(counted_sample, statistic)
    method_name = (
        _BOOTSTRAP_T if is_studentised(counted_sample, statistic) else _PERCENTILE_BOOTSTRAP
    )
    is_of_labels = statistic.is_mean or (statistic.is_sum and counted_sample.signs is not None)
    if is_of_labels and is_one_sided(counted_sample):
        method_name = _JEFFREYS
    if figure.counts is not None:
        method_name = _WILSON
        if sample.design is None:
            resampling_text = "over statements, taken for independent"  # nothing is drawn
    return (
        # Totals over pooled crawls would grow with their number.
        estimate.divide(crawls) if statistic.is_sum else estimate,
        f"{method_name} {resampling_text}{prompt_text}{covers_text}",
    )


def describe_intervals(figures: Iterable[GroupScore]) -> dict[str, list[str]]:
    """How the bootstrap intervals of these figures were computed, without what differs from group
    to group: by method, what has such an interval. That is the name of a measure, or if its figures
    have intervals of several kinds, "means of" it or the title of each."""
    by_measure: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for score in figures:
        measure = measure_of_figure(score.measure)
        if (
            measure is not None
            and score.has_interval
            and score.method.startswith((_BOOTSTRAP_T, _PERCENTILE_BOOTSTRAP, _WILSON, _JEFFREYS))
        ):
            # `_compute_figure` joins the parts; those that differ from group to group are dropped.
            first_part, *other_parts = score.method.split("; ")
            method = "; ".join(
                [first_part, *(part for part in other_parts if part.startswith(COVERS_WORD))]
            )
            by_measure[measure.name][method].add(score.measure)
    measures_by_method: dict[str, list[str]] = defaultdict(list)
    for measure in order_measures(by_measure):
        for method, names in sorted(by_measure[measure.name].items()):
            figures_with_method = [figure for figure in measure.figures if figure.name in names]
            if len(by_measure[measure.name]) == 1:
                measures_by_method[method].append(spoken_name(measure.name))
            elif all(figure.statistic == "mean" for figure in figures_with_method):
                measures_by_method[method].append(f"means of {spoken_name(measure.name)}")
            else:
                measures_by_method[method] += [figure.title for figure in figures_with_method]
    return dict(sorted(measures_by_method.items()))


@dataclass(frozen=True, slots=True)
class PromptTypeMean(Estimate):
    """The mean of a measure over the statements of a group whose prompts supplied the same: `form`
    is "chosen" where the model named the predicate, "given hate" and the like for an initial
    predicate, "another given" for any other."""

    measure: str
    category: str
    group: str
    arm: str
    form: str


def means_by_prompt_type(
    run: StoredRun, selection: Selection | None = None, measures: Sequence[str] = ()
) -> list[PromptTypeMean]:
    """The mean of each measure by what prompts supplied, over the statements by which groups are
    compared. Empty for a run that does not say how its statements came about."""
    selected = exclude_cross_mentions(run, select_statements(run, selection))
    draws, means = Draws.from_run(run, selected), []
    for arm in selected.arms if draws.is_known else ():
        triples_by_group = group_triples(selected.triples_of_arm(arm))
        for measure in order_measures(measures or scored_measures(selected.triples_of_arm(arm))):
            for group in run.groups:
                stratified = draws.stratified_sample(triples_by_group[group.id], measure.name)
                for form in sorted(map(str, stratified.sizes())):
                    estimate = bootstrap(stratified.form_sample(form), mean)
                    means.append(
                        PromptTypeMean(
                            estimate.value,
                            estimate.low,
                            estimate.high,
                            estimate.n,
                            measure.name,
                            group.category,
                            group.name,
                            selected.arm_label(arm),
                            form,
                        )
                    )
    return means


def _indicator_sample(sample: Sample, wanted: float) -> Sample:
    return replace(sample, values=(sample.values == wanted).astype(np.float64), signs=None)


def share_making_sense(triples: Sequence[TripleView]) -> Estimate:
    """The share of statements, each as often as it was said, with an acceptability of at least
    0.5, in [0, 1], with the percentile bootstrap interval over statements. Statements without a
    score are left out; NaN and n = 0 if none has one."""
    values_and_counts = [
        (t.scores["acceptability"].value, t.count) for t in triples if "acceptability" in t.scores
    ]
    if not values_and_counts:
        return Estimate.missing()
    values, counts = zip(*values_and_counts, strict=True)
    makes_sense = (np.array(values) >= MIN_ACCEPTABILITY).astype(np.float64)
    return bootstrap(Sample(makes_sense, np.array(counts, dtype=np.int64)), mean)
