"""`kgbias compare`: groups and arms of one run, or runs with each other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli.compare_output import print_contrasts, show_comparisons, show_forms, show_tests
from kgbias.cli.options import (
    correction_option,
    default,
    json_option,
    print_json,
    selection_options,
    store_option,
    warn_unfinished,
)
from kgbias.errors import UsageError

if TYPE_CHECKING:
    from kgbias.compare import GroupTest


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
