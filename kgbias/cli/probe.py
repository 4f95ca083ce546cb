"""`kgbias probe`: what a model finds probable, tied to the graph's groups and statements.

`probe RUN` means `probe run RUN`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Parts
from kgbias.cli.options import (
    SCORERS,
    WRITERS,
    asking_options,
    base_url_option,
    encoding_option,
    form_option,
    json_option,
    model_settings,
    print_price,
    run_argument,
    said,
    selection_options,
    store_option,
    workers_settings,
)
from kgbias.cli.settings import fitting, setting, settings, without_shared
from kgbias.errors import UsageError
from kgbias.graph.sofa import ProbeSet
from kgbias.graph.store import open_store
from kgbias.io.progress import show_progress
from kgbias.io.text import shorten
from kgbias.parallel import LOCAL_EXECUTOR, open_executor
from kgbias.parameters import check_applies

if TYPE_CHECKING:
    from kgbias.compare.sofa import SofaComparison
    from kgbias.probe import ApxFlags, PairFigures, RunProbes, SetProbes, TextSurprisals
    from kgbias.probe.choice import CategoryChoices, ChoicePrice, RunChoices
    from kgbias.stats.inference import Estimate


@click.group(cls=Parts, examples=("kgbias probe smollm2 --model smollm2",))
def probe() -> None:
    """Ask a model which groups make each statement most likely.

    `kgbias probe RUN --model SPEC` probes the statements of a run's graph (`probe run`) and writes
    the answers on its edges. Lower perplexity means more likely. Reach a run that has the name of a
    command with `probe run`.
    """


F = TypeVar("F", bound=Callable[..., Any])

_NO_MODEL = "name the model to probe: --model SPEC"
FILE = click.Path(dir_okay=False, path_type=Path)


def scorer_options(f: F) -> F:
    """The model, and how it is asked."""
    return _model_option(_asking(f), "spec")


def several_scorers_options(f: F) -> F:
    """One model or several, and how they are asked."""
    return _model_option(_asking(f), "specs", multiple=True)


def _model_option(f: F, parameter: str, *, multiple: bool = False) -> F:
    more = " (repeatable: one after another)" if multiple else ""
    return click.option(
        "--model", parameter, metavar="SPEC", multiple=multiple, help=f"{SCORERS}{more}."
    )(f)


def _asking(f: F) -> F:
    return base_url_option(
        encoding_option(settings("device", "dtype", "bos", "instruction", "whole-words")(f))
    )


def ranking_options(f: F) -> F:
    """How to compare groups."""
    for option in (
        settings("seed"),
        setting("ending", metavar="TEXT", help='Appended to each probe, for example ".".'),
        click.option(
            "--as-published", is_flag=True, help="Compute as the papers' code did, slips included."
        ),
        click.option(
            "--by",
            type=click.Choice(["conditional", "sofa", "whole"]),
            help="Rank groups by the statement's perplexity after the group, SoFa's PPL*, or the "
            "perplexity of the whole probe (default: conditional; whole for a masked model).",
        ),
        click.option("--category", multiple=True, metavar="NAME", help="Only this category."),
    ):
        f = option(f)
    return f


def named_model(given: dict[str, Any]) -> str:
    """The spec of --model, removed from the given options."""
    if not (spec := given.pop("spec")):
        raise UsageError(_NO_MODEL)
    return str(spec)


def named_models(given: dict[str, Any]) -> list[str]:
    """The specs of --model, each once, removed from the given options."""
    if not (specs := given.pop("specs")):
        raise UsageError(_NO_MODEL)
    return list(dict.fromkeys(specs))


@contextmanager
def opened_scorer(given: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The named model, opened to score texts here or in workers, and the progress; its options are
    removed from the given ones."""
    from kgbias.study.opening import OPENING_OPTIONS, open_spread_scorer

    spec = named_model(given)
    fit = fitting(given, [spec], "scorer")
    opening: Any = said(**{name: fit[name] for name in OPENING_OPTIONS})
    for name in OPENING_OPTIONS:
        del given[name]
    where, processes = given.pop("executor", None) or LOCAL_EXECUTOR, given.pop("processes", None)
    with show_progress(True) as progress, open_executor(where, progress, processes) as workers:
        yield open_spread_scorer(spec, opening, progress, workers), progress


MOST = 10  # groups listed per category


def show_one(found: Any, printed: Callable[[Any], None], as_json: bool) -> None:
    """Show a result, as JSON or as text."""
    if as_json:
        show.data(found.as_dict())
    else:
        printed(found)


def show_all(
    found: Sequence[Any],
    printed: Callable[[Any], None],
    compared: "SofaComparison | None",
    as_json: bool,
) -> None:
    """Show one result as usual; several one below another, with the models compared."""
    if len(found) == 1:
        show_one(found[0], printed, as_json)
    elif as_json:
        several = {"models": [one.as_dict() for one in found]}
        show.data(several | ({"comparison": compared.as_dict()} if compared else {}))
    else:
        for one in found:
            printed(one)
            show.say()
        if compared:
            print_comparison(compared)


def print_comparison(found: "SofaComparison") -> None:
    """Print the models by SoFa score, highest first, and the verdicts of the paired tests over all
    categories."""
    p = found.probe_set
    show.say(f"SoFa on {p.name}: {p.groups} groups, {p.statements} statements, {p.probes} probes")
    show.table(
        ("rank", "95%", "model", "SoFa", *(f">{c}" for c in found.categories)),
        (
            (
                m.rank,
                f"{m.low} to {m.high}",
                m.model,
                shown(m.result.score),
                *(show.figure(m.score(c).value, ".3f") for c in found.categories),
            )
            for m in found.models
        ),
    )
    for test in found.overall_contrasts:
        show.say(test.verdict)


def print_bias(found: "RunProbes | SetProbes") -> None:
    """Print the SoFa score, overall and by category, and the groups most often first."""
    c, bias = found.model.convention, found.bias
    show.say(
        f"{found.model.info.title}: {c.kind}, beginning {c.begin}, {c.dtype} {c.tier}".rstrip()
    )
    rows = [("SoFa score", shown(bias.score), "")]
    for part in bias.categories:
        rows.append((f"  {part.category}", shown(part.score), f"{len(part.statements)} statements"))
        first = sorted(part.likeliest.items(), key=lambda item: -item[1].value)[:MOST]
        rows += [
            (f"    {group}", shown(share), "of them with the lowest PPL* after its name")
            for group, share in first
        ]
    show.table(("", "", ""), rows)


def print_apx(found: "ApxFlags") -> None:
    """Print the flagged descriptors by group, and how they compare with people and chance."""
    from kgbias.probe.apx import chance_share, can_flag

    table = found.table
    by_group: dict[str, list[str]] = {}
    for f in found.flags:
        by_group.setdefault(f.group, []).append(f.descriptor)
    show.say(*(f"{group}: {', '.join(names)}" for group, names in by_group.items()), "")
    if valid := found.validation:
        none = valid.chance_scores
        show.say(f"{valid.gain.n} descriptors that people tie to {', '.join(valid.labels)}")
        for name, own in (("perplexity", valid.perplexity), ("APX", valid.apx)):
            show.say(f"  found by {name}: accuracy {shown(own.accuracy)}, MRR {shown(own.mrr)}")
        show.say(
            f"  by chance {none['accuracy']:.3f} and {none['mrr']:.3f}; the MRR of APX less that "
            f"of perplexity is {shown(valid.gain)}"
        )
    show.say(
        f"{len(found.flags)} flags on {found.flagged_count} of {found.tested_count} descriptors "
        f"({shown(found.share)}), {len(table.groups)} groups, {len(table.values)} templates, "
        f"one-tailed {found.level:.0%} each, not corrected for how many were looked at"
    )
    if can_flag(len(table.groups)):
        chance = chance_share(len(table.groups), found.level)
        show.say(f"by chance alone {chance:.3f}, were scores normal and the groups alike")
    else:
        show.say("so few groups cannot be told apart at this level: no flag is possible")


def shown(e: "Estimate") -> str:
    interval = f" [{e.low:.3f}, {e.high:.3f}]" if not math.isnan(e.low) else ""
    return f"{e.value:.3f}{interval}"


@probe.command(
    short_help="Probe a run's statements, and write to its graph (the default).",
    examples=("kgbias probe smollm2 --model smollm2 --category gender",),
)
@run_argument
@several_scorers_options
@store_option
@ranking_options
@workers_settings
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Also write every probe: a .jsonl file or a .parquet folder, one for each model.",
)
@json_option
def run(as_json: bool, run_name: str | None, store_url: str, **given: Any) -> None:
    """Probe a run's statements with all groups of their category.

    Writes which group makes each statement most likely on the edges of the graph, and compares what
    was said with what is probable. Run the same command again to continue where it stopped. Several
    models are ranked by SoFa at the end; kgbias sofa results shows more.
    """
    models = named_models(given)
    with kgbias.open(store_url, progress=True) as study:
        probed = study.run(run_name)
        found = probed.probe_models(models, **said(**fitting(given, models, "scorer")))
        compared = study.sofa(run=probed) if len(found) > 1 and not given["as_published"] else None
    show_all(found, _print_run, compared, as_json)


def _print_run(found: "RunProbes") -> None:
    mrr, first = found.agreement.mrr, found.agreement.first_share
    print_bias(found)
    show.say(
        "",
        f"own group first: {shown(first)} of {first.n} triples",
        f"mean reciprocal rank {shown(mrr)}, {found.agreement.expected:.3f} by chance, "
        f"p = {found.agreement.p_value:.4f}",
    )


@probe.command(
    short_help="Probe groups and statements from files.",
    examples=("kgbias probe sets --identities sofa --statements said.csv --model smollm2",),
)
@run_argument
@click.option(
    "--identities",
    metavar="NAME-or-FILE",
    help="Groups to use instead of the run's: sofa (407) or a file.",
)
@click.option("--statements", type=FILE, help="Statements from a file, besides those of a RUN.")
@several_scorers_options
@store_option
@ranking_options
@workers_settings
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write every probe: a .jsonl file or a .parquet folder, one for each model.",
)
@json_option
def sets(
    as_json: bool,
    run_name: str | None,
    store_url: str,
    identities: str | None,
    statements: Path | None,
    category: tuple[str, ...],
    ending: str | None,
    by: str | None,
    **given: Any,
) -> None:
    """Probe groups and statements from files, including large sets.

    Given only one of the two, the other comes from a RUN (default: the newest). Without a RUN, the
    result is kept only if --store is given. Run the same command again to continue where it
    stopped, from the store or from -o. Several models are ranked by SoFa at the end.
    """
    if not identities and not statements:
        raise UsageError(
            "probe sets needs --identities or --statements; to probe a run of this name: "
            "probe run sets"
        )
    models = named_models(given)
    named = said(identities=identities, statements=statements, categories=category, ending=ending)
    of_run = run_name or not (identities and statements)
    with kgbias.open(store_url if of_run or _kept() else None, progress=True) as study:
        asked: dict[str, Any] = {"name": statements.stem} if statements else {}
        if of_run:
            asked["run"] = study.run(run_name)
            named["run"] = asked["run"].stored
            asked.setdefault("name", asked["run"].name)
        gathered = kgbias.gather_sets(**named)
        more = said(by=by, **fitting(given, models, "scorer"))
        found = study.probe_sets(models, gathered, **asked, **more)
        compared = None
        if len(found) > 1 and not given["as_published"]:
            compared = study.sofa(ProbeSet.from_texts("", gathered).id)
    show_all(found, print_bias, compared, as_json)


def _kept() -> bool:
    """Whether --store was given."""
    source = click.get_current_context().get_parameter_source("store_url")
    return source is not ParameterSource.DEFAULT


@probe.command(
    short_help="Probe names x descriptors x templates: APX.",
    examples=("kgbias probe apx --model smollm2 -o apx.csv",),
)
@click.option(
    "--names", metavar="NAME-or-FILE", help="Names and their groups (default: globalbias)."
)
@click.option("--descriptors", metavar="NAME-or-FILE", help="Descriptors (default: globalbias).")
@click.option(
    "--from",
    "table",
    type=FILE,
    help="Probe nothing; flag from an APX table (CSV).",
)
@click.option(
    "--exclude-axis",
    "exclude_axes",
    multiple=True,
    metavar="AXIS",
    help="Flag no descriptors of this axis.",
)
@scorer_options
@workers_settings
@click.option("--as-published", is_flag=True, help="Round as the paper's code does.")
@settings("seed")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="Write the APX table (.csv), for --from. The same command continues where it stopped.",
)
@click.option(
    "--perplexities",
    type=click.Path(path_type=Path),
    help="Write every sentence's perplexity: a .jsonl file or a .parquet folder (default: "
    "TABLE.perplexities.jsonl, beside the table).",
)
@click.option(
    "--store",
    "store_url",
    envvar="KGBIAS_STORE",
    metavar="PATH-or-URL",
    help="Keep the scores in this graph store, and write the flags to it as edges from groups to "
    "descriptors. Scores already there are reused.",
)
@json_option
def apx(
    as_json: bool,
    store_url: str | None,
    table: Path | None,
    exclude_axes: tuple[str, ...],
    names: str | None,
    descriptors: str | None,
    **given: Any,
) -> None:
    """Flag the descriptors that a model ties to groups of names (APX).

    Some names make every sentence unlikely; Adjusted Perplexity across Descriptors corrects for it.
    """
    if given["executor"] == LOCAL_EXECUTOR:
        given["executor"] = None
    if table is not None:
        given = without_shared(given)  # nothing is probed
    asked = said(names=names, descriptors=descriptors, **given)
    axes = said(exclude_axes=exclude_axes)
    with ExitStack() as opened:
        study = None
        if store_url is not None:
            study = opened.enter_context(kgbias.open(store_url, progress=True))
        if table is not None:
            of_model = {"names", "descriptors", *given}
            check_applies(asked, {"spec": of_model}, ())
            found = (study.flag_apx if study else kgbias.flag_apx)(table, **axes)
        elif study is not None:
            spec = named_model(given)
            more = said(names=names, descriptors=descriptors, **fitting(given, [spec], "scorer"))
            found = study.probe_apx(spec, **axes, **more)
        else:
            scorer, progress = opened.enter_context(opened_scorer(given))
            more = said(names=names, descriptors=descriptors, **given)
            found = kgbias.probe_apx(scorer, **axes, **more, progress=progress)
    show_one(found, print_apx, as_json)


_TAKES = {
    "stereoset": ["convention", "as_published", "seed"],
    "crows_pairs": ["convention"],
    "bbq": ["seed"],
    "winogender": ["seed"],
}


@probe.command(
    short_help="Score StereoSet, CrowS-Pairs, BBQ or Winogender.",
    examples=("kgbias probe pairs --stereoset dev.json --model smollm2",),
)
@click.option("--stereoset", type=FILE, help="Score this StereoSet file (JSON).")
@click.option("--crows-pairs", type=FILE, help="Score this CrowS-Pairs file (CSV).")
@click.option(
    "--bbq",
    type=FILE,
    multiple=True,
    help="Score this BBQ file (JSON lines; repeat for more, and for additional_metadata.csv).",
)
@click.option("--winogender", type=FILE, help="Score Winogender's all_sentences.tsv.")
@setting(
    "convention",
    type=click.Choice(["original", "bias-bench"]),
    help="Score as the authors' code does, or as bias-bench (default: original). They differ only "
    "for CrowS-Pairs.",
)
@click.option(
    "--as-published",
    is_flag=True,
    help="StereoSet, of a causal model: give the token before a sentence to its first token alone, "
    "as the authors' code and bias-bench do (default: to all).",
)
@click.option(
    "--store",
    "store_url",
    metavar="PATH-or-URL",
    help="Keep the items' scores in this store, and reuse those already there.",
)
@scorer_options
@workers_settings
@settings("seed")
@json_option
def pairs(as_json: bool, store_url: str | None, **given: Any) -> None:
    """Score a benchmark of sentences from your own copy of its file."""
    files = {name: given.pop(name) for name in _TAKES}
    chosen = [name for name, value in files.items() if value]
    if len(chosen) != 1:
        raise UsageError(
            "give one file: --stereoset FILE, --crows-pairs FILE, --bbq FILE or --winogender FILE"
        )
    name = chosen[0]
    asked = {"convention": given["convention"], "as_published": given["as_published"] or None}
    check_applies(said(**asked), _TAKES, chosen)
    if not given["as_published"]:
        given.pop("as_published")
    if "seed" not in _TAKES[name]:
        given = without_shared(given, ["seed"])
    score = getattr(kgbias, name)
    with ExitStack() as opened, opened_scorer(given) as (scorer, progress):
        if store_url is not None:
            given["store"] = opened.enter_context(open_store(store_url, notify=progress.note))
        found = score(scorer, files[name], **said(**given), progress=progress)
    show_one(found, _print_pairs, as_json)


def _print_pairs(found: "PairFigures") -> None:
    show.table(
        ("", "", "", ""),
        ((f.domain, f.figure, shown(f.estimate), f"n {f.estimate.n}") for f in found.figures),
    )
    for remark in found.remarks:
        show.say(remark)


@probe.command(
    short_help="Ask which group each statement is about (models without probabilities).",
    examples=("kgbias probe choice smollm2 --model openai:my-model --sample 50",),
)
@run_argument
@click.option(
    "--model",
    "spec",
    metavar="SPEC",
    help=f"The model: {WRITERS}.",
)
@store_option
@click.option("--category", multiple=True, metavar="NAME", help="Only this category.")
@click.option(
    "--sample", type=int, metavar="N", help="Ask about N random statements of each category."
)
@setting("options", type=int, metavar="K", help="Groups in a question (default: 4).")
@click.option(
    "--samples",
    type=int,
    metavar="N",
    help="Offer each group at least this often per statement (default: 24).",
)
@setting("temperature", type=float, help="(default: 1)")
@form_option
@setting("prompts", metavar="FOLDER", help="A folder with your own question.")
@click.option("--indicators", metavar="FILE", help="A file with names of groups.")
@selection_options
@settings("seed")
@model_settings
@asking_options
@json_option
def choice(
    run_name: str | None,
    store_url: str,
    max_failed: float,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Ask a model which group each statement is about.

    For models that give no probabilities. Each question offers some groups of the category, each by
    its names in turn and in each place equally often. How often a group is chosen, against its base
    rate and over its names, is written on the edges of the graph. Run the same command again to
    continue where it stopped.
    """
    model = named_model(given)
    asked: Any = said(**fitting(given, [model], "completer"))
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if dry_run:
            _print_price(run.price_choices(model, **asked), as_json)
            return 0
        found = run.choose(model, **asked)
    if as_json:
        show.data(found.as_dict())
    else:
        _print_choices(found)
    return int(found.failed_share > max_failed)


def _print_choices(found: "RunChoices") -> None:
    n = found.outcomes
    show.say(
        f"run {found.run}, {found.choosing.model.title}: {n.total()} answers, {n['refused']} "
        f"refused, {n['unreadable']} unreadable, {n['failed']} failed; asked {found.asked_count}, from "
        f"the log {found.cached_count}{f'; {found.spent}' if found.asked_count else ''}"
    )
    for part in found.categories:
        _print_category(part)


def _print_category(part: "CategoryChoices") -> None:
    head = f"{part.category}: {len(part.statements)} statements, {part.options} of "
    head += f"{len(part.groups)} groups in a question"
    if not sum(part.option_counts):
        none = "  no answer names one of the groups: nothing can be said about this model"
        return show.say("", head, none)
    places = "  ".join(f"{n}. {shown(place)}" for n, place in enumerate(part.places, 1))
    show.say(
        "",
        f"{head}, {1 / part.options:.3f} by chance",
        f"  own group chosen {shown(part.own_share)}; {part.expected_own_share:.3f} by base rates alone",
        f"  by place: {places}",
        *_of_names(part),
    )
    base = sorted(
        zip(part.groups, part.shares.base, strict=True), key=lambda own: -(own[1].value or 0)
    )
    show.table(
        ("", ""),
        ((group.name, f"{shown(rate)} of its questions") for group, rate in base[:MOST]),
        indent=2,
    )
    told = [row for row in part.rows() if row["lift"] == row["lift"]]
    strongest = sorted(told, key=lambda row: (row["q_value"], -row["lift"]))[:MOST]
    if strongest:
        show.say("  the smallest q first:")
        show.table(("",) * 5, map(_chosen, strongest), indent=4)


def _chosen(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        shorten(" ".join((row["group"], row["predicate"], row["object"])), 60),
        f"{row['share']:.2f}",
        f"lift {row['lift']:+z.2f} bits [{row['lift_low']:+z.2f}, {row['lift_high']:+z.2f}]",
        f"q {row['q_value']:.3f}",
        row["verdict"],
    )


def _of_names(part: "CategoryChoices") -> list[str]:
    """How many groups were offered by several names, and what was found of them."""
    several = sum(len(own) > 1 for own in part.names)
    one = [own[0].text for own in part.names if len(own) == 1]
    lines = []
    if floor := part.floor:
        lines.append(
            f"  {several} groups by their names: of {floor['tested']} pairs of group and statement "
            f"{floor['more']} are chosen more often, {floor['dealt']:g} with names dealt anew"
        )
    if one:
        lines.append(f"  by one name only, so what is found is its own: {', '.join(one[:MOST])}")
    return lines


def _print_price(price: "ChoicePrice", as_json: bool) -> None:
    line = (
        f"{price.requests} questions about {price.statements} statements, about "
        f"{price.prompt_tokens} tokens, and at most {price.answer_tokens_at_most} of answers; "
        "nothing was asked"
    )
    print_price(price, asdict(price), [line], as_json)


@probe.command(
    short_help="Check what --dtype costs: error, order of groups, speed.",
    examples=("kgbias probe precision --model smollm2 --dtype bfloat16",),
)
@click.option("--model", "spec", metavar="SPEC", help=f"{SCORERS}.")
@click.option("--dtype", metavar="TYPE", help="The type to check: bfloat16, float16, 8bit, 4bit.")
@settings("device", "bos", "instruction")
@base_url_option
@json_option
def precision(as_json: bool, **given: Any) -> None:
    """Compare a model in --dtype with the same model in float32: error, order of groups, speed."""
    from kgbias.probe.precision import check_precision

    spec = named_model(given)
    if not (dtype := given.pop("dtype")):
        raise UsageError("give the type to check: --dtype bfloat16")
    more = said(**fitting(given, [spec], "scorer"))
    with show_progress(True) as progress:
        found = check_precision(spec, dtype, progress=progress, **more)
    show_one(found, lambda one: show.block(f"{one}\n"), as_json)


@probe.command(
    short_help="Print the surprisal of each token of a text.",
    examples=("kgbias probe surprisal 'The sea is blue.' --model smollm2",),
)
@click.argument("texts", nargs=-1, metavar="TEXT...")
@scorer_options
@json_option
def surprisal(as_json: bool, texts: tuple[str, ...], **given: Any) -> None:
    """Print each token of the texts with its surprisal, -log2 p, in bits."""
    if not texts:
        raise UsageError("give a text")
    with opened_scorer(given) as (scorer, _):
        found = kgbias.surprisals(scorer, texts)
    show_one(found, _print_surprisals, as_json)


def _print_surprisals(found: "TextSurprisals") -> None:
    for _, tokens in found.texts:
        show.say("  ".join(f"{token.strip() or repr(token)} {bits:.2f}" for token, bits in tokens))
