"""Figures as records that other tools read: results.json of a run, and a benchmark's tables and
records, in the Every Eval Ever schema, version 0.2.1.

https://github.com/evaleval/every_eval_ever, eval.schema.json. A figure without a value is left out,
and so is one without bounds (warmth, competence, relative entropy), which the schema requires.
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgbias.benchmark import BenchmarkOutcome, Board
from kgbias.graph.types import CONTENT_WARNING
from kgbias.io.files import replace_folder
from kgbias.io.resources import __version__
from kgbias.io.text import escape_formula
from kgbias.measures import Figure, Measure, figures_by_name, measure_of_figure
from kgbias.models.base import ModelInfo, Settings
from kgbias.publish.card import CardSource
from kgbias.report.benchmark import benchmark_tables, plain_records
from kgbias.report.tables import table_latex
from kgbias.stats.estimate import Estimate

SCHEMA_VERSION = "0.2.1"

_GENERATION_ARGUMENTS = ("temperature", "top_p", "top_k", "max_attempts")


def build_evaluations(source: CardSource) -> dict[str, Any]:
    """The whole file."""
    recipe = source.recipe
    return build_evaluation(
        recipe.model,
        recipe.settings,
        title=source.title,
        organisation=", ".join(source.authors) or "Not stated",
        published=f"{datetime.fromisoformat(source.created).timestamp():.0f}",
        created=source.content.run.record.created,
        results=list(_group_results(source)),
    )


def build_evaluation(
    model: ModelInfo,
    settings: Settings,
    *,
    title: str,
    organisation: str,
    published: str,
    results: list[dict[str, Any]],
    created: str = "",
) -> dict[str, Any]:
    """The results of a model with everything else that the schema requires. `published` is in
    seconds since 1970; `created` is when the model was evaluated."""
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"kgbias/{model.title.replace('/', '_')}/{published}",
        **({"evaluation_timestamp": created} if created else {}),
        "retrieved_timestamp": published,
        "source_metadata": {
            "source_name": title,
            "source_type": "evaluation_run",
            "source_organization_name": organisation,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "kgbias", "version": __version__},
        "model_info": {
            "name": model.title,
            "id": model.title.removeprefix("hf:"),
            "additional_details": {
                "revision": model.revision,
                **dict(settings),
            },
        },
        "evaluation_results": results,
    }


def _group_results(source: CardSource) -> Iterator[dict[str, Any]]:
    groups = {group.id: group for group in source.content.run.groups}
    metrics = {metric.measure: metric for metric in source.recipe.metrics}
    recipe, config = source.recipe, source.recipe.config
    counts = {(f.group_id, f.arm, f.measure): f.n for f in source.figures}
    for score in source.figures:
        measure = measure_of_figure(score.measure)
        if measure is None or not math.isfinite(score.value):
            continue
        figure = figures_by_name({score.measure})[score.measure]
        raw = figure.raw or figure.name  # a corrected figure's own n is the number of labels
        bounds = _bounds(figure, measure, counts.get((score.group_id, score.arm, raw), score.n))
        if bounds is None:
            continue
        group = groups[score.group_id]
        metric = metrics.get(measure.name)
        yield {
            "evaluation_name": f"{figure.title} of {group.name}",
            "source_data": {
                "dataset_name": source.title,
                "source_type": "other",
                "additional_details": {
                    "group": group.name,
                    "category": group.category,
                    "arm": score.arm or "none",
                },
            },
            "metric_config": {
                "evaluation_description": f"{figure.title}: {figure.direction}",
                "lower_is_better": _lower_is_better(figure, measure),
                "score_type": "continuous",
                "min_score": bounds[0],
                "max_score": bounds[1],
                "additional_details": {
                    "figure": figure.name,
                    **({"scorer": f"{metric.scorer} {metric.version}"} if metric else {}),
                },
            },
            "score_details": {
                "score": score.value,
                "uncertainty": uncertainty_record(score, score.method),
            },
            "generation_config": {
                "generation_args": {
                    k: config[k] for k in _GENERATION_ARGUMENTS if config.get(k) is not None
                },
                "additional_details": {"seed": str(config.get("seed", "")), "run": recipe.id},
            },
        }


def _bounds(figure: Figure, measure: Measure, n: int) -> tuple[float, float] | None:
    """The smallest and largest values that a figure of `n` statements can have; None if it has no
    bounds."""
    if figure.statistic is None or measure.range is None:
        return None
    if figure.statistic != "total":
        return measure.range
    low, high = measure.range if figure.counts is None else (0.0, 1.0)
    return low * n, high * n


def _lower_is_better(figure: Figure, measure: Measure) -> bool:
    if figure.counts is not None:
        return figure.counts < 0
    return measure.worst == "highest"


def uncertainty_record(estimate: Estimate, method: str) -> dict[str, Any]:
    """The interval and sample size of a figure; `method` says how the interval was computed."""
    interval = {
        "lower": estimate.low,
        "upper": estimate.high,
        "confidence_level": 0.95,
        "method": method,
    }
    return {
        **({"confidence_interval": interval} if estimate.is_shown else {}),
        "num_samples": estimate.n,
    }


BOARD_TITLE = "kgbias benchmark"


def write_tables(board: Board, folder: Path) -> list[Path]:
    """Write every table as CSV and LaTeX; for each model a record for Every Eval Ever
    (results-N.json) and one for the Hugging Face hub (eval_results-N.yaml, to be put in the folder
    .eval_results of the model's repository); and index.json, which lists them. Returns the files,
    sorted."""
    now = datetime.now(UTC)
    with replace_folder(folder) as partial:
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
    return f"95% interval {estimate.interval('.4g')}" if estimate.is_shown else "no interval"


def _format_csv(rows: Sequence[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: escape_formula(v) for k, v in row.items()} for row in rows)
    return file.getvalue()
