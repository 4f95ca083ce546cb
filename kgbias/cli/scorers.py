"""`kgbias scorers`: the scorers at hand, and how far each can be trusted."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.measure import (
    build_reading_price_output,
    group_by_measure,
    scorer_option,
)
from kgbias.cli.options import (
    encoding_option,
    json_option,
    store_option,
)
from kgbias.cli.show import Output
from kgbias.io.columns import Column
from kgbias.measure.scorer_agreement import MIN_KAPPA_STATEMENTS
from kgbias.stats.estimate import nan_to_none


@click.command(
    cls=Command,
    section="Check",
    short_help="List scorers, and how far each agrees with labels.",
    examples=("kgbias scorers test_suite_cases.csv --dry-run",),
)
@click.argument("sets", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@encoding_option
@store_option
@scorer_option("A scorer to read the labels too")
@click.option("--dry-run", is_flag=True, help="Show what each scorer would read, and stop.")
@json_option
def scorers(
    sets: tuple[Path, ...],
    store_url: str,
    scorers: tuple[tuple[str, str], ...],
    dry_run: bool,
) -> Output:
    """List the scorers at hand, how far each agrees with each set of labels, by group, and whether
    it reacts to a group's name.

    FILE is a set of labelled statements: HateCheck, SeeGULL or Sheng et al.'s regard as published,
    or a table of your own with text and label, and a card. The labels that ship and those in the
    store are always there. Scorers that need a download, a server or a GPU read only if named."""
    specs_by_measure = group_by_measure(scorers)
    with kgbias.open(store_url, progress=True) as study:
        if dry_run:
            return build_reading_price_output(
                study.scorers(*sets, scorers=specs_by_measure, dry_run=True)
            )
        scorer_list = study.scorers(*sets, scorers=specs_by_measure)
    data = {
        "scorers": [_scorer_record(row) for row in scorer_list.rows],
        "sets": [_set_record(label_set) for label_set in scorer_list.sets],
    }
    return Output(data, lambda: _print_scorers(scorer_list))


def _print_scorers(scorer_list: Any) -> None:
    rows, has_learnt = [], False
    for row in scorer_list.rows:
        scorer = row.measure, row.scorer
        if row.why or not row.checked:
            rows.append((*scorer, row.why or "no labels at hand", "", *[None] * 4))
        for check in row.checked:
            has_learnt |= check.learnt
            set_name, agreement = f"{check.set}{'*' * check.learnt}", check.same
            rows.append(
                (
                    *scorer,
                    set_name,
                    check.group,
                    agreement.n,
                    agreement,
                    check.floor,
                    check.kappa,
                )
            )
    show.print_table(
        (
            Column("measure"),
            Column("scorer"),
            Column("labels"),
            Column("group"),
            Column("n", "d"),
            Column("same", ".2f", interval=True),
            Column("floor", ".2f"),
            Column("kappa", ".2f", interval=True),
        ),
        rows,
    )
    show.say(
        "",
        "same: the share of labels that the scorer gives too; floor: that share for whoever always "
        "gives the commonest label; kappa: Cohen's, 0 is chance (with an "
        f"interval from {MIN_KAPPA_STATEMENTS} statements on). Each takes whoever labelled for "
        "right, and is of the labelled statements as they are: a crawl has others.",
    )
    if has_learnt:
        show.say(
            "*: the scorer learnt from these labels, so its figure is too good; its card has "
            "figures on held-out statements."
        )
    show.say(
        "",
        "The effect of a group's name on the scorer, the largest of those tried (its interval does "
        "not allow for that choice):",
    )
    show.print_table(
        ("measure", "scorer", "licence", "largest effect of a name"),
        (
            (r.measure, r.scorer, r.license or "not known here", _describe_name_effect(r))
            for r in scorer_list.rows
        ),
    )
    show.say("", "Who labelled:")
    show.print_table(
        ("labels", "measure", "language", "by", "guide", "when", "licence", "source"),
        (
            (
                label_set.name,
                label_set.measure,
                label_set.language,
                label_set.labelled_by,
                label_set.guide or "not known",
                label_set.labelled or "not known",
                label_set.license or "not stated",
                label_set.source,
            )
            for label_set in scorer_list.sets
        ),
    )
    left_out = {
        (label_set.name, why): n
        for label_set in scorer_list.sets
        for why, n in label_set.left_out.items()
    }
    for (name, why), n in left_out.items():
        show.say(f"rows of {name} that were left out because {why}: {n}")


def _describe_name_effect(row: Any) -> str:
    if row.named is None:
        return "not tried"
    effect, name_effect = row.named.effect, row.named
    if not effect.value:
        return "none"
    line = (
        f'{effect.value:+.3f} ({effect.format_interval("+.3f")}), "{name_effect.name}" in '
        f"{name_effect.kind} statements"
    )
    return f"{line}; counts as none" if name_effect.is_blind else line


def _scorer_record(row: Any) -> dict[str, Any]:
    name_effect = row.named and {
        "name": row.named.name,
        "kind": row.named.kind,
        "blind": row.named.is_blind,
        **row.named.effect.as_dict(),
    }
    agreement = [
        {
            "set": check.set,
            "by": check.by,
            "group": check.group,
            "unjudged": check.unjudged,
            "learnt": check.learnt,
            "same": check.same.as_dict(),
            "kappa": check.kappa.as_dict(),
            "rho": check.rho.as_dict(),
            "floor": nan_to_none(check.floor),
        }
        for check in row.checked
    ]
    return {
        "measure": row.measure,
        "scorer": row.scorer,
        "version": row.version,
        "license": row.license or None,
        "not_read": row.why or None,
        "name_effect": name_effect,
        "agreement": agreement,
    }


def _set_record(label_set: Any) -> dict[str, Any]:
    return {
        "name": label_set.name,
        "measure": label_set.measure,
        "n": len(label_set.statements),
        "by": label_set.labelled_by,
        "kind": label_set.kind,
        "raters": list(label_set.raters),
        "guide": label_set.guide or None,
        "labelled": label_set.labelled or None,
        "license": label_set.license or None,
        "source": label_set.source or None,
        "learnt": list(label_set.learnt),
        "language": label_set.language,
        "left_out": dict(label_set.left_out),
    }
