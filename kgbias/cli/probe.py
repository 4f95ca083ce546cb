"""`kgbias probe`: what a model finds probable, tied to the groups and statements of the graph."""

import math
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click

from kgbias.cli.options import chosen_run, json_option, print_json, printable, run_argument
from kgbias.cli.progress import shown_progress
from kgbias.errors import UsageError
from kgbias.graph.store import DEFAULT_STORE, open_store
from kgbias.graph.stored import StoredRun

FILE = click.Path(dir_okay=False, path_type=Path)
MOST = 10  # lines of a table of groups or statements


@click.command()
@run_argument
@click.option(
    "--model",
    "spec",
    metavar="SPEC",
    help="smollm2, reference, reference-masked, hf:ID-or-PATH or openai:ID.",
)
@click.option(
    "--store",
    "store_url",
    default=DEFAULT_STORE,
    show_default=True,
    envvar="KGBIAS_STORE",
    metavar="PATH",
    help="The graph store: a SQLite file.",
)
@click.option("--category", "categories", multiple=True, metavar="NAME", help="Only this category.")
@click.option(
    "--identities",
    metavar="NAME-or-FILE",
    help="Groups to probe instead of the run's: sofa (407) or a file.",
)
@click.option("--statements", type=FILE, help="Statements from a file (instead of, or with, RUN).")
@click.option("--apx", is_flag=True, help="APX: names x descriptors x templates.")
@click.option("--names", default="globalbias", show_default=True, metavar="NAME-or-FILE")
@click.option("--descriptors", default="globalbias", show_default=True, metavar="NAME-or-FILE")
@click.option("--apx-from", type=FILE, help="Flags from a table of APX that was made elsewhere.")
@click.option(
    "--exclude-axis",
    "exclude_axes",
    multiple=True,
    metavar="AXIS",
    help="APX: flag no descriptor of this axis.",
)
@click.option("--stereoset", type=FILE, help="Score this StereoSet file (JSON).")
@click.option("--crows-pairs", type=FILE, help="Score this CrowS-Pairs file (CSV).")
@click.option(
    "--convention",
    type=click.Choice(["original", "bias-bench"]),
    default="original",
    show_default=True,
    help="StereoSet and CrowS-Pairs: whose way to score.",
)
@click.option("--surprisal", "texts", multiple=True, metavar="TEXT", help="Each token's, in bits.")
@click.option(
    "--by",
    "measure",
    type=click.Choice(["conditional", "sofa", "whole"]),
    help="What ranks groups: the statement's perplexity after the group, SoFa's PPL*, or the whole "
    "probe's perplexity (default: conditional; for a masked model whole).",
)
@click.option("--ending", default="", metavar="TEXT", help='Put after each probe, for example ".".')
@click.option(
    "--bos",
    "begin",
    type=click.Choice(["auto", "bos", "eos", "none"]),
    default="auto",
    show_default=True,
    help="What stands before a text.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    show_default=True,
)
@click.option("--base-url", metavar="URL", help="The server of openai:ID.")
@click.option("--as-published", is_flag=True, help="The slips of the papers' code included.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write every probe: a .jsonl file or a .parquet folder.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@json_option
def probe(as_json: bool, **given: Any) -> None:
    """Ask a model which groups it would rather put in front of each statement.

    With a RUN (or none of the options that name something else), the statements are those of the
    run's graph, and the answers are written on its edges. Lower perplexity is more likely.
    """
    chosen = [
        name for name in ("apx_from", "apx", "stereoset", "crows_pairs", "texts") if given[name]
    ]
    if len(chosen) > 1:
        named = " and ".join("--" + name.replace("_", "-") for name in chosen)
        raise UsageError(f"one thing at a time: {named}".replace("--texts", "--surprisal"))
    if chosen != ["apx_from"] and not given["spec"]:
        raise UsageError("name the model to probe: --model SPEC")
    work = {
        "apx_from": _apx_from,
        "apx": _apx,
        "stereoset": _stereoset,
        "crows_pairs": _crows_pairs,
        "texts": _surprisals,
    }
    sets = given["identities"] or given["statements"]
    answer = (work[chosen[0]] if chosen else _sets if sets else _run)(given)
    if as_json:
        print_json(_finite(answer["json"]))
    else:
        for line in answer["lines"]:
            click.echo(printable(line))


def _scorer(given: dict[str, Any], progress: Any) -> Any:
    from kgbias.models.score.load import open_scorer

    return open_scorer(
        given["spec"],
        begin=given["begin"],
        dtype=given["dtype"],
        base_url=given["base_url"],
        notify=progress.note,
    )


def _run(given: dict[str, Any]) -> dict[str, Any]:
    from kgbias.probe.graph import probe_run

    with ExitStack() as opened, shown_progress() as progress:
        store = opened.enter_context(closing(open_store(given["store_url"], create=False)))
        run = StoredRun.find(store, chosen_run(given["run"], given["run_name"]))
        scorer = _scorer(given, progress)
        found, bias, agreement = probe_run(
            run,
            scorer,
            measure=given["measure"],
            ending=given["ending"],
            categories=given["categories"],
            as_published=given["as_published"],
            seed=given["seed"],
            progress=progress,
        )
    figures = {
        "mrr": _estimate(agreement.mrr),
        "expected_mrr": agreement.expected,
        "p_value": agreement.p_value,
        "first": _estimate(agreement.first),
    }
    triples = [
        {
            "group": p.groups[g].name,
            "predicate": p.statements[s].predicate,
            "object": p.statements[s].object,
            "count": count,
            "rank": int(p.ranks[g, s]),
            "of": len(p.groups),
        }
        for p in found
        for g, s, count in p.said
    ]
    mrr, first = agreement.mrr, agreement.first
    lines = [
        *_bias_lines(bias, scorer),
        "",
        f"said and probable: {_shown(first)} of {first.n} triples have their own group first",
        f"mean reciprocal rank {_shown(mrr)}, {agreement.expected:.3f} by chance, "
        f"p = {agreement.p_value:.4f}",
    ]
    return {
        "json": {"run": run.name, **_bias_json(bias, scorer), **figures, "triples": triples},
        "lines": lines,
    }


def _sets(given: dict[str, Any]) -> dict[str, Any]:
    from kgbias.probe.stream import probe_sets

    with ExitStack() as opened, shown_progress() as progress:
        sets = _named_sets(given, opened)
        scorer = _scorer(given, progress)
        bias = probe_sets(
            scorer,
            sets,
            measure=given["measure"],
            output=given["output"],
            as_published=given["as_published"],
            seed=given["seed"],
            progress=progress,
        )
    return {"json": _bias_json(bias, scorer), "lines": _bias_lines(bias, scorer)}


def _named_sets(given: dict[str, Any], opened: ExitStack) -> Any:
    """Category to (groups, statements), from files, named sets and the run."""
    from kgbias.probe.graph import run_sets
    from kgbias.probe.sets import read_identities, read_statements

    statements = read_statements(given["statements"]) if given["statements"] else {}
    named = chosen_run(given["run"], given["run_name"])
    groups: dict[str, tuple[str, ...]] = {}
    if named or not given["statements"] or not given["identities"]:
        store = opened.enter_context(closing(open_store(given["store_url"], create=False)))
        groups, said = run_sets(StoredRun.find(store, named))
        statements[""] = tuple(dict.fromkeys((*statements.get("", ()), *said)))
    if given["identities"]:
        groups = read_identities(given["identities"])
    if unknown := [c for c in given["categories"] if c not in groups]:
        raise UsageError(f"no category {unknown[0]!r}; there is {', '.join(groups)}")
    sets = {}
    for category, members in groups.items():
        own = dict.fromkeys((*statements.get(category, ()), *statements.get("", ())))
        if own and (not given["categories"] or category in given["categories"]):
            ended = tuple(statement + given["ending"] for statement in own)
            sets[category or "all"] = (members, ended)
    if not sets:
        raise UsageError("the statements belong to none of the categories")
    return sets


def _apx_from(given: dict[str, Any]) -> dict[str, Any]:
    from kgbias.probe.apx import read_apx

    table = read_apx(given["apx_from"])
    return _flagged(table, given, {"source": str(given["apx_from"])}, [])


def _apx(given: dict[str, Any]) -> dict[str, Any]:
    from kgbias.probe.names import probe_names
    from kgbias.probe.sets import read_descriptors, read_names

    names, descriptors = read_names(given["names"]), read_descriptors(given["descriptors"])
    with shown_progress() as progress:
        scorer = _scorer(given, progress)
        found = probe_names(
            scorer, names, descriptors, as_published=given["as_published"], progress=progress
        )
    more: dict[str, Any] = {"model": _model(scorer)}
    lines = []
    for name, labelled in (("apx", found.by_apx), ("perplexity", found.by_perplexity)):
        if labelled:
            more[name] = {
                "accuracy": _estimate(labelled.accuracy),
                "mrr": _estimate(labelled.mrr),
            }
            lines.append(
                f"labelled groups by {name}: accuracy {_shown(labelled.accuracy)}, "
                f"MRR {_shown(labelled.mrr)}, {labelled.mrr.n} descriptors"
            )
    return _flagged(found.table, given, more, lines)


def _flagged(
    table: Any, given: dict[str, Any], more: dict[str, Any], lines: list[str]
) -> dict[str, Any]:
    from kgbias.probe.apx import LEVEL, can_flag, flags

    found = flags(table, given["exclude_axes"])
    rows = [
        {"group": f.group, "descriptor": f.descriptor, "bias_score": f.bias_score, "z": f.z}
        for f in found
    ]
    descriptors = len({f.descriptor for f in found})
    tested = sum(axis not in given["exclude_axes"] for axis in table.axes)
    by_group: dict[str, list[str]] = {}
    for f in found:
        by_group.setdefault(f.group, []).append(f.descriptor)
    lines = [*(f"{group}: {', '.join(names)}" for group, names in by_group.items()), "", *lines]
    lines.append(
        f"{len(found)} flags on {descriptors} of {tested} descriptors, {len(table.groups)} groups, "
        f"{len(table.values)} templates, one-tailed {LEVEL:.0%}"
    )
    if not can_flag(len(table.groups)):
        lines.append("so few groups cannot be told apart at this level: no flag is possible")
    answer = {
        "flags": rows,
        "flagged_descriptors": descriptors,
        "descriptors": tested,
        "groups": len(table.groups),
        "templates": len(table.values),
        "excluded_axes": list(given["exclude_axes"]),
        "level": LEVEL,
    }
    return {"json": answer | more, "lines": lines}


def _stereoset(given: dict[str, Any]) -> dict[str, Any]:
    from kgbias.probe.pairs import stereoset

    return _benchmark(given, stereoset, given["stereoset"])


def _crows_pairs(given: dict[str, Any]) -> dict[str, Any]:
    from kgbias.probe.pairs import crows_pairs

    return _benchmark(given, crows_pairs, given["crows_pairs"])


def _benchmark(given: dict[str, Any], work: Any, path: Path) -> dict[str, Any]:
    with shown_progress() as progress:
        scorer = _scorer(given, progress)
        figures = work(scorer, path, given["convention"], progress=progress)
    rows = {f"{f.domain} {f.figure}": _estimate(f.estimate) for f in figures}
    lines = [f"{f.domain:<22}{f.figure:<22}{_shown(f.estimate)}  n {f.estimate.n}" for f in figures]
    return {
        "json": {"model": _model(scorer), "convention": given["convention"], "figures": rows},
        "lines": lines,
    }


def _surprisals(given: dict[str, Any]) -> dict[str, Any]:
    with shown_progress() as progress:
        scorer = _scorer(given, progress)
    found = [(text, scorer.surprisals(text)) for text in given["texts"]]
    lines = [
        "  ".join(f"{token.strip() or repr(token)} {bits:.2f}" for token, bits in tokens)
        for _, tokens in found
    ]
    rows = [{"text": text, "tokens": tokens} for text, tokens in found]
    return {"json": {"model": _model(scorer), "surprisals": rows}, "lines": lines}


def _bias_lines(bias: Any, scorer: Any) -> list[str]:
    c = scorer.convention
    lines = [f"{scorer.info.name}: {c.kind}, beginning {c.begin}, {c.dtype} {c.tier}".rstrip()]
    lines.append(f"{'SoFa score':<28}{_shown(bias.score)}")
    for part in bias.categories:
        lines.append(
            f"  {part.category:<26}{_shown(part.score)}  {len(part.statements)} statements"
        )
        first = sorted(part.likeliest.items(), key=lambda item: -item[1].value)[:MOST]
        lines += [f"    {group:<24}{_shown(share)} likeliest" for group, share in first]
    return lines


def _bias_json(bias: Any, scorer: Any) -> dict[str, Any]:
    return {
        "model": _model(scorer),
        "sofa": _estimate(bias.score),
        "categories": {
            part.category: {
                "sofa": _estimate(part.score),
                "groups": len(part.groups),
                "statements": len(part.statements),
                "mean_dds": float(part.dds.mean()),
                "top_1": {group: _estimate(share) for group, share in part.shares.items()},
                "likeliest": {g: _estimate(share) for g, share in part.likeliest.items()},
                "dds": _extremes(part),
            }
            for part in bias.categories
        },
    }


def _extremes(part: Any) -> list[dict[str, Any]]:
    """The statements that mind the group least: stereotypes that all groups share."""
    order = part.dds.argsort()[:MOST]
    return [{"statement": part.statements[n], "dds": float(part.dds[n])} for n in order]


def _model(scorer: Any) -> dict[str, Any]:
    tier = {"tier": scorer.convention.tier}
    return {"name": scorer.info.name, "revision": scorer.info.revision} | dict(
        scorer.settings
    ) | tier  # fmt: skip


def _estimate(e: Any) -> dict[str, Any]:
    return {"value": e.value, "low": e.low, "high": e.high, "n": e.n}


def _shown(e: Any) -> str:
    interval = f" [{e.low:.3f}, {e.high:.3f}]" if not math.isnan(e.low) else ""
    return f"{e.value:.3f}{interval}"


def _finite(value: Any) -> Any:
    """NaN and infinity as null: JSON has neither."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
