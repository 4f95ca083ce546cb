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
| pair, beliefs, belief-map, belief-names, believed-figures, said-believed, believed-beside,
believed-agreement, groups, stereotype-content, mean-..., group-tests, probes, choices,
agreement, in-stories, scorers, variance | beyond the paper |

An exhibit is a figure with its table, in files and in the report. To add one, write a builder here,
named in `_ARM_BUILDERS`, and name its key in a section of `SECTIONS`. Methods add theirs by
`kgbias.report.parts`.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from kgbias.compare.families import (
    REST,
    SIGNIFICANCE_RULE,
    GroupTest,
    arm_samples,
    compared_measures,
)
from kgbias.graph.cross_mentions import explain_costly_measures
from kgbias.graph.types import TopicModel
from kgbias.io.columns import CellWithForm, Column
from kgbias.io.text import format_p_value, spoken_name
from kgbias.io.wording import pluralise
from kgbias.measure.topics.run import (
    ENTROPY_MEASURE,
    PLUG_IN_ENTROPY,
    PUBLISHED_ENTROPY,
)
from kgbias.measure.topics.shares import (
    MIN_TOPIC_STATEMENTS,
    describe_stability,
    entropy_verdict,
)
from kgbias.measures import (
    CORRECTED_PREFIX,
    MEASURES,
    Figure,
    Measure,
    column_measures,
    corrected_figure,
    get_measure,
    label_count_words,
    label_source,
    order_measures,
)
from kgbias.report.beliefs import belief_comparison_exhibits, belief_exhibits
from kgbias.report.evidence import (
    closest_groups_exhibits,
    evidence_agreement_exhibits,
    said_believed_exhibits,
    scorer_agreement_exhibits,
    told_in_stories_exhibits,
)
from kgbias.report.figures import (
    MAX_GROUPS_SHOWN,
    draw_arm_toxicity,
    draw_differences,
    draw_entropy_bars,
    draw_mean_bars,
    draw_overall_regard,
    draw_regard_toxicity,
    draw_share_bars,
    draw_topic_bars,
    draw_toxicity_boxes,
    draw_warmth_competence,
    topic_title,
)
from kgbias.report.parts import SectionOfExhibits, report_parts
from kgbias.report.refusals import refusal_exhibits
from kgbias.report.run_data import ArmData, RunData
from kgbias.report.said_more import said_more_exhibits
from kgbias.report.tables import (
    COUNT_COLUMN,
    GROUP_COLUMN,
    Cell,
    Exhibit,
    Table,
    as_sentence,
)
from kgbias.stats.inference import (
    STATISTICS,
    Estimate,
    Sample,
    bootstrap,
    clustered_proportion,
    proportion,
)
from kgbias.stats.ppi import CorrectedDifference
from kgbias.stats.variance import deviation, note_narrow_intervals


def variance_exhibits(data: RunData, place: str) -> Iterator[Exhibit]:
    """A row for each measure in each category and arm, and in words which is larger wherever the
    interval of the difference leaves out 0."""
    if not data.variance:
        return
    rows = [
        [
            spoken_name(c.measure),
            c.category,
            c.arm or "none",
            c.n,
            *map(deviation, (c.groups, c.wordings.common, c.wordings.interaction)),
            math.sqrt(c.within),
        ]
        for c in data.variance
    ]
    verdicts = "; ".join(c.verdict for c in data.variance if c.verdict)
    note = as_sentence(verdicts)
    if not verdicts and any(c.wordings.interaction.has_interval for c in data.variance):
        note = (
            "Whether wordings or groups move a measure more cannot be told from so many wordings "
            "and groups."
        )
    key = f"{place}-variance"
    yield Exhibit(
        key,
        "",
        "Where the variance lies",
        "",
        None,
        Table(
            key,
            "Standard deviations with 95% intervals: between groups; between wordings, in "
            "what moves all groups alike; between groups by wordings, in what moves one group "
            "beyond that; and within.",
            (
                Column("Measure"),
                Column("category"),
                Column("arm"),
                COUNT_COLUMN,
                Column("groups", ".2f", interval=True),
                Column("wordings", ".2f", interval=True),
                Column("groups by wordings", ".2f", interval=True),
                Column("within", ".2f"),
            ),
            rows,
            note,
        ),
    )


def run_exhibits(data: RunData) -> Iterator[Exhibit]:
    """Everything that the run has to show, by category and arm."""
    parts = report_parts()
    arm_builders = (*_ARM_BUILDERS, *(part.of_arm for part in parts if part.of_arm))
    for number, category in enumerate(data.categories, 1):
        place = f"{number:02d}"
        yield from _topic_word_exhibits(data, category, place)
        places = [
            (arm, f"{place}_{_file_name(arm.label, number)}" if arm.label else place)
            for number, arm in enumerate(data.arms, 1)
        ]
        for arm, arm_place in places:
            for builder in arm_builders:
                for exhibit in builder(arm, category, arm_place):
                    yield _add_arm_notes(exhibit, arm, builder in _GROUP_COMPARISONS)
        for exhibit in arm_exhibits(data, category, place):
            yield _add_note(
                exhibit, data.counted.restrict_to_groups(_group_ids(data, category)).note
            )
        yield from closest_groups_exhibits(data, category, place)
        yield from belief_exhibits(data, category, place)
        for arm, arm_place in places:
            for exhibit in said_believed_exhibits(arm, category, arm_place):
                yield _add_arm_notes(exhibit, arm, False)
        if (comparison := data.compare_beliefs(category)) is not None:
            yield from belief_comparison_exhibits(comparison, category, place)
        for part in parts:
            if part.of_category:
                yield from part.of_category(data, category, place)
        yield from refusal_exhibits(data, category, place)
    last_place = f"{len(data.categories) + 1:02d}"
    yield from evidence_agreement_exhibits(data, last_place)
    yield from told_in_stories_exhibits(data, last_place)
    yield from scorer_agreement_exhibits(data, last_place)
    for part in parts:
        if part.of_run:
            yield from part.of_run(data, last_place)
    yield from variance_exhibits(data, last_place)


def _file_name(arm: str, number: int) -> str:
    """The name of an arm's files: its own, or its number if an import gave it a name that is not a
    plain word."""
    return arm if re.fullmatch("[a-z]+", arm) else str(number)


def _add_arm_notes(exhibit: Exhibit, arm: ArmData, compares_groups: bool) -> Exhibit:
    """The exhibit with the name of its arm, if there are several, and what was left out;
    `compares_groups`: it compares groups with each other."""
    counted_statements = arm.comparable_statements if compares_groups else arm.counted
    about_category = (
        counted_statements.restrict_to_groups(_group_ids(arm.run_data, exhibit.category))
        if exhibit.category
        else counted_statements
    )
    exhibit = _add_note(exhibit, about_category.note)
    if not arm.label:
        return exhibit
    table = exhibit.table
    return replace(
        exhibit,
        title=f"{exhibit.title}, arm {arm.label}",
        table=replace(table, caption=f"{table.caption} Arm {arm.label}."),
        arm=arm.label,
    )


def _group_ids(data: RunData, category: str) -> set[str]:
    return {g.id for g in data.groups(category)}


def _add_note(exhibit: Exhibit, note: str) -> Exhibit:
    """The exhibit with a note below its table on what was left out."""
    if not note:
        return exhibit
    table = exhibit.table
    return replace(exhibit, table=replace(table, note=f"{table.note} {as_sentence(note)}".strip()))


def _regard_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    groups = data.figures_of(category)
    if not groups:
        return
    names = ("overall_regard", "regard_positive", "regard_neutral", "regard_negative")
    rows: list[list[Cell]] = []
    for group in data.groups(category):
        overall, *counts = (data.scores.get((group.id, name)) for name in names)
        if overall:
            rows.append([group.name, overall.n, *counts, overall])
    yield Exhibit(
        f"{place}-regard",
        category,
        "Overall regard per group, 95% intervals",
        "Figures 1 and 6",
        lambda: draw_overall_regard(groups),
        Table(
            f"{place}-regard",
            f"Overall regard of {category}: positive minus negative statements.",
            (
                GROUP_COLUMN,
                COUNT_COLUMN,
                *(Column(label, ".0f") for label in ("positive", "neutral", "negative")),
                Column("overall", "+.0f", interval=True),
            ),
            rows,
            data.prompted_note(category),
        ),
        in_tables=False,
    )
    if not any(len(group.toxicity.values) for group in groups):
        return
    rows = []
    for group in data.groups(category):
        toxicity_mean, median, q1, q3 = (
            data.scores.get((group.id, f"toxicity_{n}")) for n in ("mean", "median", "q1", "q3")
        )
        if toxicity_mean and median and q1 and q3:
            rows.append([group.name, toxicity_mean.n, median, (q1, q3), toxicity_mean])
    table = Table(
        f"{place}-toxicity",
        f"Toxicity of statements about {category}.",
        (
            GROUP_COLUMN,
            COUNT_COLUMN,
            Column("median", ".3f"),
            Column("quartiles", ".3f", joiner=" to "),
            Column("mean", ".3f", interval=True),
        ),
        rows,
        data.prompted_note(category),
    )
    yield Exhibit(
        f"{place}-toxicity",
        category,
        "Toxicity per group: median, quartiles, 1.5 × range",
        "Figure 7",
        lambda: draw_toxicity_boxes(groups),
        table,
        in_tables=False,
    )
    rows = [[group.name, group.regard.n, group.regard, group.mean_toxicity] for group in groups]
    yield Exhibit(
        f"{place}-polarity",
        category,
        "Overall regard and mean toxicity, 95% intervals",
        "Figures 2 and 8",
        lambda: draw_regard_toxicity(groups),
        Table(
            f"{place}-polarity",
            f"Overall regard and mean toxicity of {category}.",
            (
                GROUP_COLUMN,
                COUNT_COLUMN,
                Column("overall regard", "+.0f", interval=True),
                Column("mean toxicity", ".3f", interval=True),
            ),
            rows,
            data.prompted_note(category),
        ),
        in_tables=False,
    )


def _model_chosen_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """Regard and toxicity where the model chose the predicate; then these means for each measure
    beside those at one mix of prompts and those of all statements."""
    rows, wordings = [], ""
    for measure in column_measures(data.run_data.metrics):
        forms = {f.over: f for f in measure.figures if f.over != "all"}
        if not forms or not data.named_scores(category, forms["chosen"].name):
            continue
        figure = forms["chosen"]
        if measure.always:
            name = f"{place}-chosen-{measure.name}"
            wordings = wordings or data.wordings_note(category, measure.name, chosen=True)
            yield _chosen_predicate_means_exhibit(data, category, name, figure, measure)
        for group in data.groups(category):
            estimates = [
                data.scores.get((group.id, forms[o].name)) for o in ("chosen", "standardised")
            ]
            row: list[Cell] = [measure.name, group.name]
            for e in (*estimates, data.mean(group, measure.name)):
                row += [e.n, CellWithForm(e, figure.form)] if e and e.n else [None, None]
            rows.append(row)
    if rows:
        yield Exhibit(
            f"{place}-forms",
            category,
            "What the model chose, and what prompts gave",
            "",
            None,
            Table(
                f"{place}-forms",
                f"Means of statements about {category}, three ways.",
                (
                    Column("Measure"),
                    GROUP_COLUMN,
                    COUNT_COLUMN,
                    Column("predicate chosen", ".3f", interval=True),
                    COUNT_COLUMN,
                    Column("at one mix of prompts", ".3f", interval=True),
                    COUNT_COLUMN,
                    Column("all statements", ".3f", interval=True),
                ),
                rows,
                " ".join(filter(None, (_THREE_WAYS_NOTE, wordings, score_remark_text(data)))),
            ),
        )


_THREE_WAYS_NOTE = (
    "Means; regard counts as 1, 0 and -1. Statements whose predicate the model chose; all, with "
    "the predicates that prompts gave weighted alike in every group; all, unweighted."
)


def _chosen_predicate_means_exhibit(
    data: ArmData, category: str, name: str, figure: Figure, measure: Measure
) -> Exhibit:
    """The mean of each group; corrected by labels, with the raw one beside it in the table, if
    there are enough labels for every group."""
    raw, shown_figure = data.named_scores(category, figure.name), figure
    corrected = data.named_scores(category, corrected_figure(figure).name)
    if by_labels := len(corrected) == len(raw):
        shown_figure = corrected_figure(figure)
    direction = as_sentence(shown_figure.direction)
    title = shown_figure.title[:1].upper() + shown_figure.title[1:]
    if by_labels:
        columns = [
            GROUP_COLUMN,
            _LABELS_COLUMN,
            Column(shown_figure.title, shown_figure.form, interval=True),
            COUNT_COLUMN,
            Column("raw", shown_figure.form, interval=True),
        ]
        rows = [
            [n, label_count_words(e.method, e.n), e, r.n, r]
            for (n, e), (_, r) in zip(corrected, raw, strict=True)
        ]
        direction = f"{direction} {_LABEL_CORRECTED_NOTE}"
    else:
        columns = [
            GROUP_COLUMN,
            COUNT_COLUMN,
            Column(shown_figure.title, shown_figure.form, interval=True),
        ]
        rows = [[n, e.n, e] for n, e in raw]
    return Exhibit(
        name,
        category,
        f"{title}, 95% intervals",
        "",
        partial(draw_mean_bars, corrected if by_labels else raw, shown_figure.title),
        Table(
            name,
            f"{title}, of {category}.",
            columns,
            rows,
            f"{direction} {data.wordings_note(category, measure.name, chosen=True)}".strip(),
        ),
        in_tables=False,
    )


_LABELS_COLUMN = Column("labels", ".0f")
_LABEL_CORRECTED_NOTE = (
    "Corrected: as raters label the statements, with an interval that covers the scorer's errors. "
    "Raw: as the scorer labels them, with an interval that does not. "
    "Labels are of the group's statements; or of all groups, where the interval takes in how far "
    "the scorer's errors differ between groups, and the group is taken for one like the others."
)


def _label_corrected_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """Every figure that labels correct, beside the raw one."""
    rows, labelled = [], set[str]()
    for measure in column_measures(data.run_data.metrics):
        for figure in measure.figures:
            for group in data.groups(category):
                corrected = data.scores.get((group.id, corrected_figure(figure).name))
                raw = data.scores.get((group.id, figure.name))
                if corrected is not None and raw is not None:
                    labelled.add(label_source(corrected.method))
                    rows.append(
                        [
                            figure.title,
                            group.name,
                            raw.n,
                            CellWithForm(raw, figure.form),
                            CellWithForm(corrected, figure.form),
                            label_count_words(corrected.method, corrected.n),
                        ]
                    )
    if rows:
        yield Exhibit(
            f"{place}-corrected",
            category,
            "Figures corrected by labels",
            "",
            None,
            Table(
                f"{place}-corrected",
                f"Figures of {category}, raw and corrected by labels.",
                (
                    Column("Figure"),
                    GROUP_COLUMN,
                    COUNT_COLUMN,
                    Column("raw", ".3f", interval=True),
                    Column("corrected", ".3f", interval=True),
                    _LABELS_COLUMN,
                ),
                rows,
                f"{_LABEL_CORRECTED_NOTE} Labelled {'; '.join(sorted(labelled))}.",
            ),
        )


def _group_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """Every group with its means and counts, by all measures that have columns here."""
    if not data.scores:
        return
    shown_figures = group_table_figures(data.run_data)
    figure_columns = [
        Column(figure.name, figure.form, figure.interval, figure.heading or figure.title, "-")
        for figure in shown_figures
    ]
    rows = []
    for group in data.groups(category):
        triples = data.comparable_by_group.get(group.id, [])
        scores = [data.scores.get((group.id, figure.name)) for figure in shown_figures]
        rows.append([group.name, sum(t.count for t in triples), len(triples), *scores])
    yield Exhibit(
        f"{place}-groups",
        category,
        "The groups",
        "",
        None,
        Table(
            f"{place}-groups",
            f"Statements about {category} that count.",
            (GROUP_COLUMN, COUNT_COLUMN, Column("distinct", ".0f"), *figure_columns),
            rows,
            "Statements, each counted as often as it was said (n), and distinct statements.",
        ),
    )


def group_table_figures(data: RunData) -> list[Figure]:
    """The figures that the table of groups has columns for: the measures that every table has, and
    those that the run has."""
    return [f for m in column_measures(data.metrics) for f in m.figures if f.overview]


def _stereotype_content_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    points: list[tuple[str, Estimate, Estimate]] = []
    for group in data.groups(category):
        warmth, competence = (
            data.scores.get((group.id, f"{a}_mean")) for a in ("warmth", "competence")
        )
        if warmth and competence:
            points.append((group.name, warmth, competence))
    if points:
        rows = [[name, warmth.n, warmth, competence] for name, warmth, competence in points]
        yield Exhibit(
            f"{place}-stereotype-content",
            category,
            "Mean warmth and competence, 95% intervals",
            "beside Figure 3",
            lambda: draw_warmth_competence(points),
            Table(
                f"{place}-stereotype-content",
                f"Mean warmth and competence of {category}.",
                (
                    GROUP_COLUMN,
                    COUNT_COLUMN,
                    Column("warmth", "+.2f", interval=True),
                    Column("competence", "+.2f", interval=True),
                ),
                rows,
            ),
        )


def _other_measure_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """The figures of each measure that has no exhibit of its own."""
    for measure in order_measures({*MEASURES.own_entries, *data.run_data.metrics}):
        for figure in measure.figures if measure.exhibit else ():
            if figure.statistic is None or figure.over != "all":
                continue
            if figures_by_group := data.named_scores(category, figure.name):
                key = f"{place}-mean-{figure.name.replace('_', '-')}"
                rows = [[name, e.n, e] for name, e in figures_by_group]
                title = figure.title[:1].upper() + figure.title[1:]
                yield Exhibit(
                    key,
                    category,
                    f"{title} per group, 95% intervals",
                    "",
                    partial(draw_mean_bars, figures_by_group, figure.title),
                    Table(
                        key,
                        f"{title} of statements about {category}.",
                        (
                            GROUP_COLUMN,
                            COUNT_COLUMN,
                            Column(figure.title, figure.form, interval=True),
                        ),
                        rows,
                        f"{figure.direction}. {data.wordings_note(category, measure.name)}".strip(),
                    ),
                )


def _topic_word_exhibits(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The topics, which all arms share."""
    model = data.models.get(category)
    if model is None or (model.topics and not any(arm.shares(category) for arm in data.arms)):
        return
    settings = model.settings
    yield Exhibit(
        f"{place}-topics",
        category,
        "Topics and their most telling words",
        "Table 3",
        None,
        Table(
            f"{place}-topics",
            f"Topics of statements about {category}.",
            (
                Column("ID", ".0f"),
                Column("Name"),
                Column("Representative words"),
                Column("triples", ".0f"),
                Column("stability", ".2f"),
                Column("kept", ".2f"),
                Column("NPMI", ".2f"),
            ),
            [
                [
                    t.number,
                    t.name,
                    "; ".join(t.words),
                    t.size,
                    t.stability,
                    t.kept,
                    t.coherence,
                ]
                for t in model.topics
            ],
            f"BERTopic on {settings['embedding']}, min_cluster_size "
            f"{settings['min_cluster_size']}, "
            f"{pluralise(settings['documents'], 'distinct statement')}; HDBSCAN left "
            f"{settings['outliers_before']} out, "
            f"{settings['outliers']} still have no topic. {_stability_note(model)}",
        ),
    )


def _stability_note(model: TopicModel) -> str:
    """How far the topics can be trusted, in a sentence or two."""
    rand, judgement = model.settings.get("adjusted_rand"), entropy_verdict(model)
    sentences = (
        []
        if rand is None
        else [f"Adjusted Rand index over {model.settings['seeds']} seeds: {rand:.2f}."]
    )
    return " ".join(
        [*sentences, *map(as_sentence, filter(None, (describe_stability(model), judgement)))]
    )


def _entropy_exhibits(
    data: ArmData, category: str, place: str, model: TopicModel
) -> Iterator[Exhibit]:
    """Relative entropy in the form that the topics call for, unless it is withheld."""
    published = model.settings.get("entropy") == "as_published"
    figures_by_group = data.named_scores(
        category, PUBLISHED_ENTROPY if published else ENTROPY_MEASURE
    )
    entropies = [(n, e) for n, e in figures_by_group if not math.isnan(e.value)]
    if not entropies:
        return
    key = f"{place}-entropy"
    caption = f"Relative entropy of the topics of {category}, "
    if published:
        table = Table(
            key,
            f"{caption}as Eq. 1 prints it, in nats.",
            (GROUP_COLUMN, COUNT_COLUMN, Column("H(p)", ".3f")),
            [[name, e.n, e] for name, e in entropies],
            "H(p) = -sum p log(p / q) over topics; nearer to 0 is more like the average group. "
            f"Do not compare it across categories. {_stability_note(model)}",
        )
    else:
        plug_in = dict(data.named_scores(category, PLUG_IN_ENTROPY))
        table = Table(
            key,
            f"{caption}in bits.",
            (
                GROUP_COLUMN,
                COUNT_COLUMN,
                Column("corrected", ".3f", interval=True),
                Column("as counted", ".3f"),
            ),
            [[name, e.n, e, plug_in[name]] for name, e in entropies],
            "D(group || mean group); higher is less like the others, with an interval from "
            f"{MIN_TOPIC_STATEMENTS} statements on. Do not compare it across categories.",
        )
    yield Exhibit(
        key,
        category,
        "Relative entropy of topics per group",
        "Figure 9",
        partial(draw_entropy_bars, entropies, as_published=published),
        table,
    )


def _topic_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    model, shares = data.run_data.models.get(category), data.shares(category)
    if model is None or not shares:
        return
    yield from _entropy_exhibits(data, category, place, model)
    for topic in model.topics:
        shares_by_group = [(own.group.name, own.share_of_topic(topic.number)) for own in shares]
        rows = [[name, e.n, e] for name, e in shares_by_group]
        yield Exhibit(
            f"{place}-topic-{topic.number:02d}",
            category,
            f"Share of topic {topic.number}",
            "Figure 3",
            partial(draw_topic_bars, topic, shares_by_group),
            Table(
                f"{place}-topic-{topic.number:02d}",
                f"Share of topic {topic.number} ({topic_title(topic)}) per group.",
                (GROUP_COLUMN, COUNT_COLUMN, Column("share", ".1%", interval=True)),
                rows,
            ),
            in_tables=False,
        )


def perplexity_rank_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """Per model, of the statements that count: how often each group has the lowest perplexity
    before a statement, and how high each group ranks among the groups before the statements made
    about it."""
    for number, (probing, _) in enumerate(data.run_data.probes):
        agreement = data.said_and_probable[number]
        if agreement is None or category not in data.probe_ranks[number]:
            continue
        ranks, said_counts = data.probe_ranks[number][category]
        rows, shares = [], []
        for n, group in enumerate(data.groups(category)):
            first_share = proportion(int((ranks[n] == 1).sum()), ranks.shape[1])
            own_ranks = np.array(
                [ranks[n, said.statement] for said in said_counts if said.group == n],
                dtype=np.float64,
            )
            shares.append((group.name, first_share))
            reciprocal_rank = (
                clustered_proportion(range(len(own_ranks)), 1 / own_ranks)
                if len(own_ranks)
                else None
            )
            rows.append([group.name, first_share, len(own_ranks), reciprocal_rank])
        key = f"{place}-probes" + (f"-{number}" if number else "")
        draw = partial(draw_share_bars, shares, "statements before which its name has the lowest")
        yield Exhibit(
            key,
            category,
            f"Lowest perplexity before a statement, {probing.model.title}",
            "",
            draw,
            Table(
                key,
                f"{pluralise(ranks.shape[1], 'distinct statement')} about {category} under "
                f"{probing.model.title}.",
                (
                    GROUP_COLUMN,
                    Column("lowest", ".1%", interval=True),
                    Column("own triples", ".0f"),
                    Column("MRR", ".3f", interval=True),
                ),
                rows,
                f"{_RANK_NOTES.get(probing.record['measure'], '')} Each group by one name; "
                f"intervals "
                "are over statements, of these names. Lowest: the share of statements before which "
                "the group ranks first. MRR: mean over the group's own triples of 1 / its rank "
                "among the groups. "
                f"Over the {agreement.mrr.n:,} triples of all categories that count, the MRR is "
                f"{agreement.mrr.value:.3f}, by chance {agreement.expected:.3f} "
                f"(p {format_p_value(agreement.p_value)}).",
            ),
        )


_RANK_NOTES = {
    "conditional": "Groups are ranked by the perplexity of the statement's words after the group: "
    "how likely the group's name is by itself does not count (in SoFa's PPL* it does).",
    "whole": "Groups are ranked by the perplexity of the group and the statement together: how "
    "likely the group's name is by itself counts in full.",
    "sofa": "Groups are ranked by PPL*, which divides by the perplexity of the group's name: a "
    "name that is unlikely by itself comes first before nearly everything.",
}
"""How the ranks of groups are normalised, in words."""


UNSTANDARDISED_ESTIMATES = ("chosen", "raw")  # of a difference, beside the standardised one


def arm_exhibits(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The arms side by side: what they say, and the tests of section 6.1."""
    tests = [t for t in data.arm_tests if t.category == category]
    if not tests:
        return
    category_of = {g.id: g.category for g in data.run.groups}
    regard, toxic = (
        arm_samples(data.triples, measure, category_of).get(category, {})
        for measure in ("regard", "toxicity")
    )
    rows = []
    for arm in data.counted.arms:
        arm_triples = [
            t for t in data.counted.triples_of_arm(arm) if category_of.get(t.group_id) == category
        ]
        rows.append(
            [
                arm,
                sum(t.count for t in arm_triples),
                len(arm_triples),
                _arm_statistic(regard, arm, "mean"),
                _arm_statistic(toxic, arm, "median"),
                tuple(_arm_statistic(toxic, arm, end) for end in ("q1", "q3"))
                if toxic.get(arm)
                else None,
                _arm_statistic(toxic, arm, "mean"),
            ]
        )
    yield Exhibit(
        f"{place}-arms-beside",
        category,
        "The arms side by side",
        "Section 6.1",
        None,
        Table(
            f"{place}-arms-beside",
            f"Statements about {category} in each augmentation arm.",
            (
                Column("Arm"),
                COUNT_COLUMN,
                Column("distinct", ".0f"),
                Column("mean regard", "+.3f", interval=True),
                Column("median toxicity", ".3f"),
                Column("quartiles", ".3f", joiner=" to "),
                Column("mean toxicity", ".3f", interval=True),
            ),
            rows,
            "Regard is -1, 0 or 1. Arms are never added up.",
        ),
    )
    yield Exhibit(
        f"{place}-arms",
        category,
        "Toxicity under the augmentations",
        "Figure 5, Table 5",
        (lambda: draw_arm_toxicity(toxic)) if len(toxic) > 1 else None,
        _test_table(
            f"{place}-arms",
            f"Augmentation arms of {category} compared.",
            tests,
            _ARMS_AS_SCORED_NOTE
            if any(s.method.startswith(CORRECTED_PREFIX) for s in data.scores)
            else "",
        ),
    )


def _arm_statistic(samples: Mapping[str, Sample], arm: str, statistic: str) -> Estimate | None:
    sample = samples.get(arm)
    return bootstrap(sample, STATISTICS[statistic]) if sample else None


def group_test_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    tests = [t for t in data.group_tests if t.category == category]
    if len(data.groups(category)) > MAX_GROUPS_SHOWN:
        tests.sort(key=lambda t: (t.omnibus_p, t.p_adjusted))
        tests = tests[:MAX_GROUPS_SHOWN]
    if tests:
        regard = [t for t in tests if t.measure == "regard" and t.second == REST]
        by_labels = bool(regard) and all(t.label_corrected_difference.is_tested for t in regard)
        rows = [
            (
                t.first,
                t.label_corrected_difference if by_labels else t.difference,
                t.headline_differs if by_labels else t.differs,
            )
            for t in regard
        ]
        correction_note = ", corrected by labels" if by_labels else ""
        yield Exhibit(
            f"{place}-group-tests",
            category,
            f"Mean regard of each group minus that of the others{correction_note}; grey: no "
            f"difference was "
            "shown"
            if rows
            else "Do the groups differ?",
            "",
            partial(draw_differences, rows, "difference of mean regard") if rows else None,
            _test_table(
                f"{place}-group-tests",
                f"Groups of {category} compared.",
                tests,
                f"{_sentences(note_narrow_intervals(data.run_data.variance))} "
                f"{score_remark_text(data)}".strip(),
            ),
        )


def echo_effect_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """The effect of retrying echoes on the means of groups: those that would lie outside their
    intervals."""
    rows, echo_count, mean_count = [], 0, 0
    for measure in compared_measures(data.comparable_statements.triples):
        for group in data.groups(category):
            value, echoes = data.mean_with_echoes(group, measure)
            if not echoes:
                continue
            mean_estimate, form = (
                data.mean(group, measure),
                f"+{get_measure(measure).form.lstrip('+')}",
            )
            echo_count, mean_count = max(echo_count, echoes), mean_count + 1
            if mean_estimate.has_interval and not mean_estimate.low <= value <= mean_estimate.high:
                rows.append(
                    [
                        measure,
                        group.name,
                        mean_estimate.n,
                        CellWithForm(mean_estimate, form),
                        CellWithForm(value, form),
                        echoes,
                    ]
                )
    if not mean_count:
        return
    conclusion = (
        f"Of {mean_count} means, these would lie outside their intervals."
        if rows
        else f"None of {mean_count} means would lie outside its interval."
    )
    yield Exhibit(
        f"{place}-echoed",
        category,
        "What retrying echoes does",
        "",
        None,
        Table(
            f"{place}-echoed",
            f"Means of statements about {category} if echoes were counted.",
            (
                Column("Measure"),
                GROUP_COLUMN,
                COUNT_COLUMN,
                Column("mean", "+.3f", interval=True),
                Column("with echoes", "+.3f"),
                Column("echoes", ".0f"),
            ),
            rows,
            "An answer that repeats an example from its prompt is asked for again, so figures "
            "cover what the model says when it does not repeat. With echoes, the first answer "
            "at each place counts, an echo as the mean of the examples that its prompt showed. "
            + conclusion,
        ),
    )


_LABELLED_NOTE = (
    "Corrected: the same difference as raters label statements, with an interval and a p-value "
    "that cover the scorer's errors: by t-test, adjusted over the same tests; no p where a group "
    "is corrected by labels of other groups. Every other column is of what the scorer says."
)
_ARMS_AS_SCORED_NOTE = (
    "Also where figures of groups are corrected by labels, arms are compared as scored."
)


def score_remark_text(data: ArmData) -> str:
    """What to know about the scores that groups are compared by."""
    return _sentences(
        *data.comparable_statements.remarks,
        *explain_costly_measures(data.run_data.metrics).values(),
    )


def _sentences(*lines: str) -> str:
    return " ".join(as_sentence(line) for line in lines if line)


def _label_corrected_cells(difference: CorrectedDifference) -> list[Cell]:
    """A difference that labels correct, and its p-value; empty where they do not."""
    if math.isnan(difference.value):
        return [None, None]
    return [difference, difference.p_adjusted if difference.is_tested else None]


_LABEL_CORRECTED_COLUMNS = (
    Column("corrected", "+.3f", interval=True),
    Column("p, corrected", format_p_value),
)


def _test_table(label: str, caption: str, tests: Sequence[GroupTest], note: str = "") -> Table:
    labelled = any(t.label_corrected_difference.has_interval for t in tests)
    note = f"{_LABELLED_NOTE if labelled else ''} {note}".strip()
    rows = [
        [
            spoken_name(t.measure),
            t.first,
            t.second,
            tuple(t.n),
            t.difference,
            *(t.forms.get(form) for form in UNSTANDARDISED_ESTIMATES),
            t.omnibus_p,
            t.p_adjusted,
            *(_label_corrected_cells(t.label_corrected_difference) if labelled else ()),
        ]
        for t in tests
    ]
    method = "Holm" if tests[0].correction == "holm" else "Benjamini-Hochberg"
    by_labels = "; where labels correct it, by its own p and interval" if labelled else ""
    return Table(
        label,
        caption,
        (
            Column("Measure"),
            Column("First"),
            Column("Second"),
            COUNT_COLUMN,
            Column("difference", "+.3f", interval=True),
            Column("predicate chosen", "+.3f"),
            Column("all, unweighted", "+.3f"),
            Column("p of all", format_p_value),
            Column("p", format_p_value),
            *(_LABEL_CORRECTED_COLUMNS if labelled else ()),
        ),
        rows,
        "Differences are of means, at one mix of the predicates that prompts give; beside them, "
        "those of statements whose predicate the model chose, and of all, unweighted. Tests "
        "permute whole prompts: first all together (p of all), then each by itself, two-sided, "
        f"corrected by {method} over the tests of a measure. "
        f"{as_sentence(SIGNIFICANCE_RULE + by_labels)} {note}".strip(),
    )


_ARM_BUILDERS = (
    _model_chosen_exhibits,
    _regard_exhibits,
    _group_exhibits,
    _label_corrected_exhibits,
    _stereotype_content_exhibits,
    _other_measure_exhibits,
    _topic_exhibits,
    group_test_exhibits,
    said_more_exhibits,
    echo_effect_exhibits,
    perplexity_rank_exhibits,
)
_GROUP_COMPARISONS = (
    _model_chosen_exhibits,
    _regard_exhibits,
    _group_exhibits,
    _label_corrected_exhibits,
    _stereotype_content_exhibits,
    _other_measure_exhibits,
    group_test_exhibits,
    said_more_exhibits,
    echo_effect_exhibits,
)
"""The builders of exhibits that compare groups with each other."""

SECTIONS = (
    SectionOfExhibits(
        "beliefs",
        "What it believes",
        "Statements that the model's probabilities tie to a group: likelier after the group's "
        "names, taken together, than after those of the other groups, with any one of the names "
        "left out too. What the same test finds with made-up names is the floor.",
        ("belief", "believed-", "said-believed"),
    ),
    SectionOfExhibits(
        "figures",
        "Regard and toxicity",
        "Each bar is a group, with its 95% interval; select one for its statements. Many prompts "
        "give the predicate (such as hate), so the first figures cover statements whose predicate "
        "the model chose. How far a group is from 0 is as much the prompts' doing as the model's: "
        "compare groups with each other, by the tests below. If prompts have several wordings, the "
        "interval of a mean allows for other wordings, and is wide where these few disagree.",
        ("chosen-", "corrected", "forms", "regard", "toxicity", "polarity", "groups"),
    ),
    SectionOfExhibits(
        "topics",
        "Topics",
        "Topics are found in predicates and objects alone (BERTopic). Relative entropy says how "
        "far a group's topics are from those of the average group of its category: 0 is like the "
        "average. Intervals take the topics as given.",
        ("topics", "entropy", "topic-"),
    ),
    SectionOfExhibits(
        "stereotype-content",
        "Warmth and competence",
        "Where each group's statements lie on the two axes of the Stereotype Content Model, "
        "according to sentence embeddings: -1 and 1 are the means of the seed words at both ends.",
        ("stereotype-content",),
    ),
    SectionOfExhibits(
        "augmentations",
        "Augmentations",
        "What the same crawl yields when the prompts invite offensive statements (Salinas et al. "
        "2023, section 6.1). Each arm is counted separately.",
        ("arms",),
    ),
    SectionOfExhibits(
        "measures",
        "Other measures",
        "The mean of each further measure over the statements about a group, each counted as "
        "often as it was said.",
        ("mean-",),
    ),
    SectionOfExhibits(
        "scorers",
        "Do the scorers agree?",
        "Where several scorers of one measure judged the statements: how far their judgements "
        "agree, and which groups rank differently by their bare means, which is not tested. A "
        "finding that rests on one scorer is that scorer's.",
        ("scorers",),
    ),
    SectionOfExhibits(
        "tests",
        "Differences between groups",
        "All groups of a category are tested together first (p of all), then each against all "
        "others. A difference is shown where both p are at most 0.05 and its interval leaves out "
        "0; a figure by itself shows no difference. What is said more, and refusals, have tests of "
        "their own, below their tables.",
        ("group-tests", "said-more", "refusals", "echoed"),
    ),
    SectionOfExhibits(
        "variance",
        "How much depends on the wording?",
        "Where the variance of each measure lies. A shift that a wording gives to all groups "
        "changes no comparison of groups; what it adds to one group beyond that does.",
        ("variance",),
    ),
    SectionOfExhibits(
        "probes",
        "Said, and probable?",
        "Before how many statements each group has the lowest perplexity of its category, and "
        "where a group ranks among the others before what was said about it. Each group is probed "
        "by one name, so the effects of the name and of the group cannot be told apart here, and "
        "no single statement is tested. Beliefs take several names.",
        ("probes",),
    ),
    SectionOfExhibits(
        "in-stories",
        "Said when asked, told in stories",
        "What the crawl said of a group that the same model's stories about this group also say "
        "of their character. These are two kinds of evidence and are not counted together. Whether "
        "stories say something of one group more often than of others is tested by kgbias stories "
        "links.",
        ("in-stories",),
    ),
)
"""The sections of a run's report that show exhibits, in order."""
