"""The exhibit of refusals: about whom a model declines to answer."""

from collections.abc import Iterator
from functools import partial

from kgbias.io.columns import Column
from kgbias.io.text import format_p_value
from kgbias.report.figures import draw_share_bars
from kgbias.report.run_data import RunData
from kgbias.report.tables import GROUP_COLUMN, Exhibit, Table


def refusal_exhibits(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The share of prompts about each group that were refused; none where hardly any was."""
    for refusals in data.refusals:
        if refusals.category != category or not refusals.is_notable:
            continue
        key = f"{place}-refusals"
        shares = [(group.group, group.share) for group in refusals.groups]
        yield Exhibit(
            key,
            category,
            f"About whom {data.run.model.title} declines to answer",
            "",
            partial(draw_share_bars, shares, "prompts refused", chance=refusals.share.value),
            Table(
                key,
                f"Refusals of prompts about {category}: the share refused at the first attempt, "
                "and the same less that of the other groups' prompts, at one mix of prompts.",
                (
                    GROUP_COLUMN,
                    Column("prompts", ".0f"),
                    Column("refused", ".1%", interval=True, missing="-"),
                    Column("less the others'", "+.1%", interval=True, missing="-"),
                    Column("p corrected", format_p_value, missing="-"),
                ),
                [[g.group, g.share.n, g.share, g.difference, g.q] for g in refusals.groups],
                f"Of all prompts, {100 * refusals.share.value:.0f}% were refused (dashed). "
                "Intervals are over prompts. p: of that difference, by dealing whole prompts anew "
                "among the groups, corrected over the groups by the same deals.",
            ),
        )
