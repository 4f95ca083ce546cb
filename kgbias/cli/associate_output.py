"""What `kgbias associate` prints."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kgbias.cli.options import printable

if TYPE_CHECKING:
    from kgbias.associate import Associations
    from kgbias.associate.from_graph import RegardAgreement

_TABLE = ("test", "method", "model", "d", "95% interval", "p", "p Holm", "p BH", "n")


def print_groups(agreement: "RegardAgreement | None") -> None:
    """SC-WEAT of every group, where it was asked for."""
    if agreement is None or not agreement.groups:
        return
    width = max(len("group"), *(len(printable(g.group.name)) for g in agreement.groups))
    click.echo(f"\n{'group':<{width}}  {'SC-WEAT d':>9}  {'95% interval':>14}  {'regard':>7}")
    for g in agreement.groups:
        interval = f"{g.effect.low:+z.2f} to {g.effect.high:+z.2f}"
        click.echo(
            f"{printable(g.group.name):<{width}}  {g.effect.value:>+9.3f}  {interval:>14}  "
            + (f"{'':>7}" if math.isnan(g.regard) else f"{g.regard:>+7.0f}")
        )
    if not math.isnan(agreement.correlation):
        click.echo(
            f"rank correlation of the two: {agreement.correlation:+z.2f} over "
            f"{len(agreement.groups)} groups, not tested"
        )
    words = f"{agreement.a.concept} against {agreement.b.concept}"
    click.echo(f"d: {printable(words)}; above 0 is nearer to the first")


def print_left_out(found: "Associations") -> None:
    """What was asked for and not tested, and why."""
    for line in found.left_out:
        click.echo(f"left out: {printable(line)}")


def print_tests(rows: Sequence[dict[str, Any]]) -> None:
    """The table, then what a reader must know of it."""
    if not rows:
        return
    cells = [_TABLE, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = (
            cell.ljust(w) if i < 3 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        click.echo("  ".join(line).rstrip())
    notes = dict.fromkeys(note for row in rows for note in _notes(row))
    tested = sum(not math.isnan(row["p_holm"]) for row in rows)
    if tested > 1:
        notes[f"p Holm, p BH: corrected over the {tested} tests of this call"] = None
    if notes:
        click.echo()
    for note in notes:
        click.echo(printable(note))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    interval = "" if math.isnan(row["low"]) else f"{row['low']:+z.2f} to {row['high']:+z.2f}"
    return (
        row["test"],
        row["method"],
        printable(row["model"]),
        f"{row['effect_size']:+z.4f}",
        interval,
        *(
            "" if math.isnan(p) else f"{p:.3g}"
            for p in (row.get("p_permutation", row["p_value"]), row["p_holm"], row["p_bh"])
        ),
        "+".join(str(row["n"][role]) for role in "xy") + ("*" if row["few_stimuli"] else ""),
    )


def _notes(row: dict[str, Any]) -> list[str]:
    name = f"{row['test']} on {row['model']}"
    settings = row["settings"]
    how = ", ".join(
        f"{key} {settings[key]}"
        for key in ("encoding", "layer", "unit", "words", "pool", "contexts_from")
        if key in settings
    )
    counted = (
        f"{row['p_method']}, {row['partitions']:,} partitions"
        if row["partitions"]
        else f"of the permutation test; the published p, {row['p_method']}, {row['p_value']:.3g}"
    )
    if "score" in settings:  # no effect size, and no p-value
        notes = [f"{row['method']}: {settings['score']}"]
    else:
        notes = [
            f"{row['test']} {row['method']}: p {counted}, {row['tails']}-tailed, "
            f"ddof {settings['ddof']}" + (f"; {how}" if how else "")
        ]
    for role in "xyab":
        if lost := row["missing"][role]:
            notes.append(f"{name}: {role.upper()} lacks {', '.join(lost)}")
    if row["unequal"]:
        notes.append(f"{name}: unequal sets, {row['n']['x']} and {row['n']['y']} targets")
    if other := [f"{w} as {f}" for forms in row["other_forms"].values() for w, f in forms.items()]:
        notes.append(f"{name}: other spellings used: {', '.join(other)}")
    if row["few_stimuli"]:
        notes.append("* a set has fewer than 8 words: it represents its concept poorly")
    return notes
