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

from kgbias.probe.belief import BOUND, NameDesign, BeliefTest, carrier_variance
from kgbias.probe.group_figures import RHO, SHIFT, GroupFigure, group_figures

NAMES, GROUP_CARRIER, RESIDUAL = 0.91, 0.30, 2.28  # bits squared
CARRIERS, GROUPS, STATEMENTS, SHARE = 3, 7, 130, 0.1
FORMS = ("{}s", "{} people", "people from {}", "{} Americans")


class World:
    """Groups of names, and log2 probabilities after each."""

    def __init__(self, rng: np.random.Generator, names: int, *, roots: int = 2) -> None:
        self.rng, self.names = rng, names
        self.groups = np.repeat(np.arange(GROUPS), names)
        self.roots = [f"{g}-{n % roots}" for g in range(GROUPS) for n in range(names)]
        self.forms = [FORMS[n % len(FORMS)] for _ in range(GROUPS) for n in range(names)]

    def planted(self, bits: float) -> np.ndarray:
        """Beliefs of this size, [groups, statements]."""
        return bits * (self.rng.random((GROUPS, STATEMENTS)) < SHARE)

    def bits(
        self, truth: np.ndarray, noise: np.ndarray | None = None, forms: float = 0.0
    ) -> np.ndarray:
        """Bits, [carriers, names, statements]; `noise` multiplies the spread of each group's names,
        `forms` is the share of the variance of names that comes from their forms."""
        rng, n, count = self.rng, len(self.groups), truth.shape[1]
        scale = np.exp(rng.normal(0, 0.35, count))  # statements differ in how names vary
        own = rng.normal(0, np.sqrt(NAMES * (1 - forms)), (n, count)) * scale
        of_form = rng.normal(0, np.sqrt(NAMES * forms), (len(FORMS), count)) * scale
        own += of_form[[FORMS.index(form) for form in self.forms]]
        each = rng.normal(0, np.sqrt(RESIDUAL), (CARRIERS, n, count)) * scale
        shared = rng.normal(0, np.sqrt(GROUP_CARRIER), (CARRIERS, GROUPS, count))
        own = own + each
        if noise is not None:
            own = own * noise[self.groups][:, None]
        base = rng.normal(0, 2, (n, 1)) - 30 + rng.normal(0, 6, count)
        return base + truth[self.groups] + shared[:, self.groups] + own

    def lifts(self, truth: np.ndarray) -> np.ndarray:
        """The lifts of groups with these means."""
        own = truth - truth.mean(axis=1, keepdims=True)
        return (own - own.mean(axis=0)) * GROUPS / (GROUPS - 1)


def tested(design: NameDesign, bits: np.ndarray) -> BeliefTest:
    return design.test(bits.mean(axis=0), shared=carrier_variance(design, bits))


def repeated(what: Any, repeats: int, seed: int) -> list[Any]:
    streams = np.random.SeedSequence(seed).spawn(repeats)
    return [what(np.random.default_rng(stream)) for stream in streams]


def nulls(rng: np.random.Generator, names: int = 8) -> tuple[float, float]:
    world = World(rng, names)
    found = tested(NameDesign(world.groups, world.roots), world.bits(world.planted(0)))
    return float(found.is_believed.mean()), float(found.is_believed.any(axis=1).mean())


def planted(rng: np.random.Generator, names: int, bits: float, forms: float = 0.0,
            taken: bool = False) -> dict[str, float]:  # fmt: skip
    world = World(rng, names)
    truth = world.planted(bits)
    lifts = world.lifts(truth)
    design = NameDesign(world.groups, world.roots, world.forms if taken else None)
    found = tested(design, world.bits(truth, forms=forms))
    own = truth > 0
    return {
        "power": float(found.is_believed[own].mean()),
        "found": float(found.is_believed.sum()),
        "false": float((found.is_believed & (lifts <= 0)).sum()),
        "below": float((found.is_believed & (lifts < 0.5)).sum()),
        "nulls": float(found.is_believed[~own].mean()),
        "covered": float(((found.low <= lifts) & (lifts <= found.high)).mean()),
    }


def single(rng: np.random.Generator, names: int, several: int) -> list[float]:
    """One name of a group, or all names of one root, are tied to some statements."""
    world = World(rng, names, roots=2)
    bits = world.bits(world.planted(0))
    called = []
    for g in range(GROUPS):
        own = np.flatnonzero(world.groups == g)
        which = (
            own[:1] if several == 1 else own[[r.endswith("-0") for r in np.array(world.roots)[own]]]
        )
        places = rng.choice(STATEMENTS, 8, replace=False)
        sizes = rng.uniform(2, 8, 8)
        bits[:, which[:, None], places] += sizes
        called.append((g, places))
    found = tested(NameDesign(world.groups, world.roots), bits)
    return [
        float(np.mean([found.is_believed[g, p].mean() for g, p in called])),
        float(np.mean([(found.verdicts[g, p] == BOUND).mean() for g, p in called])),
    ]


def noisy(rng: np.random.Generator, names: int) -> bool:
    world = World(rng, names)
    truth = world.planted(2)
    truth[0] = 0
    noise = np.ones(GROUPS)
    noise[0] = 2
    found = tested(NameDesign(world.groups, world.roots), world.bits(truth, noise))
    lifts = world.lifts(truth)
    return bool((found.is_believed[0] & (lifts[0] < 0.5)).any())


def figures(
    rng: np.random.Generator, names: int, rho: float, truth: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Group 0 makes high-scoring statements likelier, with a correlation of about `rho`."""
    found = scored(rng, World(rng, names), rho, draws=400)
    own = {kind: [f for f in found if f.kind == kind] for kind in (RHO, SHIFT)}
    return {
        kind: {
            "null": [float(f.p_value < 0.05) for f in rows if not rho],
            "real": [float(f.p_value < 0.05) for f in rows if rho and f.group == 0],
            "covered": [float(f.low <= truth[kind][f.group] <= f.high) for f in rows],
        }
        for kind, rows in own.items()
    }


def scored(
    rng: np.random.Generator, world: World, rho: float, draws: int, statements: int = STATEMENTS
) -> list[GroupFigure]:
    scores = rng.normal(0, 1, statements)
    truth = 2 * (rng.random((GROUPS, statements)) < SHARE) + rng.normal(
        0, 0.6, (GROUPS, statements)
    )
    truth[0] = rng.normal(0, 0.6, statements) + rho * 1.8 * scores
    design, bits = NameDesign(world.groups), world.bits(truth).mean(axis=0)
    return group_figures(
        design, bits, {"score": scores}, draws=draws, seed=int(rng.integers(1 << 20))
    )


def expected(rho: float) -> dict[str, np.ndarray]:
    """The figures of the groups for very many statements and names."""
    found = [
        scored(np.random.default_rng(n), World(np.random.default_rng(n), 12), rho, 2, 4000)
        for n in range(6)
    ]
    return {
        kind: np.mean([[f.value for f in rows if f.kind == kind] for rows in found], axis=0)
        for kind in (RHO, SHIFT)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--names", type=int, nargs="*", default=[5, 8, 12])
    arguments = parser.parse_args()
    n = arguments.repeats
    result: dict[str, Any] = {"repeats": n, "nulls": {}, "single": {}, "roots": {}, "noisy": {},
                              "power": {}, "figures": {}, "forms": {}}  # fmt: skip
    for names in arguments.names:
        pairs = repeated(lambda rng, k=names: nulls(rng, k), n, 1)
        result["nulls"][names] = {
            "pairs": round(float(np.mean([a for a, _ in pairs])), 5),
            "groups": round(float(np.mean([b for _, b in pairs])), 4),
        }
        for key, several in (("single", 1), ("roots", 2)):
            rows = np.array(repeated(lambda rng, k=names, m=several: single(rng, k, m), n, 2))
            believed, bound = rows.mean(axis=0)
            result[key][names] = {"believed": round(believed, 4), "bound": round(bound, 4)}
        result["noisy"][names] = round(
            float(np.mean(repeated(lambda rng, k=names: noisy(rng, k), n, 3))), 4
        )
        result["power"][names] = {
            f"{bits} bits": summed(repeated(lambda rng, k=names, b=bits: planted(rng, k, b), n, 4))
            for bits in (1, 2, 3)
        }
        result["forms"][names] = {
            f"{'taken out' if taken else 'left in'}": summed(
                repeated(lambda rng, k=names, t=taken: planted(rng, k, 2, 0.5, t), n, 5)
            )
            for taken in (False, True)
        }
        result["figures"][names] = {}
        for rho in (0.0, 0.2):
            truth = expected(rho)
            rows = repeated(lambda rng, k=names, r=rho, t=truth: figures(rng, k, r, t), n, 6)
            for kind in (RHO, SHIFT):
                means = {
                    key: round(float(np.mean([x for row in rows for x in row[kind][key]])), 4)
                    for key in ("null", "real", "covered")
                    if rows[0][kind][key]
                }
                result["figures"][names][f"{kind}, rho {rho}"] = means
    print(json.dumps(result, indent=2))


def summed(rows: list[dict[str, float]]) -> dict[str, float]:
    found = sum(row["found"] for row in rows)
    return {
        "power": round(float(np.mean([row["power"] for row in rows])), 3),
        "nulls": round(float(np.mean([row["nulls"] for row in rows])), 5),
        "false": round(sum(row["false"] for row in rows) / found if found else 0.0, 4),
        "below half a bit": round(sum(row["below"] for row in rows) / found if found else 0.0, 4),
        "coverage": round(float(np.mean([row["covered"] for row in rows])), 4),
    }


if __name__ == "__main__":
    main()
