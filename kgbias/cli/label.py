"""`kgbias label`: label a run's statements by hand."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

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
from kgbias.errors import UsageError
from kgbias.measure.labelling import LabelGuide, Labelling, LabellingProgress
from kgbias.measures import figures_by_name
from kgbias.stats.estimate import nan_to_none


@click.command(
    cls=Command, examples=("kgbias label smollm2 --measure regard --by Ana -o sheet.csv",)
)
@run_name_argument
@click.argument("sheet", required=False, type=click.Path(path_type=Path))
@encoding_option
@store_option
@click.option(
    "--measure",
    default=library_default(kgbias.Run.label, "measure"),
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
    as_json: bool,
) -> None:
    """Label statements by hand, so that figures can be corrected for what a scorer gets wrong.

    With -o, write the next statements of a random sample to a CSV file. With a filled-in file as
    SHEET, read its labels, all or none. With neither, print the guide and how far you are. To label
    in a browser: kgbias serve --label."""
    if sum(given is not None for given in (sheet, path, plan)) > 1:
        raise UsageError("choose one of a filled-in sheet, -o and --plan")
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if sheet is not None:
            labels_read = run.read_labels(sheet, by=by)
            count = len(labels_read)
            if as_json:
                return show.print_json(
                    {"run": run.name, "labels": [asdict(x) for x in labels_read]}
                )
            show.say(
                f"run {run.name}: {count} labels of {sheet} are in effect; "
                f"kgbias measure {run.name} brings its figures up to date"
            )
            return
        if plan is not None:
            return _print_plan(run, measure, plan, as_json)
        labelling = run.label(measure, by=by, masked=masked)
        if path is None:
            if as_json:
                return show.print_json(_labelling_record(run, labelling))
            return _print_guide(labelling.guide, labelling.read_progress(), labelling.rater)
        count = labelling.write_sheet(path, most)
        if as_json:
            return show.print_json({"run": run.name, "sheet": str(path), "statements": count})
        label_keys = ", ".join(f"{name} ({key})" for key, name in labelling.labels.items())
        show.say(
            f"{count} statements to {path}: fill in label with {label_keys} or skip, then "
            f"kgbias label {run.name} {path}; kgbias label {run.name} --measure {measure} prints "
            "the guide",
            err=True,
        )


def _labelling_record(run: kgbias.Run, labelling: Labelling) -> dict[str, Any]:
    """How far a labelling is, with the guide, and how far raters agree, as data."""
    agreement = run.rater_agreement(measures=labelling.measure)
    return {
        "run": run.name,
        "measure": labelling.measure,
        "by": labelling.rater,
        "masked": labelling.is_masked,
        "guide": asdict(labelling.guide),
        "progress": asdict(labelling.read_progress()),
        "agreement": [nan_to_none(row) for row in agreement.records()],
    }


def _print_plan(run: kgbias.Run, measure: str, labels: int, as_json: bool) -> None:
    plan_rows = run.label_plan(labels, measures=measure)
    if as_json:
        rows = [nan_to_none(row) for row in plan_rows.records()]
        return show.print_json(
            {"run": run.name, "measure": measure, "labels": labels, "plan": rows}
        )
    titles = figures_by_name({plan_row.figure for plan_row in plan_rows})
    show.print_table(
        ("group", "figure", ">now", ">with labels", ">width"),
        [
            (
                plan_row.group,
                titles[plan_row.figure].title,
                f"{plan_row.raw.value:+.3f}",
                f"{plan_row.value:+.3f}",
                f"{plan_row.width:.3f}",
            )
            for plan_row in plan_rows
        ],
    )
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
