"""`kgbias probe`: what a model finds probable, tied to the graph's groups and statements.

`probe RUN` means `probe run RUN`.

To add a part of `kgbias probe`, add a command to its group here; a method's part is an entry point
of the group "kgbias.parts".
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

import kgbias
from kgbias.cli import show
from kgbias.cli.command import CommandGroup
from kgbias.cli.options import (
    SCORER_SPECS,
    base_url_option,
    drop_unset,
    encoding_option,
    json_option,
    run_name_argument,
    store_option,
    workers_settings,
)
from kgbias.cli.settings import keep_applicable, setting, shared_settings
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.graph.sofa import ProbeSet
from kgbias.io.columns import Column
from kgbias.io.progress import show_progress
from kgbias.io.wording import pluralise
from kgbias.parallel import LOCAL_EXECUTOR, open_executor
from kgbias.stats.estimate import Estimate

if TYPE_CHECKING:
    from kgbias.compare.sofa import SofaComparison
    from kgbias.probe import RunProbes, SetProbes, TextSurprisals


@click.group(
    cls=CommandGroup,
    section="Methods",
    short_help="Ask which group a model finds likeliest (SoFa, APX).",
    examples=("kgbias probe smollm2 --model smollm2",),
)
def probe() -> None:
    """Ask a model which groups make each statement most likely.

    `kgbias probe RUN --model SPEC` probes the statements of a run's graph (`probe run`) and writes
    the answers on its edges. Lower perplexity means more likely. Reach a run that has the name of a
    command with `probe run`.
    """


FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_NO_MODEL = "name the model to probe: --model SPEC"
FILE_TYPE = click.Path(dir_okay=False, path_type=Path)


def scorer_options(function: FunctionT) -> FunctionT:
    """The model, and how it is asked."""
    return _model_option(_scoring_options(function), "spec")


def several_scorers_options(function: FunctionT) -> FunctionT:
    """One model or several, and how they are asked."""
    return _model_option(_scoring_options(function), "specs", multiple=True)


def _model_option(function: FunctionT, parameter: str, *, multiple: bool = False) -> FunctionT:
    repeatable_note = " (repeatable: one after another)" if multiple else ""
    return click.option(
        "--model",
        parameter,
        metavar="SPEC",
        multiple=multiple,
        help=f"{SCORER_SPECS}{repeatable_note}.",
    )(function)


def _scoring_options(function: FunctionT) -> FunctionT:
    return base_url_option(
        encoding_option(
            shared_settings("device", "dtype", "bos", "instruction", "whole-words")(function)
        )
    )


def ranking_options(function: FunctionT) -> FunctionT:
    """How to compare groups."""
    for option in (
        shared_settings("seed"),
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
        function = option(function)
    return function


def pop_model(options: dict[str, Any]) -> str:
    """The spec of --model, removed from the given options."""
    spec = options.pop("spec")
    if not spec:
        raise UsageError(_NO_MODEL)
    return str(spec)


def pop_models(options: dict[str, Any]) -> list[str]:
    """The specs of --model, each once, removed from the given options."""
    specs = options.pop("specs")
    if not specs:
        raise UsageError(_NO_MODEL)
    return list(dict.fromkeys(specs))


@contextmanager
def open_named_scorer(options: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The named model, opened to score texts here or in workers, and the progress; its options are
    removed from the given ones."""
    from kgbias.study.opening import OPENING_OPTIONS, open_spread_scorer

    spec = pop_model(options)
    options_kept = keep_applicable(options, [spec], "scorer")
    opening: Any = drop_unset(**{name: options_kept[name] for name in OPENING_OPTIONS})
    for name in OPENING_OPTIONS:
        del options[name]
    executor = options.pop("executor", None) or LOCAL_EXECUTOR
    processes = options.pop("processes", None)
    with show_progress(True) as progress, open_executor(executor, progress, processes) as workers:
        yield open_spread_scorer(spec, opening, progress, workers), progress


MAX_GROUPS_LISTED = 10  # groups listed per category


def build_results_output(
    results: Sequence[Any],
    print_result: Callable[[Any], None],
    comparison: "SofaComparison | None",
) -> Output:
    """One result as usual; several one below another, with the models compared."""
    if len(results) == 1:
        return Output(results[0], lambda: print_result(results[0]))

    def print_text() -> None:
        for result in results:
            print_result(result)
            show.say()
        if comparison:
            print_comparison(comparison)

    data: dict[str, Any] = {"models": list(results)}
    if comparison:
        data["comparison"] = comparison
    return Output(data, print_text)


def print_comparison(comparison: "SofaComparison") -> None:
    """Print the models by SoFa score, highest first, and the verdicts of the paired tests over all
    categories."""
    probe_set = comparison.probe_set
    show.say(
        f"SoFa on {probe_set.name}: {pluralise(probe_set.groups, 'group')}, "
        f"{pluralise(probe_set.statements, 'statement')}, {pluralise(probe_set.probes, 'probe')}"
    )
    show.print_table(
        (
            Column("rank", "d", interval=True),
            Column("model"),
            Column("SoFa", ".3f", interval=True, title="SoFa"),
            *(Column(category, ".3f", title=category) for category in comparison.categories),
        ),
        (
            (
                Estimate(model_rank.rank, model_rank.low, model_rank.high, probe_set.statements),
                model_rank.model,
                model_rank.result.score,
                *map(model_rank.score, comparison.categories),
            )
            for model_rank in comparison.models
        ),
    )
    for test in comparison.overall_contrasts:
        show.say(test.verdict)


def print_bias(probes: "RunProbes | SetProbes") -> None:
    """Print the SoFa score, overall and by category, and the groups most often first."""
    convention, bias = probes.model.convention, probes.bias
    show.say(
        f"{probes.model.info.title}: {convention.kind}, beginning {convention.begin}, "
        f"{convention.dtype} {convention.tier}".rstrip()
    )
    rows = [("SoFa score", format_estimate(bias.score), "")]
    for category_result in bias.categories:
        rows.append(
            (
                f"  {category_result.category}",
                format_estimate(category_result.score),
                f"{pluralise(len(category_result.statements), 'statement')}",
            )
        )
        likeliest = sorted(category_result.likeliest.items(), key=lambda item: -item[1].value)[
            :MAX_GROUPS_LISTED
        ]
        rows += [
            (f"    {group}", format_estimate(share), "of them with the lowest PPL* after its name")
            for group, share in likeliest
        ]
    show.print_table(("", "", ""), rows)


def format_estimate(estimate: "Estimate") -> str:
    interval = f" [{estimate.low:.3f}, {estimate.high:.3f}]" if estimate.is_shown else ""
    return f"{estimate.value:.3f}{interval}"


@probe.command(
    short_help="Probe a run's statements, and write to its graph (the default).",
    examples=("kgbias probe smollm2 --model smollm2 --category gender",),
)
@run_name_argument
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
def run(run_name: str | None, store_url: str, **options: Any) -> Output:
    """Probe a run's statements with all groups of their category.

    Writes which group makes each statement most likely on the edges of the graph, and compares what
    was said with what is probable. Run the same command again to continue where it stopped. Several
    models are ranked by SoFa at the end; kgbias sofa results shows more.
    """
    models = pop_models(options)
    with kgbias.open(store_url, progress=True) as study:
        run_probed = study.run(run_name)
        results = run_probed.probe_models(
            models, **drop_unset(**keep_applicable(options, models, "scorer"))
        )
        comparison = (
            study.sofa(run=run_probed) if len(results) > 1 and not options["as_published"] else None
        )
    return build_results_output(results, _print_run, comparison)


def _print_run(probes: "RunProbes") -> None:
    mrr, first_share = probes.agreement.mrr, probes.agreement.first_share
    print_bias(probes)
    show.say(
        "",
        f"own group first: {format_estimate(first_share)} of {first_share.n} triples",
        f"mean reciprocal rank {format_estimate(mrr)}, {probes.agreement.expected:.3f} by chance, "
        f"p = {probes.agreement.p_value:.4f}",
    )


@probe.command(
    short_help="Probe groups and statements from files.",
    examples=("kgbias probe sets --identities sofa --statements said.csv --model smollm2",),
)
@run_name_argument
@click.option(
    "--identities",
    metavar="NAME-or-FILE",
    help="Groups to use instead of the run's: sofa (407) or a file.",
)
@click.option(
    "--statements", type=FILE_TYPE, help="Statements from a file, besides those of a RUN."
)
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
    run_name: str | None,
    store_url: str,
    identities: str | None,
    statements: Path | None,
    category: tuple[str, ...],
    ending: str | None,
    by: str | None,
    **options: Any,
) -> Output:
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
    models = pop_models(options)
    set_options = drop_unset(
        identities=identities, statements=statements, categories=category, ending=ending
    )
    needs_run = run_name or not (identities and statements)
    with kgbias.open(store_url if needs_run or _is_store_given() else None, progress=True) as study:
        library_options: dict[str, Any] = {"name": statements.stem} if statements else {}
        if needs_run:
            library_options["run"] = study.run(run_name)
            set_options["run"] = library_options["run"].stored
            library_options.setdefault("name", library_options["run"].name)
        probe_sets = kgbias.gather_sets(**set_options)
        model_options = drop_unset(by=by, **keep_applicable(options, models, "scorer"))
        results = study.probe_sets(models, probe_sets, **library_options, **model_options)
        comparison = None
        if len(results) > 1 and not options["as_published"]:
            comparison = study.sofa(ProbeSet.from_texts("", probe_sets).id)
    return build_results_output(results, print_bias, comparison)


def _is_store_given() -> bool:
    """Whether --store was given."""
    source = click.get_current_context().get_parameter_source("store_url")
    return source is not ParameterSource.DEFAULT


@probe.command(
    short_help="Check what --dtype costs: error, order of groups, speed.",
    examples=("kgbias probe precision --model smollm2 --dtype bfloat16",),
)
@click.option("--model", "spec", metavar="SPEC", help=f"{SCORER_SPECS}.")
@click.option("--dtype", metavar="TYPE", help="The type to check: bfloat16, float16, 8bit, 4bit.")
@shared_settings("device", "bos", "instruction")
@base_url_option
@json_option
def precision(**options: Any) -> Output:
    """Compare a model in --dtype with the same model in float32: error, order of groups, speed."""
    from kgbias.probe.precision import check_precision

    spec = pop_model(options)
    dtype = options.pop("dtype")
    if not dtype:
        raise UsageError("give the type to check: --dtype bfloat16")
    library_options = drop_unset(**keep_applicable(options, [spec], "scorer"))
    with show_progress(True) as progress:
        result = check_precision(spec, dtype, progress=progress, **library_options)
    return Output(result, lambda: show.print_block(f"{result}\n"))


@probe.command(
    short_help="Print the surprisal of each token of a text.",
    examples=("kgbias probe surprisal 'The sea is blue.' --model smollm2",),
)
@click.argument("texts", nargs=-1, metavar="TEXT...")
@scorer_options
@json_option
def surprisal(texts: tuple[str, ...], **options: Any) -> Output:
    """Print each token of the texts with its surprisal, -log2 p, in bits."""
    if not texts:
        raise UsageError("give a text")
    with open_named_scorer(options) as (scorer, _):
        result = kgbias.surprisals(scorer, texts)
    return Output(result, lambda: _print_surprisals(result))


def _print_surprisals(result: "TextSurprisals") -> None:
    for _, tokens in result.texts:
        show.say("  ".join(f"{token.strip() or repr(token)} {bits:.2f}" for token, bits in tokens))
