"""The first screen of a report: what was shown about a model, strongest first, from every source.

Findings are of several kinds: what the model believes about groups, differences in what it says
about them, what its vectors hold, what an augmentation arm changes. A kind is examined if the run
has data for it, and the first question is always: is there anything at all? That test has its own
p-value (`FindingKind.omnibus_p`), and a kind is shown if this is at most 0.05 divided by the number
of kinds examined (Bonferroni). So among screens of models with nothing to find, at most one in
twenty shows anything. Within a kind, each finding keeps the correction of its own family and names
it.

A folded line at the end says what was not shown, and what would have been found. If nothing was
shown, what the model says of each group most often stands in the place of findings.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from markupsafe import Markup

from kgbias.compare.content_tests import (
    ATTRIBUTE,
    MEANING,
    PREDICATE,
    TOPIC,
    WORD,
    ContentTest,
    DistinctiveFeature,
)
from kgbias.compare.families import (
    REST,
    SIGNIFICANCE_LEVEL,
    GroupTest,
    OmnibusTest,
    differs_only_together,
)
from kgbias.compare.refusals import CategoryRefusals, GroupRefusals
from kgbias.crawl.seeds import CUSTOM_CATEGORY
from kgbias.evidence.evidence_table import BELIEVED_VERDICTS, Evidence
from kgbias.io import pages
from kgbias.io.text import format_number, format_p_value, spoken_name
from kgbias.io.wording import pluralise
from kgbias.language.words import join_words
from kgbias.measures import get_measure
from kgbias.probe.belief import BELIEVED
from kgbias.probe.result import Statement
from kgbias.report.parts import Finding, FindingKind, report_parts
from kgbias.report.run_data import ArmData, RunData
from kgbias.report.style import explorer_url, read_template_file, statements_url
from kgbias.report.tables import format_mean_count
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import holm

MIN_STATEMENTS = 20  # statements; differences are not reported for groups with fewer
MAX_FINDINGS = 4
MAX_FINDINGS_OF_A_KIND = 3
NOTHING_SHOWN = "Nothing was shown."
MAX_LISTED_GROUPS = 12  # of more, a sentence gives the number or the ends


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """The first screen: findings, strongest first; what was looked for and not shown, kind by
    kind; how many kinds were examined; what is said if there are no findings; and the most
    frequent statements of each group, which then stand in their place."""

    findings: Sequence[Finding] = ()
    not_shown: Sequence[str] = ()
    kinds: int = 0
    remarks: Sequence[str] = field(default=())
    none: str = NOTHING_SHOWN
    frequent: Sequence["FrequentStatements"] = ()


class FrequentStatements(NamedTuple):
    """What is said of a group most often, each with how often, out of so many statements; and how
    often the first of them."""

    group: str
    statements: int
    top_count: int
    quotes: Mapping[str, int]


def build_screen(data: RunData, explorer: str = "") -> FirstScreen:
    """The first screen of a run; empty if it was not measured or holds too little."""
    of_methods = (part.find_kind for part in report_parts() if part.find_kind)
    made = (make_kind(data, explorer) for make_kind in (*_KIND_BUILDERS, *of_methods))
    first_screen = build_screen_of_kinds([kind for kind in made if kind is not None])
    if few := _few_statements_note(data):
        first_screen = replace(first_screen, remarks=(few, *first_screen.remarks))
    if first_screen.findings:
        return first_screen
    return replace(first_screen, frequent=_frequent_statements(data))


def _count_statements(arm: ArmData) -> Counter[str]:
    """How many statements about each group there are, by its name."""
    said_of = Counter[str]()
    for triple in arm.triples:
        said_of[triple.group] += triple.count
    return said_of


def _groups_with_enough(arm: ArmData, category: str) -> set[str]:
    """The groups of a category of which there are enough statements, and of all others together."""
    of_category = {g.name for g in arm.run.groups if g.category == category}
    said_of = {name: n for name, n in _count_statements(arm).items() if name in of_category}
    total = sum(said_of.values())
    return {name for name, n in said_of.items() if min(n, total - n) >= MIN_STATEMENTS}


def _content_tests(arm: ArmData) -> list[ContentTest]:
    """Those with a group of which something could be told."""
    return [test for test in arm.content if _groups_with_enough(arm, test.category)]


def _tone_families(arm: ArmData) -> list[OmnibusTest]:
    """Those with a group of which something could be told."""
    return [
        family
        for family in arm.omnibus
        if not math.isnan(family.p) and any(min(t.n) >= MIN_STATEMENTS for t in family.tests)
    ]


def _few_statements_note(data: RunData) -> str:
    """Of which groups a difference in what is said is not told, as there is too little."""
    if (arm := data.plain_arm) is None or not arm.triples:
        return ""
    said_of = _count_statements(arm)
    few = [g.name for g in data.run.groups if said_of[g.name] < MIN_STATEMENTS]
    if not few:
        return ""
    of_whom = (
        "every group"
        if len(few) == len(data.run.groups)
        else join_names(few)
        if len(few) <= MAX_LISTED_GROUPS
        else pluralise(len(few), "group")
    )
    return (
        f"What is said of a group is compared from {MIN_STATEMENTS} statements on: there are "
        f"fewer about {of_whom}."
    )


def _frequent_statements(data: RunData) -> Sequence[FrequentStatements]:
    """What is said of each group most often, with how often."""
    if (arm := data.plain_arm) is None:
        return ()
    frequent = []
    for group in data.run.groups:
        said = Counter[str]()  # by what it reads, since one sentence may be several triples
        for triple in arm.by_group.get(group.id, ()):
            said[join_words(triple.predicate, triple.object)] += triple.count
        most_said = sorted(said.items(), key=lambda item: (-item[1], item[0]))
        if quotes := dict(most_said[:MAX_FINDINGS_OF_A_KIND]):
            frequent.append(FrequentStatements(group.name, said.total(), most_said[0][1], quotes))
    return frequent


def build_screen_of_kinds(kinds: Sequence[FindingKind]) -> FirstScreen:
    """The findings of the kinds that pass when tested together, in order of p-value: at most four,
    and three of a kind."""
    shown_findings: list[Finding] = []
    missing: list[str] = []
    remarks: list[str] = []
    for kind in kinds:
        # All kinds are asked at once, so they share the level (Bonferroni).
        passed = kind.findings if kind.omnibus_p <= SIGNIFICANCE_LEVEL / len(kinds) else ()
        shown_findings += sorted(passed, key=lambda f: f.order)[:MAX_FINDINGS_OF_A_KIND]
        missing.append(kind.rest_not_shown if passed else kind.nothing)
        remarks += [kind.remark] if passed and kind.remark else []
    shown_findings.sort(key=lambda f: f.order)
    looked_at = [kind.examined for kind in kinds if kind.examined]
    nothing_shown = (
        f"No difference between groups was shown {_join_examined(looked_at)}."
        if looked_at
        else NOTHING_SHOWN
    )
    return FirstScreen(
        shown_findings[:MAX_FINDINGS],
        [f"{text}." for text in missing if text],
        len(kinds),
        tuple(remarks),
        nothing_shown,
    )


def _join_examined(parts: Sequence[str]) -> str:
    """What was looked at, as the end of a sentence."""
    return " or ".join(filter(None, (", ".join(f"in {p}" for p in parts[:-1]), f"in {parts[-1]}")))


def _belief_kind(data: RunData, explorer: str) -> FindingKind | None:
    """Statements that the model's probabilities tie to a group, by the group's names."""
    evidence = data.evidence
    if evidence.belief_run is None or not evidence.floor["tested"]:
        return None
    floor = evidence.floor
    believed = [row for row in evidence.rows if row.verdict in BELIEVED_VERDICTS]
    believed.sort(key=lambda row: (row.q_value, -row.lift.value, row.id))
    # "Asian people love Asian food" says little.
    naming = {
        id for line in evidence.belief_run.record.get("categories", ()) for id in line["naming"]
    }
    strongest: dict[str, Evidence] = {}
    for row in believed:
        if Statement(row.predicate, row.object).id not in naming:
            strongest.setdefault(row.group, row)  # the strongest of each group
    _, edges = data.beliefs or (None, ())
    naming_count = sum(e.verdict == BELIEVED and e.statement_id in naming for e in edges)
    model = evidence.belief_run.model.title
    by_chance = floor["found"] * floor["pairs"] / floor["tested"]
    remark = (
        f"In all, {floor['believed']:,} of {floor['pairs']:,} pairs of a group and a statement are "
        f"believed. Of as many pairs with made-up names, {format_mean_count(by_chance)} would be "
        f"believed on average."
    )
    if naming_count:
        remark += (
            f" In {naming_count:,} of the {floor['believed']:,} pairs the statement names a "
            f"group: such pairs are not among the findings above."
        )
    other_model = "" if evidence.belief_run.model.id == data.run.model.id else model
    findings = [_belief_finding(row, model, other_model) for row in strongest.values()]
    not_shown = (
        f"statements that the probabilities of {model} tie to a group (of {floor['pairs']:,} pairs)"
    )
    looked_at = f"what {model} believes of them"
    return FindingKind(floor["p_value"], findings, not_shown, remark=remark, examined=looked_at)


def _belief_finding(row: Evidence, model: str, other_model: str) -> Finding:
    """A belief; `other_model` names the model where it is not the one that was crawled."""
    sentence = Markup(
        "After the names of <b>{}</b>, {} finds “{}” {} bits likelier than after the names of the "
        "other groups of {} {}."
    ).format(
        row.group,
        model,
        f"{row.predicate} {row.object}"[:200],
        bold_figure(row.lift.value, ".1f"),
        row.category,
        small_interval(row.lift, 1, ".1f"),
    )
    test_note = (
        "Beyond what each name makes likelier anyway. By t-test over "
        f"{pluralise(row.lift.n, 'name')} of the group, against half a bit: "
        f"{p_value_words(row.q_value)}, corrected "
        "for the statements tried about this group (Benjamini and Hochberg); it holds with any one "
        "of the names left out."
    )
    link = ("This statement", statements_url(group=row.group, words=row.object))
    all_link = ("All beliefs", "#beliefs")
    return Finding(
        f"What {other_model or 'it'} believes",
        sentence,
        test_note,
        _said_note(row),
        [link, all_link] if row.count else [all_link],
        row.q_value,
        relative_size(row.lift),
        row.category,
    )


def _said_note(row: Evidence) -> str:
    if not row.times:
        return "The crawl never said it about this group, only about others."
    times = "once" if row.times == 1 else f"{row.times} times"
    return f"The crawl said it about this group {times}."


def _difference_kind(data: RunData, explorer: str) -> FindingKind | None:
    """Differences between a group and the rest of its category in what is said about it."""
    arm = data.plain_arm
    families = [] if arm is None else _tone_families(arm)
    if arm is None or not families:
        return None
    family_p = holm([f.headline_p_value for f in families])
    findings, quiet = [], []
    for family, p in zip(families, family_p, strict=True):
        shown_tests = [
            t
            for t in family.tests
            if p <= SIGNIFICANCE_LEVEL and t.headline_differs and min(t.n) >= MIN_STATEMENTS
        ]
        findings += [
            _difference_finding(data, arm, t, float(p), len(families), explorer)
            for t in shown_tests
        ]
        quiet += [] if shown_tests else [family]
    none = _undetected_note(families) or "differences between groups in what is said about them"
    measures = ", ".join(dict.fromkeys(spoken_name(f.measure) for f in families))
    return FindingKind(
        float(min(family_p)),
        findings,
        none,
        _undetected_note(quiet),
        examined=f"its tone ({measures})",
    )


def _content_kind(data: RunData, explorer: str) -> FindingKind | None:
    """What is said of a group more often than of the others."""
    arm = data.plain_arm
    tests = [] if arm is None else _content_tests(arm)
    if arm is None or not tests:
        return None
    family_p = holm([t.p for t in tests])
    findings = []
    for test, p in zip(tests, family_p, strict=True):
        by_group: dict[str, list[DistinctiveFeature]] = {}
        told = _groups_with_enough(arm, test.category)
        for feature in test.found if p <= SIGNIFICANCE_LEVEL else ():
            if feature.group in told:
                by_group.setdefault(feature.group, []).append(feature)
        findings += [
            _content_finding(data, arm, test, features, float(p), len(tests))
            for features in by_group.values()
        ]
    tried = sum((Counter(t.features) for t in tests), Counter[str]())
    not_shown = (
        f"what it says of one group more often than of the others ({_count_features(tried)})"
    )
    return FindingKind(float(min(family_p)), findings, not_shown, examined="what it says of them")


_KINDS_OF_FEATURES = {
    WORD: ("word", "words"),
    ATTRIBUTE: ("attribute", "attributes"),
    PREDICATE: ("predicate", "predicates"),
    TOPIC: ("topic", "topics"),
    MEANING: ("cluster", "clusters of statements that mean nearly the same"),
}


def _count_features(features: Mapping[str, int]) -> str:
    """How many features of each kind were tried, in words."""
    counts = []
    for kind, (singular, plural) in _KINDS_OF_FEATURES.items():
        n = features.get(kind, 0)
        if n:
            counts.append(f"{n:,} {singular if n == 1 else plural}")
    return f"{', '.join(counts[:-1])} and {counts[-1]}" if len(counts) > 1 else "".join(counts)


def _content_finding(
    data: RunData,
    arm: ArmData,
    test: ContentTest,
    features: Sequence[DistinctiveFeature],
    family_p: float,
    categories: int,
) -> Finding:
    """What is said more of one group, the largest first; what rests on the same statements once."""
    distinct = _keep_distinct(features)[:MAX_FINDINGS_OF_A_KIND]
    strongest, *others = distinct
    unit = data.draws.unit
    difference = strongest.difference
    sentence = Markup(
        "About <b>{}</b> it {} in {} of {} {}, about the other groups{} in {} of {}: {}{} "
        "percentage points more {}"
    ).format(
        strongest.group,
        _feature_phrase(strongest),
        strongest.prompts,
        strongest.group_total,
        # Prompts that led to no statement that counts are not among them.
        "answered prompts" if data.draws.is_known else unit,
        _of_category(test.category),
        strongest.others,
        f"{strongest.others_total:,}",
        "among prompts asked alike, " if data.draws.is_known else "",
        bold_figure(100 * difference.value, ".0f"),
        small_interval(difference, 100, ".0f"),
    )
    if others:
        also = ", ".join(
            f"“{o.feature}” ({o.prompts} of {o.group_total}, and {o.others} of {o.others_total:,})"
            for o in others
        )
        sentence += Markup(". The same holds for {}").format(also)
    chance_note = (
        ""
        if math.isnan(test.floor)
        else f"By chance, {format_mean_count(test.floor)} would be found on average. "
    )
    test_note = (
        f"By dealing whole {unit} anew, exact: {p_value_words(strongest.q)}, corrected (Benjamini "
        f"and "
        f"Hochberg) for the {_count_features(test.features)} tried about each group. Whether any "
        f"group{_of_category(test.category)} differs in any of them: {p_value_words(family_p)}, "
        f"{correction_words(categories, 'such question')}. {chance_note}"
        "What the prompt gave and names of groups do not count."
    )
    sentences = {t.id: t.sentence for t in arm.triples}
    quotes = [sentences[id] for id in strongest.triples if id in sentences][:MAX_FINDINGS_OF_A_KIND]
    words = {} if strongest.kind in (MEANING, TOPIC) else {"words": strongest.feature}
    links = [("These statements", statements_url(group=strongest.group, arm=arm.label, **words))]
    return Finding(
        "What it says more of",
        sentence + ".",
        test_note,
        " ".join(f"“{s}”" for s in quotes),
        links,
        family_p,
        strongest.log_odds,
        test.category,
    )


def _of_category(category: str) -> str:
    """Of which category the groups are, with a space before it; "" for groups that have none."""
    return "" if category == CUSTOM_CATEGORY else f" of {category}"


def _feature_phrase(finding: DistinctiveFeature) -> Markup:
    """What it does, as part of a sentence."""
    does = {
        WORD: "speaks of “{}”",
        ATTRIBUTE: "speaks of “{}”",
        TOPIC: "speaks of the topic “{}”",
        PREDICATE: "says that they “{}” something",
        MEANING: "says “{}”, or nearly that,",
    }
    return Markup(does[finding.kind]).format(finding.feature)


def _keep_distinct(features: Sequence[DistinctiveFeature]) -> list[DistinctiveFeature]:
    """Those whose statements are not mostly those of a stronger one."""
    distinct: list[DistinctiveFeature] = []
    for feature in features:
        triples = set(feature.triples)
        if all(
            # Half of the smaller: a rare word is otherwise found again within a frequent one.
            2 * len(triples & set(k.triples)) < min(len(triples), len(k.triples))
            for k in distinct
        ):
            distinct.append(feature)
    return distinct


def _difference_finding(
    data: RunData, arm: ArmData, test: GroupTest, family_p: float, families: int, explorer: str
) -> Finding:
    form = get_measure(test.measure).form.lstrip("+")
    other_name = "the other groups" if test.second == REST else test.second
    by_labels, difference = (
        test.label_corrected_difference.is_tested,
        test.label_corrected_difference
        if test.label_corrected_difference.is_tested
        else test.difference,
    )
    sentence = Markup(
        "The mean {} of what it says about <b>{}</b>{} is {} {} than that of {} {}."
    ).format(
        spoken_name(test.measure),
        test.first,
        ", corrected by labels," if by_labels else "",
        bold_figure(abs(difference.value), form),
        "higher" if difference.value > 0 else "lower",
        other_name,
        small_interval(make_positive(difference), 1, form),
    )
    chosen = test.forms.get("chosen")
    if by_labels:
        sentence += Markup(" <small>As the scorer says: {} {}.</small>").format(
            _minus_signs(format_number(test.difference.value, f"+{form}")),
            small_interval(test.difference, 1, f"+{form}"),
        )
    elif chosen is not None:
        sentence += Markup(" <small>For predicates that it chose itself: {} {}.</small>").format(
            _minus_signs(format_number(chosen.value, f"+{form}")),
            small_interval(chosen, 1, f"+{form}"),
        )
    method = (
        f"By t-test of the difference that {difference.n} labels correct"
        if by_labels
        else f"By permutation of whole {data.draws.unit}"
    )
    p_own = test.label_corrected_difference.p_adjusted if by_labels else test.p_adjusted
    test_note = (
        f"{method}{', with one mix of prompts for all groups' if data.draws.is_known else ''}: "
        f"{p_value_words(p_own)}, {correction_words(test.family, 'comparison')}. "
        f"Whether the groups{_of_category(test.category)} differ at all: "
        f"{p_value_words(family_p)}, {correction_words(families, 'such question')}."
        f"{scale_sentence(test.measure)}"
    )
    links = [(f"What it says about {test.first}", statements_url(group=test.first, arm=arm.label))]
    if address := explorer_url(
        explorer,
        view="differences",
        source=f"{data.run.name}/{arm.name}",
        group=test.first,
        **({} if test.second == REST else {"with": test.second}),
    ):
        links.append(("in the explorer", address))
    return Finding(
        "What it says",
        sentence,
        test_note,
        f"{pluralise(test.n[0], 'statement', spec=',')} about {test.first}, {test.n[1]:,} about "
        f"{other_name}.",
        links,
        max(family_p, p_own),
        relative_size(difference),
        test.category,
    )


def _undetected_note(families: Sequence[OmnibusTest]) -> str:
    """The difference in each measure that would have been found, where that is known; and which
    families show one on their own, so that the page does not seem to contradict itself."""
    by_category: dict[str, list[str]] = {}
    for family in families:
        tested = [
            t for t in family.tests if not (math.isnan(t.p) and math.isnan(t.headline_detectable))
        ]
        if tested:
            measures = by_category.setdefault(family.category, [])
            measures.append(f"{spoken_name(family.measure)} ({_detectable_words(tested)})")
    if not by_category:
        return ""
    parts = "; ".join(
        f"{_of_category(category)} in {', '.join(measures)}".strip()
        for category, measures in by_category.items()
    )
    regard = f"; regard: {REGARD_SCALE}" if any(f.measure == "regard" for f in families) else ""
    return (
        f"differences between groups {parts}; in brackets, the difference that the test of one "
        f"group, by itself, would find in 80% of such crawls{regard}{_alone_note(families)}"
    )


def _detectable_words(tests: Sequence[GroupTest]) -> str:
    """The largest difference that a test of one group needs to find it, and of how many groups none
    is known: none that is possible would be found, or what is said does not vary."""
    sizes = [t.headline_detectable for t in tests if not math.isnan(t.headline_detectable)]
    if not sizes:
        return "none known"
    largest = f"{max(sizes):{get_measure(tests[0].measure).form.lstrip('+')}}"
    unknown = len(tests) - len(sizes)
    return f"{largest}; for {unknown} of {len(tests)} groups none known" if unknown else largest


def _alone_note(families: Sequence[OmnibusTest]) -> str:
    shown_measures = _list_families(f for f in families if any(t.headline_differs for t in f.tests))
    joint_measures = _list_families(f for f in families if differs_only_together(f.tests))
    claims = [f"a difference in {shown_measures}"] if shown_measures else []
    claims += (
        [f"that groups differ in {joint_measures}, but not which of them"] if joint_measures else []
    )
    if not claims:
        return ""
    return (
        f". The tests of one measure alone show {' and '.join(claims)}: that is not shown among "
        f"all the questions of this page"
    )


def _list_families(families: Iterable[OmnibusTest]) -> str:
    return ", ".join(f"{spoken_name(f.measure)}{_of_category(f.category)}" for f in families)


REGARD_SCALE = "\N{MINUS SIGN}1 if all statements are negative, 1 if all are positive"
"""What the values of mean regard are."""


def scale_sentence(measure: str) -> str:
    """A sentence that says what the values of regard are, with a space before it; "" for other
    measures, whose units are known."""
    if measure != "regard":
        return ""
    return f" Regard: {REGARD_SCALE}."


def _arm_kind(data: RunData, explorer: str) -> FindingKind | None:
    """What the prefixes of an augmentation arm change."""
    tests = [t for t in data.arm_tests if t.second == "none" and not math.isnan(t.p)]
    tests = [t for t in tests if min(t.n) >= MIN_STATEMENTS]
    if not tests:
        return None
    family_p = holm([t.p for t in tests])
    findings = [
        Finding(
            "What the prompt does",
            Markup(
                "Asked with the prefixes of arm <b>{}</b>, the mean {} of what it says about {} is "
                "{} {} than when asked plainly {}."
            ).format(
                t.first,
                spoken_name(t.measure),
                t.category,
                bold_figure(abs(t.difference.value), form),
                "higher" if t.difference.value > 0 else "lower",
                small_interval(make_positive(t.difference), 1, form),
            ),
            f"By permutation of whole {data.draws.unit}: {p_value_words(float(p))}, "
            f"{correction_words(len(tests), 'comparison')} of an arm with "
            f"none.{scale_sentence(t.measure)}",
            f"{t.n[0]:,} and {pluralise(t.n[1], 'statement', spec=',')}.",
            [("All arms", "#augmentations")],
            float(p),
            relative_size(t.difference),
        )
        for t, p in zip(tests, family_p, strict=True)
        if p <= SIGNIFICANCE_LEVEL and t.differs
        for form in [get_measure(t.measure).form.lstrip("+")]
    ]
    return FindingKind(float(min(family_p)), findings, "an effect of the augmentation arms")


@dataclass(frozen=True, slots=True)
class OmnibusQuestion:
    """Whether the groups of a category differ at all in one thing, which comes before any finding.

    Attributes:
        kind: "said more", "tone" or "refusals".
        category: of the groups.
        measure: whose tone; "" for the other kinds.
        p: of no group differing.
        p_corrected: corrected (Holm) over the questions of this kind, of which there are `asked`.
        tried: what was tried of each group, by kind, for "said more".
        share: of prompts refused, for "refusals".
    """

    kind: str
    category: str
    measure: str
    p: float
    p_corrected: float
    asked: int
    tried: Mapping[str, int] = field(default_factory=dict)
    share: Estimate = field(default_factory=Estimate.missing)


def list_omnibus_questions(data: RunData) -> list[OmnibusQuestion]:
    """The questions that a report puts to what a run's model says, by kind."""
    arm = data.plain_arm
    content = [] if arm is None else _content_tests(arm)
    tone = [] if arm is None else _tone_families(arm)
    refusals = [t for t in data.refusals if not math.isnan(t.p)]
    asked: list[list[OmnibusQuestion]] = [
        [
            OmnibusQuestion("said more", t.category, "", t.p, t.p, 1, dict(t.features))
            for t in content
        ],
        [OmnibusQuestion("tone", f.category, f.measure, f.headline_p_value, 1.0, 1) for f in tone],
        [
            OmnibusQuestion("refusals", t.category, "", t.p, t.p, 1, share=t.share)
            for t in refusals
            if t.is_notable
        ],
    ]
    return [
        replace(question, p_corrected=float(p_corrected), asked=len(of_kind))
        for of_kind in asked
        if of_kind
        for question, p_corrected in zip(of_kind, holm([q.p for q in of_kind]), strict=True)
    ]


def _refusal_kind(data: RunData, explorer: str) -> FindingKind | None:
    """About whom the model declines to answer more often."""
    tests = [t for t in data.refusals if t.is_notable and not math.isnan(t.p)]
    if not tests:
        return None
    family_p = holm([t.p for t in tests])
    findings = [
        _refusal_finding(group_refusals, test, float(p), len(tests))
        for test, p in zip(tests, family_p, strict=True)
        for group_refusals in test.groups
        if p <= SIGNIFICANCE_LEVEL and group_refusals.q <= SIGNIFICANCE_LEVEL
        # Of two groups, one is told from the other: that is said once.
        if len(test.groups) > 2 or group_refusals.difference.value > 0
    ]
    shares = "; ".join(
        f"{100 * t.share.value:.0f}% of {t.share.n:,} prompts{_of_category(t.category)}: "
        f"{_group_shares(t)}"
        for t in tests
    )
    asked = sum(t.share.n for t in tests)
    declined = sum(t.share.value * t.share.n for t in tests)
    return FindingKind(
        float(min(family_p)),
        findings,
        f"about whom it declines more often to answer ({shares})",
        remark=f"Refusals: {shares}.",
        examined=f"how often it declines to answer ({100 * declined / asked:.0f}% of {asked:,} "
        "prompts)",
    )


def _group_shares(test: CategoryRefusals) -> str:
    """The shares of refused prompts of each group; of many, the least and the greatest."""
    by_share = sorted(test.groups, key=lambda g: (g.share.value, g.group))
    if len(by_share) > MAX_LISTED_GROUPS:
        least, most = by_share[0], by_share[-1]
        return f"from {_group_share_words(least)} to {_group_share_words(most)}"
    return join_names([_group_share_words(refusals) for refusals in by_share])


def join_names(names: Sequence[str]) -> str:
    """Names in a row, kept apart by semicolons where one of them has a comma."""
    return ("; " if any("," in name for name in names) else ", ").join(names)


def _group_share_words(group_refusals: GroupRefusals) -> str:
    return f"{group_refusals.group} {100 * group_refusals.share.value:.0f}%"


def _refusal_finding(
    group_refusals: GroupRefusals, test: CategoryRefusals, family_p: float, categories: int
) -> Finding:
    more = "more" if group_refusals.difference.value > 0 else "less"
    others = [g.group for g in test.groups if g.group != group_refusals.group]
    other_groups = f"the other groups{_of_category(test.category)}"
    sentence = Markup(
        "About <b>{}</b> it declines {} often to answer than about {}: {}% of "
        "prompts {}, {} percentage points {} {}."
    ).format(
        group_refusals.group,
        more,
        others[0] if len(others) == 1 else other_groups,
        bold_figure(100 * group_refusals.share.value, ".0f"),
        small_interval(group_refusals.share, 100, ".0f"),
        bold_figure(abs(100 * group_refusals.difference.value), ".0f"),
        more,
        small_interval(make_positive(group_refusals.difference), 100, ".0f"),
    )
    test_note = (
        f"By dealing whole prompts anew, by their first attempts: "
        f"{p_value_words(group_refusals.q)}, corrected for "
        f"{pluralise(len(test.groups), 'group')}. Whether any group{_of_category(test.category)} "
        f"differs: {p_value_words(family_p)}, {correction_words(categories, 'such question')}."
    )
    return Finding(
        "About whom it declines",
        sentence,
        test_note,
        f"{pluralise(group_refusals.share.n, 'prompt', spec=',')} about {group_refusals.group}.",
        (),
        max(family_p, group_refusals.q),
        relative_size(group_refusals.difference),
        test.category,
    )


_KIND_BUILDERS: Sequence[Callable[[RunData, str], FindingKind | None]] = (
    _content_kind,
    _difference_kind,
    _refusal_kind,
    _belief_kind,
    _arm_kind,
)


def make_positive(estimate: Estimate) -> Estimate:
    """The estimate with its sign turned positive, interval included."""
    return (
        estimate
        if estimate.value >= 0
        else Estimate(-estimate.value, -estimate.high, -estimate.low, estimate.n)
    )


def relative_size(estimate: Estimate) -> float:
    """The size of an estimate relative to the width of its interval."""
    return (
        abs(estimate.value) / (estimate.high - estimate.low)
        if estimate.has_interval and estimate.high > estimate.low
        else math.inf
    )


def bold_figure(value: float, form: str) -> Markup:
    return Markup("<b class='figure'>{}</b>").format(_minus_signs(format_number(value, form)))


def small_interval(estimate: Estimate, scale: float, form: str) -> Markup:
    if not estimate.is_shown:
        return Markup("")
    low, high = (
        _minus_signs(format_number(end * scale, form)) for end in (estimate.low, estimate.high)
    )
    return Markup("<small>[{} to {}]</small>").format(low, high)


def _minus_signs(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def correction_words(count: int, tests: str, *, by: str = "Holm") -> str:
    """How many tests a p-value is corrected for, in words."""
    return f"the only {tests}" if count == 1 else f"corrected ({by}) for {count} {tests}s"


def p_value_words(p: float) -> str:
    formatted = format_p_value(p)
    return f"p {formatted}" if formatted.startswith("<") else f"p = {formatted}"


def render_screen(screen: FirstScreen) -> Markup:
    """The sentences of the first screen as HTML."""
    return Markup(
        pages.fill_template(
            read_template_file("findings.html"), screen=screen, max_groups=MAX_LISTED_GROUPS
        )
    )
