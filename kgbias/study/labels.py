"""The labels of a run's statements: what raters say that a measure should have found."""

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Unpack

from kgbias.errors import UsageError
from kgbias.graph.labels import Label, labels_in_effect
from kgbias.graph.selection import Selection, select_statements
from kgbias.io.columns import Column
from kgbias.io.rows import Rows
from kgbias.parameters import Names, PathLike, SelectionOptions, as_names
from kgbias.study import records
from kgbias.study.calls import PublicCalls
from kgbias.study.context import RunPart
from kgbias.study.measuring import check_measures

if TYPE_CHECKING:
    from kgbias.measure.labelling import Labelling
    from kgbias.measure.ppi_figures import ExpectedFigure
    from kgbias.measure.rater_agreement import RaterAgreement

_PLAN_COLUMNS = (
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


_RATER_COLUMNS = (
    Column("measure"),
    Column("group"),
    Column("kind"),
    Column("raters", get=lambda agreement: ", ".join(agreement.raters)),
    Column("level"),
    Column("n", "d", get=attrgetter("alpha.n")),
    Column("alpha", ".2f", interval=True, ends=("low", "high")),
    Column("disputed", "d", get=lambda agreement: len(agreement.disputed)),
)


class RunLabels(PublicCalls):
    """The labels of a run's statements; `run.labels`."""

    def __init__(self, run: RunPart) -> None:
        self._run = run

    def __repr__(self) -> str:
        return f"<Labels of run {self._run.name!r}: begin, in_effect, plan, raters, read>"

    def begin(
        self, measure: str = "regard", *, by: str | None = None, masked: bool = False
    ) -> "Labelling":
        """Begin to label statements by hand: what a person says a measure should have found, by
        which figures are corrected for the scorer's errors. Statements come from a random sample,
        without scores. Labels are rows with their rater, guide and time, and can be taken back.

        Args:
            measure: one that there is a guide for: regard, toxicity, identity_attack,
                acceptability.
            by: the rater (None: the user's name).
            masked: show "these people" in the place of the group's name.
        """
        from kgbias.measure.labelling import Labelling

        return Labelling(self._run.stored, measure, by, masked=masked)

    def read(self, path: PathLike, *, by: str | None = None) -> Rows[Label]:
        """Keep the labels of a sheet that `Labelling.write_sheet` wrote and a rater filled in, all
        or none; returns those that are in effect now.

        Frame columns: as of `in_effect`.

        Args:
            path: the sheet.
            by: the rater (None: the one named in each row).

        Raises:
            DataError: an invalid row; the message gives its line.
        """
        from kgbias.measure.labelling import read_label_sheet

        return records.label_rows(read_label_sheet(self._run.stored, path, by))

    def in_effect(self, measure: str | None = None) -> Rows[Label]:
        """The labels in effect of the run's statements, oldest first: of people, and of models by
        name. A label of "" is a skip.

        Frame columns: triple_id, measure, label, rater, kind, guide, labelled, masked, sample,
        note.

        Args:
            measure: only of this one.
        """
        said = {id for id, *_ in self._run.stored.distinct_triples()}
        found = labels_in_effect(self._run.stored.store.labels(measure))
        return records.label_rows([x for x in found if x.triple_id in said])

    def plan(
        self, labels: int, *, measures: Names = (), **selection: Unpack[SelectionOptions]
    ) -> Rows["ExpectedFigure"]:
        """What figures would be, and how wide their intervals, if the first `labels` statements of
        each measure's random sample were labelled (`kgbias.measure.sampling`). Nothing is stored.

        Args:
            labels: how many, at least 1; those that exist are among them.
            measures: only these (none: those whose labels can correct figures).
            selection: as for `counted_statements`.

        Frame columns: measure, figure, group, arm, value, low, high, width, labels, by_own (whether
        by labels of the group's own statements, or of all groups), raw, raw_low, raw_high, basis.
        """
        from kgbias.graph.cross_mentions import exclude_cross_mentions
        from kgbias.measure.figures import read_figures
        from kgbias.measure.ppi_figures import LabelValues, expect_figures
        from kgbias.measures import get_measure

        if labels < 1:
            raise UsageError("`labels` must be at least 1")
        run, criteria = self._run.stored, Selection(**selection)
        counted = exclude_cross_mentions(run, select_statements(run, criteria))
        measure_names = check_measures(run, counted, measures) or sorted(
            {name for t in counted.triples for name in t.scores}
        )
        raw = {(s.group_id, s.arm, s.measure): s for s in read_figures(run, criteria)}
        current, rows = run.metrics(), []
        for name in measure_names:
            if LabelValues.from_measure(get_measure(name)) is not None:
                rows += expect_figures(run, counted, criteria, name, labels, raw, current.get(name))
        return Rows(rows, _PLAN_COLUMNS)

    def raters(self, *, measures: Names = ()) -> Rows["RaterAgreement"]:
        """How far raters agree about the run's statements: Krippendorff's alpha for each measure,
        of people and of models, over all statements that at least two labelled and by group; with
        which labels they confuse, and the disputed statements.

        Frame columns: measure, group ("" for all), kind, raters, level, n, alpha, low, high,
        disputed (how many statements).
        """
        from kgbias.graph.labels import labels_in_effect
        from kgbias.measure.rater_agreement import compare_raters

        labels = labels_in_effect(self._run.stored.store.labels())
        if wanted_measures := set(as_names(measures)):
            labels = [x for x in labels if x.measure in wanted_measures]
        agreements = compare_raters(labels, self._run.stored.triples())
        return Rows(agreements, _RATER_COLUMNS)
