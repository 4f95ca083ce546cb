"""Exhibits of several runs: what each says beside the others, how groups change rank, how much the
runs share, and where they differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from kgbias.compare.model_contrasts import DEFAULT_MARGIN_DEVIATIONS, ModelContrast
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import CONTENT_WARNING, MIN_SAME_COSINE, SAMPLE_CAVEAT
from kgbias.io import pages
from kgbias.io.columns import Column
from kgbias.io.drawing import (
    COLUMN_INCHES,
    INK_COLOR,
    LINE_COLOR,
    NEGATIVE_COLOR,
    NEUTRAL_COLOR,
    POSITIVE_COLOR,
    TOXIC_COLOR,
    figure_style,
    make_subplots,
)
from kgbias.io.files import write_text
from kgbias.io.progress import Progress
from kgbias.io.text import format_number, format_p_value, json_in_html, spoken_name
from kgbias.io.wording import pluralise
from kgbias.measures import Measure, get_measure
from kgbias.report import cards
from kgbias.report.beliefs import belief_comparison_exhibits
from kgbias.report.figures import shorten_name
from kgbias.report.findings import (
    FirstScreen,
    bold_figure,
    build_screen_of_kinds,
    correction_words,
    make_positive,
    p_value_words,
    relative_size,
    render_screen,
    scale_sentence,
    small_interval,
)
from kgbias.report.multi_run_data import MultiRunData
from kgbias.report.multi_run_statements import (
    PAGE_INCHES,
    draw_panels,
    graph_exhibits,
    likeliest_group_exhibits,
    statement_exhibits,
    topic_exhibits,
)
from kgbias.report.parts import (
    Finding,
    FindingKind,
    SectionOfExhibits,
    place_sections,
    report_parts,
)
from kgbias.report.style import explorer_url, page_head, read_template_file
from kgbias.report.tables import COUNT_COLUMN, GROUP_COLUMN, Cell, Exhibit, Table
from kgbias.stats.inference import Estimate, proportion


def draw_rank_lines(
    names: Sequence[str], ranks: Sequence[Sequence[Estimate]], runs: Sequence[str], label: str
) -> Any:
    """A line for each group through its rank in each run, 1 at the top; vertical lines span 95%
    of resamples. All have one colour, because no change of rank is tested. `ranks` is
    [groups][runs]."""
    with figure_style():
        figure, axes = make_subplots(
            figsize=(
                COLUMN_INCHES if len(runs) < 4 else PAGE_INCHES,
                0.8 + 0.28 * max(3, len(names)),
            )
        )
        places = np.arange(len(runs))
        for group_place, (name, group_ranks) in enumerate(zip(names, ranks, strict=True)):
            # A little apart, so that intervals of groups do not cover each other.
            line_places = places + 0.06 * (group_place / max(1, len(names) - 1) - 0.5)
            axes.plot(
                line_places,
                [rank.value for rank in group_ranks],
                color=NEUTRAL_COLOR,
                linewidth=1.6,
            )
            axes.vlines(
                line_places,
                [rank.low for rank in group_ranks],
                [rank.high for rank in group_ranks],
                color=INK_COLOR,
                linewidth=0.7,
                alpha=0.5,
            )
            axes.plot(
                line_places,
                [rank.value for rank in group_ranks],
                "o",
                color=INK_COLOR,
                markersize=4,
            )
            for label_place, rank, side in (
                (line_places[0] - 0.08, group_ranks[0], "right"),
                (line_places[-1] + 0.08, group_ranks[-1], "left"),
            ):
                tied = [
                    m
                    for m, row in enumerate(ranks)
                    if row[0 if side == "right" else -1].value == rank.value
                ]
                y = rank.value + 0.34 * (tied.index(group_place) - (len(tied) - 1) / 2)
                axes.text(label_place, y, shorten_name(name, 22), ha=side, va="center", fontsize=7)
        axes.set_xticks(places, [shorten_name(run, 18) for run in runs])
        axes.set_xlim(-0.95 * max(1, len(runs) / 3), len(runs) - 1 + 0.95 * max(1, len(runs) / 3))
        axes.set_ylim(len(names) + 0.5, 0.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(label)
        return figure


def draw_overlap_matrix(shares: Sequence[Sequence[float]], runs: Sequence[str]) -> Any:
    """The share of each run's statements (rows) that each other run has, in percent."""
    with figure_style():
        from matplotlib.patches import Rectangle

        size = 0.9 + 0.5 * len(runs)
        figure, axes = make_subplots(figsize=(max(COLUMN_INCHES, size + 1.2), max(1.5, size)))
        for row_place, row in enumerate(shares):
            for column_place, share in enumerate(row):
                if column_place == row_place:
                    continue
                shade = 0.08 + 0.6 * min(1.0, share)
                corner = (column_place - 0.47, row_place - 0.47)
                axes.add_patch(
                    Rectangle(corner, 0.94, 0.94, color=TOXIC_COLOR, linewidth=0, alpha=shade)
                )
                axes.text(
                    column_place,
                    row_place,
                    f"{100 * share:.0f}%",
                    ha="center",
                    va="center",
                    fontsize=9,
                )
        names = [shorten_name(run, 18) for run in runs]
        axes.set_xticks(range(len(runs)), names)
        axes.set_yticks(range(len(runs)), names)
        axes.set_xlim(-0.5, len(runs) - 0.5)
        axes.set_ylim(len(runs) - 0.5, -0.5)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xlabel("… are also said by")
        axes.set_ylabel("of the statements of")
        return figure


def draw_forest(tests: Sequence[ModelContrast], label: str, *, signed: bool = True) -> Any:
    """Differences with their 95% intervals, largest at the top; grey where none was shown
    (`ModelContrast.differs`), else coloured by sign if the values are `signed`."""
    with figure_style():
        figure, axes = make_subplots(figsize=(COLUMN_INCHES, 0.7 + 0.2 * max(2, len(tests))))
        axes.grid(True, axis="x")
        axes.set_axisbelow(True)
        axes.spines["left"].set_visible(False)
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        pairs = {(test.first, test.second) for test in tests}
        for place, test in enumerate(reversed(tests)):
            difference = test.difference
            colour = NEUTRAL_COLOR
            if test.differs and not signed:
                colour = TOXIC_COLOR
            elif test.differs:
                colour = POSITIVE_COLOR if difference.value > 0 else NEGATIVE_COLOR
            if difference.has_interval:
                axes.plot(
                    [difference.low, difference.high], [place] * 2, color=colour, linewidth=1.2
                )
            axes.plot(difference.value, place, "o", color=colour, markersize=3.5)
        names = [
            shorten_name(test.group, 24)
            if len(pairs) == 1
            else f"{shorten_name(test.group, 18)}: {shorten_name(test.first, 10)} − "
            f"{shorten_name(test.second, 10)}"
            for test in reversed(tests)
        ]
        axes.set_yticks(range(len(tests)), names)
        axes.set_ylim(-0.6, max(2, len(tests)) - 0.4)
        axes.set_xlabel(label)
        axes.tick_params(axis="y", color=LINE_COLOR)
        return figure


MAX_DRAWN_DIFFERENCES = 24  # differences in one figure
MAX_TABLE_ROWS = 60  # in one table: the least likely by chance; `kgbias compare RUN RUN` has all


@dataclass(frozen=True, slots=True)
class MeasureLabels:
    """How a measure's means and their differences are shown.

    Attributes:
        title: the measure, capitalised for a title.
        label: what a mean is called.
        difference: what a difference of two is called.
        form: how they are printed, as a format specification.
        signed: whether 0 separates good from bad.
        key: what its files are called.
    """

    title: str
    label: str
    difference: str
    form: str
    signed: bool
    key: str

    @classmethod
    def of(cls, measure: Measure) -> "MeasureLabels":
        name = spoken_name(measure.name)
        key, title = measure.name.replace("_", "-"), name[:1].upper() + name[1:]
        mean = f"mean {name}"
        signed = measure.form.startswith("+")
        return cls(title, mean, f"difference of {mean}", measure.form, signed, key)


def multi_run_exhibits(data: MultiRunData) -> Iterator[Exhibit]:
    """Everything that the runs have to show side by side."""
    for n, category in enumerate(data.categories, 1):
        place = f"{n:02d}"
        for measure in data.measures:
            yield from _mean_exhibits(data, category, measure, place)
        yield from _rank_exhibits(data, category, place)
        yield from likeliest_group_exhibits(data, category, place)
        if (comparison := data.beliefs(category)) is not None:
            yield from belief_comparison_exhibits(comparison, category, place)
        yield from graph_exhibits(data, category, place)
        yield from topic_exhibits(data, category, place)
    last_place = f"{len(data.categories) + 1:02d}"
    yield from _overlap_exhibits(data, last_place)
    yield from statement_exhibits(data, last_place)
    for part in report_parts():
        if part.of_runs:
            yield from part.of_runs(data, last_place)
    for measure in data.measures:
        yield from _difference_exhibits(data, measure, last_place)


def _mean_exhibits(
    data: MultiRunData, category: str, measure: Measure, place: str
) -> Iterator[Exhibit]:
    labels = MeasureLabels.of(measure)
    rows = [(name, data.means(id, measure.name)) for id, name in data.categories[category]]
    rows = [(name, means) for name, means in rows if sum(mean is not None for mean in means) > 1]
    if not rows:
        return
    rows.sort(key=lambda row: fmean(mean.value for mean in row[1] if mean is not None))
    table = []
    for name, means in reversed(rows):
        line: list[Cell] = [name]
        for mean in means:
            line += [mean.n, mean] if mean else [None, None]
        table.append(line)
    columns = [GROUP_COLUMN]
    for run in data.names:
        columns += [COUNT_COLUMN, Column(run, labels.form, interval=True, title=run)]
    key = f"{place}-{labels.key}"
    yield Exhibit(
        key,
        category,
        f"{labels.title} of each group in each run: {labels.label}, 95% intervals",
        "",
        partial(draw_panels, rows, data.names, labels.label),
        Table(
            key,
            f"{labels.title} of {category}: {labels.label}.",
            columns,
            table,
            "Only groups that at least two runs have five statements about. Each interval is of "
            "one mean; whether two means differ is tested below.",
        ),
    )


def _rank_exhibits(data: MultiRunData, category: str, place: str) -> Iterator[Exhibit]:
    ranks = data.ranks(category, "regard")
    ranked_groups = [(id, name) for id, name in data.categories[category] if id in ranks[0]]
    if len(ranked_groups) < 2:
        return
    ranked_groups.sort(key=lambda group: ranks[0][group[0]].value)
    rank_rows = [[run_ranks[id] for run_ranks in ranks] for id, _ in ranked_groups]
    rows = [
        [name, *group_ranks]
        for (_, name), group_ranks in zip(ranked_groups, rank_rows, strict=True)
    ]
    key = f"{place}-ranks"
    yield Exhibit(
        key,
        category,
        "Groups by regard, most positive at the top; 95% of resamples",
        "",
        partial(
            draw_rank_lines,
            [name for _, name in ranked_groups],
            rank_rows,
            data.names,
            "rank by mean regard",
        ),
        Table(
            key,
            f"Ranks of {category} by mean regard, 1 the most positive.",
            (
                GROUP_COLUMN,
                *(Column(name, "g", interval=True, title=name) for name in data.names),
            ),
            rows,
            "By bare means, with 95% of resamples of each run. No rank is tested, nor is any "
            "change of rank from run to run.",
        ),
    )


class RunOverlap(NamedTuple):
    """How much of what one run says another says too: the share of the distinct statements of the
    run at place `first` that the one at `second` has in the same words, and with near-duplicates
    counted as one, where the statements have vectors."""

    first: int
    second: int
    same_words: Estimate
    near_duplicates: Estimate | None

    @property
    def share(self) -> Estimate:
        """With near-duplicates, where these are known."""
        return self.near_duplicates or self.same_words


def iter_overlaps(data: MultiRunData) -> Iterator[RunOverlap]:
    """For every ordered pair of runs that both say something."""
    merged = data.merged_statement_ids
    for first, second in permutations(range(len(data.sides)), 2):
        if data.statement_ids[first] and data.statement_ids[second]:
            same_words = proportion(
                len(data.statement_ids[first] & data.statement_ids[second]),
                len(data.statement_ids[first]),
            )
            near_duplicates = (
                None
                if merged is None
                else proportion(len(merged[first] & merged[second]), len(merged[first]))
            )
            yield RunOverlap(first, second, same_words, near_duplicates)


def _overlap_exhibits(data: MultiRunData, place: str) -> Iterator[Exhibit]:
    overlap_list = list(iter_overlaps(data))
    if not overlap_list:
        return
    names, rows = data.names, []
    shares = [[0.0] * len(names) for _ in names]
    for overlap in overlap_list:
        shares[overlap.first][overlap.second] = overlap.share.value
        rows.append(
            [
                names[overlap.first],
                names[overlap.second],
                overlap.same_words.n,
                overlap.same_words,
                overlap.near_duplicates,
            ]
        )
    key = f"{place}-overlap"
    yield Exhibit(
        key,
        "",
        "How much of what one run says another says too, near-duplicates as one",
        "",
        partial(draw_overlap_matrix, shares, names),
        Table(
            key,
            "The share of one run's distinct statements that another has.",
            (
                Column("Of"),
                Column("also in"),
                COUNT_COLUMN,
                Column("same words", ".1%", interval=True),
                Column("near-duplicates too", ".1%", interval=True),
            ),
            rows,
            f"Near-duplicates: statements whose vectors have a cosine of at least "
            f"{MIN_SAME_COSINE:g}, with "
            "the same negation, numbers and names. A "
            "run finds only part of what its model says, so even two crawls of one model do not "
            "share everything; `kgbias crawl --repeat 2` shows how much.",
        ),
    )


def _difference_exhibits(data: MultiRunData, measure: Measure, place: str) -> Iterator[Exhibit]:
    labels = MeasureLabels.of(measure)
    tests = sorted(
        (t for t in data.differences if t.measure == measure.name), key=lambda t: (t.p, t.group)
    )
    if not tests:
        return
    listed = tests[:MAX_TABLE_ROWS]
    rows = [
        [
            t.group,
            t.first,
            t.second,
            tuple(t.n),
            t.difference,
            t.p_adjusted,
            t.equivalent_adjusted,
        ]
        for t in listed
    ]
    more_note = (
        f" {len(tests) - len(listed)} more are not listed." if len(tests) > len(listed) else ""
    )
    method = "Holm" if data.correction == "holm" else "Benjamini-Hochberg"
    margin = (
        f"{tests[0].margin:g}"
        if measure.range
        else f"{DEFAULT_MARGIN_DEVIATIONS:g} standard deviations"
    )
    key = f"{place}-differences-{labels.key}"
    yield Exhibit(
        key,
        "",
        f"{labels.title}: the first run minus the second, 95% intervals; grey: no difference "
        "was shown",
        "",
        partial(draw_forest, _pick_drawn(tests), labels.difference, signed=labels.signed),
        Table(
            key,
            f"{labels.title}: differences of {labels.label}.",
            (
                GROUP_COLUMN,
                Column("First"),
                Column("Second"),
                COUNT_COLUMN,
                Column("difference", f"+{labels.form.lstrip('+')}", interval=True),
                Column("p", format_p_value),
                Column("p same", format_p_value),
            ),
            rows,
            f"p by permutation within the kinds of prompts that both runs asked, corrected by "
            f"{method} over {len(data.differences)} differences in all measures. A difference is "
            "shown where p is at most 0.05 and its interval leaves out 0. p same: of a difference "
            f"of {margin} or more; small where both are the same to within that.{more_note}",
        ),
    )


def _pick_drawn(tests: Sequence[ModelContrast]) -> list[ModelContrast]:
    """The differences that a figure has room for, largest at the top."""
    return sorted(tests[:MAX_DRAWN_DIFFERENCES], key=lambda t: -t.difference.value)


def build_multi_run_screen(data: MultiRunData, explorer: str = "") -> FirstScreen:
    """The differences between runs that were shown, least likely by chance first; what would have
    been found; and how much the runs share, which is not tested."""
    tests = data.differences
    if not tests:
        return FirstScreen(remarks=(*_belief_remarks(data), *_shared_remark(data)))
    difference_findings = [_difference_finding(data, t, explorer) for t in tests if t.differs]
    equal_count = sum(t.is_equivalent for t in tests)
    first_screen = build_screen_of_kinds(
        [FindingKind(min(t.p_adjusted for t in tests), difference_findings, "")]
    )
    shown_words, equal_words = (
        f"{n:,} were" if n else "none was" for n in (len(difference_findings), equal_count)
    )
    counts = (
        f"Of {len(tests):,} differences tested ({_list_measures(data)}; every two runs in every "
        f"group "
        f"that both have), {shown_words} shown, and {equal_words} shown to be "
        "smaller than the margin of equivalence; nothing was shown about the others."
    )
    undetected = () if difference_findings else _undetected_note(tests)
    return FirstScreen(
        first_screen.findings,
        (),
        first_screen.kinds,
        (counts, *undetected, *_belief_remarks(data), *_shared_remark(data)),
        "No difference between the runs was shown.",
    )


def _difference_finding(data: MultiRunData, test: ModelContrast, explorer: str) -> Finding:
    form = get_measure(test.measure).form.lstrip("+")
    sentence = Markup(
        "The mean {} of what <b>{}</b> says about <b>{}</b> is {} {} than that of what "
        "<b>{}</b> says {}."
    ).format(
        spoken_name(test.measure),
        test.first,
        test.group,
        bold_figure(abs(test.difference.value), form),
        "higher" if test.difference.value > 0 else "lower",
        test.second,
        small_interval(make_positive(test.difference), 1, form),
    )
    sides = {side.run.name: side for side in data.sides}
    source = {run: f"{run}/{sides[run].name}" for run in (test.first, test.second)}
    address = explorer_url(
        explorer,
        view="differences",
        source=source[test.first],
        other=source[test.second],
        inGroup=test.group,
    )
    shared = {
        "statements": "By permutation of the models within each statement",
        "prompts": "By permutation of whole prompts of one kind",
        "": "By permutation of statements",
    }[test.paired]
    correction = "Holm" if test.correction == "holm" else "Benjamini and Hochberg"
    return Finding(
        "Where they differ",
        sentence,
        f"{shared}: {p_value_words(test.p_adjusted)}, "
        f"{correction_words(test.family, 'difference', by=correction)} in all "
        f"measures.{scale_sentence(test.measure)}",
        f"{test.n[0]:,} and {pluralise(test.n[1], 'statement', spec=',')}.",
        [("What one says and the other does not, in the explorer", address)] if address else [],
        test.p_adjusted,
        relative_size(test.difference),
    )


def _undetected_note(tests: Sequence[ModelContrast]) -> tuple[str, ...]:
    """The difference in each measure that would have been found in any group, as a sentence if
    that is known."""
    detectable: dict[str, float] = {}
    for test in tests:
        if test.detectable == test.detectable:
            detectable[test.measure] = max(test.detectable, detectable.get(test.measure, 0.0))
    if not detectable:
        return ()
    differences = [
        f"of {difference:{get_measure(measure).form.lstrip('+')}} in {spoken_name(measure)}"
        for measure, difference in detectable.items()
    ]
    regard = scale_sentence("regard") if "regard" in detectable else ""
    has_small = any(test.detectable != test.detectable for test in tests)
    where_words = " with enough prompts to be tested" if has_small else ""
    return (
        f"In any one group{where_words}, a true difference {' or '.join(differences)} would have "
        f"been found "
        f"in 80% of cases.{regard}",
    )


def _list_measures(data: MultiRunData) -> str:
    """The measures that the runs were tested on, listed as in a sentence."""
    *names, last = (spoken_name(measure.name) for measure in data.measures)
    return f"{', '.join(names)} and {last}" if names else last


def _belief_remarks(data: MultiRunData) -> tuple[str, ...]:
    """What the models of the first two runs believe about the same statements, by category."""
    remarks = []
    for category in data.categories:
        comparison = data.beliefs(category)
        if comparison is None:
            continue
        pair = next(comparison.iter_agreements())
        first_label, second_label = (comparison.models[n].label for n in (pair.first, pair.second))
        correlation = pair.correlation
        correlation_words = (
            f"; their lifts correlate at "
            f"{format_number(correlation.value, '.2f')}{_bracket_interval(correlation)}"
        )
        remarks.append(
            f"Of {pair.pairs:,} pairs of a group of {category} and a statement that both were "
            f"asked about, {first_label} believes {pair.believed_counts[0]:,}, {second_label} "
            f"{pair.believed_counts[1]:,}, both "
            f"{pair.both_believed:,}"
            f"{correlation_words if correlation.value == correlation.value else ''}."
        )
    return tuple(remarks)


def _bracket_interval(estimate: Estimate) -> str:
    return f" [{estimate.format_interval('.2f')}]" if estimate.is_shown else ""


def _shared_remark(data: MultiRunData) -> tuple[str, ...]:
    """How much of what one run says another says too, for the two that share the most."""
    overlap_list = list(iter_overlaps(data))
    if not overlap_list:
        return ()
    largest = max(overlap_list, key=lambda overlap: overlap.share.value)
    first_name, second_name = data.names[largest.first], data.names[largest.second]

    def percent(share: object) -> str:
        value, low, high = (100 * getattr(share, x) for x in ("value", "low", "high"))
        return f"{value:.0f}% [{low:.0f} to {high:.0f}]"

    near_words = (
        f", and {percent(largest.near_duplicates)} with near-duplicates"
        if largest.near_duplicates is not None
        else ""
    )
    return (
        f"Of {largest.same_words.n:,} distinct statements of {first_name}, {second_name} makes "
        f"{percent(largest.same_words)} in the "
        f"same words{near_words}: the largest such share of any two runs. Even two crawls of one "
        "model do not share everything.",
    )


_SECTIONS = (
    SectionOfExhibits(
        "beside",
        "What each run says",
        "The same groups in the same order, on the same scale. How far a mean is from 0 is as much "
        "the prompts' doing as the model's: compare runs with each other, by the tests below.",
        (),
    ),
    SectionOfExhibits(
        "ranks",
        "The groups in order",
        "A line for each group through its place by mean regard in each run; vertical lines span "
        "95% of resamples. Places are not tested: groups with nearly equal means swap them by "
        "chance.",
        ("ranks",),
    ),
    SectionOfExhibits(
        "probable",
        "What they find probable",
        "Before how many statements each group has the lowest perplexity of its category, by one "
        "name each. Statements that two models were both asked about are compared in pairs.",
        ("probable",),
    ),
    SectionOfExhibits(
        "beliefs",
        "What they believe",
        "Statements that all the models were asked about, after the same names of the same groups: "
        "those that any of them believes, and how far their lifts agree.",
        ("believed-",),
    ),
    SectionOfExhibits(
        "graph",
        "The graph of a group",
        "What one run alone says about a group, what both say, and what the other alone says; of "
        "more than two runs, the first two. A model may well make a statement that its run lacks.",
        ("graph-",),
    ),
    SectionOfExhibits(
        "topics",
        "Topics",
        "What each run's statements are about, by topics that were found in each run by itself.",
        ("topics",),
    ),
    SectionOfExhibits(
        "overlap",
        "How much they share",
        "Shares of the distinct statements about groups that at least two runs have.",
        ("overlap",),
    ),
    SectionOfExhibits(
        "differences",
        "Where they differ",
        "Every two runs in each group, as one family: each p-value is corrected over all of them.",
        ("differences-",),
    ),
    SectionOfExhibits(
        "statements", "Statements", "How often each run made each statement.", ("statements",)
    ),
)
"""The sections of the page, in order; one that names no keys shows those of each measure."""


_OPEN_SECTIONS = ("beside", "differences", "beliefs", "probable", "graph")
"""The sections whose first figures are in sight; the others are one line until they are opened."""
_OPENING_EXHIBITS = ("believed-agreement", "differences-", "ranks")
"""The exhibits that may stand on the first screen; the first that there is does."""


def _opening_figure(exhibit_list: Sequence[Exhibit]) -> cards.FigureCard | None:
    """The picture of the first screen, with ids of its own."""
    for kind in _OPENING_EXHIBITS:
        for exhibit in exhibit_list:
            if exhibit.draw is not None and exhibit.key.partition("-")[2].startswith(kind):
                return cards.FigureCard(
                    exhibit,
                    cards.render_figure(replace(exhibit, key=f"{exhibit.key}-o"), linked=False),
                )
    return None


def write_multi_run(
    runs: Sequence[StoredRun],
    path: Path,
    *,
    correction: str = "holm",
    selection: Selection | None = None,
    progress: Progress | None = None,
    explorer: str = "",
) -> None:
    """Write the report of two to six runs side by side to `path`, whole or not at all.
    `explorer` is the address, relative to the page, of an explorer of the same runs.

    Raises UsageError as `MultiRunData` does, DataError if the file cannot be written."""
    data = MultiRunData(runs, correction=correction, selection=selection, progress=progress)
    write_text(path, render_multi_run(data, explorer))


def render_multi_run(data: MultiRunData, explorer: str = "") -> str:
    """The page as text."""
    exhibit_list = list(multi_run_exhibits(data))
    measures = tuple(MeasureLabels.of(measure).key for measure in data.measures)
    sections = []
    for section in place_sections(_SECTIONS, (part.sections_of_runs for part in report_parts())):
        key_prefixes = section.key_prefixes or measures
        groups = []
        for category in (*data.categories, ""):
            section_exhibits = [
                e
                for e in exhibit_list
                if e.category == category and e.key.partition("-")[2].startswith(key_prefixes)
            ]
            if section_exhibits:
                tables = [e.table for e in section_exhibits if e.in_tables]
                heading = cards.heading_of(category, data.categories)
                groups.append(cards.build_group(heading, section_exhibits, tables, linked=False))
        if groups:
            in_sight = section.anchor in _OPEN_SECTIONS
            shown = cards.render_groups(groups, folded=in_sight)
            sections.append((section.anchor, section.title, section.about, shown, in_sight))
    script = pages.bundle_scripts(
        *pages.read_shared_scripts("draw"),
        read_template_file("copy.js"),
        read_template_file("folds.js"),
    )
    models = dict.fromkeys(side.run.model.title for side in data.sides)
    return pages.fill_template(
        read_template_file("several.html"),
        head=page_head(", ".join(side.run.name for side in data.sides), script),
        models=list(models),
        categories=list(data.categories),
        sides=data.sides,
        told=render_screen(build_multi_run_screen(data, explorer)),
        apart=data.differences_in_asking,
        picture=_opening_figure(exhibit_list),
        sections=sections,
        warning=CONTENT_WARNING,
        statement=SAMPLE_CAVEAT,
        exhibits=Markup(
            json_in_html(cards.copy_texts((e.table for e in exhibit_list), "-".join(data.names)))
        ),
        script=script,
        explorer=explorer,
    )
