"""`kgbias measure` and `kgbias topics`: scores of triples, figures of groups, and topics."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import NAME_VALUE, Command
from kgbias.cli.options import (
    device_setting,
    json_option,
    parameter_options,
    run_name_argument,
    selection_options,
    store_option,
    warn_unfinished,
    workers_settings,
)
from kgbias.cli.settings import setting
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.io.columns import CellWithForm, Column
from kgbias.io.text import spoken_name
from kgbias.io.wording import pluralise
from kgbias.measure.configure import PRESETS, MeasureConfig
from kgbias.measure.scorer_agreement import format_kappa_interval
from kgbias.measure.scorers import OFFLINE_SPEC
from kgbias.measure.topics.shares import (
    describe_stability,
    entropy_verdict,
    explain_unfit,
    suggest_remedies,
)
from kgbias.measures import MEASURES, Figure, measure_of_figure, pick_headlines
from kgbias.parameters import SelectionOptions
from kgbias.stats.estimate import Estimate

if TYPE_CHECKING:
    from kgbias.measure.price import ScoringPrice


@click.command(
    cls=Command,
    section="Methods",
    short_help="Show a run's topics, and name them by hand.",
    examples=("kgbias topics smollm2 --rename gender:3 'Housework'",),
)
@run_name_argument
@store_option
@click.option(
    "--rename",
    nargs=2,
    metavar="ID NAME",
    help="Name a topic: its number or CATEGORY:NUMBER, then the name; an empty name removes it.",
)
@json_option
def topics(run_name: str | None, store_url: str, rename: tuple[str, str] | None) -> Output:
    """Show the topics found by `kgbias measure --topics` and how far they can be trusted, and name
    them by hand."""
    with kgbias.open(store_url) as study:
        run = study.run(run_name)
        if rename is not None:
            run.rename_topic(*rename)
        models = run.topic_models()
    if not models:
        raise UsageError(f"run {run.name!r} has no topics: kgbias measure {run.name} --topics")

    def print_text() -> None:
        for model in models:
            print_topics(model)

    return Output(
        {"run": run.name, "categories": [_topic_record(model) for model in models]}, print_text
    )


def _topic_record(model: Any) -> dict[str, Any]:
    rows = [
        {
            "id": f"{t.category}:{t.number}",
            "name": t.name,
            "size": t.size,
            "coherence": t.coherence,
            "stability": t.stability,
            "kept": t.kept,
            "words": t.words,
        }
        for t in model.topics
    ]
    return {
        "category": model.category,
        "topics": rows,
        "unfit": explain_unfit(model) or None,
        "settings": dict(model.settings),
    }


def print_topics(model: Any) -> None:
    """Print the topics of one category, and their quality as a whole."""
    settings = model.settings
    statement_note = (
        f"{pluralise(settings['statements'], 'statement')}, " if "statements" in settings else ""
    )
    show.say(
        "",
        f"topics of {model.category}: {len(model.topics)} in "
        f"{statement_note}{settings['documents']} "
        f"of them distinct; at least {settings['min_cluster_size']} make a topic; "
        f"{settings['outliers_before']} "
        f"outliers, {settings['outliers']} left",
    )
    rand_index = settings.get("adjusted_rand")
    if rand_index is not None:
        show.say(
            f"stability over {settings['seeds']} seeds: adjusted Rand index {rand_index:.2f}; the "
            f"largest topic "
            f"holds {100 * settings['largest_share']:.0f}% of the statements that have one"
        )
        stability_note = describe_stability(model)
        if stability_note:
            show.say(stability_note)
    elif model.topics:
        show.say("their stability was not measured: find them again with kgbias measure --topics")
    rows = []
    for topic in model.topics:
        words = ", ".join(topic.words[:8])
        name = f"{topic.name}: {words}" if topic.given else words
        rows.append((topic.number, topic.size, topic.stability, topic.kept, topic.coherence, name))
    columns = (
        Column("id", "d"),
        Column("size", "d"),
        Column("stable", ".2f"),
        Column("kept", ".2f"),
        Column("coherent", ".2f"),
        Column("name, and words"),
    )
    if rows:
        show.print_table(columns, rows)
    if explain_unfit(model):
        show.say(f"{entropy_verdict(model)}; {_word_with_options(suggest_remedies(model))}")


def _word_with_options(text: str) -> str:
    """The text with parameters of `measure` written as options."""
    from kgbias.cli.command import word_with_options

    return word_with_options(text, measure)


FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_SCORED_MEASURES = [
    measure.name for measure in MEASURES.own_entries.values() if not measure.in_vectors
]


class _ScorerType(click.ParamType[tuple[str, str]]):
    """MEASURE=SCORER, or MEASURE for the measure's own scorer."""

    name = "scorer"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[str, str]:
        measure, _, spec = value.partition("=")
        return measure, spec or OFFLINE_SPEC


def scorer_option(description: str, more_choices: str = "") -> Callable[[FunctionT], FunctionT]:
    """--scorer, whose help says by `description` what it names, and after the usual choices
    `more_choices`."""
    return click.option(
        "--scorer",
        "scorers",
        type=_ScorerType(),
        multiple=True,
        metavar="MEASURE=SCORER",
        help=f"{description} ({', '.join(_SCORED_MEASURES)}, or one added by a package; "
        f"repeatable): "
        "offline, hf:ID-or-PATH[:LABEL] for a Hugging Face classifier, llm:SPEC for a language "
        "model that judges by a rubric, multilingual:LANGUAGE for other languages, "
        f"scores:FILE[::COLUMN], openai-moderation{more_choices}. MEASURE "
        "alone means its own scorer (default: offline).",
    )


def group_by_measure(scorers: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    """The scorers that `scorer_option` gave, by measure."""
    specs_by_measure: dict[str, list[str]] = {}
    for name, spec in scorers:
        specs_by_measure.setdefault(name, []).append(spec)
    return specs_by_measure


@click.command(
    cls=Command,
    section="Main workflow",
    short_help="Score a run's triples and compute group figures.",
    examples=("kgbias measure smollm2 --topics",),
)
@run_name_argument
@store_option
@click.option(
    "--preset",
    metavar="NAME",
    help=f"Everything as in a paper: {', '.join(PRESETS)}; other options given override it.",
)
@scorer_option(
    "What scores a measure",
    ", or none. Given several for a measure, the first counts, and their agreement is shown",
)
@parameter_options(MeasureConfig)
@setting(
    "labels",
    type=NAME_VALUE,
    multiple=True,
    metavar="LABEL=MEANING",
    help="What a label of the regard classifier means, such as LABEL_0=negative.",
)
@device_setting
@workers_settings
@selection_options
@click.option("--dry-run", is_flag=True, help="Show what there is to do, and stop.")
@json_option
def measure(
    run_name: str | None,
    store_url: str,
    scorers: tuple[tuple[str, str], ...],
    labels: Any,
    dry_run: bool,
    **options: Any,
) -> Output:
    """Score a run's triples by regard, toxicity, identity attack and acceptability (whether they
    make sense), place them on the axes of warmth and competence, find topics if asked, and compute
    each group's figures."""
    options_given = {name: value for name, value in options.items() if value not in (None, ())}
    if specs_by_measure := group_by_measure(scorers):
        options_given["scorers"] = specs_by_measure
    if labels:
        options_given["labels"] = dict(labels)
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if dry_run:
            return build_reading_price_output(
                run.measure(dry_run=True, **options_given), run=run.name
            )
        groups = run.measure(**options_given)
        has_several = any(len(specs) > 1 for specs in specs_by_measure.values())
        selection = {
            name: options_given[name]
            for name in SelectionOptions.__annotations__
            if name in options_given
        }
        agreement = run.agreement(**selection) if has_several else ()
        topics = run.topic_models()
        warn_unfinished(run)
    data: dict[str, Any] = {"run": run.name, "groups": [_group_record(row) for row in groups]}
    if agreement:
        data["agreement"] = agreement

    def print_text() -> None:
        published = any(model.settings.get("entropy") == "as_published" for model in topics)
        print_groups(groups, "relative_entropy" if published else "relative_entropy_as_published")
        if options["topics"] or options["preset"]:
            for model in topics:
                print_topics(model)
        for measure_agreement in agreement:
            _print_agreement(measure_agreement)

    return Output(data, print_text)


def build_reading_price_output(rows: "kgbias.Rows[ScoringPrice]", **record_fields: str) -> Output:
    """What each scorer has to read; in JSON beside what it is of."""
    return Output({**record_fields, "scorers": rows}, lambda: _print_reading_price(rows))


def _print_reading_price(rows: "kgbias.Rows[ScoringPrice]") -> None:
    show.print_table(
        ("", "", ""),
        ((spoken_name(row.measure), row.scorer, _describe_reading(row)) for row in rows),
    )
    show.say("nothing was opened, scored or asked")


def _describe_reading(row: Any) -> str:
    line = f"{row.statements} to read"
    if row.scored:
        line += f", {row.scored} already {'kept' if row.measure == 'vectors' else 'scored'}"
    if row.requests:
        line += (
            f"; {pluralise(row.requests, 'request')}, with repeated attempts at most "
            f"{row.requests_at_most}"
        )
    if row.answer_tokens_at_most:
        line += f" and {row.answer_tokens_at_most} answer tokens"
    if row.texts_with_names_at_most:
        line += f"; with other names in them at most {row.texts_with_names_at_most} texts"
    return line


def _group_record(row: Any) -> dict[str, Any]:
    data = {"group": row.group, "category": row.category, "arm": row.arm}
    if overall := row.figures.get("overall_regard"):
        data["n"] = overall.n
    return data | {name: figure.as_dict() for name, figure in row.figures.items()}


def print_groups(groups: Any, hidden: str) -> None:
    """Print a line for each group in each arm, without the figure `hidden`."""
    figure_names = {name for row in groups for name in row.figures} - {hidden}
    shown_figures = pick_headlines(figure_names)
    if any(figure.over == "chosen" for figure in shown_figures):
        show.say(
            "means over statements whose predicate the model chose; over all statements: --json"
        )
    if any(figure.raw for figure in shown_figures):
        show.say(
            "corrected by labels for what the scorer gets wrong, beside what the "
            "scorer alone says (raw); intervals cover the scorer's errors. Labels: how many of the "
            "group's statements; or of all groups, where the group is taken for one like the others"
        )
    has_several_arms = len({row.arm for row in groups}) > 1
    # A figure is printed with the number of statements that it is of: once, where all are of one.
    have_one_number = all(len(_statement_numbers(row, shown_figures)) < 2 for row in groups)
    number = Column("n", "d")
    columns = [Column("group")]
    if has_several_arms:
        columns.append(Column("arm"))
    columns.append(Column("statements", "d"))
    if have_one_number:
        columns.append(number)
        show.say("n: how many of the statements a group's figures are of")
    for figure in shown_figures:
        if not have_one_number:
            columns.append(number)
        columns.append(Column(figure.column, figure.form, interval=True, title=figure.column))
        if figure.raw:
            columns += [Column("raw", figure.form), Column("labels", "d")]
    rows = []
    for row in groups:
        cells = [row.group, *([row.arm] if has_several_arms else []), row.statements]
        if have_one_number:
            cells.append(next(iter(_statement_numbers(row, shown_figures)), None))
        for figure in shown_figures:
            estimate = row.figures.get(figure.name)
            if not have_one_number:
                cells.append(estimate.n if estimate else None)
            cells.append(_figure_cell(figure, estimate))
            if figure.raw:
                cells += [row.figures.get(figure.raw), estimate.labels if estimate else None]
        rows.append(cells)
    show.print_table(columns, rows)
    shown_names = {figure.name for figure in shown_figures}
    if any(
        "wordings" in row.figures[n].covers
        for row in groups
        for n in shown_names & row.figures.keys()
    ):
        show.say(
            "intervals allow for other wordings of the prompts, and are wide where the few that "
            "were asked disagree; differences between groups: kgbias compare"
        )


def _figure_cell(figure: Figure, estimate: Any) -> Any:
    """A figure with its interval; of a balance, such as the overall regard, the mean, which has the
    scale of all the others."""
    if estimate is None or estimate.withheld:
        return estimate and "withheld"
    measure = measure_of_figure(figure.name)
    if measure and measure.ends_of_signs and figure.statistic == "total":
        shown_estimate = Estimate(estimate.value, estimate.low, estimate.high, estimate.n)
        mean = shown_estimate.divide(max(1, estimate.n)).keep_within(*measure.ends_of_signs)
        return CellWithForm(mean, measure.form)
    return estimate


def _statement_numbers(row: Any, shown: Any) -> set[int]:
    """The numbers of statements that a group's figures are of."""
    estimates = (row.figures.get(figure.name) for figure in shown)
    return {e.n for e in estimates if e is not None and not e.withheld}


def _print_agreement(agreement: Any) -> None:
    moved_groups = ", ".join(
        f"{moved_group.group} {moved_group.first:g} to {moved_group.second:g}"
        for moved_group in agreement.moved
    )
    show.say(
        "",
        f"{spoken_name(agreement.measure)} by {agreement.first} and by {agreement.second}: kappa "
        f"{agreement.kappa.value:.2f} ({format_kappa_interval(agreement.kappa)}), rank correlation "
        f"{agreement.rho.value:.2f} "
        f"({agreement.rho.format_interval('.2f')}), {agreement.same.value:.0%} of {agreement.n} "
        f"labels the same; places of "
        f"groups by their bare means that differ (not tested): {moved_groups or 'none'}",
    )
