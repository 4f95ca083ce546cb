"""`kgbias profiles`: what a model writes about people known only by name.

`profiles --model SPEC` means `profiles run --model SPEC`.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import CommandGroup
from kgbias.cli.options import (
    build_price_output,
    describe_asking,
    drop_unset,
    json_option,
    model_option,
    rounds_options,
    run_name_argument,
    store_option,
    write_or_price,
)
from kgbias.cli.settings import setting, shared_settings
from kgbias.cli.show import Output
from kgbias.io.columns import Column
from kgbias.io.wording import pluralise
from kgbias.methods import profiles as profile_calls
from kgbias.methods.profiles.config import ProfileConfig
from kgbias.methods.profiles.write import ProfilesSummary

if TYPE_CHECKING:
    from kgbias.methods.profiles.agreement import ProfileAgreement
    from kgbias.methods.profiles.analysis import ProfileAnalysis
    from kgbias.methods.profiles.write import ProfilesPrice
    from kgbias.stats.inference import Estimate


@click.group(
    cls=CommandGroup,
    examples=("kgbias profiles --model smollm2 --limit 2", "kgbias profiles analyse smollm2"),
)
def profiles() -> None:
    """Have a model write profiles of people it knows only by name, and see what they give away.

    `kgbias profiles --model SPEC` writes them into the graph; `kgbias profiles analyse RUN` says
    whether the groups behind the names can be told apart, and by which words. Import profiles made
    elsewhere with `kgbias import --format profiles`. What a model makes of a name says nothing
    about anyone who bears it.
    """


OUTCOME_COLUMNS = ("ok", "refused", "unparsable", "failed")
MAX_WORDS_LISTED = 3  # listed words per attribute and group, or groups per word


@profiles.command(
    short_help="Have a model write profiles for given names (the default).",
    examples=("kgbias profiles --model smollm2 --limit 2 --dry-run",),
)
@model_option
@click.option(
    "--names",
    metavar="NAME-or-FILE",
    help="globalbias (400 names of 40 groups, the default), reference, or a CSV file with the "
    "columns name and group.",
)
@click.option(
    "--only",
    "group",
    multiple=True,
    metavar="NAME",
    help='Only names of this group, such as "Arab women".',
)
@click.option("--limit", type=int, metavar="N", help="Only the first N names of each group.")
@click.option(
    "--attribute",
    multiple=True,
    metavar="NAME",
    help="Ask only for this attribute (repeatable; default: all in the prompts).",
)
@click.option("--prompts", metavar="NAME-or-FOLDER", help="The prompt pack (default: profiles).")
@rounds_options(ProfileConfig)
def run(**options: Any) -> Output:
    """Have a model write profiles of characters with given names.

    The method is that of Siddique et al. 2024: three profiles of each of 400 names, at temperature
    1. Run the same command again to continue where it stopped: nothing is asked twice.
    """
    return write_or_price(profile_calls.write_profiles, _build_price_output, _print_run, **options)


def _print_run(run: kgbias.Run) -> None:
    result = cast(ProfilesSummary, run.generation_summary)
    show.say(
        f"run {run.name}: "
        f"{pluralise(result.profiles.total(), 'profile')}, {result.whole_profiles.total()} of "
        f"them whole, from "
        f"{pluralise(result.outcome_totals.total(), 'answer')}; {describe_asking(result)}"
    )
    show.print_table(
        ("", *(Column(name, "d") for name in ("profiles", "whole", *OUTCOME_COLUMNS[1:]))),
        (
            (
                group,
                result.profiles[group],
                result.whole_profiles[group],
                *(counts[name] for name in OUTCOME_COLUMNS[1:]),
            )
            for group, counts in result.outcomes.items()
        ),
    )


def _build_price_output(price: "ProfilesPrice") -> Output:
    form_text = "as JSON" if price.form == "json" else "attribute by attribute"
    line = (
        f"{pluralise(price.samples, 'profile')} of each of {pluralise(price.names, 'name')} in "
        f"{pluralise(price.groups, 'group')}, {form_text}: "
        f"{pluralise(price.requests, 'request')}, with repeated attempts at most "
        f"{price.requests_at_most} and {price.answer_tokens_at_most} answer tokens; nothing was "
        "asked"
    )
    data = asdict(price) | {"requests_at_most": price.requests_at_most}
    return build_price_output(price, data, [line])


@profiles.command(
    short_help="Test whether a run's profiles tell groups apart, and by which words.",
    examples=("kgbias profiles analyse smollm2 --attribute occupation",),
)
@run_name_argument
@store_option
@click.option(
    "--attribute",
    multiple=True,
    metavar="NAME",
    help="Use only this attribute (repeatable; default: all).",
)
@click.option(
    "--only",
    "group",
    multiple=True,
    metavar="NAME",
    help='Tell apart only these groups, such as "ARAB F" (repeatable; default: all).',
)
@setting("repeats", type=int, help="Random 70/30 splits (default: 20).")
@setting("permutations", type=int, help="Label permutations for chance (default: 99).")
@setting("draws", type=int, help="Bootstrap draws for words (default: 500).")
@setting(
    "kernel",
    type=click.Choice(["linear", "radial"]),
    help="The support vector machine's kernel (default: linear; radial takes minutes).",
)
@shared_settings(seed=0)
@json_option
def analyse(run_name: str | None, store_url: str, **options: Any) -> Output:
    """Test whether groups can be told apart by the profiles of a run, and by which words.

    A support vector machine learns groups, ethnicities and genders from 70% of the profiles
    and is tested on the rest (Siddique et al. 2024, section 6).
    """
    with kgbias.open(store_url, progress=True) as study:
        analysis = profile_calls.analyse_profiles(study.run(run_name), **drop_unset(**options))
    return Output(analysis, lambda: _print_analysis(analysis))


def _print_analysis(analysis: "ProfileAnalysis") -> None:
    show.say(f"{pluralise(analysis.profiles, 'profile')} of {analysis.names} names", "")
    show.print_table(
        (
            Column(""),
            Column("accuracy", ".3f", interval=True),
            Column("by name", ".3f", interval=True),
            Column("chance", ".3f"),
            Column("permuted", ".3f"),
            Column("p", ".3f"),
        ),
        (
            (kind, test.accuracy, test.by_name, test.chance, test.permuted, test.p_value)
            for kind, test in analysis.classifications.items()
        ),
    )
    kinds = list(analysis.classifications)
    costs = {
        a: [analysis.classifications[k].cost[a] for k in kinds]
        for a in analysis.attributes
        if a in analysis.classifications[kinds[0]].cost
    }
    if costs:
        show.say()
        show.print_table(
            ("points lost without", *(Column(kind, "+.1f") for kind in kinds)),
            (
                (f"  {attribute}", *(100 * e.value for e in cost_estimates))
                for attribute, cost_estimates in sorted(
                    costs.items(), key=lambda item: -item[1][0].value
                )
            ),
        )
    words_by_group: dict[tuple[str, str], list[str]] = {}
    for word in analysis.words:
        if word.is_shown:
            words_by_group.setdefault((word.attribute, word.group), []).append(word.word)
    if words_by_group:
        show.say(
            "",
            "words that more of a group's names have than of the others' (corrected p <= 0.05, "
            "and an interval above 0)",
            *(
                f"  {a}, {g}: {', '.join(words[:MAX_WORDS_LISTED])}"
                for (a, g), words in words_by_group.items()
            ),
        )


def _format_estimate(estimate: "Estimate") -> str:
    if estimate.value != estimate.value:
        return "-"
    return (
        f"{estimate.value:.3f} [{estimate.format_interval('.3f')}]"
        if estimate.is_shown
        else f"{estimate.value:.3f}"
    )


@profiles.command(
    short_help="Compare the words of groups with those of APX or of a crawl.",
    examples=("kgbias profiles agreement profiles --crawl smollm2",),
)
@run_name_argument
@store_option
@click.option(
    "--apx",
    type=click.Path(dir_okay=False, path_type=Path),
    help="An APX table, as written by kgbias probe apx -o.",
)
@click.option("--crawl", metavar="RUN", help="A crawl of the same groups, such as Arab women.")
@click.option(
    "--attribute", multiple=True, metavar="NAME", help="Only this attribute (repeatable)."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for each comparison's figure (SVG, PDF, PNG) and LaTeX table.",
)
@shared_settings("seed")
@json_option
def agreement(run_name: str | None, store_url: str, **options: Any) -> Output:
    """Compare the words that profiles tie to groups with those that a model finds probable (APX),
    or says of the groups in a crawl (Table 7 of Siddique et al. 2024).
    """
    with kgbias.open(store_url, progress=True) as study:
        comparisons = profile_calls.compare_words(study.run(run_name), **drop_unset(**options))
    return Output(list(comparisons), lambda: _print_agreement(comparisons))


def _print_agreement(comparisons: "Sequence[ProfileAgreement]") -> None:
    for comparison in comparisons:
        show.say(
            f"{comparison.source}: "
            f"{pluralise(len(comparison.rows), 'word')} of {comparison.groups} groups; "
            f"mean reciprocal rank of the "
            f"group that a word is most typical of: {_format_estimate(comparison.mrr)}, "
            f"by chance {comparison.expected:.3f}, p = {comparison.p_value:.3f}"
        )
        for row in comparison.rows:
            profile_groups, other_groups = (
                ", ".join(row.written[:MAX_WORDS_LISTED]),
                ", ".join(row.other[:MAX_WORDS_LISTED]),
            )
            show.say(f"  {row.attribute}, {row.word}: {profile_groups} | {other_groups}")


@profiles.command(
    short_help="Write an HTML page with the profiles of two names side by side.",
    examples=("kgbias profiles page smollm2 --name Ahmed -o profiles.html",),
)
@run_name_argument
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
    """Write the profiles of a run as a page that shows those of two names side by side.

    The page works offline. Everything on it was invented by a model.
    """
    with kgbias.open(store_url, progress=True) as study:
        path = profile_calls.write_page(study.run(run_name), output, **drop_unset(name=name))
    show.say(path)
