"""How often the first screen of a report shows a finding when there is none, and when there is one.

    python benchmarks/screens.py nulls [--screens 200] [--folder DIR]
    python benchmarks/screens.py twins [--screens 200] [--folder DIR]
    python benchmarks/screens.py planted [--screens 20] [--folder DIR]

The reference model is crawled many times, each with its own seed, and measured with the offline
scorers. `twins` are peoples with the same planted beliefs, which the model has learnt a little
differently; `planted` are four that differ; for both, the first screen of each crawl is read.
`nulls` are exact: what was said about a people in one crawl is compared with what was said about
the same people in another, as if it had been said about its twin, so only the seed and the name
differ. Every finding on these is false. Prints the share of screens with any finding, with its
Wilson interval, and what they say. Crawls are kept in the folder, and a second call continues where
the first stopped.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import kgbias
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Generation, Group, Triple
from kgbias.reference import load_truth
from kgbias.report.findings import FirstScreen, build_screen
from kgbias.report.run_data import RunData
from kgbias.stats.inference import proportion


def groups_of(kind: str, number: int) -> list[str]:
    """The groups of a crawl: one pair of twins after another; or four peoples that differ."""
    truth = load_truth()
    if kind == "twins":
        return list(truth.nulls[number % len(truth.nulls)])
    peoples = truth.categories[0].groups
    different = [name for name in peoples if truth.groups[name].root == name]
    ranked = sorted(different, key=truth.regard_balance)
    return [ranked[0], ranked[1], ranked[-2], ranked[-1]]


def crawl_groups(study: kgbias.Study, kind: str, number: int) -> kgbias.Run:
    name = f"{kind}-{number}"
    return study.crawl("reference", name=name, group=groups_of(kind, number), seed=1000 + number)


def make_null_run(folder: Path, number: int) -> str:
    """The name of a run with two groups, which are one people in two crawls. Every two crawls of
    the same twins give two such runs, one for each people."""
    pairs = len(load_truth().nulls)
    block, place = divmod(number // 2, pairs)
    with kgbias.open(folder / "twins.db") as study:
        numbers = (2 * block * pairs + place, (2 * block + 1) * pairs + place)
        crawls = [crawl_groups(study, "twins", n).stored for n in numbers]
        record = crawls[0].record
        people, twin = record.groups if number % 2 == 0 else record.groups[::-1]
        run = replace(record, name=f"nulls-{number}", config={**record.config, "null": number})
        generations = [
            replace(generation, run_id=run.id)
            for crawl, group in zip(crawls, (people, twin), strict=True)
            for generation in _say_of(group, people, crawl.generations())
        ]
    with SQLiteStore(str(folder / "nulls.db")) as store:
        store.begin_run(run)
        store.load_import(run.id, generations)
        store.set_status(run.id, "complete")
    return run.name


def _say_of(group: Group, people: Group, generations: Iterator[Generation]) -> Iterator[Generation]:
    for generation in generations:
        if generation.group_id != people.id:
            continue
        triple = generation.triple and Triple(
            group.name, generation.triple.predicate, generation.triple.object
        )
        path = generation.path.replace(f"/{people.name}", f"/{group.name}")
        yield replace(
            generation, group_id=group.id, triple=triple, path=path, answer_key="", shown=()
        )


def read_screen(folder: Path, kind: str, number: int) -> FirstScreen:
    name = make_null_run(folder, number) if kind == "nulls" else None
    with kgbias.open(folder / f"{kind}.db") as study:
        run = study.run(name) if name else crawl_groups(study, kind, number)
        run.measure()
        return build_screen(RunData(run.stored))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=("nulls", "twins", "planted"))
    parser.add_argument("--screens", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path("screens"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    shown_count, kinds, topics = 0, Counter[int](), Counter[str]()
    for number in range(options.screens):
        screen = read_screen(options.folder, options.kind, number)
        kinds[screen.kinds] += 1
        shown_count += bool(screen.findings)
        for finding in screen.findings:
            topics[finding.topic] += 1
            print(f"{number}: {finding.said.striptags()} {finding.tested}", flush=True)
        if (number + 1) % 10 == 0:
            share = proportion(shown_count, number + 1)
            print(f"{number + 1} screens, {shown_count} with a finding: {share}", file=sys.stderr)
    share = proportion(shown_count, options.screens)
    print(
        f"{shown_count} of {options.screens} screens show something: {share.value:.3f} "
        f"({share.low:.3f} to {share.high:.3f}); kinds looked at: {dict(kinds)}; "
        f"findings: {dict(topics)}"
    )


if __name__ == "__main__":
    main()
