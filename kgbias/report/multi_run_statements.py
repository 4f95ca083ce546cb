"""Exhibits of several runs beyond their measures: what each model finds probable, the topics of
each run, what two runs say about one group, and their statements in one table."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from kgbias.compare.paired_tests import ClusterSample, permutation_p_value
from kgbias.evidence import picture
from kgbias.graph.types import ProbedEdge, TripleView
from kgbias.io.columns import Column
from kgbias.io.drawing import COLUMN_INCHES, INK_COLOR, figure_style, make_subplots
from kgbias.io.text import format_p_value
from kgbias.measure.topics.run import ENTROPY_MEASURE
from kgbias.report.figures import shorten_name, topic_title
from kgbias.report.multi_run_data import MultiRunData
from kgbias.report.run_data import ArmData
from kgbias.report.tables import (
    COUNT_COLUMN,
    GROUP_COLUMN,
    SAID_COLUMN,
    STATEMENT_COLUMN,
    VERDICT_COLUMN,
    Cell,
    Exhibit,
    Table,
)
from kgbias.stats.inference import Estimate, Values, bootstrap_clusters, holm, proportion

PAGE_INCHES = 2 * COLUMN_INCHES + 0.3  # inches: both columns of a two-column paper
_ROW_INCHES = 0.2
Row = tuple[str, Sequence[Estimate | None]]
Statement = tuple[str, str]  # the ids of its predicate and object


def draw_panels(rows: Sequence[Row], runs: Sequence[str], label: str, *, scale: float = 1.0) -> Any:
    """A panel for each run, with groups in the same order and on the same scale, and 95% intervals.
    All have one colour, because no level is tested against 0."""
    with figure_style():
        figure, axes_grid = make_subplots(
            1,
            len(runs),
            sharex=True,
            sharey=True,
            squeeze=False,
            figsize=(
                COLUMN_INCHES if len(runs) < 3 else PAGE_INCHES,
                0.85 + _ROW_INCHES * max(2, len(rows)),
            ),
        )
        for axes, run, run_place in zip(axes_grid[0], runs, range(len(runs)), strict=True):
            axes.grid(True, axis="x")
            axes.set_axisbelow(True)
            axes.spines["left"].set_visible(False)
            axes.axvline(0, color=INK_COLOR, linewidth=0.6)
            for place, (_, estimates) in enumerate(rows):
                if (estimate := estimates[run_place]) is not None:
                    if estimate.has_interval:
                        axes.plot(
                            [scale * estimate.low, scale * estimate.high],
                            [place] * 2,
                            color=INK_COLOR,
                            linewidth=1.2,
                        )
                    axes.plot(scale * estimate.value, place, "o", color=INK_COLOR, markersize=3.5)
            axes.set_title(shorten_name(run, 22), fontsize=8)
        axes_grid[0][0].set_yticks(range(len(rows)), [shorten_name(name, 24) for name, _ in rows])
        axes_grid[0][0].set_ylim(-0.6, max(2, len(rows)) - 0.4)
        figure.supxlabel(label, fontsize=8)
        return figure


MIN_PAIRED_STATEMENTS = 20  # statements that two models were both asked about, to compare them on


# ---- probable ----
@dataclass(frozen=True, slots=True)
class LikeliestGroups:
    """The group that a model finds likeliest before each statement, out of the same groups."""

    run: str
    model: str
    likeliest: Mapping[Statement, str]  # the group's id


def find_likeliest(side: ArmData, groups: Sequence[str]) -> LikeliestGroups | None:
    """What the probes of a run say about these groups, by its own model or else the first that was
    asked; None if none was, or if it was asked about other groups of the category too: ranks among
    others mean something else."""
    probes = side.run_data.probes
    if not probes:
        return None
    probing, edges = next(((p, e) for p, e in probes if p.model == side.run.model), probes[0])
    category = {g.id: g.category for g in side.run.groups}
    category_groups = {id for id, name in category.items() if name == category.get(groups[0])}
    by_statement: dict[Statement, list[ProbedEdge]] = defaultdict(list)
    for edge in edges:
        if edge.group_id in category_groups:
            by_statement[edge.predicate_id, edge.object_id].append(edge)
    asked_groups = {e.group_id for rows in by_statement.values() for e in rows}
    if asked_groups != set(groups):
        return None
    likeliest = {
        statement: min(rows, key=lambda e: e.rank).group_id
        for statement, rows in by_statement.items()
        if len(rows) == len(groups)
    }
    return LikeliestGroups(side.run.name, probing.model.title, likeliest) if likeliest else None


def likeliest_group_exhibits(data: MultiRunData, category: str, place: str) -> Iterator[Exhibit]:
    """How often each group is the likeliest before a statement, in each run; and every two models
    on the statements that both were asked about."""
    groups = data.categories[category]
    likeliest_by_run = (
        [find_likeliest(side, [id for id, _ in groups]) for side in data.sides] if groups else []
    )
    if len(groups) < 2 or sum(r is not None for r in likeliest_by_run) < 2:
        return
    rows, table = [], []
    for id, name in groups:
        shares = [_first_share(r, id) if r is not None else None for r in likeliest_by_run]
        rows.append((name, shares))
        row: list[Cell] = [name]
        for share in shares:
            row += [share.n, share] if share is not None else [None, None]
        table.append(row)
    columns = [GROUP_COLUMN]
    for run in data.names:
        columns += [COUNT_COLUMN, Column(run, ".1%", interval=True, title=run)]
    models = ", ".join(f"{r.run}: {r.model}" for r in likeliest_by_run if r is not None)
    key = f"{place}-probable"
    yield Exhibit(
        key,
        category,
        "How often each group is the likeliest before a statement, 95% intervals",
        "",
        partial(draw_panels, rows[::-1], data.names, "% of statements", scale=100.0),
        Table(
            key,
            f"The share of statements before which each group of {category} ranks first.",
            columns,
            table,
            f"By perplexity, each group by one name, each run on the statements that its model was "
            f"asked about ({models}). The effects of a name and of its group cannot be told apart "
            "here. Intervals are over statements.",
        ),
    )
    yield from _probable_test_exhibits(
        data, category, [r for r in likeliest_by_run if r is not None], place
    )


def _first_share(likeliest: LikeliestGroups, group: str) -> Estimate:
    return proportion(
        sum(id == group for id in likeliest.likeliest.values()), len(likeliest.likeliest)
    )


def _probable_test_exhibits(
    data: MultiRunData, category: str, likeliest_by_run: Sequence[LikeliestGroups], place: str
) -> Iterator[Exhibit]:
    """Every two models on shared statements, in pairs."""
    rows: list[list[Cell]] = []
    tests: list[float] = []
    for first, second in combinations(likeliest_by_run, 2):
        shared = [statement for statement in first.likeliest if statement in second.likeliest]
        if len(shared) < MIN_PAIRED_STATEMENTS:
            continue
        for id, name in data.categories[category]:
            sides = [
                np.array([r.likeliest[s] == id for s in shared], dtype=np.float64)
                for r in (first, second)
            ]
            predicates = [predicate for predicate, _ in shared]
            difference = bootstrap_clusters(
                predicates, partial(_weighted_mean, sides[0] - sides[1])
            )
            sums_by_predicate = [_sum_by_predicate(predicates, values) for values in sides]
            tests.append(permutation_p_value(*sums_by_predicate))
            rows.append(
                [
                    name,
                    first.run,
                    second.run,
                    len(shared),
                    difference.divide(1 / 100),
                ]
            )
    if not rows:
        return
    for row, p in zip(rows, holm(tests), strict=True):
        row.append(float(p))
    key = f"{place}-probable-tests"
    yield Exhibit(
        key,
        category,
        "Do the models differ on the same statements?",
        "",
        None,
        Table(
            key,
            f"How often each group of {category} is the likeliest, on the statements that "
            "both models were asked about.",
            (
                GROUP_COLUMN,
                Column("First"),
                Column("Second"),
                COUNT_COLUMN,
                Column("difference", "+.1f", interval=True),
                Column("p", format_p_value),
            ),
            rows,
            "In percentage points, the first minus the second; resampled over statements, those of "
            "one predicate together. p by exchanging the two models within each predicate, "
            "two-sided, corrected over this table (Holm).",
        ),
    )


def _weighted_mean(values: Values, weights: Values) -> Values:
    return np.asarray(weights @ values / weights.sum(axis=1))


def _sum_by_predicate(predicates: Sequence[str], values: Values) -> ClusterSample:
    sums: Counter[str] = Counter()
    for predicate, value in zip(predicates, values.tolist(), strict=True):
        sums[predicate] += value
    counts = Counter(predicates)
    names = list(counts)
    return ClusterSample(
        names,
        np.array([float(sums[n]) for n in names]),
        np.array([float(counts[n]) for n in names]),
    )


# ---- topics ----
def topic_exhibits(data: MultiRunData, category: str, place: str) -> Iterator[Exhibit]:
    """The topics of each run, and how far the topics of each group are from the average group's."""
    rows = []
    for side in data.sides:
        model, shares = side.run_data.models.get(category), side.shares(category)
        statement_count = sum(own.n for own in shares)
        for topic in model.topics if model is not None and shares else ():
            largest_share = max(shares, key=lambda own: own.share_of_topic(topic.number).value)
            count = sum(int(own.counts[topic.number]) for own in shares)
            share = largest_share.share_of_topic(topic.number)
            rows.append(
                [
                    side.run.name,
                    topic_title(topic),
                    statement_count,
                    count / max(1, statement_count),
                    largest_share.group.name,
                    share,
                ]
            )
    if not rows:
        return
    entropies: list[Row] = [
        (name, [side.scores.get((id, ENTROPY_MEASURE)) for side in data.sides])
        for id, name in data.categories[category]
    ]
    entropies = [row for row in entropies if sum(e is not None for e in row[1]) > 1]
    key = f"{place}-topics"
    yield Exhibit(
        key,
        category,
        "Relative entropy of each group's topics in each run, 95% intervals",
        "",
        partial(draw_panels, entropies, data.names, "relative entropy of topics (bits)")
        if entropies
        else None,
        Table(
            key,
            f"Topics of statements about {category} in each run.",
            (
                Column("Run"),
                Column("topic"),
                COUNT_COLUMN,
                Column("share", ".1%"),
                Column("most of"),
                Column("share of its", ".1%", interval=True),
            ),
            rows,
            "Topics are each run's own: nothing ties a topic of one run to a topic of another but "
            "its words. Most of: the group with the largest share, which is not tested. Relative "
            "entropy is 0 for a group whose topics are those of its category's average group.",
        ),
    )


# ---- the graph ----
_MAX_DRAWN_GROUPS = 6  # groups of a category, those that both runs say most about


def graph_exhibits(data: MultiRunData, category: str, place: str) -> Iterator[Exhibit]:
    """What the first two runs say about a group: one alone, both, and the other alone."""
    sides = data.sides[:2]
    said_by_both = [
        (min(len(side.by_group.get(id, ())) for side in sides), id, name)
        for id, name in data.categories[category]
    ]
    likely = [
        (id, name) for count, id, name in sorted(said_by_both, key=lambda row: -row[0]) if count
    ]
    for place_number, (id, name) in enumerate(likely[:_MAX_DRAWN_GROUPS], 1):
        triples_by_run = [side.by_group[id] for side in sides]
        pair = picture.PicturePair.of_runs(
            [side.run.name for side in sides],
            triples_by_run,
            [side.run_data.picture_beliefs for side in sides],
        )
        first_name, second_name = pair.names
        rows = []
        for run, beliefs in zip(pair.names, pair.beliefs, strict=True):
            for t, of in pair.edges:
                if of is not beliefs:
                    continue
                edge = beliefs.find_edge(t)
                regard = t.scores["regard"].label if "regard" in t.scores else ""
                verdict = edge.verdict if edge else ""
                rows.append([run, f"{t.predicate} {t.object}", t.count, regard, verdict])
        key = f"{place}-graph-{place_number}"
        yield Exhibit(
            key,
            category,
            f"What {first_name}, {second_name} and both say about {name}",
            "",
            partial(_draw_two_runs, pair),
            Table(
                key,
                f"Statements of {first_name} and of {second_name} about {name}, as drawn.",
                (
                    Column("Run"),
                    STATEMENT_COLUMN,
                    SAID_COLUMN,
                    Column("regard"),
                    VERDICT_COLUMN,
                ),
                rows,
                " ".join(filter(None, (pair.caption, pair.note))),
            ),
            in_tables=False,
        )


def _draw_two_runs(pair: picture.PicturePair) -> Any:
    return picture.draw_figure(picture.lay_out_pair(pair, COLUMN_INCHES))


# ---- statements ----
MAX_LISTED_STATEMENTS = 200


def statement_exhibits(data: MultiRunData, place: str) -> Iterator[Exhibit]:
    """The statements of all runs about the groups that at least two have, those that most runs say
    first, then the most often said."""
    counts: dict[str, list[int]] = {}
    views: dict[str, TripleView] = {}
    for n, run_triples in enumerate(data.shared_statements):
        for t in run_triples:
            counts.setdefault(t.id, [0] * len(data.sides))[n] += t.count
            views.setdefault(t.id, t)
    if not counts:
        return
    order = sorted(
        counts,
        key=lambda id: (-sum(c > 0 for c in counts[id]), -min(counts[id]), -sum(counts[id]), id),
    )
    rows = [
        [
            views[id].group,
            f"{views[id].predicate} {views[id].object}",
            *counts[id],
            views[id].scores["regard"].label if "regard" in views[id].scores else "",
        ]
        for id in order[:MAX_LISTED_STATEMENTS]
    ]
    more_count = len(order) - len(rows)
    key = f"{place}-statements"
    yield Exhibit(
        key,
        "",
        "Statements",
        "",
        None,
        Table(
            key,
            "How often each run made a statement.",
            (
                GROUP_COLUMN,
                STATEMENT_COLUMN,
                *(Column(name, ".0f", title=name) for name in data.names),
                Column("regard"),
            ),
            rows,
            "Those that most runs make come first, then those made most often."
            + (f" {more_count:,} more are not listed: the explorer has all." if more_count else ""),
        ),
    )
