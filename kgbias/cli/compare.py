"""`kgbias compare`: groups and arms of one run, or runs with each other."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli.options import (
    correction_option,
    default,
    json_option,
    print_json,
    printable,
    selection_options,
    store_option,
    warn_unfinished,
)
from kgbias.errors import UsageError
from kgbias.measures import known
from kgbias.stats.estimate import finite
from kgbias.study.compared import comparison_records, group_test_record

if TYPE_CHECKING:
    from kgbias.compare import Comparison, GroupTest
    from kgbias.measure.figures import FormMean
    from kgbias.stats.variance import Components
    from kgbias.study.compared import Contrasts
    from kgbias.study.rows import Rows


@click.command()
@click.argument("runs", nargs=-1, metavar="RUN...")
@store_option
@click.option(
    "--pairs", is_flag=True, help="One run: test every pair of groups, not each with the rest."
)
@click.option(
    "--groups",
    metavar="A,B",
    help="Only these groups: one is held against the rest of its category, several against each "
    "other. What is not asked is no part of a family.",
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
    help="Several models: a difference below it counts as none, in units of the measure (default: "
    "0.05 of its range, or 0.2 standard deviations where it has none).",
)
@click.option(
    "--forms", is_flag=True, help="One run: its groups' means by what the prompts supplied, alone."
)
@correction_option
@click.option(
    "--examples",
    default=default(kgbias.Study.compare, "examples"),
    show_default=True,
    help="Several runs: how many statements to list that one run alone has.",
)
@selection_options
@json_option
def compare(
    runs: tuple[str, ...],
    store_url: str,
    pairs: bool,
    groups: str | None,
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
    """Test the groups and augmentation arms of one run (the newest where none is named), or compare
    models: runs of several, or with --probes those that probed a run's statements.

    Groups are tested within each arm; runs of several arms are compared by one, --arm. First: do
    the groups of a category differ at all? Then each against the others, by the difference of
    their means at one mix of prompts, p-values by permutation of whole prompts and corrected over
    a family (one measure in one category). No group is named unless the first test finds something.
    Beside it stand the differences of statements whose predicate the model chose, and of all.
    Models: what one says and the other does not, how each group differs, whether they are the same
    to within a margin, and which ranks highest how surely; one family over all models, groups and
    measures.
    """
    asked: dict[str, Any] = {"groups": _listed(groups), "measures": _listed(measure)}
    with kgbias.open(store_url, progress=True) as study:
        if forms and (probes or len(runs) > 1):
            raise UsageError("--forms has no effect here, only with one run")
        if probes:
            found = study.contrast(
                *runs, probes=True, margin=margin, correction=correction, **asked
            )
            return print_json(found.as_dict()) if as_json else print_contrasts(found)
        if len(runs) > 1:
            compared = study.compare(*runs, examples=examples, arm=arm, **asked, **leaving)
            models = study.contrast(
                *runs, margin=margin, correction=correction, arm=arm, **asked, **leaving
            )
            warn_unfinished(*{r.id: r for c in compared for r in (c.first, c.second)}.values())
            return show_comparisons(compared, models, as_json)
        if margin is not None:
            raise UsageError("--margin has no effect here, only with several runs or --probes")
        run = study.run(*runs)
        if forms:
            means = run.forms(measures=asked["measures"], arm=arm, **leaving)
            return show_forms(run.name, means, as_json)
        tests = run.tests(pairs=pairs, correction=correction, arm=arm, **asked, **leaving)
        arms: Sequence[GroupTest] = ()
        if arm is None and not groups:
            arms = run.arm_tests(measures=asked["measures"], correction=correction, **leaving)
        variance = [c for c in run.variance(arm=arm, **leaving)
                    if not measure or c.measure in asked["measures"]]  # fmt: skip
        warn_unfinished(run)
    show_tests(run.name, tests, arms, variance, as_json)


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


_MOST_SAID, _MOST_CONTRASTS = 5, 12


def show_tests(
    run: str,
    groups: "Sequence[GroupTest]",
    arms: "Sequence[GroupTest]",
    variance: "Sequence[Components]",
    as_json: bool,
) -> None:
    if as_json:
        both = {
            "groups": [group_test_record(t) for t in groups],
            "arms": [group_test_record(t) for t in arms],
        }
        table = [finite(c.as_dict()) for c in variance]
        return print_json({"run": run} | both | {"variance": table})
    if not groups and not arms:
        click.echo(
            f"run {printable(run)} has nothing to test: it takes two groups of a category, or two "
            "arms, with scores (kgbias measure)",
            err=True,
        )
    for title, tests in (("groups", groups), ("arms", arms)):
        _print_tests(title, tests)
    _print_variance(variance)


def show_forms(run: str, means: "Rows[FormMean]", as_json: bool) -> None:
    """The means of groups by what prompts supplied."""
    if as_json:
        return print_json({"run": run, "forms": [finite(row) for row in means.records()]})
    if not means:
        click.echo(f"run {printable(run)} does not say what its prompts supplied", err=True)
    for (arm, measure, category), same in groupby(
        means, key=lambda m: (m.arm, m.measure, m.category)
    ):
        of_arm = f", arm {printable(arm)}" if arm else ""
        click.echo(f"\nmean {measure} of {printable(category)} by what prompts supplied{of_arm}")
        click.echo(f"{'group':<24} {'form':<24} {'n':>5} {'mean':>8} {'95% interval':>18}")
        form = f"+{known(measure).form.lstrip('+')}"
        for m in same:
            value = f"{m.value:{form}}"
            click.echo(
                f"{printable(m.group)[:24]:<24} {printable(m.form)[:24]:<24} {m.n:>5} {value:>8} "
                f"{m.interval(form):>18}"
            )


def _print_variance(variance: "Sequence[Components]") -> None:
    from kgbias.stats.variance import deviation

    if not variance:
        return
    click.echo(
        "\nstandard deviations (95% intervals): between groups; by what a wording, or crawling "
        "again,\nmoves all of them, and one of them beyond that; within a group, wording and crawl"
    )
    heads = ["groups", "wordings", "groups x wordings"]
    again = any(c.recrawls.own.has_interval for c in variance)
    heads += ["recrawls", "groups x recrawls"] if again else []
    columns = "".join(f"{head:>20}" for head in heads)
    click.echo(f"{'measure':<18}{'category':<18}{'arm':<8}{columns}{'within':>8}")
    for c in variance:
        parts = [c.groups, c.wordings.common, c.wordings.own]
        parts += [c.recrawls.common, c.recrawls.own] if again else []
        shown = "".join(f"{deviation(e, '-'):>20}" for e in parts)
        within = "-" if math.isnan(c.within) else f"{math.sqrt(c.within):.3f}"
        click.echo(
            f"{c.measure:<18}{printable(c.category)[:16]:<18}{printable(c.arm)[:7]:<8}{shown}{within:>8}"
        )
    for c in variance:
        if c.verdict:
            click.echo(printable(c.verdict))
    if any(c.wordings.own.has_interval or c.recrawls.own.has_interval for c in variance):
        click.echo(
            "intervals of differences resample the few wordings and crawls that there are: where "
            "these matter, they are too narrow"
        )


def _print_tests(title: str, tests: "Sequence[GroupTest]") -> None:
    from kgbias.compare.families import p_value, unnamed

    several = len({t.arm for t in tests}) > 1
    for (arm, measure, category), same in groupby(
        tests, key=lambda t: (t.arm, t.measure, t.category)
    ):
        family = list(same)
        one = family[0]
        of_arm = f", arm {printable(arm)}" if several else ""
        click.echo(
            f"\n{one.subject} of {title}, {printable(category)}{of_arm} "
            f"(family of {one.family}, {one.correction}; do they differ at all: "
            f"{p_value(one.omnibus_p)})"
        )
        shrunken = [f"{'shrunken':>9}"] if any(t.shrunken.has_interval for t in family) else []
        head = " ".join([
            f"{'first':<24} {'second':<18} {'n':>11} {'difference':>10} {'95% interval':>18}",
            f"{'p':>8} {'p adj.':>8} {'chosen':>8} {'raw':>8}", *shrunken,
        ])  # fmt: skip
        click.echo(head)
        for t in family:
            forms = [
                f"{t.forms[name].value:>+8.3f}" if name in t.forms else f"{'-':>8}"
                for name in ("chosen", "raw")
            ]
            click.echo(
                f"{printable(t.first)[:24]:<24} {printable(t.second)[:18]:<18} "
                f"{f'{t.n[0]}, {t.n[1]}':>11} {t.difference.value:>+10.3f} "
                f"{t.difference.interval('+.3f'):>18} {t.p:>8.2g} {t.p_adjusted:>8.2g} "
                + " ".join([*forms, *([f"{t.shrunken.value:>+9.3f}"] if shrunken else [])])
            )
        found = [t.verdict for t in family if t.differs]
        if line := unnamed(family):
            found = [line]
        _say(found, family, measure)


def _say(found: Sequence[str], family: "Sequence[GroupTest]", measure: str) -> None:
    """The verdicts of a family: what differs, or what difference would have been seen."""
    for line in found[:_MOST_SAID]:
        click.echo(f"-> {printable(line)}")
    if len(found) > _MOST_SAID:
        click.echo(f"-> and {len(found) - _MOST_SAID} more")
    sizes = [t.detectable for t in family if not math.isnan(t.detectable)]
    if sizes:
        form = known(measure).form.lstrip("+")
        low, high = f"{min(sizes):{form}}", f"{max(sizes):{form}}"
        size = low if low == high else f"{low} to {high}"
        start = "differences" if found else f"{measure}: no difference was shown; differences"
        alone = ", by each test alone, where all together differ" if len(family) > 1 else ""
        click.echo(f"-> {start} of {size} would have been found in 80% of cases{alone}")


def print_contrasts(found: "Contrasts") -> None:
    tests = found.tests
    click.echo(
        f"\nmodels against each other: one family of {tests[0].family} contrasts "
        f"({tests[0].correction})"
    )
    last = None
    for t in tests:
        if last != (t.measure, t.first, t.second):
            click.echo(
                f"\n{t.measure}, {printable(t.first)} minus {printable(t.second)}"
                + (f", by the {t.paired} that both share" if t.paired else ", independent")
                + f", margin {t.margin:.3g}"
            )
            click.echo(
                f"{'group':<24} {'n':>11} {'difference':>10} {'95% interval':>18} {'p':>8} "
                f"{'p same':>8} {'detectable':>10}"
            )
            last = (t.measure, t.first, t.second)
        click.echo(
            f"{printable(t.group)[:24]:<24} {f'{t.n[0]}, {t.n[1]}':>11} "
            f"{t.difference.value:>+10.3f} {t.difference.interval('+.3f'):>18} "
            f"{t.p_adjusted:>8.2g} {t.equivalent_adjusted:>8.2g} {t.detectable:>10.3f}"
        )
    click.echo(
        "\nthe highest mean first, with the share of resamples that each place has (not tested)"
    )
    for r in found.ranks:
        places = "; ".join(
            f"{printable(name)} {mean:+.3f} ({', '.join(f'{share:.2f}' for share in shares)})"
            for name, mean, shares in zip(r.models, r.means, r.probabilities, strict=True)
        )
        click.echo(f"{r.measure} of {printable(r.group)}: {places}")
    click.echo("\nverdict")
    told = sorted(tests, key=lambda t: (not t.differs, not t.same))
    for t in told[:_MOST_CONTRASTS]:
        click.echo(f"-> {printable(t.verdict)}")
    if len(told) > _MOST_CONTRASTS:
        click.echo(f"-> and {len(told) - _MOST_CONTRASTS} more: --json has them all")


def show_comparisons(found: "Sequence[Comparison]", models: "Contrasts", as_json: bool) -> None:
    if as_json:
        return print_json(comparison_records(found, models))
    for comparison in found:
        _print_comparison(comparison)
    print_contrasts(models)


def _print_comparison(c: "Comparison") -> None:
    from kgbias.compare.runs import FEWEST

    a, b, o = printable(c.first.name), printable(c.second.name), c.overlap
    click.echo(f"{a} and {b}: {c.shared_groups} groups in common")
    click.echo(
        f"distinct statements: {o.first} and {o.second}, both say {o.both} (Jaccard "
        f"{o.jaccard:.3f})"
    )
    for name, only in ((a, o.only_first), (b, o.only_second)):
        if only:
            click.echo(f"only {name} says:")
            for t in only:
                click.echo(f"  {t.count:>4}x  {printable(t.sentence)[:100]}")
    for agreement in c.agreement:
        if agreement.tau.n < FEWEST:
            click.echo(
                f"rank of groups by {agreement.measure}: withheld, {agreement.tau.n} groups say "
                f"nothing about ranks (from {FEWEST} on)"
            )
            continue
        click.echo(
            f"rank of groups by {agreement.measure}: Kendall's tau-b {agreement.tau.value:+.3f} "
            f"({agreement.tau.interval('+.3f')}), n = {agreement.tau.n} groups, "
            f"p = {agreement.p:.2g}"
        )
