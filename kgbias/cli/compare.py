"""`kgbias compare`: groups and arms of one run, or runs with each other."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    correction_setting,
    default,
    json_option,
    selection_options,
    store_option,
    warn_unfinished,
)
from kgbias.cli.settings import setting
from kgbias.errors import UsageError
from kgbias.io.text import spoken_name
from kgbias.measures import known
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.study.comparison import comparison_records, group_test_record

if TYPE_CHECKING:
    from kgbias.compare import RunComparison, GroupTest
    from kgbias.compare.model_contrasts import ModelContrast
    from kgbias.io.rows import Rows
    from kgbias.measure.figures import PromptTypeMean
    from kgbias.stats.ppi import CorrectedDifference
    from kgbias.stats.variance import VarianceComponents
    from kgbias.study.comparison import Contrasts


@click.command(
    cls=Command,
    examples=("kgbias compare smollm2 --pairs", "kgbias compare smollm2 llama --margin 0.1"),
)
@click.argument("runs", nargs=-1, metavar="RUN...")
@store_option
@click.option(
    "--pairs", is_flag=True, help="One run: test every pair of groups, not each against the rest."
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME",
    help="Only this group (repeatable): one is compared with the rest of its category, several "
    "with each other. Groups left out are not part of a family.",
)
@click.option("--measure", metavar="NAMES", help="Only these measures, separated by commas.")
@click.option(
    "--probes",
    is_flag=True,
    help="Compare the models that probed the runs (kgbias probe run), statement by statement.",
)
@click.option(
    "--margin",
    type=float,
    help="Several models: smaller differences count as none; in units of the measure (default: "
    "0.05 of its range, or 0.2 standard deviations if it has no range).",
)
@click.option(
    "--forms", is_flag=True, help="One run: only its groups' means, by what the prompts supplied."
)
@correction_setting
@setting(
    "examples",
    default=default(kgbias.Study.compare_runs, "examples"),
    help="Several runs: how many of the statements found in only one run to list.",
)
@selection_options
@json_option
def compare(
    runs: tuple[str, ...],
    store_url: str,
    pairs: bool,
    groups: tuple[str, ...],
    measure: str | None,
    probes: bool,
    margin: float | None,
    forms: bool,
    correction: str,
    examples: int,
    as_json: bool,
    arm: str | None,
    **leaving: Any,
) -> None:
    """Test the groups and augmentation arms of one run (default: the newest), or compare models:
    the models of several runs, or with --probes those that probed a run's statements.

    Groups are tested within each arm; to compare runs with several arms, choose one with --arm.
    First, do the groups of a category differ at all? Then each is tested against the others, by the
    difference of their means at one mix of prompts, with p-values by permutation of whole prompts,
    corrected over a family (one measure in one category). No group is named unless the first test
    finds something. Alongside are the differences over statements whose predicate the model chose,
    and over all, and what is said more of a group than of the others. For models: what one says and
    the other does not, how each group differs, whether they are the same to within a margin, and
    how surely each ranks highest; one family over all models, groups and measures.
    """
    asked: dict[str, Any] = {"groups": groups, "measures": _listed(measure)}
    with kgbias.open(store_url, progress=True) as study:
        if forms and (probes or len(runs) > 1):
            raise UsageError("--forms has no effect here, only with one run")
        if probes:
            found = study.compare_models(
                *runs, probes=True, margin=margin, correction=correction, **asked
            )
            return show.data(found.as_dict()) if as_json else print_contrasts(found)
        if len(runs) > 1:
            compared = study.compare_runs(*runs, examples=examples, arm=arm, **asked, **leaving)
            models = study.compare_models(
                *runs, margin=margin, correction=correction, arm=arm, **asked, **leaving
            )
            warn_unfinished(*{r.id: r for c in compared for r in (c.first, c.second)}.values())
            return show_comparisons(compared, models, as_json)
        if margin is not None:
            raise UsageError("--margin has no effect here, only with several runs or --probes")
        run = study.run(*runs)
        if forms:
            means = run.means_by_prompt_type(measures=asked["measures"], arm=arm, **leaving)
            return show_forms(run.name, means, as_json)
        tests = run.compare_groups(pairs=pairs, correction=correction, arm=arm, **asked, **leaving)
        arms: Sequence[GroupTest] = ()
        if arm is None and not groups:
            arms = run.arm_tests(measures=asked["measures"], correction=correction, **leaving)
        about = {t.category for t in tests} if groups else None
        variance = [
            c
            for c in run.variance(arm=arm, **leaving)
            if (not measure or c.measure in asked["measures"])
            and (about is None or c.category in about)
        ]
        refused = [] if groups or run.stored.record.kind != "crawl" else run.refusals().records()
        content = [] if groups or measure else run.said_more(arm=arm, **leaving).records()
        warn_unfinished(run)
    show_tests(run.name, tests, arms, variance, as_json, refused, content)


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


_MOST_SAID, _MOST_CONTRASTS = 5, 12
_MOST_MORE = 5  # of a group


def show_tests(
    run: str,
    groups: "Sequence[GroupTest]",
    arms: "Sequence[GroupTest]",
    variance: "Sequence[VarianceComponents]",
    as_json: bool,
    refused: Sequence[Mapping[str, Any]] = (),
    content: Sequence[Mapping[str, Any]] = (),
) -> None:
    from kgbias.compare.families import SHOWN_RULE

    if as_json:
        both = {
            "groups": [group_test_record(t) for t in groups],
            "arms": [group_test_record(t) for t in arms],
        }
        table = [nan_to_none(c.as_dict()) for c in variance]
        beside = {
            "refusals": [nan_to_none(dict(row)) for row in refused],
            "said_more": [nan_to_none(dict(row)) for row in content],
        }
        return show.data({"run": run} | both | {"variance": table} | beside)
    if not groups and not arms:
        show.say(
            f"run {run} has nothing to test: that needs two groups of a category, or two "
            "arms, with scores (kgbias measure)",
            err=True,
        )
    for title, tests in (("groups", groups), ("arms", arms)):
        _print_tests(title, tests)
    if groups or arms:
        labels = any(t.label_difference.is_tested for t in groups)
        show.say("", f"{SHOWN_RULE}{_RULE_BY_LABELS if labels else ''}")
    if arms and any(t.label_difference.has_interval for t in groups):
        show.say("arms are compared by what the scorer says: no label corrects these tests")
    _print_variance(variance)
    _print_refusals(refused)
    _print_said_more(content)


def _print_refusals(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print how often each group's prompts were refused, if any were."""
    if not any(row["refused"] for row in rows):
        return
    show.say(
        "",
        "refused prompts, by their first attempt (intervals over prompts; p by dealing whole "
        "prompts anew, corrected by Holm)",
    )
    show.table(
        ("group", ">prompts", ">refused", ">95% interval", ">less the others'", ">95% interval",
         ">p adj."),
        (
            (
                row["group"],
                row["prompts"],
                show.figure(row["refused"], ".0%"),
                Estimate(row["refused"], row["low"], row["high"], 0).interval(".0%"),
                show.figure(row["difference"], "+.0%"),
                Estimate(0, row["difference_low"], row["difference_high"], 0).interval("+.0%"),
                show.figure(row["q"], ".2g"),
            )
            for row in rows
        ),
    )  # fmt: skip


def _print_said_more(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what is said more of each group than of the others, the largest first."""
    if not rows:
        return
    show.say(
        "",
        "said more of a group than of the others of its category (exact, by dealing whole prompts "
        "anew, corrected over its features by Benjamini and Hochberg)",
    )
    shown = [
        row for _, own in groupby(rows, key=itemgetter("group")) for row in [*own][:_MOST_MORE]
    ]
    show.table(
        ("group", "what", "", ">its prompts", ">the others'", ">more", ">95% interval", ">p adj."),
        (
            (
                row["group"],
                row["kind"],
                row["feature"],
                f"{row['prompts']} of {row['of']}",
                f"{row['others']} of {row['of_others']}",
                show.figure(row["difference"], "+.0%"),
                Estimate(0, row["difference_low"], row["difference_high"], 0).interval("+.0%"),
                show.figure(row["q"], ".2g"),
            )
            for row in shown
        ),
    )  # fmt: skip
    if len(shown) < len(rows):
        show.say(f"{len(rows) - len(shown)} more with --json")


def show_forms(run: str, means: "Rows[PromptTypeMean]", as_json: bool) -> None:
    """Print the groups' means by what the prompts supplied."""
    if as_json:
        return show.data({"run": run, "forms": [nan_to_none(row) for row in means.records()]})
    if not means:
        show.say(f"run {run} does not say what its prompts supplied", err=True)
    for (arm, measure, category), same in groupby(
        means, key=lambda m: (m.arm, m.measure, m.category)
    ):
        of_arm = f", arm {arm}" if arm else ""
        show.say("", f"mean {spoken_name(measure)} of {category} by what prompts supplied{of_arm}")
        form = f"+{known(measure).form.lstrip('+')}"
        show.table(
            ("group", "form", ">n", ">mean", ">95% interval"),
            ((m.group, m.form, m.n, f"{m.value:{form}}", m.interval(form)) for m in same),
        )


def _print_variance(variance: "Sequence[VarianceComponents]") -> None:
    from kgbias.stats.variance import format_deviation, note_narrow_intervals

    if not variance:
        return
    show.say(
        "",
        "standard deviations (95% intervals): between groups; by what a wording, or crawling "
        "again,",
        "moves all of them, and one of them beyond that; within a group, wording and crawl",
    )
    again = any(c.recrawls.interaction.has_interval for c in variance)
    rows = []
    for c in variance:
        parts = [c.groups, c.wordings.common, c.wordings.interaction]
        parts += [c.recrawls.common, c.recrawls.interaction] if again else []
        within = show.figure(math.sqrt(c.within), ".3f")
        rows.append(
            (spoken_name(c.measure), c.category, c.arm, *(format_deviation(e, "-") for e in parts), within)
        )
    heads = [">groups", ">wordings", ">groups x wordings"]
    heads += [">recrawls", ">groups x recrawls"] if again else []
    show.table(("measure", "category", "arm", *heads, ">within"), rows)
    for c in variance:
        if c.verdict:
            show.say(c.verdict)
    if line := note_narrow_intervals(variance):
        show.say(line)


def _print_tests(title: str, tests: "Sequence[GroupTest]") -> None:
    from kgbias.compare.families import phrase_p_value, summarise_family

    several = len({t.arm for t in tests}) > 1
    for (arm, measure, category), same in groupby(
        tests, key=lambda t: (t.arm, t.measure, t.category)
    ):
        family = list(same)
        one = family[0]
        of_arm = f", arm {arm}" if several else ""
        show.say(
            "",
            f"{one.subject} of {title}, {category}{of_arm} "
            f"(family of {one.family}, {one.correction}; do they differ at all: "
            f"{phrase_p_value(one.omnibus_p)})",
        )
        shrunken = [">shrunken"] if any(t.shrunken.has_interval for t in family) else []
        by_labels = any("corrected" in t.forms for t in family)
        corrected = _BY_LABELS if by_labels else []
        show.table(
            ("first", "second", ">n", ">difference", ">95% interval", ">p", ">p adj.", ">chosen",
             ">raw", *shrunken, *corrected),
            (_tested(t, shrunken=bool(shrunken), corrected=by_labels) for t in family),
        )  # fmt: skip
        if by_labels:
            show.say(_CORRECTED)
        found = [t.verdict for t in family if t.headline_differs or t.differs]
        if line := summarise_family(family):
            found = [line]
        _say(found, family, measure)


_RULE_BY_LABELS = "; where labels correct it, p of that and the interval beside it decide"
_BY_LABELS = [">corrected", ">95% interval", ">p of it, adj.", ">labels"]
_CORRECTED = (
    "corrected: the difference as raters label statements, with an interval and a p-value that "
    "cover the scorer's errors; no p where a side is corrected by labels of other groups. Every "
    "other column is of what the scorer says"
)


def _tested(t: "GroupTest", *, shrunken: bool, corrected: bool) -> tuple[str, ...]:
    forms = [t.forms[name].value if name in t.forms else None for name in ("chosen", "raw")]
    return (
        t.first,
        t.second,
        f"{t.n[0]}, {t.n[1]}",
        show.figure(t.difference.value, "+.3f"),
        t.difference.interval("+.3f"),
        show.figure(t.p, ".2g"),
        show.figure(t.p_adjusted, ".2g"),
        *(show.figure(value, "+.3f") for value in forms),
        *([show.figure(t.shrunken.value, "+.3f")] if shrunken else []),
        *(_by_labels(t.label_difference) if corrected else ()),
    )


def _by_labels(d: "CorrectedDifference") -> tuple[str, ...]:
    p = show.figure(d.p_adjusted, ".2g")
    return show.figure(d.value, "+.3f"), d.interval("+.3f"), p, str(d.n)


def _say(found: Sequence[str], family: "Sequence[GroupTest]", measure: str) -> None:
    """Print a family's verdicts: what differs, or what difference would have been found."""
    for line in found[:_MOST_SAID]:
        show.say(f"-> {line}")
    if len(found) > _MOST_SAID:
        show.say(f"-> and {len(found) - _MOST_SAID} more")
    sizes = [t.headline_detectable for t in family if not math.isnan(t.headline_detectable)]
    if sizes:
        form = known(measure).form.lstrip("+")
        low, high = f"{min(sizes):{form}}", f"{max(sizes):{form}}"
        size = low if low == high else f"{low} to {high}"
        despite = "".join(f" ({t.interval_note})" for t in family if t.interval_note)
        shown = "" if found else f"{spoken_name(measure)}: no difference was shown{despite}; "
        alone = ", by each test alone, where all together differ" if len(family) > 1 else ""
        show.say(f"-> {shown}differences of {size} would have been found in 80% of cases{alone}")


def print_contrasts(found: "Contrasts") -> None:
    """Print the models against each other: one table, and in words what was shown."""
    tests = found.tests
    several = len({(t.first, t.second) for t in tests}) > 1
    by_labels = any(t.corrected.has_interval for t in tests)
    highest = {
        (r.measure, r.group, model): shares[0]
        for r in found.ranks
        for model, shares in zip(r.models, r.probabilities, strict=True)
    }
    models = "" if several else f"{tests[0].first} minus {tests[0].second}; "
    show.say(
        "",
        f"models against each other: {models}one family of {tests[0].family} contrasts "
        f"({tests[0].correction}), {_paired(tests)}",
    )
    show.table(
        ("measure", "group", *(("first", "second") if several else ()), ">n", ">means",
         ">difference", ">95% interval", ">p", ">p same", ">detectable", ">highest", "",
         *(_BY_LABELS if by_labels else ())),
        (
            (
                spoken_name(t.measure),
                t.group,
                *((t.first, t.second) if several else ()),
                f"{t.n[0]}, {t.n[1]}",
                ", ".join(show.figure(mean, "+.3f") for mean in t.means),
                show.figure(t.difference.value, "+.3f"),
                t.difference.interval("+.3f"),
                show.figure(t.p_adjusted, ".2g"),
                show.figure(t.equivalent_adjusted, ".2g"),
                show.figure(t.detectable, ".3f"),
                show.figure(highest.get((t.measure, t.group, t.first), math.nan), ".2f"),
                "differ" if t.headline_differs else "same" if t.is_equivalent else "",
                *(_by_labels(t.corrected) if by_labels else ()),
            )
            for t in tests
        ),
    )  # fmt: skip
    margins = {spoken_name(t.measure): f"{t.margin:.3g}" for t in tests}
    show.say(
        "p same: of a difference as large as the margin "
        f"({', '.join(f'{name} {margin}' for name, margin in margins.items())}); detectable: found "
        "in 80% of cases; highest: the share of resamples in which the first has the highest mean "
        "(not tested)"
    )
    if by_labels:
        show.say(_CORRECTED)
    shown = [t for t in tests if t.headline_differs or t.differs or t.is_equivalent]
    for t in sorted(shown, key=lambda t: (not t.headline_differs, not t.differs))[:_MOST_CONTRASTS]:
        show.say(f"-> {t.verdict}")
    if len(shown) > _MOST_CONTRASTS:
        show.say(f"-> and {len(shown) - _MOST_CONTRASTS} more: --json shows all")
    if rest := len(tests) - len(shown):
        show.say(f"-> in {rest} of {len(tests)} contrasts neither was shown")


def _paired(tests: "Sequence[ModelContrast]") -> str:
    """What the models share, in words."""
    shared = sorted({t.paired for t in tests if t.paired})
    return f"by the {' and '.join(shared)} that both share" if shared else "independent"


def show_comparisons(found: "Sequence[RunComparison]", models: "Contrasts", as_json: bool) -> None:
    if as_json:
        return show.data(comparison_records(found, models))
    for comparison in found:
        _print_comparison(comparison)
    print_contrasts(models)


def _print_comparison(c: "RunComparison") -> None:
    from kgbias.compare.run_pairs import MIN_GROUPS

    a, b, o = c.first.name, c.second.name, c.overlap
    if c.asked_apart:
        show.say(f"{a} and {b} were not asked alike, and their figures differ by that too:")
        show.say(*(f"  {line}" for line in c.asked_apart))
    show.say(f"{a} and {b}: {c.shared_groups} groups in common")
    show.say(
        f"distinct statements: {o.first} and {o.second}, both say {o.both} (Jaccard "
        f"{o.jaccard:.3f})"
    )
    for name, only in ((a, o.only_first), (b, o.only_second)):
        if only:
            show.say(f"only {name} says:")
            for t in only:
                show.say(f"  {t.count:>4}x  {t.sentence[:100]}")
    ranked = [a for a in c.agreement if a.tau.n >= MIN_GROUPS]
    if len(ranked) < len(c.agreement):
        show.say(f"ranks of fewer than {MIN_GROUPS} groups say nothing, and are left out")
    if ranked:
        show.say("whether both rank the groups alike:")
        show.table(
            ("measure", ">groups", ">Kendall's tau-b", ">95% interval", ">p"),
            (
                (
                    spoken_name(a.measure),
                    a.tau.n,
                    f"{a.tau.value:+.3f}",
                    a.tau.interval("+.3f"),
                    f"{a.p:.2g}",
                )
                for a in ranked
            ),
            indent=2,
        )
