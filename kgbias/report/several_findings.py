"""The first screen of a report of several runs: where they differ, and how far they agree."""

from markupsafe import Markup

from kgbias.compare.models import Contrast
from kgbias.report.findings import (
    Finding,
    Kind,
    Screen,
    figure,
    in_words,
    interval,
    of_all,
    scale_of,
    screen,
    size,
    upwards,
)
from kgbias.report.links import explored
from kgbias.report.several import overlaps
from kgbias.report.several_data import SeveralData
from kgbias.statistics import Estimate
from kgbias.text import number


def several_findings(data: SeveralData, explorer: str = "") -> Screen:
    """The differences between runs that were shown, the least likely by chance first; what would
    have been found; and how much the runs share, which is no test."""
    tests = data.differences
    if not tests:
        return Screen(remarks=(*_beliefs(data), *_overlap(data)))
    found = [_difference(data, t, explorer) for t in tests if t.differs]
    same = sum(t.same for t in tests)
    shown = screen([Kind(min(t.p_adjusted for t in tests), found, _undetected(tests))])
    counts = (
        f"Of {len(tests):,} differences that were tested ({_listed(data)}; every two runs in every "
        f"group that both have), {len(found):,} were shown, and {same:,} were shown to be smaller "
        "than the margin of equivalence; of the others nothing was shown."
    )
    return Screen(
        shown.findings, shown.not_shown, shown.kinds, (counts, *_beliefs(data), *_overlap(data))
    )


def _difference(data: SeveralData, t: Contrast, explorer: str) -> Finding:
    scale, unit, form = scale_of(t.measure)
    said = Markup(
        "The mean {} of what <b>{}</b> says of <b>{}</b> is {}{} {} than of what <b>{}</b> says {}."
    ).format(
        t.measure.replace("_", " "), t.first, t.group,
        figure(abs(t.difference.value) * scale, form), unit,
        "higher" if t.difference.value > 0 else "lower", t.second,
        interval(upwards(t.difference), scale, form),
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
        "measures.",
        f"{t.n[0]:,} and {t.n[1]:,} statements.",
        [("What one says and the other does not, in the explorer", address)] if address else [],
        t.p_adjusted, size(t.difference),
    )  # fmt: skip


def _undetected(tests: list[Contrast]) -> str:
    sizes = [t.detectable for t in tests if t.measure == "regard" and t.detectable == t.detectable]
    if not sizes:
        return "a difference between the runs"
    scale, unit, form = scale_of("regard")
    return (
        "a difference between the runs (of regard, one of "
        f"{number(max(sizes) * scale, form)}{unit} would have been found in 80% of cases)"
    )


def _listed(data: SeveralData) -> str:
    """The measures that the runs were tested on, as a sentence has them."""
    *names, last = (measure.name.replace("_", " ") for measure in data.measures)
    return f"{', '.join(names)} and {last}" if names else last


def _beliefs(data: SeveralData) -> tuple[str, ...]:
    """What the models of the first two runs believe of the same statements, by category."""
    said = []
    for category in data.categories:
        found = data.beliefs(category)
        if found is None:
            continue
        two = next(found.two())
        a, b = (found.sides[n].label for n in (two.first, two.second))
        r = two.correlation
        alike = f"; their lifts correlate at {number(r.value, '.2f')}{_within(r)}"
        said.append(
            f"Of {two.pairs:,} pairs of a group of {category} and a statement that both were "
            f"asked about, {a} believes {two.believed[0]:,}, {b} {two.believed[1]:,}, both "
            f"{two.both:,}{alike if r.value == r.value else ''}."
        )
    return tuple(said)


def _within(e: Estimate) -> str:
    return f" [{e.interval('.2f')}]" if e.has_interval else ""


def _overlap(data: SeveralData) -> tuple[str, ...]:
    """How much of what one run says another says too, of the two that share the most."""
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
        f"same words{near}: the largest such share of all pairs of runs. Two crawls of one "
        "model do not share everything either.",
    )
