"""The methods by name: what each one takes, and how it runs on a model.

RND, RNSB, MAC, ECT and RIPA are scores of static vectors, not effect sizes. Each follows WEFE's
definition (Badilla, Bravo-Marquez and Perez 2020), on the vectors as they are. They have no
p-value, because their papers give none, and each has its own scale and direction. Intervals are
Student's over the target words, whose variance is the jackknife's (Tukey 1958; of two samples:
Arvesen 1969).

To add a method, write a function and add a row to `METHODS` with what it takes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from kgbias.errors import DataError, UsageError, no_such
from kgbias.methods.associations.ceat import ceat
from kgbias.methods.associations.contexts import (
    ContextSource,
    CorpusContexts,
    GeneratedContexts,
    TemplateContexts,
    embed_contexts,
)
from kgbias.methods.associations.corpus_pairs import (
    CorpusPairs,
    ceat_lpbs,
    lpbs_in_corpus,
    measure_ratios,
)
from kgbias.methods.associations.effect import Array, scale_to_unit
from kgbias.methods.associations.lpbs import Predictor, lpbs
from kgbias.methods.associations.permutation import PValue
from kgbias.methods.associations.result import (
    Association,
    SetUsage,
    Statistics,
    check_words,
    published_statistics,
)
from kgbias.methods.associations.search import search_seat
from kgbias.methods.associations.sets import ROLES, AssociationTest
from kgbias.methods.associations.weat import SeatMethod, WordVectors, seat, weat
from kgbias.models.embed import LAST_LAYER, Encoding
from kgbias.parameters import WrongValue
from kgbias.stats.estimate import Estimate, Interval
from kgbias.stats.inference import ranks, student_quantile

SetVectorTables = Mapping[str, Array]
NO_TEST = "none"


@dataclass(frozen=True, slots=True)
class ScoreDefinition:
    """What a score of word vectors is: how to compute it from the vectors of the sets (x, y, a, b),
    how to read it, whether X and Y are pairs, drawn together, whether it is a divergence, whose
    interval is made of its logarithm, and from how many words of each on it has one."""

    compute: Callable[[SetVectorTables], float]
    meaning: str
    is_paired: bool = False
    is_divergence: bool = False
    min_words: float = 4


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
    return _uniform_divergence(predict_negativity(np.concatenate([x, y]), a, b))


def predict_negativity(targets: Array, a: Array, b: Array) -> Array:
    """The probability, by a logistic regression of B against A, that each target is negative."""
    from sklearn.linear_model import LogisticRegression

    if not all(bool(np.isfinite(vectors).all()) for vectors in (targets, a, b)):
        raise DataError("a vector holds a value that is no number, or infinite")
    labels = np.repeat([0, 1], [len(a), len(b)])
    model = LogisticRegression(max_iter=2000).fit(np.concatenate([a, b]), labels)
    return np.asarray(model.predict_proba(targets)[:, 1])


def _uniform_divergence(p: Array) -> float:
    share = p / p.sum()
    return float((share * np.log(share * len(share))).sum())


def mac(x: Array, y: Array, a: Array, b: Array) -> float:
    """Mean average cosine distance (Manzini et al. 2019) of all targets to each attribute set, in
    [0, 2]. 1: targets and attributes are unrelated. It does not tell X from Y."""
    targets = scale_to_unit(np.concatenate([x, y]))
    return float(np.mean([1 - targets @ scale_to_unit(words).mean(axis=0) for words in (a, b)]))


def ect(x: Array, y: Array, attributes: Array) -> float:
    """Embedding coherence test (Dev and Phillips 2019): Spearman's rank correlation of the
    attributes' cosines with the mean of X and with that of Y, in [-1, 1]. 1: the same attributes
    are near both."""
    rows = scale_to_unit(attributes)
    near_x, near_y = (
        ranks(rows @ scale_to_unit(targets.mean(axis=0)[None])[0]) for targets in (x, y)
    )
    if np.ptp(near_x) == 0 or np.ptp(near_y) == 0:
        return float("nan")
    return float(np.corrcoef(near_x, near_y)[0, 1])


def ripa(x: Array, y: Array, a: Array) -> float:
    """Relational inner product association (Ethayarajh, Duvenaud and Hirst 2019): the mean inner
    product of the attributes with the direction from y to x, of unit length, over the pairs of X
    and Y. Above 0, the attributes lean towards X."""
    directions = scale_to_unit(x - y, "the difference of a pair")
    return float((directions @ a.T).mean())


SCORES: Mapping[str, ScoreDefinition] = {
    "rnd": ScoreDefinition(
        lambda v: rnd(v["x"], v["y"], v["a"]),
        "distance of A to X minus that to Y; below 0: X",
    ),
    "rnsb": ScoreDefinition(
        lambda v: rnsb(v["x"], v["y"], v["a"], v["b"]),
        "divergence in nats; 0: none more negative",
        is_divergence=True,
        min_words=8,
    ),
    "mac": ScoreDefinition(
        lambda v: mac(v["x"], v["y"], v["a"], v["b"]),
        "cosine distance; 1: unrelated",
    ),
    "ect": ScoreDefinition(
        lambda v: ect(v["x"], v["y"], np.concatenate([v["a"], v["b"]])),
        "rank correlation; 1: the same attributes near X and Y",
        # It is the lower the fewer words the means are of.
        min_words=math.inf,
    ),
    "ripa": ScoreDefinition(
        lambda v: ripa(v["x"], v["y"], v["a"]),
        "inner product with x - y; above 0: A leans to X",
        is_paired=True,
    ),
}
"""The scores by name. RND and RIPA take one attribute set: A; with X and Y, ECT takes both."""


def score_vectors(
    test: AssociationTest,
    vectors: WordVectors,
    name: str,
) -> Association:
    """One of `SCORES` on static vectors: `effect` is the score, `p` is NaN ("none").

    RIPA's pairs are the words of X and Y in their order; a pair with a missing word is left out.
    Raises DataError if a set is left empty.
    """
    definition = SCORES[name]
    words = {role: test.sets[role].words for role in ROLES}
    found_vectors = {role: vectors.find(words[role]) for role in ROLES}
    rows = {
        role: dict(zip(found_vectors[role].forms, found_vectors[role].vectors, strict=True))
        for role in ROLES
    }
    if definition.is_paired:
        pairs = [
            (x, y)
            for x, y in zip(words["x"], words["y"], strict=False)
            if x in rows["x"] and y in rows["y"]
        ]
        for place, role in enumerate("xy"):
            rows[role] = {pair[place]: rows[role][pair[place]] for pair in pairs}
    sets = {}
    for role in ROLES:
        known = rows[role]
        missing = tuple(word for word in words[role] if word not in known)
        other_forms = found_vectors[role].other_forms
        used_forms = {word: form for word, form in other_forms.items() if word in known}
        sets[role] = SetUsage(tuple(known), missing, used_forms)
    check_words(test, sets, vectors.info)
    tables = {role: np.array(list(rows[role].values())) for role in ROLES}
    value = definition.compute(tables)
    if not np.isfinite(value):
        raise DataError(f"{test.name}: {name} is not defined on these vectors")
    low, high = jackknife_interval(name, tables)
    return Association(
        test=test,
        method=name,
        model=vectors.info,
        effect=Estimate(value, low, high, len(tables["x"]) + len(tables["y"])),
        p_value=PValue(float("nan"), NO_TEST, NO_TEST, 0, -1),
        statistic=value,
        sets=sets,
        settings={"score": definition.meaning},
    )


def jackknife_interval(name: str, tables: Mapping[str, Array]) -> Interval:
    """The score's 95% interval over target words: those of X and of Y, or pairs. Each is left out
    in turn; the variances that the two sets give add up, with Satterthwaite's degrees of freedom.
    A divergence is skewed, so its interval is made of its logarithm (Miller 1974). NaN below the
    words that the score needs, and where nothing varies."""
    score = SCORES[name]
    sides = ("xy",) if score.is_paired else ("x", "y")
    if min(len(tables[role]) for role in "xy") < score.min_words:
        return Interval(math.nan, math.nan)
    compute = score.compute
    if name == "rnsb":  # the classifier does not depend on the targets: it learns once
        learnt = {role: predict_negativity(tables[role], tables["a"], tables["b"]) for role in "xy"}
        tables = {**tables, **learnt}

        def compute(of: SetVectorTables) -> float:
            return _uniform_divergence(np.concatenate([of["x"], of["y"]]))

    def value_of(of: SetVectorTables) -> float:
        value = compute(of)
        if not score.is_divergence:
            return value
        return math.log(value) if value > 0 else math.nan

    variances, freedoms = [], []
    for roles in sides:
        n = len(tables[roles[0]])
        values = np.array(
            [
                value_of({**tables, **{role: np.delete(tables[role], place, 0) for role in roles}})
                for place in range(n)
            ]
        )
        variances.append((n - 1) / n * float(((values - values.mean()) ** 2).sum()))
        freedoms.append(n - 1)
    value, variance = value_of(tables), sum(variances)
    if not (math.isfinite(value) and variance > 0):
        return Interval(math.nan, math.nan)
    freedom = variance**2 / sum(v * v / f for v, f in zip(variances, freedoms, strict=True))
    half = student_quantile(0.975, freedom) * math.sqrt(variance)
    low, high = value - half, value + half
    return Interval(math.exp(low), math.exp(high)) if score.is_divergence else Interval(low, high)


PredictorKind = Literal["auto", "masked", "causal"]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What is tested: the vectors that words have by themselves and, for a language model, those of
    words in sentences (`encoder`) and its predictions (`predictor`, by kind). `writer_options` says
    how to open it to write contexts: the `store` whose answer log is asked first, `dtype`,
    `device`. `settings` become part of each result's settings."""

    vectors: WordVectors
    encoder: Any = None  # an Embedder
    predictor: Any = None  # a function from a Kind to a Predictor
    writer_options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MethodCall:
    """How a method is called: its statistics, and the other parameters that were given."""

    statistics: Statistics
    as_published: bool
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def pick(self, *names: str) -> dict[str, Any]:
        """Those of the named parameters that were given."""
        return {name: self.parameters[name] for name in names if name in self.parameters}


MethodRunner = Callable[[AssociationTest, ModelSource, MethodCall], Association]


@dataclass(frozen=True, slots=True)
class Method:
    """A method: how it runs, the parameters that it takes, the values of these that it rejects, and
    whether it needs a language model."""

    run: MethodRunner
    parameters: frozenset[str]
    rejected_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs_model: bool = True

    def accepts(self, parameter: str, value: Any) -> bool:
        refused: Any = self.rejected_values.get(parameter, ())
        return parameter in self.parameters and value not in refused


def _run_weat(test: AssociationTest, source: ModelSource, call: MethodCall) -> Association:
    return weat(test, source.vectors, call.statistics)


def _make_seat_runner(name: SeatMethod) -> MethodRunner:
    def run(test: AssociationTest, source: ModelSource, call: MethodCall) -> Association:
        def in_contexts(encoding: Encoding, layer: int) -> Any:
            contexts = context_source(call.parameters)
            return embed_contexts(test, source.encoder, contexts, encoding, layer)

        if call.parameters.get("search"):
            if options_taken := call.pick("encoding", "layer", "contexts"):
                raise UsageError(
                    f"`search` looks at every layer in templates: leave out `{min(options_taken)}`"
                )
            if call.statistics.unit == "sentence":
                raise UsageError("`search` exchanges words: leave out `unit`")
            return search_seat(test, source.encoder, name, call.statistics)
        options = call.pick("encoding", "layer")
        if "contexts" in call.parameters:
            options["in_contexts"] = in_contexts
        return seat(test, source.encoder, name, call.statistics, **options)

    return run


def _run_ceat(test: AssociationTest, source: ModelSource, call: MethodCall) -> Association:
    contexts, settings = embed_contexts(
        test,
        source.encoder,
        context_source(call.parameters, source.writer_options),
        call.parameters.get("encoding", "word-average"),
        call.parameters.get("layer", LAST_LAYER),
    )
    options = call.pick("draws", "variance")
    info = source.encoder.info
    return ceat(test, contexts, info, call.statistics, settings=settings, **options)


def _make_score_runner(name: str) -> MethodRunner:
    def run(test: AssociationTest, source: ModelSource, call: MethodCall) -> Association:
        return score_vectors(test, source.vectors, name)

    return run


def _run_lpbs(test: AssociationTest, source: ModelSource, call: MethodCall) -> Association:
    published = {"pool": "sum"} if call.as_published else {}
    predictor: Predictor = source.predictor(call.parameters.get("kind", "auto"))
    if (corpus := _corpus_pairs(call.parameters)) is not None:
        if call.parameters.get("pool") == "sum" or call.statistics.unit == "sentence":
            raise UsageError(
                "on a corpus, LPBS takes the mean of each word's sentences: leave out `pool` and "
                "`unit`"
            )
        return lpbs_in_corpus(test, predictor, corpus, call.statistics, **call.pick("words"))
    return lpbs(test, predictor, call.statistics, **published | call.pick("words", "pool"))


def _run_ceat_lpbs(test: AssociationTest, source: ModelSource, call: MethodCall) -> Association:
    predictor: Predictor = source.predictor(call.parameters.get("kind", "auto"))
    ratios = measure_ratios(
        test, predictor, call.parameters.get("words", "full"), _corpus_pairs(call.parameters)
    )
    options = call.pick("draws", "variance")
    return ceat_lpbs(test, ratios, predictor.info, call.statistics, **options)


def _corpus_pairs(parameters: Mapping[str, Any]) -> CorpusPairs | None:
    """The corpus of LPBS, if one is given."""
    contexts = parameters.get("contexts")
    if not isinstance(contexts, (str, Path)):
        return None
    options = {
        name: parameters[name]
        for name in (*CONTEXT_PARAMETERS, "apart", "seed")
        if name in parameters
    }
    return CorpusPairs(Path(contexts), **options)


_COMMON_PARAMETERS = frozenset({"spread", "tails", "how", "samples", "seed"})
_SINGLE_TEST_PARAMETERS = _COMMON_PARAMETERS | {"strict"}
_STATISTICS_PARAMETERS = _SINGLE_TEST_PARAMETERS | {"unit"}
_VECTOR_PARAMETERS = frozenset({"encoding", "layer"})
_SEAT_PARAMETERS = _STATISTICS_PARAMETERS | _VECTOR_PARAMETERS | {"contexts", "search"}
CONTEXT_PARAMETERS = frozenset({"most", "window"})
"""The parameters that go with `contexts` rather than with a method."""
PASSED_PARAMETERS = CONTEXT_PARAMETERS | {"apart"}
_WORD_ENCODINGS = tuple(name for name in get_args(Encoding) if name.startswith("word"))
_TEXT_ENCODINGS = tuple(name for name in get_args(Encoding) if not name.startswith("word"))

METHODS: Mapping[str, Method] = {
    "weat": Method(_run_weat, _SINGLE_TEST_PARAMETERS, needs_model=False),
    "s-seat": Method(_make_seat_runner("s-seat"), _SEAT_PARAMETERS, {"encoding": _WORD_ENCODINGS}),
    "w-seat": Method(_make_seat_runner("w-seat"), _SEAT_PARAMETERS, {"encoding": _TEXT_ENCODINGS}),
    "ceat": Method(
        _run_ceat,
        _COMMON_PARAMETERS | _VECTOR_PARAMETERS | {"contexts", "generate", "draws", "variance"},
        {"how": ("normal",), "spread": ("pooled",)},
    ),
    "lpbs": Method(
        _run_lpbs, _SINGLE_TEST_PARAMETERS | {"unit", "words", "pool", "kind", "contexts"}
    ),
    "ceat-lpbs": Method(
        _run_ceat_lpbs,
        _COMMON_PARAMETERS | {"words", "kind", "contexts", "draws", "variance"},
        {"how": ("normal",), "spread": ("pooled",)},
    ),
} | {name: Method(_make_score_runner(name), frozenset(), needs_model=False) for name in SCORES}
"""The methods by name."""


def check_methods(methods: Sequence[str], parameters: Mapping[str, Any], *, static: bool) -> None:
    """Raise UsageError for an unknown method, one that does not work on static vectors, and a value
    that none of the methods can take."""
    for method in methods:
        if method not in METHODS:
            raise UsageError(no_such("method", method, METHODS))
        if static and METHODS[method].needs_model:
            raise UsageError(f"{method} needs a language model: static vectors have no sentences")
    if "contexts" in parameters and "generate" in parameters:
        raise UsageError("contexts come from a file or from the model, not both")
    if parameters.get("how") == "exact" and "samples" in parameters:
        raise UsageError("an exact p-value draws no samples: leave one of the two out")
    encoding = parameters.get("encoding")
    if encoding is not None and encoding not in get_args(Encoding):
        raise UsageError(no_such("encoding", encoding, get_args(Encoding)))
    for parameter, value in parameters.items():
        accepting_methods = [
            method for method in methods if parameter in METHODS[method].parameters
        ]
        if accepting_methods and not any(
            METHODS[method].accepts(parameter, value) for method in accepting_methods
        ):
            raise WrongValue(accepting_methods[0], parameter, value)


def run_method(
    test: AssociationTest,
    name: str,
    source: ModelSource,
    parameters: Mapping[str, Any],
    *,
    published: bool = False,
) -> Association:
    """Run one test by one method on one model; the method gets those of `parameters` that it
    takes."""
    method = METHODS[name]
    parameters_taken = {
        k: v for k, v in parameters.items() if method.accepts(k, v) or k in PASSED_PARAMETERS
    }
    default_statistics = published_statistics(name) if published else Statistics()
    statistics = replace(
        default_statistics,
        **{k: v for k, v in parameters_taken.items() if k in _STATISTICS_PARAMETERS},
    )
    result = method.run(test, source, MethodCall(statistics, published, parameters_taken))
    return replace(result, settings={**result.settings, **source.settings})


def context_source(
    parameters: Mapping[str, Any], writing: Mapping[str, Any] | None = None
) -> ContextSource:
    """Where CEAT's contexts come from, by `contexts`, `generate`, `most`, `window` and `seed`."""
    seed = {"seed": parameters["seed"]} if "seed" in parameters else {}
    contexts = parameters.get("contexts")
    if isinstance(contexts, (str, Path)):
        options = {name: parameters[name] for name in CONTEXT_PARAMETERS if name in parameters}
        return CorpusContexts(Path(contexts), **options, **seed)
    if contexts is not None:
        return contexts  # type: ignore[no-any-return]
    if "generate" in parameters:
        return GeneratedContexts(parameters["generate"], **seed, **(writing or {}))
    return TemplateContexts()
