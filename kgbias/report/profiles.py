"""Profiles in the report: tables 6, 7 and 9 to 13 of Siddique et al. 2024 for any run, a picture of
the words of each attribute, and a page that puts two given names side by side."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from kgbias.errors import UsageError
from kgbias.graph.profiles import Profile, list_attributes
from kgbias.graph.store import StoredRun
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_STATEMENT
from kgbias.io import pages
from kgbias.io.drawing import INK_COLOR, NEUTRAL_COLOR, POSITIVE_COLOR, figure_style
from kgbias.io.files import write_text
from kgbias.io.text import json_in_html, format_p_value, spoken_name
from kgbias.profiles import ProfileAnalysis, WordShift
from kgbias.profiles.agreement import SharedWord, ProfileAgreement
from kgbias.profiles.words import SIGNIFICANCE_LEVEL, DEFAULT_SHOWN_WORDS, top_words
from kgbias.report.figures import draw_intervals, draw_rows, short
from kgbias.report.run_data import RunData
from kgbias.report.style import template
from kgbias.report.tables import Exhibit, Table, cells
from kgbias.stats.inference import Estimate

_OF = {"group": "Table 9", "ethnicity": "Table 10", "gender": "Table 11"}


def profile_exhibits(data: RunData, place: str) -> Iterator[Exhibit]:
    """What the profiles of the run give away; nothing if it holds none that can be told apart."""
    found = data.profile_analysis
    if found is None:
        return
    yield _accuracy(found, f"{place}-profile-accuracy")
    for kind in found.classifications:
        if found.classifications[kind].cost:
            yield _without(found, kind, f"{place}-profile-without-{kind}")
    words = top_words([w for w in found.words if w.is_shown])
    if words:
        yield _words(found, f"{place}-profile-words")
    if "religion" in words:
        yield _religions(found, f"{place}-profile-religion")
    for number, (attribute, own) in enumerate(words.items(), 1):
        name = attribute if re.fullmatch("[a-z_]+", attribute) else str(number)
        yield _shift(attribute, own, f"{place}-profile-shift-{name.replace('_', '-')}")


def _accuracy(found: ProfileAnalysis, key: str) -> Exhibit:
    rows = [
        [
            kind, str(t.classes), *cells(t.accuracy, ".3f"), *cells(t.by_name, ".3f"),
            f"{t.chance:.3f}", _figure(t.permuted.value), _p(t.p_value),
        ]
        for kind, t in found.classifications.items()
    ]  # fmt: skip
    n = found.settings["splits"]
    return Exhibit(
        key, "", "Can groups be told apart by their profiles?", "Table 6", None,
        Table(
            key, f"Accuracy of telling names apart by {found.profiles} profiles.",
            ("Of", "classes", "accuracy", "95% interval", "by name", "95% interval", "chance",
             "permuted", "p"), rows,
            f"Support vector machine ({found.settings['kernel']}), means of {n} random splits, "
            "70 to 30; by name, no name is on both sides. Permuted: labels shuffled over names.",
        ),
    )  # fmt: skip


def _without(found: ProfileAnalysis, kind: str, key: str) -> Exhibit:
    told = found.classifications[kind]
    order = sorted(told.cost, key=lambda a: -told.cost[a].value)
    costs = [(a, _scaled(told.cost[a], -100)) for a in order]
    rows = [[a, *cells(cost, "+.1f"), f"{100 * told.alone[a].value:.1f}"] for a, cost in costs]
    return Exhibit(
        key, "", f"What each attribute is worth: {kind}", _OF[kind],
        partial(_cost_bars, costs, f"accuracy of {kind} without it (points)"),
        Table(
            key, f"Accuracy of {kind} without each attribute, in points; with all it is "
            f"{100 * told.accuracy.value:.1f}.",
            ("Attribute", "change", "95% interval", "alone (percent)"), rows,
            "Where an interval contains 0, no change is shown.",
        ),
    )  # fmt: skip


def _words(found: ProfileAnalysis, key: str) -> Exhibit:
    rows = []
    for attribute, best in top_words([w for w in found.words if w.is_shown]).items():
        rows += [[attribute, w.word, ", ".join(_groups(found, attribute, w.word))] for w in best]
    return Exhibit(
        key, "", "Words that one group has more often", "Tables 12 and 13", None,
        Table(
            key, "Words of each attribute that more of a group's names have than of the others', "
            "those that contribute most first.",
            ("Attribute", "Word", "Groups"), rows,
            f"Jensen-Shannon divergence; groups whose corrected p is at most {SIGNIFICANCE_LEVEL:g}, and whose "
            "interval lies above 0.",
        ),
    )  # fmt: skip


def _religions(found: ProfileAnalysis, key: str) -> Exhibit:
    best = top_words([w for w in found.words if w.is_shown])["religion"]
    rows = [[w.word, ", ".join(_groups(found, "religion", w.word)[:2])] for w in best]
    return Exhibit(
        key, "", "Religions and the groups they are written about", "Table 7", None,
        Table(
            key, "Religions and the two groups that each contributes most for.",
            ("Word", "Generation"), rows,
            "Beside APX and a crawl: kgbias profiles agreement.",
        ),
    )  # fmt: skip


def _shift(attribute: str, best: Sequence[WordShift], key: str) -> Exhibit:
    rows = [
        [
            w.word, w.group, *cells(_estimate(w), ".3f"), format_p_value(w.p_adjusted),
            f"{100 * w.share:.1f}%", f"{100 * w.others:.1f}%",
        ]
        for w in best
    ]  # fmt: skip
    said = spoken_name(attribute)
    return Exhibit(
        key, "", f"Word shift: {said}", "Tables 12 and 13",
        partial(_shift_bars, best, f"{said}: contribution (bits)"),
        Table(
            key, f"The words of {said} that contribute most to the divergence of a group.",
            ("Word", "Group", "bits", "95% interval", "p", "group", "others"), rows,
            f"At most {DEFAULT_SHOWN_WORDS} words, each with the group that it contributes most for.",
        ),
    )  # fmt: skip


def _shift_bars(best: Sequence[WordShift], label: str) -> Any:
    """The contribution of each word for a group, with its 95% interval."""
    with figure_style():
        ordered = list(reversed(best))
        figure, axes = draw_rows(len(ordered))
        places = range(len(ordered))
        axes.barh(places, [w.contribution for w in ordered], color=POSITIVE_COLOR, height=0.62)
        draw_intervals(axes, [_estimate(w) for w in ordered])
        axes.set_yticks(places, [f"{short(w.word)} · {short(w.group, 18)}" for w in ordered])
        axes.set_ylim(-0.6, max(len(ordered), 2) - 0.4)
        axes.set_xlabel(label)
        return figure


def _cost_bars(costs: Sequence[tuple[str, Estimate]], label: str) -> Any:
    """How many points accuracy changes without each attribute. All have one colour: the interval
    says whether a change is shown."""
    with figure_style():
        ordered = list(reversed(costs))
        figure, axes = draw_rows(len(ordered))
        values = [e.value for _, e in ordered]
        axes.barh(range(len(ordered)), values, color=NEUTRAL_COLOR, height=0.62)
        draw_intervals(axes, [e for _, e in ordered])
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        axes.set_yticks(range(len(ordered)), [short(spoken_name(a)) for a, _ in ordered])
        axes.set_ylim(-0.6, max(len(ordered), 2) - 0.4)
        axes.set_xlabel(label)
        return figure


def _groups(found: ProfileAnalysis, attribute: str, word: str) -> list[str]:
    """The groups that a word sets apart, those it contributes most for first."""
    own = [w for w in found.words if (w.attribute, w.word) == (attribute, word) and w.is_shown]
    return [w.group for w in sorted(own, key=lambda w: -w.contribution)]


def _estimate(w: WordShift) -> Estimate:
    return Estimate(w.contribution, w.low, w.high, 0)


def _scaled(e: Estimate, factor: float) -> Estimate:
    low, high = sorted((e.low * factor, e.high * factor)) if e.has_interval else (e.low, e.high)
    return Estimate(e.value * factor, low, high, e.n)


def _figure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _p(value: float) -> str:
    return "-" if math.isnan(value) else format_p_value(value)


_LONGEST = 300  # characters of a value that are shown


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
    there = list(dict.fromkeys(p.name for p in profiles))
    if missing := [name for name in names if name not in there]:
        raise UsageError(f"run {run.name!r} has no profile of the name {missing[0]!r}")
    if len(names) > 2:
        raise UsageError("the page compares two names: give at most two in `name`")
    attributes = list_attributes(profiles)
    first = profiles[0]
    other = next((p for p in profiles if p.labels.get("group") != first.labels.get("group")), first)
    begin = [*names, *(n for n in (first.name, other.name, *there) if n not in names)]
    data = {
        "attributes": list(attributes),
        "begin": (begin * 2)[:2],
        "profiles": [_record(p, attributes) for p in profiles],
    }
    script = pages.join_scripts(*pages.shared_scripts("draw"), template("profiles.js"))
    page = pages.fill_template(
        template("profiles.html"),
        title=title or f"Profiles of {run.name}",
        model=f"{run.model.title} {run.model.revision}".strip(),
        warning=CONTENT_WARNING,
        statement=SAMPLE_STATEMENT,
        style=pages.page_style(""),
        data=Markup(json_in_html(data)),
        script=script,
        script_hash=pages.script_policy(script),
    )
    write_text(path, page)


def _record(profile: Profile, attributes: Sequence[str]) -> dict[str, Any]:
    return {
        "name": profile.name,
        "group": profile.labels.get("group", ""),
        "values": [[v[:_LONGEST] for v in profile.values_of(a)] for a in attributes],
    }


DRAWN = 40  # words in a picture; the table has all
_LISTED = 3  # groups of a word, in the table


def agreement_exhibits(found: Sequence[ProfileAgreement]) -> list[Exhibit]:
    """Each agreement of profiles with another view of the same groups, as a picture and a table
    (Table 7)."""
    return [_agreement(own, key) for own, key in zip(found, _keys(found), strict=True)]


def _agreement(found: ProfileAgreement, key: str) -> Exhibit:
    """An agreement as a figure and a table."""
    rows = [
        [
            spoken_name(row.attribute), row.word, ", ".join(row.written[:_LISTED]),
            ", ".join(row.other[:_LISTED]), f"{row.rank:g}",
        ]
        for row in found.rows
    ]  # fmt: skip
    source = Path(found.source).stem
    drawn = found.rows[:DRAWN]
    more = "" if len(drawn) == len(found.rows) else f"Drawn: the first {len(drawn)} words. "
    return Exhibit(
        key, "", f"What profiles say beside {source}", "Table 7",
        partial(_ranks, drawn, found),
        Table(
            key,
            "Words that one group has more often in profiles, and the groups that come first for "
            f"them in {source}.",
            ("Attribute", "Word", "Profiles", source, "rank"), rows,
            f"{more}Rank: of the first group of the profiles among the {found.groups} of {source}; "
            "the dashed line is chance. No single rank is tested, only their mean. "
            f"Mean reciprocal rank {found.mrr.value:.3f} [{found.mrr.interval('.3f')}], by chance "
            f"{found.expected:.3f}, p = {found.p_value:.3f}.",
        ),
    )  # fmt: skip


def _ranks(rows: Sequence[SharedWord], found: ProfileAgreement) -> Any:
    """The rank in the other view of the group that each word is most typical of; the line is the
    rank by chance. All have one colour, because no single rank is tested."""
    with figure_style():
        ordered = list(reversed(rows))
        figure, axes = draw_rows(len(ordered))
        ranks = [row.rank for row in ordered]
        axes.hlines(range(len(ordered)), 1, ranks, color=NEUTRAL_COLOR, linewidth=0.8)
        axes.scatter(ranks, range(len(ordered)), color=INK_COLOR, s=14, zorder=3)
        axes.axvline(1 / found.expected, color=INK_COLOR, linewidth=0.6, linestyle="--")
        axes.set_yticks(
            range(len(ordered)), [f"{short(r.word)} · {short(r.written[0], 18)}" for r in ordered]
        )
        axes.set_ylim(-0.6, max(len(ordered), 2) - 0.4)
        axes.set_xlim(0.5, found.groups + 0.5)
        axes.set_xticks([1, *range(5, found.groups + 1, 5)])
        axes.set_xlabel(f"rank among {found.groups} groups")
        return figure


def _keys(found: Sequence[ProfileAgreement]) -> list[str]:
    """A safe and unique file name for each."""
    keys: list[str] = []
    for agreement in found:
        stem = Path(agreement.source).stem.lower()
        name = re.sub(r"[^a-z0-9]+", "-", stem).strip("-") or "view"
        key = f"agreement-{name}"
        keys.append(key if key not in keys else f"{key}-{len(keys) + 1}")
    return keys
