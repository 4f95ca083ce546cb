"""Exhibits of forced choices: how often a model takes a statement to be about each group, and the
statements that it takes to be about one group more than others."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from kgbias.graph.types import ChosenEdge, node_id, triple_id
from kgbias.io.text import format_p_value
from kgbias.probe.choice.result import share_over_statements
from kgbias.report.figures import share_bars
from kgbias.report.run_data import RunData
from kgbias.report.tables import Exhibit, Table, cells
from kgbias.stats.inference import Estimate

TABLED = 25  # statements in one table


def choices(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The exhibits of each model that was made to choose."""
    for number, (choosing, edges) in enumerate(data.choices):
        found = choosing.record.get("categories", {}).get(category)
        groups = {g.id for g in data.groups(category)}
        own = [e for e in edges if e.group_id in groups]
        if found and own:
            model, end = choosing.model.title, f"-{number}" if number else ""
            yield _shares(data, model, found, own, category, f"{place}-choices{end}")
            yield from _telling(data, model, own, category, f"{place}-choices-statements{end}")


def _shares(
    data: RunData,
    model: str,
    found: Mapping[str, Any],
    edges: Sequence[ChosenEdge],
    category: str,
    key: str,
) -> Exhibit:
    """How often each group was chosen, over all statements and over those said about it."""
    options, answers = found["options"], found["answers"]
    said = {t.id for t in data.triples}
    shares, rows = [], []
    for g in data.groups(category):
        of_group = [e for e in edges if e.group_id == g.id]
        if not of_group:
            continue
        base = _estimate(found["base"][g.name])
        own = [e for e in of_group if triple_id(g.id, e.predicate_id, e.object_id) in said]
        of_own = share_over_statements(_counts(own, "chosen"), _counts(own, "answered"))
        telling = str(sum(e.is_chosen_more for e in of_group))
        shares.append((g.name, base))
        rows.append(
            [g.name, str(base.n), *_percent(base), str(len(own)), *_percent(of_own), telling]
        )
    lost = ", ".join(f"{n} {name}" for name, n in answers.items() if name != "read" and n)
    own_chosen, by_base = _estimate(found["own"]), found["own_expected"]
    return Exhibit(
        key, category, f"How often {model} takes a statement to be about each group", "",
        partial(share_bars, shares, "answers that chose the group", chance=1 / options),
        Table(
            key, f"Forced choices of {model} among {category}: the share of answers that named a "
            "group, out of those to questions that offered it.",
            ("Group", "n", "chosen", "95% interval", "own statements", "of them chosen",
             "95% interval", "telling"),
            rows,
            f"{found['statements']} statements, at most {options} groups at a time in balanced "
            f"orders, so that chance is {100 / options:.0f}% (dashed); {answers.get('read', 0)} "
            f"answers were read{f' and {lost}' if lost else ''}. Intervals are over statements. "
            "Own statements: those that the run said about the group. Over all groups, "
            f"{' '.join(_with_interval(own_chosen))} of the answers named one that the statement "
            f"was said about; by the base rates alone, {100 * by_base:.0f}%. Telling: statements "
            f"that the group was chosen for more often than for others. {_told(own, found)}",
        ),
    )  # fmt: skip


def _telling(
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
            names[e.group_id], texts[e.predicate_id, e.object_id], str(e.names), str(e.answered),
            *_percent(_of(e, "share", "low", "high")),
            *cells(_of(e, "lift", "lift_low", "lift_high"), "+.2f"), format_p_value(e.q_value or 0.0),
        ]
        for e in telling[:TABLED]
    ]  # fmt: skip
    left = f" {len(telling) - TABLED} more are not listed." if len(telling) > TABLED else ""
    yield Exhibit(
        key, category, f"Statements for which {model} chose a group more often", "", None,
        Table(
            key, f"Statements for which {model} chose a group of {category} more often than for "
            "other statements.",
            (
                "Group", "statement", "names", "n", "chosen", "95% interval", "lift",
                "95% interval", "q",
            ),
            rows,
            "Greatest lift first, in bits. Shares have Wilson intervals. "
            f"{_tested(edges)}{left}",
        ),
    )  # fmt: skip


def _told(edges: Sequence[ChosenEdge], found: Mapping[str, Any]) -> str:
    """How it was tested, and how often the test finds something when there is nothing."""
    floor = found.get("floor")
    if not floor:
        return _tested(edges)
    return (
        f"{_tested(edges)} With names shuffled among the groups, {floor['dealt']:g} of "
        f"{floor['tested']} pairs are telling; for groups with several names, {floor['more']} are."
    )


def _tested(edges: Sequence[ChosenEdge]) -> str:
    """What is tested for groups with several names, and for those with one."""
    several = (
        "For groups with several names, lift and p are over the names: p is against a lift of at "
        "most half a bit, corrected over the group's statements."
    )
    one = (
        "For groups with one name, the lift is over its share for all statements, and p is from "
        "Fisher's exact test, corrected over all statements: what is found holds for this name."
    )
    counts = {e.names > 1 for e in edges}
    return " ".join(text for text, there in ((several, True), (one, False)) if there in counts)


def _counts(edges: Sequence[ChosenEdge], name: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
    return np.array([getattr(e, name) for e in edges], dtype=np.int64)


def _of(e: ChosenEdge, value: str, low: str, high: str) -> Estimate:
    ends = {"value": getattr(e, value), "low": getattr(e, low), "high": getattr(e, high)}
    return _estimate(ends | {"n": e.answered})


def _estimate(found: Mapping[str, Any]) -> Estimate:
    """A figure as the store keeps it: None for NaN."""
    value, low, high = (
        math.nan if found[name] is None else found[name] for name in ("value", "low", "high")
    )
    return Estimate(value, low, high, found["n"])


def _percent(e: Estimate) -> list[str]:
    if math.isnan(e.value):
        return ["-", "-"]
    between = f"{100 * e.low:.1f} to {100 * e.high:.1f}%" if e.has_interval else "-"
    return [f"{100 * e.value:.1f}%", between]


def _with_interval(e: Estimate) -> list[str]:
    if math.isnan(e.value):
        return ["none"]
    between = [f"[{100 * e.low:.0f} to {100 * e.high:.0f}]"] if e.has_interval else []
    return [f"{100 * e.value:.0f}%", *between]
