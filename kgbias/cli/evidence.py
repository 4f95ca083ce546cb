"""`kgbias evidence` and `replicate`: what was said, believed and embedded, in one row per triple,
and whether the beliefs are found again."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    base_url_option,
    drop_unset,
    json_option,
    parameter_options,
    run_name_argument,
    selection_options,
    store_option,
    take_options,
    workers_settings,
)
from kgbias.cli.settings import drop_shared, keep_applicable, setting, shared_settings
from kgbias.cli.show import Output
from kgbias.evidence import (
    VERDICTS,
    Evidence,
    GroupAgreement,
    Replication,
    ReplicationRate,
    select_top_rows,
)
from kgbias.evidence.evidence_table import NOT_PROBED, ORDERS, count_sentences
from kgbias.evidence.names import MIN_NAMES
from kgbias.evidence.probe_plan import EvidencePrice, ProbeSettings
from kgbias.io.columns import Column
from kgbias.io.text import spoken_name
from kgbias.io.wording import pluralise
from kgbias.parallel import LOCAL_EXECUTOR
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate
from kgbias.study.beliefs import FloorSummary
from kgbias.study.probing import BeliefOptions

_MAX_SHOWN = 10
_NO_VERDICT_MEANING = (
    f"or said of a group with fewer than {MIN_NAMES} names, of which nothing can be said"
)


@click.command(
    cls=Command,
    section="Main workflow",
    short_help="Join what was said, believed and embedded.",
    examples=("kgbias evidence smollm2 --model smollm2",),
)
@run_name_argument
@store_option
@click.option(
    "--model",
    metavar="SPEC",
    help="First probe the run with this model, and embed the run with it (default: read what "
    "the store holds).",
)
@click.option(
    "--encoder",
    metavar="SPEC",
    help="Use the vectors of this model, or of vectors:FILE (default: those of --model).",
)
@click.option(
    "--indicators",
    metavar="FILE",
    help="Your own names of groups, and words for them (see docs/how-to/groups.md).",
)
@click.option(
    "--statements",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="More statements: one per line, or CSV with the columns statement and category.",
)
@parameter_options(ProbeSettings)
@click.option("--dry-run", is_flag=True, help="Show what would be asked, and stop.")
@workers_settings
@shared_settings("device")
@base_url_option
@selection_options
@json_option
def evidence(run_name: str | None, store_url: str, dry_run: bool, **options: Any) -> Output:
    """Join what a run said, what a model finds probable and what its vectors hold: one row for each
    triple, with a verdict.

    A statement is believed of a group if it is likelier after the group's names than after those of
    the other groups, by more than half a bit, beyond what each name makes likelier anyway, and by
    more than the names differ among themselves (docs/methods/evidence.md). Beside it is what the
    same test finds with made-up names.
    """
    selection = {name: options[name] for name in ("arm", "min_acceptability", "exclude_echoes")}
    if options["executor"] == LOCAL_EXECUTOR:
        options["executor"] = None  # the library's default, which needs no --model
    if options["model"]:
        options = keep_applicable(options, [options["model"]], "scorer")
    else:
        unused = ["executor", "processes", "base-url"]
        options = drop_shared(options, unused if options["encoder"] else [*unused, "device"])
    probe_options: Any = take_options(options, BeliefOptions)
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if dry_run:
            price_options = drop_unset(**selection, indicators=options["indicators"])
            price = run.evidence(asking=probe_options, dry_run=True, **price_options)
            return Output(price, lambda: _print_price(price))
        rows = run.evidence(asking=probe_options, **drop_unset(**options))
        # Of several models that were asked about the run, the one that the rows are of.
        model = next((row.model for row in rows if row.model), None)
        agreement = run.beliefs.agreement(model, **selection)
        is_probed = any(row.lift.has_interval for row in rows)
        groups = run.beliefs.groups(model) if is_probed else None
        floor = run.beliefs.floor(model) if is_probed else None

    def print_text() -> None:
        if is_probed:
            show.say(f"beliefs of {model}")
        print_verdicts(rows)
        _print_floor(floor)
        _print_groups(groups or ())
        _print_agreements(agreement)

    data = {"evidence": rows, "groups": groups or (), "floor": floor or {}, "agreement": agreement}
    return Output(data, print_text)


def _print_price(price: EvidencePrice) -> None:
    show.say(
        f"{pluralise(price.probes, 'probe', spec=',')}, each name after "
        f"{pluralise(len(price.carriers), 'carrier')}: "
        f"{pluralise(price.texts, 'text', spec=',')} to score, names by themselves included; "
        f"{price.texts_of_groups:,} more for the groups' own names before every statement; and "
        f"{pluralise(price.embedded, 'statement', spec=',')} to embed if the model has vectors; "
        f"less where the store "
        "holds some"
    )
    for category_price in price.categories:
        names = sum(len(group_names) for group_names in category_price["names"].values())
        show.say(
            f"{category_price['category']}: "
            f"{pluralise(names, 'name')} of {len(category_price['names'])} "
            f"groups before "
            f"{pluralise(category_price['statements'], 'statement')} "
            f"({category_price['not_probed']} left out); "
            f"{category_price['nonce_names']} made-up names before "
            f"{category_price['floor_statements']}"
        )
        if small_groups := category_price["too_few_names"]:
            show.say(
                f"  nothing can be said about {', '.join(small_groups)}: fewer than {MIN_NAMES} "
                "names, or no other group to compare; what is found is a belief about their names"
            )


def _print_floor(floor: FloorSummary | None) -> None:
    """Print how much is believed of groups, beside how much of made-up names."""
    if floor is not None and floor.tested:
        show.say(floor.heading(), "")


def _print_groups(rows: Any) -> None:
    """Print the correlations that were shown: corrected p at most 0.05, and an interval that
    excludes 0."""
    shown_rows = sorted(
        (
            row
            for row in rows
            if row["kind"] == "rho" and row["q_value"] <= 0.05 and _excludes_zero(row)
        ),
        key=lambda row: row["p_value"],
    )
    if not shown_rows:
        return
    show.say(
        "how a group's lifts go with the statements' scores (rho, mean over its names; corrected "
        "p at most 0.05, the smallest first):"
    )
    cells = []
    for row in shown_rows[:_MAX_SHOWN]:
        rho = Estimate(row["value"], row["low"], row["high"], row["statements"])
        cells.append((row["group"], spoken_name(row["score"]), rho))
    show.print_table(("", "", Column("", "+.2f", interval=True)), cells, indent=2)
    show.say()


def _excludes_zero(row: dict[str, Any]) -> bool:
    return bool(row["low"] > 0 or row["high"] < 0)


def print_verdicts(rows: Sequence[Evidence]) -> None:
    """Print the most telling statements of each verdict; of those without one, only such as were
    probed, for a group with too few names, or that stories make too."""
    for name in dict.fromkeys((*VERDICTS, *(row.verdict for row in rows))):
        verdict_rows = [row for row in rows if row.verdict == name]
        if not verdict_rows:
            continue
        # Rows without a verdict need words for it only if some of them were probed.
        unnamed = _NO_VERDICT_MEANING if any(row.lift.n for row in verdict_rows) else ""
        meaning = VERDICTS.get(name, unnamed) if name else ""
        count = count_sentences(verdict_rows)
        heading = f"{name}: {pluralise(count, 'statement', spec=',')}"
        if meaning:
            heading += f" ({meaning})"
        if name == NOT_PROBED:
            verdict_rows = [
                row for row in verdict_rows if row.lift.has_interval or row.story_share.has_interval
            ]
        if name in ORDERS and count_sentences(verdict_rows) > _MAX_SHOWN:
            heading += f"; {ORDERS[name]}"
        show.say(heading)
        cells = [_verdict_cells(row) for row in select_top_rows(verdict_rows, _MAX_SHOWN)]
        columns = [n for n, column in enumerate(zip(*cells, strict=True)) if any(column)]
        if cells:
            show.print_table(
                [""] * len(columns), ([row[n] for n in columns] for row in cells), indent=2
            )
        show.say()


def _verdict_cells(row: Evidence) -> tuple[str, ...]:
    """What was said, believed, embedded, chosen and told in stories, each "" if unknown, and the
    sentence."""
    lift = f"lift {row.lift.value:>+6.2f} bits ({row.lift.format_interval('+.1f')})"
    return (
        f"said {row.times:>3}",
        lift if row.lift.has_interval else "",
        f"association {row.association.value:>+5.2f}" if row.vectors else "",
        f"chosen {row.chosen.value:.2f}" if row.chosen.value == row.chosen.value else "",
        f"stories {row.story_share.value:.2f}" if row.story_share.has_interval else "",
        row.sentence[:70],
    )


def _print_agreements(rows: Sequence[GroupAgreement]) -> None:
    """Print how far the three kinds agree, a line for each group."""
    if not rows:
        return
    has_several_arms = len({row.arm for row in rows}) > 1
    names = ("said_believed", "said_embedded", "believed_embedded")
    columns = [Column(name, "+.2f", interval=True, title=name.replace("_", "-")) for name in names]
    show.print_table(
        ("Kendall tau-b", *columns),
        (
            (
                f"{row.group} ({row.arm})" if has_several_arms else row.group,
                *(column.read(row) for column in columns),
            )
            for row in rows
        ),
    )


_WAY_TITLES = {
    "names": "believed with half of each group's names, tried with the other half",
    "roots": "believed with the names of one root, tried with those of another",
    "carriers": "tried with other carriers",
    "crawl": "tried in the other run, where it probed the statement",
}


@click.command(
    cls=Command,
    section="Check",
    short_help="Test again, with other names, what a model believes.",
    examples=("kgbias replicate smollm2 --model smollm2",),
)
@run_name_argument
@store_option
@click.option(
    "--model",
    metavar="SPEC",
    help="Ask the model again with other carriers (default: ask nothing).",
)
@setting(
    "carrier",
    "carriers",
    multiple=True,
    metavar="TEXT",
    help="The text before names; give three or more (default: three that were not used).",
)
@click.option(
    "--other-run", metavar="RUN", help="Look up the findings in another run of the store."
)
@shared_settings("device")
@base_url_option
@workers_settings
@json_option
def replicate(run_name: str | None, store_url: str, **options: Any) -> Output:
    """Test again what a model was found to believe: with held-out names, with other carriers, or in
    another crawl."""
    if options["executor"] == LOCAL_EXECUTOR:
        options["executor"] = None
    model = options["model"]
    options = keep_applicable(options, [model], "scorer") if model else drop_shared(options)
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        replication = run.beliefs.replicate(**drop_unset(**options))
        ids = {group.name: group.id for group in run.stored.groups}
        sentences = {
            (ids[row.group], Statement(row.predicate, row.object).id): row.sentence
            for row in run.evidence()
        }
    return Output(
        _replication_record(replication), lambda: _print_replication(replication, sentences)
    )


def _print_replication(replication: Replication, sentences: Mapping[tuple[str, str], str]) -> None:
    show.say(f"beliefs of {replication.belief_run.model.title}, tried again")
    for rate in replication.rates:
        for line in _describe_way(rate, sentences):
            show.say(line)


def _replication_record(replication: Replication) -> dict[str, Any]:
    return {
        "model": replication.belief_run.model.title,
        "ways": [
            {
                "by": rate.by,
                "tried": rate.tried,
                "same_sign": rate.same_sign.as_dict(),
                "replication_rate": rate.replication_rate.as_dict(),
                "missed": [list(p) for p in rate.missed],
            }
            for rate in replication.rates
        ],
        "findings": [
            {"group": group, "statement": statement, "replication_rate": share}
            for (group, statement), share in replication.shares_by_finding.items()
        ],
    }


def _describe_way(rate: ReplicationRate, sentences: Mapping[tuple[str, str], str]) -> Iterator[str]:
    if not rate.tried:
        yield f"{_WAY_TITLES[rate.by]}: nothing to try"
        return
    same_text, found_text = (
        f"{e.value:.1%}" + (f" ({e.format_interval('.1%')})" if e.is_shown else "")
        for e in (rate.same_sign, rate.replication_rate)
    )
    yield (
        f"{_WAY_TITLES[rate.by]}: of {rate.tried} the same sign {same_text}, p < .05 there "
        f"{found_text}"
    )
    if rate.missed:
        heading = (
            "found again in less than half of the halves"
            if rate.by == "names"
            else ("not found again")
        )
        yield f"  {heading}: {pluralise(len(rate.missed), 'finding')} of the run"
        for place in rate.missed[:_MAX_SHOWN]:
            yield f"    {sentences.get(place, ' '.join(place))[:90]}"
