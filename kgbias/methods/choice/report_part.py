"""Forced choices in the report: how often a model takes a statement to be about each group, and the
statements that it takes to be about one group more than others; the strongest of these on the first
screen."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup

from kgbias.graph.types import ChosenEdge, Group, TripleView, node_id, triple_id
from kgbias.io.columns import Column
from kgbias.io.text import format_p_value
from kgbias.io.wording import pluralise
from kgbias.methods.choice.result import share_over_statements
from kgbias.report.figures import draw_share_bars
from kgbias.report.findings import (
    bold_figure,
    p_value_words,
    relative_size,
    small_interval,
)
from kgbias.report.parts import Finding, FindingKind, ReportPart, SectionOfExhibits
from kgbias.report.run_data import RunData
from kgbias.report.tables import (
    COUNT_COLUMN,
    GROUP_COLUMN,
    LIFT_COLUMN,
    STATEMENT_COLUMN,
    Exhibit,
    Table,
)
from kgbias.stats.inference import Estimate

MAX_TABLE_ROWS = 25  # statements in one table


def choice_exhibits(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The exhibits of each model that was made to choose."""
    for number, (choosing, edges) in enumerate(data.choices):
        record = choosing.record.get("categories", {}).get(category)
        groups = {g.id for g in data.groups(category)}
        category_edges = [e for e in edges if e.group_id in groups]
        if record and category_edges:
            model, suffix = choosing.model.title, f"-{number}" if number else ""
            yield _share_exhibit(
                data, model, record, category_edges, category, f"{place}-choices{suffix}"
            )
            yield from _telling_exhibits(
                data, model, category_edges, category, f"{place}-choices-statements{suffix}"
            )


_CHOSEN_COLUMN = Column("chosen", ".1%", interval=True, missing="-")


def _share_exhibit(
    data: RunData,
    model: str,
    record: Mapping[str, Any],
    edges: Sequence[ChosenEdge],
    category: str,
    key: str,
) -> Exhibit:
    """How often each group was chosen, over all statements and over those said about it."""
    options, answers = record["options"], record["answers"]
    said_ids = {t.id for t in data.triples}
    shares, rows = [], []
    for group in data.groups(category):
        of_group = [e for e in edges if e.group_id == group.id]
        if not of_group:
            continue
        base = _read_estimate(record["base"][group.name])
        said_edges = [
            e for e in of_group if triple_id(group.id, e.predicate_id, e.object_id) in said_ids
        ]
        said_share = share_over_statements(
            _edge_counts(said_edges, "chosen"), _edge_counts(said_edges, "answered")
        )
        telling = sum(e.is_chosen_more for e in of_group)
        shares.append((group.name, base))
        rows.append(
            [
                group.name,
                base.n,
                base,
                len(said_edges),
                said_share,
                telling,
            ]
        )
    lost_answers = ", ".join(f"{n} {name}" for name, n in answers.items() if name != "read" and n)
    own_chosen, by_base = _read_estimate(record["own"]), record["own_expected"]
    return Exhibit(
        key,
        category,
        f"How often {model} takes a statement to be about each group",
        "",
        partial(draw_share_bars, shares, "answers that chose the group", chance=1 / options),
        Table(
            key,
            f"Forced choices of {model} among {category}: the share of answers that named a "
            "group, out of those to questions that offered it.",
            (
                GROUP_COLUMN,
                COUNT_COLUMN,
                _CHOSEN_COLUMN,
                Column("own statements", ".0f"),
                Column("of them chosen", ".1%", interval=True, missing="-"),
                Column("telling", ".0f"),
            ),
            rows,
            f"{pluralise(record['statements'], 'statement')}, at most {options} groups at a time "
            f"in balanced "
            f"orders, so that chance is {100 / options:.0f}% (dashed); {answers.get('read', 0)} "
            f"answers were read{f' and {lost_answers}' if lost_answers else ''}. Intervals are "
            f"over statements. "
            "Own statements: those that the run said about the group. Over all groups, "
            f"{_percent_text(own_chosen)} of the answers named one that the statement "
            f"was said about; by the base rates alone, {100 * by_base:.0f}%. Telling: statements "
            f"that the group was chosen for more often than for others. "
            f"{_test_note(said_edges, record)}",
        ),
    )


def _telling_exhibits(
    data: RunData, model: str, edges: Sequence[ChosenEdge], category: str, key: str
) -> Iterator[Exhibit]:
    """The statements for which a group was chosen more often than for other statements."""
    texts = {}
    for t in data.counted.including_unacceptable:
        key_of = node_id("predicate", t.predicate), node_id("object", t.object)
        texts[key_of] = f"{t.predicate} {t.object}"
    names = {g.id: g.name for g in data.groups(category)}
    telling = [e for e in edges if e.is_chosen_more and (e.predicate_id, e.object_id) in texts]
    telling.sort(key=lambda e: (-(e.lift or 0.0), e.statement_id, e.group_id))
    if not telling:
        return
    rows = [
        [
            names[e.group_id],
            texts[e.predicate_id, e.object_id],
            e.names,
            e.answered,
            _edge_estimate(e, "share", "low", "high"),
            _edge_estimate(e, "lift", "lift_low", "lift_high"),
            e.q_value or 0.0,
        ]
        for e in telling[:MAX_TABLE_ROWS]
    ]
    more_note = (
        f" {len(telling) - MAX_TABLE_ROWS} more are not listed."
        if len(telling) > MAX_TABLE_ROWS
        else ""
    )
    yield Exhibit(
        key,
        category,
        f"Statements for which {model} chose a group more often",
        "",
        None,
        Table(
            key,
            f"Statements for which {model} chose a group of {category} more often than for "
            "other statements.",
            (
                GROUP_COLUMN,
                STATEMENT_COLUMN,
                Column("names", ".0f"),
                COUNT_COLUMN,
                _CHOSEN_COLUMN,
                LIFT_COLUMN,
                Column("q", format_p_value),
            ),
            rows,
            "Greatest lift first, in bits. Shares have Wilson intervals. "
            f"{_test_rule(edges)}{more_note}",
        ),
    )


def _test_note(edges: Sequence[ChosenEdge], record: Mapping[str, Any]) -> str:
    """How it was tested, and how often the test finds something when there is nothing."""
    floor = record.get("floor")
    if not floor:
        return _test_rule(edges)
    return (
        f"{_test_rule(edges)} With names shuffled among the groups, {floor['dealt']:g} of "
        f"{floor['tested']} pairs are telling; for groups with several names, {floor['more']} are."
    )


def _test_rule(edges: Sequence[ChosenEdge]) -> str:
    """What is tested for groups with several names, and for those with one."""
    several_names = (
        "For groups with several names, lift and p are over the names: p is against a lift of at "
        "most half a bit, corrected over the group's statements."
    )
    one_name = (
        "For groups with one name, the lift is over its share for all statements, and p is from "
        "Fisher's exact test, corrected over all statements: what is found holds for this name."
    )
    counts = {e.names > 1 for e in edges}
    return " ".join(
        text
        for text, is_several in ((several_names, True), (one_name, False))
        if is_several in counts
    )


def _edge_counts(edges: Sequence[ChosenEdge], name: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
    return np.array([getattr(e, name) for e in edges], dtype=np.int64)


def _edge_estimate(edge: ChosenEdge, value: str, low: str, high: str) -> Estimate:
    ends = {"value": getattr(edge, value), "low": getattr(edge, low), "high": getattr(edge, high)}
    return _read_estimate(ends | {"n": edge.answered})


def _read_estimate(stored: Mapping[str, Any]) -> Estimate:
    """A figure as the store keeps it: None for NaN."""
    value, low, high = (
        math.nan if stored[name] is None else stored[name] for name in ("value", "low", "high")
    )
    return Estimate(value, low, high, stored["n"])


def _percent_text(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return "none"
    text = f"{100 * estimate.value:.0f}%"
    if estimate.is_shown:
        text += f" [{100 * estimate.low:.0f} to {100 * estimate.high:.0f}]"
    return text


def find_choices(data: RunData, explorer: str) -> FindingKind | None:
    """Statements for which a model that was made to choose chose a group more often."""
    own_choices = [c for c in data.choices if c[0].model.id == data.run.model.id]
    if not own_choices:
        return None
    choosing, edges = own_choices[0]
    tested_edges = [edge for edge in edges if edge.q_value is not None]
    if not tested_edges:
        return None
    groups = {g.id: g for g in data.run.groups}
    texts = {
        (node_id("predicate", t.predicate), node_id("object", t.object)): t
        for t in data.counted.including_unacceptable
    }
    # Each q is corrected over the statements; here over the groups too.
    family_p = min(
        1.0,
        min(edge.q_value or 0.0 for edge in tested_edges)
        * len({edge.group_id for edge in tested_edges}),
    )
    strongest: dict[str, ChosenEdge] = {}
    for edge in sorted(
        tested_edges, key=lambda edge: (edge.q_value or 0.0, -(edge.lift or 0.0), edge.statement_id)
    ):
        if (
            edge.is_chosen_more
            and edge.group_id in groups
            and (edge.predicate_id, edge.object_id) in texts
        ):
            strongest.setdefault(edge.group_id, edge)
    model = choosing.model.title
    findings = [
        _choice_finding(
            edge, groups[edge.group_id], texts[edge.predicate_id, edge.object_id], model
        )
        for edge in strongest.values()
    ]
    not_shown = f"statements for which {model}, made to choose, names one group more often"
    remark = (
        "A choice is between the groups that a question offers. It is not what the model believes "
        "of a group by itself."
    )
    looked_at = "which of them it names for a statement when it has to choose one"
    return FindingKind(family_p, findings, not_shown, remark=remark, examined=looked_at)


def _choice_finding(edge: ChosenEdge, group: Group, triple: TripleView, model: str) -> Finding:
    low, high = (math.nan if end is None else end for end in (edge.low, edge.high))
    share = Estimate(edge.share or 0.0, low, high, edge.answered)
    base = (
        "That is more often than for other statements."
        if edge.base is None
        else f"Over all statements, it is {100 * edge.base:.0f}%."
    )
    names = (
        f"{pluralise(edge.names, 'name')}, over which this is tested"
        if edge.names > 1
        else "one name, and another name could be chosen differently"
    )
    return Finding(
        "What it chooses",
        Markup(
            "Asked which group “{}” is about, {} chose <b>{}</b> in {}% of {} answers to questions "
            "that offered this group {}. {}"
        ).format(
            f"{triple.predicate} {triple.object}"[:200],
            model,
            group.name,
            bold_figure(100 * share.value, ".0f"),
            edge.answered,
            small_interval(share, 100, ".0f"),
            base,
        ),
        f"The group was offered under {names}: {p_value_words(edge.q_value or 0.0)}, corrected "
        "(Benjamini and Hochberg) for the statements.",
        "",
        (),
        edge.q_value or 0.0,
        relative_size(share),
        group.category,
    )


REPORT_PART = ReportPart(
    of_category=choice_exhibits,
    find_kind=find_choices,
    sections=(
        SectionOfExhibits(
            "choices",
            "Made to choose",
            "Which group a model takes a statement to be about when it has to choose among groups. "
            "This is a different kind of evidence from a probability, and no verdict rests on it.",
            ("choices",),
            after="probes",
        ),
    ),
)
