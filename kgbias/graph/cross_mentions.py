"""What counts when groups are compared: statements about their own group alone, scored whatever its
name.

A statement may be about a group other than its subject: "White people are better than black people"
harms black people. And a scorer may react to a name: it may find the same neutral statement more of
an attack with one group's name than with another's. So figures and tests of groups leave out
statements that name another group of the run; and if a scorer is not blind to names, they use its
scores of statements in which each name of the category stood in turn
(`kgbias.measure.counterfactual`).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kgbias.graph.selection import OTHER_GROUP, SelectedStatements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, Metric, Score, Triple, TripleView
from kgbias.ids import content_id, normalise
from kgbias.io.text import spoken_name
from kgbias.language.words import PERSON_WORDS

SWAPPED_VERBALISER = "swapped@1"
MAX_NAMES_PER_CATEGORY = 7
"""How many names of a category stand in a statement in turn."""
COSTLY_SCORERS = ("llm:", "openai-moderation")
"""Prefixes of the names of scorers that cost too much to be asked about every name."""
_MIN_GROUPS = 2  # fewer groups leave nothing to compare


def swapped_metric(metric: Metric, groups: Sequence[Group]) -> Metric:
    """The metric whose score of a statement is the mean over the names of its category, from a
    run's groups."""
    names = [(category, *own) for category, own in names_by_category(groups).items()]
    key = content_id("names", *("\n".join(parts) for parts in names))
    # The verbaliser is part of a metric's id: scores of other names are other scores.
    return replace(metric, verbaliser=f"{SWAPPED_VERBALISER}:{key}")


def is_swapped(metric: Metric) -> bool:
    """Whether the scores of a metric are such means."""
    return metric.verbaliser.startswith(SWAPPED_VERBALISER)


def names_by_category(groups: Sequence[Group]) -> dict[str, tuple[str, ...]]:
    """The names that stand in turn in the statements of each category: those of its groups, at most
    seven. Categories of one group are left out."""
    by_category: dict[str, list[str]] = {}
    for group in groups:
        by_category.setdefault(group.category, []).append(group.name)
    return {
        category: tuple(names[:MAX_NAMES_PER_CATEGORY])
        for category, names in by_category.items()
        if len(names) >= _MIN_GROUPS
    }


def exclude_cross_mentions(
    run: StoredRun,
    selected: SelectedStatements,
    metrics: Mapping[str, Metric] | None = None,
    scorers: Sequence[Metric] | None = None,
) -> SelectedStatements:
    """The statements of a run that count when its groups are compared. Its `note` and `remarks` say
    what else is left out, and what is scored differently. `metrics` and `scorers` are the run's, if
    they were read already."""
    current = run.metrics() if metrics is None else metrics
    present_metrics = set(run.scorers() if scorers is None else scorers)
    scores, remarks = _read_swapped_scores(run, selected.triples, current, present_metrics)
    mentions, remaining = MentionIndex(run.groups), []
    excluded_counts = dict(selected.excluded_counts)
    for triple in selected.triples:
        if mentions.other_groups(triple):
            key = (triple.arm, triple.group_id, OTHER_GROUP)
            excluded_counts[key] = excluded_counts.get(key, 0) + triple.count
            continue
        swapped_scores = {
            name: scores_by_triple[triple.id]
            for name, scores_by_triple in scores.items()
            if triple.id in scores_by_triple
        }
        remaining.append(
            replace(triple, scores={**triple.scores, **swapped_scores})
            if swapped_scores
            else triple
        )
    return replace(
        selected, triples=remaining, excluded_counts=excluded_counts, remarks=tuple(remarks)
    )


def explain_costly_measures(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """The measures whose scorer may react to a name but costs too much to be asked about every
    name, each with a line that says so. Groups are not tested by them."""
    return {
        measure: f"{spoken_name(measure)} by {metric.scorer} is left out of the tests of "
        "groups: it may react to a group's name, and asking it about every name would cost too much"
        for measure, metric in metrics.items()
        if metric.scorer.startswith(COSTLY_SCORERS)
    }


class _SwappedScores(NamedTuple):
    """The scores of triples with every name, by measure, and a line for each measure."""

    by_measure: dict[str, Mapping[str, Score]]
    remarks: list[str]


def _read_swapped_scores(
    run: StoredRun,
    triples: Sequence[TripleView],
    current: Mapping[str, Metric],
    present_metrics: Collection[Metric],
) -> _SwappedScores:
    """By measure, the scores of the triples that were scored with every name; and a line for each
    such measure."""
    scores_by_measure: dict[str, Mapping[str, Score]] = {}
    remarks = []
    for measure, metric in current.items():
        if (mean_metric := swapped_metric(metric, run.groups)) in present_metrics:
            scores_by_measure[measure] = run.store.scores(
                mean_metric, sorted({t.id for t in triples})
            )
            remarks.append(
                f"{spoken_name(measure)} by {metric.scorer} reacts to a group's name: its "
                "scores here are means over the names of the category's groups"
            )
    return _SwappedScores(scores_by_measure, remarks)


class MentionIndex:
    """Finds the groups that a text names: by any of their names, also in the singular, in any case;
    in a name that ends in "people", another word for persons may stand in its place ("black
    women"). Of overlapping names, the longest counts."""

    def __init__(self, groups: Sequence[Group]) -> None:
        own_forms: dict[str, set[str]] = {}
        derived_forms: dict[str, set[str]] = {}
        for group in groups:
            for name in (group.name, *group.variants):
                own_forms.setdefault(normalise(name), set()).add(group.id)
                for form in _name_forms(name):
                    derived_forms.setdefault(normalise(form), set()).add(group.id)
        self._groups_by_form = (
            derived_forms | own_forms
        )  # a group's own name wins over a form derived from another's
        self._names = {group.id: group.name for group in groups}
        longest_first = sorted(self._groups_by_form, key=lambda form: (-len(form), form))
        any_name = "|".join(map(_spaced_pattern, longest_first)) or r"(?!)"  # which matches nothing
        self._names_of_all = re.compile(rf"(?<![\w-])(?:{any_name})(?![\w-])", re.IGNORECASE)
        self._pattern = self._names_of_all if len(groups) > 1 else None

    def __call__(self, text: str) -> Iterator[set[str]]:
        """The ids of the groups of each name in a text; several if they share the name."""
        if self._pattern is not None:
            for match in self._pattern.finditer(text):
                # "African-Americans" is "African Americans"; a name may also be written with the
                # hyphen.
                yield self._groups_by_form.get(normalise(match[0].replace("-", " ")), set()) | (
                    self._groups_by_form.get(normalise(match[0]), set())
                )

    def mask_names(self, text: str, word: str) -> str:
        """The text with this word in the place of every name of a group."""
        return self._names_of_all.sub(lambda _: word, text)

    def other_groups(self, triple: TripleView | Triple) -> tuple[str, ...]:
        """The names of the groups, other than its own, that a statement names in its predicate or
        object."""
        other_names: dict[str, None] = {}
        for ids in self(f"{triple.predicate} {triple.object}"):
            if triple.group_id not in ids:
                other_names |= dict.fromkeys(sorted(self._names[id] for id in ids))
        return tuple(other_names)


def _name_forms(name: str) -> Iterable[str]:
    """A name in the singular, and with other words for people."""
    head, _, last_word = name.rpartition(" ")
    lowered, prefix = last_word.lower(), f"{head} " if head else ""
    if lowered in ("men", "women"):
        yield f"{prefix}{last_word[:-2]}an"
    elif lowered == "people" and head:
        yield f"{head}s"
        for person in sorted(PERSON_WORDS - {"people"}):
            yield f"{head} {person}"
    elif lowered.endswith("s") and len(last_word) > 3:
        yield name[:-1]


def _spaced_pattern(form: str) -> str:
    return r"[\s-]+".join(re.escape(part) for part in re.split(r"[\s-]+", form) if part)
