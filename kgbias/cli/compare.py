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
    json_option,
    library_default,
    selection_options,
    store_option,
    warn_unfinished,
)
from kgbias.cli.settings import setting
from kgbias.errors import UsageError
from kgbias.io.text import spoken_name
from kgbias.measures import get_measure
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.study.comparison import comparison_records, group_test_record

if TYPE_CHECKING:
    from kgbias.compare import GroupTest, RunComparison
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
    default=library_default(kgbias.Study.compare_runs, "examples"),
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
    **selection: Any,
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
    library_options: dict[str, Any] = {"groups": groups, "measures": _split_names(measure)}
    with kgbias.open(store_url, progress=True) as study:
        if forms and (probes or len(runs) > 1):
            raise UsageError("--forms has no effect here, only with one run")
        if probes:
            contrasts = study.compare_models(
                *runs, probes=True, margin=margin, correction=correction, **library_options
            )
            return (
                show.print_json(contrasts.as_dict())
                if as_json
                else print_model_contrasts(contrasts)
            )
        if len(runs) > 1:
            comparisons = study.compare_runs(
                *runs, examples=examples, arm=arm, **library_options, **selection
            )
            models = study.compare_models(
                *runs, margin=margin, correction=correction, arm=arm, **library_options, **selection
            )
            warn_unfinished(
                *{
                    r.id: r
                    for component in comparisons
                    for r in (component.first, component.second)
                }.values()
            )
            return print_comparisons(comparisons, models, as_json)
        if margin is not None:
            raise UsageError("--margin has no effect here, only with several runs or --probes")
        run = study.run(*runs)
        if forms:
            means = run.means_by_prompt_type(
                measures=library_options["measures"], arm=arm, **selection
            )
            return print_form_means(run.name, means, as_json)
        tests = run.compare_groups(
            pairs=pairs, correction=correction, arm=arm, **library_options, **selection
        )
        arms: Sequence[GroupTest] = ()
        if arm is None and not groups:
            arms = run.arm_tests(
                measures=library_options["measures"], correction=correction, **selection
            )
        categories = {t.category for t in tests} if groups else None
        variance = [
            component
            for component in run.variance(arm=arm, **selection)
            if (not measure or component.measure in library_options["measures"])
            and (categories is None or component.category in categories)
        ]
        refusals = [] if groups or run.stored.record.kind != "crawl" else run.refusals().records()
        content = [] if groups or measure else run.said_more(arm=arm, **selection).records()
        warn_unfinished(run)
    print_group_tests(run.name, tests, arms, variance, as_json, refusals, content)


def _split_names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


_MAX_VERDICTS, _MAX_CONTRASTS = 5, 12
_MOST_MORE = 5  # of a group


def print_group_tests(
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
        test_records = {
            "groups": [group_test_record(test) for test in groups],
            "arms": [group_test_record(test) for test in arms],
        }
        table = [nan_to_none(component.as_dict()) for component in variance]
        beside = {
            "refusals": [nan_to_none(dict(row)) for row in refused],
            "said_more": [nan_to_none(dict(row)) for row in content],
        }
        return show.print_json({"run": run} | test_records | {"variance": table} | beside)
    if not groups and not arms:
        show.say(
            f"run {run} has nothing to test: that needs two groups of a category, or two "
            "arms, with scores (kgbias measure)",
            err=True,
        )
    for title, tests in (("groups", groups), ("arms", arms)):
        _print_tests(title, tests)
    if groups or arms:
        labels = any(test.label_difference.is_tested for test in groups)
        show.say("", f"{SHOWN_RULE}{_LABELS_RULE if labels else ''}")
    if arms and any(test.label_difference.has_interval for test in groups):
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
    show.print_table(
        (
            "group",
            ">prompts",
            ">refused",
            ">95% interval",
            ">less the others'",
            ">95% interval",
            ">p adj.",
        ),
        (
            (
                row["group"],
                row["prompts"],
                show.format_figure(row["refused"], ".0%"),
                Estimate(row["refused"], row["low"], row["high"], 0).interval(".0%"),
                show.format_figure(row["difference"], "+.0%"),
                Estimate(0, row["difference_low"], row["difference_high"], 0).interval("+.0%"),
                show.format_figure(row["q"], ".2g"),
            )
            for row in rows
        ),
    )


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
    show.print_table(
        ("group", "what", "", ">its prompts", ">the others'", ">more", ">95% interval", ">p adj."),
        (
            (
                row["group"],
                row["kind"],
                row["feature"],
                f"{row['prompts']} of {row['of']}",
                f"{row['others']} of {row['of_others']}",
                show.format_figure(row["difference"], "+.0%"),
                Estimate(0, row["difference_low"], row["difference_high"], 0).interval("+.0%"),
                show.format_figure(row["q"], ".2g"),
            )
            for row in shown
        ),
    )
    if len(shown) < len(rows):
        show.say(f"{len(rows) - len(shown)} more with --json")


def print_form_means(run: str, means: "Rows[PromptTypeMean]", as_json: bool) -> None:
    """Print the groups' means by what the prompts supplied."""
    if as_json:
        return show.print_json({"run": run, "forms": [nan_to_none(row) for row in means.records()]})
    if not means:
        show.say(f"run {run} does not say what its prompts supplied", err=True)
    for (arm, measure, category), category_means in groupby(
        means, key=lambda mean: (mean.arm, mean.measure, mean.category)
    ):
        of_arm = f", arm {arm}" if arm else ""
        show.say("", f"mean {spoken_name(measure)} of {category} by what prompts supplied{of_arm}")
        form = f"+{get_measure(measure).form.lstrip('+')}"
        show.print_table(
            ("group", "form", ">n", ">mean", ">95% interval"),
            (
                (mean.group, mean.form, mean.n, f"{mean.value:{form}}", mean.interval(form))
                for mean in category_means
            ),
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
    has_recrawls = any(component.recrawls.interaction.has_interval for component in variance)
    rows = []
    for component in variance:
        estimates = [component.groups, component.wordings.common, component.wordings.interaction]
        estimates += (
            [component.recrawls.common, component.recrawls.interaction] if has_recrawls else []
        )
        within = show.format_figure(math.sqrt(component.within), ".3f")
        rows.append(
            (
                spoken_name(component.measure),
                component.category,
                component.arm,
                *(format_deviation(e, "-") for e in estimates),
                within,
            )
        )
    heads = [">groups", ">wordings", ">groups x wordings"]
    heads += [">recrawls", ">groups x recrawls"] if has_recrawls else []
    show.print_table(("measure", "category", "arm", *heads, ">within"), rows)
    for component in variance:
        if component.verdict:
            show.say(component.verdict)
    if line := note_narrow_intervals(variance):
        show.say(line)


def _print_tests(title: str, tests: "Sequence[GroupTest]") -> None:
    from kgbias.compare.families import phrase_p_value, summarise_family

    has_several_arms = len({test.arm for test in tests}) > 1
    for (arm, measure, category), family_tests in groupby(
        tests, key=lambda test: (test.arm, test.measure, test.category)
    ):
        family = list(family_tests)
        first_test = family[0]
        of_arm = f", arm {arm}" if has_several_arms else ""
        show.say(
            "",
            f"{first_test.subject} of {title}, {category}{of_arm} "
            f"(family of {first_test.family}, {first_test.correction}; do they differ at all: "
            f"{phrase_p_value(first_test.omnibus_p)})",
        )
        shrunken = [">shrunken"] if any(test.shrunken.has_interval for test in family) else []
        by_labels = any("corrected" in test.forms for test in family)
        corrected = _LABEL_COLUMNS if by_labels else []
        show.print_table(
            (
                "first",
                "second",
                ">n",
                ">difference",
                ">95% interval",
                ">p",
                ">p adj.",
                ">chosen",
                ">raw",
                *shrunken,
                *corrected,
            ),
            (_test_cells(test, shrunken=bool(shrunken), corrected=by_labels) for test in family),
        )
        if by_labels:
            show.say(_LABELS_NOTE)
        verdicts = [test.verdict for test in family if test.headline_differs or test.differs]
        if line := summarise_family(family):
            verdicts = [line]
        _print_verdicts(verdicts, family, measure)


_LABELS_RULE = "; where labels correct it, p of that and the interval beside it decide"
_LABEL_COLUMNS = [">corrected", ">95% interval", ">p of it, adj.", ">labels"]
_LABELS_NOTE = (
    "corrected: the difference as raters label statements, with an interval and a p-value that "
    "cover the scorer's errors; no p where a side is corrected by labels of other groups. Every "
    "other column is of what the scorer says"
)


def _test_cells(test: "GroupTest", *, shrunken: bool, corrected: bool) -> tuple[str, ...]:
    forms = [test.forms[name].value if name in test.forms else None for name in ("chosen", "raw")]
    return (
        test.first,
        test.second,
        f"{test.n[0]}, {test.n[1]}",
        show.format_figure(test.difference.value, "+.3f"),
        test.difference.interval("+.3f"),
        show.format_figure(test.p, ".2g"),
        show.format_figure(test.p_adjusted, ".2g"),
        *(show.format_figure(value, "+.3f") for value in forms),
        *([show.format_figure(test.shrunken.value, "+.3f")] if shrunken else []),
        *(_label_cells(test.label_difference) if corrected else ()),
    )


def _label_cells(difference: "CorrectedDifference") -> tuple[str, ...]:
    p = show.format_figure(difference.p_adjusted, ".2g")
    return (
        show.format_figure(difference.value, "+.3f"),
        difference.interval("+.3f"),
        p,
        str(difference.n),
    )


def _print_verdicts(verdicts: Sequence[str], family: "Sequence[GroupTest]", measure: str) -> None:
    """Print a family's verdicts: what differs, or what difference would have been found."""
    for line in verdicts[:_MAX_VERDICTS]:
        show.say(f"-> {line}")
    if len(verdicts) > _MAX_VERDICTS:
        show.say(f"-> and {len(verdicts) - _MAX_VERDICTS} more")
    sizes = [t.headline_detectable for t in family if not math.isnan(t.headline_detectable)]
    if sizes:
        form = get_measure(measure).form.lstrip("+")
        low, high = f"{min(sizes):{form}}", f"{max(sizes):{form}}"
        size = low if low == high else f"{low} to {high}"
        despite = "".join(f" ({t.interval_note})" for t in family if t.interval_note)
        not_shown = (
            "" if verdicts else f"{spoken_name(measure)}: no difference was shown{despite}; "
        )
        test_note = ", by each test alone, where all together differ" if len(family) > 1 else ""
        show.say(
            f"-> {not_shown}differences of {size} would have been found in 80% of cases{test_note}"
        )


def print_model_contrasts(contrasts: "Contrasts") -> None:
    """Print the models against each other: one table, and in words what was shown."""
    tests = contrasts.tests
    has_several_pairs = len({(contrast.first, contrast.second) for contrast in tests}) > 1
    by_labels = any(contrast.corrected.has_interval for contrast in tests)
    highest = {
        (r.measure, r.group, model): shares[0]
        for r in contrasts.ranks
        for model, shares in zip(r.models, r.probabilities, strict=True)
    }
    models = "" if has_several_pairs else f"{tests[0].first} minus {tests[0].second}; "
    show.say(
        "",
        f"models against each other: {models}one family of {tests[0].family} contrasts "
        f"({tests[0].correction}), {_describe_pairing(tests)}",
    )
    show.print_table(
        (
            "measure",
            "group",
            *(("first", "second") if has_several_pairs else ()),
            ">n",
            ">means",
            ">difference",
            ">95% interval",
            ">p",
            ">p same",
            ">detectable",
            ">highest",
            "",
            *(_LABEL_COLUMNS if by_labels else ()),
        ),
        (
            (
                spoken_name(contrast.measure),
                contrast.group,
                *((contrast.first, contrast.second) if has_several_pairs else ()),
                f"{contrast.n[0]}, {contrast.n[1]}",
                ", ".join(show.format_figure(mean, "+.3f") for mean in contrast.means),
                show.format_figure(contrast.difference.value, "+.3f"),
                contrast.difference.interval("+.3f"),
                show.format_figure(contrast.p_adjusted, ".2g"),
                show.format_figure(contrast.equivalent_adjusted, ".2g"),
                show.format_figure(contrast.detectable, ".3f"),
                show.format_figure(
                    highest.get((contrast.measure, contrast.group, contrast.first), math.nan), ".2f"
                ),
                "differ" if contrast.headline_differs else "same" if contrast.is_equivalent else "",
                *(_label_cells(contrast.corrected) if by_labels else ()),
            )
            for contrast in tests
        ),
    )
    margins = {spoken_name(contrast.measure): f"{contrast.margin:.3g}" for contrast in tests}
    show.say(
        "p same: of a difference as large as the margin "
        f"({', '.join(f'{name} {margin}' for name, margin in margins.items())}); detectable: found "
        "in 80% of cases; highest: the share of resamples in which the first has the highest mean "
        "(not tested)"
    )
    if by_labels:
        show.say(_LABELS_NOTE)
    shown_contrasts = [
        contrast
        for contrast in tests
        if contrast.headline_differs or contrast.differs or contrast.is_equivalent
    ]
    for contrast in sorted(
        shown_contrasts, key=lambda contrast: (not contrast.headline_differs, not contrast.differs)
    )[:_MAX_CONTRASTS]:
        show.say(f"-> {contrast.verdict}")
    if len(shown_contrasts) > _MAX_CONTRASTS:
        show.say(f"-> and {len(shown_contrasts) - _MAX_CONTRASTS} more: --json shows all")
    if not_shown := len(tests) - len(shown_contrasts):
        show.say(f"-> in {not_shown} of {len(tests)} contrasts neither was shown")


def _describe_pairing(tests: "Sequence[ModelContrast]") -> str:
    """What the models share, in words."""
    shared = sorted({t.paired for t in tests if t.paired})
    return f"by the {' and '.join(shared)} that both share" if shared else "independent"


def print_comparisons(
    comparisons: "Sequence[RunComparison]", models: "Contrasts", as_json: bool
) -> None:
    if as_json:
        return show.print_json(comparison_records(comparisons, models))
    for comparison in comparisons:
        _print_comparison(comparison)
    print_model_contrasts(models)


def _print_comparison(comparison: "RunComparison") -> None:
    from kgbias.compare.run_pairs import MIN_GROUPS

    first_name, second_name, overlap = (
        comparison.first.name,
        comparison.second.name,
        comparison.overlap,
    )
    if comparison.asked_apart:
        show.say(
            f"{first_name} and {second_name} were not asked alike, and their figures differ by "
            f"that too:"
        )
        show.say(*(f"  {line}" for line in comparison.asked_apart))
    show.say(f"{first_name} and {second_name}: {comparison.shared_groups} groups in common")
    show.say(
        f"distinct statements: {overlap.first} and {overlap.second}, both say {overlap.both} "
        f"(Jaccard "
        f"{overlap.jaccard:.3f})"
    )
    for name, statements_only in (
        (first_name, overlap.only_first),
        (second_name, overlap.only_second),
    ):
        if statements_only:
            show.say(f"only {name} says:")
            for triple in statements_only:
                show.say(f"  {triple.count:>4}x  {triple.sentence[:100]}")
    ranked_agreements = [
        first_name for first_name in comparison.agreement if first_name.tau.n >= MIN_GROUPS
    ]
    if len(ranked_agreements) < len(comparison.agreement):
        show.say(f"ranks of fewer than {MIN_GROUPS} groups say nothing, and are left out")
    if ranked_agreements:
        show.say("whether both rank the groups alike:")
        show.print_table(
            ("measure", ">groups", ">Kendall's tau-b", ">95% interval", ">p"),
            (
                (
                    spoken_name(first_name.measure),
                    first_name.tau.n,
                    f"{first_name.tau.value:+.3f}",
                    first_name.tau.interval("+.3f"),
                    f"{first_name.p:.2g}",
                )
                for first_name in ranked_agreements
            ),
            indent=2,
        )
