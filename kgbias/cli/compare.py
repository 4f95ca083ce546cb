"""`kgbias compare`: groups and arms of one run, or runs with each other."""

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from kgbias.cli.options import json_option, print_json, printable, store_option
from kgbias.graph.store import Store, open_store
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Run

if TYPE_CHECKING:
    from kgbias.compare import Comparison, GroupTest


@click.command()
@click.argument("runs", nargs=-1, metavar="RUN...")
@store_option
@click.option(
    "--pairs", is_flag=True, help="One run: every pair of groups, not each with the rest."
)
@click.option(
    "--correction",
    type=click.Choice(["holm", "bh"]),
    default="holm",
    show_default=True,
    help="Of p-values over a family: Holm, or Benjamini-Hochberg.",
)
@click.option("--examples", default=5, show_default=True, help="Statements that one run alone has.")
@json_option
def compare(
    runs: tuple[str, ...],
    store_url: str,
    pairs: bool,
    correction: str,
    examples: int,
    as_json: bool,
) -> None:
    """Test the groups and augmentation arms of one run (the newest where none is named), or compare
    runs: what one says and the other does not, how their groups differ, how alike they rank them.

    Tests are two-sample Kolmogorov-Smirnov and Mann-Whitney, two-sided, p-values corrected over
    each family (one measure in one category). delta is Cliff's: above 0, the first is higher.
    """
    with closing(open_store(store_url, create=False)) as store:
        found = [store.find_run(name) for name in runs] or [store.find_run()]
        if len(found) == 1:
            _one(store, found[0], pairs, correction, as_json)
        else:
            from kgbias.compare import compare_runs

            comparisons = compare_runs(
                [StoredRun(store, run) for run in found], correction=correction, examples=examples
            )
            if as_json:
                print_json([_comparison_json(c) for c in comparisons])
            else:
                for comparison in comparisons:
                    _print_comparison(comparison)


def _one(store: Store, run: Run, pairs: bool, correction: str, as_json: bool) -> None:
    from kgbias.compare import arm_tests, group_tests

    triples = store.triples(run.id)
    groups = group_tests(run, triples, against="pairs" if pairs else "rest", correction=correction)
    category = {g.id: g.category for g in run.groups}
    arms = arm_tests(store.generations(run.id), triples, correction=correction, categories=category)
    if as_json:
        print_json(
            {
                "run": run.name,
                "groups": [as_data(t) for t in groups],
                "arms": [as_data(t) for t in arms],
            }
        )
        return
    if not groups and not arms:
        click.echo(
            f"run {printable(run.name)} has nothing to test: it takes two groups of a category, or "
            "two arms, with scores (kgbias measure)",
            err=True,
        )
    for title, tests in (("groups", groups), ("arms", arms)):
        _print_tests(title, tests)


def _print_tests(title: str, tests: Sequence["GroupTest"]) -> None:
    last = None
    for t in tests:
        if last != (t.measure, t.category):
            click.echo(
                f"\n{t.measure} of {title}, {printable(t.category)} "
                f"(family of {t.family} tests, {t.correction})"
            )
            click.echo(
                f"{'first':<24} {'second':<18} {'n':>11} {'difference':>10} {'95% interval':>18} "
                f"{'delta':>6} {'D':>5} {'p MW':>8} {'p KS':>8}"
            )
            last = (t.measure, t.category)
        r = t.result
        same = "" if t.first == t.second else printable(t.second)
        click.echo(
            f"{printable(t.first)[:24]:<24} {same[:18]:<18} {f'{r.n[0]}, {r.n[1]}':>11} "
            f"{r.difference.value:>+10.3f} {interval(r.difference):>18} {r.delta:>+6.2f} "
            f"{r.ks:>5.2f} {t.u_adjusted:>8.2g} {t.ks_adjusted:>8.2g}"
        )


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
            f"({interval(agreement.tau)}), n = {agreement.tau.n} groups, p = {agreement.p:.2g}"
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
            "jaccard": number(c.overlap.jaccard),
            "only_first": said(c.overlap.only_first),
            "only_second": said(c.overlap.only_second),
        },
        "rank_agreement": [
            {"measure": a.measure, "tau_b": _estimate(a.tau), "p": number(a.p)} for a in c.agreement
        ],
        "groups": [as_data(t) for t in c.groups],
    }


def as_data(t: "GroupTest") -> dict[str, Any]:
    """A test as data; the difference is of means, first minus second."""
    r = t.result
    return {
        "measure": t.measure,
        "category": t.category,
        "first": t.first,
        "second": t.second,
        "n": list(r.n),
        "means": [number(m) for m in r.means],
        "difference": _estimate(r.difference),
        "mann_whitney": {
            "u": number(r.u),
            "p": number(r.u_p),
            "p_adjusted": number(t.u_adjusted),
            "cliffs_delta": number(r.delta),
        },
        "kolmogorov_smirnov": {
            "d": number(r.ks),
            "p": number(r.ks_p),
            "p_adjusted": number(t.ks_adjusted),
        },
        "correction": t.correction,
        "family": t.family,
    }


def interval(e: Any, form: str = "+.3f") -> str:
    return "-" if e.low != e.low else f"{e.low:{form}} to {e.high:{form}}"


def _estimate(e: Any) -> dict[str, Any]:
    return {"value": number(e.value), "low": number(e.low), "high": number(e.high), "n": e.n}


def number(x: float) -> float | None:
    """A number as JSON has it: NaN is null."""
    return None if x != x else x
