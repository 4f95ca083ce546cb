"""How fast the association tests are, against straightforward loops as published, in one run.

    python benchmarks/association.py [--draws N] [--contexts N]

Prints JSON. CEAT: the loops are Guo and Caliskan's (2021), with one scikit-learn cosine_similarity
call per association; a sample of draws is timed and scaled to N. WEAT: the exact p-value.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable

import numpy as np

from kgbias.methods.associations.ceat import draw_effects, fit_random_effects
from kgbias.methods.associations.permutation import permutation_test

WORDS, DIMENSIONS = 25, 768
Tables = list[list[np.ndarray]]


def published_draw(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """One effect size as Guo and Caliskan's code computes it."""
    from sklearn.metrics.pairwise import cosine_similarity

    def associate(w: np.ndarray) -> float:
        row = w.reshape(1, -1)
        return float(cosine_similarity(row, a).mean() - cosine_similarity(row, b).mean())

    delta = np.mean([associate(w) for w in x]) - np.mean([associate(w) for w in y])
    return float(delta / np.std([associate(w) for w in np.concatenate([x, y])], ddof=1))


def run_published(tables: Tables, draws: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(draws):
        published_draw(
            *(np.array([table[rng.integers(len(table))] for table in words]) for words in tables)
        )


def fastest_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of the fastest of some runs, because other work on the machine only adds."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def time_ceat(contexts: int, draws: int, sample: int = 40) -> dict[str, float]:
    rng = np.random.default_rng(1)
    tables: Tables = [
        [rng.normal(size=(contexts, DIMENSIONS)) for _ in range(WORDS)] for _ in range(4)
    ]
    run_published(tables, 2)  # imports and warms up
    loops = fastest_seconds(lambda: run_published(tables, sample)) / sample * draws
    ours = fastest_seconds(lambda: fit_random_effects(*draw_effects(*tables, draws=draws)))
    return {
        "contexts_a_word": contexts,
        "draws": draws,
        "loops_s": round(loops, 1),
        "kgbias_s": round(ours, 3),
        "speedup": round(loops / ours),
    }


def time_exact(words: int) -> dict[str, float]:
    rng = np.random.default_rng(2)
    x, y = rng.normal(0.5, 1, words), rng.normal(0, 1, words)
    seconds = fastest_seconds(lambda: permutation_test(x, y), repeats=3 if words > 20 else 20)
    return {
        "words": words,
        "partitions": permutation_test(x, y).partitions,
        "ms": round(seconds * 1e3, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--contexts", type=int, nargs="*", default=[10, 20, 100, 400])
    arguments = parser.parse_args()
    result = {
        "exact_weat": [time_exact(words) for words in (8, 16, 25)],
        "ceat": [time_ceat(contexts, arguments.draws) for contexts in arguments.contexts],
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
