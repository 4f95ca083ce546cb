"""The first screen of a report: what was shown about a model, strongest first, from every source.

Findings are of several kinds: what the model believes about groups, differences in what it says
about them, what its vectors hold, what an augmentation arm changes. A kind is examined if the run
has data for it, and the first question is always: is there anything at all? That test has its own
p-value (`Kind.p`), and a kind is shown if this is at most 0.05 divided by the number of kinds
examined (Bonferroni). So among screens of models with nothing to find, at most one in twenty shows
anything. Within a kind, each finding keeps the correction of its own family and names it.

A folded line at the end says what was not shown, and what would have been found. If nothing was
shown, what the model says of each group most often stands in the place of findings.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from kgbias.compare.families import SIGNIFICANCE_LEVEL, REST, GroupTest, OmnibusTest, differs_only_together
from kgbias.compare.refusals import CategoryRefusals, GroupRefusals
from kgbias.compare.content_tests import (
    ATTRIBUTE,
    MEANING,
    PREDICATE,
    TOPIC,
    WORD,
    ContentTest,
    DistinctiveFeature,
)
from kgbias.crawl.seeds import CUSTOM_CATEGORY
from kgbias.evidence.evidence_table import BELIEVED_VERDICTS, Evidence
from kgbias.graph.types import ChosenEdge, Group, TripleView, node_id
from kgbias.io import pages
from kgbias.io.text import format_number, format_p_value, spoken_name
from kgbias.measures import known
from kgbias.probe.belief import BELIEVED
from kgbias.probe.result import Statement
from kgbias.report.run_data import ArmData, RunData
from kgbias.report.style import explored, statements, template
from kgbias.report.tables import few
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import holm

FEWEST = 20  # statements; differences are not reported for groups with fewer
SHOWN = 4
OF_A_KIND = 3
NOTHING_SHOWN = "Nothing was shown."
MAX_GROUPS = 12  # whose statements stand in the place of findings


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence of the first screen.

    Attributes:
        topic: what it is about.
        said: the sentence, its figures with their intervals, as HTML.
        tested: how it was tested, among how many, and how the p-value was corrected.
        basis: what it rests on.
        links: where to look, as (text, address).
        category: the category of groups that it is about, if it is about one.
        p: its corrected p-value, by which findings are ordered.
        size: breaks ties in p: its size over the width of its interval or, of what is said more,
            its log-odds with an informative prior.
    """

    topic: str
    said: Markup
    tested: str
    basis: str = ""
    links: Sequence[tuple[str, str]] = ()
    p: float = math.nan
    size: float = 0.0
    category: str = ""

    @property
    def order(self) -> tuple[float, float]:
        return self.p, -self.size


@dataclass(frozen=True, slots=True)
class Kind:
    """All findings of one kind.

    Attributes:
        p: the p-value of there being nothing at all of this kind.
        findings: what was shown, each after its own correction, strongest first.
        nothing: what was not shown, as part of a sentence, if the kind is not shown.
        rest: the same if it is.
        remark: a sentence about all of its findings.
        looked_at: what was looked at, as part of a sentence.
    """

    p: float
    findings: Sequence[Finding]
    nothing: str
    rest: str = ""
    remark: str = ""
    looked_at: str = ""


@dataclass(frozen=True, slots=True)
class Screen:
    """The first screen: findings, strongest first; what was looked for and not shown, as a
    sentence; how many kinds were examined; what is said if there are no findings; and what is then
    shown of each group, its most frequent statements."""

    findings: Sequence[Finding] = ()
    not_shown: str = ""
    kinds: int = 0
    remarks: Sequence[str] = field(default=())
    none: str = NOTHING_SHOWN
    frequent: Sequence[tuple[str, Sequence[str]]] = ()


def findings(data: RunData, explorer: str = "") -> Screen:
    """The first screen of a run; empty if it was not measured or holds too little."""
    kinds = [kind for make in _KINDS if (kind := make(data, explorer)) is not None]
    found = screen(kinds)
    return found if found.findings else replace(found, frequent=_frequent(data))


def _frequent(data: RunData) -> Sequence[tuple[str, Sequence[str]]]:
    """What is said of each group most often, with how often."""
    if (arm := data.plain) is None:
        return ()
    found = []
    for group in data.run.groups[:MAX_GROUPS]:
        often = sorted(arm.by_group.get(group.id, ()), key=lambda t: (-t.count, t.sentence))
        said = [f"“{t.predicate} {t.object}” {t.count}×" for t in often[:OF_A_KIND]]
        if said:
            found.append((group.name, said))
    return found


def screen(kinds: Sequence[Kind]) -> Screen:
    """The findings of the kinds that pass when tested together, in order of p-value: at most five,
    and three of a kind."""
    found: list[Finding] = []
    missing: list[str] = []
    remarks: list[str] = []
    for kind in kinds:
        shown = kind.findings if kind.p <= SIGNIFICANCE_LEVEL / len(kinds) else ()
        found += sorted(shown, key=lambda f: f.order)[:OF_A_KIND]
        missing.append(kind.rest if shown else kind.nothing)
        remarks += [kind.remark] if shown and kind.remark else []
    found.sort(key=lambda f: f.order)
    said = "; ".join(filter(None, missing))
    looked_at = [kind.looked_at for kind in kinds if kind.looked_at]
    none = (
        f"No difference between groups was shown {_in(looked_at)}." if looked_at else NOTHING_SHOWN
    )
    return Screen(
        found[:SHOWN], f"Not shown: {said}." if said else "", len(kinds), tuple(remarks), none
    )


def _in(parts: Sequence[str]) -> str:
    """What was looked at, as the end of a sentence."""
    return " or ".join(filter(None, (", ".join(f"in {p}" for p in parts[:-1]), f"in {parts[-1]}")))


def _believed(data: RunData, explorer: str) -> Kind | None:
    """Statements that the model's probabilities tie to a group, by the group's names."""
    found = data.joint
    if found.belief_run is None or not found.floor["tested"]:
        return None
    floor = found.floor
    held = [row for row in found.rows if row.verdict in BELIEVED_VERDICTS]
    held.sort(key=lambda row: (row.q_value, -row.lift.value, row.id))
    naming = {
        id for line in found.belief_run.record.get("categories", ()) for id in line["naming"]
    }  # "Asian people love Asian food" says little
    own: dict[str, Evidence] = {}
    for row in held:
        if Statement(row.predicate, row.object).id not in naming:
            own.setdefault(row.group, row)  # the strongest of each group
    _, edges = data.beliefs or (None, ())
    named = sum(e.verdict == BELIEVED and e.statement_id in naming for e in edges)
    model = found.belief_run.model.title
    nothing = floor["found"] * floor["of"] / floor["tested"]
    total = (
        f"In all, {floor['believed']:,} of {floor['of']:,} pairs of a group and a statement are "
        f"believed. Of as many pairs with made-up names, {few(nothing)} would be believed on "
        "average."
    )
    if named:
        total += (
            f" In {named:,} of the {floor['believed']:,} pairs the statement names a group: such "
            "pairs are not among the findings above."
        )
    other = "" if found.belief_run.model.id == data.run.model.id else model
    findings = [_belief(row, model, other) for row in own.values()]
    none = f"statements that the probabilities of {model} tie to a group (of {floor['of']:,} pairs)"
    looked_at = f"what {model} believes of them"
    return Kind(floor["p"], findings, none, remark=total, looked_at=looked_at)


def _belief(row: Evidence, model: str, other: str) -> Finding:
    """A belief; `other` names the model where it is not the one that was crawled."""
    said = Markup(
        "After the names of <b>{}</b>, {} finds “{}” {} bits likelier than after the names of the "
        "other groups of {} {}."
    ).format(
        row.group, model, f"{row.predicate} {row.object}"[:200], figure(row.lift.value, ".1f"),
        row.category, interval(row.lift, 1, ".1f"),
    )  # fmt: skip
    tested = (
        "Beyond what each name makes likelier anyway. By t-test over "
        f"{row.lift.n} names of the group, against half a bit: {in_words(row.q_value)}, corrected "
        "for the statements tried about this group (Benjamini and Hochberg); it holds with any one "
        "of the names left out."
    )
    link = ("This statement", statements(group=row.group, words=row.object))
    every = ("All beliefs", "#beliefs")
    return Finding(
        f"What {other or 'it'} believes", said, tested, _said(row),
        [link, every] if row.count else [every],
        row.q_value, size(row.lift), row.category,
    )  # fmt: skip


def _said(row: Evidence) -> str:
    if not row.times:
        return "The crawl never said it about this group, only about others."
    times = "once" if row.times == 1 else f"{row.times} times"
    return f"The crawl said it about this group {times}."


def _differences(data: RunData, explorer: str) -> Kind | None:
    """Differences between a group and the rest of its category in what is said about it."""
    arm = data.plain
    families = [] if arm is None else [f for f in arm.omnibus if not math.isnan(f.p)]
    if arm is None or not families:
        return None
    together = holm([f.headline_p_value for f in families])
    findings, quiet = [], []
    for family, p in zip(families, together, strict=True):
        own = [t for t in family.tests if p <= SIGNIFICANCE_LEVEL and t.headline_differs and min(t.n) >= FEWEST]
        findings += [_difference(data, arm, t, float(p), len(families), explorer) for t in own]
        quiet += [] if own else [family]
    none = _undetected(families) or "differences between groups in what is said about them"
    measures = ", ".join(dict.fromkeys(spoken_name(f.measure) for f in families))
    return Kind(
        float(min(together)), findings, none, _undetected(quiet),
        looked_at=f"the tone of what it says ({measures})",
    )  # fmt: skip


def _content(data: RunData, explorer: str) -> Kind | None:
    """What is said of a group more often than of the others."""
    arm = data.plain
    tests = [] if arm is None else arm.content
    if arm is None or not tests:
        return None
    together = holm([t.p for t in tests])
    said_of = Counter[str]()
    for triple in arm.triples:
        said_of[triple.group] += triple.count
    findings = []
    for test, p in zip(tests, together, strict=True):
        own: dict[str, list[DistinctiveFeature]] = {}
        for one in test.found if p <= SIGNIFICANCE_LEVEL else ():
            if said_of[one.group] >= FEWEST:
                own.setdefault(one.group, []).append(one)
        findings += [
            _said_more(data, arm, test, found, float(p), len(tests)) for found in own.values()
        ]
    tried = sum((Counter(t.features) for t in tests), Counter[str]())
    what = f"what it says of one group more often than of the others ({_tried(tried)})"
    return Kind(float(min(together)), findings, what, looked_at="what it says of them")


_KINDS_OF_FEATURES = {
    WORD: ("word", "words"), ATTRIBUTE: ("attribute", "attributes"),
    PREDICATE: ("predicate", "predicates"), TOPIC: ("topic", "topics"),
    MEANING: ("cluster", "clusters of statements that mean nearly the same"),
}  # fmt: skip


def _tried(features: Mapping[str, int]) -> str:
    """How many features of each kind were tried, in words."""
    listed = [
        f"{n:,} {one if n == 1 else many}"
        for kind, (one, many) in _KINDS_OF_FEATURES.items()
        if (n := features.get(kind, 0))
    ]
    return f"{', '.join(listed[:-1])} and {listed[-1]}" if len(listed) > 1 else "".join(listed)


def _said_more(
    data: RunData,
    arm: ArmData,
    test: ContentTest,
    found: Sequence[DistinctiveFeature],
    p: float,
    categories: int,
) -> Finding:
    """What is said more of one group, the largest first; what rests on the same statements once."""
    told = _apart(found)[:OF_A_KIND]
    first, *others = told
    unit = "prompts" if data.draws.is_known else "statements"
    d = first.difference
    said = Markup(
        "About <b>{}</b> it {} more often: in {} of {} {}, and in {} of {} about the other "
        "groups{}. Among {} asked alike, that is {} percentage points more {}"
    ).format(
        first.group, _speaks(first), first.prompts, first.of, unit, first.others,
        f"{first.of_others:,}", _within(test.category), unit, figure(100 * d.value, ".0f"),
        interval(d, 100, ".0f"),
    )  # fmt: skip
    if others:
        also = ", ".join(
            f"“{o.feature}” ({o.prompts} of {o.of}, and {o.others} of {o.of_others:,})"
            for o in others
        )
        said += Markup(". The same holds for {}").format(also)
    chance = few(test.floor) if not math.isnan(test.floor) else "none"
    tested = (
        f"By dealing whole {unit} anew, exact: {in_words(first.q)}, corrected (Benjamini and "
        f"Hochberg) for the {_tried(test.features)} tried about each group. Whether any group of "
        f"{test.category} differs in any of them: {in_words(p)}, "
        f"{of_all(categories, 'such question')}. By chance, {chance} would be found on average. "
        "What the prompt gave and names of groups do not count."
    )
    sentences = {t.id: t.sentence for t in arm.triples}
    shown = [sentences[id] for id in first.triples if id in sentences][:OF_A_KIND]
    words = {} if first.kind in (MEANING, TOPIC) else {"words": first.feature}
    links = [("Its statements", statements(group=first.group, arm=arm.label, **words))]
    return Finding(
        "What it says more of", said + ".", tested, " ".join(f"“{s}”" for s in shown), links,
        p, first.log_odds, test.category,
    )  # fmt: skip


def _within(category: str) -> str:
    """Of which category the groups are, with a space before it; "" for groups that have none."""
    return "" if category == CUSTOM_CATEGORY else f" of {category}"


def _speaks(one: DistinctiveFeature) -> Markup:
    """What it does, as part of a sentence."""
    does = {
        WORD: "speaks of “{}”", ATTRIBUTE: "speaks of “{}”", TOPIC: "speaks of the topic “{}”",
        PREDICATE: "says that they “{}” something", MEANING: "says “{}”, or nearly that",
    }  # fmt: skip
    return Markup(does[one.kind]).format(one.feature)


def _apart(found: Sequence[DistinctiveFeature]) -> list[DistinctiveFeature]:
    """Those whose statements are not mostly those of a stronger one."""
    kept: list[DistinctiveFeature] = []
    for one in found:
        own = set(one.triples)
        if all(2 * len(own & set(k.triples)) < min(len(own), len(k.triples)) for k in kept):
            kept.append(one)
    return kept


def _difference(
    data: RunData, arm: ArmData, t: GroupTest, p: float, families: int, explorer: str
) -> Finding:
    form = known(t.measure).form.lstrip("+")
    other = "the other groups" if t.second == REST else t.second
    by_labels, d = t.label_difference.is_tested, t.label_difference if t.label_difference.is_tested else t.difference
    said = Markup(
        "The mean {} of what it says about <b>{}</b>{} is {} {} than that of {} {}."
    ).format(
        spoken_name(t.measure), t.first, ", corrected by labels," if by_labels else "",
        figure(abs(d.value), form), "higher" if d.value > 0 else "lower", other,
        interval(upwards(d), 1, form),
    )  # fmt: skip
    chosen = t.forms.get("chosen")
    if by_labels:
        said += Markup(" <small>As the scorer says: {} {}.</small>").format(
            _minus(format_number(t.difference.value, f"+{form}")), interval(t.difference, 1, f"+{form}")
        )
    elif chosen is not None:
        said += Markup(" <small>For predicates that it chose itself: {} {}.</small>").format(
            _minus(format_number(chosen.value, f"+{form}")), interval(chosen, 1, f"+{form}")
        )
    how = (
        f"By t-test of the difference that {d.n} labels correct"
        if by_labels
        else "By permutation of whole prompts"
    )
    p_own = t.label_difference.p_adjusted if by_labels else t.p_adjusted
    tested = (
        f"{how}, with one mix of prompts for all groups: "
        f"{in_words(p_own)}, {of_all(t.family, 'comparison')} in {t.category}. "
        f"Whether the groups of {t.category} differ at all: {in_words(p)}, "
        f"{of_all(families, 'such question')}.{unit_of(t.measure)}"
    )
    links = [(f"What it says about {t.first}", statements(group=t.first, arm=arm.label))]
    if address := explored(
        explorer, view="differences", source=f"{data.run.name}/{arm.name}", group=t.first,
        **({} if t.second == REST else {"with": t.second}),
    ):  # fmt: skip
        links.append(("in the explorer", address))
    return Finding(
        "What it says", said, tested,
        f"{t.n[0]:,} statements about {t.first}, {t.n[1]:,} about {other}.", links,
        max(p, p_own), size(d), t.category,
    )  # fmt: skip


def _undetected(families: Sequence[OmnibusTest]) -> str:
    """The difference in each measure that would have been found, where that is known; and which
    families show one on their own, so that the page does not seem to contradict itself."""
    listed: dict[str, list[str]] = {}
    for family in families:
        sizes = [t.headline_detectable for t in family.tests if not math.isnan(t.headline_detectable)]
        if sizes:
            least = f"{max(sizes):{known(family.measure).form.lstrip('+')}}"
            if max(sizes) > known(family.measure).widest:
                least = "none that is possible"
            own = listed.setdefault(family.category, [])
            own.append(f"{spoken_name(family.measure)} ({least})")
    if not listed:
        return ""
    said = "; ".join(f"of {category} in {', '.join(own)}" for category, own in listed.items())
    regard = f"; regard: {REGARD}" if any(f.measure == "regard" for f in families) else ""
    return (
        f"differences between groups {said}; in brackets, the difference that the test of one "
        f"group, by itself, would find in 80% of such crawls{regard}{_alone(families)}"
    )


def _alone(families: Sequence[OmnibusTest]) -> str:
    told = _named(f for f in families if any(t.headline_differs for t in f.tests))
    together = _named(f for f in families if differs_only_together(f.tests))
    shown = [f"a difference in {told}"] if told else []
    shown += [f"that groups differ in {together}, but not which of them"] if together else []
    if not shown:
        return ""
    return (
        f". The tests of one measure alone show {' and '.join(shown)}: that is not shown among all "
        "the questions of this page"
    )


def _named(families: Iterable[OmnibusTest]) -> str:
    return ", ".join(f"{spoken_name(f.measure)} ({f.category})" for f in families)


REGARD = "\N{MINUS SIGN}1 if all statements are negative, 1 if all are positive"
"""What the values of mean regard are."""


def unit_of(measure: str) -> str:
    """A sentence that says what the values of regard are, with a space before it; "" for other
    measures, whose units are known."""
    if measure != "regard":
        return ""
    return f" Regard: {REGARD}."


def _arms(data: RunData, explorer: str) -> Kind | None:
    """What the prefixes of an augmentation arm change."""
    tests = [t for t in data.arm_tests if t.second == "none" and not math.isnan(t.p)]
    tests = [t for t in tests if min(t.n) >= FEWEST]
    if not tests:
        return None
    together = holm([t.p for t in tests])
    findings = [
        Finding(
            "What the prompt does",
            Markup(
                "Asked with the prefixes of arm <b>{}</b>, the mean {} of what it says about {} is "
                "{} {} than when asked plainly {}."
            ).format(
                t.first, spoken_name(t.measure), t.category,
                figure(abs(t.difference.value), form),
                "higher" if t.difference.value > 0 else "lower",
                interval(upwards(t.difference), 1, form),
            ),
            f"By permutation of whole prompts: {in_words(float(p))}, "
            f"{of_all(len(tests), 'comparison')} of an arm with none.{unit_of(t.measure)}",
            f"{t.n[0]:,} and {t.n[1]:,} statements.",
            [("All arms", "#augmentations")],
            float(p),
            size(t.difference),
        )
        for t, p in zip(tests, together, strict=True)
        if p <= SIGNIFICANCE_LEVEL and t.differs
        for form in [known(t.measure).form.lstrip("+")]
    ]  # fmt: skip
    none = "an effect of the augmentation arms"
    return Kind(
        float(min(together)), findings, none, looked_at="what the prefixes of its prompts change"
    )


def _embedded(data: RunData, explorer: str) -> Kind | None:
    """Association tests of the run."""
    nodes = [a for a in data.associations if not math.isnan(a.p_value)]
    if not nodes:
        return None
    together = holm([a.p_value for a in nodes])
    findings = [
        Finding(
            "What its vectors hold",
            Markup("{}, by {} in {}: effect size {} {}.").format(
                a.test, a.method, a.model.title, figure(a.effect_size, "+.2f"),
                interval(Estimate(a.effect_size, a.low, a.high, 0), 1, "+.2f"),
            ),
            f"Permutation of the target words, {in_words(float(p))}, "
            f"{of_all(len(nodes), 'test')}. Above 0: the first targets go with the first "
            "attributes.",
            f"{a.n_x} and {a.n_y} target words.",
            [("All tests", "#associations")],
            float(p),
            abs(a.effect_size),
        )
        for a, p in zip(nodes, together, strict=True)
        if p <= SIGNIFICANCE_LEVEL
    ]  # fmt: skip
    none = "an association in its vectors"
    return Kind(
        float(min(together)), findings, none, looked_at="what its vectors associate with them"
    )


def _declined(data: RunData, explorer: str) -> Kind | None:
    """About whom the model declines to answer more often."""
    tests = [t for t in data.refusals if t.is_notable and not math.isnan(t.p)]
    if not tests:
        return None
    together = holm([t.p for t in tests])
    findings = [
        _declines(one, test, float(p), len(tests))
        for test, p in zip(tests, together, strict=True)
        for one in test.groups
        if p <= SIGNIFICANCE_LEVEL and one.q <= SIGNIFICANCE_LEVEL
    ]
    shares = "; ".join(
        f"{100 * t.share.value:.0f}% of {t.share.n:,} prompts{_within(t.category)}, {_by_group(t)}"
        for t in tests
    )
    return Kind(
        float(min(together)), findings, "about whom it declines more often to answer",
        remark=f"Refusals: {shares}.",
        looked_at=f"how often it declines to answer about them ({shares})",
    )  # fmt: skip


def _by_group(test: CategoryRefusals) -> str:
    """The shares of refused prompts of each group; of many, the least and the greatest."""
    by_share = sorted(test.groups, key=lambda g: (g.share.value, g.group))
    if len(by_share) > MAX_GROUPS:
        least, most = by_share[0], by_share[-1]
        return f"from {_share(least)} to {_share(most)}"
    return ", ".join(map(_share, by_share))


def _share(one: GroupRefusals) -> str:
    return f"{one.group} {100 * one.share.value:.0f}%"


def _declines(one: GroupRefusals, test: CategoryRefusals, p: float, categories: int) -> Finding:
    more = "more" if one.difference.value > 0 else "less"
    said = Markup(
        "About <b>{}</b> it declines {} often to answer than about the other groups{}: {}% of "
        "prompts {}, {} percentage points {} {}."
    ).format(
        one.group, more, _within(test.category), figure(100 * one.share.value, ".0f"),
        interval(one.share, 100, ".0f"), figure(abs(100 * one.difference.value), ".0f"), more,
        interval(upwards(one.difference), 100, ".0f"),
    )  # fmt: skip
    tested = (
        f"By dealing whole prompts anew, by their first attempts: {in_words(one.q)}, corrected "
        f"(Holm) for {len(test.groups)} groups. Whether any group of {test.category} differs: "
        f"{in_words(p)}, {of_all(categories, 'such question')}."
    )
    return Finding(
        "About whom it declines", said, tested, f"{one.share.n:,} prompts about {one.group}.",
        (), max(p, one.q), size(one.difference), test.category,
    )  # fmt: skip


def _chosen(data: RunData, explorer: str) -> Kind | None:
    """Statements for which a model that was made to choose chose a group more often."""
    own = [c for c in data.choices if c[0].model.id == data.run.model.id]
    if not own:
        return None
    choosing, edges = own[0]
    tested = [e for e in edges if e.q_value is not None]
    if not tested:
        return None
    groups = {g.id: g for g in data.run.groups}
    texts = {
        (node_id("predicate", t.predicate), node_id("object", t.object)): t
        for t in data.counted.including_unacceptable
    }
    # Each q is corrected over the statements; here over the groups too.
    p = min(1.0, min(e.q_value or 0.0 for e in tested) * len({e.group_id for e in tested}))
    strongest: dict[str, ChosenEdge] = {}
    for e in sorted(tested, key=lambda e: (e.q_value or 0.0, -(e.lift or 0.0), e.statement_id)):
        if e.is_chosen_more and e.group_id in groups and (e.predicate_id, e.object_id) in texts:
            strongest.setdefault(e.group_id, e)
    model = choosing.model.title
    findings = [
        _chose(e, groups[e.group_id], texts[e.predicate_id, e.object_id], model)
        for e in strongest.values()
    ]
    what = f"statements for which {model}, made to choose, names one group more often"
    remark = (
        "A choice says which of the groups offered a model names for a statement. It is not what "
        "the model believes of that group alone."
    )
    looked_at = "which of them it names for a statement when it has to choose"
    return Kind(p, findings, what, remark=remark, looked_at=looked_at)


def _chose(e: ChosenEdge, group: Group, said: TripleView, model: str) -> Finding:
    low, high = (math.nan if end is None else end for end in (e.low, e.high))
    share = Estimate(e.share or 0.0, low, high, e.answered)
    base = "" if e.base is None else f", and over all statements in {100 * e.base:.0f}%"
    names = f"{e.names} names" if e.names > 1 else "one name"
    return Finding(
        "What it chooses",
        Markup(
            "Asked which group “{}” is about, {} chose <b>{}</b> more often than for other "
            "statements: in {}% of {} answers that offered it {}{}."
        ).format(
            f"{said.predicate} {said.object}"[:200], model, group.name,
            figure(100 * share.value, ".0f"), e.answered, interval(share, 100, ".0f"), base,
        ),
        f"{group.name} was offered under {names}: {in_words(e.q_value or 0.0)}, corrected over "
        "the statements.",
        "", (), e.q_value or 0.0, size(share), group.category,
    )  # fmt: skip


_KINDS: Sequence[Callable[[RunData, str], Kind | None]] = (
    _believed, _chosen, _content, _differences, _declined, _arms, _embedded,
)  # fmt: skip


def upwards(e: Estimate) -> Estimate:
    """The estimate with its sign turned positive, interval included."""
    return e if e.value >= 0 else Estimate(-e.value, -e.high, -e.low, e.n)


def size(e: Estimate) -> float:
    """The size of an estimate relative to the width of its interval."""
    return abs(e.value) / (e.high - e.low) if e.has_interval and e.high > e.low else math.inf


def figure(value: float, form: str) -> Markup:
    return Markup("<b class='figure'>{}</b>").format(_minus(format_number(value, form)))


def interval(e: Estimate, scale: float, form: str) -> Markup:
    if not e.has_interval:
        return Markup("")
    low, high = (_minus(format_number(end * scale, form)) for end in (e.low, e.high))
    return Markup("<small>[{} to {}]</small>").format(low, high)


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def of_all(count: int, tests: str, *, by: str = "Holm") -> str:
    """How many tests a p-value is corrected for, in words."""
    return f"the only {tests}" if count == 1 else f"corrected ({by}) for {count} {tests}s"


def in_words(p: float) -> str:
    shown = format_p_value(p)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def told(screen: Screen) -> Markup:
    """The sentences of the first screen as HTML."""
    return Markup(pages.fill_template(template("findings.html"), screen=screen))
