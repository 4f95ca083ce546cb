"""How often association tests find what is planted in the reference models, and what is not.

    python benchmarks/association_power.py

Planted: the given names of two groups whose regard was planted to differ by 0.4 or more, against
words of positive and of negative regard; found if p <= 0.05 and the sign is right. Null: the names
of two groups with the same beliefs, dealt at random to the two sets; p <= 0.05 is a false positive.
Each row is a method and a setting; the p of a search over settings is corrected for the search
(`kgbias.methods.associations.search`). Prints a Markdown table, for docs/methods/how-well.md.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from kgbias.methods.associations.grid import EmbeddingCache, PredictionCache
from kgbias.methods.associations.lpbs import lpbs
from kgbias.methods.associations.result import Association, Statistics
from kgbias.methods.associations.search import search_seat
from kgbias.methods.associations.sets import AssociationTest
from kgbias.methods.associations.weat import seat
from kgbias.models.embed import Encoder, open_encoder
from kgbias.models.predict import open_predictor
from kgbias.stats.inference import proportion
from tests.methods.associations.integration.test_associate_reference import LEVEL, nulls, planted

Measure = Callable[[AssociationTest, Statistics], Association]
ONE_TAILED = Statistics()
TWO_TAILED = Statistics(tails="two")


def measures(spec: str) -> dict[str, Measure]:
    """The rows: the measures to run on each test."""
    encoder = open_encoder(spec)
    texts, predictor = EmbeddingCache(encoder), PredictionCache(open_predictor(spec))
    rows: dict[str, Measure] = {"LPBS": lambda test, how: lpbs(test, predictor, TWO_TAILED)}
    for method in ("w-seat", "s-seat"):
        for encoding in _encodings(encoder, method):
            for layer in range(encoder.layers + 1):
                if layer or encoding in ("word-average", "mean"):  # otherwise all sentences agree
                    rows[f"{method}, {encoding}, layer {layer}"] = _seat(
                        texts, method, encoding, layer
                    )
        rows[f"{method}, search"] = _search(texts, method)
    return rows


def _seat(encoder: EmbeddingCache, method: str, encoding: str, layer: int) -> Measure:
    return lambda test, how: seat(test, encoder, method, how, encoding=encoding, layer=layer)  # type: ignore[arg-type]


def _search(encoder: EmbeddingCache, method: str) -> Measure:
    return lambda test, how: search_seat(test, encoder, method, how)  # type: ignore[arg-type]


def _encodings(encoder: Encoder, method: str) -> Sequence[str]:
    return ("word-average",) if method == "w-seat" else encoder.sentence_encodings


def main() -> None:
    print("| model | method | one tail | two tails, right sign | either sign | false positives |")
    print("|---|---|---|---|---|---|")
    for spec in ("reference", "reference-masked"):
        for name, run in measures(spec).items():
            one_tailed = [run(test, ONE_TAILED) for test in planted()]
            two_tailed = [run(test, TWO_TAILED) for test in planted()]
            null = [run(test, TWO_TAILED).test_p_value.value <= LEVEL for test in nulls()]
            print(
                f"| {spec} | {name} | {_format_share([_is_found(r) for r in one_tailed])} "
                f"| {_format_share([_is_found(r) for r in two_tailed])} "
                f"| {_format_share([r.test_p_value.value <= LEVEL for r in two_tailed])} | "
                f"{_format_share(null, 3)} |",
                flush=True,
            )


def _is_found(result: Association) -> bool:
    return result.test_p_value.value <= LEVEL and result.effect_size > 0


def _format_share(hits: Sequence[bool], digits: int = 2) -> str:
    share = proportion(int(np.sum(hits)), len(hits))
    return f"{share.value:.{digits}f} ({share.low:.{digits}f} to {share.high:.{digits}f})"


if __name__ == "__main__":
    main()
