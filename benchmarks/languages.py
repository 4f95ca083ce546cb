"""How well statements of two languages are matched by their meaning, on the pairs that SeeGULL
Multilingual gives: an attribute and its English.

    python benchmarks/languages.py FOLDER [--pairs N] [--languages de,es]

FOLDER has the files of SeeGULL Multilingual (de-DE.csv ...). Of each language N attributes and N
English ones are drawn by a seed, so that half of either have a counterpart among the other, as in
two crawls. Right is a match that the file gives. The English was made by machine.
"""

import argparse
import csv
from pathlib import Path
from random import Random

from kgbias.evidence.language_pairs import MIN_COSINE, pair_by_meaning
from kgbias.measure.scorers._multilingual import encode
from kgbias.stats.inference import proportion

FILES = {
    "ar": "ar-AE",
    "de": "de-DE",
    "es": "es-ES",
    "hi": "hi-IN",
    "it": "it-IT",
    "nl": "nl-NL",
    "pt": "pt-BR",
}
COSINES = (0.0, 0.86, 0.88, 0.9, 0.92, 0.94)


def read_pairs(path: Path) -> set[tuple[str, str]]:
    """Each attribute with its English, but those that are the same word in both."""
    with path.open(encoding="utf-8") as file:
        pairs = {
            (row["attribute"].strip().lower(), row["translated_attribute_list"].strip().lower())
            for row in csv.DictReader(file)
        }
    return {(own, english) for own, english in pairs if own and english and own != english}


def main(folder: Path, languages: list[str], count: int) -> None:
    print("| language | cosine from | matched | right | found of those with a counterpart |")
    print("|---|---|---|---|---|")
    for language in languages:
        pairs = read_pairs(folder / f"{FILES[language]}.csv")
        chosen = sorted(pairs)
        Random(0).shuffle(chosen)
        own = list(dict.fromkeys(pair[0] for pair in chosen[:count]))
        english = list(dict.fromkeys(pair[1] for pair in chosen[count // 2 :][:count]))
        findable = {pair[0] for pair in pairs if pair[1] in english} & set(own)
        matches = pair_by_meaning(own, english, encode, min_cosine=0.0)
        for cosine in sorted({*COSINES, MIN_COSINE}):
            kept = [match for match in matches if match.cosine >= cosine]
            right = sum((own[m.first], english[m.second]) in pairs for m in kept)
            precision, recall = proportion(right, len(kept)), proportion(right, len(findable))
            print(
                f"| {language} | {cosine:.2f} | {len(kept)} | {precision.value:.3f} "
                f"[{precision.interval('.3f')}] | {recall.value:.3f} [{recall.interval('.3f')}] |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--languages", default=",".join(FILES))
    given = parser.parse_args()
    main(given.folder, given.languages.split(","), given.pairs)
