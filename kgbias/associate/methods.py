"""The methods by name: what each one takes, and how it runs on a model.

RND, RNSB, MAC, ECT and RIPA are scores of static vectors, not effect sizes. Each follows WEFE's
definition (Badilla, Bravo-Marquez and Perez 2020), on the vectors as they are. They have no
p-value, because their papers give none, and each has its own scale and direction. Intervals are
percentile bootstraps over target words.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from kgbias.associate.ceat import Variance, ceat
from kgbias.associate.contexts import (
    ContextSource,
    CorpusContexts,
    GeneratedContexts,
    TemplateContexts,
    embed_contexts,
)
from kgbias.associate.effect import DRAWS, Array, Spread, unit
from kgbias.associate.lpbs import Pool, Predictor, Words, lpbs
from kgbias.associate.pairs import CorpusPairs, ceat_lpbs, lpbs_in_corpus, measure
from kgbias.associate.permutation import How, PValue, Tails
from kgbias.associate.result import Association, SetUse, Statistics, as_published, need_words
from kgbias.associate.search import search_seat
from kgbias.associate.sets import ROLES, AssociationTest
from kgbias.associate.weat import SeatMethod, WordVectors, seat, weat
from kgbias.errors import DataError, UsageError, no_such
from kgbias.models.embed import LAST_LAYER, Encoding
from kgbias.parameters import WrongValue
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import ranks

Vectors = Mapping[str, Array]
NO_TEST = "none"


@dataclass(frozen=True, slots=True)
class Score:
    """A score: how to compute it from the vectors of the sets (x, y, a, b), how to read it, and
    whether X and Y are pairs, drawn together."""

    compute: Callable[[Vectors], float]
    reads: str
    paired: bool = False


def rnd(x: Array, y: Array, a: Array) -> float:
    """Relative norm distance (Garg et al. 2018): the mean over attributes of the Euclidean distance
    to the mean of X minus that to the mean of Y. Below 0, the attributes are nearer to X."""
    to_x, to_y = (np.linalg.norm(a - targets.mean(axis=0), axis=1) for targets in (x, y))
    return float((to_x - to_y).mean())


def rnsb(x: Array, y: Array, a: Array, b: Array) -> float:
    """Relative negative sentiment bias (Sweeney and Najafian 2019): a logistic regression learns to
    tell A (positive) from B (negative); the probabilities that the targets are negative, as a
    distribution over X and Y, are compared with the uniform one (Kullback-Leibler divergence, in
    nats). 0: no target is more negative than another.

    WEFE trains on a random two thirds of the attributes, anew each time; here it is all of them, to
    make the score reproducible."""
    return _divergence(negativity(np.concatenate([x, y]), a, b))


def negativity(targets: Array, a: Array, b: Array) -> Array:
    """The probability, by a logistic regression of B against A, that each target is negative."""
    from sklearn.linear_model import LogisticRegression

    if not all(bool(np.isfinite(vectors).all()) for vectors in (targets, a, b)):
        raise DataError("a vector holds a value that is no number, or infinite")
    labels = np.repeat([0, 1], [len(a), len(b)])
    model = LogisticRegression(max_iter=2000).fit(np.concatenate([a, b]), labels)
    return np.asarray(model.predict_proba(targets)[:, 1])


def _divergence(p: Array) -> float:
    share = p / p.sum()
    return float((share * np.log(share * len(share))).sum())


def mac(x: Array, y: Array, a: Array, b: Array) -> float:
    """Mean average cosine distance (Manzini et al. 2019) of all targets to each attribute set, in
    [0, 2]. 1: targets and attributes are unrelated. It does not tell X from Y."""
    targets = unit(np.concatenate([x, y]))
    return float(np.mean([1 - targets @ unit(words).mean(axis=0) for words in (a, b)]))


def ect(x: Array, y: Array, attributes: Array) -> float:
    """Embedding coherence test (Dev and Phillips 2019): Spearman's rank correlation of the
    attributes' cosines with the mean of X and with that of Y, in [-1, 1]. 1: the same attributes
    are near both."""
    rows = unit(attributes)
    near_x, near_y = (ranks(rows @ unit(targets.mean(axis=0)[None])[0]) for targets in (x, y))
    if np.ptp(near_x) == 0 or np.ptp(near_y) == 0:
        return float("nan")
    return float(np.corrcoef(near_x, near_y)[0, 1])


def ripa(x: Array, y: Array, a: Array) -> float:
    """Relational inner product association (Ethayarajh, Duvenaud and Hirst 2019): the mean inner
    product of the attributes with the direction from y to x, of unit length, over the pairs of X
    and Y. Above 0, the attributes lean towards X."""
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

    RIPA's pairs are the words of X and Y in their order; a pair with a missing word is left out.
    Raises DataError if a set is left empty.
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
    """The score's 95% interval over target words: those of X and of Y, or pairs."""
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


Kind = Literal["auto", "masked", "causal"]


class Parameters(TypedDict, total=False):
    """How methods are run. A parameter that is not given takes the method's own default, or with
    `as_published` that of the method's paper.

    - Statistics (see `kgbias.associate.Statistics`): `spread`, `tails`, `how`, `samples`, `seed`;
      not CEAT: `strict`; SEAT and LPBS: `unit`; scores: `bootstrap_draws`.
    - SEAT and CEAT: `encoding`, how a text becomes a vector, and `layer`, the hidden layer it is
      read from (0 is the input embeddings, -1 the last).
    - SEAT: `search` takes the best of all layers, and for s-SEAT of all encodings, with a p-value
      corrected for the search (see `kgbias.associate.search.search_seat`).
    - All but WEAT: `contexts`, a corpus file with `most` contexts per word (LPBS: per target and
      attribute, at most `apart` words from each other) and `window` words on either side; without
      one, bleached templates. SEAT and CEAT also take a `ContextSource`, and CEAT `generate`, the
      number of contexts per word that the model writes.
    - CEAT and CEAT over LPBS: `draws`, `variance` (see `kgbias.associate.ceat.ceat`).
    - LPBS: `words`, `pool` (see `kgbias.associate.lpbs.lpbs`), and `kind`, "masked" or "causal" to
      insist on such a model.
    """

    spread: Spread
    tails: Tails
    how: How
    samples: int
    seed: int
    strict: bool
    bootstrap_draws: int
    unit: str
    encoding: Encoding
    layer: int
    search: bool
    contexts: Path | ContextSource
    generate: int
    most: int
    window: int
    apart: int
    draws: int
    variance: Variance
    words: Words
    pool: Pool
    kind: Kind


@dataclass(frozen=True, slots=True)
class Source:
    """What is tested: the vectors that words have by themselves and, for a language model, those of
    words in sentences (`encoder`) and its predictions (`predictor`, by kind). `writing` says how to
    open it to write contexts: the `store` whose answer log is asked first, `dtype`, `device`.
    `settings` become part of each result's settings."""

    vectors: WordVectors
    encoder: Any = None  # an Embedder
    predictor: Any = None  # a function from a Kind to a Predictor
    writing: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """How a method is called: its statistics, and the other parameters that were given."""

    statistics: Statistics
    published: bool
    given: Mapping[str, Any] = field(default_factory=dict)

    def of(self, *names: str) -> dict[str, Any]:
        """Those of the named parameters that were given."""
        return {name: self.given[name] for name in names if name in self.given}


Run = Callable[[AssociationTest, Source, Call], Association]


@dataclass(frozen=True, slots=True)
class Method:
    """A method: how it runs, the parameters that it takes, the values of these that it rejects, and
    whether it needs a language model."""

    run: Run
    takes: frozenset[str]
    cannot: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs_model: bool = True

    def accepts(self, parameter: str, value: Any) -> bool:
        refused: Any = self.cannot.get(parameter, ())
        return parameter in self.takes and value not in refused


def _weat(test: AssociationTest, source: Source, call: Call) -> Association:
    return weat(test, source.vectors, call.statistics)


def _seat(name: SeatMethod) -> Run:
    def run(test: AssociationTest, source: Source, call: Call) -> Association:
        def in_contexts(encoding: Encoding, layer: int) -> Any:
            contexts = context_source(call.given)
            return embed_contexts(test, source.encoder, contexts, encoding, layer)

        if call.given.get("search"):
            if taken := call.of("encoding", "layer", "contexts"):
                raise UsageError(
                    f"`search` looks at every layer in templates: leave out `{min(taken)}`"
                )
            if call.statistics.unit == "sentence":
                raise UsageError("`search` exchanges words: leave out `unit`")
            return search_seat(test, source.encoder, name, call.statistics)
        how = call.of("encoding", "layer")
        if "contexts" in call.given:
            how["in_contexts"] = in_contexts
        return seat(test, source.encoder, name, call.statistics, **how)

    return run


def _ceat(test: AssociationTest, source: Source, call: Call) -> Association:
    contexts, settings = embed_contexts(
        test,
        source.encoder,
        context_source(call.given, source.writing),
        call.given.get("encoding", "word-average"),
        call.given.get("layer", LAST_LAYER),
    )
    more = call.of("draws", "variance")
    info = source.encoder.info
    return ceat(test, contexts, info, call.statistics, settings=settings, **more)


def _score(name: str) -> Run:
    def run(test: AssociationTest, source: Source, call: Call) -> Association:
        return score(test, source.vectors, name, call.statistics)

    return run


def _lpbs(test: AssociationTest, source: Source, call: Call) -> Association:
    published = {"pool": "sum"} if call.published else {}
    predictor: Predictor = source.predictor(call.given.get("kind", "auto"))
    if (corpus := _pairs(call.given)) is not None:
        if call.given.get("pool") == "sum" or call.statistics.unit == "sentence":
            raise UsageError(
                "on a corpus, LPBS takes the mean of each word's sentences: leave out `pool` and "
                "`unit`"
            )
        return lpbs_in_corpus(test, predictor, corpus, call.statistics, **call.of("words"))
    return lpbs(test, predictor, call.statistics, **published | call.of("words", "pool"))


def _ceat_lpbs(test: AssociationTest, source: Source, call: Call) -> Association:
    predictor: Predictor = source.predictor(call.given.get("kind", "auto"))
    ratios = measure(test, predictor, call.given.get("words", "full"), _pairs(call.given))
    more = call.of("draws", "variance")
    return ceat_lpbs(test, ratios, predictor.info, call.statistics, **more)


def _pairs(given: Mapping[str, Any]) -> CorpusPairs | None:
    """The corpus of LPBS, if one is given."""
    contexts = given.get("contexts")
    if not isinstance(contexts, (str, Path)):
        return None
    taken = {name: given[name] for name in (*CONTEXTS, "apart", "seed") if name in given}
    return CorpusPairs(Path(contexts), **taken)


_EVERY = frozenset({"spread", "tails", "how", "samples", "seed"})
_ONE_TEST = _EVERY | {"strict"}
_STATISTICS = _ONE_TEST | {"unit"}
_VECTORS = frozenset({"encoding", "layer"})
_SEAT = _STATISTICS | _VECTORS | {"contexts", "search"}
CONTEXTS = frozenset({"most", "window"})
"""The parameters that go with `contexts` rather than with a method."""
PASSED = CONTEXTS | {"apart"}
_OF_WORD = tuple(name for name in get_args(Encoding) if name.startswith("word"))
_OF_TEXT = tuple(name for name in get_args(Encoding) if not name.startswith("word"))

METHODS: Mapping[str, Method] = {
    "weat": Method(_weat, _ONE_TEST, needs_model=False),
    "s-seat": Method(_seat("s-seat"), _SEAT, {"encoding": _OF_WORD}),
    "w-seat": Method(_seat("w-seat"), _SEAT, {"encoding": _OF_TEXT}),
    "ceat": Method(
        _ceat,
        _EVERY | _VECTORS | {"contexts", "generate", "draws", "variance"},
        {"how": ("normal",), "spread": ("pooled",)},
    ),
    "lpbs": Method(_lpbs, _ONE_TEST | {"unit", "words", "pool", "kind", "contexts"}),
    "ceat-lpbs": Method(
        _ceat_lpbs,
        _EVERY | {"words", "kind", "contexts", "draws", "variance"},
        {"how": ("normal",), "spread": ("pooled",)},
    ),
} | {
    name: Method(_score(name), frozenset({"bootstrap_draws", "seed"}), needs_model=False)
    for name in SCORES
}
"""The methods by name."""


def check_methods(methods: Sequence[str], given: Mapping[str, Any], *, static: bool) -> None:
    """Raise UsageError for an unknown method, one that does not work on static vectors, and a value
    that none of the methods can take."""
    for method in methods:
        if method not in METHODS:
            raise UsageError(no_such("method", method, METHODS))
        if static and METHODS[method].needs_model:
            raise UsageError(f"{method} needs a language model: static vectors have no sentences")
    if "contexts" in given and "generate" in given:
        raise UsageError("contexts come from a file or from the model, not both")
    if given.get("how") == "exact" and "samples" in given:
        raise UsageError("an exact p-value draws no samples: leave one of the two out")
    encoding = given.get("encoding")
    if encoding is not None and encoding not in get_args(Encoding):
        raise UsageError(no_such("encoding", encoding, get_args(Encoding)))
    for parameter, value in given.items():
        takers = [method for method in methods if parameter in METHODS[method].takes]
        if takers and not any(METHODS[method].accepts(parameter, value) for method in takers):
            raise WrongValue(takers[0], parameter, value)


def run_method(
    test: AssociationTest,
    name: str,
    source: Source,
    given: Mapping[str, Any],
    *,
    published: bool = False,
) -> Association:
    """Run one test by one method on one model; the method gets those of `given` that it takes."""
    method = METHODS[name]
    taken = {k: v for k, v in given.items() if method.accepts(k, v) or k in PASSED}
    base = as_published(name) if published else Statistics()
    statistics = replace(base, **{k: v for k, v in taken.items() if k in _STATISTICS})
    result = method.run(test, source, Call(statistics, published, taken))
    return replace(result, settings={**result.settings, **source.settings})


def context_source(
    given: Mapping[str, Any], writing: Mapping[str, Any] | None = None
) -> ContextSource:
    """Where CEAT's contexts come from, by `contexts`, `generate`, `most`, `window` and `seed`."""
    seed = {"seed": given["seed"]} if "seed" in given else {}
    contexts = given.get("contexts")
    if isinstance(contexts, (str, Path)):
        size = {name: given[name] for name in CONTEXTS if name in given}
        return CorpusContexts(Path(contexts), **size, **seed)
    if contexts is not None:
        return contexts  # type: ignore[no-any-return]
    if "generate" in given:
        return GeneratedContexts(given["generate"], **seed, **(writing or {}))
    return TemplateContexts()
