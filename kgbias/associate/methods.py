"""The methods by name: what each one takes, and how it runs on a model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

from kgbias.associate.ceat import Variance, ceat
from kgbias.associate.contexts import (
    ContextSource,
    CorpusContexts,
    GeneratedContexts,
    TemplateContexts,
    embed_contexts,
)
from kgbias.associate.effect import Spread
from kgbias.associate.lpbs import Pool, Predictor, Words, lpbs
from kgbias.associate.pairs import CorpusPairs, ceat_lpbs, lpbs_in_corpus, measure
from kgbias.associate.permutation import How, Tails
from kgbias.associate.result import Association, Statistics, as_published
from kgbias.associate.scores import SCORES, score
from kgbias.associate.search import search_seat
from kgbias.associate.seat import SeatMethod, seat
from kgbias.associate.sets import AssociationTest
from kgbias.associate.weat import WordVectors, weat
from kgbias.errors import UsageError
from kgbias.models.embed import LAST, Encoding
from kgbias.parameters import WrongValue

Kind = Literal["auto", "masked", "causal"]


class Parameters(TypedDict, total=False):
    """How methods are run. A parameter that is not given has the method's own default, or with
    `as_published` that of the method's paper.

    - Statistics (see `kgbias.associate.Statistics`): `spread`, `tails`, `how`, `samples`, `seed`;
      not CEAT: `strict`; SEAT and LPBS: `unit`; scores: `bootstrap_draws`.
    - SEAT and CEAT: `encoding`, how a text becomes a vector, and `layer`, the hidden layer it is
      read from (0 is the input embeddings, -1 the last).
    - SEAT: `search` takes the best of all layers, and for s-SEAT of all encodings, with a p-value
      that is corrected for it (see `kgbias.associate.search.search_seat`).
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
    """What is tested: the vectors that words have by themselves and, of a language model, those of
    words in sentences (`encoder`) and what it predicts (`predictor`, by kind). `writing` is how it
    is opened to write contexts: the `store` whose answer log is asked first, `dtype`, `device`.
    `settings` become part of those of each result."""

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
        """Those of these parameters that were given."""
        return {name: self.given[name] for name in names if name in self.given}


Run = Callable[[AssociationTest, Source, Call], Association]


@dataclass(frozen=True, slots=True)
class Method:
    """A method: how it runs, the parameters that it takes, those of their values that it cannot
    take, and whether it needs a language model."""

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
        call.given.get("layer", LAST),
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
    """The corpus of LPBS, where one is given."""
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
"""The parameters that belong to `contexts` rather than to a method."""
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
    """Raise UsageError for an unknown method, one that static vectors cannot serve, and a value
    that none of the methods can take."""
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"no method {method!r}; there is {', '.join(METHODS)}")
        if static and METHODS[method].needs_model:
            raise UsageError(f"{method} needs a language model: static vectors have no sentences")
    if "contexts" in given and "generate" in given:
        raise UsageError("contexts come from a file or from the model: not both")
    if given.get("how") == "exact" and "samples" in given:
        raise UsageError("an exact p-value draws no samples: leave out one of the two")
    encoding = given.get("encoding")
    if encoding is not None and encoding not in get_args(Encoding):
        raise UsageError(f"no encoding {encoding!r}; there is {', '.join(get_args(Encoding))}")
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
    """One test by one method on one model; the method gets those of `given` that it takes."""
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
