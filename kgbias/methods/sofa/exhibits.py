"""The exhibits of Social Bias Probing (Marchiori Manerba et al. 2023), for any models probed with
the same groups and statements (tables 1 and 2, figures 2, 3 and 5 to 9), for the set they were
probed with (tables 3, 5 and 6), and for a set that was built (also figure 4)."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kgbias.compare.sofa import (
    ALL_CATEGORIES,
    SofaComparison,
    correlate_length,
    measure_rank_agreements,
)
from kgbias.graph.sofa import MIN_HATE_SCORE, ProbeSet, SofaCategory, SofaStatement
from kgbias.io.columns import Column
from kgbias.io.drawing import (
    COLUMN_INCHES,
    INK_COLOR,
    LINE_COLOR,
    NEGATIVE_COLOR,
    POSITIVE_COLOR,
    TOXIC_COLOR,
    figure_style,
    make_subplots,
)
from kgbias.io.text import format_p_value
from kgbias.io.wording import pluralise
from kgbias.methods.sofa.build import REASONS, FilterCounts, PerplexityHistogram, SofaSet
from kgbias.report.figures import draw_heat_map, draw_intervals, make_row_figure, shorten_name
from kgbias.report.tables import GROUP_COLUMN, Cell, Exhibit, Table
from kgbias.stats.inference import Estimate

_COLOURS = (POSITIVE_COLOR, NEGATIVE_COLOR, TOXIC_COLOR, "#3d8a6f", "#b8912f", "#8c8c8c")
_PPL_STAR_NOTE = (
    "PPL* is the base-10 logarithm of the perplexity of the group with the statement over that of "
    "the group's name alone"
)
_ROW_INCHES = 0.2  # inches a row
_MAX_NAME_CHARS = 28  # characters of a name

Scores = Mapping[str, Mapping[str, Estimate]]


def draw_sofa_bars(scores: Mapping[str, Estimate]) -> Any:
    """The score of each model with its 95% interval, highest on top (table 1)."""
    with figure_style():
        figure, axes = make_row_figure(len(scores))
        estimates = list(scores.values())[::-1]
        axes.barh(
            range(len(estimates)), [e.value for e in estimates], color=POSITIVE_COLOR, height=0.62
        )
        draw_intervals(axes, estimates)
        _label_models(axes, list(scores)[::-1])
        axes.set_xlim(0, None)
        axes.set_xlabel("SoFa score (variance of PPL*)")
        return figure


def draw_stacked_bars(scores: Scores) -> Any:
    """The scores of each model by category, stacked (figure 9)."""
    with figure_style():
        figure, axes = make_row_figure(len(scores) + 1)
        names = list(scores)[::-1]
        lefts = [0.0] * len(names)
        for number, category in enumerate(scores[names[0]]):
            values = [scores[name][category].value for name in names]
            axes.barh(
                range(len(names)),
                values,
                left=lefts,
                height=0.62,
                label=shorten_name(category, _MAX_NAME_CHARS),
                color=_COLOURS[number % len(_COLOURS)],
                edgecolor="white",
                linewidth=0.4,
            )
            lefts = [left + value for left, value in zip(lefts, values, strict=True)]
        _label_models(axes, names)
        axes.set_xlabel("SoFa score, categories added up")
        figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=7)
        return figure


def draw_violins(quantiles: Mapping[str, Mapping[str, Sequence[float]]]) -> Any:
    """The distribution of PPL*, by category and model: median and middle half as lines (figure
    7). `quantiles` are 101, at each percent."""
    with figure_style():
        rows = max(map(len, quantiles.values()))
        height = len(quantiles) * (0.3 + 1.7 * _ROW_INCHES * rows) + 0.4
        figure, panels = make_subplots(
            len(quantiles), 1, figsize=(COLUMN_INCHES, height), sharex=True, squeeze=False
        )
        for axes, (category, by_model) in zip(panels[:, 0], quantiles.items(), strict=True):
            names = list(by_model)[::-1]
            for place, name in enumerate(names):
                _draw_violin(axes, by_model[name], place)
            _label_models(axes, names)
            axes.set_title(shorten_name(category, _MAX_NAME_CHARS), fontsize=8, loc="left")
        panels[-1, 0].set_xlabel("PPL* (log10 of normalised perplexity)")
        return figure


def _draw_violin(axes: Any, values: Sequence[float], place: int) -> None:
    # a density cannot be estimated where all values are equal
    if min(values) < max(values):
        violin = axes.violinplot(
            [values], [place], orientation="horizontal", widths=0.85, showextrema=False
        )
        for body in violin["bodies"]:
            body.set(facecolor=POSITIVE_COLOR, edgecolor=POSITIVE_COLOR, alpha=0.4)
    quarter = (len(values) - 1) // 4
    axes.plot([values[quarter], values[-1 - quarter]], [place, place], color=INK_COLOR, linewidth=2)
    axes.plot(values[(len(values) - 1) // 2], place, "o", color="white", markersize=2.5)


def draw_length_row(correlations: Mapping[str, Estimate]) -> Any:
    """The correlation of PPL* with the length of a statement, for each model (figure 8)."""
    rows = {name: [e.value] for name, e in correlations.items()}
    return draw_heat_map(rows, ["words"], limit=1.0, form="+.2f", label="correlation with PPL*")


def draw_first_map(shares: Mapping[str, Sequence[float]], models: Sequence[str]) -> Any:
    """How often each group comes first, under each model (figure 2)."""
    return draw_heat_map(shares, models, limit=None, form=".0%", label="share of statements")


def draw_shared_bars(rows: Sequence[tuple[str, str, float]]) -> Any:
    """The statements with the lowest DDS under each model, as (model, statement, DDS) (figure
    3)."""
    models = list(dict.fromkeys(model for model, _, _ in rows))
    with figure_style():
        figure, axes = make_row_figure(1.1 * len(rows) + 0.6 * len(models))
        places, gap = [], 0.0
        for number, (model, _, _) in enumerate(rows):
            gap += 0.8 if number and rows[number - 1][0] != model else 0.0
            places.append(-number - gap)
        colours = [_COLOURS[models.index(model) % len(_COLOURS)] for model, _, _ in rows]
        axes.barh(places, [dds for _, _, dds in rows], color=colours, height=0.62)
        axes.set_yticks(places, [shorten_name(statement, 34) for _, statement, _ in rows])
        for number, model in enumerate(models):
            # a bar of no length, for the legend alone
            axes.barh(
                [0],
                [0],
                color=_COLOURS[number % len(_COLOURS)],
                label=shorten_name(model, _MAX_NAME_CHARS),
            )
        axes.set_xlim(0, None)
        # Centred below the figure: long statements leave its axes less room than this takes.
        figure.supxlabel("DDS (highest minus lowest PPL*)", fontsize=axes.xaxis.label.get_size())
        figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=7)
        return figure


def draw_count_bars(counts: Sequence[tuple[str, int]], label: str) -> Any:
    """A bar with its number for each name, first on top (figure 5)."""
    with figure_style():
        figure, axes = make_row_figure(len(counts))
        reversed_counts = list(counts)[::-1]
        bars = axes.barh(
            range(len(reversed_counts)),
            [n for _, n in reversed_counts],
            color=POSITIVE_COLOR,
            height=0.62,
        )
        axes.bar_label(bars, fontsize=7, padding=2)
        axes.set_yticks(
            range(len(reversed_counts)), [shorten_name(name, 40) for name, _ in reversed_counts]
        )
        axes.margins(x=0.12)
        axes.set_xlabel(label)
        return figure


def draw_filter_bars(filters: Sequence[FilterCounts]) -> Any:
    """What each filter kept, and what it took out."""
    with figure_style():
        figure, axes = make_row_figure(len(filters) + 1)
        reversed_filters = list(filters)[::-1]
        kept_counts = [f.kept_count for f in reversed_filters]
        removed_counts = [f.removed_count for f in reversed_filters]
        rows = range(len(reversed_filters))
        axes.barh(rows, kept_counts, height=0.62, color=POSITIVE_COLOR, label="kept")
        bars = axes.barh(
            rows,
            removed_counts,
            left=kept_counts,
            height=0.62,
            color=NEGATIVE_COLOR,
            label="taken out",
        )
        words = [
            f"{n:,} kept, {out:,} out" for n, out in zip(kept_counts, removed_counts, strict=True)
        ]
        axes.bar_label(bars, words, fontsize=7, padding=2)
        axes.set_yticks(rows, [f.name for f in reversed_filters])
        axes.margins(x=0.42)
        axes.set_xlabel("statements")
        figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=7)
        return figure


def draw_perplexity_histogram(histogram: PerplexityHistogram) -> Any:
    """The statements by perplexity, on a logarithmic axis; those beyond the cut in orange (figure
    4)."""
    with figure_style():
        figure, axes = make_subplots(figsize=(COLUMN_INCHES, 2.3))
        edges = [math.exp(edge) for edge in histogram.edges]
        middle = histogram.most - (histogram.edges[1] - histogram.edges[0]) / 2
        beyond = [left > middle for left in histogram.edges[:-1]]
        for is_beyond, colour, label in (
            (False, POSITIVE_COLOR, "kept"),
            (True, NEGATIVE_COLOR, "taken out"),
        ):
            axes.stairs(
                [
                    n if side == is_beyond else 0
                    for n, side in zip(histogram.counts, beyond, strict=True)
                ],
                edges,
                fill=True,
                color=colour,
                label=label,
            )
        axes.axvline(math.exp(histogram.most), color=INK_COLOR, linewidth=0.8)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: _format_perplexity(value))
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.set_xlabel("perplexity of the statement, mean over models")
        axes.set_ylabel("statements")
        figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=7)
        return figure


def draw_hate_bars(counts: Mapping[str, tuple[int, int]]) -> Any:
    """The counts of statements that are hate speech and that are not, by category (figure 6)."""
    with figure_style():
        figure, axes = make_row_figure(2 * len(counts) + 1)
        names = list(counts)[::-1]
        for side, (label, colour) in enumerate(
            (("hate", NEGATIVE_COLOR), ("no hate", POSITIVE_COLOR))
        ):
            places = [n + (0.2, -0.2)[side] for n in range(len(names))]
            bars = axes.barh(
                places,
                [counts[name][side] for name in names],
                height=0.38,
                color=colour,
                label=label,
            )
            axes.bar_label(bars, fontsize=7, padding=2)
        axes.set_yticks(range(len(names)), [shorten_name(name, _MAX_NAME_CHARS) for name in names])
        axes.margins(x=0.12)
        axes.set_xlabel("statements")
        figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=7)
        return figure


def _label_models(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [shorten_name(name, _MAX_NAME_CHARS) for name in names])
    axes.set_ylim(-0.6, max(len(names), 2) - 0.4)
    axes.grid(True, axis="x", color=LINE_COLOR)
    axes.set_axisbelow(True)


_MAX_SHOWN = 5  # groups and statements shown for each model

BenchmarkScores = Mapping[str, Mapping[str, float]]


def sofa_exhibits(
    comparison: SofaComparison, place: str = "01", benchmark_scores: BenchmarkScores | None = None
) -> Iterator[Exhibit]:
    """Everything to show about models on a set of probes.

    Args:
        comparison: the models.
        place: the prefix of file names.
        benchmark_scores: other benchmarks of the same models: benchmark to model to score, higher
            is more biased.
    """
    yield from _score_exhibits(comparison, f"{place}-sofa-models", benchmark_scores or {})
    yield from _rank_exhibits(comparison, f"{place}-sofa-ranks")
    yield from _category_exhibits(comparison, f"{place}-sofa-categories")
    yield from _test_exhibits(comparison, f"{place}-sofa-tests")
    yield from _distribution_exhibits(comparison, f"{place}-sofa-distribution")
    for number, category in enumerate(comparison.categories, 1):
        yield from _lowest_exhibits(comparison, f"{place}-sofa-shared-{number}", category)
    yield from _length_exhibits(comparison, f"{place}-sofa-length")
    for number, category in enumerate(comparison.categories, 1):
        yield from _first_exhibits(comparison, f"{place}-sofa-first-{number}", category)
    yield from _cluster_exhibits(comparison.probe_set, f"{place}-sofa-clusters")
    yield from _hate_exhibits(comparison.probe_set, f"{place}-sofa-hate")


_MAX_IDENTITIES = 4  # identities of each category in table 3


def setup_exhibits(comparison: SofaComparison, place: str = "01") -> Iterator[Exhibit]:
    """What models were probed with, and which they were: tables 3, 5 and 6."""
    categories = {p.category: (p.groups, len(p.statements)) for p in comparison.probe_set.parts}
    yield from _set_exhibits(f"the set {comparison.probe_set.name}", categories, f"{place}-sofa")
    rows = []
    for ranked_model in comparison.models:
        settings, size = (
            dict(ranked_model.result.settings),
            ranked_model.result.record.get("parameters"),
        )
        rows.append(
            [
                ranked_model.model,
                str(settings.get("kind", "-")),
                size,
                ranked_model.result.model.revision or "-",
            ]
        )
    key = f"{place}-sofa-asked"
    yield Exhibit(
        key,
        "",
        "The models",
        "Table 6",
        None,
        Table(
            key,
            f"The models probed with {comparison.probe_set.name}.",
            (
                Column("Model"),
                Column("kind"),
                Column("parameters", ",.0f", missing="-"),
                Column("revision"),
            ),
            rows,
            "-: not known, or not kept when the model was probed.",
        ),
    )


def sofa_set_exhibits(sofa_set: SofaSet) -> Iterator[Exhibit]:
    """What the filters took (figure 4), and what is in the set (tables 3 and 5)."""
    rows = [
        [
            f.name,
            f.input_count,
            f.removed_count,
            f.kept_count,
            "; ".join(f"{n:,} {_reason_words(why)}" for why, n in f.reasons.items()),
        ]
        for f in sofa_set.filters
    ]
    key = "01-sofa-filters"
    yield Exhibit(
        key,
        "",
        "What the filters took",
        "section 3.1",
        partial(draw_filter_bars, sofa_set.filters),
        Table(
            key,
            f"The filters that made a probe set of {sofa_set.source}, in order.",
            (
                Column("Filter"),
                Column("came", ",.0f"),
                Column("taken out", ",.0f"),
                Column("kept", ",.0f"),
                Column("why"),
            ),
            rows,
            "From the duplicates on, a stereotype of no category counts once for each category.",
        ),
    )
    if sofa_set.histogram is not None:
        yield _perplexity_exhibit(
            sofa_set.histogram, sofa_set.settings["models"], "02-sofa-perplexity"
        )
    statement_counts = Counter(kept.category for kept in sofa_set.statements)
    categories = {c: (groups, statement_counts[c]) for c, groups in sofa_set.identities.items()}
    yield from _set_exhibits(
        f"the set made from {sofa_set.source}", categories, "03-sofa", sofa_set.source_counts
    )


def _perplexity_exhibit(histogram: PerplexityHistogram, models: Sequence[str], key: str) -> Exhibit:
    edges = [math.exp(edge) for edge in histogram.edges]
    bins = [
        [(left, right), n]
        for left, right, n in zip(edges, edges[1:], histogram.counts, strict=False)
        if n
    ]
    return Exhibit(
        key,
        "",
        "The perplexity of statements, and where it was cut",
        "Figure 4",
        partial(draw_perplexity_histogram, histogram),
        Table(
            key,
            f"Statements by their perplexity, the mean over {' and '.join(models)}.",
            (
                Column("Perplexity", _format_perplexity, joiner=" to "),
                Column("statements", ".0f"),
            ),
            bins,
            f"{histogram.taken} of {sum(histogram.counts)} distinct statements lay beyond "
            f"{_format_perplexity(math.exp(histogram.most))} and were taken out. Bins are even in "
            f"their "
            "logarithm; empty ones are not listed.",
        ),
    )


def _format_perplexity(perplexity: float) -> str:
    """A perplexity to three digits at least, as 1e6 from a million on."""
    if perplexity >= 1e6:
        return f"{perplexity:.3g}".replace("e+", "e")
    return f"{perplexity:,.0f}" if perplexity >= 100 else f"{perplexity:.3g}"


def _reason_words(reason: str) -> str:
    return f"as {REASONS[reason]}" if reason in REASONS else reason


def _set_exhibits(
    name: str,
    categories: Mapping[str, tuple[Sequence[str], int]],
    place: str,
    source_counts: Mapping[str, int] | None = None,
) -> Iterator[Exhibit]:
    """Tables 3 and 5: the identities and the sizes of a set, by category. `source_counts`: the
    stereotypes of its source."""
    samples = {category: _sample_identities(groups) for category, (groups, _) in categories.items()}
    longest = max(map(len, samples.values()), default=0)
    key = f"{place}-identities"
    yield Exhibit(
        key,
        "",
        "Identities",
        "Table 3",
        None,
        Table(
            key,
            f"Identities of {name}.",
            [Column(category, title=category) for category in samples],
            [[s[n] if n < len(s) else "" for s in samples.values()] for n in range(longest)],
            f"Up to {_MAX_IDENTITIES} of each category, spread evenly over its list.",
        ),
    )
    counts = [
        ("identities", [len(groups) for groups, _ in categories.values()]),
        ("statements", [n for _, n in categories.values()]),
        ("probes", [len(groups) * n for groups, n in categories.values()]),
    ]
    rows = [[label, *numbers, sum(numbers)] for label, numbers in counts]
    note = "Probes are identities times statements, category by category."
    if source_counts:
        category_counts = [source_counts.get(category, 0) for category in categories]
        source_total = sum(source_counts.values())
        rows.insert(1, ["stereotypes of the source", *category_counts, source_total])
        if sum(category_counts) < source_total:
            note += (
                " The source's total also counts stereotypes without a category, and those "
                "of categories that are not in the set."
            )
    key = f"{place}-sizes"
    yield Exhibit(
        key,
        "",
        "The size of the set",
        "Table 5",
        None,
        Table(
            key,
            f"The size of {name}.",
            (
                Column(""),
                *(Column(category, ",.0f", title=category) for category in categories),
                Column("Total", ",.0f"),
            ),
            rows,
            note,
        ),
    )


def _sample_identities(groups: Sequence[str]) -> list[str]:
    if len(groups) <= _MAX_IDENTITIES:
        return list(groups)
    return [
        groups[round(n * (len(groups) - 1) / (_MAX_IDENTITIES - 1))] for n in range(_MAX_IDENTITIES)
    ]


def _score_exhibits(
    comparison: SofaComparison, key: str, benchmark_scores: BenchmarkScores
) -> Iterator[Exhibit]:
    probe_set, has_several = comparison.probe_set, len(comparison.models) > 1
    scores = {
        "SoFa": {
            ranked_model.model: ranked_model.result.score.value
            for ranked_model in comparison.models
        },
        **benchmark_scores,
    }
    rows = []
    for ranked_model in comparison.models:
        row: list[Cell] = [ranked_model.model]
        if has_several:
            rank = Estimate(
                ranked_model.rank, ranked_model.low, ranked_model.high, probe_set.statements
            )
            row.append(rank)
        row.append(ranked_model.result.score)
        row += [model_scores.get(ranked_model.model) for model_scores in benchmark_scores.values()]
        rows.append(row)
    tau_words = "; ".join(
        f"{a} and {b} {tau:+z.3f}" for (a, b), tau in measure_rank_agreements(scores).items()
    )
    tau_note = (
        f" Kendall's tau between these orders of models, not tested: {tau_words}."
        if tau_words
        else ""
    )
    yield Exhibit(
        key,
        "",
        f"SoFa on {probe_set.name}, 95% intervals",
        "Table 1",
        partial(
            draw_sofa_bars,
            {ranked_model.model: ranked_model.result.score for ranked_model in comparison.models},
        ),
        Table(
            key,
            f"SoFa of models on {probe_set.name}.",
            (
                Column("Model"),
                *([Column("rank", ".0f", interval=True)] if has_several else []),
                Column("SoFa", ".3f", interval=True),
                *(Column(name, ".3f", title=name) for name in benchmark_scores),
            ),
            rows,
            f"{pluralise(probe_set.groups, 'group')}, "
            f"{pluralise(probe_set.statements, 'statement')}, {probe_set.probes} "
            f"probes. Intervals are over "
            "groups and statements: with few groups, a variance between groups is hardly known."
            + (
                " Rank 1 is the highest score; intervals of ranks are over statements, with the "
                f"same groups for all models. No rank is tested.{tau_note}"
                if has_several
                else tau_note
            ),
        ),
    )


def _rank_exhibits(comparison: SofaComparison, key: str) -> Iterator[Exhibit]:
    if len(comparison.models) < 2:
        return
    rows = [[m.model, *m.probabilities] for m in comparison.models]
    ranks = range(1, len(comparison.models) + 1)
    columns = (Column("Model"), *(Column(str(rank), ".3f") for rank in ranks))
    yield Exhibit(
        key,
        "",
        "How often each rank comes up by SoFa",
        "beside Table 1",
        None,
        Table(
            key,
            f"The share of resamples of the statements of {comparison.probe_set.name} in which "
            "a model has each rank.",
            columns,
            rows,
        ),
    )


def _category_exhibits(comparison: SofaComparison, key: str) -> Iterator[Exhibit]:
    rows = [
        [ranked_model.model, *map(ranked_model.score, comparison.categories)]
        for ranked_model in comparison.models
    ]
    columns = (
        Column("Model"),
        *(Column(name, ".3f", interval=True, title=name) for name in comparison.categories),
    )
    taus = "; ".join(
        f"{a} and {b} {tau:+z.3f}" for (a, b), tau in comparison.rank_agreements.items()
    )
    yield Exhibit(
        key,
        "",
        "SoFa by category",
        "Table 2, Figure 9",
        partial(
            draw_stacked_bars,
            {
                ranked_model.model: {c: ranked_model.score(c) for c in comparison.categories}
                for ranked_model in comparison.models
            },
        ),
        Table(
            key,
            f"SoFa by category on {comparison.probe_set.name}.",
            columns,
            rows,
            "Lower: the groups' PPL* are closer together. The score of a model is the mean over "
            "categories."
            + (
                f" Kendall's tau between orders of models, not tested: {taus}."
                if taus and len(comparison.models) > 2
                else ""
            ),
        ),
    )


def _test_exhibits(comparison: SofaComparison, key: str) -> Iterator[Exhibit]:
    if not comparison.contrasts:
        return
    rows = [
        [
            t.group,
            t.first,
            t.second,
            t.difference,
            t.p_adjusted,
            t.equivalent_adjusted,
        ]
        for t in sorted(comparison.contrasts, key=lambda t: (t.group != ALL_CATEGORIES, t.group))
    ]
    method = "Holm" if comparison.contrasts[0].correction == "holm" else "Benjamini-Hochberg"
    yield Exhibit(
        key,
        "",
        "Do the models differ?",
        "",
        None,
        Table(
            key,
            f"SoFa of models on {comparison.probe_set.name} compared, statement by statement.",
            (
                Column("Category"),
                Column("First"),
                Column("Second"),
                Column("difference", "+.3f", interval=True),
                Column("p", format_p_value),
                Column("p alike", format_p_value),
            ),
            rows,
            "Two-sided paired permutation tests, and tests of equivalence to within 0.2 standard "
            f"deviations; p corrected by {method} over the table. Above 0: the first has the "
            "higher score. A difference is shown where p is at most 0.05 and the interval leaves "
            "out 0.",
        ),
    )


_SHOWN_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def _distribution_exhibits(comparison: SofaComparison, key: str) -> Iterator[Exhibit]:
    quantiles = {
        category: {m.model: m.result.find_category(category).quantiles for m in comparison.models}
        for category in comparison.categories
    }
    rows = []
    for category, by_model in quantiles.items():
        for model, quantile_values in by_model.items():
            shown_quantiles = [
                quantile_values[round(share * (len(quantile_values) - 1))]
                for share in _SHOWN_QUANTILES
            ]
            rows.append([category, model, *shown_quantiles])
    yield Exhibit(
        key,
        "",
        "The distribution of PPL*",
        "Figure 7",
        partial(draw_violins, quantiles),
        Table(
            key,
            f"PPL* by category on {comparison.probe_set.name}: quantiles over probes.",
            (
                Column("Category"),
                Column("Model"),
                *(Column(f"{share:.0%}", "+.3f") for share in _SHOWN_QUANTILES),
            ),
            rows,
            f"{_PPL_STAR_NOTE}; its level is specific to the model; only its spread can be "
            f"compared.",
        ),
    )


def _first_exhibits(comparison: SofaComparison, key: str, category: str) -> Iterator[Exhibit]:
    category_results = {m.model: m.result.find_category(category) for m in comparison.models}
    shown_groups = dict.fromkeys(
        g.group
        for part in category_results.values()
        for g in sorted(part.groups, key=lambda g: (-g.first.value, g.group))[:_MAX_SHOWN]
    )
    by_model = {
        model: {g.group: g.first for g in part.groups} for model, part in category_results.items()
    }
    columns = (
        GROUP_COLUMN,
        *(Column(model, ".1%", interval=True, title=model) for model in by_model),
    )
    rows = [
        [group, *(group_shares[group] for group_shares in by_model.values())]
        for group in shown_groups
    ]
    shares = {
        group: [group_shares[group].value for group_shares in by_model.values()]
        for group in shown_groups
    }
    yield Exhibit(
        key,
        "",
        f"The lowest PPL* among {category}",
        "Figure 2",
        partial(draw_first_map, shares, list(by_model)),
        Table(
            key,
            f"Share of the statements about {category} with the lowest PPL* for a group: the "
            f"{_MAX_SHOWN} highest for each model.",
            columns,
            rows,
            f"{_PPL_STAR_NOTE}: a name that is unlikely by itself comes first before nearly "
            f"everything, "
            "whatever the statement says. Which group has the lowest perplexity is another "
            'question, with another answer: "Said, and probable?". Intervals are over '
            "statements, of these names.",
        ),
    )


def _lowest_exhibits(comparison: SofaComparison, key: str, category: str) -> Iterator[Exhibit]:
    rows = [
        (m.model, s.text, s.dds, ", ".join(s.first))
        for m in comparison.models
        for s in _lowest_statements(m.result.find_category(category))
    ]
    yield Exhibit(
        key,
        "",
        f"The statements with the lowest DDS, {category}",
        "Figure 3",
        partial(draw_shared_bars, [row[:3] for row in rows]),
        Table(
            key,
            f"The statements about {category} with the lowest DDS under each model.",
            (Column("Model"), Column("Statement"), Column("DDS", ".3f"), Column("lowest PPL*")),
            rows,
            "DDS: the highest PPL* of a statement over the groups minus the lowest. These are the "
            "lowest of many, so which statements appear here is partly chance.",
        ),
    )


def _lowest_statements(part: SofaCategory) -> list[SofaStatement]:
    """The statements with the lowest DDS; a run may hold one text twice, split differently."""
    by_text = {s.text: s for s in sorted(part.statements, key=lambda s: -s.dds)}
    return sorted(by_text.values(), key=lambda s: (s.dds, s.text))[:_MAX_SHOWN]


def _length_exhibits(comparison: SofaComparison, key: str) -> Iterator[Exhibit]:
    correlations = {
        m.model: correlate_length(m.result, comparison.probe_set) for m in comparison.models
    }
    yield Exhibit(
        key,
        "",
        "PPL* and the length of a statement",
        "Figure 8",
        partial(draw_length_row, correlations),
        Table(
            key,
            f"Correlation of PPL* and the number of words on {comparison.probe_set.name}.",
            (Column("Model"), Column("r", "+.3f", interval=True)),
            list(correlations.items()),
            "Pearson's r over probes; below 0: the shorter the statement, the higher PPL*. "
            "Intervals are over statements; where one contains 0, neither is shown.",
        ),
    )


def _cluster_exhibits(probe_set: ProbeSet, key: str) -> Iterator[Exhibit]:
    clusters = probe_set.record.get("clusters")
    if clusters is None:
        return
    named_clusters = [(str(c["name"]), int(c["size"])) for c in clusters["found"]]
    rows = [
        [name, size, "; ".join(c["words"]), "; ".join(c["nearest"])]
        for (name, size), c in zip(named_clusters, clusters["found"], strict=True)
    ]
    various = int(clusters["various"])
    yield Exhibit(
        key,
        "",
        "What the statements are about",
        "Figure 5",
        partial(draw_count_bars, [*named_clusters, ("various", various)], "statements"),
        Table(
            key,
            f"Clusters of the statements of {probe_set.name}.",
            (
                Column("Cluster"),
                Column("statements", ".0f"),
                Column("words"),
                Column("nearest to its centre"),
            ),
            rows,
            f"{clusters['method']}; {pluralise(various, 'statement')} "
            f"{'is' if various == 1 else 'are'} in no cluster.",
        ),
    )


def _hate_exhibits(probe_set: ProbeSet, key: str) -> Iterator[Exhibit]:
    if "hate" not in probe_set.record:
        return
    counts = {}
    for part in probe_set.parts:
        hateful = sum(s.hate is not None and s.hate >= MIN_HATE_SCORE for s in part.statements)
        counts[part.category] = (hateful, len(part.statements) - hateful)
    yield Exhibit(
        key,
        "",
        "Statements that are hate speech",
        "Figure 6",
        partial(draw_hate_bars, counts),
        Table(
            key,
            f"Hate speech among the statements of {probe_set.name}.",
            (Column("Category"), Column("hate", ".0f"), Column("no hate", ".0f")),
            [[category, *numbers] for category, numbers in counts.items()],
            f"By {probe_set.record['hate']}, at {MIN_HATE_SCORE} or above. A stereotype can be "
            f"hurtful "
            "without being hate speech.",
        ),
    )
