"""What the parts of `kgbias probe` print."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kgbias.cli.options import print_json, printable

if TYPE_CHECKING:
    from kgbias.probe import ApxFlags, RunProbes, SetProbes
    from kgbias.statistics import Estimate

MOST = 10  # groups of a category that are listed


def show(found: Any, lines: Sequence[str], as_json: bool) -> None:
    """A result as JSON, or as these lines."""
    if as_json:
        print_json(found.as_dict())
    else:
        for line in lines:
            click.echo(printable(line))


def bias_lines(found: "RunProbes | SetProbes") -> list[str]:
    c, bias = found.model.convention, found.bias
    lines = [f"{found.model.info.name}: {c.kind}, beginning {c.begin}, {c.dtype} {c.tier}".rstrip()]
    lines.append(f"{'SoFa score':<28}{shown(bias.score)}")
    for part in bias.categories:
        lines.append(f"  {part.category:<26}{shown(part.score)}  {len(part.statements)} statements")
        first = sorted(part.likeliest.items(), key=lambda item: -item[1].value)[:MOST]
        lines += [f"    {group:<24}{shown(share)} likeliest" for group, share in first]
    return lines


def apx_lines(found: "ApxFlags") -> list[str]:
    from kgbias.probe.apx import can_flag

    table = found.table
    by_group: dict[str, list[str]] = {}
    for f in found.flags:
        by_group.setdefault(f.group, []).append(f.descriptor)
    lines = [*(f"{group}: {', '.join(names)}" for group, names in by_group.items()), ""]
    if valid := found.validation:
        chance = valid.by_chance
        lines += [
            f"{valid.gain.n} descriptors that people tie to {', '.join(valid.labels)}",
            *(
                f"  found by {name}: accuracy {shown(labelled.accuracy)}, MRR {shown(labelled.mrr)}"
                for name, labelled in (("perplexity", valid.perplexity), ("APX", valid.apx))
            ),
            f"  by chance {chance['accuracy']:.3f} and {chance['mrr']:.3f}; APX adds "
            f"{shown(valid.gain)} to the MRR",
        ]
    lines.append(
        f"{len(found.flags)} flags on {found.flagged} of {found.tested} descriptors, "
        f"{len(table.groups)} groups, {len(table.values)} templates, "
        f"one-tailed {found.level:.0%}"
    )
    if not can_flag(len(table.groups)):
        lines.append("so few groups cannot be told apart at this level: no flag is possible")
    return lines


def shown(e: "Estimate") -> str:
    interval = f" [{e.low:.3f}, {e.high:.3f}]" if not math.isnan(e.low) else ""
    return f"{e.value:.3f}{interval}"
