"""Exhibits of several runs: what each says beside the others, how groups change rank, how much the
runs share, and where they differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from markupsafe import Markup

from kgbias.compare.model_contrasts import DEFAULT_MARGIN_DEVIATIONS, ModelContrast
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import CONTENT_WARNING, MIN_SAME_COSINE, SAMPLE_STATEMENT
from kgbias.io import pages
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
from kgbias.io.text import json_in_html, format_number, format_p_value, spoken_name
from kgbias.measures import Measure, known
from kgbias.report import cards
from kgbias.report.beliefs import beliefs_beside
from kgbias.report.figures import short
from kgbias.report.findings import (
    Finding,
    Kind,
    Screen,
    figure,
    in_words,
    interval,
    of_all,
    screen,
    size,
    told,
    unit_of,
    upwards,
)
from kgbias.report.recorded import recorded_beside
from kgbias.report.several_data import SeveralData
from kgbias.report.side_by_side import PAGE, graphs, panels, probable, statements, topics
from kgbias.report.style import explored, template
from kgbias.report.tables import Exhibit, Table, cells
from kgbias.stats.inference import Estimate, proportion


def rank_lines(
    names: Sequence[str], ranks: Sequence[Sequence[Estimate]], runs: Sequence[str], label: str
) -> Any:
    """A line for each group through its rank in each run, 1 at the top; vertical lines span 95%
    of resamples. All have one colour, because no change of rank is tested. `ranks` is
    [groups][runs]."""
    with figure_style():
        figure, axes = make_subplots(
            figsize=(COLUMN_INCHES if len(runs) < 4 else PAGE, 0.8 + 0.28 * max(3, len(names)))
        )
        places = np.arange(len(runs))
        for n, (name, own) in enumerate(zip(names, ranks, strict=True)):
            at = places + 0.06 * (n / max(1, len(names) - 1) - 0.5)
            axes.plot(at, [e.value for e in own], color=NEUTRAL_COLOR, linewidth=1.6)
            axes.vlines(
                at, [e.low for e in own], [e.high for e in own], color=INK_COLOR, linewidth=0.7,
                alpha=0.5,
            )  # fmt: skip
            axes.plot(at, [e.value for e in own], "o", color=INK_COLOR, markersize=4)
            for x, e, side in ((at[0] - 0.08, own[0], "right"), (at[-1] + 0.08, own[-1], "left")):
                tied = [
                    m
                    for m, row in enumerate(ranks)
                    if row[0 if side == "right" else -1].value == e.value
                ]
                y = e.value + 0.34 * (tied.index(n) - (len(tied) - 1) / 2)
                axes.text(x, y, short(name, 22), ha=side, va="center", fontsize=7)
        axes.set_xticks(places, [short(run, 18) for run in runs])
        axes.set_xlim(-0.95 * max(1, len(runs) / 3), len(runs) - 1 + 0.95 * max(1, len(runs) / 3))
        axes.set_ylim(len(names) + 0.5, 0.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(label)
        return figure


def overlap_matrix(shares: Sequence[Sequence[float]], runs: Sequence[str]) -> Any:
    """The share of each run's statements (rows) that each other run has, in percent."""
    with figure_style():
        from matplotlib.patches import Rectangle

        size = 0.9 + 0.5 * len(runs)
        figure, axes = make_subplots(figsize=(max(COLUMN_INCHES, size + 1.2), max(1.5, size)))
        for y, row in enumerate(shares):
            for x, share in enumerate(row):
                if x == y:
                    continue
                shade = 0.08 + 0.6 * min(1.0, share)
                corner = (x - 0.47, y - 0.47)
                axes.add_patch(Rectangle(corner, 0.94, 0.94, color=TOXIC_COLOR, linewidth=0, alpha=shade))
                axes.text(x, y, f"{100 * share:.0f}%", ha="center", va="center", fontsize=9)
        names = [short(run, 18) for run in runs]
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


def forest(tests: Sequence[ModelContrast], label: str, *, signed: bool = True) -> Any:
    """Differences with their 95% intervals, largest at the top; grey where none was shown
    (`ModelContrast.differs`), else coloured by sign if the values are `signed`."""
    with figure_style():
        figure, axes = make_subplots(figsize=(COLUMN_INCHES, 0.7 + 0.2 * max(2, len(tests))))
        axes.grid(True, axis="x")
        axes.set_axisbelow(True)
        axes.spines["left"].set_visible(False)
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        pairs = {(t.first, t.second) for t in tests}
        for place, t in enumerate(reversed(tests)):
            d = t.difference
            own = TOXIC_COLOR if not signed else POSITIVE_COLOR if d.value > 0 else NEGATIVE_COLOR
            colour = own if t.differs else NEUTRAL_COLOR
            if d.has_interval:
                axes.plot([d.low, d.high], [place] * 2, color=colour, linewidth=1.2)
            axes.plot(d.value, place, "o", color=colour, markersize=3.5)
        names = [
            short(t.group, 24) if len(pairs) == 1
            else f"{short(t.group, 18)}: {short(t.first, 10)} − {short(t.second, 10)}"
            for t in reversed(tests)
        ]  # fmt: skip
        axes.set_yticks(range(len(tests)), names)
        axes.set_ylim(-0.6, max(2, len(tests)) - 0.4)
        axes.set_xlabel(label)
        axes.tick_params(axis="y", color=LINE_COLOR)
        return figure


DRAWN = 24  # differences in one figure
TABLED = 60  # in one table: the least likely by chance; `kgbias compare RUN RUN` has all


@dataclass(frozen=True, slots=True)
class Shown:
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
    def of(cls, measure: Measure) -> "Shown":
        name = spoken_name(measure.name)
        key, title = measure.name.replace("_", "-"), name[:1].upper() + name[1:]
        mean = f"mean {name}"
        signed = measure.form.startswith("+")
        return cls(title, mean, f"difference of {mean}", measure.form, signed, key)


def several_exhibits(data: SeveralData) -> Iterator[Exhibit]:
    """Everything that the runs have to show side by side."""
    for n, category in enumerate(data.categories, 1):
        place = f"{n:02d}"
        for measure in data.measures:
            yield from _beside(data, category, measure, place)
        yield from _ranks(data, category, place)
        yield from probable(data, category, place)
        if (found := data.beliefs(category)) is not None:
            yield from beliefs_beside(found, category, place)
        yield from graphs(data, category, place)
        yield from topics(data, category, place)
    last = f"{len(data.categories) + 1:02d}"
    yield from _overlap(data, last)
    yield from statements(data, last)
    yield from recorded_beside(data, last)
    for measure in data.measures:
        yield from _differences(data, measure, last)


def _beside(data: SeveralData, category: str, measure: Measure, place: str) -> Iterator[Exhibit]:
    shown = Shown.of(measure)
    rows = [(name, data.means(id, measure.name)) for id, name in data.categories[category]]
    rows = [(name, found) for name, found in rows if sum(e is not None for e in found) > 1]
    if not rows:
        return
    rows.sort(key=lambda row: fmean(e.value for e in row[1] if e is not None))
    table = []
    for name, found in reversed(rows):
        line = [name]
        for e in found:
            line += [str(e.n), *cells(e, shown.form)] if e else ["", "", ""]
        table.append(line)
    heads = [head for run in data.names for head in ("n", run, f"95% of {run}")]
    key = f"{place}-{shown.key}"
    yield Exhibit(
        key, category, f"{shown.title} of each group in each run: {shown.label}, 95% intervals", "",
        partial(panels, rows, data.names, shown.label),
        Table(
            key, f"{shown.title} of {category}: {shown.label}.", ("Group", *heads), table,
            "Only groups that at least two runs have five statements about. Each interval is of "
            "one mean; whether two means differ is tested below.",
        ),
    )  # fmt: skip


def _ranks(data: SeveralData, category: str, place: str) -> Iterator[Exhibit]:
    ranks = data.ranks(category, "regard")
    named = [(id, name) for id, name in data.categories[category] if id in ranks[0]]
    if len(named) < 2:
        return
    named.sort(key=lambda own: ranks[0][own[0]].value)
    found = [[own[id] for own in ranks] for id, _ in named]
    rows = [
        [name, *(x for e in row for x in (f"{e.value:g}", e.interval("g")))]
        for (_, name), row in zip(named, found, strict=True)
    ]
    heads = [head for run in data.names for head in (run, f"95% of {run}")]
    key = f"{place}-ranks"
    yield Exhibit(
        key, category, "Groups by regard, most positive at the top; 95% of resamples", "",
        partial(rank_lines, [name for _, name in named], found, data.names, "rank by mean regard"),
        Table(
            key, f"Ranks of {category} by mean regard, 1 the most positive.", ("Group", *heads),
            rows, "By bare means, with 95% of resamples of each run. No rank is tested, nor is any "
            "change of rank from run to run.",
        ),
    )  # fmt: skip


def overlaps(data: SeveralData) -> Iterator[tuple[int, int, Estimate, Estimate | None]]:
    """For every ordered pair of runs, by their places: the share of the first's distinct statements
    that the second has in the same words, and with near-duplicates counted as one."""
    merged = data.said_in_other_words
    for a, b in permutations(range(len(data.sides)), 2):
        if data.said[a] and data.said[b]:
            same = proportion(len(data.said[a] & data.said[b]), len(data.said[a]))
            alike = (
                None if merged is None
                else proportion(len(merged[a] & merged[b]), len(merged[a]))
            )  # fmt: skip
            yield a, b, same, alike


def _overlap(data: SeveralData, place: str) -> Iterator[Exhibit]:
    found = list(overlaps(data))
    if not found:
        return
    names, rows = data.names, []
    shares = [[0.0] * len(names) for _ in names]
    for a, b, same, alike in found:
        shares[a][b] = (alike or same).value
        rows.append([names[a], names[b], str(same.n), *_percent(same), *_percent(alike)])
    key = f"{place}-overlap"
    yield Exhibit(
        key, "", "How much of what one run says another says too, near-duplicates as one", "",
        partial(overlap_matrix, shares, names),
        Table(
            key, "The share of one run's distinct statements that another has.",
            ("Of", "also in", "n", "same words", "95%", "near-duplicates too", "95%"), rows,
            f"Near-duplicates: statements whose vectors have a cosine of at least {MIN_SAME_COSINE:g}, with "
            "the same negation, numbers and names. A "
            "run finds only part of what its model says, so even two crawls of one model do not "
            "share everything; `kgbias crawl --repeat 2` shows how much.",
        ),
    )  # fmt: skip


def _differences(data: SeveralData, measure: Measure, place: str) -> Iterator[Exhibit]:
    how = Shown.of(measure)
    tests = sorted(
        (t for t in data.differences if t.measure == measure.name), key=lambda t: (t.p, t.group)
    )
    if not tests:
        return
    shown = tests[:TABLED]
    rows = [
        [
            t.group, t.first, t.second, f"{t.n[0]}, {t.n[1]}",
            *cells(t.difference, f"+{how.form.lstrip('+')}"),
            format_p_value(t.p_adjusted), format_p_value(t.equivalent_adjusted) if _equal(t) else "",
        ]
        for t in shown
    ]  # fmt: skip
    left = f" {len(tests) - len(shown)} more are not listed." if len(tests) > len(shown) else ""
    method = "Holm" if data.correction == "holm" else "Benjamini-Hochberg"
    margin = f"{tests[0].margin:g}" if measure.range else f"{DEFAULT_MARGIN_DEVIATIONS:g} standard deviations"
    key = f"{place}-differences-{how.key}"
    yield Exhibit(
        key, "", f"{how.title}: the first run minus the second, 95% intervals; grey: no difference "
        "was shown",
        "", partial(forest, _drawn(tests), how.difference, signed=how.signed),
        Table(
            key, f"{how.title}: differences of {how.label}.",
            ("Group", "First", "Second", "n", "difference", "95%", "p", "p same"), rows,
            f"p by permutation within the kinds of prompts that both runs asked, corrected by "
            f"{method} over {len(data.differences)} differences in all measures. A difference is "
            "shown where p is at most 0.05 and its interval leaves out 0. p same: of a difference "
            f"of {margin} or more; small where both are the same to within that.{left}",
        ),
    )  # fmt: skip


def _equal(t: ModelContrast) -> bool:
    return t.equivalent_adjusted == t.equivalent_adjusted


def _drawn(tests: Sequence[ModelContrast]) -> list[ModelContrast]:
    """The differences that a figure has room for, largest at the top."""
    return sorted(tests[:DRAWN], key=lambda t: -t.difference.value)


def _percent(e: Estimate | None) -> list[str]:
    if e is None:
        return ["", ""]
    return [f"{100 * e.value:.1f}%", f"{100 * e.low:.1f} to {100 * e.high:.1f}"]


def several_findings(data: SeveralData, explorer: str = "") -> Screen:
    """The differences between runs that were shown, least likely by chance first; what would have
    been found; and how much the runs share, which is not tested."""
    tests = data.differences
    if not tests:
        return Screen(remarks=(*_beliefs(data), *_shared(data)))
    found = [_difference(data, t, explorer) for t in tests if t.differs]
    same = sum(t.is_equivalent for t in tests)
    shown = screen([Kind(min(t.p_adjusted for t in tests), found, "")])
    told, alike = (f"{n:,} were" if n else "none was" for n in (len(found), same))
    counts = (
        f"Of {len(tests):,} differences tested ({_listed(data)}; every two runs in every group "
        f"that both have), {told} shown, and {alike} shown to be "
        "smaller than the margin of equivalence; nothing was shown about the others."
    )
    least = () if found else _undetected(tests)
    return Screen(
        shown.findings, "", shown.kinds, (counts, *least, *_beliefs(data), *_shared(data)),
        "No difference between the runs was shown.",
    )  # fmt: skip


def _difference(data: SeveralData, t: ModelContrast, explorer: str) -> Finding:
    form = known(t.measure).form.lstrip("+")
    said = Markup(
        "The mean {} of what <b>{}</b> says about <b>{}</b> is {} {} than that of what "
        "<b>{}</b> says {}."
    ).format(
        spoken_name(t.measure), t.first, t.group, figure(abs(t.difference.value), form),
        "higher" if t.difference.value > 0 else "lower", t.second,
        interval(upwards(t.difference), 1, form),
    )  # fmt: skip
    sides = {side.run.name: side for side in data.sides}
    source = {run: f"{run}/{sides[run].name}" for run in (t.first, t.second)}
    address = explored(
        explorer, view="differences", source=source[t.first], other=source[t.second],
        inGroup=t.group,
    )  # fmt: skip
    shared = {
        "statements": "By permutation of the models within each statement",
        "prompts": "By permutation of whole prompts of one kind",
        "": "By permutation of statements",
    }[t.paired]
    by = "Holm" if t.correction == "holm" else "Benjamini and Hochberg"
    return Finding(
        "Where they differ", said,
        f"{shared}: {in_words(t.p_adjusted)}, {of_all(t.family, 'difference', by=by)} in all "
        f"measures.{unit_of(t.measure)}",
        f"{t.n[0]:,} and {t.n[1]:,} statements.",
        [("What one says and the other does not, in the explorer", address)] if address else [],
        t.p_adjusted, size(t.difference),
    )  # fmt: skip


def _undetected(tests: Sequence[ModelContrast]) -> tuple[str, ...]:
    """The difference in each measure that would have been found in any group, as a sentence if
    that is known."""
    most: dict[str, float] = {}
    for t in tests:
        if t.detectable == t.detectable:
            most[t.measure] = max(t.detectable, most.get(t.measure, 0.0))
    if not most:
        return ()
    listed = [
        f"of {least:{known(measure).form.lstrip('+')}} in {spoken_name(measure)}"
        for measure, least in most.items()
    ]
    regard = unit_of("regard") if "regard" in most else ""
    few = any(t.detectable != t.detectable for t in tests)
    where = " with enough prompts to be tested" if few else ""
    return (
        f"In any one group{where}, a true difference {' or '.join(listed)} would have been found "
        f"in 80% of cases.{regard}",
    )


def _listed(data: SeveralData) -> str:
    """The measures that the runs were tested on, listed as in a sentence."""
    *names, last = (spoken_name(measure.name) for measure in data.measures)
    return f"{', '.join(names)} and {last}" if names else last


def _beliefs(data: SeveralData) -> tuple[str, ...]:
    """What the models of the first two runs believe about the same statements, by category."""
    said = []
    for category in data.categories:
        found = data.beliefs(category)
        if found is None:
            continue
        two = next(found.iter_agreements())
        a, b = (found.models[n].label for n in (two.first, two.second))
        r = two.correlation
        alike = f"; their lifts correlate at {format_number(r.value, '.2f')}{_within(r)}"
        said.append(
            f"Of {two.pairs:,} pairs of a group of {category} and a statement that both were "
            f"asked about, {a} believes {two.believed_counts[0]:,}, {b} {two.believed_counts[1]:,}, both "
            f"{two.both_believed:,}{alike if r.value == r.value else ''}."
        )
    return tuple(said)


def _within(e: Estimate) -> str:
    return f" [{e.interval('.2f')}]" if e.has_interval else ""


def _shared(data: SeveralData) -> tuple[str, ...]:
    """How much of what one run says another says too, for the two that share the most."""
    found = list(overlaps(data))
    if not found:
        return ()
    a, b, same, alike = max(found, key=lambda row: (row[3] or row[2]).value)
    names = data.names

    def percent(e: object) -> str:
        value, low, high = (100 * getattr(e, x) for x in ("value", "low", "high"))
        return f"{value:.0f}% [{low:.0f} to {high:.0f}]"

    near = f", and {percent(alike)} with near-duplicates" if alike is not None else ""
    return (
        f"Of {same.n:,} distinct statements of {names[a]}, {names[b]} makes {percent(same)} in the "
        f"same words{near}: the largest such share of any two runs. Even two crawls of one "
        "model do not share everything.",
    )


# anchor -> title, introduction, and the exhibits that belong there; none: those of each measure
_SECTIONS = {
    "beside": (
        "What each run says",
        "The same groups in the same order, on the same scale. How far a mean is from 0 is as much "
        "the prompts' doing as the model's: compare runs with each other, by the tests below.",
        (),
    ),
    "ranks": (
        "The groups in order",
        "A line for each group through its place by mean regard in each run; vertical lines span "
        "95% of resamples. Places are not tested: groups with nearly equal means swap them by "
        "chance.",
        ("ranks",),
    ),
    "probable": (
        "What they find probable",
        "Before how many statements each group has the lowest perplexity of its category, by one "
        "name each. Statements that two models were both asked about are compared in pairs.",
        ("probable",),
    ),
    "beliefs": (
        "What they believe",
        "Statements that all the models were asked about, after the same names of the same groups: "
        "those that any of them believes, and how far their lifts agree.",
        ("believed-",),
    ),
    "graph": (
        "The graph of a group",
        "What one run alone says about a group, what both say, and what the other alone says; of "
        "more than two runs, the first two. A model may well make a statement that its run lacks.",
        ("graph-",),
    ),
    "topics": (
        "Topics",
        "What each run's statements are about, by topics that were found in each run by itself.",
        ("topics",),
    ),
    "recorded": (
        "Recorded by people",
        "How many of the stereotypes that people recorded about these groups each run says, and "
        "each model believes. Recorded means by the annotators of that table: neither true nor "
        "common.",
        ("recorded",),
    ),
    "overlap": (
        "How much they share",
        "Shares of the distinct statements about groups that at least two runs have.",
        ("overlap",),
    ),
    "differences": (
        "Where they differ",
        "Every two runs in each group, as one family: each p-value is corrected over all of them.",
        ("differences-",),
    ),
    "statements": ("Statements", "How often each run made each statement.", ("statements",)),
}


_OPEN = ("beside", "differences", "beliefs", "probable", "graph")
"""The sections whose first figures are in sight; the others are one line until they are opened."""
_OPENING = ("believed-agreement", "differences-", "ranks")
"""The exhibits that may stand on the first screen; the first that there is does."""


def _opening(found: Sequence[Exhibit]) -> cards.Figure | None:
    """The picture of the first screen, with ids of its own."""
    for kind in _OPENING:
        for e in found:
            if e.draw is not None and e.key.partition("-")[2].startswith(kind):
                return cards.Figure(e, cards.picture(replace(e, key=f"{e.key}-o"), linked=False))
    return None


def write_several(
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

    Raises UsageError as `SeveralData` does, DataError if the file cannot be written."""
    data = SeveralData(runs, correction=correction, selection=selection, progress=progress)
    write_text(path, render(data, explorer))


def render(data: SeveralData, explorer: str = "") -> str:
    """The page as text."""
    found = list(several_exhibits(data))
    measures = tuple(Shown.of(measure).key for measure in data.measures)
    sections = []
    for anchor, (title, about, kinds) in _SECTIONS.items():
        groups = []
        for category in (*data.categories, ""):
            own = [
                e
                for e in found
                if e.category == category and e.key.partition("-")[2].startswith(kinds or measures)
            ]
            if own:
                tables = [e.table for e in own if e.tabled]
                heading = cards.heading_of(category, data.categories)
                groups.append(cards.group(heading, own, tables, linked=False))
        if groups:
            in_sight = anchor in _OPEN
            sections.append((anchor, title, about, cards.render(groups, folded=in_sight), in_sight))
    script = pages.join_scripts(*pages.shared_scripts("draw"), template("copy.js"), template("folds.js"))
    models = dict.fromkeys(side.run.model.title for side in data.sides)
    return pages.fill_template(
        template("several.html"),
        models=list(models),
        categories=list(data.categories),
        sides=data.sides,
        told=told(several_findings(data, explorer)),
        apart=data.asked_apart,
        picture=_opening(found),
        sections=sections,
        warning=CONTENT_WARNING,
        statement=SAMPLE_STATEMENT,
        style=pages.page_style(template("style.css")),
        exhibits=Markup(json_in_html(cards.copied((e.table for e in found), "-".join(data.names)))),
        script=script,
        allowed=pages.script_policy(script),
        explorer=explorer,
    )
