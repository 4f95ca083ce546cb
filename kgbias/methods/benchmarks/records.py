"""A board as tables, and as records for Every Eval Ever and the Hugging Face hub."""

import csv
import io
import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgbias.graph.types import CONTENT_WARNING
from kgbias.io.files import write_into_folder
from kgbias.io.text import escape_formula
from kgbias.methods.benchmarks.board import BenchmarkOutcome, Board
from kgbias.methods.benchmarks.page import benchmark_tables, plain_records
from kgbias.publish.evaluations import build_evaluation, uncertainty_record
from kgbias.report.tables import table_latex

BOARD_TITLE = "kgbias benchmark"


def write_tables(board: Board, folder: Path) -> list[Path]:
    """Write every table as CSV and LaTeX; for each model a record for Every Eval Ever
    (results-N.json) and one for the Hugging Face hub (eval_results-N.yaml, to be put in the folder
    .eval_results of the model's repository); and index.json, which lists them. Returns the files,
    sorted."""
    now = datetime.now(UTC)
    with write_into_folder(folder) as partial:
        for name, rows in plain_records(board).items():
            if rows:
                (partial / f"{name}.csv").write_text(
                    _format_csv(rows), encoding="utf-8", newline=""
                )
        for table in benchmark_tables(board.with_short_names()):
            text = table_latex(table, CONTENT_WARNING)
            (partial / f"{table.label}.tex").write_text(text, encoding="utf-8")
        index = []
        for number, model in enumerate(board.models, 1):
            model_outcomes = [o for o in board.outcomes if o.model.name == model]
            for name, value in (
                (f"results-{number}.json", every_eval_record(model_outcomes, now)),
                (f"eval_results-{number}.yaml", hub_results(model_outcomes, now)),
            ):
                if value:
                    (partial / name).write_text(json.dumps(value, indent=2) + "\n", "utf-8")
                    index.append({"file": name, "model": model})
        text = json.dumps({"warning": CONTENT_WARNING, "files": index}, indent=2)
        (partial / "index.json").write_text(text + "\n", "utf-8")
        names = sorted(file.name for file in partial.iterdir())
    return [folder / name for name in names]


def every_eval_record(outcomes: Sequence[BenchmarkOutcome], now: datetime) -> dict[str, Any]:
    """One model's figures in the Every Eval Ever schema (see `kgbias.publish.evaluations`); empty
    if it has none. A figure without bounds (the SoFa score) is left out: the schema requires
    them."""
    results = [row for o in outcomes for row in _outcome_results(o)]
    if not results:
        return {}
    first_outcome = outcomes[0]
    return build_evaluation(
        first_outcome.model,
        first_outcome.settings,
        title=BOARD_TITLE,
        organisation="Not stated",
        published=f"{now.timestamp():.0f}",
        results=results,
    )


def hub_results(outcomes: Sequence[BenchmarkOutcome], now: datetime) -> list[dict[str, Any]]:
    """One model's bias figures over all items, as the hub reads them from .eval_results (JSON is
    YAML). The hub shows those whose data set is registered there as a benchmark."""
    return [
        {
            "dataset": {"id": o.hub_dataset[0], "task_id": o.hub_dataset[1]},
            "value": round(found.estimate.value, 4),
            "date": now.date().isoformat(),
            "notes": f"{info.title} ({info.name}), {_interval_words(found.estimate)}, by kgbias; "
            f"{info.help}",
        }
        for o in outcomes
        if o.hub_dataset is not None
        for info in o.figure_info
        if info.unbiased is not None
        and (found := o.overall(info.name)) is not None
        and math.isfinite(found.estimate.value)
    ]


def _outcome_results(outcome: BenchmarkOutcome) -> list[dict[str, Any]]:
    info = {figure.name: figure for figure in outcome.figure_info}
    results = []
    for domain_figure in outcome.figures:
        figure = info[domain_figure.figure]
        if figure.range is None or not math.isfinite(domain_figure.estimate.value):
            continue
        details = {"figure": figure.name, "unit": outcome.unit}
        if figure.unbiased is not None:
            details["value_without_bias"] = f"{figure.unbiased:g}"
        results.append(
            {
                "evaluation_name": f"{outcome.title}: {domain_figure.figure} "
                f"({domain_figure.domain})",
                "source_data": {
                    "dataset_name": outcome.title,
                    "source_type": "other",
                    "additional_details": {
                        "category": domain_figure.domain,
                        "paper": outcome.source,
                    },
                },
                "metric_config": {
                    "evaluation_description": f"{figure.title}: {figure.help}",
                    "lower_is_better": figure.unbiased == 0 and figure.range[0] == 0,
                    "score_type": "continuous",
                    "min_score": figure.range[0],
                    "max_score": figure.range[1],
                    "additional_details": details,
                },
                "score_details": {
                    "score": domain_figure.estimate.value,
                    "uncertainty": uncertainty_record(
                        domain_figure.estimate, f"bootstrap over {outcome.unit}"
                    ),
                },
                "generation_config": {
                    "generation_args": {},
                    "additional_details": {
                        "scored_by": "log-probability",
                        **dict(outcome.settings),
                    },
                },
            }
        )
    return results


def _interval_words(estimate: Any) -> str:
    return f"95% interval {estimate.format_interval('.4g')}" if estimate.is_shown else "no interval"


def _format_csv(rows: Sequence[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: escape_formula(v) for k, v in row.items()} for row in rows)
    return file.getvalue()
