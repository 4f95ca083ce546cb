"""How often the first screen of a report shows something where nothing is, and where something is.

    python benchmarks/screens.py nulls [--crawls 200] [--folder DIR]
    python benchmarks/screens.py planted [--crawls 20] [--folder DIR]

The reference model is crawled many times, each with a seed of its own, about groups whose beliefs
are the same (`nulls`) or are planted to differ (`planted`); each crawl is measured with the
offline scorers, probed by names, and its first screen read. Every finding of a null is false. It
prints the share of screens with any finding, with its Wilson interval, and what they say. Crawls
are kept in the folder, and a second call goes on where the first was stopped.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import kgbias
from kgbias.reference import load_truth
from kgbias.report.findings import Screen, findings
from kgbias.report.run_data import RunData
from kgbias.statistics import proportion


def groups_of(kind: str, number: int) -> list[str]:
    """The groups of a crawl: a planted null pair, in turn; or four peoples that differ."""
    truth = load_truth()
    if kind == "nulls":
        return list(truth.nulls[number % len(truth.nulls)])
    peoples = truth.categories[0].groups
    different = [name for name in peoples if truth.groups[name].root == name]
    ranked = sorted(different, key=truth.regard_balance)
    return [ranked[0], ranked[1], ranked[-2], ranked[-1]]


def screen_of(study: kgbias.Study, kind: str, number: int, believed: bool) -> Screen:
    name = f"{kind}-{number}"
    run = study.crawl("reference", name=name, group=groups_of(kind, number), seed=1000 + number)
    run.measure()
    if believed:
        run.evidence("reference")
    return findings(RunData(run.stored))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=("nulls", "planted"))
    parser.add_argument("--crawls", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path("screens"))
    parser.add_argument("--without-beliefs", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    shown, kinds, topics = 0, Counter[int](), Counter[str]()
    for number in range(options.crawls):
        with kgbias.open(options.folder / f"{options.kind}.db") as study:
            found = screen_of(study, options.kind, number, not options.without_beliefs)
        kinds[found.kinds] += 1
        shown += bool(found.findings)
        for finding in found.findings:
            topics[finding.topic] += 1
            print(f"{number}: {finding.said.striptags()} {finding.tested}", flush=True)
        if (number + 1) % 10 == 0:
            share = proportion(shown, number + 1)
            print(f"{number + 1} screens, {shown} with a finding: {share}", file=sys.stderr)
    share = proportion(shown, options.crawls)
    print(
        f"{shown} of {options.crawls} screens show something: {share.value:.3f} "
        f"({share.low:.3f} to {share.high:.3f}); kinds looked at: {dict(kinds)}; "
        f"findings: {dict(topics)}"
    )


if __name__ == "__main__":
    main()
