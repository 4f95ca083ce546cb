"""How often pairs find what is not there, and what is: simulated runs of a scripted model.

    python benchmarks/pairs.py [--runs 300] [--quick] [--first 0] [--world NAME]

The model is that of the tests (tests/letterwriter.py), asked four requests of the shipped pack, in
three wordings, about the eight names or words of the category gender. Worlds:

- nothing: nothing depends on whom a request is about;
- men: answers for men are shorter and more often refusals;
- one name: the same for James alone;
- every name: answers about each name or words are shorter by 0 to 4 sentences, drawn anew in each
  run, whatever the group (all ten requests are made);
- long for men: men's answers of more than eleven sentences are refusals instead. Nobody's answer is
  made shorter: that those to men are shorter where both are answered is selection alone.

Prints in how many runs each verdict is given, by measure, and how often a change of the floor is
found. --quick leaves out regard, toxicity and likeness. Runs are numbered from --first, so that
parts of a world can be made one by one.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from zlib import crc32

from kgbias.language.words import is_refusal
from kgbias.methods.pairs.compare import DIFFERS, Likeness, PairDifference, compare_answers
from kgbias.methods.pairs.config import GREETED, PairAnswer, PairPlace, configure_pairs
from tests import letterwriter

REQUESTS = ("reference letter", "pay", "loan", "neighbour")
WORLDS = ("nothing", "men", "one name", "every name", "long for men")
MAX_SENTENCES = 11  # sentences; more are refused to men in the last world
MAX_LACKING = 5  # sentences that answers about a name lack: fewer than this


def make_answers(places: Iterable[PairPlace], world: str, run: int) -> list[PairAnswer]:
    """The answers of one run in a world."""
    simulated = []
    for place in places:
        about = place.wording.about(place.person)
        text = letterwriter.reply(
            ("Hello. " if place.round_name == GREETED else "") + about,
            crc32(f"{run}/{place.path}".encode()),
            planted=world == "men" or (world == "one name" and "James" in about),
        )
        if world == "every name" and text != letterwriter.REFUSAL:
            sentences = text.split(". ")
            fewer = crc32(f"{run}/{place.person.slot}/{place.person.name}".encode()) % MAX_LACKING
            text = ". ".join(sentences[: len(sentences) - fewer])
        men = letterwriter.MEN.search(about) is not None
        if world == "long for men" and men and text.count(".") > MAX_SENTENCES:
            text = letterwriter.REFUSAL
        simulated.append(PairAnswer(place, "refused" if is_refusal(text) else "ok", text))
    return simulated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--world", choices=WORLDS, action="append")
    arguments = parser.parse_args()
    measures = ("words", "refused", "reading ease") if arguments.quick else ()
    for world in arguments.world or WORLDS:
        requests = () if world == "every name" else REQUESTS
        config = configure_pairs("reference", category="gender", request=requests)
        places = [place for n in range(config.rounds) for place in config.places(n)]
        print(f"{len(places)} answers in each of {arguments.runs} runs")
        anything, verdicts, floor = 0, Counter[str](), Counter[str]()
        for run in range(arguments.first, arguments.first + arguments.runs):
            comparison = compare_answers(
                make_answers(places, world, run), measures=measures, seed=run
            )
            verdict_rows: list[tuple[str, PairDifference | Likeness]] = [
                (d.measure, d) for d in comparison.differences
            ]
            verdict_rows += [("likeness", k) for k in comparison.likeness]
            verdicts.update(
                f"{measure}: {result.verdict}{', if answered' if result.conditional else ''}"
                for measure, result in verdict_rows
                if result.verdict
            )
            anything += any(result.verdict == DIFFERS for _, result in verdict_rows)
            floor.update(f"{f.change}, {f.measure}" for f in comparison.floor if f.found)
        print(f"{world}, runs {arguments.first} to {run}: anything differs in {anything}")
        for name, counts in (("verdicts", verdicts), ("floor", floor)):
            print(f"    {name}: {dict(sorted(counts.items()))}", flush=True)


if __name__ == "__main__":
    main()
