"""The first screen of a report: what it found, in sentences, by rules that do not depend on how the
findings come out.

The first three of these that the run has data for: the two groups of a category that regard sets
furthest apart; what an augmentation arm changes in toxicity; how much of what is said is believed;
the two groups that toxicity sets furthest apart; how much the wording moves. Groups with fewer than
20 statements are not looked at. Two groups are the extremes of all that were looked at, so their
p-value, of a difference of means, is Bonferroni's over every pair of groups of one category: it
holds however a pair is chosen.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import comb

from markupsafe import Markup

from kgbias.compare.families import LEVEL, detectable_difference
from kgbias.compare.models import normal_p
from kgbias.compare.paired import PERMUTATIONS, Drawn, permutation_p
from kgbias.compare.two_sample import mean_difference
from kgbias.evidence.verdicts import NEVER_SAID, SAID_AND_BELIEVED
from kgbias.graph.types import Group
from kgbias.measures import known
from kgbias.probe import belief
from kgbias.report.links import explored, statements
from kgbias.report.run_data import ArmData, RunData
from kgbias.statistics import STATISTICS, Estimate, Sample, bootstrap, proportion

FEWEST = 20  # statements of a group that is looked at
SHOWN = 3
_MOST = 199_999  # permutations


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence of the first screen.

    Attributes:
        topic: what it is about.
        said: the sentence, its figures with their intervals, as HTML.
        chance: whether chance could have done it.
        basis: on how many statements it rests, and how it was chosen.
        links: where to look, as (text, address).
    """

    topic: str
    said: Markup
    chance: str
    basis: str
    links: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Extremes:
    """The two groups of a category with the lowest and the highest mean of a measure.

    Attributes:
        groups: their names, the lower first.
        means: their means, with 95% intervals.
        difference: the first mean minus the second.
        p: of no difference (`_p_value`).
        pairs: how many pairs of groups they were chosen from.
        left_out: groups with too few statements.
    """

    measure: str
    groups: tuple[str, str]
    means: tuple[Estimate, Estimate]
    difference: Estimate
    p: float
    pairs: int
    left_out: int

    @property
    def p_value(self) -> float:
        """`p`, corrected for the pairs that they were chosen from (Bonferroni)."""
        return min(1.0, self.pairs * self.p)


def findings(data: RunData, explorer: str = "") -> list[Finding]:
    """The first three findings of a run; fewer where it was not measured or holds too little."""
    found = (finding for make in _RULES for finding in make(data, explorer))
    return list(islice(found, SHOWN))


def extremes(arm: ArmData, measure: str) -> Extremes | None:
    """The two groups that the measure sets furthest apart; None where no category has two groups
    with enough statements."""
    pairs = left_out = 0
    widest: tuple[float, list[tuple[Group, Sample]]] | None = None
    for category in arm.whole.categories:
        named = [
            (g, arm.whole.draws.sample(arm.by_group.get(g.id, []), measure))
            for g in arm.groups(category)
        ]
        kept = sorted(((n, s) for n, s in named if s.n >= FEWEST), key=lambda own: own[1].mean)
        left_out += len(named) - len(kept)
        pairs += comb(len(kept), 2)
        if len(kept) > 1:
            apart = kept[-1][1].mean - kept[0][1].mean
            if widest is None or apart > widest[0]:
                widest = apart, [kept[0], kept[-1]]
    if widest is None:
        return None
    (low, first), (high, second) = widest[1]
    means = (bootstrap(first, STATISTICS["mean"]), bootstrap(second, STATISTICS["mean"]))
    difference = mean_difference(first, second)
    p = _p_value(arm, (low, first), (high, second), difference, pairs)
    return Extremes(measure, (low.name, high.name), means, difference, p, pairs, left_out)


def _p_value(
    arm: ArmData,
    first: tuple[Group, Sample],
    second: tuple[Group, Sample],
    difference: Estimate,
    pairs: int,
) -> float:
    """Of no difference of means: by permutation of prompts within the kinds that both groups were
    asked with (`kgbias.compare.paired`), often enough for a p that is corrected for so many pairs;
    of statements whose prompts are not known, by the normal approximation."""
    sides = [Drawn.of(s, arm.whole.draws.strata(arm.name, g.id)) for g, s in (first, second)]
    p = math.nan
    if sides[0] is not None and sides[1] is not None:
        often = min(_MOST, max(PERMUTATIONS, 100 * pairs - 1))
        p = permutation_p(sides[0], sides[1], permutations=often)
    if math.isnan(p):
        p = normal_p(difference.value, (difference.high - difference.low) / (2 * 1.959964))
    return p


def _regard(data: RunData, explorer: str) -> Iterator[Finding]:
    arm = _plain(data)
    if arm is None or "regard" not in data.metrics:
        return
    found = extremes(arm, "regard")
    if found is None:
        yield from _alone(arm, explorer)
        return
    low, high = found.groups
    ways = [_way(e) for e in found.means]
    said = Markup("Of <b>{}</b> it says {} {} in 100 {}; of <b>{}</b> {}{} {}.").format(
        low, _number(found.means[0]), ways[0], _interval(found.means[0]),
        high, _number(found.means[1]), "" if ways[0] == ways[1] else f" {ways[1]}",
        _interval(found.means[1]),
    )  # fmt: skip
    links = _links(data, arm, found, explorer, [
        (f"What it says of {low} that is negative", {"group": low, "label": "negative"}),
        (f"of {high}", {"group": high, "label": "negative"}),
    ])  # fmt: skip
    yield Finding("What it says", said, _chance(found, "{:.0f} in 100"), _basis(found, arm), links)


def _alone(arm: ArmData, explorer: str) -> Iterator[Finding]:
    """Where no two groups can be compared: the one with the most statements, if it has enough."""
    sizes = [(arm.whole.draws.sample(own, "regard"), own) for own in arm.by_group.values()]
    sizes = [(sample, own) for sample, own in sizes if sample.n]
    if not sizes:
        return
    sample, own = max(sizes, key=lambda pair: pair[0].n)
    name = own[0].group
    if sample.n < FEWEST:
        yield Finding(
            "What it says",
            Markup("Too little was said to tell anything of a group."),
            "",
            f"No group has {FEWEST} statements; the most are {sample.n}, of {name}.",
        )
        return
    mean = bootstrap(sample, STATISTICS["mean"])
    said = Markup("Of <b>{}</b> it says {} {} in 100 {}.").format(
        name, _number(mean), _way(mean), _interval(mean)
    )
    by_chance = mean.low <= 0 <= mean.high
    yield Finding(
        "What it says",
        said,
        "The interval holds 0: it could be chance." if by_chance else "",
        f"{sample.n} statements. No other group of its category has {FEWEST}, so there is nothing "
        "to compare it with.",
        _addresses(arm, [(f"What it says of {name}", {"group": name})]),
    )


def _toxicity(data: RunData, explorer: str) -> Iterator[Finding]:
    arm = _plain(data)
    if arm is None or (found := extremes(arm, "toxicity")) is None:
        return
    low, high = found.groups
    said = Markup(
        "A statement about <b>{}</b> is toxic with a probability of {} {} on average; one about "
        "<b>{}</b> with {} {}."
    ).format(high, *percent(found.means[1]), low, *percent(found.means[0]))
    links = _links(data, arm, found, explorer, [
        (f"What it says of {high}", {"group": high}), (f"of {low}", {"group": low}),
    ])  # fmt: skip
    yield Finding(
        "How toxic it is", said, _chance(found, "{:.0f} percentage points"), _basis(found, arm),
        links,
    )  # fmt: skip


def _arms(data: RunData, explorer: str) -> Iterator[Finding]:
    tests = [
        t
        for t in data.arm_tests
        if t.measure == "toxicity" and min(t.result.n) >= FEWEST and t.second == "none"
    ]
    if not tests:
        return
    t = max(tests, key=lambda t: abs(t.result.difference.value))
    d = t.result.difference
    p = min(1.0, len(tests) * t.result.u_p)
    said = Markup(
        "Asked with the prefixes of arm <b>{}</b>, it makes statements about {} that are toxic "
        "with a probability of {}; asked plainly, of {}: {} percentage points {} {}."
    ).format(
        t.first, t.category, *(_bold(f"{100 * mean:.0f}%") for mean in t.result.means),
        _bold(f"{100 * abs(d.value):.0f}"), "more" if d.value > 0 else "less",
        _interval(d if d.value > 0 else d.divided(-1)),
    )  # fmt: skip
    chance = verdict(p, f"the {len(tests)} pairs of an arm and none that were looked at")
    yield Finding(
        "What the prompt does", said, chance,
        f"{t.result.n[0]} and {t.result.n[1]} statements. Of all arms and categories, the two that "
        "differ most.",
        [("All arms", "#augmentations")],
    )  # fmt: skip


def _believed(data: RunData, explorer: str) -> Iterator[Finding]:
    joint = data.joint
    said = {row.id: row for row in joint.rows if row.rank is not None and row.count}
    if joint.probing is None or not said:
        return
    held = [row for row in said.values() if row.verdict == SAID_AND_BELIEVED]
    share = proportion(len(held), len(said))
    model = joint.probing.model.name
    sentence = Markup("Of {} distinct statements that were made, {} finds {} {} likelier of "
                      "their group than of the others{}.")  # fmt: skip
    of = {name: sum(row.group == name for row in held) for name in {r.group for r in held}}
    most = max(of, key=lambda name: (of[name], name), default="")
    end: str | Markup = ""
    if len(held) > 1:
        share_of = "all of them" if of[most] == len(held) else f"{of[most]} of these"
        end = Markup("; {} are about <b>{}</b>").format(share_of, most)
    yield Finding(
        "What it believes",
        sentence.format(f"{len(said):,}", model, _bold(f"{len(held):,}"),
                        _shares(share), end),
        f"{joint.note}." if joint.note else
        f"Corrected for all statements that were looked at: of those that count as believed, up to "
        f"{joint.level:.0%} can be chance.",
        f"By the probabilities of {model}: at least {belief.MARGIN:g} bit beyond what it finds "
        f"likelier of the group anyway. {len(joint.by_verdict.get(NEVER_SAID, [])):,} more are "
        "believed of a group and were said only of others.",
        [("Said, believed, embedded", "#evidence")],
    )  # fmt: skip


def _wording(data: RunData, explorer: str) -> Iterator[Finding]:
    found = [
        c
        for c in data.variance
        if c.measure == "regard" and not (math.isnan(c.groups) or math.isnan(c.wordings))
    ]
    if not found:
        return
    c = max(found, key=lambda c: c.n)
    groups, wordings = math.sqrt(c.groups), math.sqrt(c.wordings)
    said = Markup(
        "Another wording of the prompt moves the regard of a group by {}; the groups of {} differ "
        "by {} (standard deviations)."
    ).format(_bold(f"{wordings:.2f}"), c.category, _bold(f"{groups:.2f}"))
    chance = (
        "What is said of a group depends more on how it was asked than on the group."
        if wordings > groups
        else "The groups differ more than the wordings do."
    )
    yield Finding(
        "How far to trust it", said, chance, f"{c.n} statements.", [("All of it", "#variance")]
    )


_RULES: Sequence[Callable[[RunData, str], Iterator[Finding]]] = (
    _regard, _arms, _believed, _toxicity, _wording,
)  # fmt: skip


def _plain(data: RunData) -> ArmData | None:
    """The arm that was asked plainly, else the first one."""
    return next((arm for arm in data.arms if arm.name == "none"), next(iter(data.arms), None))


def _way(e: Estimate) -> str:
    return "more negative than positive things" if e.value < 0 else (
        "more positive than negative things"
    )  # fmt: skip


def balance(e: Estimate) -> Markup:
    """A mean of regard in words: "33 more negative than positive things [19 to 48]"."""
    return Markup("{} {} {}").format(_number(e), _way(e), _interval(e))


def _number(e: Estimate) -> Markup:
    return _bold(f"{abs(100 * e.value):.0f}")


def _bold(text: str) -> Markup:
    return Markup("<b class='figure'>{}</b>").format(text)


def _interval(e: Estimate) -> Markup:
    """An interval of means in hundredths, in the direction of the value."""
    if not e.has_interval:
        return Markup("")
    way = -100 if e.value < 0 else 100
    low, high = sorted((way * e.low, way * e.high))
    return Markup("<small>[{} to {}]</small>").format(_signed(low), _signed(high))


def _signed(value: float) -> str:
    return f"{value:.0f}".replace("-0", "0").replace("-", "\N{MINUS SIGN}")


def percent(e: Estimate) -> tuple[Markup, Markup]:
    """A share in percent, and its interval."""
    return _bold(f"{100 * e.value:.0f}%"), _interval(e)


def _shares(e: Estimate) -> Markup:
    return Markup("<small>({:.1f}% [{:.1f} to {:.1f}])</small>").format(
        100 * e.value, 100 * e.low, 100 * e.high
    )


def verdict(p: float, family: str = "") -> str:
    """Whether chance could have done it; `family` says what `p` is corrected for."""
    shown = "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"
    corrected = f", corrected for {family}" if family else ""
    if p <= LEVEL:
        return f"The difference is more than chance would make it ({shown}{corrected})."
    return f"The difference can be chance ({shown}{corrected})."


def _chance(found: Extremes, form: str) -> str:
    said = verdict(found.p_value, f"{found.pairs} pairs of groups" if found.pairs > 1 else "")
    seen = detectable_difference(found.difference, found.pairs)
    if found.p_value <= LEVEL or math.isnan(seen):
        return said
    return f"{said} One of {form.format(100 * seen)} would have been found in 80% of cases."


def _basis(found: Extremes, arm: ArmData) -> str:
    n = f"{found.means[0].n} and {found.means[1].n} statements"
    if known(found.measure).worst == "highest":
        n = f"{found.means[1].n} and {found.means[0].n} statements"
    within = f" of arm {arm.name}" if arm.label else ""
    chosen = (
        "The only two groups that can be compared."
        if found.pairs == 1
        else "Of all groups of a category, the two furthest apart: chosen so, their difference is "
        "likely to be overstated."
    )
    out = f" Groups with fewer than {FEWEST} statements ({found.left_out}) were not looked at."
    return f"{n}{within}. {chosen}{out if found.left_out else ''}"


def _links(
    data: RunData,
    arm: ArmData,
    found: Extremes,
    explorer: str,
    named: Sequence[tuple[str, Mapping[str, str]]],
) -> list[tuple[str, str]]:
    links = _addresses(arm, named)
    low, high = found.groups
    if beside := explored(
        explorer, view="two", source=f"{data.run.name}/{arm.name}", group=low, **{"with": high}
    ):
        links.append(("Both in the explorer", beside))
    return links


def _addresses(
    arm: ArmData, named: Sequence[tuple[str, Mapping[str, str]]]
) -> list[tuple[str, str]]:
    return [(text, statements(**filters, arm=arm.label)) for text, filters in named]
