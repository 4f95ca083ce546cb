"""Figures as records that other tools read: results.json of a run, in the Every Eval Ever schema,
version 0.2.1.

https://github.com/evaleval/every_eval_ever, eval.schema.json. A figure without a value is left out,
and so is one without bounds (warmth, competence, relative entropy), which the schema requires.
"""

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from kgbias.io.resources import __version__
from kgbias.measures import Figure, Measure, figures_by_name, measure_of_figure
from kgbias.models.base import ModelInfo, Settings
from kgbias.publish.card import CardSource
from kgbias.stats.estimate import Estimate

SCHEMA_VERSION = "0.2.1"

_GENERATION_ARGUMENTS = ("temperature", "top_p", "top_k", "max_attempts")


def build_evaluations(source: CardSource) -> dict[str, Any]:
    """The content of results.json: the figures of a published run."""
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
        min_score, max_score = bounds
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
                "min_score": min_score,
                "max_score": max_score,
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
