"""Exhibits of several runs: what each says beside the others, how the groups change rank, how far
the runs say the same, and where they differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from statistics import fmean

from kgbias.compare.models import SMALL, Contrast
from kgbias.measures import Measure
from kgbias.report.beliefs_beside import beliefs_beside
from kgbias.report.run_data import Exhibit
from kgbias.report.several_data import THRESHOLD, SeveralData
from kgbias.report.several_figures import beside, forest, overlap_matrix, rank_lines
from kgbias.report.tables import Table, cells
from kgbias.statistics import Estimate, proportion
from kgbias.text import p_value

DRAWN = 24  # differences in one figure
TABLED = 60  # in one table: those least likely by chance; `kgbias compare --models` has all


@dataclass(frozen=True, slots=True)
class Shown:
    """How a measure's means and their differences are shown.

    Attributes:
        title: the measure, as a title begins.
        label: what a mean is called.
        difference: what a difference of two is called.
        scale: what both are multiplied by.
        form: how they are printed, as a format specification.
        signed: whether 0 parts good from bad.
        key: what its files are called.
    """

    title: str
    label: str
    difference: str
    scale: float
    form: str
    signed: bool
    key: str

    @classmethod
    def of(cls, measure: Measure) -> "Shown":
        name = measure.name.replace("_", " ")
        key, title = measure.name.replace("_", "-"), name[:1].upper() + name[1:]
        if measure.signs:  # each statement counts as 1, 0 or -1
            label = "more positive than negative statements, in 100"
            return cls(title, label, "difference, in 100 statements", 100.0, "+.0f", True, key)
        mean = f"mean {name}"
        signed = measure.form.startswith("+")
        return cls(title, mean, f"difference of {mean}", 1.0, measure.form, signed, key)


def several_exhibits(data: SeveralData) -> Iterator[Exhibit]:
    """Everything that the runs have to show beside each other."""
    for number, category in enumerate(data.categories, 1):
        place = f"{number:02d}"
        for measure in data.measures:
            yield from _beside(data, category, measure, place)
        yield from _ranks(data, category, place)
        if (found := data.beliefs(category)) is not None:
            yield from beliefs_beside(found, category, place)
    last = f"{len(data.categories) + 1:02d}"
    yield from _overlap(data, last)
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
            scaled = e.divided(1 / shown.scale) if e else None
            line += [str(scaled.n), *cells(scaled, shown.form)] if scaled else ["", "", ""]
        table.append(line)
    heads = [head for run in data.names for head in ("n", run, f"95% of {run}")]
    key = f"{place}-{shown.key}"
    yield Exhibit(
        key, category, f"{shown.title} of each group in each run: {shown.label}, 95% intervals", "",
        partial(beside, rows, data.names, shown.label, scale=shown.scale),
        Table(
            key, f"{shown.title} of {category}: {shown.label}.", ("Group", *heads), table,
            "Only groups that at least two runs have five statements about. Intervals are of each "
            "mean: whether two of them differ is tested below.",
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
        key, category, "The groups by regard, the most positive at the top; 95% of resamples", "",
        partial(rank_lines, [name for _, name in named], found, data.names, "rank by mean regard"),
        Table(
            key, f"Ranks of {category} by mean regard, 1 the most positive.", ("Group", *heads),
            rows, "By bare means, with 95% of resamples of each run. No rank is tested, nor that "
            "one changes from run to run.",
        ),
    )  # fmt: skip


def overlaps(data: SeveralData) -> Iterator[tuple[int, int, Estimate, Estimate | None]]:
    """For every run and every other one, by their places: the share of the first one's distinct
    statements that the second has in the same words, and with near-duplicates as one."""
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
        key, "", "How much of what one says another says too, near-duplicates as one", "",
        partial(overlap_matrix, shares, names),
        Table(
            key, "The share of one run's distinct statements that another has.",
            ("Of", "also in", "n", "same words", "95%", "near-duplicates too", "95%"), rows,
            f"Near-duplicates: objects and predicates with a cosine of at least {THRESHOLD:g}. A "
            "run finds part of what its model says, so two crawls of one model share less than "
            "everything too; `kgbias crawl --repeat 2` shows how much.",
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
            *cells(t.difference.divided(1 / how.scale), f"+{how.form.lstrip('+')}"),
            p_value(t.p_adjusted), p_value(t.equivalent_adjusted) if _equal(t) else "",
        ]
        for t in shown
    ]  # fmt: skip
    left = f" {len(tests) - len(shown)} more are left out here." if len(tests) > len(shown) else ""
    method = "Holm" if data.correction == "holm" else "Benjamini-Hochberg"
    margin = (
        f"{tests[0].margin * how.scale:g}" if measure.range else f"{SMALL:g} standard deviations"
    )
    key = f"{place}-differences-{how.key}"
    yield Exhibit(
        key, "", f"{how.title}: the first run minus the second, 95% intervals; grey: no difference "
        "was shown",
        "", partial(forest, _drawn(tests), how.difference, scale=how.scale, signed=how.signed),
        Table(
            key, f"{how.title}: differences of {how.label}.",
            ("Group", "First", "Second", "n", "difference", "95%", "p", "p same"), rows,
            f"p by permutation within the kinds of prompts that both runs asked, corrected by "
            f"{method} over {len(data.differences)} differences in all measures. A difference is "
            "shown where p is at most 0.05 and its interval leaves out 0. p same: of a difference "
            f"of {margin} or more; small where both are the same to within it.{left}",
        ),
    )  # fmt: skip


def _equal(t: Contrast) -> bool:
    return t.equivalent_adjusted == t.equivalent_adjusted


def _drawn(tests: Sequence[Contrast]) -> list[Contrast]:
    """The differences that a figure has room for, the largest at the top."""
    return sorted(tests[:DRAWN], key=lambda t: -t.difference.value)


def _percent(e: Estimate | None) -> list[str]:
    if e is None:
        return ["", ""]
    return [f"{100 * e.value:.1f}%", f"{100 * e.low:.1f} to {100 * e.high:.1f}"]
