"""`kgbias associate`: association tests on word vectors and language models."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kgbias.cli.options import json_option, print_json, printable
from kgbias.cli.progress import shown_progress
from kgbias.errors import UsageError

FILE = click.Path(dir_okay=False, path_type=Path)
_TABLE = ("test", "method", "model", "d", "95% interval", "p", "p Holm", "p BH", "n")


@click.command()
@click.option("--vectors", type=FILE, help="Static word vectors: word2vec, GloVe or fastText.")
@click.option(
    "--vector-format",
    default="auto",
    show_default=True,
    metavar="FORMAT",
    help="auto, word2vec, word2vec-binary, glove or fasttext-binary.",
)
@click.option("--exact-case", is_flag=True, help="Do not find Amy as amy in the vectors.")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="SPEC",
    help="smollm2, reference, reference-masked, minilm or hf:ID-or-PATH; repeatable.",
)
@click.option(
    "--test",
    "test_names",
    multiple=True,
    metavar="NAMES",
    help="Tests by name, with commas: weat1 to weat10, C1, C3-term ..., or all.",
)
@click.option("--tests-file", type=FILE, help="Your own tests (TOML, see docs/associate.md).")
@click.option(
    "--method",
    "method_names",
    multiple=True,
    metavar="NAMES",
    help="weat, s-seat, w-seat, ceat, lpbs, with commas (default: weat for --vectors, "
    "w-seat for --model).",
)
@click.option(
    "--encoding",
    metavar="NAME",
    help="word-average, word-first, word-last; cls, last, mean for s-seat.",
)
@click.option(
    "--layer",
    type=int,
    default=-1,
    show_default=True,
    help="Hidden layer: 0 is the input embeddings, -1 the last.",
)
@click.option(
    "--spread",
    type=click.Choice(["sample", "population", "pooled"]),
    default="sample",
    show_default=True,
    help="The standard deviation under d: ddof 1, ddof 0, Cohen's.",
)
@click.option(
    "--tails",
    type=click.Choice(["one", "two"]),
    help="Default: one for weat and seat, two for ceat and lpbs.",
)
@click.option(
    "--p",
    "how",
    type=click.Choice(["auto", "exact", "sampled", "normal"]),
    default="auto",
    show_default=True,
    help="How the permutation p-value is had.",
)
@click.option(
    "--samples",
    type=click.IntRange(1),
    default=99_999,
    show_default=True,
    help="Partitions drawn where they are too many to count.",
)
@click.option(
    "--unit",
    type=click.Choice(["word", "sentence"]),
    default="word",
    show_default=True,
    help="What is exchanged by the permutations.",
)
@click.option("--as-published", is_flag=True, help="Each method's conventions as in its paper.")
@click.option(
    "--contexts",
    type=FILE,
    help="CEAT: a corpus, one text a line or JSON lines (default: templates).",
)
@click.option(
    "--generate",
    type=click.IntRange(1),
    metavar="N",
    help="CEAT: let the model write N contexts a word.",
)
@click.option(
    "--most", type=click.IntRange(1), default=1000, show_default=True, help="CEAT: contexts a word."
)
@click.option("--window", type=click.IntRange(0), help="CEAT: words kept around the word.")
@click.option(
    "--draws",
    type=click.IntRange(2),
    default=10_000,
    show_default=True,
    help="CEAT: draws of one context a word.",
)
@click.option(
    "--variance",
    type=click.Choice(["published", "cohen"]),
    default="published",
    show_default=True,
    help="CEAT: the in-sample variance of a draw.",
)
@click.option(
    "--words",
    type=click.Choice(["full", "reduced", "simplified"]),
    default="full",
    show_default=True,
    help="LPBS: which word sets.",
)
@click.option(
    "--pool",
    type=click.Choice(["mean", "sum"]),
    help="LPBS: how targets are joined (default: mean; as published: sum).",
)
@click.option(
    "--kind",
    type=click.Choice(["auto", "masked", "causal"]),
    default="auto",
    show_default=True,
    help="LPBS: the kind of model to insist on.",
)
@click.option("--groups", metavar="X,Y", help="Two groups of the run, by its words of regard.")
@click.option("--every-group", is_flag=True, help="SC-WEAT of each group of the run, with regard.")
@click.option(
    "--store",
    "store_url",
    envvar="KGBIAS_STORE",
    metavar="PATH-or-URL",
    help="Write the results to this graph store (default with --run: kgbias.db).",
)
@click.option("--run", "run_name", metavar="NAME", help="The run they belong to.")
@click.option(
    "-o",
    "--output",
    "outputs",
    type=FILE,
    multiple=True,
    help="Write a comparison: .tex, .csv, .png, .pdf or .svg; repeatable.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--no-cache", is_flag=True, help="Do not keep embeddings on disk.")
@json_option
def associate(as_json: bool, **given: Any) -> None:
    """Run association tests: WEAT, s-SEAT, w-SEAT, CEAT and LPBS.

    A positive effect ties the first target set to the first attribute set. p-values are exact where
    the partitions can be counted, else sampled; p Holm and p BH correct for all tests of the call.
    """
    from kgbias.associate import associate as run
    from kgbias.associate import find_tests, records

    if not given["vectors"] and not given["models"]:
        raise UsageError("name what to test: --vectors FILE or --model SPEC")
    if given["tests_file"] and not given["test_names"]:
        given["test_names"] = ("all",)
    tests = find_tests(_names(given["test_names"]), given["tests_file"])
    default = "weat" if given["vectors"] else "w-seat"
    methods = _names(given["method_names"]) or [default]
    options = _options(given)
    vectors = None
    if given["vectors"]:
        from kgbias.models.vectors import load_vectors

        vectors = load_vectors(
            given["vectors"], given["vector_format"], fold=not given["exact_case"]
        )
    with shown_progress() as progress:
        results = run(
            tests,
            methods,
            vectors=vectors,
            models=given["models"],
            options=options,
            cache=not given["no_cache"],
            progress=progress,
        )
    rows = records(results)
    if as_json:
        print_json({"results": [_finite(row) for row in rows]})
    else:
        _print(rows)


def _options(given: dict[str, Any]) -> Any:
    from kgbias.associate import Options, Statistics
    from kgbias.associate.contexts import CorpusContexts, TemplateContexts

    contexts: Any = TemplateContexts()
    if given["contexts"]:
        contexts = CorpusContexts(given["contexts"], given["most"], given["window"], given["seed"])
    return Options(
        statistics=Statistics(
            spread=given["spread"],
            tails=given["tails"],
            how=given["how"],
            samples=given["samples"],
            unit=given["unit"],
            seed=given["seed"],
        ),
        published=given["as_published"],
        encoding=given["encoding"],
        layer=given["layer"],
        contexts=contexts,
        ceat_draws=given["draws"],
        variance=given["variance"],
        words=given["words"],
        pool=given["pool"],
        kind=given["kind"],
    )


def _names(values: Sequence[str]) -> list[str]:
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def _finite(value: Any) -> Any:
    """NaN and infinity as null: JSON has neither."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _print(rows: Sequence[dict[str, Any]]) -> None:
    """The table, then what a reader must know of it."""
    cells = [_TABLE, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = (
            cell.ljust(w) if i < 3 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        click.echo("  ".join(line).rstrip())
    notes = dict.fromkeys(note for row in rows for note in _notes(row))
    if notes:
        click.echo()
    for note in notes:
        click.echo(printable(note))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    interval = "" if math.isnan(row["low"]) else f"{row['low']:+.2f} to {row['high']:+.2f}"
    return (
        row["test"],
        row["method"],
        printable(row["model"]),
        f"{row['effect_size']:+.4f}",
        interval,
        f"{row['p_value']:.3g}" if row["p_value"] else "<1e-300",
        f"{row['p_holm']:.3g}",
        f"{row['p_bh']:.3g}",
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
        else f"{row['p_method']}, permutation p {row['p_permutation']:.3g}"
    )
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
