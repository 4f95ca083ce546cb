"""The first screen of a report of several runs: where they differ most, and how far they agree."""

from collections.abc import Iterator

from markupsafe import Markup

from kgbias.compare.families import LEVEL
from kgbias.report.findings import Finding, balance, percent, verdict
from kgbias.report.links import explored
from kgbias.report.several import overlaps
from kgbias.report.several_data import SeveralData
from kgbias.statistics import STATISTICS, bootstrap


def several_findings(data: SeveralData, explorer: str = "") -> list[Finding]:
    """Where regard differs most, how many differences there are, and how much is said by several:
    each where the runs have something for it."""
    return [*_widest(data, explorer), *_how_many(data), *_overlap(data)]


def _widest(data: SeveralData, explorer: str) -> Iterator[Finding]:
    tests = [t for t in data.differences if t.measure == "regard"]
    if not tests:
        return
    t = min(tests, key=lambda t: (t.p_adjusted, -abs(t.difference.value)))
    sides = {side.run.name: side for side in data.sides}
    ids = {name: id for groups in data.categories.values() for id, name in groups}
    means = [
        bootstrap(data.sample(sides[run], ids[t.group], "regard"), STATISTICS["mean"])
        for run in (t.first, t.second)
    ]
    said = Markup("Of <b>{}</b>, <b>{}</b> says {} in 100; <b>{}</b> {}.").format(
        t.group, t.first, balance(means[0]), t.second, balance(means[1])
    )
    links = []
    source = {run: f"{run}/{sides[run].name}" for run in (t.first, t.second)}
    if address := explored(
        explorer, view="differences", source=source[t.first], other=source[t.second],
        inGroup=t.group,
    ):  # fmt: skip
        links.append(("What one says and the other does not, in the explorer", address))
    yield Finding(
        "Where they differ", said,
        verdict(t.p_adjusted, f"{t.family} differences in all measures"),
        f"{t.n[0]} and {t.n[1]} statements. Of all groups and pairs of runs, the difference of "
        "regard that is least likely by chance.",
        links,
    )  # fmt: skip


def _how_many(data: SeveralData) -> Iterator[Finding]:
    tests = data.differences
    if not tests:
        return
    found = [t for t in tests if t.p_adjusted <= LEVEL]
    same = [t for t in tests if t.p_adjusted > LEVEL and t.equivalent_adjusted <= LEVEL]
    said = Markup(
        "Of {} differences in {}, <b class='figure'>{}</b> are more than chance; "
        "<b class='figure'>{}</b> are shown to be too small to matter; of the other {} nothing can "
        "be said with so few statements."
    ).format(len(tests), _listed(data), len(found), len(same), len(tests) - len(found) - len(same))
    yield Finding(
        "How often they differ", said, "",
        "Every two runs in every group that both have; p-values are corrected over all of them.",
        [("All differences", "#differences")],
    )  # fmt: skip


def _listed(data: SeveralData) -> str:
    """The measures that the runs differ in, as a sentence has them."""
    *names, last = (measure.name.replace("_", " ") for measure in data.measures)
    return f"{', '.join(names)} and {last}" if names else last


def _overlap(data: SeveralData) -> Iterator[Finding]:
    found = list(overlaps(data))
    if not found:
        return
    a, b, same, alike = max(found, key=lambda row: (row[3] or row[2]).value)
    names = data.names
    said = Markup("Of what <b>{}</b> says, <b>{}</b> says {} {} in the same words").format(
        names[a], names[b], *percent(same)
    )
    if alike is not None:
        said += Markup(", and {} {} with near-duplicates").format(*percent(alike))
    yield Finding(
        "How much they share", said + ".", "",
        f"{same.n} distinct statements. Of all pairs of runs, the one that shares the most. Two "
        "crawls of one model share less than everything too.",
        [("All pairs", "#overlap")],
    )  # fmt: skip
