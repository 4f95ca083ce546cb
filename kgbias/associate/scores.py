"""Scores of static vectors that are no effect sizes: RND, RNSB, MAC, ECT and RIPA.

Each is as WEFE defines it (Badilla, Bravo-Marquez and Perez 2020), on the vectors as they are. They
have no p-value: their papers give none, and each has a scale and a direction of its own. Intervals
are percentile bootstraps over target words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kgbias.associate.effect import DRAWS, Array, unit
from kgbias.associate.permutation import PValue
from kgbias.associate.result import Association, SetUse, Statistics, need_words
from kgbias.associate.sets import ROLES, AssociationTest
from kgbias.associate.weat import WordVectors
from kgbias.errors import DataError
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import ranks

Vectors = Mapping[str, Array]
NO_TEST = "none"


@dataclass(frozen=True, slots=True)
class Score:
    """A score: how it is computed from the vectors of the sets (x, y, a, b), how to read it, and
    whether X and Y are pairs, drawn together."""

    compute: Callable[[Vectors], float]
    reads: str
    paired: bool = False


def rnd(x: Array, y: Array, a: Array) -> float:
    """Relative norm distance (Garg et al. 2018): the mean over attributes of the Euclidean distance
    to the mean of X minus that to the mean of Y. Below 0: the attributes are nearer to X."""
    to_x, to_y = (np.linalg.norm(a - targets.mean(axis=0), axis=1) for targets in (x, y))
    return float((to_x - to_y).mean())


def rnsb(x: Array, y: Array, a: Array, b: Array) -> float:
    """Relative negative sentiment bias (Sweeney and Najafian 2019): a logistic regression learns A
    (positive) from B (negative); the probabilities that it calls the targets negative, as a
    distribution over X and Y, are held against the uniform one (Kullback-Leibler divergence, in
    nats). 0: no target is more negative than another.

    WEFE trains on a random two thirds of the attributes, anew each time; here it is all of them, so
    that the score repeats itself."""
    return _divergence(negativity(np.concatenate([x, y]), a, b))


def negativity(targets: Array, a: Array, b: Array) -> Array:
    """The probability, by a logistic regression of B against A, that each target is negative."""
    from sklearn.linear_model import LogisticRegression

    labels = np.repeat([0, 1], [len(a), len(b)])
    model = LogisticRegression(max_iter=2000).fit(np.concatenate([a, b]), labels)
    return np.asarray(model.predict_proba(targets)[:, 1])


def _divergence(p: Array) -> float:
    share = p / p.sum()
    return float((share * np.log(share * len(share))).sum())


def mac(x: Array, y: Array, a: Array, b: Array) -> float:
    """Mean average cosine distance (Manzini et al. 2019) of all targets to each attribute set, in
    [0, 2]. 1: targets and attributes are unrelated; it does not tell X from Y."""
    targets = unit(np.concatenate([x, y]))
    return float(np.mean([1 - targets @ unit(words).mean(axis=0) for words in (a, b)]))


def ect(x: Array, y: Array, attributes: Array) -> float:
    """Embedding coherence test (Dev and Phillips 2019): Spearman's rank correlation of the
    attributes' cosines with the mean of X and with that of Y, in [-1, 1]. 1: both have the same
    attributes near them."""
    rows = unit(attributes)
    near_x, near_y = (ranks(rows @ unit(targets.mean(axis=0)[None])[0]) for targets in (x, y))
    if np.ptp(near_x) == 0 or np.ptp(near_y) == 0:
        return float("nan")
    return float(np.corrcoef(near_x, near_y)[0, 1])


def ripa(x: Array, y: Array, a: Array) -> float:
    """Relational inner product association (Ethayarajh, Duvenaud and Hirst 2019): the mean inner
    product of the attributes with the direction from y to x, of unit length, over the pairs of X
    and Y. Above 0: the attributes lean to X."""
    between = unit(x - y, "the difference of a pair")
    return float((between @ a.T).mean())


SCORES: Mapping[str, Score] = {
    "rnd": Score(
        lambda v: rnd(v["x"], v["y"], v["a"]), "distance of A to X minus that to Y; below 0: X"
    ),
    "rnsb": Score(
        lambda v: rnsb(v["x"], v["y"], v["a"], v["b"]), "divergence in nats; 0: none more negative"
    ),
    "mac": Score(lambda v: mac(v["x"], v["y"], v["a"], v["b"]), "cosine distance; 1: unrelated"),
    "ect": Score(
        lambda v: ect(v["x"], v["y"], np.concatenate([v["a"], v["b"]])),
        "rank correlation; 1: the same attributes near X and Y",
    ),
    "ripa": Score(
        lambda v: ripa(v["x"], v["y"], v["a"]), "inner product with x - y; above 0: A leans to X",
        paired=True,
    ),
}  # fmt: skip
"""The scores by name. RND and RIPA take one attribute set: A; with X and Y, ECT takes both."""


def score(
    test: AssociationTest,
    vectors: WordVectors,
    name: str,
    statistics: Statistics | None = None,
) -> Association:
    """One of `SCORES` on static vectors: `effect` is the score, `p` is NaN ("none").

    RIPA's pairs are the words of X and Y in their order; a pair of which a word is missing is left
    out. Raises DataError where a set is left empty.
    """
    statistics = statistics or Statistics()
    how = SCORES[name]
    words = {role: test.sets[role].words for role in ROLES}
    found = {role: vectors.find(words[role]) for role in ROLES}
    rows = {role: dict(zip(found[role].forms, found[role].vectors, strict=True)) for role in ROLES}
    if how.paired:
        pairs = [
            (x, y)
            for x, y in zip(words["x"], words["y"], strict=False)
            if x in rows["x"] and y in rows["y"]
        ]
        for place, role in enumerate("xy"):
            rows[role] = {pair[place]: rows[role][pair[place]] for pair in pairs}
    sets = {
        role: SetUse(
            tuple(rows[role]),
            tuple(word for word in words[role] if word not in rows[role]),
            {word: form for word, form in found[role].other_forms.items() if word in rows[role]},
        )
        for role in ROLES
    }
    need_words(test, sets, vectors.info)
    tables = {role: np.array(list(rows[role].values())) for role in ROLES}
    value = how.compute(tables)
    if not np.isfinite(value):
        raise DataError(f"{test.name}: {name} is not defined on these vectors")
    low, high = _interval(name, tables, how.paired, statistics)
    return Association(
        test=test,
        method=name,
        model=vectors.info,
        effect=Estimate(value, low, high, len(tables["x"]) + len(tables["y"])),
        p=PValue(float("nan"), NO_TEST, NO_TEST, 0, -1),
        statistic=value,
        sets=sets,
        settings={
            "score": how.reads,
            "bootstrap_draws": statistics.bootstrap_draws,
            "seed": statistics.seed,
        },
    )


def _interval(
    name: str, tables: Mapping[str, Array], paired: bool, statistics: Statistics
) -> tuple[float, float]:
    """The score's 95% interval over target words: of X and of Y, or pairs."""
    n_x, n_y = len(tables["x"]), len(tables["y"])
    if min(n_x, n_y) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(statistics.seed)
    values = []
    whole = (
        negativity(np.concatenate([tables["x"], tables["y"]]), tables["a"], tables["b"])
        if (name == "rnsb")
        else None
    )  # the classifier does not depend on the targets
    for _ in range(min(statistics.bootstrap_draws, DRAWS)):
        x = rng.integers(0, n_x, n_x)
        y = x if paired else rng.integers(0, n_y, n_y)
        if whole is not None:
            values.append(_divergence(whole[np.concatenate([x, n_x + y])]))
        else:
            drawn = {**tables, "x": tables["x"][x], "y": tables["y"][y]}
            values.append(SCORES[name].compute(drawn))
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)
