"""What `kgbias compare` prints."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from kgbias.cli.options import print_json, printable
from kgbias.estimate import finite
from kgbias.measures import known
from kgbias.study.contrasts import comparison_records, group_test_record

if TYPE_CHECKING:
    from kgbias.compare import Comparison, GroupTest
    from kgbias.measure.figures import FormMean
    from kgbias.study.contrasts import Contrasts
    from kgbias.study.rows import Rows
    from kgbias.variance import Components

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
    from kgbias.variance import deviation

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
