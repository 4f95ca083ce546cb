"""`kgbias compare`: groups and arms of one run, or runs with each other."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    correction_setting,
    json_option,
    library_default,
    parallel_option,
    selection_options,
    store_option,
    warn_unfinished,
)
from kgbias.cli.settings import setting
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.io.columns import Column
from kgbias.io.rows import Rows
from kgbias.io.text import spoken_name
from kgbias.io.wording import pluralise
from kgbias.measures import get_measure
from kgbias.study.comparison import comparison_records, group_test_record
from kgbias.study.languages import LanguageBeliefs, are_in_two_languages

if TYPE_CHECKING:
    from kgbias.compare.content_tests import DistinctiveFeature
    from kgbias.compare.families import GroupTest
    from kgbias.compare.model_contrasts import ModelContrast
    from kgbias.compare.refusals import GroupRefusals
    from kgbias.compare.run_pairs import RunComparison
    from kgbias.measure.figures import PromptTypeMean
    from kgbias.stats.variance import VarianceComponents
    from kgbias.study.comparison import Contrasts


@click.command(
    cls=Command,
    section="Main workflow",
    short_help="Test differences between groups, or between runs.",
    examples=("kgbias compare smollm2 --pairwise", "kgbias compare smollm2 llama --margin 0.1"),
)
@click.argument("runs", nargs=-1, metavar="RUN...")
@store_option
@click.option(
    "--pairwise",
    is_flag=True,
    help="One run: test every pair of groups, not each against the rest.",
)
@click.option(
    "--only",
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
    "--by-prompt-type",
    is_flag=True,
    help="One run: only its groups' means, by what the prompts supplied.",
)
@parallel_option
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
    pairwise: bool,
    groups: tuple[str, ...],
    measure: str | None,
    probes: bool,
    margin: float | None,
    by_prompt_type: bool,
    parallel: str | None,
    correction: str,
    examples: int,
    arm: str | None,
    **selection: Any,
) -> Output:
    """Test the groups and augmentation arms of one run (default: the newest), or compare models:
    the models of several runs, or with --probes those that probed a run's statements.

    Groups are tested within each arm; to compare runs with several arms, choose one with --arm.
    First, do the groups of a category differ at all? Then each is tested against the others, by the
    difference of their means at one mix of prompts, with p-values by permutation of whole prompts,
    corrected over a family (one measure in one category). No group is named unless the first test
    finds something. Alongside are the differences over statements whose predicate the model chose,
    and over all, and what is said more of a group than of the others. For models: what one says and
    the other does not, how each group differs, whether they are the same to within a margin, and
    how surely each ranks highest; one family over all models, groups and measures. Of two runs in
    different languages: what the one model that was asked about both (kgbias evidence) believes of
    the same groups in both.
    """
    library_options: dict[str, Any] = {"groups": groups, "measures": _split_names(measure)}
    with kgbias.open(store_url, progress=True) as study:
        if by_prompt_type and (probes or len(runs) > 1):
            raise UsageError("--by-prompt-type has no effect here, only with one run")
        if probes:
            contrasts = study.compare_models(
                *runs, probes=True, margin=margin, correction=correction, **library_options
            )
            return Output(contrasts, lambda: print_model_contrasts(contrasts))
        if len(runs) == 2 and are_in_two_languages(*(study.run(name).stored for name in runs)):
            both = study.compare_languages(*runs, parallel=parallel, arm=arm, **selection)
            return Output(both, lambda: _print_languages(both))
        if parallel is not None:
            raise UsageError("--parallel has no effect here, only with runs in two languages")
        if len(runs) > 1:
            comparisons = study.compare_runs(
                *runs, examples=examples, arm=arm, **library_options, **selection
            )
            models = study.compare_models(
                *runs, margin=margin, correction=correction, arm=arm, **library_options, **selection
            )
            runs_compared = {}
            for comparison in comparisons:
                for side in (comparison.first, comparison.second):
                    runs_compared[side.id] = side
            warn_unfinished(*runs_compared.values())
            return Output(
                comparison_records(comparisons, models),
                lambda: _print_comparisons(comparisons, models),
            )
        if margin is not None:
            raise UsageError("--margin has no effect here, only with several runs or --probes")
        run = study.run(*runs)
        if by_prompt_type:
            means = run.means_by_prompt_type(
                measures=library_options["measures"], arm=arm, **selection
            )
            return Output(
                {"run": run.name, "forms": means}, lambda: _print_form_means(run.name, means)
            )
        tests = run.compare_groups(
            pairwise=pairwise, correction=correction, arm=arm, **library_options, **selection
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
        refusals: Sequence[GroupRefusals] = ()
        is_import = run.stored.record.kind == "import"
        if not groups and run.stored.record.kind == "crawl":
            refusals = run.refusals()
        content: Sequence[DistinctiveFeature] = ()
        if not groups and not measure:
            content = run.said_more(arm=arm, **selection)
        tested: dict[str, Any] = {}
        if click.get_current_context().params.get("as_json") and not (groups or measure):
            tested["questions"] = run.questions(arm=arm, **selection)
            tested["counted"] = run.counted_statements(arm=arm, **selection).as_dict()
        warn_unfinished(run)
    data = {
        "run": run.name,
        "groups": [group_test_record(test) for test in tests],
        "arms": [group_test_record(test) for test in arms],
        "variance": [component.as_dict() for component in variance],
        "refusals": refusals,
        "said_more": content,
        **tested,
    }

    def print_text() -> None:
        _print_group_tests(run.name, tests, arms)
        _print_variance(variance)
        print_refusals(refusals)
        _print_said_more(content, "statements" if is_import else "prompts")

    return Output(data, print_text)


def _print_languages(both: LanguageBeliefs) -> None:
    """Print what a model believes in two languages: the strongest beliefs of each kind."""
    show.say(*both.heading().splitlines())
    shown: list[Any] = []
    rows = both.as_rows()
    for languages in (", ".join(both.languages), *both.languages, ""):
        shown += [row for row in rows if row["shown_in"] == languages][:_MAX_BELIEFS]
    first, second = both.languages
    titles = {
        "statement": f"statement in {first}",
        "other_statement": f"in {second}",
        "lift": f"lift in {first}",
        "other_lift": f"lift in {second}",
    }
    columns = [
        replace(column, title=titles.get(column.name, column.title))
        for column in rows.layout
        if column.name not in _NOT_PRINTED
    ]
    show.say()
    show.print_rows(Rows(shown, columns))
    if len(shown) < len(rows):
        show.say(f"{len(rows) - len(shown)} more with --json")


_MAX_BELIEFS = 8  # of each kind: in both languages, in either alone, in neither
_NOT_PRINTED = ("category", "cosine", "other_group")


def _split_names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


_MAX_VERDICTS, _MAX_CONTRASTS = 5, 12
_MAX_FEATURES_PER_GROUP = 5


def _print_group_tests(
    run: str, groups: "Sequence[GroupTest]", arms: "Sequence[GroupTest]"
) -> None:
    from kgbias.compare.families import SIGNIFICANCE_RULE

    if not groups and not arms:
        show.say(
            f"run {run} has nothing to test: that needs two groups of a category, or two "
            "arms, with scores (kgbias measure)",
            err=True,
        )
    for title, tests in (("groups", groups), ("arms", arms)):
        _print_tests(title, tests)
    if groups or arms:
        labels = any(test.label_corrected_difference.is_tested for test in groups)
        show.say("", f"{SIGNIFICANCE_RULE}{_LABELS_RULE if labels else ''}")
    if arms and any(test.label_corrected_difference.has_interval for test in groups):
        show.say("arms are compared by what the scorer says: no label corrects these tests")


def print_refusals(rows: "Sequence[GroupRefusals]") -> None:
    """Print how often each group's prompts were refused, if any were."""
    if not any(row.share.value for row in rows):
        return
    show.say(
        "",
        "refused prompts, by their first attempt (intervals over prompts; p of the difference by "
        "dealing whole prompts anew, corrected over the groups by the same deals)",
    )
    show.print_table(
        (
            Column("group"),
            Column("prompts", "d"),
            Column("refused", ".0%", interval=True),
            Column("less the others'", "+.0%", interval=True),
            Column("p adj.", ".2g"),
        ),
        ((row.group, row.share.n, row.share, row.difference, row.q) for row in rows),
    )


def _print_said_more(rows: "Sequence[DistinctiveFeature]", unit: str) -> None:
    """Print what is said more of each group than of the others, the largest first; `unit` is what
    was dealt anew."""
    if not rows:
        return
    show.say(
        "",
        f"said more of a group than of the others of its category (exact, by dealing whole {unit} "
        "anew, corrected over its features by Benjamini and Hochberg)",
    )
    shown: list[DistinctiveFeature] = []
    for _, group_rows in groupby(rows, key=attrgetter("group")):
        shown += islice(group_rows, _MAX_FEATURES_PER_GROUP)
    show.print_table(
        (
            Column("group"),
            Column("what"),
            Column(""),
            Column(f"its {unit}", "d", joiner=" of "),
            Column("the others'", "d", joiner=" of "),
            Column("more", "+.0%", interval=True),
            Column("p adj.", ".2g"),
        ),
        (
            (
                row.group,
                row.kind,
                row.feature,
                (row.prompts, row.group_total),
                (row.others, row.others_total),
                row.difference,
                row.q,
            )
            for row in shown
        ),
    )
    if len(shown) < len(rows):
        show.say(f"{len(rows) - len(shown)} more with --json")


def _print_form_means(run: str, means: "Rows[PromptTypeMean]") -> None:
    """Print the groups' means by what the prompts supplied."""
    if not means:
        show.say(f"run {run} does not say what its prompts supplied", err=True)
    for (arm, measure, category), category_means in groupby(
        means, key=lambda mean: (mean.arm, mean.measure, mean.category)
    ):
        of_arm = f", arm {arm}" if arm else ""
        show.say("", f"mean {spoken_name(measure)} of {category} by what prompts supplied{of_arm}")
        form = f"+{get_measure(measure).form.lstrip('+')}"
        show.print_table(
            ("group", "form", Column("n", "d"), Column("mean", form, interval=True)),
            ((mean.group, mean.form, mean.n, mean) for mean in category_means),
        )


def _label_columns(part: str) -> list[Column]:
    """Of a test, the difference that labels correct, which is this part of it."""
    return [
        Column("corrected", "+.3f", interval=True, get=attrgetter(part)),
        Column("p of it, adj.", ".2g", get=attrgetter(f"{part}.p_adjusted")),
        Column("labels", "d", get=attrgetter(f"{part}.n")),
    ]


def _print_variance(variance: "Sequence[VarianceComponents]") -> None:
    from kgbias.stats.variance import deviation, note_narrow_intervals

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
        rows.append(
            (
                spoken_name(component.measure),
                component.category,
                component.arm,
                *map(deviation, estimates),
                math.sqrt(component.within),
            )
        )
    heads = ["groups", "wordings", "groups x wordings"]
    heads += ["recrawls", "groups x recrawls"] if has_recrawls else []
    estimate_columns = [Column(head, ".2f", interval=True) for head in heads]
    show.print_table(
        ("measure", "category", "arm", *estimate_columns, Column("within", ".3f")), rows
    )
    for component in variance:
        if component.verdict:
            show.say(component.verdict)
    note = note_narrow_intervals(variance)
    if note:
        show.say(note)


def _print_tests(title: str, tests: "Sequence[GroupTest]") -> None:
    from kgbias.compare.families import describe_family_without_pairs, phrase_p_value

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
        by_labels = any("corrected" in test.forms for test in family)
        columns = list(_TEST_COLUMNS)
        if any(test.shrunken.has_interval for test in family):
            columns.append(Column("shrunken", "+.3f"))
        if by_labels:
            columns += _LABEL_COLUMNS
        show.print_rows(Rows(family, columns))
        if by_labels:
            show.say(_LABELS_NOTE)
        verdicts = [test.verdict for test in family if test.headline_differs or test.differs]
        without_pairs = describe_family_without_pairs(family)
        if without_pairs:
            verdicts = [without_pairs]
        _print_verdicts(verdicts, family, measure)


_LABELS_RULE = "; where labels correct it, p of that and the interval beside it decide"
_TEST_COLUMNS = (
    Column("first"),
    Column("second"),
    Column("n", "d"),
    Column("difference", "+.3f", interval=True),
    Column("p", ".2g"),
    Column("p_adjusted", ".2g", title="p adj."),
    Column("chosen", "+.3f", get=lambda test: test.forms.get("chosen")),
    Column("raw", "+.3f", get=lambda test: test.forms.get("raw")),
)
_LABEL_COLUMNS = _label_columns("label_corrected_difference")
_LABELS_NOTE = (
    "corrected: the difference as raters label statements, with an interval and a p-value that "
    "cover the scorer's errors; no p where a side is corrected by labels of other groups. Every "
    "other column is of what the scorer says"
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
        despite = "".join(f" ({t.near_miss_note})" for t in family if t.near_miss_note)
        not_shown = (
            "" if verdicts else f"{spoken_name(measure)}: no difference was shown{despite}; "
        )
        some = f" in {len(sizes)} of {len(family)} comparisons" if len(sizes) < len(family) else ""
        test_note = ", by each test alone, where all together differ" if len(family) > 1 else ""
        show.say(
            f"-> {not_shown}differences of {size} would have been found{some} in 80% of cases"
            f"{test_note}"
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

    def highest_share(contrast: "ModelContrast") -> float | None:
        return highest.get((contrast.measure, contrast.group, contrast.first))

    columns = [Column("measure", get=lambda contrast: spoken_name(contrast.measure))]
    columns.append(Column("group"))
    if has_several_pairs:
        columns += [Column("first"), Column("second")]
    columns += [
        Column("n", "d"),
        Column("means", "+.3f"),
        Column("difference", "+.3f", interval=True),
        Column("p", ".2g", get=attrgetter("p_adjusted")),
        Column("p same", ".2g", get=attrgetter("equivalent_adjusted")),
        Column("detectable", ".3f"),
        Column("highest", ".2f", get=highest_share),
        Column("verdict", title=" ", get=_contrast_mark),
    ]
    if by_labels:
        columns += _label_columns("corrected")
    show.print_rows(Rows(tests, columns))
    margins = {spoken_name(contrast.measure): f"{contrast.margin:.3g}" for contrast in tests}
    show.say(
        "p same: of a difference as large as the margin "
        f"({', '.join(f'{name} {margin}' for name, margin in margins.items())}), where there are "
        "prompts enough to tell; detectable: found in 80% of cases; highest: the share of "
        "resamples in which the first has the highest mean (not tested)"
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
    not_shown = [contrast for contrast in tests if contrast not in shown_contrasts]
    if not_shown:
        show.say(
            f"-> in {len(not_shown)} of {len(tests)} contrasts neither was shown"
            f"{_possible_sizes(not_shown)}"
        )


def _possible_sizes(contrasts: "Sequence[ModelContrast]") -> str:
    """What differences would have been found where none was, by measure, and in how many contrasts
    none that is possible."""
    parts = []
    sizes: dict[str, list[float]] = {}
    for contrast in contrasts:
        if contrast.can_differ:
            sizes.setdefault(contrast.measure, []).append(contrast.detectable)
    ranges = []
    for measure, values in sizes.items():
        form = get_measure(measure).form.lstrip("+")
        low, high = f"{min(values):{form}}", f"{max(values):{form}}"
        ranges.append(f"{spoken_name(measure)} {low if low == high else f'{low} to {high}'}")
    if ranges:
        parts.append(f"differences of {', '.join(ranges)} would have been found in 80% of cases")
    undecidable = sum(not contrast.can_differ for contrast in contrasts)
    if undecidable:
        parts.append(f"in {undecidable} there is too little to find any difference")
    return "".join(f"; {part}" for part in parts)


def _contrast_mark(contrast: "ModelContrast") -> str:
    if contrast.headline_differs:
        return "differ"
    return "same" if contrast.is_equivalent else ""


def _describe_pairing(tests: "Sequence[ModelContrast]") -> str:
    """What the models share, in words."""
    shared = sorted({t.paired for t in tests if t.paired_by_unit})
    if shared:
        return f"by the {' and '.join(shared)} that both share"
    known = any(t.paired for t in tests)
    return "at one mix of the kinds of prompts that both have" if known else "independent"


def _print_comparisons(comparisons: "Sequence[RunComparison]", models: "Contrasts") -> None:
    for comparison in comparisons:
        _print_comparison(comparison)
    print_model_contrasts(models)


def _print_comparison(comparison: "RunComparison") -> None:
    from kgbias.compare.run_pairs import MIN_GROUPS

    first_name, second_name = comparison.first.name, comparison.second.name
    overlap = comparison.overlap
    if comparison.asked_apart:
        show.say(
            f"{first_name} and {second_name} were not asked alike, and their figures differ by "
            f"that too:"
        )
        show.say(*(f"  {line}" for line in comparison.asked_apart))
    show.say(
        f"{first_name} and {second_name}: {pluralise(comparison.shared_groups, 'group')} in common"
    )
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
        agreement for agreement in comparison.agreement if agreement.tau.n >= MIN_GROUPS
    ]
    if len(ranked_agreements) < len(comparison.agreement):
        show.say(f"ranks of fewer than {MIN_GROUPS} groups say nothing, and are left out")
    if ranked_agreements:
        show.say("whether both rank the groups alike:")
        show.print_table(
            (
                Column("measure"),
                Column("groups", "d"),
                Column("Kendall's tau-b", "+.3f", interval=True),
                Column("p", ".2g"),
            ),
            (
                (spoken_name(ranked.measure), ranked.tau.n, ranked.tau, ranked.p)
                for ranked in ranked_agreements
            ),
            indent=2,
        )
