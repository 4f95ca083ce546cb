"""`kgbias compare`: groups and arms of one run, or runs with each other."""

from collections.abc import Sequence
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

if TYPE_CHECKING:
    from kgbias.compare import Comparison, GroupTest


@click.command()
@click.argument("runs", nargs=-1, metavar="RUN...")
@store_option
@click.option(
    "--pairs", is_flag=True, help="One run: test every pair of groups, not each with the rest."
)
@correction_option
@click.option(
    "--examples",
    default=default(kgbias.Run.compare, "examples"),
    show_default=True,
    help="Several runs: how many statements to list that one run alone has.",
)
@selection_options
@json_option
def compare(
    runs: tuple[str, ...],
    store_url: str,
    pairs: bool,
    correction: str,
    examples: int,
    as_json: bool,
    arm: str | None,
    **leaving: Any,
) -> None:
    """Test the groups and augmentation arms of one run (the newest where none is named), or compare
    runs: what one says and the other does not, how their groups differ, how alike they rank them.
    Groups are tested within each arm; runs of several arms are compared by one, --arm.

    Tests are two-sample Kolmogorov-Smirnov and Mann-Whitney, two-sided, p-values corrected over
    each family (one measure in one category). delta is Cliff's: above 0, the first is higher.
    """
    with kgbias.open(store_url, progress=True) as study:
        if len(runs) > 1:
            found = study.compare(
                *runs, correction=correction, examples=examples, arm=arm, **leaving
            )
            warn_unfinished(*{r.id: r for c in found for r in (c.first, c.second)}.values())
            return _show_comparisons(found, as_json)
        run = study.run(*runs)
        groups = run.tests(pairs=pairs, correction=correction, arm=arm, **leaving)
        arms = run.arm_tests(correction=correction, **leaving) if arm is None else ()
        warn_unfinished(run)
    _show_tests(run.name, groups, arms, as_json)


def _show_tests(
    run: str, groups: "Sequence[GroupTest]", arms: "Sequence[GroupTest]", as_json: bool
) -> None:
    if as_json:
        both = {"groups": [_as_data(t) for t in groups], "arms": [_as_data(t) for t in arms]}
        return print_json({"run": run} | both)
    if not groups and not arms:
        click.echo(
            f"run {printable(run)} has nothing to test: it takes two groups of a category, or two "
            "arms, with scores (kgbias measure)",
            err=True,
        )
    for title, tests in (("groups", groups), ("arms", arms)):
        _print_tests(title, tests)


def _print_tests(title: str, tests: "Sequence[GroupTest]") -> None:
    last = None
    several = len({t.arm for t in tests}) > 1
    for t in tests:
        if last != (t.arm, t.measure, t.category):
            of_arm = f", arm {printable(t.arm)}" if several else ""
            click.echo(
                f"\n{t.measure} of {title}, {printable(t.category)}{of_arm} "
                f"(family of {t.family} tests, {t.correction})"
            )
            click.echo(
                f"{'first':<24} {'second':<18} {'n':>11} {'difference':>10} {'95% interval':>18} "
                f"{'delta':>6} {'D':>5} {'p MW':>8} {'p KS':>8}"
            )
            last = (t.arm, t.measure, t.category)
        r = t.result
        same = "" if t.first == t.second else printable(t.second)
        click.echo(
            f"{printable(t.first)[:24]:<24} {same[:18]:<18} {f'{r.n[0]}, {r.n[1]}':>11} "
            f"{r.difference.value:>+10.3f} {r.difference.interval('+.3f'):>18} {r.delta:>+6.2f} "
            f"{r.ks:>5.2f} {t.u_adjusted:>8.2g} {t.ks_adjusted:>8.2g}"
        )


def _show_comparisons(found: "Sequence[Comparison]", as_json: bool) -> None:
    if as_json:
        return print_json([_comparison_json(c) for c in found])
    for comparison in found:
        _print_comparison(comparison)


def _print_comparison(c: "Comparison") -> None:
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
        click.echo(
            f"rank of groups by {agreement.measure}: Kendall's tau-b {agreement.tau.value:+.3f} "
            f"({agreement.tau.interval('+.3f')}), n = {agreement.tau.n} groups, "
            f"p = {agreement.p:.2g}"
        )
    click.echo(f"differences are {a} minus {b}")
    _print_tests("runs", c.groups)
    click.echo()


def _comparison_json(c: "Comparison") -> dict[str, Any]:
    def said(triples: Sequence[Any]) -> list[dict[str, Any]]:
        return [{"sentence": t.sentence, "count": t.count} for t in triples]

    return {
        "first": c.first.name,
        "second": c.second.name,
        "shared_groups": c.shared_groups,
        "statements": {
            "first": c.overlap.first,
            "second": c.overlap.second,
            "both": c.overlap.both,
            "jaccard": c.overlap.jaccard,
            "only_first": said(c.overlap.only_first),
            "only_second": said(c.overlap.only_second),
        },
        "rank_agreement": [
            {"measure": a.measure, "tau_b": a.tau.as_dict(), "p": a.p} for a in c.agreement
        ],
        "groups": [_as_data(t) for t in c.groups],
    }


def _as_data(t: "GroupTest") -> dict[str, Any]:
    """A test as data; the difference is of means, first minus second."""
    r = t.result
    return {
        "arm": t.arm,
        "measure": t.measure,
        "category": t.category,
        "first": t.first,
        "second": t.second,
        "n": list(r.n),
        "means": list(r.means),
        "difference": r.difference.as_dict(),
        "mann_whitney": {
            "u": r.u,
            "p": r.u_p,
            "p_adjusted": t.u_adjusted,
            "cliffs_delta": r.delta,
        },
        "kolmogorov_smirnov": {
            "d": r.ks,
            "p": r.ks_p,
            "p_adjusted": t.ks_adjusted,
        },
        "correction": t.correction,
        "family": t.family,
    }
