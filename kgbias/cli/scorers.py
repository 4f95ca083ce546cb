"""`kgbias scorers`: the scorers at hand, and how far each can be trusted."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.measure import by_measure, print_price, scorer_option
from kgbias.cli.options import (
    encoding_option,
    json_option,
    store_option,
)
from kgbias.stats.estimate import nan_to_none


@click.command(cls=Command, examples=("kgbias scorers test_suite_cases.csv --dry-run",))
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
    as_json: bool,
) -> None:
    """List the scorers at hand, how far each agrees with each set of labels, by group, and whether
    it reacts to a group's name.

    FILE is a set of labelled statements: HateCheck, SeeGULL or Sheng et al.'s regard as published,
    or a table of your own with text and label, and a card. The labels that ship and those in the
    store are always there. Scorers that need a download, a server or a GPU read only if named."""
    more = by_measure(scorers)
    with kgbias.open(store_url, progress=True) as study:
        if dry_run:
            return print_price(study.price_scorers(*sets, scorers=more), as_json)
        found = study.scorers(*sets, scorers=more)
    if as_json:
        return show.data(
            {
                "scorers": [_as_data(row) for row in found.rows],
                "sets": [_of_set(one) for one in found.sets],
            }
        )
    _print(found)


def _print(found: Any) -> None:
    rows, learnt = [], False
    for row in found.rows:
        scorer = row.measure, row.scorer
        if row.why or not row.checked:
            rows.append((*scorer, row.why or "no labels at hand", *[""] * 7))
        for each in row.checked:
            learnt |= each.learnt
            set, e = f"{each.set}{'*' * each.learnt}", each.same
            rows.append(
                (*scorer, set, each.group, e.n, show.figure(e.value, ".2f"), e.interval(".2f"),
                 show.figure(each.floor, ".2f"), show.figure(each.kappa.value, ".2f"),
                 each.kappa.interval(".2f"))
            )  # fmt: skip
    show.table(
        ("measure", "scorer", "labels", "group", ">n", ">same", ">95% interval", ">floor",
         ">kappa", ">95% interval"),
        rows,
    )  # fmt: skip
    show.say(
        "",
        "same: the share of labels that the scorer gives too; floor: that share for whoever always "
        "gives the commonest label; kappa: Cohen's, 0 is chance. Each takes whoever labelled for "
        "right, and is of the labelled statements as they are: a crawl has others.",
    )
    if learnt:
        show.say(
            "*: the scorer learnt from these labels, so its figure is too good; its card has "
            "figures on held-out statements."
        )
    show.say(
        "",
        "The effect of a group's name on the scorer, the largest of those tried (its interval does "
        "not allow for that choice):",
    )
    show.table(
        ("measure", "scorer", "licence", "largest effect of a name"),
        ((r.measure, r.scorer, r.license or "not known here", _named(r)) for r in found.rows),
    )
    show.say("", "Who labelled:")
    show.table(
        ("labels", "measure", "language", "by", "guide", "when", "licence", "source"),
        (
            (s.name, s.measure, s.language, s.labelled_by, s.guide or "not known", s.labelled or "not known",
             s.license or "not stated", s.source)
            for s in found.sets
        ),
    )  # fmt: skip
    left_out = {(s.name, why): n for s in found.sets for why, n in s.left_out.items()}
    for (name, why), n in left_out.items():
        show.say(f"rows of {name} that were left out because {why}: {n}")


def _named(row: Any) -> str:
    if row.named is None:
        return "not tried"
    e, said = row.named.effect, row.named
    if not e.value:
        return "none"
    line = f'{e.value:+.3f} ({e.interval("+.3f")}), "{said.name}" in {said.kind} statements'
    return f"{line}; counts as none" if said.is_blind else line


def _as_data(row: Any) -> dict[str, Any]:
    named = row.named and {
        "name": row.named.name, "kind": row.named.kind, "blind": row.named.is_blind,
        **row.named.effect.as_dict(),
    }  # fmt: skip
    agreement = [
        {
            "set": each.set, "by": each.by, "group": each.group, "unjudged": each.unjudged,
            "learnt": each.learnt, "same": each.same.as_dict(), "kappa": each.kappa.as_dict(),
            "rho": each.rho.as_dict(), "floor": nan_to_none(each.floor),
        }
        for each in row.checked
    ]  # fmt: skip
    return {
        "measure": row.measure, "scorer": row.scorer, "version": row.version,
        "license": row.license or None, "not_read": row.why or None, "name_effect": named,
        "agreement": agreement,
    }  # fmt: skip


def _of_set(one: Any) -> dict[str, Any]:
    return {
        "name": one.name, "measure": one.measure, "n": len(one.statements), "by": one.labelled_by,
        "kind": one.kind, "raters": list(one.raters), "guide": one.guide or None,
        "labelled": one.labelled or None, "license": one.license or None,
        "source": one.source or None, "learnt": list(one.learnt), "language": one.language,
        "left_out": dict(one.left_out),
    }  # fmt: skip
