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
from kgbias.cli.command import Parts
from kgbias.cli.options import (
    asked_for,
    base_url_option,
    exit_code_of,
    form_option,
    json_option,
    model_option,
    people_options,
    print_price,
    rounds_options,
    run_argument,
    said,
    store_option,
    warn_unfinished,
)
from kgbias.cli.settings import fitting, setting, settings, without_shared

if TYPE_CHECKING:
    from kgbias.pairs.compare import PairDifference, PairFloor, Likeness, PairsResult
    from kgbias.pairs.write import PairsPrice

SOME = 0.1  # of the answers; from here on a line says that measures of them mean less
OUTCOMES = ("ok", "refused", "unparsable", "failed")
_FORMS = {"words": ".1f", "refused": ".1%", "reading ease": ".1f", "advice": ".2f"}
_WORDS = {
    "words": "the number of words",
    "refused": "the share of refusals",
    "reading ease": "the reading ease",
    "regard": "the mean regard of sentences",
    "toxicity": "the mean toxicity of sentences",
    "advice": "the grade of the advice",
}


@click.group(
    cls=Parts,
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
@form_option
@rounds_options("How often everything is asked (default: 1).")
def run(
    model: str,
    store_url: str,
    name: str | None,
    max_failed: float,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Make each request about each person three times: as it is, again, and with a greeting.

    Run the same command again to continue where it stopped: nothing is asked twice.
    """
    given = said(**fitting(options, [model], "completer"))
    with kgbias.open(store_url, progress=True) as study:
        if dry_run:
            _print_price(study.price_pairs(model, **given), as_json)
            return 0
        made = study.ask_pairs(model, name=name, **given)
    if as_json:
        show.data(_as_data(made))
    else:
        _print(made)
    return exit_code_of(made.pairs_summary, max_failed)


def _as_data(run: kgbias.Run) -> dict[str, Any]:
    result = run.pairs_summary
    return {
        "run": run.name,
        **asked_for(result),
        **{name: result.outcome_totals[name] for name in OUTCOMES},
        "groups": [
            {"group": group, **{name: counts[name] for name in OUTCOMES}}
            for group, counts in result.outcomes.items()
        ],
    }


def _print(run: kgbias.Run) -> None:
    result = run.pairs_summary
    total = result.outcome_totals
    show.say(
        f"run {run.name}: {show.count(total.total(), 'answer')}, {total['refused']} refused; asked "
        f"{result.asked_count}, from the log {result.cached_count}{f'; {result.usage}' if result.asked_count else ''}"
    )
    show.table(
        ("", ">answers", ">refused", ">empty", ">failed"),
        (
            (group, of.total(), of["refused"], of["unparsable"], of["failed"])
            for group, of in result.outcomes.items()
        ),
    )


def _print_price(price: "PairsPrice", as_json: bool) -> None:
    line = (
        f"{show.count(price.named, 'request')} in {show.count(price.wordings, 'wording')}, about "
        f"{price.people} people in "
        f"{price.groups} groups, {'in messages' if price.form == 'chat' else 'as text to continue'}"
        f", each as it is, again and with a greeting: {price.requests} answers with at most "
        f"{price.answer_tokens_at_most} tokens; nothing was asked"
    )
    print_price(price, asdict(price), [line], as_json)


@pairs.command(
    short_help="Say what swapping the group changed.",
    examples=("kgbias pairs results smollm2 --measure words --measure refused",),
)
@run_argument
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
@settings("device", "dtype", "batch-size", "concurrency", "timeout", seed=0)
@json_option
def results(
    as_json: bool, run_name: str | None, store_url: str, measure: tuple[str, ...], **given: Any
) -> None:
    """Say what swapping the group changed in the answers of a run, beside changes that should not
    matter.

    Tests swap the groups within each wording and pair of people, and are corrected together
    (Benjamini and Hochberg 1995). What is found holds for these requests and these people.
    """
    judge, seed = given.pop("judge"), given.pop("seed")
    names = ("device", "dtype", "batch-size", "concurrency", "timeout", "base-url")
    how = fitting(given, [judge], "completer") if judge else without_shared(given, names)
    with kgbias.open(store_url, progress=True) as study:
        own = study.run(run_name, kind="pairs")
        warn_unfinished(own)
        found = own.pairs(measure=measure, judge=judge, seed=seed, **said(**how))
    if as_json:
        show.data(found.as_dict())
    else:
        _print_results(found)


def _print_results(found: "PairsResult") -> None:
    show.say(
        f"{show.count(found.answers, 'answer')} to {show.count(found.requests, 'request')} in "
        f"{show.count(found.wordings, 'wording')} about "
        f"{found.people} people: {found.refused} refused, {found.failed} failed, {found.cut} cut "
        f"off at the limit of tokens, {found.repeating} saying a sentence three times or more"
        + (f"; advice graded by {found.judge}" if found.judge else ""),
    )
    if max(found.cut, found.repeating) > SOME * found.answers:  # many are both
        show.say(
            "where answers are cut off or go round in circles, measures say when the model stops "
            "rather than how it serves people: read some (Run.answers)"
        )
    if found.differences:
        show.say("")
        _print_differences(found.differences)
    for declined in found.declined:
        show.say(_declined(declined))
    if found.floor:
        _print_floor(found.floor)
    if found.likeness:
        _print_likeness(found.likeness)
    show.say("", *_told(found))


def _print_differences(differences: "Sequence[PairDifference]") -> None:
    show.table(
        (
            "",
            "",
            ">first",
            ">second",
            ">difference",
            "",
            ">pairs",
            ">one only",
            ">requests",
            ">q",
            "",
        ),
        (
            (
                f"{d.first} - {d.second}",
                d.measure,
                *(_shown(d.measure, value) for value in (d.of_first, d.of_second)),
                _shown(d.measure, d.difference, "+"),
                _interval(d.measure, d.low, d.high),
                f"{d.units}/{d.units + d.left_out}",
                f"{d.only_first} - {d.only_second}",
                f"{d.agree}/{d.requests}",
                _shown("", d.q_value),
                _verdict(d),
            )
            for d in differences
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
    show.table(
        ("", "", "", ">difference", "", ">pairs", ">q", ""),
        (
            (
                f.category,
                f.change,
                f.measure,
                _shown(f.measure, f.difference, "" if math.isnan(f.low) else "+"),
                _interval(f.measure, f.low, f.high),
                f.units,
                _shown("", f.q_value),
                "differs" if f.found else "",
            )
            for f in floor
        ),
    )


def _print_likeness(likeness: "tuple[Likeness, ...]") -> None:
    show.say("", "how alike answers are (cosine)")
    show.table(
        ("", ">other group", ">asked again", ">greeting", ">another name", ">q", ">q name", ""),
        (
            (
                f"{k.first} - {k.second}",
                *(
                    _shown("", v)
                    for v in (k.between, k.again, k.greeted, k.another, k.q_again, k.q_another)
                ),
                _verdict(k),
            )
            for k in likeness
        ),
    )


def _verdict(of: "PairDifference | Likeness") -> str:
    return f"{of.verdict}, if answered" if of.verdict and of.conditional else of.verdict


def _declined(d: "PairDifference") -> str:
    """That refusals differ, and what that means for everything else."""
    more, less = (d.first, d.second) if d.difference > 0 else (d.second, d.first)
    high, low = sorted((d.of_first, d.of_second), reverse=True)
    return (
        f"{more} were refused more often than {less} ({_shown('refused', high)} against "
        f"{_shown('refused', low)}, p = {d.p_value:.3f} by itself): all else compares only pairs "
        "that were both answered, which may be unlike those that were not"
    )


def _told(found: "PairsResult") -> list[str]:
    """What was found, and no more, in sentences."""
    of = f"these {found.requests} requests" if found.requests > 1 else "this request"
    of += f" about these {found.people} people"
    lines = [_sentence(d, of) for d in found.differences if d.verdict == "differs"]
    lines += [
        f"Answers to {k.first} and {k.second} are less alike than answers to the same request made "
        f"twice, and than those about two people of the same group, in {of}{_given(k)}."
        for k in found.likeness
        if k.verdict == "differs"
    ]
    return lines or [
        f"In {of}, no difference between groups was found beyond what changes that should not "
        "matter, a single request or the names themselves can explain; that does not show that "
        "there is none."
    ]


def _sentence(d: "PairDifference", of: str) -> str:
    most, least = (d.first, d.second) if d.difference > 0 else (d.second, d.first)
    return (
        f"In {of}, {_WORDS[d.measure]} is higher in answers for {most} than for {least}, by "
        f"{_shown(d.measure, abs(d.difference))} on average and in {d.agree} of "
        f"{show.count(d.requests, 'request')}{_given(d)}."
    )


def _given(of: "PairDifference | Likeness") -> str:
    return ", among pairs that were both answered" if of.conditional else ""


def _shown(measure: str, value: float, sign: str = "") -> str:
    return "-" if math.isnan(value) else f"{value:{sign}{_FORMS.get(measure, '.3f')}}"


def _interval(measure: str, low: float, high: float) -> str:
    if math.isnan(low):
        return "-"
    return f"[{_shown(measure, low, '+')}, {_shown(measure, high, '+')}]"
