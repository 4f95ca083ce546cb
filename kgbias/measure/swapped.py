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

import numpy as np

from kgbias.graph.cross_mentions import COSTLY_SCORERS, names_by_category, swapped_metric
from kgbias.graph.store import StoredRun
from kgbias.graph.types import GroupScore, Metric, Score, verbalise
from kgbias.io.progress import Progress
from kgbias.io.text import spoken_name
from kgbias.measure.scorers import Judgement, Scorer
from kgbias.measures import MEASURES, known
from kgbias.stats.inference import Estimate, bootstrap, mean

TRIED = {
    "neutral": (
        ("live in", "houses"), ("eat", "breakfast in the morning"), ("have", "two hands"),
        ("walk to", "the station"), ("are", "in the room"), ("buy", "bread at the shop"),
        ("read", "the newspaper"), ("wait for", "the bus"), ("wear", "shoes in winter"),
        ("drink", "water when it is hot"), ("sit on", "chairs at the table"),
        ("talk about", "the weather"),
    ),
    "hostile": (
        ("are", "lazy"), ("are", "stupid"), ("are", "criminals"), ("are", "dirty"),
        ("hate", "their neighbours"), ("cheat", "their customers"), ("beat", "their children"),
        ("can't be", "trusted"), ("don't deserve", "respect"), ("ruin", "this country"),
        ("should not be", "allowed to vote"), ("are", "worth less than others"),
    ),
    "admiring": (
        ("are", "kind"), ("are", "brilliant"), ("are", "honest"), ("are", "hardworking"),
        ("love", "their families"), ("help", "their neighbours"), ("care for", "the sick"),
        ("can be", "trusted"), ("deserve", "respect"), ("enrich", "this country"),
        ("should be", "proud of their work"), ("are", "the best of friends"),
    ),
}  # fmt: skip
"""Predicates and objects with which scorers are tried on names, by the kind of what they say."""
BLIND = 0.01
"""The largest effect of a name, as a share of the measure's range (for an axis: of 2), with which a
scorer counts as blind to names."""
_PIECE = 1024  # texts scored at a time
Judge = Callable[
    [Scorer, Sequence[Sequence[str]]], Iterable[tuple[int, Sequence[Judgement | None]]]
]
"""Scores pieces of texts and returns the place of each with its judgements, in any order."""


def tried(measure: str) -> bool:
    """Whether scorers of a measure are tried on names: all but acceptability, by which groups are
    not compared."""
    return measure in MEASURES and known(measure).compares


def effects(scorer: Scorer, names: Sequence[str]) -> tuple[str, dict[str, Estimate]]:
    """The kind of statement in which a name has the largest effect, and how far the mean score of
    these with each name lies above that with all names, with its interval over statements. Empty if
    the scorer gives no judgement on one of them."""
    most: tuple[str, dict[str, Estimate]] = "", {}
    for kind, said in TRIED.items():
        judged = scorer.score([verbalise(name, *each) for name in names for each in said])
        if any(j is None for j in judged):
            return "", {}
        values = np.array([j.value for j in judged if j is not None]).reshape(len(names), len(said))
        apart = (values - values.mean(axis=0)).round(9) + 0.0  # turns -0.0 into 0.0
        found = {name: bootstrap(row, mean) for name, row in zip(names, apart, strict=True)}
        if not most[0] or _largest(found.values()) > _largest(most[1].values()):
            most = kind, found
    return most


def _largest(found: Iterable[Estimate]) -> float:
    return max((abs(e.value) for e in found), default=0.0)


def reads_names(measure: str, found: Iterable[Estimate]) -> bool:
    """Whether names have a larger effect than counts as none."""
    bounds = known(measure).range or (-1.0, 1.0)
    return _largest(found) > BLIND * (bounds[1] - bounds[0])


def try_names(run: StoredRun, scorer: Scorer, metric: Metric) -> bool:
    """Whether a scorer reads the names of a run's groups: from an earlier trial of the same
    version, or else from a new one, whose effects are kept as figures of the groups."""
    names = names_by_category(run.groups)
    if not names:
        return False
    there = _tried_before(run, metric)
    if not there:
        name = f"{metric.measure}_name_effect"
        groups = {(g.category, g.name): g.id for g in run.groups}
        for category, own in names.items():
            kind, found = effects(scorer, own)
            method = f"{len(TRIED[kind])} {kind} statements with each name in turn" if kind else ""
            there += [
                GroupScore.from_estimate(groups[category, n], name, e, f"{method}, {_by(metric)}")
                for n, e in found.items()
            ]
        run.save_group_scores(there, replacing=[name])
    return reads_names(metric.measure, there)


def _tried_before(run: StoredRun, metric: Metric) -> list[GroupScore]:
    """The effects of the names of a run's groups, as an earlier trial found them; none if no trial
    covered all these names."""
    name, by = f"{metric.measure}_name_effect", _by(metric)
    there = [s for s in run.group_scores() if s.measure == name and s.method.endswith(by)]
    groups = {(g.category, g.name): g.id for g in run.groups}
    wanted = {groups[category, n] for category, own in names_by_category(run.groups).items() for n in own}
    return there if {s.group_id for s in there} == wanted else []


def _by(metric: Metric) -> str:
    return f"by {metric.scorer}@{metric.version}"


def texts_to_read(run: StoredRun, measure: str, spec: str, metrics: Sequence[Metric]) -> int:
    """The most texts that a scorer will read with other names in place of a group's own: those of
    the trial, if it was not tried on these names before, and every statement with every name,
    unless it was found blind to them. `metrics` are those of the run that it may stand for."""
    names = names_by_category(run.groups)
    said = _by_statement(run, names)
    if not said or not tried(measure) or not swappable(spec):
        return 0
    trial, done = sum(map(len, TRIED.values())) * sum(map(len, names.values())), set[str]()
    for metric in metrics:
        if there := _tried_before(run, metric):
            if not reads_names(measure, there):
                return 0
            trial = 0
            done |= run.store.scored_triples(
                swapped_metric(metric, run.groups), [id for several in said.values() for id in several]
            )
    left = (key for key, several in said.items() if not done.issuperset(several))
    return trial + sum(len(names[category]) for category, *_ in left)


def _by_statement(
    run: StoredRun, names: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str, str], list[str]]:
    """The ids of the run's triples by category, predicate and object, of categories with names."""
    category = {g.id: g.category for g in run.groups}
    said: dict[tuple[str, str, str], list[str]] = {}
    for t in run.triples():
        if (of := category.get(t.group_id, "")) in names:
            said.setdefault((of, t.predicate, t.object), []).append(t.id)
    return said


def score_with_every_name(
    run: StoredRun, scorer: Scorer, metric: Metric, judge: Judge, progress: Progress
) -> None:
    """Score the run's statements with every name of their category, if not yet done."""
    own, names = swapped_metric(metric, run.groups), names_by_category(run.groups)
    said = _by_statement(run, names)
    ids = [id for several in said.values() for id in several]
    done = run.store.scored_triples(own, ids)
    todo = [key for key, several in said.items() if not done.issuperset(several)]
    progress.stage(f"{spoken_name(metric.measure)}, with every name", len(said))
    progress.advance(len(said) - len(todo), cached=len(said) - len(todo))
    if not todo:  # then nothing is loaded
        return
    pieces = list(_pieces(todo, names))
    texts = [
        [verbalise(name, predicate, object) for of, predicate, object in piece
         for name in names[of]]
        for piece in pieces
    ]  # fmt: skip
    for place, judged in judge(scorer, texts):
        scores, start = [], 0
        for key in pieces[place]:
            end = start + len(names[key[0]])
            if found := _together(metric.measure, judged[start:end]):
                scores += [Score(id, found.value, found.label) for id in said[key]]
            start = end
        run.save_scores(own, scores)
        progress.advance(len(pieces[place]))


def _pieces(
    todo: Sequence[tuple[str, str, str]], names: dict[str, tuple[str, ...]]
) -> Iterator[list[tuple[str, str, str]]]:
    """The statements in pieces of about that many texts."""
    piece: list[tuple[str, str, str]] = []
    size = 0
    for key in todo:
        piece.append(key)
        size += len(names[key[0]])
        if size >= _PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _together(measure: str, judged: Sequence[Judgement | None]) -> Judgement | None:
    """The mean judgement of a statement over the names; None if one has no judgement."""
    known_ones = [j for j in judged if j is not None]
    if len(known_ones) < len(judged):
        return None
    value = sum(j.value for j in known_ones) / len(known_ones)
    if sides := known(measure).sides:
        return Judgement(value, sides[0] if value >= 0.5 else sides[1], {})
    labels = list(dict.fromkeys(label for j in known_ones for label in j.probabilities))
    if labels and known(measure).signs:
        total = {name: sum(j.probabilities.get(name, 0.0) for j in known_ones) for name in labels}
        return Judgement(value, max(labels, key=lambda name: total[name]), {})
    often = [j.label for j in known_ones]
    return Judgement(value, max(dict.fromkeys(often), key=often.count), {})


def swappable(scorer: str) -> bool:
    """Whether a scorer of this name can be asked about other names: not if it costs too much, nor
    if its scores were made elsewhere."""
    return not scorer.startswith((*COSTLY_SCORERS, "scores:"))
