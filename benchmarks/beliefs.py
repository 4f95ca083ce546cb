"""How well the test of beliefs is calibrated, and what it finds, on arrays with a planted truth.

    python benchmarks/beliefs.py [--repeats N] [--workers N]

No model is asked: log2 probabilities are drawn with the variances found for SmolLM2 (bits squared:
names .91, group x carrier .30, a name in a carrier 2.28; three carriers), for 130 statements and
seven groups, with a belief of 1, 2 or 3 bits in 10% of the pairs. Prints JSON:

- nulls: if nothing is planted at all, the share of pairs that are called beliefs, and the share of
  groups with any such pair
- false: of what is called believed, the share of lifts that are planted as 0 or less
- single: the share of associations of one name (2 to 8 bits for it, 0 for the others) that are
  called beliefs; "roots" is the same for two names of one root
- noisy: how often anything is believed of a group without beliefs whose names differ twice as much
- coverage: that of the intervals of lifts
- figures: for figures of groups, `null` is the false positives at p < .05 if scores have nothing to
  do with lifts, `real` the power if they do in one group (rho .2), `covered` how many intervals
  contain the figure for very many names and statements
- power: by bits, for 5, 8 and 12 names
- forms: the nulls and the power if half of the names' variance comes from their forms, with and
  without forms taken out
"""

import argparse
import json
from typing import Any

import numpy as np

from kgbias.probe.belief import BOUND, BeliefTest, NameDesign, carrier_phrase_variance
from kgbias.probe.group_figures import RHO, SHIFT, GroupFigure, group_figures

NAMES, GROUP_CARRIER, RESIDUAL = 0.91, 0.30, 2.28  # bits squared
CARRIERS, GROUPS, STATEMENTS, SHARE = 3, 7, 130, 0.1
FORMS = ("{}s", "{} people", "people from {}", "{} Americans")


class BeliefWorld:
    """Groups of names, and log2 probabilities after each."""

    def __init__(self, rng: np.random.Generator, names: int, *, roots: int = 2) -> None:
        self.rng, self.names = rng, names
        self.groups = np.repeat(np.arange(GROUPS), names)
        self.roots = [f"{g}-{n % roots}" for g in range(GROUPS) for n in range(names)]
        self.forms = [FORMS[n % len(FORMS)] for _ in range(GROUPS) for n in range(names)]

    def plant_beliefs(self, bits: float) -> np.ndarray:
        """Beliefs of this size, [groups, statements]."""
        return bits * (self.rng.random((GROUPS, STATEMENTS)) < SHARE)

    def draw_bits(
        self, truth: np.ndarray, noise: np.ndarray | None = None, forms: float = 0.0
    ) -> np.ndarray:
        """Bits, [carriers, names, statements]; `noise` multiplies the spread of each group's names,
        `forms` is the share of the variance of names that comes from their forms."""
        rng, name_count, statement_count = self.rng, len(self.groups), truth.shape[1]
        scale = np.exp(rng.normal(0, 0.35, statement_count))  # statements differ in how names vary
        name_effects = (
            rng.normal(0, np.sqrt(NAMES * (1 - forms)), (name_count, statement_count)) * scale
        )
        form_effects = rng.normal(0, np.sqrt(NAMES * forms), (len(FORMS), statement_count)) * scale
        name_effects += form_effects[[FORMS.index(form) for form in self.forms]]
        residuals = (
            rng.normal(0, np.sqrt(RESIDUAL), (CARRIERS, name_count, statement_count)) * scale
        )
        shared = rng.normal(0, np.sqrt(GROUP_CARRIER), (CARRIERS, GROUPS, statement_count))
        name_effects = name_effects + residuals
        if noise is not None:
            name_effects = name_effects * noise[self.groups][:, None]
        base = rng.normal(0, 2, (name_count, 1)) - 30 + rng.normal(0, 6, statement_count)
        return base + truth[self.groups] + shared[:, self.groups] + name_effects

    def true_lifts(self, truth: np.ndarray) -> np.ndarray:
        """The lifts of groups with these means."""
        centred = truth - truth.mean(axis=1, keepdims=True)
        return (centred - centred.mean(axis=0)) * GROUPS / (GROUPS - 1)


def test_beliefs(design: NameDesign, bits: np.ndarray) -> BeliefTest:
    return design.test(bits.mean(axis=0), shared=carrier_phrase_variance(design, bits))


def repeat_runs(simulate: Any, repeats: int, seed: int) -> list[Any]:
    streams = np.random.SeedSequence(seed).spawn(repeats)
    return [simulate(np.random.default_rng(stream)) for stream in streams]


def null_rates(rng: np.random.Generator, names: int = 8) -> tuple[float, float]:
    world = BeliefWorld(rng, names)
    result = test_beliefs(
        NameDesign(world.groups, world.roots), world.draw_bits(world.plant_beliefs(0))
    )
    return float(result.is_believed.mean()), float(result.is_believed.any(axis=1).mean())


def planted_rates(
    rng: np.random.Generator,
    names: int,
    bits: float,
    forms: float = 0.0,
    without_forms: bool = False,
) -> dict[str, float]:
    world = BeliefWorld(rng, names)
    truth = world.plant_beliefs(bits)
    lifts = world.true_lifts(truth)
    design = NameDesign(world.groups, world.roots, world.forms if without_forms else None)
    result = test_beliefs(design, world.draw_bits(truth, forms=forms))
    is_planted = truth > 0
    return {
        "power": float(result.is_believed[is_planted].mean()),
        "found": float(result.is_believed.sum()),
        "false": float((result.is_believed & (lifts <= 0)).sum()),
        "below": float((result.is_believed & (lifts < 0.5)).sum()),
        "nulls": float(result.is_believed[~is_planted].mean()),
        "covered": float(((result.low <= lifts) & (lifts <= result.high)).mean()),
    }


def linked_rates(rng: np.random.Generator, names: int, linked_names: int) -> list[float]:
    """One name of a group, or all names of one root, are tied to some statements."""
    world = BeliefWorld(rng, names, roots=2)
    bits = world.draw_bits(world.plant_beliefs(0))
    linked = []
    for g in range(GROUPS):
        members = np.flatnonzero(world.groups == g)
        linked_rows = (
            members[:1]
            if linked_names == 1
            else members[[r.endswith("-0") for r in np.array(world.roots)[members]]]
        )
        places = rng.choice(STATEMENTS, 8, replace=False)
        sizes = rng.uniform(2, 8, 8)
        bits[:, linked_rows[:, None], places] += sizes
        linked.append((g, places))
    result = test_beliefs(NameDesign(world.groups, world.roots), bits)
    return [
        float(np.mean([result.is_believed[g, p].mean() for g, p in linked])),
        float(np.mean([(result.verdicts[g, p] == BOUND).mean() for g, p in linked])),
    ]


def is_misled(rng: np.random.Generator, names: int) -> bool:
    world = BeliefWorld(rng, names)
    truth = world.plant_beliefs(2)
    truth[0] = 0
    noise = np.ones(GROUPS)
    noise[0] = 2
    result = test_beliefs(NameDesign(world.groups, world.roots), world.draw_bits(truth, noise))
    lifts = world.true_lifts(truth)
    return bool((result.is_believed[0] & (lifts[0] < 0.5)).any())


def figure_rates(
    rng: np.random.Generator, names: int, rho: float, truth: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Group 0 makes high-scoring statements likelier, with a correlation of about `rho`."""
    all_figures = score_figures(rng, BeliefWorld(rng, names), rho, draws=400)
    by_kind = {kind: [f for f in all_figures if f.kind == kind] for kind in (RHO, SHIFT)}
    return {
        kind: {
            "null": [float(f.p_value < 0.05) for f in rows if not rho],
            "real": [float(f.p_value < 0.05) for f in rows if rho and f.group == 0],
            "covered": [float(f.low <= truth[kind][f.group] <= f.high) for f in rows],
        }
        for kind, rows in by_kind.items()
    }


def score_figures(
    rng: np.random.Generator,
    world: BeliefWorld,
    rho: float,
    draws: int,
    statements: int = STATEMENTS,
) -> list[GroupFigure]:
    scores = rng.normal(0, 1, statements)
    truth = 2 * (rng.random((GROUPS, statements)) < SHARE) + rng.normal(
        0, 0.6, (GROUPS, statements)
    )
    truth[0] = rng.normal(0, 0.6, statements) + rho * 1.8 * scores
    design, bits = NameDesign(world.groups), world.draw_bits(truth).mean(axis=0)
    return group_figures(
        design, bits, {"score": scores}, draws=draws, seed=int(rng.integers(1 << 20))
    )


def true_figures(rho: float) -> dict[str, np.ndarray]:
    """The figures of the groups for very many statements and names."""
    samples = [
        score_figures(
            np.random.default_rng(n), BeliefWorld(np.random.default_rng(n), 12), rho, 2, 4000
        )
        for n in range(6)
    ]
    return {
        kind: np.mean([[f.value for f in rows if f.kind == kind] for rows in samples], axis=0)
        for kind in (RHO, SHIFT)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--names", type=int, nargs="*", default=[5, 8, 12])
    arguments = parser.parse_args()
    repeats = arguments.repeats
    result: dict[str, Any] = {
        "repeats": repeats,
        "nulls": {},
        "single": {},
        "roots": {},
        "noisy": {},
        "power": {},
        "figures": {},
        "forms": {},
    }
    for names in arguments.names:
        pairs = repeat_runs(lambda rng, k=names: null_rates(rng, k), repeats, 1)
        result["nulls"][names] = {
            "pairs": round(float(np.mean([a for a, _ in pairs])), 5),
            "groups": round(float(np.mean([b for _, b in pairs])), 4),
        }
        for key, linked_names in (("single", 1), ("roots", 2)):
            rows = np.array(
                repeat_runs(
                    lambda rng, k=names, m=linked_names: linked_rates(rng, k, m), repeats, 2
                )
            )
            believed, bound = rows.mean(axis=0)
            result[key][names] = {"believed": round(believed, 4), "bound": round(bound, 4)}
        result["noisy"][names] = round(
            float(np.mean(repeat_runs(lambda rng, k=names: is_misled(rng, k), repeats, 3))), 4
        )
        result["power"][names] = {
            f"{bits} bits": summarise_rates(
                repeat_runs(lambda rng, k=names, b=bits: planted_rates(rng, k, b), repeats, 4)
            )
            for bits in (1, 2, 3)
        }
        result["forms"][names] = {
            f"{'taken out' if without_forms else 'left in'}": summarise_rates(
                repeat_runs(
                    lambda rng, k=names, t=without_forms: planted_rates(rng, k, 2, 0.5, t),
                    repeats,
                    5,
                )
            )
            for without_forms in (False, True)
        }
        result["figures"][names] = {}
        for rho in (0.0, 0.2):
            truth = true_figures(rho)
            rows = repeat_runs(
                lambda rng, k=names, r=rho, t=truth: figure_rates(rng, k, r, t), repeats, 6
            )
            for kind in (RHO, SHIFT):
                means = {
                    key: round(float(np.mean([x for row in rows for x in row[kind][key]])), 4)
                    for key in ("null", "real", "covered")
                    if rows[0][kind][key]
                }
                result["figures"][names][f"{kind}, rho {rho}"] = means
    print(json.dumps(result, indent=2))


def summarise_rates(rows: list[dict[str, float]]) -> dict[str, float]:
    total = sum(row["found"] for row in rows)
    return {
        "power": round(float(np.mean([row["power"] for row in rows])), 3),
        "nulls": round(float(np.mean([row["nulls"] for row in rows])), 5),
        "false": round(sum(row["false"] for row in rows) / total if total else 0.0, 4),
        "below half a bit": round(sum(row["below"] for row in rows) / total if total else 0.0, 4),
        "coverage": round(float(np.mean([row["covered"] for row in rows])), 4),
    }


if __name__ == "__main__":
    main()
