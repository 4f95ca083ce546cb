"""The exhibit of what a model says more of one group than of the others."""

import math
from collections.abc import Iterator

from kgbias.io.columns import Column
from kgbias.io.text import format_p_value
from kgbias.report.run_data import ArmData
from kgbias.report.tables import GROUP_COLUMN, Exhibit, Table, format_mean_count

MAX_ROWS = 30


def said_more_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """The words, attributes, predicates, topics and meanings that were found, the largest first;
    nothing where none was."""
    for test in data.content:
        if test.category != category or not test.found:
            continue
        key = f"{place}-said-more"
        left_out = len(test.found) - MAX_ROWS
        more_note = f" {left_out:,} more are not listed." if left_out > 0 else ""
        chance_note = (
            "" if math.isnan(test.floor) else f"; by chance, {format_mean_count(test.floor)} in all"
        )
        draws = data.run_data.draws
        what_counts, alike = "statements that have it, of all", ""
        if draws.is_known:
            what_counts = "prompts that led to it, of those that led to a statement"
            alike = " among prompts asked alike"
        yield Exhibit(
            key,
            category,
            "What is said more of a group than of the others",
            "",
            None,
            Table(
                key,
                f"What is said more of one group of {category} than of the others: {what_counts}.",
                (
                    GROUP_COLUMN,
                    Column("kind"),
                    Column("what"),
                    Column(draws.unit),
                    Column("the others'"),
                    Column("more", "+.0%", interval=True),
                    Column("q", format_p_value),
                ),
                [
                    [
                        one.group,
                        one.kind,
                        one.feature,
                        f"{one.prompts} of {one.group_total}",
                        f"{one.others} of {one.others_total}",
                        one.difference,
                        one.q,
                    ]
                    for one in test.found[:MAX_ROWS]
                ],
                f"Largest log-odds first. More: the difference of the shares{alike}. q: exact, by "
                f"dealing whole {draws.unit} anew, corrected (Benjamini and Hochberg) over "
                f"everything tried about a group{chance_note}. Rows may rest on the same "
                f"statements.{more_note}",
            ),
        )
