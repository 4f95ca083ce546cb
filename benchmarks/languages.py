"""How well statements of two languages are matched by their meaning, on the pairs that SeeGULL
Multilingual gives: an attribute and its English.

    python benchmarks/languages.py FOLDER [--pairs N] [--languages de,es]

FOLDER has the files of SeeGULL Multilingual (de-DE.csv ...). The pairs of each language are cut in
two halves, with no English attribute in both. Of each half N attributes and N English ones are
drawn by a seed, so that half of either have a counterpart among the other, as in two crawls. The
cosine from which a match is taken is chosen on one half, of all languages together: the lowest at
which `PRECISION` of the matches are right. What it finds is reported on the other. Right is a match
that the file gives. The English was made by machine.
"""

import argparse
import csv
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kgbias.evidence.language_pairs import MIN_COSINE, pair_by_meaning
from kgbias.measure.scorers._multilingual import encode
from kgbias.stats.inference import clustered_proportion, proportion

FILES = {
    "ar": "ar-AE",
    "de": "de-DE",
    "es": "es-ES",
    "hi": "hi-IN",
    "it": "it-IT",
    "nl": "nl-NL",
    "pt": "pt-BR",
}
COSINES = [round(0.86 + 0.01 * step, 2) for step in range(10)]
PRECISION = 0.9
ROW = "| {} | {} | {} | {:.3f} [{}] | {:.3f} [{}] |"


@dataclass(frozen=True)
class Trial:
    """What is matched of a half of one language's pairs: each match with its cosine and whether
    the file gives it; `findable` is how many attributes have a counterpart."""

    language: str
    matches: Sequence[tuple[float, bool]]
    findable: int

    def right(self, cosine: float) -> list[bool]:
        """Of each match that is taken from a cosine on, whether it is right."""
        return [is_right for own_cosine, is_right in self.matches if own_cosine >= cosine]


def read_pairs(path: Path) -> set[tuple[str, str]]:
    """Each attribute with its English, but those that are the same word in both."""
    with path.open(encoding="utf-8") as file:
        pairs = {
            (row["attribute"].strip().lower(), row["translated_attribute_list"].strip().lower())
            for row in csv.DictReader(file)
        }
    return {(own, english) for own, english in pairs if own and english and own != english}


def match_half(language: str, pairs: set[tuple[str, str]], half: int, count: int) -> Trial:
    chosen = [pair for pair in sorted(pairs) if zlib.crc32(pair[1].encode()) % 2 == half]
    Random(0).shuffle(chosen)
    own = list(dict.fromkeys(pair[0] for pair in chosen[:count]))
    english = list(dict.fromkeys(pair[1] for pair in chosen[count // 2 :][:count]))
    findable = {pair[0] for pair in pairs if pair[1] in english} & set(own)
    matches = [
        (match.cosine, (own[match.first], english[match.second]) in pairs)
        for match in pair_by_meaning(own, english, encode, min_cosine=0.0)
    ]
    return Trial(language, matches, len(findable))


def print_row(name: str, trials: Sequence[Trial], cosine: float) -> None:
    """Precision and recall; of several languages with an interval over these."""
    taken = [(trial.language, ok) for trial in trials for ok in trial.right(cosine)]
    found = [
        (trial.language, n < sum(trial.right(cosine)))
        for trial in trials
        for n in range(trial.findable)
    ]
    cells = []
    for units in (taken, found):
        values = [float(ok) for _, ok in units]
        share = (
            clustered_proportion([language for language, _ in units], values)
            if len(trials) > 1
            else proportion(int(sum(values)), len(values))
        )
        cells += [share.value, share.format_interval(".3f")]
    print(ROW.format(name, f"{cosine:.2f}", len(taken), *cells), flush=True)


def choose_cosine(trials: Sequence[Trial]) -> float:
    """The lowest cosine at which enough matches of all languages are right."""
    for cosine in COSINES:
        right = [ok for trial in trials for ok in trial.right(cosine)]
        if sum(right) >= PRECISION * len(right):
            return cosine
    return COSINES[-1]


def main(folder: Path, languages: list[str], count: int) -> None:
    pairs = {language: read_pairs(folder / f"{FILES[language]}.csv") for language in languages}
    first, second = (
        [match_half(language, pairs[language], half, count) for language in languages]
        for half in (0, 1)
    )
    print("| language | cosine from | matched | right | found of those with a counterpart |")
    print("|---|---|---|---|---|")
    for cosine in COSINES:
        print_row("all, the half it is chosen on", first, cosine)
    chosen = choose_cosine(first)
    print(f"chosen: {chosen:.2f}; kgbias takes {MIN_COSINE:.2f}")
    for cosine in sorted({chosen, MIN_COSINE}):
        for trial in second:
            print_row(trial.language, [trial], cosine)
        print_row("all, the other half", second, cosine)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=130)
    parser.add_argument("--languages", default=",".join(FILES))
    given = parser.parse_args()
    main(given.folder, given.languages.split(","), given.pairs)
