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
from typing import Any, NamedTuple

from kgbias.explore.columns import ColumnBlock
from kgbias.explore.statements import RowIndex, StatementTable
from kgbias.graph.store import StoredRun
from kgbias.graph.types import ChoiceRun, ChosenEdge, Group, Triple, statement_id
from kgbias.io.text import shorten, storable

MAX_STATEMENTS_PER_GROUP = 20  # statements that one group was chosen for
_MAX_DISTINCT_ANSWERS = 8  # that named one group, or none
_MAX_ANSWER_CHARACTERS = 300  # characters of an answer
_BATCH_KEYS = 5_000  # answers read at once
_FIGURE_NAMES = ("share", "low", "high", "base", "lift")


class _EdgePlace(NamedTuple):
    """The numbers of an edge's ends in the page; -1 for what it has no statement of."""

    predicate: int
    object: int
    group: int

    @property
    def statement(self) -> tuple[int, int]:
        return self.predicate, self.object


def build_block(table: StatementTable) -> ColumnBlock:
    """The choices about the statements of the page, by each of `describe_choice_models`: for each
    statement, in order of predicate and object, a list as JSON text."""
    block = ColumnBlock()
    for number, (run, choice_run) in enumerate(_iter_choice_runs(table)):
        edges = [(_edge_place(table, e), e) for e in run.find_all(ChosenEdge, asking=choice_run)]
        edges = sorted((row for row in edges if min(row[0]) >= 0), key=lambda row: row[0])
        answers = _read_answers(run, [e for _, e in edges])
        places, texts = [], []
        for place, statement_edges in groupby(edges, key=lambda row: row[0].statement):
            places.append(place)
            choices = _choices_by_category(
                table, run, choice_run, [e for _, e in statement_edges], answers
            )
            texts.append(json.dumps(choices))
        block.add_numbers(f"choice{number}.predicate", [p for p, _ in places])
        block.add_numbers(f"choice{number}.object", [o for _, o in places])
        block.add_texts(f"choice{number}.rows", texts)
    return block


def describe_choice_models(table: StatementTable) -> list[dict[str, Any]]:
    """Each model that was made to choose: how often it chose each group, and the statements that it
    chose a group for more often than for other statements, greatest lift first."""
    return [
        {
            "run": run.name,
            "model": choice_run.model.title,
            "base": _base_rates(table, run.groups, choice_run.record.get("categories", {})),
            "telling": _top_statements(table, run.find_all(ChosenEdge, asking=choice_run)),
        }
        for run, choice_run in _iter_choice_runs(table)
    ]


def read_choices(row_index: RowIndex, run: StoredRun, triple: Triple) -> list[dict[str, Any]]:
    """What each model that was made to choose chose for one statement, read from the store."""
    choices = []
    for choice_run in run.find_all(ChoiceRun):
        edges = run.find_all(
            ChosenEdge,
            asking=choice_run,
            statement_id=statement_id(triple.predicate_id, triple.object_id),
        )
        edges = [e for e in edges if row_index.groups.find(e.group_id) >= 0]
        choices += _choices_by_category(
            row_index, run, choice_run, edges, _read_answers(run, edges)
        )
    return choices


def _iter_choice_runs(row_index: RowIndex) -> Iterator[tuple[StoredRun, ChoiceRun]]:
    return ((run, choice_run) for run in row_index.runs for choice_run in run.find_all(ChoiceRun))


def _edge_place(table: StatementTable, edge: ChosenEdge) -> _EdgePlace:
    return _EdgePlace(
        table.predicates.find(edge.predicate_id),
        table.objects.find(edge.object_id),
        table.groups.find(edge.group_id),
    )


def _read_answers(run: StoredRun, edges: Sequence[ChosenEdge]) -> dict[str, str]:
    """The raw answers to the questions about these edges, by key."""
    keys = list(dict.fromkeys(key for e in edges for key in (*e.answers, *e.others)))
    texts: dict[str, str] = {}
    for start in range(0, len(keys), _BATCH_KEYS):
        for key, answer in run.store.answers(keys[start : start + _BATCH_KEYS]).items():
            texts[key] = storable(shorten(answer.text.strip(), _MAX_ANSWER_CHARACTERS))
    return texts


def _choices_by_category(
    row_index: RowIndex,
    run: StoredRun,
    choice_run: ChoiceRun,
    edges: Sequence[ChosenEdge],
    answers: Mapping[str, str],
) -> list[dict[str, Any]]:
    """The choices about one statement, category by category."""
    category = {g.id: g.category for g in run.groups}
    edges_by_category: dict[str, list[ChosenEdge]] = {}
    for e in edges:
        edges_by_category.setdefault(category.get(e.group_id, ""), []).append(e)
    return [
        _category_choice(row_index, choice_run, name, category_edges, answers)
        for name, category_edges in sorted(edges_by_category.items())
    ]


def _category_choice(
    row_index: RowIndex,
    choice_run: ChoiceRun,
    category: str,
    edges: Sequence[ChosenEdge],
    answers: Mapping[str, str],
) -> dict[str, Any]:
    """The choice among the groups of one category, the group chosen most often first."""
    naming_keys = {key for edge in edges for key in edge.answers}
    unread = dict.fromkeys(key for edge in edges for key in edge.others if key not in naming_keys)
    return {
        "model": choice_run.model.title,
        "category": category,
        "options": min(int(dict(choice_run.settings).get("options", len(edges))), len(edges)),
        "rows": [
            {
                "group": row_index.groups.find(edge.group_id),
                "chosen": edge.chosen,
                "answered": edge.answered,
                **{name: _round(getattr(edge, name)) for name in _FIGURE_NAMES},
                "q": edge.q_value,
                "names": edge.names,
                "answers": _count_answers(edge.answers, answers),
            }
            for edge in sorted(
                edges, key=lambda edge: (-(edge.share or 0), row_index.groups.find(edge.group_id))
            )
        ],
        "unread": _count_answers(unread, answers),
    }


def _count_answers(
    keys: Sequence[str] | Mapping[str, Any], answers: Mapping[str, str]
) -> list[list[Any]]:
    """The most frequent distinct answers, and how often each came."""
    counts = Counter(answers[key] for key in keys if key in answers)
    return [[text, count] for text, count in counts.most_common(_MAX_DISTINCT_ANSWERS)]


def _base_rates(
    row_index: RowIndex, groups: Sequence[Group], categories: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """How often each group was chosen over all statements."""
    rates = []
    for group in groups:
        category = categories.get(group.category)
        number = row_index.groups.find(group.id)
        if category and group.name in category["base"] and number >= 0:
            figures = {k: _round(v) for k, v in category["base"][group.name].items()}
            rates.append({"group": number, "options": category["options"], **figures})
    return rates


def _top_statements(table: StatementTable, edges: Sequence[ChosenEdge]) -> list[dict[str, Any]]:
    """The statements for which each group was chosen more often than for others."""
    by_group: dict[int, list[tuple[ChosenEdge, _EdgePlace]]] = {}
    for edge in edges:
        place = _edge_place(table, edge)
        if min(place) >= 0 and edge.is_chosen_more:
            by_group.setdefault(place.group, []).append((edge, place))
    records = []
    for group, group_edges in sorted(by_group.items()):
        group_edges.sort(key=lambda row: (-(row[0].lift or 0), row[1]))  # the greatest lift first
        for edge, place in group_edges[:MAX_STATEMENTS_PER_GROUP]:
            figures = {name: _round(getattr(edge, name)) for name in _FIGURE_NAMES}
            records.append(
                {
                    "group": group,
                    "predicate": place.predicate,
                    "object": place.object,
                    "answered": edge.answered,
                    **figures,
                }
            )
    return records


def _round(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else round(value, 4)
