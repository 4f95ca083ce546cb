"""Making a run by asking a model in rounds (`kgbias.graph.generation_run`), for the methods that
have kinds of runs of their own."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kgbias.models.base import Completer
from kgbias.models.budget import split_budget
from kgbias.study.context import Context
from kgbias.study.opening import (
    as_completer,
    open_completer,
    settle_form,
    spec_of,
    split_model_options,
)

SummaryT = TypeVar("SummaryT")


def write_run(
    context: Context,
    model: str | Completer,
    options: Mapping[str, Any],
    make_config: Callable[..., Any],
    write: Callable[..., SummaryT],
    name: str | None,
    kind: str,
    forms: Mapping[str, str] = {"chat": "chat", "completion": "completion"},
) -> SummaryT:
    """What `write` makes of the configuration for a model with these options, within their
    budget: a run of this kind, which calls messages and text as `forms` says."""
    opening, call_options = split_model_options(options)
    model = as_completer(model, None)
    budget, asking = split_budget(call_options, spec := spec_of(model, opening))
    config = make_config(spec, **asking)
    with context.working() as progress, open_completer(model, opening, progress) as completer:
        if asking.get("form") is None:
            model_form = settle_form(completer, kind, "chat", context.existing_store, progress)
            if model_form is not None:
                config = make_config(spec, **{**asking, "form": forms[model_form]})
        return write(
            config,
            context.apply_display_name(completer),
            context.writable(),
            name=name,
            progress=progress,
            budget=budget,
        )
