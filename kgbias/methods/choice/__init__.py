"""Forced choice: which group is a statement about, for models that give no probabilities.

- `config`: how a model is made to choose, and which option an answer names.
- `ask`: the questions, their design and answers, and the edges written from them.
- `result`: shares, base rates and lifts, with their intervals.

Models are asked through the answer log. The order of the options follows from the statement and the
seed alone. The choices of a run are written as a whole, in place of the previous ones, once all
answers are in. A choice is another kind of evidence than a probability, and no verdict rests on it.

    from kgbias.methods import choice

    choice.choose(run, "openai:my-model", sample=200)
    choice.list_choices(run)
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack, overload

from kgbias.models.base import PromptForm
from kgbias.parameters import BudgetOptions, ModelOptions, Names, SelectionOptions, check_options
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.io.rows import Rows
    from kgbias.methods.choice.ask import ChoicePrice
    from kgbias.methods.choice.result import RunChoices
    from kgbias.methods.choice.rows import ChoiceRow
    from kgbias.models.base import Completer
    from kgbias.study.run import Run


class ChoiceOptions(SelectionOptions, ModelOptions, total=False):
    """What to ask about, and how; see `choose`."""

    category: Names
    sample: int | None
    options: int | None
    samples: int | None
    temperature: float | None
    form: PromptForm | None
    prompts: str | Path | None
    indicators: str | Path | None
    seed: int | None


class ChoiceSpending(ChoiceOptions, BudgetOptions, total=False):
    """The same, and what the call may spend."""


@overload
def choose(
    run: "Run",
    model: "str | Completer",
    *,
    dry_run: Literal[False] = False,
    **options: Unpack[ChoiceSpending],
) -> "RunChoices": ...


@overload
def choose(
    run: "Run",
    model: "str | Completer",
    *,
    dry_run: Literal[True],
    **options: Unpack[ChoiceSpending],
) -> "ChoicePrice": ...


@public_call
def choose(
    run: "Run",
    model: "str | Completer",
    *,
    dry_run: bool = False,
    **options: Unpack[ChoiceSpending],
) -> "RunChoices | ChoicePrice":
    """Ask a model which group each statement is about: probing by forced choice, for models
    that give no probabilities. Each question offers groups of the category, in balanced orders;
    how often a group is chosen, against its base rate, is written on CHOSEN edges.

    Repeat the call to continue where it stopped; nothing that was answered is asked again.

    Args:
        run: the run.
        model: a spec, or a model opened by `kgbias.open_model`.
        dry_run: ask and open nothing, and return what the call would ask.
        options: what this call may spend (`max_requests`, `max_tokens`, `max_cost` ...; see
            `Study.crawl`); how to open a spec (`device`, `dtype` and `batch_size` for a local
            model, `base_url`, `concurrency` and `timeout` for a server); what to ask about: the
            statements that count (`arm`, `min_acceptability`, `exclude_echoes`), of one or more
            categories (`category`), at most `sample` of each, drawn at random; and how: at most
            this many `options` in a question (4), each group offered at least `samples` times
            per statement (24), at a `temperature` (1), in the `form` "chat" (a server's
            default, if it takes messages) or "completion" (a local model's), with your own
            question in a folder of `prompts`, and `seed` for the orders and answers. A group
            with five or more names is offered by each in turn and tested over them, one with
            fewer only by its own name; `indicators` is a file of names of groups.

    Raises:
        UsageError: an unknown category, or a number out of range.
        DataError: the run has no category with statements of two groups.
        ModelError: the model cannot be loaded or reached.
        Interrupted: on Ctrl-C or when a budget is spent; answers so far are kept.
    """
    if dry_run:
        return _price(run, model, **options)
    from kgbias.graph.answers import LoggedModel
    from kgbias.methods.choice import ask
    from kgbias.models.budget import split_budget
    from kgbias.models.server import ServerModel
    from kgbias.study.opening import as_completer, open_completer, spec_of, split_model_options

    opening, call_options = split_model_options(check_options(options, ChoiceSpending))
    model = as_completer(model, None)
    budget, asking = split_budget(call_options, spec := spec_of(model, opening))
    given_form = asking.get("form")
    parts, config = ask.plan_questions(run.stored, spec, asking)
    with (
        run.context.working() as progress,
        open_completer(model, opening, progress) as completer,
    ):
        if given_form is None and isinstance(completer, ServerModel):
            asker = LoggedModel(completer, run.stored.store, progress)
            form = asker.find_form(ask.first_requests(parts[0], config), config.form)
            config = replace(config, form=form)
        return ask.choose(run.stored, completer, parts, config, budget=budget, progress=progress)


def _price(
    run: "Run", model: "str | Completer", **options: Unpack[ChoiceSpending]
) -> "ChoicePrice":
    from kgbias.methods.choice import ask
    from kgbias.study.opening import spec_of, split_prices

    prices, asking = split_prices(check_options(options, ChoiceSpending), model)
    return ask.choice_price(*ask.plan_questions(run.stored, spec_of(model, {}), asking), prices)


@public_call
def list_choices(run: "Run", model: str | None = None) -> "Rows[ChoiceRow]":
    """The forced choices in the store: a row for each statement and group.

    Frame columns: model, category, group, predicate, object, said, names, answered, chosen,
    verdict, share with low and high, base, lift with lift_low and lift_high, q_value.

    Args:
        run: the run.
        model: only those of this model (None: of each that `choose` asked).
    """
    from kgbias.methods.choice.rows import choice_rows

    return choice_rows(run.stored, model)
