"""What the parts of `kgbias probe` print."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from kgbias.cli.options import print_json, printable

if TYPE_CHECKING:
    from kgbias.compare.sofa import SofaComparison
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


def show_all(
    found: Sequence[Any],
    lines: Callable[[Any], Sequence[str]],
    compared: "SofaComparison | None",
    as_json: bool,
) -> None:
    """One result as ever; several below each other, with the models held against each other."""
    if len(found) == 1:
        show(found[0], lines(found[0]), as_json)
    elif as_json:
        several = {"models": [one.as_dict() for one in found]}
        print_json(several | ({"comparison": compared.as_dict()} if compared else {}))
    else:
        for one in found:
            show(one, [*lines(one), ""], as_json)
        for line in comparison_lines(compared) if compared else ():
            click.echo(printable(line))


def comparison_lines(found: "SofaComparison") -> list[str]:
    """The models by SoFa, the highest score first, and what the paired tests say of all
    categories."""
    width = max(len(m.model) for m in found.models)
    p = found.probe_set
    return [
        f"SoFa on {p.name}: {p.groups} groups, {p.statements} statements, {p.probes} probes",
        f"{'rank':<6}{'95%':<9}{'model':<{width}}  {'SoFa':<24}"
        + "  ".join(f"{c:>12}" for c in found.categories),
        *(
            f"{m.rank:<6}{f'{m.low} to {m.high}':<9}{m.model:<{width}}  "
            f"{shown(m.result.score):<24}"
            + "  ".join(f"{m.score(c).value:>12.3f}" for c in found.categories)
            for m in found.models
        ),
        *(t.verdict for t in found.overall_tests),
    ]


def bias_lines(found: "RunProbes | SetProbes") -> list[str]:
    c, bias = found.model.convention, found.bias
    lines = [f"{found.model.info.name}: {c.kind}, beginning {c.begin}, {c.dtype} {c.tier}".rstrip()]
    lines.append(f"{'SoFa score':<28}{shown(bias.score)}")
    for part in bias.categories:
        lines.append(f"  {part.category:<26}{shown(part.score)}  {len(part.statements)} statements")
        first = sorted(part.likeliest.items(), key=lambda item: -item[1].value)[:MOST]
        lines += [
            f"    {group:<24}{shown(share)} of them with the lowest PPL* after its name"
            for group, share in first
        ]
    return lines


def apx_lines(found: "ApxFlags") -> list[str]:
    from kgbias.probe.apx import by_chance, can_flag

    table = found.table
    by_group: dict[str, list[str]] = {}
    for f in found.flags:
        by_group.setdefault(f.group, []).append(f.descriptor)
    lines = [*(f"{group}: {', '.join(names)}" for group, names in by_group.items()), ""]
    if valid := found.validation:
        none = valid.by_chance
        lines += [
            f"{valid.gain.n} descriptors that people tie to {', '.join(valid.labels)}",
            *(
                f"  found by {name}: accuracy {shown(labelled.accuracy)}, MRR {shown(labelled.mrr)}"
                for name, labelled in (("perplexity", valid.perplexity), ("APX", valid.apx))
            ),
            f"  by chance {none['accuracy']:.3f} and {none['mrr']:.3f}; the MRR of APX less that "
            f"of perplexity is {shown(valid.gain)}",
        ]
    lines.append(
        f"{len(found.flags)} flags on {found.flagged} of {found.tested} descriptors "
        f"({shown(found.share)}), {len(table.groups)} groups, {len(table.values)} templates, "
        f"one-tailed {found.level:.0%} each, not corrected for how many were looked at"
    )
    if can_flag(len(table.groups)):
        chance = by_chance(len(table.groups), found.level)
        lines.append(f"by chance alone {chance:.3f}, were scores normal and the groups alike")
    else:
        lines.append("so few groups cannot be told apart at this level: no flag is possible")
    return lines


def shown(e: "Estimate") -> str:
    interval = f" [{e.low:.3f}, {e.high:.3f}]" if not math.isnan(e.low) else ""
    return f"{e.value:.3f}{interval}"
