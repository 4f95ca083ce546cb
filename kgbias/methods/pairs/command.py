"""`kgbias pairs`: the same request with the group or the name in it swapped.

`pairs --model SPEC` means `pairs run --model SPEC`.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import CommandGroup
from kgbias.cli.options import (
    base_url_option,
    build_price_output,
    describe_asking,
    drop_unset,
    json_option,
    model_option,
    people_options,
    rounds_options,
    run_name_argument,
    store_option,
    warn_unfinished,
    write_or_price,
)
from kgbias.cli.settings import drop_shared, keep_applicable, setting, shared_settings
from kgbias.cli.show import Output
from kgbias.io.columns import CellWithForm, Column
from kgbias.io.text import format_number
from kgbias.io.wording import pluralise
from kgbias.methods import pairs as pair_calls
from kgbias.methods.pairs.config import PairsConfig
from kgbias.stats.estimate import Estimate

if TYPE_CHECKING:
    from kgbias.methods.pairs.compare import Likeness, PairDifference, PairFloor, PairsResult
    from kgbias.methods.pairs.write import PairsPrice

MIN_NOTABLE_SHARE = 0.1  # of the answers; from here on a line says that measures of them mean less
OUTCOME_COLUMNS = ("ok", "refused", "unparsable", "failed")
_NUMBER_FORMS = {"words": ".1f", "refused": ".1%", "reading ease": ".1f", "advice": ".2f"}
_MEASURE_TEXTS = {
    "words": "the number of words",
    "refused": "the share of refusals",
    "reading ease": "the reading ease",
    "regard": "the mean regard of sentences",
    "toxicity": "the mean toxicity of sentences",
    "advice": "the grade of the advice",
}


@click.group(
    cls=CommandGroup,
    examples=("kgbias pairs --model smollm2 --category gender", "kgbias pairs results"),
)
def pairs() -> None:
    """Make the same request for different people, and see what changes.

    `kgbias pairs --model SPEC` makes requests as people make them (a reference letter, advice on
    pay, a bedtime story, a diagnosis) with the name or the group in them swapped, and keeps the
    answers; `kgbias pairs results RUN` compares them in pairs, and with changes that should not
    matter: the same request again, a greeting, another name of the same group.
    """


@pairs.command(
    short_help="Make the requests and keep the answers (the default).",
    examples=("kgbias pairs --model smollm2 --request pay --category gender --dry-run",),
)
@model_option
@click.option(
    "--requests",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="A CSV file with the columns request (its name) and text, with {name} or {group} in the "
    "text; one row for each wording (default: those of the prompts).",
)
@click.option("--request", multiple=True, metavar="NAME", help='Only this request, such as "pay".')
@people_options("slot (name or group), name (the words to fill in)", "gender or ethnicity")
@setting("prompts", metavar="NAME-or-FOLDER", help="The prompt pack (default: pairs).")
@rounds_options(PairsConfig)
def run(**options: Any) -> Output:
    """Make each request about each person three times: as it is, again, and with a greeting.

    Run the same command again to continue where it stopped: nothing is asked twice.
    """
    return write_or_price(pair_calls.ask_pairs, _build_price_output, _print_run, **options)


def _print_run(run: kgbias.Run) -> None:
    result = run.generation_summary
    total = result.outcome_totals
    show.say(
        f"run {run.name}: {pluralise(total.total(), 'answer')}, {total['refused']} refused; "
        f"{describe_asking(result)}"
    )
    show.print_table(
        ("", *(Column(name, "d") for name in ("answers", "refused", "empty", "failed"))),
        (
            (group, counts.total(), counts["refused"], counts["unparsable"], counts["failed"])
            for group, counts in result.outcomes.items()
        ),
    )


def _build_price_output(price: "PairsPrice") -> Output:
    line = (
        f"{pluralise(price.named, 'request')} in {pluralise(price.wordings, 'wording')}, about "
        f"{price.people} people in "
        f"{pluralise(price.groups, 'group')}, "
        f"{'in messages' if price.form == 'chat' else 'as text to continue'}"
        f", each as it is, again and with a greeting: {price.requests} answers with at most "
        f"{pluralise(price.answer_tokens_at_most, 'token')}; nothing was asked"
    )
    return build_price_output(price, asdict(price), [line])


@pairs.command(
    short_help="Say what swapping the group changed.",
    examples=("kgbias pairs results smollm2 --measure words --measure refused",),
)
@run_name_argument
@store_option
@click.option(
    "--measure",
    multiple=True,
    metavar="NAME",
    help="Only this: words, refused, reading ease, regard, toxicity, likeness (repeatable).",
)
@click.option(
    "--judge",
    metavar="SPEC",
    help="A language model that grades the advice in each answer (default: none).",
)
@base_url_option
@shared_settings("device", "dtype", "batch-size", "concurrency", "timeout", seed=0)
@json_option
def results(
    run_name: str | None, store_url: str, measure: tuple[str, ...], **options: Any
) -> Output:
    """Say what swapping the group changed in the answers of a run, beside changes that should not
    matter.

    Tests swap the groups within each wording and pair of people, and are corrected together
    (Benjamini and Hochberg 1995). What is found holds for these requests and these people.
    """
    judge, seed = options.pop("judge"), options.pop("seed")
    names = ("device", "dtype", "batch-size", "concurrency", "timeout", "base-url")
    judge_options = (
        keep_applicable(options, [judge], "completer") if judge else drop_shared(options, names)
    )
    with kgbias.open(store_url, progress=True) as study:
        pairs_run = study.run(run_name, kind="pairs")
        warn_unfinished(pairs_run)
        result = pair_calls.compare_pairs(
            pairs_run, measure=measure, judge=judge, seed=seed, **drop_unset(**judge_options)
        )
    return Output(result, lambda: _print_results(result))


def _print_results(result: "PairsResult") -> None:
    show.say(
        f"{pluralise(result.answers, 'answer')} to {pluralise(result.requests, 'request')} in "
        f"{pluralise(result.wordings, 'wording')} about "
        f"{result.people} people: {result.refused} refused, {result.failed} failed, {result.cut} "
        f"cut "
        f"off at the limit of tokens, {result.repeating} saying a sentence three times or more"
        + (f"; advice graded by {result.judge}" if result.judge else ""),
    )
    if max(result.cut, result.repeating) > MIN_NOTABLE_SHARE * result.answers:  # many are both
        show.say(
            "where answers are cut off or go round in circles, measures say when the model stops "
            "rather than how it serves people: read some (kgbias.methods.pairs.list_answers)"
        )
    if result.differences:
        show.say("")
        _print_differences(result.differences)
    for declined in result.declined:
        show.say(_describe_refusals(declined))
    if result.floor:
        _print_floor(result.floor)
    if result.likeness:
        _print_likeness(result.likeness)
    show.say("", *_describe_findings(result))


def _print_differences(differences: "Sequence[PairDifference]") -> None:
    show.print_table(
        (
            Column(""),
            Column(""),
            Column("first", ".3f"),
            Column("second", ".3f"),
            Column("difference", "+.3f", interval=True),
            Column("pairs", "d", joiner="/"),
            Column("one only", "d", joiner=" - "),
            Column("requests", "d", joiner="/"),
            Column("q", ".3f"),
            Column(""),
        ),
        (
            (
                f"{difference.first} - {difference.second}",
                difference.measure,
                CellWithForm(difference.first_mean, _number_format(difference.measure)),
                CellWithForm(difference.second_mean, _number_format(difference.measure)),
                _difference_cell(difference, "+"),
                (difference.units, difference.units + difference.left_out),
                (difference.only_first, difference.only_second),
                (difference.agree, difference.requests),
                difference.q_value,
                _format_verdict(difference),
            )
            for difference in differences
        ),
    )
    show.say(
        "pairs: compared, of all; one only: left out because there is an answer for the first, or "
        "for the second, alone",
    )


def _print_floor(floor: "Sequence[PairFloor]") -> None:
    show.say(
        "",
        "where nothing should differ (as asked, minus changed; another name: the size of the "
        "difference that two groups would show if only names differed)",
    )
    show.print_table(
        (
            Column(""),
            Column(""),
            Column(""),
            Column("difference", "+.3f", interval=True),
            Column("pairs", "d"),
            Column("q", ".3f"),
            Column(""),
        ),
        (
            (
                floor_row.category,
                floor_row.change,
                floor_row.measure,
                _difference_cell(floor_row, "" if math.isnan(floor_row.low) else "+"),
                floor_row.units,
                floor_row.q_value,
                "differs" if floor_row.found else "",
            )
            for floor_row in floor
        ),
    )


def _print_likeness(likeness: "tuple[Likeness, ...]") -> None:
    show.say("", "how alike answers are (cosine)")
    show.print_table(
        (
            Column(""),
            Column("other group", ".3f"),
            Column("asked again", ".3f"),
            Column("greeting", ".3f"),
            Column("another name", ".3f"),
            Column("q", ".3f"),
            Column("q name", ".3f"),
            Column(""),
        ),
        (
            (
                f"{likeness_row.first} - {likeness_row.second}",
                likeness_row.between,
                likeness_row.again,
                likeness_row.greeted,
                likeness_row.another,
                likeness_row.q_again,
                likeness_row.q_another,
                _format_verdict(likeness_row),
            )
            for likeness_row in likeness
        ),
    )


def _format_verdict(comparison: "PairDifference | Likeness") -> str:
    return (
        f"{comparison.verdict}, if answered"
        if comparison.verdict and comparison.conditional
        else comparison.verdict
    )


def _describe_refusals(difference: "PairDifference") -> str:
    """That refusals differ, and what that means for everything else."""
    refused_more, refused_less = (
        (difference.first, difference.second)
        if difference.difference > 0
        else (difference.second, difference.first)
    )
    higher_share, lower_share = sorted(
        (difference.first_mean, difference.second_mean), reverse=True
    )
    return (
        f"{refused_more} were refused more often than {refused_less} "
        f"({_format_value('refused', higher_share)} against "
        f"{_format_value('refused', lower_share)}, p = {difference.p_value:.3f} by itself): all "
        f"else compares only pairs "
        "that were both answered, which may be unlike those that were not"
    )


def _describe_findings(result: "PairsResult") -> list[str]:
    """What was found, and no more, in sentences."""
    scope_text = f"these {result.requests} requests" if result.requests > 1 else "this request"
    scope_text += f" about these {result.people} people"
    lines = [
        _describe_difference(difference, scope_text)
        for difference in result.differences
        if difference.verdict == "differs"
    ]
    lines += [
        f"Answers to {likeness.first} and {likeness.second} are less alike than answers to the "
        f"same request made "
        f"twice, and than those about two people of the same group, in "
        f"{scope_text}{_answered_note(likeness)}."
        for likeness in result.likeness
        if likeness.verdict == "differs"
    ]
    return lines or [
        f"In {scope_text}, no difference between groups was found beyond what changes that should "
        f"not "
        "matter, a single request or the names themselves can explain; that does not show that "
        "there is none."
    ]


def _describe_difference(difference: "PairDifference", scope_text: str) -> str:
    higher_group, lower_group = (
        (difference.first, difference.second)
        if difference.difference > 0
        else (difference.second, difference.first)
    )
    return (
        f"In {scope_text}, {_MEASURE_TEXTS[difference.measure]} is higher in answers for "
        f"{higher_group} than for {lower_group}, by "
        f"{_format_value(difference.measure, abs(difference.difference))} on average and in "
        f"{difference.agree} of "
        f"{pluralise(difference.requests, 'request')}{_answered_note(difference)}."
    )


def _answered_note(comparison: "PairDifference | Likeness") -> str:
    return ", among pairs that were both answered" if comparison.conditional else ""


def _number_format(measure: str) -> str:
    """How values of a measure are written."""
    return _NUMBER_FORMS.get(measure, ".3f")


def _format_value(measure: str, value: float) -> str:
    return "-" if math.isnan(value) else format_number(value, _number_format(measure))


def _difference_cell(row: "PairDifference | PairFloor", sign: str) -> CellWithForm:
    """The difference of a measure, with its interval."""
    difference = Estimate(row.difference, row.low, row.high, row.units)
    return CellWithForm(difference, sign + _number_format(row.measure))
