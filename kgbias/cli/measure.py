"""`kgbias measure` and `kgbias topics`: scores of triples, figures of groups, and topics."""

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import PAIR, Command
from kgbias.cli.options import (
    device_setting,
    json_option,
    run_argument,
    selection_options,
    store_option,
    warn_unfinished,
    workers_settings,
)
from kgbias.cli.settings import setting
from kgbias.errors import UsageError
from kgbias.graph.selection import SelectionOptions
from kgbias.io.text import spoken_name
from kgbias.measure.configure import PRESETS, MeasureConfig
from kgbias.measure.scorers import OFFLINE_SPEC
from kgbias.measure.topics.model import EntropyForm, Outliers, ClusterSelection
from kgbias.measure.topics.shares import suggest_remedies, describe_stability, explain_unfit, entropy_verdict
from kgbias.measures import MEASURES, Figure, headlines, measure_of
from kgbias.stats.estimate import Estimate


@click.command(cls=Command, examples=("kgbias topics smollm2 --rename gender:3 'Housework'",))
@run_argument
@store_option
@click.option(
    "--rename",
    nargs=2,
    metavar="ID NAME",
    help="Name a topic: its number or CATEGORY:NUMBER, then the name; an empty name removes it.",
)
@json_option
def topics(
    run_name: str | None, store_url: str, rename: tuple[str, str] | None, as_json: bool
) -> None:
    """Show the topics found by `kgbias measure --topics` and how far they can be trusted, and name
    them by hand."""
    with kgbias.open(store_url) as study:
        run = study.run(run_name)
        if rename is not None:
            run.rename_topic(*rename)
        models = run.topic_models()
    if not models:
        raise UsageError(f"run {run.name!r} has no topics: kgbias measure {run.name} --topics")
    if as_json:
        show.data({"run": run.name, "categories": [_topic_data(model) for model in models]})
        return
    for model in models:
        print_topics(model)


def _topic_data(model: Any) -> dict[str, Any]:
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
    s = model.settings
    said = f"{s['statements']} statements, " if "statements" in s else ""
    show.say(
        "",
        f"topics of {model.category}: {len(model.topics)} in {said}{s['documents']} "
        f"of them distinct; at least {s['min_cluster_size']} make a topic; {s['outliers_before']} "
        f"outliers, {s['outliers']} left",
    )
    if (rand := s.get("adjusted_rand")) is not None:
        show.say(
            f"stability over {s['seeds']} seeds: adjusted Rand index {rand:.2f}; the largest topic "
            f"holds {100 * s['largest_share']:.0f}% of the statements that have one"
        )
        if told := describe_stability(model):
            show.say(told)
    elif model.topics:
        show.say("their stability was not measured: find them again with kgbias measure --topics")
    rows = []
    for t in model.topics:
        words = ", ".join(t.words[:8])
        name = f"{t.name}: {words}" if t.given else words
        rows.append(
            (
                t.number,
                t.size,
                show.figure(t.stability, ".2f"),
                show.figure(t.kept, ".2f"),
                show.figure(t.coherence, ".2f"),
                name,
            )
        )
    if rows:
        show.table((">id", ">size", ">stable", ">kept", ">coherent", "name, and words"), rows)
    if explain_unfit(model):
        show.say(f"{entropy_verdict(model)}; {_with_flags(suggest_remedies(model))}")


def _with_flags(text: str) -> str:
    """The text with parameters of `measure` written as options."""
    from kgbias.cli.command import with_options

    return with_options(text, measure)


F = TypeVar("F", bound=Callable[..., Any])
_SCORED = [measure.name for measure in MEASURES.own_entries.values() if not measure.in_vectors]


def _option(*names: str, show: str | None = None, **more: Any) -> Callable[[F], F]:
    """An option whose default is in `MeasureConfig`, so that a preset knows what was given."""
    more["help"] += f" (default: {show or _default(names[-1])})"
    return click.option(*names, default=None, **more)


def _setting(name: str, show: str | None = None, **more: Any) -> Callable[[F], F]:
    """A setting whose default is there."""
    more["help"] += f" (default: {show or _default(name)})"
    return setting(name, **more)


def _default(name: str) -> str:
    return str(getattr(MeasureConfig, name.lstrip("-").replace("-", "_")))


class _Scorer(click.ParamType[tuple[str, str]]):
    """MEASURE=SCORER, or MEASURE for the measure's own scorer."""

    name = "scorer"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[str, str]:
        measure, _, spec = value.partition("=")
        return measure, spec or OFFLINE_SPEC


def scorer_option(what: str, more: str = "") -> Callable[[F], F]:
    """--scorer, which says `what` it names and what `more` it can be."""
    return click.option(
        "--scorer",
        "scorers",
        type=_Scorer(),
        multiple=True,
        metavar="MEASURE=SCORER",
        help=f"{what} ({', '.join(_SCORED)}, or one added by a package; repeatable): "
        "offline, hf:ID-or-PATH[:LABEL] for a Hugging Face classifier, llm:SPEC for a language "
        "model that judges by a rubric, multilingual:LANGUAGE for other languages, "
        f"scores:FILE[::COLUMN], openai-moderation{more}. MEASURE "
        "alone means its own scorer (default: offline).",
    )


def by_measure(scorers: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    """The scorers that `scorer_option` gave, by measure."""
    found: dict[str, list[str]] = {}
    for name, spec in scorers:
        found.setdefault(name, []).append(spec)
    return found


@click.command(cls=Command, examples=("kgbias measure smollm2 --topics",))
@run_argument
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
@_option(
    "--axes/--no-axes",
    "axes",
    show="axes",
    help="Whether to place statements on the axes of warmth and competence.",
)
@_option(
    "--topics/--no-topics",
    "topics",
    show="no topics",
    help="Whether to find topics, and each group's relative entropy.",
)
@setting(
    "labels",
    type=PAIR,
    multiple=True,
    metavar="LABEL=MEANING",
    help="What a label of the regard classifier means, such as LABEL_0=negative.",
)
@_setting(
    "embedding",
    metavar="VECTORS",
    help="The embedding for topics and axes: hf:ID-or-PATH of any sentence-transformers model, "
    "or vectors:FILE (GloVe, word2vec, fastText).",
)
@_setting(
    "min-topic-size",
    type=click.IntRange(min=2),
    show="statements / 40, at least 5",
    help="The minimum number of distinct statements in a topic.",
)
@_setting(
    "outliers",
    type=click.Choice(get_args(Outliers)),
    help="Statements in no topic: keep them out, or assign them to the nearest.",
)
@_setting(
    "topic-clusters",
    type=click.Choice(get_args(ClusterSelection)),
    help="Which clusters become topics: the smallest (leaf), or those that persist longest (eom).",
)
@_setting(
    "topic-seed",
    type=int,
    help="The first of the five random seeds used to find topics.",
)
@_setting(
    "entropy",
    type=click.Choice(get_args(EntropyForm)),
    help="The relative entropy to show: corrected and in bits, or Eq. 1 as printed in the paper.",
)
@device_setting
@workers_settings
@selection_options
@click.option("--dry-run", is_flag=True, help="Show what there is to do, and stop.")
@json_option
def measure(
    run_name: str | None,
    store_url: str,
    as_json: bool,
    scorers: tuple[tuple[str, str], ...],
    labels: Any,
    dry_run: bool,
    **options: Any,
) -> None:
    """Score a run's triples by regard, toxicity, identity attack and acceptability (whether they
    make sense), place them on the axes of warmth and competence, find topics if asked, and compute
    each group's figures."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if own := by_measure(scorers):
        given["scorers"] = own
    if labels:
        given["labels"] = dict(labels)
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if dry_run:
            print_price(run.price_measure(**given), as_json, run=run.name)
            return
        groups = run.measure(**given)
        several = any(len(specs) > 1 for specs in own.values())
        selection = {name: given[name] for name in SelectionOptions.__annotations__ if name in given}
        agreement = run.agreement(**selection) if several else ()
        topics = run.topic_models()
        warn_unfinished(run)
    if as_json:
        data = {"run": run.name, "groups": [_as_data(row) for row in groups]}
        if agreement:
            data["agreement"] = agreement.records()
        show.data(data)
        return
    published = any(model.settings.get("entropy") == "as_published" for model in topics)
    print_groups(groups, "relative_entropy" if published else "relative_entropy_as_published")
    if options["topics"] or options["preset"]:
        for model in topics:
            print_topics(model)
    for found in agreement:
        _print_agreement(found)


def print_price(rows: Any, as_json: bool, **of: str) -> None:
    """Print what each scorer has to read; in JSON beside what it is of."""
    if as_json:
        show.data({**of, "scorers": rows.records()})
        return
    show.table(
        ("", "", ""),
        ((spoken_name(row.measure), row.scorer, _to_read(row)) for row in rows),
    )
    show.say("nothing was opened, scored or asked")


def _to_read(row: Any) -> str:
    line = f"{row.statements} to read"
    if row.scored:
        line += f", {row.scored} already {'kept' if row.measure == 'vectors' else 'scored'}"
    if row.requests:
        line += f"; {row.requests} requests, with repeated attempts at most {row.requests_at_most}"
    if row.answer_tokens_at_most:
        line += f" and {row.answer_tokens_at_most} answer tokens"
    if row.texts_with_names_at_most:
        line += f"; with other names in them at most {row.texts_with_names_at_most} texts"
    return line


def _as_data(row: Any) -> dict[str, Any]:
    data = {"group": row.group, "category": row.category, "arm": row.arm}
    if overall := row.figures.get("overall_regard"):
        data["n"] = overall.n
    return data | {name: figure.as_dict() for name, figure in row.figures.items()}


def print_groups(groups: Any, hidden: str) -> None:
    """Print a line for each group in each arm, without the figure `hidden`."""
    there = {name for row in groups for name in row.figures} - {hidden}
    shown = headlines(there)
    if any(figure.over == "chosen" for figure in shown):
        show.say(
            "means over statements whose predicate the model chose; over all statements: --json"
        )
    if any(figure.raw for figure in shown):
        show.say(
            "corrected by labels for what the scorer gets wrong, beside what the "
            "scorer alone says (raw); intervals cover the scorer's errors. Labels: how many of the "
            "group's statements; or of all groups, where the group is taken for one like the others"
        )
    several = len({row.arm for row in groups}) > 1
    # A figure is printed with the number of statements that it is of: once, where all are of one.
    of_one = all(len(_numbers(row, shown)) < 2 for row in groups)
    head = ["group", *(["arm"] if several else []), ">statements", *([">n"] if of_one else [])]
    for figure in shown:
        head += [] if of_one else [">n"]
        head += [f">{figure.column}", ">95% interval", *([">raw", ">labels"] * bool(figure.raw))]
    if of_one:
        show.say("n: how many of the statements a group's figures are of")
    rows = []
    for row in groups:
        cells = [row.group, *([row.arm] if several else []), row.statements]
        cells += [next(iter(_numbers(row, shown)), "-")] if of_one else []
        for figure in shown:
            e = row.figures.get(figure.name)
            cells += [] if of_one else [e.n if e else "-"]
            cells += _as_mean(figure, e) if e else ("-", "-")
            if figure.raw:
                raw = row.figures.get(figure.raw)
                cells += [show.figure(raw.value, figure.form) if raw else "-"]
                cells += [e.labels if e else "-"]
        rows.append(cells)
    show.table(head, rows)


def _as_mean(figure: Figure, e: Any) -> tuple[str, str]:
    """A figure and its interval; of a balance, such as the overall regard, the mean, which has the
    scale of all the others."""
    measure, form = measure_of(figure.name), figure.form
    found = Estimate(e.value, e.low, e.high, e.n)
    if measure and measure.ends_of_signs and figure.statistic == "total":
        form = measure.form
        found = found.divide(max(1, e.n)).clip(*measure.ends_of_signs)
    return "withheld" if e.withheld else show.figure(found.value, form), found.interval(form)


def _numbers(row: Any, shown: Any) -> set[int]:
    """The numbers of statements that a group's figures are of."""
    there = (row.figures.get(figure.name) for figure in shown)
    return {e.n for e in there if e is not None and not e.withheld}


def _print_agreement(a: Any) -> None:
    moved = ", ".join(f"{m.group} {m.first:g} to {m.second:g}" for m in a.moved)
    show.say(
        "",
        f"{spoken_name(a.measure)} by {a.first} and by {a.second}: kappa "
        f"{a.kappa.value:.2f} ({a.kappa.interval('.2f')}), rank correlation {a.rho.value:.2f} "
        f"({a.rho.interval('.2f')}), {a.same.value:.0%} of {a.n} labels the same; places of "
        f"groups by their bare means that differ (not tested): {moved or 'none'}",
    )
