"""Labels of a run's statements: what people say that a measure should have found. Figures are
corrected by them where they are read (`kgbias.measure.ppi_figures`).

- `labelling`: which statements a rater is shown, the guides, and the sheets.
- `desk`: the page of `kgbias serve --label`.
- `rater_agreement`: how far raters agree.

    from kgbias.methods import labels

    labels.begin_labelling(run, "regard", by="Ana").write_sheet("sheet.csv")
    labels.read_sheet(run, "sheet.csv")
    labels.compare_raters(run)
"""

from typing import TYPE_CHECKING, Unpack

from kgbias.io.rows import Rows
from kgbias.parameters import Names, PathLike, SelectionOptions
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.graph.labels import Label
    from kgbias.measure.ppi_figures import ExpectedFigure
    from kgbias.methods.labels.labelling import Labelling
    from kgbias.methods.labels.rater_agreement import RaterAgreement
    from kgbias.study.run import Run


@public_call
def begin_labelling(
    run: "Run", measure: str = "regard", *, by: str | None = None, masked: bool = False
) -> "Labelling":
    """Begin to label statements by hand: what a person says a measure should have found, by
    which figures are corrected for the scorer's errors. Statements come from a random sample,
    without scores. Labels are rows with their rater, guide and time, and can be taken back.

    Args:
        run: the run.
        measure: one that there is a guide for: regard, toxicity, identity_attack,
            acceptability.
        by: the rater (None: the user's name).
        masked: show "these people" in the place of the group's name.
    """
    from kgbias.methods.labels.labelling import Labelling

    return Labelling(run.stored, measure, by, masked=masked)


@public_call
def read_sheet(run: "Run", path: PathLike, *, by: str | None = None) -> Rows["Label"]:
    """Keep the labels of a sheet that `Labelling.write_sheet` wrote and a rater filled in, all
    or none; returns those that are in effect now.

    Frame columns: as of `list_labels`.

    Args:
        run: the run.
        path: the sheet.
        by: the rater (None: the one named in each row).

    Raises:
        DataError: an invalid row; the message gives its line.
    """
    from kgbias.graph.labels import Label
    from kgbias.methods.labels.labelling import read_label_sheet

    return Rows(read_label_sheet(run.stored, path, by), Label)


@public_call
def list_labels(run: "Run", measure: str | None = None) -> Rows["Label"]:
    """The labels in effect of the run's statements, oldest first: of people, and of models by
    name. A label of "" is a skip.

    Frame columns: triple_id, measure, label, rater, kind, guide, labelled, masked, sample,
    note.

    Args:
        run: the run.
        measure: only of this one.
    """
    from kgbias.graph.labels import Label, labels_in_effect

    said = {id for id, *_ in run.stored.distinct_triples()}
    found = labels_in_effect(run.stored.store.labels(measure))
    return Rows([x for x in found if x.triple_id in said], Label)


@public_call
def expect_figures(
    run: "Run", labels: int, *, measures: Names = (), **selection: Unpack[SelectionOptions]
) -> "Rows[ExpectedFigure]":
    """What figures would be, and how wide their intervals, if the first `labels` statements of
    each measure's random sample were labelled (`kgbias.measure.sampling`). Nothing is stored.

    Args:
        run: the run.
        labels: how many, at least 1; those that exist are among them.
        measures: only these (none: those whose labels can correct figures).
        selection: as for `counted_statements`.

    Frame columns: measure, figure, group, arm, value, low, high, width, labels, by_own (whether
    by labels of the group's own statements, or of all groups), raw, raw_low, raw_high, basis.
    """
    from kgbias.errors import UsageError
    from kgbias.graph.cross_mentions import exclude_cross_mentions
    from kgbias.graph.selection import Selection, select_statements
    from kgbias.measure import ppi_figures
    from kgbias.measure.figures import read_figures
    from kgbias.measures import get_measure
    from kgbias.methods.labels.columns import PLAN_COLUMNS
    from kgbias.study.measuring import resolve_measures

    if labels < 1:
        raise UsageError("`labels` must be at least 1")
    stored, criteria = run.stored, Selection(**selection)
    counted = exclude_cross_mentions(stored, select_statements(stored, criteria))
    measure_names = resolve_measures(stored, counted, measures) or sorted(
        {name for t in counted.triples for name in t.scores}
    )
    raw = {(s.group_id, s.arm, s.measure): s for s in read_figures(stored, criteria)}
    current, rows = stored.metrics(), []
    for name in measure_names:
        if ppi_figures.LabelValues.from_measure(get_measure(name)) is not None:
            rows += ppi_figures.expect_figures(
                stored, counted, criteria, name, labels, raw, current.get(name)
            )
    return Rows(rows, PLAN_COLUMNS)


@public_call
def compare_raters(run: "Run", *, measures: Names = ()) -> "Rows[RaterAgreement]":
    """How far raters agree about the run's statements: Krippendorff's alpha for each measure,
    of people and of models, over all statements that at least two labelled and by group; with
    which labels they confuse, and the disputed statements.

    Args:
        run: the run.
        measures: only of these.

    Frame columns: measure, group ("" for all), kind, raters, level, n, alpha, low, high,
    disputed (how many statements).
    """
    from kgbias.graph.labels import labels_in_effect
    from kgbias.methods.labels import rater_agreement
    from kgbias.methods.labels.columns import RATER_COLUMNS
    from kgbias.parameters import as_names

    labels = labels_in_effect(run.stored.store.labels())
    wanted_measures = set(as_names(measures))
    if wanted_measures:
        labels = [x for x in labels if x.measure in wanted_measures]
    agreements = rater_agreement.compare_raters(labels, run.stored.triples())
    return Rows(agreements, RATER_COLUMNS)
