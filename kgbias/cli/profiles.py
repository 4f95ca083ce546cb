"""`kgbias profiles`: what a model writes about people it knows only by name.

`profiles --model SPEC` means `profiles run --model SPEC`.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Parts
from kgbias.cli.options import (
    WRITERS,
    asking_options,
    json_option,
    model_settings,
    print_price,
    run_argument,
    said,
    store_option,
)
from kgbias.cli.settings import fitting, setting, settings

if TYPE_CHECKING:
    from kgbias.profiles import ProfileAnalysis
    from kgbias.profiles.write import ProfilesPrice
    from kgbias.stats.inference import Estimate


@click.group(
    cls=Parts,
    examples=("kgbias profiles --model smollm2 --limit 2", "kgbias profiles analyse smollm2"),
)
def profiles() -> None:
    """Have a model write profiles of people it knows only by name, and see what they give away.

    `kgbias profiles --model SPEC` writes them into the graph; `kgbias profiles analyse RUN` says
    whether the groups that the names stand for can be told apart, and by which words. Profiles made
    elsewhere are imported with `kgbias import --format profiles`. What a model makes of a name says
    nothing of anyone who bears it.
    """


OUTCOMES = ("ok", "refused", "unparsable", "failed")
MOST = 3  # words of an attribute and group, or groups of a word, that are listed


@profiles.command(
    short_help="Have a model write profiles for given names (the default).",
    examples=("kgbias profiles --model smollm2 --limit 2 --dry-run",),
)
@click.option(
    "--model",
    required=True,
    metavar="SPEC",
    help=f"The model: {WRITERS}.",
)
@click.option(
    "--names",
    metavar="NAME-or-FILE",
    help="globalbias (400 names of 40 groups, the default), reference, or a CSV file with the "
    "columns name and group.",
)
@click.option(
    "--group", multiple=True, metavar="NAME", help='Only names of this group, such as "Arab women".'
)
@click.option("--limit", type=int, metavar="N", help="Only the first N names of each group.")
@click.option(
    "--attribute",
    multiple=True,
    metavar="NAME",
    help="Ask for this attribute only (repeatable; default: all of the prompts).",
)
@click.option(
    "--prompts", metavar="NAME-or-FOLDER", help="The pack of prompts (default: profiles)."
)
@setting(
    "form",
    type=click.Choice(["json", "attributes"]),
    help="A whole profile as JSON, or attribute by attribute as a form (default: json for a "
    "server, attributes for a local model).",
)
@click.option("--samples", type=int, help="Profiles of each name (default: 3).")
@click.option("--temperature", type=float, help="(default: 1)")
@setting(
    "min-p",
    type=float,
    metavar="SHARE",
    help="Draw from tokens at least this fraction as probable as the most probable one (default: "
    "the pack's, 0.1 for attributes one by one).",
)
@setting("max-attempts", type=int, help="Maximum attempts per answer (default: 5).")
@setting("structured", type=bool, default=False, help="Ask a server to keep to the JSON schema.")
@click.option("--seed", type=int, help="The random seed (default: 0).")
@store_option
@click.option("--run", "name", metavar="NAME", help="A name for the run.")
@model_settings
@asking_options
@json_option
def run(
    model: str,
    store_url: str,
    name: str | None,
    max_failed: float,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Have a model write profiles of characters with given names.

    The method is that of Siddique et al. 2024: three profiles of each of 400 names, at temperature
    1. Running the same command again continues where it stopped, and asks nothing that was answered
    before.
    """
    given = said(**fitting(options, [model], "completer"))
    with kgbias.open(store_url, progress=True) as study:
        if dry_run:
            _print_price(study.price_profiles(model, **given), as_json)
            return 0
        made = study.write_profiles(model, name=name, **given)
    if as_json:
        show.data(_as_data(made))
    else:
        _print(made)
    return int(made.written.failed > max_failed)


def _as_data(run: kgbias.Run) -> dict[str, Any]:
    result = run.written
    return {
        "run": run.name,
        "asked": result.asked,
        "cached": result.cached,
        "prompt_tokens": result.spent.prompt_tokens,
        "completion_tokens": result.spent.completion_tokens,
        "cost": result.spent.cost,
        "profiles": result.profiles.total(),
        "whole": result.whole.total(),
        **{name: result.total[name] for name in OUTCOMES},
        "groups": [
            {
                "group": group,
                "profiles": result.profiles[group],
                "whole": result.whole[group],
                **{name: counts[name] for name in OUTCOMES},
            }
            for group, counts in result.outcomes.items()
        ],
    }


def _print(run: kgbias.Run) -> None:
    result = run.written
    show.say(
        f"run {run.name}: {result.profiles.total()} profiles, {result.whole.total()} of "
        f"them whole, from {result.total.total()} answers; asked {result.asked}, from the log "
        f"{result.cached}{f'; {result.spent}' if result.asked else ''}"
    )
    show.table(
        ("", ">profiles", ">whole", *(f">{name}" for name in OUTCOMES[1:])),
        (
            (
                group,
                result.profiles[group],
                result.whole[group],
                *(counts[name] for name in OUTCOMES[1:]),
            )
            for group, counts in result.outcomes.items()
        ),
    )


def _print_price(price: "ProfilesPrice", as_json: bool) -> None:
    how = "as JSON" if price.form == "json" else "attribute by attribute"
    line = (
        f"{price.samples} profiles of each of {price.names} names in {price.groups} groups, {how}: "
        f"{price.requests} requests, with repeated attempts at most {price.requests_at_most} and "
        f"{price.answer_tokens_at_most} answer tokens; nothing was asked"
    )
    print_price(price, asdict(price), [line], as_json)


@profiles.command(
    short_help="Can groups be told apart by a run's profiles, and by which words?",
    examples=("kgbias profiles analyse smollm2 --attribute occupation",),
)
@run_argument
@store_option
@click.option(
    "--attribute",
    multiple=True,
    metavar="NAME",
    help="Look at this attribute (repeatable; default: all).",
)
@click.option(
    "--group",
    multiple=True,
    metavar="NAME",
    help='Tell these groups apart, such as "ARAB F" (repeatable; default: all).',
)
@setting("repeats", type=int, help="Random splits, 70 to 30 (default: 20).")
@setting("permutations", type=int, help="Deals of the labels for chance (default: 99).")
@setting("draws", type=int, help="Of the bootstrap of words (default: 500).")
@setting(
    "kernel",
    type=click.Choice(["linear", "radial"]),
    help="Of the support vector machine (default: linear; radial takes minutes).",
)
@settings(seed=0)
@json_option
def analyse(as_json: bool, run_name: str | None, store_url: str, **given: Any) -> None:
    """Whether groups can be told apart by the profiles of a run, and by which words.

    A support vector machine learns groups, ethnicities and genders from 70% of the profiles
    and is tried on the rest (Siddique et al. 2024, section 6).
    """
    with kgbias.open(store_url, progress=True) as study:
        found = study.run(run_name).analyse_profiles(**said(**given))
    if as_json:
        show.data(found.as_dict())
    else:
        _print_analysis(found)


def _print_analysis(found: "ProfileAnalysis") -> None:
    show.say(f"{found.profiles} profiles of {found.names} names", "")
    show.table(
        ("", "accuracy", "by name", ">chance", ">permuted", ">p"),
        (
            (
                kind,
                _between(t.accuracy),
                _between(t.by_name),
                f"{t.chance:.3f}",
                f"{t.permuted.value:.3f}",
                f"{t.p_value:.3f}",
            )
            for kind, t in found.told.items()
        ),
    )
    kinds = list(found.told)
    costs = {a: [found.told[k].cost[a] for k in kinds] for a in found.attributes
             if a in found.told[kinds[0]].cost}  # fmt: skip
    if costs:
        show.say()
        show.table(
            ("points lost without", *(f">{kind}" for kind in kinds)),
            (
                (f"  {attribute}", *(f"{100 * e.value:+.1f}" for e in own))
                for attribute, own in sorted(costs.items(), key=lambda item: -item[1][0].value)
            ),
        )
    by: dict[tuple[str, str], list[str]] = {}
    for w in found.words:
        if w.told:
            by.setdefault((w.attribute, w.group), []).append(w.word)
    if by:
        show.say(
            "",
            "words that more of a group's names have than of the others' (p <= 0.05, corrected, "
            "and an interval above 0)",
            *(f"  {a}, {g}: {', '.join(words[:MOST])}" for (a, g), words in by.items()),
        )


def _between(e: "Estimate") -> str:
    return f"{e.value:.3f} [{e.interval('.3f')}]"


@profiles.command(
    short_help="Are the words of groups those of APX, or of a crawl?",
    examples=("kgbias profiles agreement profiles --crawl smollm2",),
)
@run_argument
@store_option
@click.option(
    "--apx",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A table of APX, as kgbias probe apx -o writes it.",
)
@click.option("--crawl", metavar="RUN", help="A crawl of the same groups, such as Arab women.")
@click.option(
    "--attribute", multiple=True, metavar="NAME", help="Only this attribute (repeatable)."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for the picture (SVG, PDF, PNG) and the LaTeX table of each.",
)
@settings("seed")
@json_option
def agreement(as_json: bool, run_name: str | None, store_url: str, **given: Any) -> None:
    """Whether the words that profiles tie to groups are those that a model finds probable (APX), or
    those that it says of the groups in a crawl (Table 7 of Siddique et al. 2024).
    """
    with kgbias.open(store_url, progress=True) as study:
        found = study.run(run_name).profile_agreement(**said(**given))
    if as_json:
        show.data([a.as_dict() for a in found])
        return
    for a in found:
        show.say(
            f"{a.source}: {len(a.rows)} words of {a.groups} groups; the group that a "
            f"word is most typical of ranks {_between(a.mrr)} (mean "
            f"reciprocal), by chance {a.expected:.3f}, p = {a.p_value:.3f}"
        )
        for row in a.rows:
            written, other = (
                ", ".join(row.written[:MOST]),
                ", ".join(row.other[:MOST]),
            )
            show.say(f"  {row.attribute}, {row.word}: {written} | {other}")


@profiles.command(
    short_help="The profiles of two names side by side, as an HTML page.",
    examples=("kgbias profiles page smollm2 --name Ahmed -o profiles.html",),
)
@run_argument
@store_option
@click.option("--name", multiple=True, metavar="NAME", help="A name to begin with (up to two).")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("profiles.html"),
    show_default=True,
    help="The page.",
)
def page(run_name: str | None, store_url: str, name: tuple[str, ...], output: Path) -> None:
    """Write the profiles of a run as a page on which those of two names stand side by side.

    The page works offline. What stands on it was invented by a model.
    """
    with kgbias.open(store_url, progress=True) as study:
        path = study.run(run_name).profile_page(output, **said(name=name))
    show.say(path)
