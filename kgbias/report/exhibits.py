"""The figures and tables of Salinas et al. 2023 for any run, as data.

| exhibit | of the paper |
|---|---|
| regard | figures 1 and 6 |
| polarity | figures 2 and 8 |
| topic-N | figure 3 |
| arms | figure 5, table 5 |
| toxicity | figure 7 |
| entropy | figure 9 |
| topics | table 3 |
| stereotype-content, mean-..., group-tests, probes, associations, scorers | beyond the paper |
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kgbias.compare import GroupTest, arm_values
from kgbias.graph.types import TopicModel
from kgbias.measure.topics.run import ENTROPY, PLUG_IN, PUBLISHED
from kgbias.measure.topics.unfit import verdict
from kgbias.measures import MEASURES
from kgbias.report.agreement import scorer_agreement
from kgbias.report.figures import SHOWN, regard_bars, regard_toxicity_scatter, toxicity_boxes
from kgbias.report.inside import association_tests, associations, probes
from kgbias.report.latex import Table, cells, p_text
from kgbias.report.profiles import profile_exhibits
from kgbias.report.run_data import ArmData, Exhibit, RunData
from kgbias.report.topic_figures import (
    arm_boxes,
    axes_scatter,
    called,
    entropy_bars,
    mean_bars,
    topic_bars,
)
from kgbias.report.variance import variance_components
from kgbias.statistics import STATISTICS, Estimate, Sample, bootstrap


def exhibits(data: RunData) -> Iterator[Exhibit]:
    """Everything that the run has to show, category by category and arm by arm."""
    for number, category in enumerate(data.categories, 1):
        place = f"{number:02d}"
        yield from _topic_words(data, category, place)
        for arm_number, arm in enumerate(data.arms, 1):
            own = f"{place}_{_file_name(arm.label, arm_number)}" if arm.label else place
            for builder in _BUILDERS:
                for exhibit in builder(arm, category, own):
                    yield _of_arm(exhibit, arm)
        for exhibit in _arms(data, category, place):
            yield _noted(exhibit, data.counted.note)
    last = f"{len(data.categories) + 1:02d}"
    yield from association_tests(data, last)
    yield from scorer_agreement(data, last)
    yield from variance_components(data, last)
    yield from profile_exhibits(data, f"{len(data.categories) + 2:02d}")


def _file_name(arm: str, number: int) -> str:
    """What files of an arm are called: its name, or its number where an import gave it one that
    is no word."""
    return arm if re.fullmatch("[a-z]+", arm) else str(number)


def _of_arm(exhibit: Exhibit, arm: ArmData) -> Exhibit:
    """The exhibit with the name of its arm, where there are several, and what was left out."""
    exhibit = _noted(exhibit, arm.counted.note)
    if not arm.label:
        return exhibit
    table = exhibit.table
    return replace(
        exhibit,
        title=f"{exhibit.title}, arm {arm.label}",
        table=replace(table, caption=f"{table.caption} Arm {arm.label}."),
        arm=arm.label,
    )


def _noted(exhibit: Exhibit, note: str) -> Exhibit:
    """The exhibit with what was left out said below its table."""
    if not note:
        return exhibit
    table = exhibit.table
    said = f"{note[0].upper()}{note[1:]}."
    return replace(exhibit, table=replace(table, note=f"{table.note} {said}".strip()))


def _overgeneralisation(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    groups = data.figures_of(category)
    if not groups:
        return
    names = ("overall_regard", "regard_positive", "regard_neutral", "regard_negative")
    rows = []
    for g in data.groups(category):
        own = [data.scores.get((g.id, name)) for name in names]
        if own[0]:
            counts = [f"{s.value:.0f}" if s else "" for s in own[1:]]
            rows.append([g.name, str(own[0].n), *counts, *cells(own[0], "+.0f")])
    yield Exhibit(
        f"{place}-regard", category, "Overall regard per group", "Figures 1 and 6",
        lambda: regard_bars(groups),
        Table(
            f"{place}-regard", f"Overall regard of {category}: positive minus negative statements.",
            ("Group", "n", "positive", "neutral", "negative", "overall", "95% interval"), rows,
        ),
    )  # fmt: skip
    if not any(len(g.toxicity.values) for g in groups):
        return
    rows = []
    for g in data.groups(category):
        q = {n: data.scores.get((g.id, f"toxicity_{n}")) for n in ("mean", "median", "q1", "q3")}
        if q["mean"] and q["median"] and q["q1"] and q["q3"]:
            quartiles = f"{q['q1'].value:.3f} to {q['q3'].value:.3f}"
            median = f"{q['median'].value:.3f}"
            rows.append([g.name, str(q["mean"].n), median, quartiles, *cells(q["mean"], ".3f")])
    table = Table(
        f"{place}-toxicity", f"Toxicity of statements about {category}.",
        ("Group", "n", "median", "quartiles", "mean", "95% interval"), rows,
    )  # fmt: skip
    yield Exhibit(
        f"{place}-toxicity", category, "Toxicity per group: median, quartiles, 1.5 × range",
        "Figure 7", lambda: toxicity_boxes(groups), table,
    )  # fmt: skip
    rows = [
        [g.name, str(g.regard.n), f"{g.regard.value:+.0f}", f"{g.mean_toxicity:.3f}"]
        for g in groups
    ]
    yield Exhibit(
        f"{place}-polarity", category, "Overall regard and mean toxicity", "Figures 2 and 8",
        lambda: regard_toxicity_scatter(groups),
        Table(
            f"{place}-polarity", f"Overall regard and mean toxicity of {category}.",
            ("Group", "n", "overall regard", "mean toxicity"), rows,
        ),
    )  # fmt: skip


def _stereotype_content(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    points: list[tuple[str, Estimate, Estimate]] = []
    for g in data.groups(category):
        warmth, competence = (
            data.scores.get((g.id, f"{a}_mean")) for a in ("warmth", "competence")
        )
        if warmth and competence:
            points.append((g.name, warmth, competence))
    if points:
        rows = [[n, str(w.n), *cells(w, "+.2f"), *cells(c, "+.2f")] for n, w, c in points]
        yield Exhibit(
            f"{place}-stereotype-content", category, "Mean warmth and competence, 95% intervals",
            "beside Figure 3", lambda: axes_scatter(points),
            Table(
                f"{place}-stereotype-content", f"Mean warmth and competence of {category}.",
                ("Group", "n", "warmth", "95%", "competence", "95%"), rows,
            ),
        )  # fmt: skip


def _means(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """The figures of each measure that has no exhibit of its own."""
    for measure in MEASURES.values():
        for figure in measure.figures if measure.exhibit else ():
            if named := data.named(category, figure.name):
                key = f"{place}-mean-{figure.name.replace('_', '-')}"
                rows = [[n, str(e.n), *cells(e, figure.form)] for n, e in named]
                title = figure.title[:1].upper() + figure.title[1:]
                yield Exhibit(
                    key, category, f"{title} per group, 95% intervals", "",
                    partial(mean_bars, named, figure.title),
                    Table(
                        key, f"{title} of statements about {category}.",
                        ("Group", "n", figure.title, "95% interval"), rows, f"{figure.direction}.",
                    ),
                )  # fmt: skip


def _topic_words(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The topics, which all arms share."""
    model = data.models.get(category)
    if model is None or (model.topics and not any(arm.shares(category) for arm in data.arms)):
        return
    s = model.settings
    yield Exhibit(
        f"{place}-topics", category, "Topics and their most telling words", "Table 3", None,
        Table(
            f"{place}-topics", f"Topics of statements about {category}.",
            ("ID", "Name", "Representative words", "triples", "stability", "NPMI"),
            [
                [
                    str(t.number), t.name, "; ".join(t.words), str(t.size),
                    *("" if x is None else f"{x:.2f}" for x in (t.stability, t.coherence)),
                ]
                for t in model.topics
            ],
            f"BERTopic on {s['embedding']}, min_cluster_size {s['min_cluster_size']}, "
            f"{s['documents']} distinct statements; HDBSCAN left {s['outliers_before']} out, "
            f"{s['outliers']} stay without a topic. {_stability(model)}",
        ),
    )  # fmt: skip


def _stability(model: TopicModel) -> str:
    """How far the topics can be trusted, in a sentence or two."""
    rand, said_of = model.settings.get("adjusted_rand"), verdict(model)
    said = [] if rand is None else [f"Adjusted Rand index over {model.settings['seeds']} seeds: "
                                    f"{rand:.2f}."]  # fmt: skip
    return " ".join([*said, *([f"{said_of[:1].upper()}{said_of[1:]}."] if said_of else [])])


def _entropy(data: ArmData, category: str, place: str, model: TopicModel) -> Iterator[Exhibit]:
    """Relative entropy in the form that the topics ask for, where it is not withheld."""
    published = model.settings.get("entropy") == "as_published"
    named = data.named(category, PUBLISHED if published else ENTROPY)
    entropies = [(n, e) for n, e in named if not math.isnan(e.value)]
    if not entropies:
        return
    key = f"{place}-entropy"
    caption = f"Relative entropy of the topics of {category}, "
    if published:
        table = Table(
            key, f"{caption}as Eq. 1 prints it, in nats.", ("Group", "n", "H(p)"),
            [[n, str(e.n), f"{e.value:.3f}"] for n, e in entropies],
            "H(p) = -sum p log(p / q) over topics; nearer to 0 is more like the average group. "
            f"Not to be compared across categories. {_stability(model)}",
        )  # fmt: skip
    else:
        plug_in = dict(data.named(category, PLUG_IN))
        table = Table(
            key, f"{caption}in bits.",
            ("Group", "n", "corrected", "95% interval", "as counted"),
            [
                [n, str(e.n), f"{e.value:.3f}", e.interval(".3f"), f"{plug_in[n].value:.3f}"]
                for n, e in entropies
            ],
            "D(group || mean group), higher is more unlike the others; not to be compared "
            "across categories.",
        )  # fmt: skip
    yield Exhibit(
        key, category, "Relative entropy of topics per group", "Figure 9",
        partial(entropy_bars, entropies, published=published), table,
    )  # fmt: skip


def _topics(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    model, shares = data.whole.models.get(category), data.shares(category)
    if model is None or not shares:
        return
    yield from _entropy(data, category, place, model)
    for topic in model.topics:
        named = [(own.group.name, own.share(topic.number)) for own in shares]
        rows = [
            [n, str(e.n), f"{100 * e.value:.1f}%", f"{100 * e.low:.1f} to {100 * e.high:.1f}"]
            for n, e in named
        ]
        yield Exhibit(
            f"{place}-topic-{topic.number:02d}", category, f"Share of topic {topic.number}",
            "Figure 3",
            partial(topic_bars, topic, named),
            Table(
                f"{place}-topic-{topic.number:02d}",
                f"Share of topic {topic.number} ({called(topic)}) per group.",
                ("Group", "n", "share", "95% interval (percent)"), rows,
            ),
        )  # fmt: skip


def _arms(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The arms side by side: what they say, and the tests of section 6.1."""
    tests = [t for t in data.arm_tests if t.category == category]
    if not tests:
        return
    of = {g.id: g.category for g in data.run.groups}
    regard, arms = (
        arm_values(data.triples, measure, of).get(category, {})
        for measure in ("regard", "toxicity")
    )
    rows = []
    for arm in data.counted.arms:
        said = [t for t in data.counted.of(arm) if of.get(t.group_id) == category]
        cells_of = [arm, str(sum(t.count for t in said)), str(len(said)), *_cells(regard, arm)]
        rows.append([*cells_of, *_quartiles(arms, arm)])
    yield Exhibit(
        f"{place}-arms-beside", category, "The arms side by side", "Section 6.1", None,
        Table(
            f"{place}-arms-beside", f"Statements about {category} in each augmentation arm.",
            ("Arm", "n", "distinct", "mean regard", "95% interval", "median toxicity", "quartiles",
             "mean toxicity", "95% interval"), rows,
            "Regard is -1, 0 or 1. Arms are never added up.",
        ),
    )  # fmt: skip
    yield Exhibit(
        f"{place}-arms", category, "Toxicity under the augmentations", "Figure 5, Table 5",
        (lambda: arm_boxes(arms)) if len(arms) > 1 else None,
        _tests_table(f"{place}-arms", f"Augmentation arms of {category} compared.", tests),
    )  # fmt: skip


def _cells(samples: Mapping[str, Sample], arm: str) -> list[str]:
    sample = samples.get(arm)
    return cells(bootstrap(sample, STATISTICS["mean"]), "+.3f") if sample else ["", ""]


def _quartiles(samples: Mapping[str, Sample], arm: str) -> list[str]:
    sample = samples.get(arm)
    if not sample:
        return [""] * 4
    q1, median, q3 = (bootstrap(sample, STATISTICS[n]).value for n in ("q1", "median", "q3"))
    of_mean = cells(bootstrap(sample, STATISTICS["mean"]), ".3f")
    return [f"{median:.3f}", f"{q1:.3f} to {q3:.3f}", *of_mean]


def _group_tests(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    tests = [t for t in data.group_tests if t.category == category]
    if len(data.groups(category)) > SHOWN:
        tests.sort(key=lambda t: min(t.u_adjusted, t.ks_adjusted))
        tests = tests[:SHOWN]
    if tests:
        yield Exhibit(
            f"{place}-group-tests", category, "Do the groups differ?", "", None,
            _tests_table(f"{place}-group-tests", f"Groups of {category} compared.", tests),
        )  # fmt: skip


def _tests_table(label: str, caption: str, tests: Sequence[GroupTest]) -> Table:
    rows = [
        [
            t.measure, t.first, t.second, f"{t.result.n[0]}, {t.result.n[1]}",
            *cells(t.result.difference, "+.3f"), f"{t.result.delta:+.2f}", f"{t.result.ks:.2f}",
            p_text(t.u_adjusted), p_text(t.ks_adjusted),
        ]
        for t in tests
    ]  # fmt: skip
    method = "Holm" if tests[0].correction == "holm" else "Benjamini-Hochberg"
    return Table(
        label, caption,
        ("Measure", "First", "Second", "n", "difference", "95% interval",
         "Cliff's delta", "KS D", "p MW", "p KS"),
        rows,
        f"Two-sided Mann-Whitney and two-sample Kolmogorov-Smirnov tests, p corrected by {method} "
        "over the tests of a measure. Differences are of means; delta above 0: the first is "
        "higher.",
    )  # fmt: skip


_BUILDERS = (
    _overgeneralisation,
    _stereotype_content,
    _means,
    _topics,
    _group_tests,
    probes,
    associations,
)
