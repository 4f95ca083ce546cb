"""`kgbias replicate`: whether what a model believes is found again."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    json_option,
    run_argument,
    said,
    store_option,
    workers_options,
)
from kgbias.evidence import Again, Replication
from kgbias.graph.types import node_id
from kgbias.parallel import LOCAL
from kgbias.probe.result import Statement

_SHOWN = 10
_WAYS = {
    "names": "believed by half of each group's names, tried with the other half",
    "roots": "believed by the names of one root, tried with those of another",
    "carriers": "tried with other carriers",
    "crawl": "tried in the other run, where it probed the statement",
}


@click.command(cls=Command, examples=("kgbias replicate smollm2 --model smollm2",))
@run_argument
@store_option
@click.option(
    "--model",
    metavar="SPEC",
    help="Ask the model again with other carriers (default: nothing is asked).",
)
@click.option(
    "--carrier",
    "carriers",
    multiple=True,
    metavar="TEXT",
    help="What stands before names, three times or more (default: three that were not used).",
)
@click.option("--other", metavar="RUN", help="Look findings up in another run of the store.")
@click.option("--device", metavar="NAME", help="Where models run: auto, cpu, cuda, cuda:N or mps.")
@click.option("--base-url", metavar="URL", help="The server of --model openai:ID.")
@workers_options
@json_option
def replicate(run_name: str | None, store_url: str, as_json: bool, **given: Any) -> None:
    """Try again what a model was found to believe: with names held out, with other carriers, in
    another crawl."""
    if given["executor"] == LOCAL:
        given["executor"] = None
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        found = run.replicate(**said(**given))
        sentences = {
            (node_id("group", row.group), Statement(row.predicate, row.object).id): row.sentence
            for row in run.evidence()
        }
    if as_json:
        return show.data(_record(found))
    for way in found.ways:
        for line in _lines(way, sentences):
            show.say(line)


def _record(found: Replication) -> dict[str, Any]:
    return {
        "model": found.believing.model.name,
        "ways": [
            {
                "by": way.by, "tried": way.tried, "same_sign": way.same_sign.as_dict(),
                "found_again": way.found_again.as_dict(), "missed": [list(p) for p in way.missed],
            }
            for way in found.ways
        ],
        "findings": [
            {"group": group, "statement": statement, "found_again": share}
            for (group, statement), share in found.of_finding.items()
        ],
    }  # fmt: skip


def _lines(way: Again, sentences: Mapping[tuple[str, str], str]) -> Iterator[str]:
    if not way.tried:
        yield f"{_WAYS[way.by]}: nothing to try"
        return
    same, found = (
        f"{e.value:.0%}" + (f" ({e.interval('.0%')})" if e.has_interval else "")
        for e in (way.same_sign, way.found_again)
    )
    yield f"{_WAYS[way.by]}: of {way.tried} the same sign {same}, p < .05 there {found}"
    if way.missed:
        head = (
            "found again by less than half of the halves"
            if way.by == "names"
            else ("not found again")
        )
        yield f"  {head}: {len(way.missed)} findings of the run"
        for place in way.missed[:_SHOWN]:
            yield f"    {sentences.get(place, ' '.join(place))[:90]}"
