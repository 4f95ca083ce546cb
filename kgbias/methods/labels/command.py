"""`kgbias label`: label a run's statements by hand."""

from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    encoding_option,
    json_option,
    library_default,
    run_name_argument,
    store_option,
)
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.io.columns import Column
from kgbias.measures import figures_by_name
from kgbias.methods import labels
from kgbias.methods.labels.labelling import LabelGuide, Labelling, LabellingProgress

if TYPE_CHECKING:
    from kgbias.measure.ppi_figures import ExpectedFigure


@click.command(
    cls=Command, examples=("kgbias label smollm2 --measure regard --by Ana -o sheet.csv",)
)
@run_name_argument
@click.argument("sheet", required=False, type=click.Path(path_type=Path))
@encoding_option
@store_option
@click.option(
    "--measure",
    default=library_default(labels.begin_labelling, "measure"),
    show_default=True,
    help="The measure to label by.",
)
@click.option("--by", metavar="NAME", help="Who labels (default: your user name).")
@click.option("--masked", is_flag=True, help="Hide the name of the group.")
@click.option(
    "-o", "path", type=click.Path(path_type=Path), help="Write the next statements to this sheet."
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="How many statements the sheet has.",
)
@click.option("--plan", type=click.IntRange(1), metavar="N", help="Show what N labels would give.")
@json_option
def label(
    run_name: str | None,
    sheet: Path | None,
    store_url: str,
    measure: str,
    by: str | None,
    masked: bool,
    path: Path | None,
    most: int,
    plan: int | None,
) -> Output:
    """Label statements by hand, so that figures can be corrected for what a scorer gets wrong.

    With -o, write the next statements of a random sample to a CSV file. With a filled-in file as
    SHEET, read its labels, all or none. With neither, print the guide and how far you are. To label
    in a browser: kgbias serve --label."""
    if sum(given is not None for given in (sheet, path, plan)) > 1:
        raise UsageError("choose one of a filled-in sheet, -o and --plan")
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if sheet is not None:
            labels_read = labels.read_sheet(run, sheet, by=by)
            count = len(labels_read)
            line = (
                f"run {run.name}: {count} labels of {sheet} are in effect; "
                f"kgbias measure {run.name} brings its figures up to date"
            )
            data = {"run": run.name, "labels": labels_read}
            return Output(data, lambda: show.say(line))
        if plan is not None:
            return _show_plan(run, measure, plan)
        labelling = labels.begin_labelling(run, measure, by=by, masked=masked)
        if path is None:
            progress = labelling.read_progress()
            return Output(
                _labelling_record(run, labelling),
                lambda: _print_guide(labelling.guide, progress, labelling.rater),
            )
        count = labelling.write_sheet(path, most)
        label_keys = ", ".join(f"{name} ({key})" for key, name in labelling.labels.items())
        line = (
            f"{count} statements to {path}: fill in label with {label_keys} or skip, then "
            f"kgbias label {run.name} {path}; kgbias label {run.name} --measure {measure} prints "
            "the guide"
        )
        return Output(
            {"run": run.name, "sheet": str(path), "statements": count},
            lambda: show.say(line, err=True),
        )


def _labelling_record(run: kgbias.Run, labelling: Labelling) -> dict[str, Any]:
    """How far a labelling is, with the guide, and how far raters agree, as data."""
    agreement = labels.compare_raters(run, measures=labelling.measure)
    return {
        "run": run.name,
        "measure": labelling.measure,
        "by": labelling.rater,
        "masked": labelling.is_masked,
        "guide": asdict(labelling.guide),
        "progress": asdict(labelling.read_progress()),
        "agreement": agreement.records(),
    }


def _show_plan(run: kgbias.Run, measure: str, count: int) -> Output:
    plan_rows = labels.expect_figures(run, count, measures=measure)
    data = {"run": run.name, "measure": measure, "labels": count, "plan": plan_rows}
    return Output(data, lambda: _print_plan(plan_rows))


def _print_plan(plan_rows: "kgbias.Rows[ExpectedFigure]") -> None:
    titles = figures_by_name({plan_row.figure for plan_row in plan_rows})
    columns = (
        Column("group"),
        Column("figure", get=lambda plan_row: titles[plan_row.figure].title),
        Column("now", "+.3f", get=attrgetter("raw")),
        Column("with labels", "+.3f", get=attrgetter("value")),
        Column("width", ".3f"),
    )
    show.print_rows(kgbias.Rows(plan_rows, columns))
    for line in dict.fromkeys(plan_row.basis for plan_row in plan_rows):
        show.say(line)


def _print_guide(guide: LabelGuide, progress: LabellingProgress, rater: str) -> None:
    show.say(guide.question, "")
    for key, label_entry in enumerate(guide.labels, start=1):
        show.say(
            f"{key} {label_entry.name}: {label_entry.meaning}",
            f"    {' '.join(label_entry.examples)}",
        )
    show.say("", *(f"- {rule}" for rule in guide.rules), "")
    show.say(
        f"guide {guide.id}; {rater}: {progress.labelled} labelled, {progress.skipped} skipped; all "
        f"{progress.raters} raters: {progress.by_all} of {progress.statements} statements"
    )
