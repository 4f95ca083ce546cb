"""What counts when groups are compared: statements about their own group alone, scored whatever its
name.

A statement may be about a group other than its subject: "White people are better than black people"
harms black people. And a scorer may react to a name: it may find the same neutral statement more of
an attack with one group's name than with another's. So figures and tests of groups leave out
statements that name another group of the run; and if a scorer is not blind to names, they use its
scores of statements in which each name of the category stood in turn (`kgbias.measure.swapped`).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kgbias.graph.selection import OTHER, Counted
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, Metric, Score, Triple, TripleView
from kgbias.ids import content_id, normalise
from kgbias.io.text import spoken_name
from kgbias.language.words import PERSON_WORDS

SWAPPED = "swapped@1"
MOST_NAMES = 7
"""How many names of a category stand in a statement in turn."""
TOO_DEAR = ("llm:", "openai-moderation")
"""Prefixes of the names of scorers that cost too much to be asked about every name."""
_ONE_GROUP = 2  # fewer groups leave nothing to compare


def swapped(metric: Metric, groups: Sequence[Group]) -> Metric:
    """The metric whose score of a statement is the mean over the names of its category, from a
    run's groups."""
    names = [(category, *own) for category, own in names_of(groups).items()]
    key = content_id("names", *("\n".join(parts) for parts in names))
    return replace(metric, verbaliser=f"{SWAPPED}:{key}")


def is_swapped(metric: Metric) -> bool:
    """Whether the scores of a metric are such means."""
    return metric.verbaliser.startswith(SWAPPED)


def names_of(groups: Sequence[Group]) -> dict[str, tuple[str, ...]]:
    """The names that stand in turn in the statements of each category: those of its groups, at most
    seven. Categories of one group are left out."""
    found: dict[str, list[str]] = {}
    for group in groups:
        found.setdefault(group.category, []).append(group.name)
    return {
        category: tuple(names[:MOST_NAMES])
        for category, names in found.items()
        if len(names) >= _ONE_GROUP
    }


def between(
    run: StoredRun,
    counted: Counted,
    metrics: Mapping[str, Metric] | None = None,
    scorers: Sequence[Metric] | None = None,
) -> Counted:
    """The statements of a run that count when its groups are compared. Its `note` and `remarks` say
    what else is left out, and what is scored differently. `metrics` and `scorers` are the run's, if
    they were read already."""
    current = run.metrics() if metrics is None else metrics
    there = set(run.scorers() if scorers is None else scorers)
    scores, remarks = _scores_without_names(run, counted.triples, current, there)
    named, kept = Named(run.groups), []
    out = dict(counted.out)
    for t in counted.triples:
        if named.others(t):
            key = (t.arm, t.group_id, OTHER)
            out[key] = out.get(key, 0) + t.count
            continue
        own = {name: by[t.id] for name, by in scores.items() if t.id in by}
        kept.append(replace(t, scores={**t.scores, **own}) if own else t)
    return replace(counted, triples=kept, out=out, remarks=tuple(remarks))


def too_dear(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """The measures whose scorer may react to a name but costs too much to be asked about every
    name, each with a line that says so. Groups are not tested by them."""
    return {
        measure: f"{spoken_name(measure)} by {metric.scorer} is left out of the tests of "
        "groups: it may react to a group's name, and asking it about every name would cost too much"
        for measure, metric in metrics.items()
        if metric.scorer.startswith(TOO_DEAR)
    }


def _scores_without_names(
    run: StoredRun,
    triples: Sequence[TripleView],
    current: Mapping[str, Metric],
    there: Collection[Metric],
) -> tuple[dict[str, Mapping[str, Score]], list[str]]:
    """By measure, the scores of the triples that were scored with every name; and a line for each
    such measure."""
    found: dict[str, Mapping[str, Score]] = {}
    remarks = []
    for measure, metric in current.items():
        if (own := swapped(metric, run.groups)) in there:
            found[measure] = run.store.scores(own, sorted({t.id for t in triples}))
            remarks.append(
                f"{spoken_name(measure)} by {metric.scorer} reacts to a group's name: its "
                "scores here are means over the names of the category's groups"
            )
    return found, remarks


class Named:
    """Finds the groups that a text names: by any of their names, also in the singular, in any case;
    in a name that ends in "people", another word for persons may stand in its place ("black
    women"). Of overlapping names, the longest counts."""

    def __init__(self, groups: Sequence[Group]) -> None:
        own: dict[str, set[str]] = {}
        derived: dict[str, set[str]] = {}
        for group in groups:
            for name in (group.name, *group.variants):
                own.setdefault(normalise(name), set()).add(group.id)
                for form in _forms(name):
                    derived.setdefault(normalise(form), set()).add(group.id)
        self._groups = derived | own  # a group's own name wins over a form derived from another's
        self._names = {group.id: group.name for group in groups}
        longest_first = sorted(self._groups, key=lambda form: (-len(form), form))
        any_name = "|".join(map(_spaced, longest_first)) or r"(?!)"  # which matches nothing
        self._names_of_all = re.compile(rf"(?<![\w-])(?:{any_name})(?![\w-])", re.IGNORECASE)
        self._pattern = self._names_of_all if len(groups) > 1 else None

    def __call__(self, text: str) -> Iterator[set[str]]:
        """The ids of the groups of each name in a text; several if they share the name."""
        if self._pattern is not None:
            for match in self._pattern.finditer(text):
                yield self._groups.get(normalise(match[0].replace("-", " ")), set()) | (
                    self._groups.get(normalise(match[0]), set())
                )

    def masked(self, text: str, word: str) -> str:
        """The text with this word in the place of every name of a group."""
        return self._names_of_all.sub(lambda _: word, text)

    def others(self, triple: TripleView | Triple) -> tuple[str, ...]:
        """The names of the groups, other than its own, that a statement names in its predicate or
        object."""
        found: dict[str, None] = {}
        for ids in self(f"{triple.predicate} {triple.object}"):
            if triple.group_id not in ids:
                found |= dict.fromkeys(sorted(self._names[id] for id in ids))
        return tuple(found)


def _forms(name: str) -> Iterable[str]:
    """A name in the singular, and with other words for people."""
    head, _, last = name.rpartition(" ")
    low, before = last.lower(), f"{head} " if head else ""
    if low in ("men", "women"):
        yield f"{before}{last[:-2]}an"
    elif low == "people" and head:
        yield f"{head}s"
        for person in sorted(PERSON_WORDS - {"people"}):
            yield f"{head} {person}"
    elif low.endswith("s") and len(last) > 3:
        yield name[:-1]


def _spaced(form: str) -> str:
    return r"[\s-]+".join(re.escape(part) for part in re.split(r"[\s-]+", form) if part)
