"""`kgbias stories`: what a model invents about people of whom it is told one thing.

`stories --model SPEC` means `stories run --model SPEC`.
"""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import CommandGroup
from kgbias.cli.options import (
    build_price_output,
    describe_asking,
    drop_unset,
    json_option,
    model_option,
    people_options,
    rounds_options,
    run_name_argument,
    store_option,
    write_or_price,
)
from kgbias.cli.settings import setting, shared_settings
from kgbias.cli.show import Output
from kgbias.io.columns import Column
from kgbias.io.wording import pluralise
from kgbias.methods import stories as story_calls
from kgbias.methods.stories.config import StoryConfig
from kgbias.methods.stories.write import StoriesSummary
from kgbias.stats.estimate import Estimate

if TYPE_CHECKING:
    from kgbias.methods.stories.links import StoryLinks
    from kgbias.methods.stories.write import StoriesPrice


@click.group(
    cls=CommandGroup,
    examples=("kgbias stories --model smollm2 --category gender", "kgbias stories links"),
)
def stories() -> None:
    """Have a model tell stories about people of whom it is told one thing, and see what it invents.

    `kgbias stories --model SPEC` asks for stories about a group, a trade or a trait, reads who the
    main character is in them, and keeps both in the graph; `kgbias stories links RUN` says which
    attributes go with which group. Models that decline to generalise about groups tell stories all
    the same. What a model invents says nothing about anyone real.
    """


OUTCOME_COLUMNS = ("ok", "unparsable", "refused", "failed")


@stories.command(
    short_help="Have a model tell stories, and read them (the default).",
    examples=("kgbias stories --model smollm2 --category trade --samples 2 --dry-run",),
)
@model_option
@people_options("name (the words for a person)", "gender, ethnicity, trade or trait")
@click.option("--prompts", metavar="NAME-or-FOLDER", help="The prompt pack (default: stories).")
@rounds_options(StoryConfig)
def run(**options: Any) -> Output:
    """Have a model tell stories, and read from each who its main character is.

    Each person has one story in each sample, and each sample tells of something else (a day at
    work, a journey). Run the same command again to continue where it stopped: nothing is asked
    twice.
    """
    return write_or_price(story_calls.write_stories, _build_price_output, _print_run, **options)


def _print_run(run: kgbias.Run) -> None:
    result = cast(StoriesSummary, run.generation_summary)
    total = result.outcome_totals
    show.say(
        f"run {run.name}: "
        f"{pluralise(total.total(), 'story', 'stories')}, {total['refused']} refused, "
        f"{total['unparsable']} of which nothing was read, {total['failed']} failed; "
        f"{describe_asking(result)}",
        f"in how many stories each attribute was read, by {result.reader}",
    )
    if result.readings:
        bad = {name: result.readings[name] for name in OUTCOME_COLUMNS[1:] if result.readings[name]}
        show.say(
            f"of {result.readings.total()} requests to read a story, {result.readings['ok']} were "
            f"answered as asked{''.join(f', {n} {name}' for name, n in bad.items())}; "
            f"{result.invented_counts.total()} values were left out because the story does not "
            f"have them"
        )
    attributes = list(
        dict.fromkeys(attribute for read in result.read_counts.values() for attribute in read)
    )
    show.print_table(
        ("", *(Column(name, "d") for name in ("stories", *attributes))),
        (
            (
                group,
                counts.total(),
                *(result.read_counts[group][attribute] for attribute in attributes),
            )
            for group, counts in result.outcomes.items()
        ),
    )


def _build_price_output(price: "StoriesPrice") -> Output:
    reading_note = ""
    if price.readings:
        reader_name = "the same model" if price.reader == "model" else price.reader
        reading_note = f" ({price.readings} of them for {reader_name} to read the stories)"
    line = (
        f"{pluralise(price.samples, 'story', 'stories')} about each of "
        f"{price.people} people in {pluralise(price.groups, 'group')}, "
        f"{'in messages' if price.form == 'chat' else 'as text to continue'}: {price.requests} "
        f"requests{reading_note} and at most {price.answer_tokens_at_most} answer tokens; nothing "
        f"was asked"
    )
    return build_price_output(price, asdict(price), [line])


@stories.command(
    short_help="Say which attributes go with which group.",
    examples=("kgbias stories links smollm2 --attribute occupation",),
)
@run_name_argument
@store_option
@click.option("--category", multiple=True, metavar="NAME", help="Only this category (repeatable).")
@click.option("--attribute", multiple=True, metavar="NAME", help="Only this one (repeatable).")
@setting("deals", type=int, help="How often the groups are dealt anew (default: 199).")
@shared_settings(seed=0)
@json_option
def links(run_name: str | None, store_url: str, **options: Any) -> Output:
    """Say which attributes go with which group in the stories of a run.

    A group's stories are compared with those about the other groups of its category: the log-odds
    ratio, Fisher's exact test, corrected within the group. The
    floor is how many such links are found when the groups are dealt anew over the stories.
    """
    with kgbias.open(store_url, progress=True) as study:
        story_links = story_calls.find_links(
            study.run(run_name, kind="stories"), **drop_unset(**options)
        )
    return Output(story_links, lambda: _print_links(story_links))


def _print_links(story_links: "StoryLinks") -> None:
    show.say(f"what the stories say of their characters was read by {story_links.reader}")
    for floor in story_links.floor:
        floor_note = (
            f"with the groups dealt anew over the stories, {floor.mean:.2f} on average, and in 95% "
            f"of {floor.deals} deals at most {math.ceil(floor.high)}"
            if floor.deals
            else "the groups were not dealt anew, so it is not known how many would by chance"
        )
        show.say(
            f"{floor.category}: {floor.found} of {floor.tested} values differ from the other "
            f"groups' (corrected p <= 0.05); {floor_note}"
        )
    if not story_links.shown_links:
        return
    show.say("")
    show.print_table(
        (
            Column(""),
            Column("attribute"),
            Column("value"),
            Column("log-odds", "+.2f", interval=True),
            Column("stories", "d", joiner="/"),
            Column("others", "d", joiner="/"),
            Column("wordings", "d", joiner="/"),
            Column("q", ".3f"),
            Column(""),
        ),
        (
            (
                link.group,
                link.attribute,
                link.value,
                Estimate(link.log_odds, link.low, link.high, link.group_total),
                (link.stories, link.group_total),
                (link.others, link.others_total),
                (link.wordings, link.wordings_total),
                link.q_value,
                link.verdict,
            )
            for link in story_links.shown_links
        ),
    )
    for matching_links in story_links.mutual_links:
        invented_link, cast_link = matching_links.invented, matching_links.cast
        show.say(
            f"  {invented_link.group}, {invented_link.attribute} {invented_link.value}: log-odds "
            f"{invented_link.log_odds:+.2f} "
            f"(q {invented_link.q_value:.3f}); {cast_link.group}, {cast_link.attribute} "
            f"{cast_link.value}: {cast_link.log_odds:+.2f} "
            f"(q {cast_link.q_value:.3f})"
        )
