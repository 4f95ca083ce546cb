"""`kgbias associate`: association tests on word vectors and language models."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command, Section
from kgbias.cli.options import (
    json_option,
    model_settings,
    said,
    workers_settings,
)
from kgbias.cli.settings import setting, settings, without_shared
from kgbias.errors import UsageError
from kgbias.graph.store import DEFAULT_STORE
from kgbias.io.progress import show_progress

if TYPE_CHECKING:
    from kgbias.associate import Associations
    from kgbias.associate.graph import RegardAgreement
    from kgbias.associate.grid import GridCost, GridResult


FILE = click.Path(dir_okay=False, path_type=Path)
COUNT = click.IntRange(1)


def _option(section: str, *names: str, **more: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=Section, section=section, **more)


TESTED = "What is tested"
STATISTICS = "Statistics of every method"
VECTORS = "s-SEAT, w-SEAT and CEAT"
CONTEXTS = "Where words are found: all but WEAT"
CEAT = "CEAT, and CEAT over LPBS"
LPBS = "LPBS"
GRAPH = "A run's graph"
GRID = "The parameter study of Mind Your Bias"


@click.command(
    cls=Command,
    examples=(
        "kgbias associate --model smollm2 --test weat6,weat7 --method w-seat,ceat",
        "kgbias associate --vectors glove.txt --test all",
    ),
)
@_option(TESTED, "--vectors", type=FILE, help="Static word vectors: word2vec, GloVe or fastText.")
@setting(
    "vector-format",
    metavar="FORMAT",
    help="auto, word2vec, word2vec-binary, glove or fasttext-binary (default: auto).",
)
@setting("exact-case", type=bool, default=False, help="Do not look up Amy as amy in the vectors.")
@_option(
    TESTED,
    "--model",
    "models",
    multiple=True,
    metavar="SPEC",
    help="smollm2, reference, reference-masked, minilm, hf:ID-or-PATH or hf:PATH:FILE.gguf; "
    "repeatable.",
)
@_option(
    TESTED,
    "--test",
    "tests",
    multiple=True,
    metavar="NAMES",
    help="Tests by name, separated by commas: weat1 to weat10, C1, C3-term ..., or all.",
)
@_option(
    TESTED, "--tests-file", type=FILE, help="Your own tests (TOML, see docs/how-to/word-sets.md)."
)
@_option(
    TESTED,
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
    type=COUNT,
    help="Partitions to draw if there are too many to count (default: 99999).",
)
@settings("seed")
@_option(
    STATISTICS, "--as-published", is_flag=True, help="Use each method's conventions from its paper."
)
@setting(
    "unit",
    type=click.Choice(["word", "sentence"]),
    help="SEAT and LPBS: what permutations exchange (default: word).",
)
@_option(
    VECTORS,
    "--encoding",
    metavar="NAME",
    help="word-average, word-first or word-last for w-SEAT (default: word-average); cls, last or "
    "mean for s-SEAT (default: the model's own); any for CEAT (default: word-average).",
)
@_option(
    VECTORS,
    "--layer",
    type=int,
    help="Hidden layer: 0 is the input embeddings, -1 the last (default: -1).",
)
@_option(
    VECTORS,
    "--search",
    is_flag=True,
    help="s-SEAT and w-SEAT: the best of all layers (s-SEAT: and encodings), with p corrected for "
    "the search.",
)
@_option(
    CONTEXTS,
    "--contexts",
    type=FILE,
    help="A corpus: one text per line, or JSON lines (default: templates).",
)
@setting(
    "most",
    type=COUNT,
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
@_option(
    CEAT, "--generate", type=COUNT, metavar="N", help="Let the model write N contexts per word."
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
@_option(
    GRAPH,
    "--groups",
    metavar="X,Y",
    help="Test two groups of the run by their indicators; all: every pair within a category.",
)
@_option(
    GRAPH, "--every-group", is_flag=True, help="SC-WEAT of each group of the run, with its regard."
)
@_option(
    GRAPH,
    "--attributes",
    metavar="NAME",
    help="The attributes to test groups on: pleasant, warmth, competence, career, science, "
    "mathematics, traits; or regard, the run's own words (default: pleasant).",
)
@_option(
    GRAPH,
    "--topics",
    metavar="A,B",
    help="Instead: the words of two topics, each given as CATEGORY:NUMBER or by one of its words.",
)
@setting(
    "targets",
    type=click.Choice(["terms", "names", "paraphrases"]),
    help="The kind of indicators (default: the first that both groups have).",
)
@_option(
    GRAPH,
    "--indicators",
    type=FILE,
    help="Your own indicators and attributes (TOML, see docs/how-to/word-sets.md).",
)
@_option(GRAPH, "--arm", metavar="NAME", help="The augmentation arm, if the run has several.")
@_option(
    GRAPH,
    "--store",
    "store_url",
    envvar="KGBIAS_STORE",
    metavar="PATH-or-URL",
    help="Write the results to this graph store (default with --run: kgbias.db).",
)
@_option(GRAPH, "--run", "run_name", metavar="NAME", help="The run that the results belong to.")
@_option(
    GRID,
    "--grid",
    is_flag=True,
    help="Run every valid setting of every method on every test and model (see the methods page). "
    "-o names a folder; --encoding, words and targets hold one value.",
)
@_option(GRID, "--dry-run", is_flag=True, help="Show the size of the grid, and stop.")
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
    as_json: bool,
    outputs: Sequence[Path],
    store_url: str | None,
    run_name: str | None,
    cache: bool,
    grid: bool,
    dry_run: bool,
    **given: Any,
) -> None:
    """Run association tests: WEAT, s-SEAT, w-SEAT, CEAT and LPBS.

    A positive effect ties the first target set to the first attribute set. p-values are exact if
    the partitions can be counted, else sampled; p Holm and p BH correct for all tests of the call.
    An option applies to the methods that have it; if none of them does, it is an error.
    """
    if grid or dry_run:
        from kgbias.cli.associate import run

        run(given, outputs, store_url, run_name, cache, grid, dry_run, as_json)
        return
    from kgbias.associate import associate as run_tests

    if not given["vectors"] and not given["models"]:
        raise UsageError("say what to test: --vectors FILE or --model SPEC")
    for path in outputs:
        if not path.suffix:
            raise UsageError(f"{path} needs an extension: .tex, .csv, .png, .pdf or .svg")
    given["tests"], given["methods"] = names(given["tests"]), names(given["methods"])
    if given["groups"] != "all":
        given["groups"] = _pair(
            given["groups"], "--groups takes two groups, or all: --groups women,men"
        )
    given["topics"] = _pair(
        given["topics"], "--topics takes two topics: --topics gender:0,gender:1"
    )
    if not given["models"]:
        given = without_shared(given, ["device", "dtype", "executor", "processes"])
    of_run = run_name or given["groups"] or given["every_group"]
    asked = said(**given) | {"cache": cache}
    if store_url or of_run:
        with kgbias.open(store_url or DEFAULT_STORE, progress=True) as study:
            found = (study.run(run_name) if of_run else study).associate(**asked)
    else:
        with show_progress(True) as progress:
            found = run_tests(**asked, progress=progress)
    for path in outputs:
        from kgbias.report.associations import write_comparison

        write_comparison(found.records(), path)
    if as_json:
        show.data(found.as_dict())
    else:
        print_tests(found.records())
        print_groups(found.groups)
        print_left_out(found)


def names(values: Sequence[str]) -> tuple[str, ...]:
    """The names in a repeatable, comma-separated option."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def _pair(text: str | None, otherwise: str) -> tuple[str, str] | None:
    if text is None:
        return None
    match names([text]):
        case (first, second):
            return first, second
    raise UsageError(otherwise)


_TABLE = (
    "test", "method", "model", ">d", ">95% interval", ">p", ">p Holm", ">p BH", ">n",
)  # fmt: skip


def print_groups(agreement: "RegardAgreement | None") -> None:
    """Print every group's SC-WEAT, if asked for."""
    if agreement is None or not agreement.groups:
        return
    show.say()
    show.table(
        ("group", ">SC-WEAT d", ">95% interval", ">regard"),
        (
            (
                g.group.name,
                f"{g.effect.value:+.3f}",
                f"{g.effect.low:+z.2f} to {g.effect.high:+z.2f}",
                "" if math.isnan(g.regard) else f"{g.regard:+.0f}",
            )
            for g in agreement.groups
        ),
    )
    if not math.isnan(agreement.correlation):
        show.say(
            f"rank correlation of the two: {agreement.correlation:+z.2f} over "
            f"{len(agreement.groups)} groups, not tested"
        )
    words = f"{agreement.a.concept} against {agreement.b.concept}"
    show.say(f"d: {words}; above 0 is nearer to the first")


def print_left_out(found: "Associations") -> None:
    """Print what was asked for but not tested, and why."""
    for line in found.left_out:
        show.say(f"left out: {line}")


def print_tests(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table, then what a reader must know about it."""
    if not rows:
        return
    show.table(_TABLE, map(_cells, rows))
    notes = dict.fromkeys(note for row in rows for note in _notes(row))
    tested = sum(not math.isnan(row["p_holm"]) for row in rows)
    if tested > 1:
        notes[f"p Holm, p BH: corrected over the {tested} tests of this call"] = None
    if notes:
        show.say("", *notes)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    interval = "" if math.isnan(row["low"]) else f"{row['low']:+z.2f} to {row['high']:+z.2f}"
    return (
        row["test"],
        row["method"],
        row["model"],
        f"{row['effect_size']:+z.4f}",
        interval,
        *(
            "" if math.isnan(p) else f"{p:.3g}"
            for p in (row.get("p_permutation", row["p_value"]), row["p_holm"], row["p_bh"])
        ),
        "+".join(str(row["n"][role]) for role in "xy") + ("*" if row["few_stimuli"] else ""),
    )


def _notes(row: dict[str, Any]) -> list[str]:
    name = f"{row['test']} on {row['model']}"
    settings = row["settings"]
    how = ", ".join(
        f"{key} {settings[key]}"
        for key in ("encoding", "layer", "unit", "words", "pool", "contexts_from")
        if key in settings
    )
    counted = (
        f"{row['p_method']}, {row['partitions']:,} partitions"
        if row["partitions"]
        else f"of the permutation test; the published p, {row['p_method']}, {row['p_value']:.3g}"
    )
    if "score" in settings:  # no effect size, and no p-value
        notes = [f"{row['method']}: {settings['score']}"]
    else:
        notes = [
            f"{row['test']} {row['method']}: p {counted}, {row['tails']}-tailed, "
            f"ddof {settings['ddof']}" + (f"; {how}" if how else "")
        ]
    for role in "xyab":
        if lost := row["missing"][role]:
            notes.append(f"{name}: {role.upper()} lacks {', '.join(lost)}")
    if row["unequal"]:
        notes.append(f"{name}: unequal sets, {row['n']['x']} and {row['n']['y']} targets")
    if other := [f"{w} as {f}" for forms in row["other_forms"].values() for w, f in forms.items()]:
        notes.append(f"{name}: other spellings used: {', '.join(other)}")
    if row["few_stimuli"]:
        notes.append("* a set has fewer than 8 words: it represents its concept poorly")
    return notes


AXES = (
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
OPENING = ("device", "dtype", "executor", "processes")


def run(
    given: Mapping[str, Any],
    outputs: Sequence[Path],
    store_url: str | None,
    run_name: str | None,
    cache: bool,
    grid: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run the grid, or print its size."""
    from kgbias.cli.associate import names

    if not grid:
        raise UsageError("--dry-run needs --grid")
    asked = said(**given)
    models = asked.pop("models", ())
    tests, methods = names(asked.pop("tests", ())), names(asked.pop("methods", ()))
    options = {name: asked.pop(name) for name in AXES if name in asked}
    opening = {name: asked.pop(name) for name in OPENING if name in asked}
    if asked:
        raise UsageError(f"`{min(asked)}` has no effect with --grid")
    if len(outputs) > 1 or (outputs and outputs[0].suffix):
        raise UsageError("with --grid, -o takes one folder")
    with kgbias.open(store_url or DEFAULT_STORE, progress=True) as study:
        if dry_run:
            cost = study.grid_cost(models, tests, methods, **options)
            if as_json:
                show.data({"cost": _as_dict(cost)})
            else:
                _print_cost(cost)
            return
        found = study.associate_grid(
            models,
            tests,
            methods,
            run=run_name,
            output=outputs[0] if outputs else None,
            cache=cache,
            **opening,
            **options,
        )
    if as_json:
        show.data(
            {"results": found.records(), "significant": found.count_significant(), "missing": [*found.missing]}
        )
    else:
        _print(found, outputs)


def _print(found: "GridResult", outputs: Sequence[Path]) -> None:
    counts = found.count_significant()
    show.table(
        ("model", "method", ">tests", ">p <= 5%", ">BH", ">Holm"),
        (
            [row[name] for name in ("model", "method", "tests", "uncorrected", "bh", "holm")]
            for row in counts
        ),
    )
    show.say(
        "",
        f"{len(found.rows)} cells, {found.computed_count} of them computed now; permutation p, and "
        "corrected over all cells of the grid",
    )
    if found.missing:
        show.say(f"{len(found.missing)} cells have no result, for example:")
        for line in found.missing[:3]:
            show.say(f"  {line}")
    for folder in outputs:
        show.say(f"tables and figures: {folder}")


def _print_cost(cost: "GridCost") -> None:
    show.table(
        ("method", ">cells", ">done"),
        ((method, count, cost.done.get(method, 0)) for method, count in cost.cells.items()),
    )
    for name, counts in (("texts to embed", cost.texts), ("predictions", cost.predictions)):
        for model, count in counts.items():
            show.say(f"{model}: {count:,} {name}")


def _as_dict(cost: "GridCost") -> dict[str, Any]:
    return {
        "cells": dict(cost.cells),
        "done": dict(cost.done),
        "texts": dict(cost.texts),
        "predictions": dict(cost.predictions),
    }
