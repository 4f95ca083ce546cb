"""Profiles in the report: tables 6, 7 and 9 to 13 of Siddique et al. 2024 for any run, a picture of
the words of each attribute, and a page that puts two given names side by side."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from kgbias.errors import UsageError
from kgbias.graph.profiles import Profile, list_attributes
from kgbias.graph.store import StoredRun
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_CAVEAT
from kgbias.io import pages
from kgbias.io.columns import Column
from kgbias.io.drawing import INK_COLOR, NEUTRAL_COLOR, POSITIVE_COLOR, figure_style
from kgbias.io.files import write_text
from kgbias.io.text import format_p_value, json_in_html, spoken_name
from kgbias.io.wording import pluralise
from kgbias.methods.profiles.agreement import ProfileAgreement, SharedWord
from kgbias.methods.profiles.analysis import (
    DEFAULT_PERMUTATIONS,
    DEFAULT_SPLITS,
    ProfileAnalysis,
    analyse_profiles,
    can_classify,
)
from kgbias.methods.profiles.config import add_labels
from kgbias.methods.profiles.words import (
    DEFAULT_SHOWN_WORDS,
    SIGNIFICANCE_LEVEL,
    WordShift,
    top_words,
)
from kgbias.report.figures import draw_intervals, make_row_figure, shorten_name
from kgbias.report.parts import ReportPart, SectionOfExhibits
from kgbias.report.run_data import RunData
from kgbias.report.save import save_exhibits
from kgbias.report.tables import GROUP_COLUMN, Exhibit, Table
from kgbias.stats.inference import Estimate

_PAGE_SPLITS = 5  # random splits, for a page
_PAPER_TABLES = {"group": "Table 9", "ethnicity": "Table 10", "gender": "Table 11"}


def profile_exhibits(data: RunData, place: str) -> Iterator[Exhibit]:
    """What the profiles of the run give away; nothing if it holds none that can be told apart."""
    analysis = _analyse(data)
    if analysis is None:
        return
    yield _accuracy_exhibit(analysis, f"{place}-profile-accuracy")
    for kind in analysis.classifications:
        if analysis.classifications[kind].cost:
            yield _cost_exhibit(analysis, kind, f"{place}-profile-without-{kind}")
    words = top_words([w for w in analysis.words if w.is_shown])
    if words:
        yield _word_exhibit(analysis, f"{place}-profile-words")
    if "religion" in words:
        yield _religion_exhibit(analysis, f"{place}-profile-religion")
    for number, (attribute, best_words) in enumerate(words.items(), 1):
        name = attribute if re.fullmatch("[a-z_]+", attribute) else str(number)
        yield _shift_exhibit(
            attribute, best_words, f"{place}-profile-shift-{name.replace('_', '-')}"
        )


def _analyse(data: RunData) -> ProfileAnalysis | None:
    """What the profiles of the run give away; None without profiles of several groups, or if they
    are the characters of stories, which are compared in another way."""
    if data.run.kind == "stories":
        return None
    profiles = add_labels(data.stored.profiles(), {g.id: g.name for g in data.run.groups})
    if not profiles or not can_classify(profiles):
        return None
    return analyse_profiles(
        profiles,
        repeats=DEFAULT_SPLITS if data.is_thorough else _PAGE_SPLITS,
        permutations=DEFAULT_PERMUTATIONS if data.is_thorough else 0,
        progress=data.progress,
    )


def _accuracy_exhibit(analysis: ProfileAnalysis, key: str) -> Exhibit:
    rows = [
        [
            kind,
            t.classes,
            t.accuracy,
            t.by_name,
            t.chance,
            t.permuted,
            t.p_value,
        ]
        for kind, t in analysis.classifications.items()
    ]
    split_count = analysis.settings["splits"]
    return Exhibit(
        key,
        "",
        "Can groups be told apart by their profiles?",
        "Table 6",
        None,
        Table(
            key,
            f"Accuracy of telling names apart by {pluralise(analysis.profiles, 'profile')}.",
            (
                Column("Of"),
                Column("classes", ".0f"),
                Column("accuracy", ".3f", interval=True),
                Column("by name", ".3f", interval=True),
                Column("chance", ".3f"),
                Column("permuted", ".3f", missing="-"),
                Column("p", format_p_value, missing="-"),
            ),
            rows,
            f"Support vector machine ({analysis.settings['kernel']}), means of {split_count} "
            f"random splits, "
            "70 to 30; by name, no name is on both sides. Permuted: labels shuffled over names.",
        ),
    )


def _cost_exhibit(analysis: ProfileAnalysis, kind: str, key: str) -> Exhibit:
    classification = analysis.classifications[kind]
    order = sorted(classification.cost, key=lambda a: -classification.cost[a].value)
    costs = [(a, _scale_estimate(classification.cost[a], -100)) for a in order]
    rows = [
        [attribute, cost, 100 * classification.alone[attribute].value] for attribute, cost in costs
    ]
    return Exhibit(
        key,
        "",
        f"What each attribute is worth: {kind}",
        _PAPER_TABLES[kind],
        partial(_draw_cost_bars, costs, f"accuracy of {kind} without it (points)"),
        Table(
            key,
            f"Accuracy of {kind} without each attribute, in points; with all it is "
            f"{100 * classification.accuracy.value:.1f}.",
            (
                Column("Attribute"),
                Column("change", "+.1f", interval=True),
                Column("alone (percent)", ".1f"),
            ),
            rows,
            "Where an interval contains 0, no change is shown.",
        ),
    )


def _word_exhibit(analysis: ProfileAnalysis, key: str) -> Exhibit:
    rows = []
    for attribute, best_words in top_words([w for w in analysis.words if w.is_shown]).items():
        rows += [
            [attribute, w.word, ", ".join(_word_groups(analysis, attribute, w.word))]
            for w in best_words
        ]
    return Exhibit(
        key,
        "",
        "Words that one group has more often",
        "Tables 12 and 13",
        None,
        Table(
            key,
            "Words of each attribute that more of a group's names have than of the others', "
            "those that contribute most first.",
            (Column("Attribute"), Column("Word"), Column("Groups")),
            rows,
            f"Jensen-Shannon divergence; groups whose corrected p is at most "
            f"{SIGNIFICANCE_LEVEL:g}, and whose "
            "interval lies above 0.",
        ),
    )


def _religion_exhibit(analysis: ProfileAnalysis, key: str) -> Exhibit:
    best_words = top_words([w for w in analysis.words if w.is_shown])["religion"]
    rows = [[w.word, ", ".join(_word_groups(analysis, "religion", w.word)[:2])] for w in best_words]
    return Exhibit(
        key,
        "",
        "Religions and the groups they are written about",
        "Table 7",
        None,
        Table(
            key,
            "Religions and the two groups that each contributes most for.",
            (Column("Word"), Column("Generation")),
            rows,
            "Beside APX and a crawl: kgbias profiles agreement.",
        ),
    )


def _shift_exhibit(attribute: str, best_words: Sequence[WordShift], key: str) -> Exhibit:
    rows = [
        [
            w.word,
            w.group,
            _word_estimate(w),
            w.p_adjusted,
            w.share,
            w.others,
        ]
        for w in best_words
    ]
    attribute_name = spoken_name(attribute)
    return Exhibit(
        key,
        "",
        f"Word shift: {attribute_name}",
        "Tables 12 and 13",
        partial(_draw_shift_bars, best_words, f"{attribute_name}: contribution (bits)"),
        Table(
            key,
            f"The words of {attribute_name} that contribute most to the divergence of a group.",
            (
                Column("Word"),
                GROUP_COLUMN,
                Column("bits", ".3f", interval=True),
                Column("p", format_p_value),
                Column("group", ".1%"),
                Column("others", ".1%"),
            ),
            rows,
            f"At most {DEFAULT_SHOWN_WORDS} words, each with the group that it contributes most "
            f"for.",
        ),
    )


def _draw_shift_bars(best_words: Sequence[WordShift], label: str) -> Any:
    """The contribution of each word for a group, with its 95% interval."""
    with figure_style():
        reversed_words = list(reversed(best_words))
        figure, axes = make_row_figure(len(reversed_words))
        places = range(len(reversed_words))
        axes.barh(
            places, [w.contribution for w in reversed_words], color=POSITIVE_COLOR, height=0.62
        )
        draw_intervals(axes, [_word_estimate(w) for w in reversed_words])
        axes.set_yticks(
            places,
            [f"{shorten_name(w.word)} · {shorten_name(w.group, 18)}" for w in reversed_words],
        )
        axes.set_ylim(-0.6, max(len(reversed_words), 2) - 0.4)
        axes.set_xlabel(label)
        return figure


def _draw_cost_bars(costs: Sequence[tuple[str, Estimate]], label: str) -> Any:
    """How many points accuracy changes without each attribute. All have one colour: the interval
    says whether a change is shown."""
    with figure_style():
        reversed_costs = list(reversed(costs))
        figure, axes = make_row_figure(len(reversed_costs))
        values = [e.value for _, e in reversed_costs]
        axes.barh(range(len(reversed_costs)), values, color=NEUTRAL_COLOR, height=0.62)
        draw_intervals(axes, [e for _, e in reversed_costs])
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        axes.set_yticks(
            range(len(reversed_costs)), [shorten_name(spoken_name(a)) for a, _ in reversed_costs]
        )
        axes.set_ylim(-0.6, max(len(reversed_costs), 2) - 0.4)
        axes.set_xlabel(label)
        return figure


def _word_groups(analysis: ProfileAnalysis, attribute: str, word: str) -> list[str]:
    """The groups that a word sets apart, those it contributes most for first."""
    shown_words = [
        w for w in analysis.words if (w.attribute, w.word) == (attribute, word) and w.is_shown
    ]
    return [w.group for w in sorted(shown_words, key=lambda w: -w.contribution)]


def _word_estimate(word: WordShift) -> Estimate:
    return Estimate(word.contribution, word.low, word.high, 0)


def _scale_estimate(estimate: Estimate, factor: float) -> Estimate:
    low, high = (
        sorted((estimate.low * factor, estimate.high * factor))
        if estimate.has_interval
        else (estimate.low, estimate.high)
    )
    return Estimate(estimate.value * factor, low, high, estimate.n)


_MAX_VALUE_CHARS = 300  # characters of a value that are shown


def _read_template(name: str) -> str:
    return pages.read_asset("kgbias.methods.profiles", "templates", name)


def write_profile_page(
    run: StoredRun,
    profiles: Sequence[Profile],
    path: Path,
    *,
    names: Sequence[str] = (),
    title: str | None = None,
) -> None:
    """Write the page, whole or not at all. Raises UsageError for a name without a profile, and for
    more than two names."""
    known_names = list(dict.fromkeys(p.name for p in profiles))
    if unknown := [name for name in names if name not in known_names]:
        raise UsageError(f"run {run.name!r} has no profile of the name {unknown[0]!r}")
    if len(names) > 2:
        raise UsageError("the page compares two names: give at most two in `name`")
    attributes = list_attributes(profiles)
    first_profile = profiles[0]
    second_profile = next(
        (p for p in profiles if p.labels.get("group") != first_profile.labels.get("group")),
        first_profile,
    )
    start_names = [
        *names,
        *(n for n in (first_profile.name, second_profile.name, *known_names) if n not in names),
    ]
    data = {
        "attributes": list(attributes),
        "begin": (start_names * 2)[:2],
        "profiles": [_profile_record(p, attributes) for p in profiles],
    }
    script = pages.bundle_scripts(*pages.read_shared_scripts("draw"), _read_template("profiles.js"))
    page = pages.fill_template(
        _read_template("profiles.html"),
        title=title or f"Profiles of {run.name}",
        model=f"{run.model.title} {run.model.revision}".strip(),
        warning=CONTENT_WARNING,
        statement=SAMPLE_CAVEAT,
        style=pages.page_style(""),
        data=Markup(json_in_html(data)),
        script=script,
        script_hash=pages.script_policy(script),
    )
    write_text(path, page)


def _profile_record(profile: Profile, attributes: Sequence[str]) -> dict[str, Any]:
    return {
        "name": profile.name,
        "group": profile.labels.get("group", ""),
        "values": [[v[:_MAX_VALUE_CHARS] for v in profile.values_of(a)] for a in attributes],
    }


MAX_DRAWN_WORDS = 40  # words in a picture; the table has all
_MAX_LISTED_GROUPS = 3  # groups of a word, in the table


def agreement_exhibits(agreements: Sequence[ProfileAgreement]) -> list[Exhibit]:
    """Each agreement of profiles with another view of the same groups, as a picture and a table
    (Table 7)."""
    return [
        _agreement_exhibit(agreement, key)
        for agreement, key in zip(agreements, _file_keys(agreements), strict=True)
    ]


def _agreement_exhibit(agreement: ProfileAgreement, key: str) -> Exhibit:
    """An agreement as a figure and a table."""
    rows = [
        [
            spoken_name(row.attribute),
            row.word,
            ", ".join(row.written[:_MAX_LISTED_GROUPS]),
            ", ".join(row.other[:_MAX_LISTED_GROUPS]),
            row.rank,
        ]
        for row in agreement.rows
    ]
    source = Path(agreement.source).stem
    drawn_rows = agreement.rows[:MAX_DRAWN_WORDS]
    drawn_note = (
        ""
        if len(drawn_rows) == len(agreement.rows)
        else f"Drawn: the first {pluralise(len(drawn_rows), 'word')}. "
    )
    return Exhibit(
        key,
        "",
        f"What profiles say beside {source}",
        "Table 7",
        partial(_draw_ranks, drawn_rows, agreement),
        Table(
            key,
            "Words that one group has more often in profiles, and the groups that come first for "
            f"them in {source}.",
            (
                Column("Attribute"),
                Column("Word"),
                Column("Profiles"),
                Column(source, title=source),
                Column("rank", "g"),
            ),
            rows,
            f"{drawn_note}Rank: of the first group of the profiles among the {agreement.groups} "
            f"of {source}; "
            "the dashed line is chance. No single rank is tested, only their mean. "
            f"Mean reciprocal rank {agreement.mrr.value:.3f} "
            f"[{agreement.mrr.format_interval('.3f')}], by chance "
            f"{agreement.expected:.3f}, p = {agreement.p_value:.3f}.",
        ),
    )


def _draw_ranks(rows: Sequence[SharedWord], agreement: ProfileAgreement) -> Any:
    """The rank in the other view of the group that each word is most typical of; the line is the
    rank by chance. All have one colour, because no single rank is tested."""
    with figure_style():
        reversed_rows = list(reversed(rows))
        figure, axes = make_row_figure(len(reversed_rows))
        ranks = [row.rank for row in reversed_rows]
        axes.hlines(range(len(reversed_rows)), 1, ranks, color=NEUTRAL_COLOR, linewidth=0.8)
        axes.scatter(ranks, range(len(reversed_rows)), color=INK_COLOR, s=14, zorder=3)
        axes.axvline(1 / agreement.expected, color=INK_COLOR, linewidth=0.6, linestyle="--")
        axes.set_yticks(
            range(len(reversed_rows)),
            [f"{shorten_name(r.word)} · {shorten_name(r.written[0], 18)}" for r in reversed_rows],
        )
        axes.set_ylim(-0.6, max(len(reversed_rows), 2) - 0.4)
        axes.set_xlim(0.5, agreement.groups + 0.5)
        axes.set_xticks([1, *range(5, agreement.groups + 1, 5)])
        axes.set_xlabel(f"rank among {pluralise(agreement.groups, 'group')}")
        return figure


def _file_keys(agreements: Sequence[ProfileAgreement]) -> list[str]:
    """A safe and unique file name for each."""
    keys: list[str] = []
    for agreement in agreements:
        stem = Path(agreement.source).stem.lower()
        name = re.sub(r"[^a-z0-9]+", "-", stem).strip("-") or "view"
        key = f"agreement-{name}"
        keys.append(key if key not in keys else f"{key}-{len(keys) + 1}")
    return keys


def write_agreement(agreements: Sequence[ProfileAgreement], folder: Path, run: str) -> list[Path]:
    """Write each agreement of profiles to `folder`: its figure as SVG, PDF and PNG, and its LaTeX
    table. Returns the files, sorted."""
    return save_exhibits(agreement_exhibits(agreements), folder, run)


REPORT_PART = ReportPart(
    of_run=profile_exhibits,
    sections=(
        SectionOfExhibits(
            "profiles",
            "Profiles",
            "Whether the groups that given names stand for can be told apart by the profiles "
            "written about them, and by which attributes and words (Siddique et al. 2024). A name "
            "says nothing about the person who bears it.",
            ("profile-",),
            after="variance",
        ),
    ),
)
