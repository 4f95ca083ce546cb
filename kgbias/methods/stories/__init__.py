"""Stories: what a model invents about a person of whom it is told one thing.

Stories are a kind of run beside crawls, imports and profiles, and not a pack of a crawl. A crawl
asks for one statement and shows what it found before; a story is asked for once, and yields as many
statements as its reader finds. The character that is read from a story is a profile
(`kgbias.graph.profiles`) whose parts know their place in the text. The story itself is the answer
in the log.

Rules read a story (`rule_reader`), or a model does in a second request (`model_reader`), whose
answer is a generation beside the story's. Whatever reads, a value has a place in the story.

    from kgbias.methods import stories

    run = stories.write_stories(study, "smollm2", category="gender")
    stories.find_links(run)
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from kgbias.io.tables_in_memory import Table
from kgbias.parameters import (
    BudgetOptions,
    GenerationOptions,
    ModelOptions,
    Names,
    as_names,
    check_options,
)
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.graph.store import Store
    from kgbias.io.rows import Rows
    from kgbias.methods.stories.config import StoryConfig
    from kgbias.methods.stories.contents import StoryRow
    from kgbias.methods.stories.links import StoryLinks
    from kgbias.methods.stories.write import StoriesPrice, StoriesSummary
    from kgbias.models.base import Completer
    from kgbias.study.run import Run
    from kgbias.study.study import Study


class StoryOptions(GenerationOptions, total=False):
    """Whom stories are about, and how to ask for them; see `write_stories`."""

    people: Table | None
    category: Names
    group: Names
    seeds: Names
    prompts: str | Path | None
    form: Literal["chat", "completion"] | None
    reader: str | None


class StorySpending(StoryOptions, ModelOptions, BudgetOptions, total=False):
    """The same, how the model is opened, and what the call may spend."""


@overload
def write_stories(
    study: "Study",
    model: "str | Completer",
    *,
    name: str | None = None,
    dry_run: Literal[False] = False,
    **options: Unpack[StorySpending],
) -> "Run": ...


@overload
def write_stories(
    study: "Study",
    model: "str | Completer",
    *,
    name: str | None = None,
    dry_run: Literal[True],
    **options: Unpack[StorySpending],
) -> "StoriesPrice": ...


@public_call
def write_stories(
    study: "Study",
    model: "str | Completer",
    *,
    name: str | None = None,
    dry_run: bool = False,
    **options: Unpack[StorySpending],
) -> "Run | StoriesPrice":
    """Ask a model for short stories about people of whom it is told one thing (a group, a trade
    or a trait), read what it invents about them, and put both into the graph.

    Repeat the call to continue where it stopped; nothing that was answered is asked again.

    Args:
        study: the study, whose store keeps the run.
        model: a spec, or a model opened by `kgbias.open_model`.
        name: a name for the run (None: a descriptive one).
        dry_run: ask and open nothing, and return what the call would ask.
        options: what this call may spend (`max_requests`, `max_tokens`, `max_cost` ...; see
            `Study.crawl`); how to open a spec (`device`, `dtype` and `batch_size` for a local
            model, `base_url`, `concurrency` and `timeout` for a server); whom to tell of:
            `people` (a CSV file with the columns name, group and category; None: those of the
            `prompts`), only those of a `category` or `group`; how: `form` ("chat" or
            "completion"), `samples` of each person (8), `temperature`, `min_p`, `seed`; and
            what reads the stories: `reader`, "rules" (the default), "model" (the same model, in
            a second request) or another's spec, which is opened as `model` is if it is of the
            same kind, and otherwise as its kind is by default.

    Raises:
        UsageError: an unknown name, a number out of range, or money to be counted with a second
            model as the reader, whose prices are its own.
        MissingExtra: spaCy and its English model, which read the stories, are not installed.
        RunConflict: `name` is taken by a run with other settings.
        ModelError: the model cannot be loaded or reached.
        Interrupted: on Ctrl-C or when a budget is spent; answers so far are kept.
    """
    if dry_run:
        return _price(model, **options)
    from kgbias.methods.stories import write
    from kgbias.methods.stories.config import configure_stories
    from kgbias.methods.stories.second_reader import open_second_reader
    from kgbias.study.opening import settle_form
    from kgbias.study.writing import write_run

    def write_and_read(
        config: "StoryConfig", completer: "Completer", store: "Store", **how: Any
    ) -> "StoriesSummary":
        progress = how["progress"]
        with open_second_reader(config.reader, completer, options, progress) as opened:
            if opened is not None:
                form = settle_form(opened, "", config.reading_form, None, progress)
                config = replace(config, reading_form=form or config.reading_form)
            second_reader = opened and study.context.apply_display_name(opened)
            return write.write_stories(config, completer, store, reader=second_reader, **how)

    call_options = check_options(options, StorySpending)
    return write_run(
        study.context, model, call_options, configure_stories, write_and_read, name, "stories"
    )


def _price(model: "str | Completer", **options: Unpack[StorySpending]) -> "StoriesPrice":
    from kgbias.methods.stories.config import RULES, configure_stories
    from kgbias.methods.stories.second_reader import check_reader_prices
    from kgbias.methods.stories.write import stories_price
    from kgbias.study.writing import price_run

    call_options = check_options(options, StorySpending)
    price = price_run(model, call_options, configure_stories, stories_price)
    check_reader_prices(options.get("reader") or RULES, options)
    return price


@public_call
def list_stories(run: "Run") -> "Rows[StoryRow]":
    """The stories of a run of stories, whole, each with what was read from it and where.

    Frame columns: category, group, name, text, attributes (a list of what was read).

    Args:
        run: the run of stories.

    Raises:
        UsageError: not a run of stories.
    """
    from kgbias.methods.stories.contents import story_rows

    return story_rows(run.stored)


@public_call
def find_links(
    run: "Run",
    *,
    category: Names = (),
    attribute: Names = (),
    deals: int | None = None,
    seed: int = 0,
) -> "StoryLinks":
    """Which attributes go with which groups in the run's stories: log-odds ratios with
    intervals, exact tests, and how much is found when the groups are dealt
    anew over the stories.

    Args:
        run: the run of stories.
        category: the categories to look at (none: all).
        attribute: the attributes to look at (none: all).
        deals: how often the groups are dealt anew (None: 199).
        seed: the random seed of the deals.

    Raises:
        UsageError: the run has no stories, or lacks a category or attribute.
    """
    from kgbias.graph.profiles import describe_reader
    from kgbias.methods.stories import links
    from kgbias.methods.stories.contents import require_stories

    characters = require_stories(run.stored)
    with run.context.working() as progress:
        return links.find_links(
            characters,
            int(run.config["wordings"]),
            reader=describe_reader(run.config),
            categories=as_names(category),
            attributes=as_names(attribute),
            deals=links.DEFAULT_DEALS if deals is None else deals,
            seed=seed,
            progress=progress,
        )
