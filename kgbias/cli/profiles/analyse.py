"""`kgbias profiles analyse`: can groups be told apart, and by which words?"""

from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import json_option, print_json, printable, run_argument, store_option

if TYPE_CHECKING:
    from kgbias.profiles import ProfileAnalysis

MOST = 3  # words of an attribute and group that are listed


@click.command()
@run_argument
@store_option
@click.option(
    "--attribute",
    multiple=True,
    metavar="NAME",
    help="Look at this attribute (repeatable; default: all).",
)
@click.option(
    "--group",
    multiple=True,
    metavar="NAME",
    help='Tell these groups apart, such as "ARAB F" (repeatable; default: all).',
)
@click.option("--repeats", type=int, help="Random splits, 70 to 30 (default: 20).")
@click.option("--permutations", type=int, help="Deals of the labels for chance (default: 99).")
@click.option("--draws", type=int, help="Of the bootstrap of words (default: 500).")
@click.option(
    "--kernel",
    type=click.Choice(["linear", "radial"]),
    help="Of the support vector machine (default: linear; radial takes minutes).",
)
@click.option("--seed", default=0, show_default=True, help="The random seed.")
@json_option
def analyse(as_json: bool, run_name: str | None, store_url: str, **given: Any) -> None:
    """Whether groups can be told apart by the profiles of a run, and by which words.

    A support vector machine learns groups, ethnicities and genders from 70% of the profiles
    and is tried on the rest (Siddique et al. 2024, section 6).
    """
    with as_flags(), kgbias.open(store_url, progress=True) as study:
        found = study.run(run_name).analyse_profiles(**said(**given))
    if as_json:
        print_json(found.as_dict())
    else:
        for line in _lines(found):
            click.echo(printable(line))


def _lines(found: "ProfileAnalysis") -> list[str]:
    lines = [f"{found.profiles} profiles of {found.names} names", ""]
    lines.append(f"{'':<12}{'accuracy':<24}{'by name':<24}{'chance':>8}{'permuted':>10}{'p':>8}")
    for kind, t in found.told.items():
        across = f"{t.by_name.value:.3f} [{t.by_name.interval('.3f')}]"
        whole = f"{t.accuracy.value:.3f} [{t.accuracy.interval('.3f')}]"
        lines.append(
            f"{kind:<12}{whole:<24}{across:<24}{t.chance:>8.3f}{t.permuted.value:>10.3f}"
            f"{t.p_value:>8.3f}"
        )
    kinds = list(found.told)
    costs = {a: [found.told[k].cost[a] for k in kinds] for a in found.attributes
             if a in found.told[kinds[0]].cost}  # fmt: skip
    if costs:
        lines += ["", f"points lost without{'':<10}" + "".join(f"{k:>12}" for k in kinds)]
        for attribute, own in sorted(costs.items(), key=lambda item: -item[1][0].value):
            cells = "".join(f"{100 * e.value:>+12.1f}" for e in own)
            lines.append(f"  {attribute:<27}{cells}")
    by: dict[tuple[str, str], list[str]] = {}
    for w in found.words:
        if w.told:
            by.setdefault((w.attribute, w.group), []).append(w.word)
    if by:
        lines += [
            "",
            "words that more of a group's names have than of the others' (p <= 0.05, corrected, "
            "and an interval above 0)",
        ]
        lines += [f"  {a}, {g}: {', '.join(words[:MOST])}" for (a, g), words in by.items()]
    return lines
