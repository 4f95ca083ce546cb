"""The columns of what labels are expected to give, and of how far raters agree."""

from dataclasses import replace
from operator import attrgetter

from kgbias.io.columns import Column
from kgbias.study import records

PLAN_COLUMNS = (
    Column("measure"),
    Column("figure"),
    Column("group"),
    Column("arm"),
    replace(records.VALUE_COLUMN, count=""),
    Column("width", ".3g"),
    Column("labels", "d", get=attrgetter("n")),
    Column("by_own"),
    Column("raw", ".4g", interval=True),
    Column("basis"),
)


RATER_COLUMNS = (
    Column("measure"),
    Column("group"),
    Column("kind"),
    Column("raters", get=lambda agreement: ", ".join(agreement.raters)),
    Column("level"),
    Column("n", "d", get=attrgetter("alpha.n")),
    Column("alpha", ".2f", interval=True, ends=("low", "high")),
    Column("disputed", "d", get=lambda agreement: len(agreement.disputed)),
)
