"""Making a run by asking a model in rounds (`kgbias.graph.generation_run`), and pricing one, for
the methods that have kinds of runs of their own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from kgbias.graph.generation_run import CostEstimate, GenerationSummary
from kgbias.models.base import Completer
from kgbias.models.budget import split_budget
from kgbias.study.context import Context
from kgbias.study.opening import (
    as_completer,
    open_completer,
    settle_form,
    spec_of,
    split_model_options,
    split_prices,
)
from kgbias.study.run import Run

PriceT = TypeVar("PriceT", bound=CostEstimate)


def write_run(
    context: Context,
    model: str | Completer,
    options: Mapping[str, Any],
    make_config: Callable[..., Any],
    write: Callable[..., GenerationSummary],
    name: str | None,
    kind: str,
    forms: Mapping[str, str] = {"chat": "chat", "completion": "completion"},
) -> Run:
    """The run of this kind that `write` makes of the configuration for a model with these options,
    within their budget. It calls messages and text as `forms` says."""
    opening, call_options = split_model_options(options)
    model = as_completer(model, None)
    spec = spec_of(model, opening)
    budget, asking = split_budget(call_options, spec)
    config = make_config(spec, **asking)
    with context.working() as progress, open_completer(model, opening, progress) as completer:
        if asking.get("form") is None:
            model_form = settle_form(completer, kind, "chat", context.existing_store, progress)
            if model_form is not None:
                config = make_config(spec, **{**asking, "form": forms[model_form]})
        summary = write(
            config,
            context.apply_display_name(completer),
            context.writable(),
            name=name,
            progress=progress,
            budget=budget,
        )
    return Run(context, summary.run, generation_summary=summary)


def price_run(
    model: str | Completer,
    options: Mapping[str, Any],
    make_config: Callable[..., Any],
    estimate_cost: Callable[[Any], PriceT],
) -> PriceT:
    """What such a run would ask, at the prices among the options. Asks nothing."""
    prices, asking = split_prices(options, model)
    return replace(estimate_cost(make_config(spec_of(model, {}), **asking)), prices=prices)
