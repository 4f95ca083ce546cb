"""`kgbias associate`: association tests on word vectors and language models."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click

from kgbias.cli.associate_output import finite, print_groups, print_tests
from kgbias.cli.options import json_option, print_json
from kgbias.cli.progress import shown_progress
from kgbias.errors import UsageError
from kgbias.graph.store import DEFAULT_STORE, open_store
from kgbias.graph.stored import StoredRun

FILE = click.Path(dir_okay=False, path_type=Path)


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
@click.option(
    "--topics",
    metavar="A,B",
    help="With --groups: by the words of two topics, each CATEGORY:NUMBER or one of its words.",
)
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
    from kgbias.associate import records

    if not given["vectors"] and not given["models"]:
        raise UsageError("name what to test: --vectors FILE or --model SPEC")
    for path in given["outputs"]:
        if not path.suffix:
            raise UsageError(f"{path} needs an extension: .tex, .csv, .png, .pdf or .svg")
    options = _options(given)
    vectors = _vectors(given)
    default = "weat" if given["vectors"] else "w-seat"
    with ExitStack() as opened, shown_progress() as progress:
        store, found = _graph(given, opened)
        tests = _tests(given, store, found)
        results = run(
            tests,
            _names(given["method_names"]) or [default],
            vectors=vectors,
            models=given["models"],
            options=options,
            cache=not given["no_cache"],
            progress=progress,
        )
        rows = records(results)
        groups = _every_group(given, store, found, vectors) if given["every_group"] else []
        if store is not None:
            from kgbias.associate.to_graph import save

            save(store, found, results, rows)
    for path in given["outputs"]:
        from kgbias.associate.compare import write

        write(rows, path)
    if as_json:
        answer: dict[str, Any] = {"results": rows} | ({"groups": groups} if groups else {})
        print_json(finite(answer))
    else:
        print_tests(rows)
        print_groups(groups)


def _vectors(given: dict[str, Any]) -> Any:
    if not given["vectors"]:
        return None
    from kgbias.models.vectors import load_vectors

    return load_vectors(given["vectors"], given["vector_format"], fold=not given["exact_case"])


def _graph(given: dict[str, Any], opened: ExitStack) -> tuple[Any, Any]:
    """The store and the run that the results belong to, where any is named."""
    of_run = given["run_name"] or given["groups"] or given["every_group"]
    if not given["store_url"] and not of_run:
        return None, None
    url = given["store_url"] or os.environ.get("KGBIAS_STORE") or DEFAULT_STORE
    store = opened.enter_context(closing(open_store(url, create=not of_run)))
    return store, store.find_run(given["run_name"]) if of_run else None


def _tests(given: dict[str, Any], store: Any, found: Any) -> list[Any]:
    from kgbias.associate import find_tests
    from kgbias.associate.from_graph import groups_test, regard_sets, topic_sets

    names = _names(given["test_names"])
    if given["tests_file"] and not names:
        names = ["all"]
    tests = []
    if given["groups"]:
        x, y = _pair(given["groups"], '--groups takes two groups of the run: --groups "women,men"')
        if given["topics"]:
            first, second = _pair(
                given["topics"], "--topics takes two topics: --topics gender:0,gender:1"
            )
            a, b = topic_sets(found, store.topics(found.id), first, second)
        else:
            a, b = regard_sets(store.triples(found.id))
        tests.append(groups_test(found, x, y, a, b))
    elif given["topics"]:
        raise UsageError("--topics goes with --groups X,Y")
    if names or not (tests or given["every_group"]):
        tests += find_tests(names, given["tests_file"])
    return tests


def _every_group(given: dict[str, Any], store: Any, found: Any, vectors: Any) -> list[Any]:
    """SC-WEAT of the run's groups on the vectors, or the first model, written to the graph."""
    from kgbias.associate.from_graph import WordsInTemplates, group_associations
    from kgbias.associate.to_graph import save_groups

    if vectors is None:
        from kgbias.models.embed import open_encoder

        encoder = open_encoder(given["models"][0], cache=not given["no_cache"])
        vectors = WordsInTemplates(encoder, layer=given["layer"])
    agreement = group_associations(
        found,
        store.triples(found.id),
        vectors,
        store.group_scores(found.id),
        seed=given["seed"],
    )
    save_groups(StoredRun(store, found), agreement, vectors.info.name)
    return [
        {
            "group": g.group.name,
            "model": vectors.info.name,
            "effect_size": g.effect,
            "low": g.interval.low,
            "high": g.interval.high,
            "overall_regard": g.regard,
            "rank_correlation": agreement.correlation,
            "words": list(g.words),
        }
        for g in agreement.groups
    ]


def _options(given: dict[str, Any]) -> Any:
    from kgbias.associate import Options, Statistics
    from kgbias.associate.contexts import CorpusContexts, GeneratedContexts, TemplateContexts

    contexts: Any = TemplateContexts()
    if given["contexts"] and given["generate"]:
        raise UsageError("contexts come from a file or from the model: not both")
    if given["contexts"]:
        contexts = CorpusContexts(given["contexts"], given["most"], given["window"], given["seed"])
    elif given["generate"]:
        contexts = GeneratedContexts(given["generate"], given["seed"])
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


def _pair(text: str, otherwise: str) -> tuple[str, str]:
    match _names([text]):
        case [first, second]:
            return first, second
    raise UsageError(otherwise)


def _names(values: Sequence[str]) -> list[str]:
    return [name.strip() for value in values for name in value.split(",") if name.strip()]
