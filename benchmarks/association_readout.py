"""How much of what was planted the reference models' vectors hold, and whether SEAT can see it.

    python benchmarks/association_readout.py

For each layer and encoding: how well a linear read-out finds the planted regard of a group from
the vectors of its given names (ridge regression, learnt on the other groups; Spearman's rho of
the predictions with what was planted, and the mean and 95th percentile of the same with the
groups' regard permuted), and the direction that SEAT uses instead, from negative to positive
words: its cosine with the planted direction of the names, and the share of planted pairs of groups
that it puts in the right order (chance: one half). Prints a Markdown table, for
docs/methods/how-well.md.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from kgbias.methods.associations.effect import scale_to_unit
from kgbias.methods.associations.sets import WordSet
from kgbias.methods.associations.weat import fill_slot_templates
from kgbias.models.embed import Encoder, Encoding, open_encoder
from kgbias.stats.inference import rank_correlation
from tests.methods.associations.integration.test_associate_reference import (
    NEGATIVE,
    PLANTED,
    POSITIVE,
    TRUTH,
)

RIDGE = 0.1  # of the mean variance of a dimension
PERMUTATIONS = 200
Array = NDArray[np.float64]


def main() -> None:
    groups = [g for g, known in TRUTH.groups.items() if known.root == g]
    regard = np.array([TRUTH.regard_balance(g) for g in groups])
    print("| model | encoding | layer | read-out rho | dealt anew | cosine | right order |")
    print("|---|---|---|---|---|---|---|")
    for spec in ("reference", "reference-masked"):
        model = open_encoder(spec)
        for encoding in ("word-average", *model.sentence_encodings):
            for layer in range(model.layers + 1):
                names = np.stack(
                    [
                        _embed(model, TRUTH.groups[g].given_names, "name", encoding, layer)
                        for g in groups
                    ]
                )
                if names.std(axis=0).max() < 1e-6:
                    continue  # the input embedding of a special token
                words = [_embed(model, w, "quality", encoding, layer) for w in (POSITIVE, NEGATIVE)]
                direction = words[0].mean(axis=0) - words[1].mean(axis=0)
                print(
                    f"| {spec} | {encoding} | {layer} | {_row(names, regard, direction)} |",
                    flush=True,
                )


def _embed(
    model: Encoder, words: tuple[str, ...], slot: str, encoding: Encoding, layer: int
) -> Array:
    """The words in the templates of SEAT, averaged over templates, [words, d]."""
    spans = fill_slot_templates(WordSet("x", words, slot))
    flat = [span for row in spans for span in row]
    vectors = scale_to_unit(model.embed(flat, encoding, layer).astype(np.float64), model.info.name)
    return vectors.reshape(len(words), len(spans[0]), -1).mean(axis=1)


def _row(names: Array, regard: Array, direction: Array) -> str:
    """The cells of one setting, from names [groups, names, d]."""
    rng = np.random.default_rng(0)
    read_out = _read_out(names)
    rho = rank_correlation(read_out @ regard, regard)
    permuted_rhos = [
        rank_correlation(read_out @ other, other)
        for other in (rng.permutation(regard) for _ in range(PERMUTATIONS))
    ]
    means = names.mean(axis=1)
    planted = (means - means.mean(axis=0)).T @ (regard - regard.mean())
    cosine = planted @ direction / np.linalg.norm(planted) / np.linalg.norm(direction)
    projections = means @ direction
    pairs = np.argwhere(regard[:, None] - regard[None, :] >= PLANTED)
    right = np.mean([projections[a] > projections[b] for a, b in pairs])
    return (
        f"{rho:.2f} | {np.mean(permuted_rhos):.2f}, {np.quantile(permuted_rhos, 0.95):.2f} "
        f"| {cosine:+.2f} | {right:.2f}"
    )


def _read_out(names: Array) -> Array:
    """The matrix that predicts the regard of each group from that of the others, [groups, groups]:
    a ridge regression on the names of the others, which is linear in their regard."""
    groups, names_per_group, size = names.shape
    weights = np.zeros((groups, groups))
    for g in range(groups):
        others = np.arange(groups) != g
        features = names[others].reshape(-1, size)
        centred = features - features.mean(axis=0)
        table = centred.T @ centred
        penalty = RIDGE * np.trace(table) / size * np.eye(size)
        coefficients = np.linalg.solve(
            table + penalty, names[g].mean(axis=0) - features.mean(axis=0)
        )
        weights[g, others] = (centred @ coefficients).reshape(-1, names_per_group).sum(axis=1)
    return weights


if __name__ == "__main__":
    main()
