"""Profiles beside another view of the same groups, as a picture and a table (Table 7 of Siddique et
al. 2024)."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kgbias.io.files import whole_folder
from kgbias.profiles import Agreement
from kgbias.profiles.agreement import Agreed
from kgbias.report.figures import draw_rows, short
from kgbias.report.save import save_exhibit
from kgbias.report.style import INK, NEUTRAL, figure_style
from kgbias.report.tables import Exhibit, Table

DRAWN = 40  # words of a picture; the table has all
_LISTED = 3  # groups of a word, in the table


def write_agreement(found: Sequence[Agreement], folder: Path, run: str) -> list[Path]:
    """Write each agreement to `folder`: its figure as SVG, PDF and PNG, and its LaTeX table.
    Returns the files, sorted."""
    with whole_folder(folder) as partial_folder:
        for agreement, key in zip(found, _keys(found), strict=True):
            save_exhibit(exhibit(agreement, key), partial_folder, run)
        names = sorted(file.name for file in partial_folder.iterdir())
    return [folder / name for name in names]


def exhibit(found: Agreement, key: str) -> Exhibit:
    """An agreement as figure and table."""
    rows = [
        [
            row.attribute.replace("_", " "), row.word, ", ".join(row.written[:_LISTED]),
            ", ".join(row.other[:_LISTED]), f"{row.rank:g}",
        ]
        for row in found.rows
    ]  # fmt: skip
    source = Path(found.source).stem
    drawn = found.rows[:DRAWN]
    more = "" if len(drawn) == len(found.rows) else f"Drawn: the first {len(drawn)} words. "
    return Exhibit(
        key, "", f"What profiles say beside {source}", "Table 7",
        partial(_ranks, drawn, found),
        Table(
            key,
            "Words that are more of one group in profiles, and the groups that come first for them "
            f"in {source}.",
            ("Attribute", "Word", "Profiles", source, "rank"), rows,
            f"{more}Rank: of the first group of the profiles among the {found.groups} of {source}; "
            "the dashed line is chance. No rank is tested by itself, only their mean. "
            f"Mean reciprocal rank {found.mrr.value:.3f} [{found.mrr.interval('.3f')}], by chance "
            f"{found.expected:.3f}, p = {found.p_value:.3f}.",
        ),
    )  # fmt: skip


def _ranks(rows: Sequence[Agreed], found: Agreement) -> Any:
    """At which rank the other view has the group that each word is most typical of; the line is the
    rank that chance would give. All have one colour: no single rank is tested."""
    with figure_style():
        ordered = list(reversed(rows))
        figure, axes = draw_rows(len(ordered))
        ranks = [row.rank for row in ordered]
        axes.hlines(range(len(ordered)), 1, ranks, color=NEUTRAL, linewidth=0.8)
        axes.scatter(ranks, range(len(ordered)), color=INK, s=14, zorder=3)
        axes.axvline(1 / found.expected, color=INK, linewidth=0.6, linestyle="--")
        axes.set_yticks(
            range(len(ordered)), [f"{short(r.word)} · {short(r.written[0], 18)}" for r in ordered]
        )
        axes.set_ylim(-0.6, max(len(ordered), 2) - 0.4)
        axes.set_xlim(0.5, found.groups + 0.5)
        axes.set_xticks([1, *range(5, found.groups + 1, 5)])
        axes.set_xlabel(f"rank among {found.groups} groups")
        return figure


def _keys(found: Sequence[Agreement]) -> list[str]:
    """A safe name of files for each; no two are the same."""
    keys: list[str] = []
    for agreement in found:
        stem = Path(agreement.source).stem.lower()
        name = re.sub(r"[^a-z0-9]+", "-", stem).strip("-") or "view"
        key = f"agreement-{name}"
        keys.append(key if key not in keys else f"{key}-{len(keys) + 1}")
    return keys
