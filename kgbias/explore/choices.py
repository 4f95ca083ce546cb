"""Forced choices in the page: which groups a model takes the statements to be about.

The page and a server give a choice among the groups of a category in the same form:
{model, category, options, rows: [{group, chosen, answered, share, low, high, base, lift, p, names,
answers}], unread}. `answers` and `unread` are raw answers, each with how often it came: those that
named the group, and those that named none.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from kgbias.explore.columns import Block
from kgbias.explore.statements import Placed, Statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import ChoiceRun, ChosenEdge, Group, Triple, statement_id
from kgbias.io.text import shorten, storable

EACH = 20  # statements that one group was chosen for
_ANSWERS = 8  # different answers that named one group
_LONGEST = 300  # characters of an answer
_BATCH = 5_000
_FIGURES = ("share", "low", "high", "base", "lift")


def block(found: Statements) -> Block:
    """The choices about the statements of the page, by each of `choosers`: for each statement, in
    order of predicate and object, a list as JSON text."""
    block = Block()
    for number, (run, choosing) in enumerate(_choosings(found)):
        edges = [(_place(found, e), e) for e in run.choices(choosing.id)]
        edges = sorted((row for row in edges if min(row[0]) >= 0), key=lambda row: row[0])
        said = _answers(run, [e for _, e in edges])
        places, texts = [], []
        for place, own in groupby(edges, key=lambda row: row[0][:2]):
            places.append(place)
            told = _told(found, run, choosing, [e for _, e in own], said)
            texts.append(json.dumps(told))
        block.numbers(f"choice{number}.predicate", [p for p, _ in places])
        block.numbers(f"choice{number}.object", [o for _, o in places])
        block.texts(f"choice{number}.told", texts)
    return block


def choosers(found: Statements) -> list[dict[str, Any]]:
    """Each model that was made to choose: how often it chose each group, and the statements that it
    chose a group for more often than for other statements, greatest lift first."""
    return [
        {
            "run": run.name,
            "model": choosing.model.title,
            "base": _base(found, run.groups, choosing.record.get("categories", {})),
            "telling": _telling(found, run.choices(choosing.id)),
        }
        for run, choosing in _choosings(found)
    ]


def choices_of(found: Placed, run: StoredRun, said: Triple) -> list[dict[str, Any]]:
    """What each model that was made to choose chose for one statement, read from the store."""
    told = []
    for choosing in run.choice_runs():
        edges = run.choices(choosing.id, statement_id(said.predicate_id, said.object_id))
        edges = [e for e in edges if found.groups.get(e.group_id) >= 0]
        told += _told(found, run, choosing, edges, _answers(run, edges))
    return told


def _choosings(found: Placed) -> Iterator[tuple[StoredRun, ChoiceRun]]:
    return ((run, choosing) for run in found.runs for choosing in run.choice_runs())


def _place(found: Statements, e: ChosenEdge) -> tuple[int, int, int]:
    return (
        found.predicates.get(e.predicate_id),
        found.objects.get(e.object_id),
        found.groups.get(e.group_id),
    )


def _answers(run: StoredRun, edges: Sequence[ChosenEdge]) -> dict[str, str]:
    """The raw answers to the questions about these edges, by key."""
    keys = list(dict.fromkeys(key for e in edges for key in (*e.answers, *e.others)))
    told: dict[str, str] = {}
    for first in range(0, len(keys), _BATCH):
        for key, answer in run.store.answers(keys[first : first + _BATCH]).items():
            told[key] = storable(shorten(answer.text.strip(), _LONGEST))
    return told


def _told(
    found: Placed,
    run: StoredRun,
    choosing: ChoiceRun,
    edges: Sequence[ChosenEdge],
    said: Mapping[str, str],
) -> list[dict[str, Any]]:
    """The choices about one statement, category by category."""
    category = {g.id: g.category for g in run.groups}
    parts: dict[str, list[ChosenEdge]] = {}
    for e in edges:
        parts.setdefault(category.get(e.group_id, ""), []).append(e)
    return [_choice(found, choosing, name, own, said) for name, own in sorted(parts.items())]


def _choice(
    found: Placed,
    choosing: ChoiceRun,
    category: str,
    edges: Sequence[ChosenEdge],
    said: Mapping[str, str],
) -> dict[str, Any]:
    """The choice among the groups of one category, the group chosen most often first."""
    named = {key for e in edges for key in e.answers}
    unread = dict.fromkeys(key for e in edges for key in e.others if key not in named)
    return {
        "model": choosing.model.title,
        "category": category,
        "options": min(int(dict(choosing.settings).get("options", len(edges))), len(edges)),
        "rows": [
            {
                "group": found.groups.get(e.group_id),
                "chosen": e.chosen,
                "answered": e.answered,
                **{name: _rounded(getattr(e, name)) for name in _FIGURES},
                "q": e.q_value,
                "names": e.names,
                "answers": _often(e.answers, said),
            }
            for e in sorted(edges, key=lambda e: (-(e.share or 0), found.groups.get(e.group_id)))
        ],
        "unread": _often(unread, said),
    }


def _often(keys: Sequence[str] | Mapping[str, Any], said: Mapping[str, str]) -> list[list[Any]]:
    """The most frequent distinct answers, and how often each came."""
    often = Counter(said[key] for key in keys if key in said)
    return [[text, count] for text, count in often.most_common(_ANSWERS)]


def _base(
    found: Placed, groups: Sequence[Group], categories: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """How often each group was chosen over all statements."""
    return [
        {
            "group": number,
            "options": category["options"],
            **{k: _rounded(v) for k, v in category["base"][g.name].items()},
        }
        for g in groups
        if (category := categories.get(g.category)) and g.name in category["base"]
        if (number := found.groups.get(g.id)) >= 0
    ]


def _telling(found: Statements, edges: Sequence[ChosenEdge]) -> list[dict[str, Any]]:
    """The statements for which each group was chosen more often than for others."""
    told: dict[int, list[tuple[ChosenEdge, tuple[int, int, int]]]] = {}
    for e in edges:
        place = _place(found, e)
        if min(place) >= 0 and e.is_chosen_more:
            told.setdefault(place[2], []).append((e, place))
    return [
        {
            "group": group,
            "predicate": predicate,
            "object": thing,
            "answered": e.answered,
            **{name: _rounded(getattr(e, name)) for name in _FIGURES},
        }
        for group, own in sorted(told.items())
        for e, (predicate, thing, _) in sorted(own, key=lambda x: (-(x[0].lift or 0), x[1]))[:EACH]
    ]


def _rounded(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else round(value, 4)
