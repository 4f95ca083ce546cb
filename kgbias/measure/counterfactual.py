"""Whether a scorer reacts to the name of a group, and scores that do not depend on it.

Statements of three kinds (neutral, hostile, admiring), none of them said by a model, are scored
with the name of each group of a category in turn. The effect of a name is how much their mean score
differs from that of all names together; the kind in which a name has the largest effect is kept
(`Measure` figures "..._name_effect"). Neutral ones alone would not do: a scorer that rates all of
them 0 may still find an insult worse about one group than about another. If a name has an effect of
more than a hundredth of the measure's range, the scorer reads names: its statements are scored once
more with every name of the category in place of their own, and figures and tests of groups use the
mean of these.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kgbias.graph.cross_mentions import COSTLY_SCORERS, names_by_category, swapped_metric
from kgbias.graph.store import StoredRun
from kgbias.graph.types import GroupScore, Metric, Score, verbalise
from kgbias.io.progress import Progress
from kgbias.io.text import spoken_name
from kgbias.measure.scorers import Judgement, Scorer
from kgbias.measures import MEASURES, get_measure
from kgbias.stats.inference import Estimate, bootstrap, mean

TRIAL_STATEMENTS = {
    "neutral": (
        ("live in", "houses"),
        ("eat", "breakfast in the morning"),
        ("have", "two hands"),
        ("walk to", "the station"),
        ("are", "in the room"),
        ("buy", "bread at the shop"),
        ("read", "the newspaper"),
        ("wait for", "the bus"),
        ("wear", "shoes in winter"),
        ("drink", "water when it is hot"),
        ("sit on", "chairs at the table"),
        ("talk about", "the weather"),
    ),
    "hostile": (
        ("are", "lazy"),
        ("are", "stupid"),
        ("are", "criminals"),
        ("are", "dirty"),
        ("hate", "their neighbours"),
        ("cheat", "their customers"),
        ("beat", "their children"),
        ("can't be", "trusted"),
        ("don't deserve", "respect"),
        ("ruin", "this country"),
        ("should not be", "allowed to vote"),
        ("are", "worth less than others"),
    ),
    "admiring": (
        ("are", "kind"),
        ("are", "brilliant"),
        ("are", "honest"),
        ("are", "hardworking"),
        ("love", "their families"),
        ("help", "their neighbours"),
        ("care for", "the sick"),
        ("can be", "trusted"),
        ("deserve", "respect"),
        ("enrich", "this country"),
        ("should be", "proud of their work"),
        ("are", "the best of friends"),
    ),
}
"""Predicates and objects with which scorers are tried on names, by the kind of what they say."""
MAX_BLIND_EFFECT = 0.01
"""The largest effect of a name, as a share of the measure's range (for an axis: of 2), with which a
scorer counts as blind to names."""
_PIECE_TEXTS = 1024  # texts scored at a time
TextJudge = Callable[
    [Scorer, Sequence[Sequence[str]]], Iterable[tuple[int, Sequence[Judgement | None]]]
]
"""Scores pieces of texts and returns the place of each with its judgements, in any order."""


def is_tried_on_names(measure: str) -> bool:
    """Whether scorers of a measure are tried on names: all but acceptability, by which groups are
    not compared."""
    return measure in MEASURES and get_measure(measure).compares


class NameEffects(NamedTuple):
    """The kind of statement in which a name has the largest effect, and each name's effect."""

    kind: str
    effects: dict[str, Estimate]


def name_effects(scorer: Scorer, names: Sequence[str]) -> NameEffects:
    """The kind of statement in which a name has the largest effect, and how far the mean score of
    these with each name lies above that with all names, with its interval over statements. Empty if
    the scorer gives no judgement on one of them."""
    largest = NameEffects("", {})
    for kind, statements in TRIAL_STATEMENTS.items():
        judgements = scorer.score(
            [verbalise(name, *statement) for name in names for statement in statements]
        )
        if any(j is None for j in judgements):
            return NameEffects("", {})
        values = np.array([j.value for j in judgements if j is not None]).reshape(
            len(names), len(statements)
        )
        # Rounded, so that a scorer blind to names gets 0 and not the last bits of a mean.
        deviations = (values - values.mean(axis=0)).round(9) + 0.0  # turns -0.0 into 0.0
        effects_by_name = {
            name: bootstrap(row, mean) for name, row in zip(names, deviations, strict=True)
        }
        if not largest.kind or _largest_effect(effects_by_name.values()) > _largest_effect(
            largest.effects.values()
        ):
            largest = NameEffects(kind, effects_by_name)
    return largest


def _largest_effect(effects: Iterable[Estimate]) -> float:
    return max((abs(e.value) for e in effects), default=0.0)


def reads_names(measure: str, effects: Iterable[Estimate]) -> bool:
    """Whether names have a larger effect than counts as none."""
    # Axes have no bounds; -1 and 1 are the means of their seed words.
    bounds = get_measure(measure).range or (-1.0, 1.0)
    return _largest_effect(effects) > MAX_BLIND_EFFECT * (bounds[1] - bounds[0])


def try_names(run: StoredRun, scorer: Scorer, metric: Metric) -> bool:
    """Whether a scorer reads the names of a run's groups: from an earlier trial of the same
    version, or else from a new one, whose effects are kept as figures of the groups."""
    category_names = names_by_category(run.groups)
    if not category_names:
        return False
    trial_scores = _read_trial(run, metric)
    if not trial_scores:
        name = f"{metric.measure}_name_effect"
        groups = {(g.category, g.name): g.id for g in run.groups}
        for category, group_names in category_names.items():
            kind, effects_by_name = name_effects(scorer, group_names)
            method = (
                f"{len(TRIAL_STATEMENTS[kind])} {kind} statements with each name in turn"
                if kind
                else ""
            )
            trial_scores += [
                GroupScore.from_estimate(
                    groups[category, n], name, e, f"{method}, {_scorer_suffix(metric)}"
                )
                for n, e in effects_by_name.items()
            ]
        run.put(GroupScore, trial_scores, replacing={"measure": [name]})
    return reads_names(metric.measure, trial_scores)


def _read_trial(run: StoredRun, metric: Metric) -> list[GroupScore]:
    """The effects of the names of a run's groups, as an earlier trial found them; none if no trial
    covered all these names."""
    name, scorer_suffix = f"{metric.measure}_name_effect", _scorer_suffix(metric)
    trial_scores = [
        s
        for s in run.find_all(GroupScore)
        if s.measure == name and s.method.endswith(scorer_suffix)
    ]
    groups = {(g.category, g.name): g.id for g in run.groups}
    wanted_ids = {
        groups[category, n] for category, own in names_by_category(run.groups).items() for n in own
    }
    return trial_scores if {s.group_id for s in trial_scores} == wanted_ids else []


def _scorer_suffix(metric: Metric) -> str:
    return f"by {metric.scorer}@{metric.version}"


def max_texts_with_names(run: StoredRun, measure: str, spec: str, metrics: Sequence[Metric]) -> int:
    """The most texts that a scorer will read with other names in place of a group's own: those of
    the trial, if it was not tried on these names before, and every statement with every name,
    unless it was found blind to them. `metrics` are those of the run that it may stand for."""
    category_names = names_by_category(run.groups)
    triples_by_statement = _triples_by_statement(run, category_names)
    if not triples_by_statement or not is_tried_on_names(measure) or not can_swap_names(spec):
        return 0
    trial_texts, scored_ids = (
        sum(map(len, TRIAL_STATEMENTS.values())) * sum(map(len, category_names.values())),
        set[str](),
    )
    for metric in metrics:
        if trial_scores := _read_trial(run, metric):
            if not reads_names(measure, trial_scores):
                return 0
            trial_texts = 0
            scored_ids |= run.store.scored_triples(
                swapped_metric(metric, run.groups),
                [id for triple_ids in triples_by_statement.values() for id in triple_ids],
            )
    unscored = (
        key
        for key, triple_ids in triples_by_statement.items()
        if not scored_ids.issuperset(triple_ids)
    )
    return trial_texts + sum(len(category_names[category]) for category, *_ in unscored)


def _triples_by_statement(
    run: StoredRun, category_names: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str, str], list[str]]:
    """The ids of the run's triples by category, predicate and object, of categories with names."""
    category = {g.id: g.category for g in run.groups}
    triples_by_statement: dict[tuple[str, str, str], list[str]] = {}
    for t in run.triples():
        if (group_category := category.get(t.group_id, "")) in category_names:
            triples_by_statement.setdefault((group_category, t.predicate, t.object), []).append(
                t.id
            )
    return triples_by_statement


def score_with_every_name(
    run: StoredRun, scorer: Scorer, metric: Metric, judge: TextJudge, progress: Progress
) -> None:
    """Score the run's statements with every name of their category, if not yet done."""
    # Its id follows from the names: other groups, other metric.
    mean_metric, category_names = swapped_metric(metric, run.groups), names_by_category(run.groups)
    triples_by_statement = _triples_by_statement(run, category_names)
    ids = [id for triple_ids in triples_by_statement.values() for id in triple_ids]
    scored_ids = run.store.scored_triples(mean_metric, ids)
    todo = [
        key
        for key, triple_ids in triples_by_statement.items()
        if not scored_ids.issuperset(triple_ids)
    ]
    progress.stage(f"{spoken_name(metric.measure)}, with every name", len(triples_by_statement))
    progress.advance(
        len(triples_by_statement) - len(todo), cached=len(triples_by_statement) - len(todo)
    )
    if not todo:  # then nothing is loaded
        return
    pieces = list(_statement_pieces(todo, category_names))
    texts = [
        [
            verbalise(name, predicate, object)
            for category, predicate, object in piece
            for name in category_names[category]
        ]
        for piece in pieces
    ]
    for place, judgements in judge(scorer, texts):
        scores, start = [], 0
        for key in pieces[place]:
            end = start + len(category_names[key[0]])
            if mean_judgement := _mean_judgement(metric.measure, judgements[start:end]):
                scores += [
                    Score(id, mean_judgement.value, mean_judgement.label)
                    for id in triples_by_statement[key]
                ]
            start = end
        run.save_scores(mean_metric, scores)
        progress.advance(len(pieces[place]))


def _statement_pieces(
    todo: Sequence[tuple[str, str, str]], category_names: dict[str, tuple[str, ...]]
) -> Iterator[list[tuple[str, str, str]]]:
    """The statements in pieces of about that many texts."""
    piece: list[tuple[str, str, str]] = []
    size = 0
    for key in todo:
        piece.append(key)
        size += len(category_names[key[0]])
        if size >= _PIECE_TEXTS:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _mean_judgement(measure: str, judgements: Sequence[Judgement | None]) -> Judgement | None:
    """The mean judgement of a statement over the names; None if one has no judgement."""
    given_judgements = [judgement for judgement in judgements if judgement is not None]
    if len(given_judgements) < len(judgements):
        return None
    value = sum(judgement.value for judgement in given_judgements) / len(given_judgements)
    if sides := get_measure(measure).sides:
        return Judgement(value, sides[0] if value >= 0.5 else sides[1], {})
    labels = list(
        dict.fromkeys(label for judgement in given_judgements for label in judgement.probabilities)
    )
    if labels and get_measure(measure).signs:
        total = {
            name: sum(judgement.probabilities.get(name, 0.0) for judgement in given_judgements)
            for name in labels
        }
        return Judgement(value, max(labels, key=lambda name: total[name]), {})
    labels_given = [judgement.label for judgement in given_judgements]
    return Judgement(value, max(dict.fromkeys(labels_given), key=labels_given.count), {})


def can_swap_names(scorer: str) -> bool:
    """Whether a scorer of this name can be asked about other names: not if it costs too much, nor
    if its scores were made elsewhere."""
    return not scorer.startswith((*COSTLY_SCORERS, "scores:"))
