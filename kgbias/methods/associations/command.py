"""`kgbias associate`: association tests on word vectors and language models."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command, SectionOption
from kgbias.cli.options import (
    drop_unset,
    json_option,
    model_settings,
    workers_settings,
)
from kgbias.cli.settings import drop_shared, setting, shared_settings
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.graph.store import DEFAULT_STORE
from kgbias.io.columns import Column
from kgbias.io.progress import show_progress
from kgbias.io.wording import pluralise
from kgbias.methods import associations
from kgbias.stats.estimate import Estimate

if TYPE_CHECKING:
    from kgbias.methods.associations.family import Associations
    from kgbias.methods.associations.graph import RegardAgreement
    from kgbias.methods.associations.grid import GridCost, GridResult


FILE_TYPE = click.Path(dir_okay=False, path_type=Path)
COUNT_TYPE = click.IntRange(1)


def _section_option(section: str, *names: str, **attributes: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=SectionOption, section=section, **attributes)


TESTED_SECTION = "What is tested"
STATISTICS_SECTION = "Statistics of every method"
ENCODER_SECTION = "s-SEAT, w-SEAT and CEAT"
CONTEXTS_SECTION = "Where words are found: all but WEAT"
CEAT_SECTION = "CEAT, and CEAT over LPBS"
LPBS_SECTION = "LPBS"
GRAPH_SECTION = "A run's graph"
GRID_SECTION = "The parameter study of Mind Your Bias"


@click.command(
    cls=Command,
    examples=(
        "kgbias associate --model smollm2 --test weat6,weat7 --method w-seat,ceat",
        "kgbias associate --vectors glove.txt --test all",
    ),
)
@_section_option(
    TESTED_SECTION,
    "--vectors",
    type=FILE_TYPE,
    help="Static word vectors: word2vec, GloVe or fastText.",
)
@setting(
    "vector-format",
    metavar="FORMAT",
    help="auto, word2vec, word2vec-binary, glove or fasttext-binary (default: auto).",
)
@setting("exact-case", type=bool, default=False, help="Do not look up Amy as amy in the vectors.")
@_section_option(
    TESTED_SECTION,
    "--model",
    "models",
    multiple=True,
    metavar="SPEC",
    help="smollm2, reference, reference-masked, minilm, hf:ID-or-PATH or hf:PATH:FILE.gguf; "
    "repeatable.",
)
@_section_option(
    TESTED_SECTION,
    "--test",
    "tests",
    multiple=True,
    metavar="NAMES",
    help="Tests by name, separated by commas: weat1 to weat10, C1, C3-term ..., or all.",
)
@_section_option(
    TESTED_SECTION,
    "--tests-file",
    type=FILE_TYPE,
    help="Your own tests (TOML, see docs/how-to/groups.md).",
)
@_section_option(
    TESTED_SECTION,
    "--method",
    "methods",
    multiple=True,
    metavar="NAMES",
    help="weat, s-seat, w-seat, ceat, lpbs, ceat-lpbs, and for word vectors rnd, rnsb, mac, ect, "
    "ripa; separated by commas (default: weat for --vectors, w-seat for --model).",
)
@setting(
    "spread",
    type=click.Choice(["sample", "population", "pooled"]),
    help="The standard deviation in d: ddof 1, ddof 0, or Cohen's pooled, not for CEAT "
    "(default: sample).",
)
@setting(
    "tails",
    type=click.Choice(["one", "two"]),
    help="Tails of the p-value (default: one for WEAT and SEAT, two for CEAT and LPBS).",
)
@setting(
    "p",
    "how",
    type=click.Choice(["auto", "exact", "sampled", "normal"]),
    help="How to compute the permutation p-value (default: auto: exact if the partitions can "
    "be counted, else sampled).",
)
@setting(
    "samples",
    type=COUNT_TYPE,
    help="Partitions to draw if there are too many to count (default: 99999).",
)
@shared_settings("seed")
@_section_option(
    STATISTICS_SECTION,
    "--as-published",
    is_flag=True,
    help="Use each method's conventions from its paper.",
)
@setting(
    "unit",
    type=click.Choice(["word", "sentence"]),
    help="SEAT and LPBS: what permutations exchange (default: word).",
)
@_section_option(
    ENCODER_SECTION,
    "--encoding",
    metavar="NAME",
    help="word-average, word-first or word-last for w-SEAT (default: word-average); cls, last or "
    "mean for s-SEAT (default: the model's own); any for CEAT (default: word-average).",
)
@_section_option(
    ENCODER_SECTION,
    "--layer",
    type=int,
    help="Hidden layer: 0 is the input embeddings, -1 the last (default: -1).",
)
@_section_option(
    ENCODER_SECTION,
    "--search",
    is_flag=True,
    help="s-SEAT and w-SEAT: the best of all layers (s-SEAT: and encodings), with p corrected for "
    "the search.",
)
@_section_option(
    CONTEXTS_SECTION,
    "--contexts",
    type=FILE_TYPE,
    help="A corpus: one text per line, or JSON lines (default: templates).",
)
@setting(
    "most",
    type=COUNT_TYPE,
    help="With --contexts: maximum texts per word, or for LPBS per pair of words (default: 1000).",
)
@setting(
    "window",
    type=click.IntRange(0),
    help="With --contexts: words to keep on either side of the word (default: the whole text).",
)
@setting(
    "apart",
    type=click.IntRange(0),
    help="With --contexts and LPBS: maximum words between target and attribute (default: 18).",
)
@_section_option(
    CEAT_SECTION,
    "--generate",
    type=COUNT_TYPE,
    metavar="N",
    help="Let the model write N contexts per word.",
)
@setting("draws", type=click.IntRange(2), help="Draws of one context per word (default: 10000).")
@setting(
    "variance",
    type=click.Choice(["published", "cohen"]),
    help="The in-sample variance of a draw (default: published).",
)
@setting(
    "words",
    type=click.Choice(["full", "reduced", "simplified", "nouns"]),
    help="The word sets (default: full).",
)
@setting(
    "pool",
    type=click.Choice(["mean", "sum"]),
    help="How to pool the targets of a set (default: mean; as published: sum).",
)
@setting(
    "kind",
    type=click.Choice(["auto", "masked", "causal"]),
    help="Require this kind of model (default: auto).",
)
@_section_option(
    GRAPH_SECTION,
    "--groups",
    metavar="X,Y",
    help="Test two groups of the run by their indicators; all: every pair within a category.",
)
@_section_option(
    GRAPH_SECTION,
    "--every-group",
    is_flag=True,
    help="SC-WEAT of each group of the run, with its regard.",
)
@_section_option(
    GRAPH_SECTION,
    "--attributes",
    metavar="NAME",
    help="The attributes to test groups on: pleasant, warmth, competence, career, science, "
    "mathematics, traits; or regard, the run's own words (default: pleasant).",
)
@_section_option(
    GRAPH_SECTION,
    "--topics",
    metavar="A,B",
    help="Instead: the words of two topics, each given as CATEGORY:NUMBER or by one of its words.",
)
@setting(
    "targets",
    type=click.Choice(["terms", "names", "paraphrases"]),
    help="The kind of indicators (default: the first that both groups have).",
)
@_section_option(
    GRAPH_SECTION,
    "--indicators",
    type=FILE_TYPE,
    help="Your own indicators and attributes (TOML, see docs/how-to/groups.md).",
)
@_section_option(
    GRAPH_SECTION, "--arm", metavar="NAME", help="The augmentation arm, if the run has several."
)
@_section_option(
    GRAPH_SECTION,
    "--store",
    "store_url",
    envvar="KGBIAS_STORE",
    metavar="PATH-or-URL",
    help="Write the results to this graph store (default with --run: kgbias.db).",
)
@_section_option(
    GRAPH_SECTION, "--run", "run_name", metavar="NAME", help="The run that the results belong to."
)
@_section_option(
    GRID_SECTION,
    "--grid",
    is_flag=True,
    help="Run every valid setting of every method on every test and model (see the methods page). "
    "-o names a folder; --encoding, words and targets hold one value.",
)
@_section_option(
    GRID_SECTION, "--dry-run", is_flag=True, help="Show the size of the grid, and stop."
)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Write a comparison: .tex, .csv, .png, .pdf or .svg (repeatable). With --grid: a folder.",
)
@model_settings
@workers_settings
@setting("cache", type=bool, default=True, help="Whether to keep embeddings on disk.")
@json_option
def associate(
    outputs: Sequence[Path],
    store_url: str | None,
    run_name: str | None,
    cache: bool,
    grid: bool,
    dry_run: bool,
    **options: Any,
) -> Output:
    """Run association tests: WEAT, s-SEAT, w-SEAT, CEAT and LPBS.

    A positive effect ties the first target set to the first attribute set. p-values are exact if
    the partitions can be counted, else sampled; p Holm and p BH correct for all tests of the call.
    An option applies to the methods that have it; if none of them does, it is an error.
    """
    if grid or dry_run:
        if not grid:
            raise UsageError("--dry-run needs --grid")
        return _run_grid(options, outputs, store_url, run_name, cache, dry_run)
    from kgbias.methods.associations.family import associate as run_tests

    if not options["vectors"] and not options["models"]:
        raise UsageError("say what to test: --vectors FILE or --model SPEC")
    for path in outputs:
        if not path.suffix:
            raise UsageError(f"{path} needs an extension: .tex, .csv, .png, .pdf or .svg")
    options["tests"], options["methods"] = (
        split_names(options["tests"]),
        split_names(options["methods"]),
    )
    if options["groups"] != "all":
        options["groups"] = _parse_pair(
            options["groups"], "--groups takes two groups, or all: --groups women,men"
        )
    options["topics"] = _parse_pair(
        options["topics"], "--topics takes two topics: --topics gender:0,gender:1"
    )
    if not options["models"]:
        options = drop_shared(options, ["device", "dtype", "executor", "processes"])
    needs_run = run_name or options["groups"] or options["every_group"]
    library_options = drop_unset(**options) | {"cache": cache}
    if store_url or needs_run:
        with kgbias.open(store_url or DEFAULT_STORE, progress=True) as study:
            source = study.run(run_name) if needs_run else study
            results = associations.associate(source, **library_options)
    else:
        with show_progress(True) as progress:
            results = run_tests(**library_options, progress=progress)
    for path in outputs:
        from kgbias.methods.associations.paper_files import write_comparison

        write_comparison(results.test_records(), path)

    def print_text() -> None:
        print_tests(results.test_records())
        print_group_associations(results.groups)
        print_left_out_tests(results)

    return Output(results, print_text)


def split_names(values: Sequence[str]) -> tuple[str, ...]:
    """The names in a repeatable, comma-separated option."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def _parse_pair(text: str | None, message: str) -> tuple[str, str] | None:
    if text is None:
        return None
    match split_names([text]):
        case (first, second):
            return first, second
    raise UsageError(message)


_TEST_COLUMNS = (
    Column("test"),
    Column("method"),
    Column("model"),
    Column("d", "+.4f", interval=True),
    Column("p", ".3g"),
    Column("p Holm", ".3g"),
    Column("p BH", ".3g"),
    Column("n", "d"),
)


def print_group_associations(agreement: "RegardAgreement | None") -> None:
    """Print every group's SC-WEAT, if asked for."""
    if agreement is None or not agreement.groups:
        return
    show.say()
    show.print_table(
        (
            Column("group"),
            Column("SC-WEAT d", "+.3f", interval=True),
            Column("regard", "+.0f"),
        ),
        ((g.group.name, g.effect, g.regard) for g in agreement.groups),
    )
    if not math.isnan(agreement.correlation):
        show.say(
            f"rank correlation of the two: {agreement.correlation:+z.2f} over "
            f"{pluralise(len(agreement.groups), 'group')}, not tested"
        )
    words = f"{agreement.a.concept} against {agreement.b.concept}"
    show.say(f"d: {words}; above 0 is nearer to the first")


def print_left_out_tests(results: "Associations") -> None:
    """Print what was asked for but not tested, and why."""
    for line in results.left_out:
        show.say(f"left out: {line}")


def print_tests(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table, then what a reader must know about it."""
    if not rows:
        return
    show.print_table(_TEST_COLUMNS, map(_test_cells, rows))
    notes = dict.fromkeys(note for row in rows for note in _list_notes(row))
    tested = sum(not math.isnan(row["p_holm"]) for row in rows)
    if tested > 1:
        notes[f"p Holm, p BH: corrected over the {tested} tests of this call"] = None
    if notes:
        show.say("", *notes)


def _test_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        row["test"],
        row["method"],
        row["model"],
        Estimate(row["effect_size"], row["low"], row["high"], 0),
        row.get("p_permutation", row["p_value"]),
        row["p_holm"],
        row["p_bh"],
        "+".join(str(row["n"][role]) for role in "xy") + ("*" if row["few_stimuli"] else ""),
    )


def _list_notes(row: dict[str, Any]) -> list[str]:
    name = f"{row['test']} on {row['model']}"
    settings = row["settings"]
    settings_text = ", ".join(
        f"{key} {settings[key]}"
        for key in ("encoding", "layer", "unit", "words", "pool", "contexts_from")
        if key in settings
    )
    p_value_text = (
        f"{row['p_method']}, {pluralise(row['partitions'], 'partition', spec=',')}"
        if row["partitions"]
        else f"of the permutation test; the published p, {row['p_method']}, {row['p_value']:.3g}"
    )
    if "score" in settings:  # no effect size, and no p-value
        notes = [f"{row['method']}: {settings['score']}"]
    else:
        notes = [
            f"{row['test']} {row['method']}: p {p_value_text}, {row['tails']}-tailed, "
            f"ddof {settings['ddof']}" + (f"; {settings_text}" if settings_text else "")
        ]
    for role in "xyab":
        if words_missing := row["missing"][role]:
            notes.append(f"{name}: {role.upper()} lacks {', '.join(words_missing)}")
    if row["unequal"]:
        notes.append(
            f"{name}: unequal sets, {row['n']['x']} and {pluralise(row['n']['y'], 'target')}"
        )
    if respelled := [
        f"{w} as {f}" for forms in row["other_forms"].values() for w, f in forms.items()
    ]:
        notes.append(f"{name}: other spellings used: {', '.join(respelled)}")
    if row["few_stimuli"]:
        notes.append("* a set has fewer than 8 words: it represents its concept poorly")
    return notes


GRID_AXES = (
    "contexts",
    "encoding",
    "words",
    "targets",
    "samples",
    "draws",
    "seed",
    "layer",
    "most",
    "window",
)
GRID_OPENING_OPTIONS = ("device", "dtype", "executor", "processes")


def _run_grid(
    options_given: Mapping[str, Any],
    outputs: Sequence[Path],
    store_url: str | None,
    run_name: str | None,
    cache: bool,
    dry_run: bool,
) -> Output:
    """Run the grid, or show its size."""
    library_options = drop_unset(**options_given)
    models = library_options.pop("models", ())
    tests, methods = (
        split_names(library_options.pop("tests", ())),
        split_names(library_options.pop("methods", ())),
    )
    options = {name: library_options.pop(name) for name in GRID_AXES if name in library_options}
    opening = {
        name: library_options.pop(name) for name in GRID_OPENING_OPTIONS if name in library_options
    }
    if library_options:
        raise UsageError(f"`{min(library_options)}` has no effect with --grid")
    if len(outputs) > 1 or (outputs and outputs[0].suffix):
        raise UsageError("with --grid, -o takes one folder")
    with kgbias.open(store_url or DEFAULT_STORE, progress=True) as study:
        if dry_run:
            cost = associations.grid_cost(study, models, tests, methods, **options)
            return Output({"cost": asdict(cost)}, lambda: _print_cost(cost))
        result = associations.associate_grid(
            study,
            models,
            tests,
            methods,
            run=run_name,
            output=outputs[0] if outputs else None,
            cache=cache,
            **opening,
            **options,
        )
    data = {
        "results": list(result.rows),
        "significant": result.count_significant(),
        "missing": result.missing,
    }
    return Output(data, lambda: _print_grid(result, outputs))


_COUNT_COLUMNS = (
    Column("model"),
    Column("method"),
    Column("tests", "d"),
    Column("uncorrected", "d", title="p <= 5%"),
    Column("bh", "d", title="BH"),
    Column("holm", "d", title="Holm"),
)


def _print_grid(result: "GridResult", outputs: Sequence[Path]) -> None:
    show.print_rows(kgbias.Rows(result.count_significant(), _COUNT_COLUMNS))
    show.say(
        "",
        f"{pluralise(len(result.rows), 'cell')}, {result.computed_count} of them computed now; "
        f"permutation p, "
        f"and "
        "corrected over all cells of the grid",
    )
    if result.missing:
        show.say(f"{len(result.missing)} cells have no result, for example:")
        for line in result.missing[:3]:
            show.say(f"  {line}")
    for folder in outputs:
        show.say(f"tables and figures: {folder}")


def _print_cost(cost: "GridCost") -> None:
    show.print_rows(cost.as_rows())
    for name, counts in (("texts to embed", cost.texts), ("predictions", cost.predictions)):
        for model, count in counts.items():
            show.say(f"{model}: {count:,} {name}")
