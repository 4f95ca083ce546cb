"""Pairs: the same request with the group or the name in it changed, and what that changes.

A run of pairs is a run of answers: a generation has an answer and no statement, so what needs
statements refuses such a run in one line (`kgbias.graph.selection.need_statements`). Results are
computed when they are asked for and are not kept.

    from kgbias.methods import pairs

    run = pairs.ask_pairs(study, "smollm2", category="gender")
    pairs.compare_pairs(run)
"""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack, overload

from kgbias.errors import UsageError
from kgbias.io.tables_in_memory import Table
from kgbias.parameters import (
    BudgetOptions,
    GenerationOptions,
    JudgeOptions,
    ModelOptions,
    Names,
    as_names,
    check_options,
)
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.io.rows import Rows
    from kgbias.methods.pairs.answers import AnswerRow
    from kgbias.methods.pairs.compare import PairsResult
    from kgbias.methods.pairs.write import PairsPrice
    from kgbias.models.base import Completer
    from kgbias.study.run import Run
    from kgbias.study.study import Study


class PairsOptions(GenerationOptions, total=False):
    """Which requests are made about whom, and how; see `ask_pairs`."""

    requests: Table | None
    people: Table | None
    request: Names
    category: Names
    group: Names
    seeds: Names
    prompts: str | Path | None
    form: Literal["chat", "completion"] | None


class PairsSpending(PairsOptions, ModelOptions, BudgetOptions, total=False):
    """The same, how the model is opened, and what the call may spend."""


@overload
def ask_pairs(
    study: "Study",
    model: "str | Completer",
    *,
    name: str | None = None,
    dry_run: Literal[False] = False,
    **options: Unpack[PairsSpending],
) -> "Run": ...


@overload
def ask_pairs(
    study: "Study",
    model: "str | Completer",
    *,
    name: str | None = None,
    dry_run: Literal[True],
    **options: Unpack[PairsSpending],
) -> "PairsPrice": ...


@public_call
def ask_pairs(
    study: "Study",
    model: "str | Completer",
    *,
    name: str | None = None,
    dry_run: bool = False,
    **options: Unpack[PairsSpending],
) -> "Run | PairsPrice":
    """Make the same requests of a model with the group or the name in them swapped, and keep
    the answers; `compare_pairs` says what the swap changed.

    Each request is made three times about each person: as it is, again, and with a greeting.
    Repeat the call to continue where it stopped; nothing that was answered is asked again.

    Args:
        study: the study, whose store keeps the run.
        model: a spec, or a model opened by `kgbias.open_model`.
        name: a name for the run (None: a descriptive one).
        dry_run: ask and open nothing, and return what the call would ask.
        options: what this call may spend, and how to open a spec (see `Study.crawl`); what to
            ask: `requests` (a CSV file with the columns request and text, with {name} or
            {group} in the text; None: those of the `prompts`), about whom: `people` (a CSV file
            with the columns slot, name, group and category), only these of `request`,
            `category` or `group`; and how: `form` ("chat" or "completion"), `samples` (1),
            `temperature`, `min_p`, `seed`.

    Raises:
        UsageError: an unknown name, a number out of range, or a category with a single group.
        DataError: a file with an empty cell, a text without a slot, or groups with different
            numbers of people.
        RunConflict: `name` is taken by a run with other settings.
        ModelError: the model cannot be loaded or reached.
        Interrupted: on Ctrl-C or when a budget is spent; answers so far are kept.
    """
    if dry_run:
        return _price(model, **options)
    from kgbias.methods.pairs.config import configure_pairs
    from kgbias.methods.pairs.write import write_pairs
    from kgbias.study.writing import write_run

    call_options = check_options(options, PairsSpending)
    return write_run(
        study.context, model, call_options, configure_pairs, write_pairs, name, "pairs"
    )


def _price(model: "str | Completer", **options: Unpack[PairsSpending]) -> "PairsPrice":
    from kgbias.methods.pairs.config import configure_pairs
    from kgbias.methods.pairs.write import pairs_price
    from kgbias.study.writing import price_run

    return price_run(model, check_options(options, PairsSpending), configure_pairs, pairs_price)


@public_call
def list_answers(run: "Run") -> "Rows[AnswerRow]":
    """The answers of a run of pairs, whole, in its order, with whom they are about.

    Frame columns: those of `kgbias.methods.pairs.answers.AnswerRow`.

    Args:
        run: the run of pairs.

    Raises:
        UsageError: not a run of pairs.
    """
    from kgbias.methods.pairs.answers import answer_rows

    return answer_rows(run.stored)


@public_call
def compare_pairs(
    run: "Run",
    *,
    measure: Names = (),
    judge: "str | Completer | None" = None,
    seed: int = 0,
    **judging: Unpack[JudgeOptions],
) -> "PairsResult":
    """What swapping the group or the name changes in the answers of a run of pairs: paired
    tests of each two groups of a category, and of changes that should not matter.

    Args:
        run: the run of pairs.
        measure: words, refused, reading ease, regard, toxicity, likeness (none: all).
        judge: a language model that grades the advice in each answer, from 1 (aim low) to 5,
            without seeing the name or the group (None: it is not graded).
        seed: the random seed of permutations, intervals and the judge.
        judging: how to ask the judge; see `kgbias.parameters.JudgeOptions`.

    Raises:
        UsageError: not a run of pairs or not in English, nothing to compare, or no such
            measure.
        MissingExtra: regard, toxicity and likeness need the extra `scorers`.
    """
    from kgbias.measure.scorers import require_english
    from kgbias.methods.pairs.answer_measures import model_advice
    from kgbias.methods.pairs.answers import require_answers
    from kgbias.methods.pairs.compare import compare_answers
    from kgbias.study.opening import open_prompter

    answers = [answered for answered, _ in require_answers(run.stored)]
    require_english(run.stored, "the measures of pairs")
    if judge is None and judging:
        raise UsageError(f"`{next(iter(judging))}` needs a judge that is a language model")
    with run.context.working() as progress, ExitStack() as opened:
        advice = prompter = None
        if judge is not None:
            store = run.stored.store
            prompter = opened.enter_context(open_prompter(judge, store, progress, seed, judging))
            advice = model_advice(prompter, judging.get("prompts"))
        return compare_answers(
            answers,
            measures=as_names(measure),
            advice=advice,
            judge=prompter.name if prompter else "",
            seed=seed,
            progress=progress,
        )
