"""Many tests by many methods on many models: one call, one family of results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgbias.associate.ceat import DRAWS, Variance, ceat
from kgbias.associate.contexts import ContextSource, TemplateContexts, embed_contexts
from kgbias.associate.lpbs import Pool, Words, lpbs
from kgbias.associate.result import Association, Statistics, as_published
from kgbias.associate.seat import seat
from kgbias.associate.sets import AssociationTest
from kgbias.associate.weat import WordVectors, weat
from kgbias.errors import UsageError
from kgbias.models.embed import LAST, Encoder, Encoding, open_encoder
from kgbias.models.predict import load_predictor
from kgbias.progress import Progress, Silent
from kgbias.statistics import benjamini_hochberg, holm

METHODS = ("weat", "s-seat", "w-seat", "ceat", "lpbs")


@dataclass(frozen=True, slots=True)
class Options:
    """How the methods are run. What a method does not have, it does not look at.

    `published` takes each method's conventions from its paper (`as_published`), over `statistics`.
    `encoding` None is each method's own. `contexts`, `ceat_draws` and `variance` are CEAT's;
    `words`, `pool` and `kind` LPBS's, where `kind` "masked" or "causal" insists on such a model.
    """

    statistics: Statistics = field(default_factory=Statistics)
    published: bool = False
    encoding: Encoding | None = None
    layer: int = LAST
    contexts: ContextSource = field(default_factory=TemplateContexts)
    ceat_draws: int = DRAWS
    variance: Variance = "published"
    words: Words = "full"
    pool: Pool | None = None
    kind: str = "auto"


def associate(
    tests: Sequence[AssociationTest],
    methods: Sequence[str],
    *,
    vectors: WordVectors | None = None,
    models: Sequence[str] = (),
    options: Options | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> list[Association]:
    """Every test by every method, on static `vectors` or on each of the `models` (specs).

    Raises UsageError for a method that is not there or that static vectors cannot serve, before any
    work is done.
    """
    progress = progress or Silent()
    options = options or Options()
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"no method {method!r}; there is {', '.join(METHODS)}")
        if vectors is not None and method != "weat":
            raise UsageError(f"{method} needs --model: static vectors have no sentences")
    encoders = [open_encoder(spec, cache=cache, notify=progress.note) for spec in models]
    results = []
    sources: list[WordVectors | Encoder] = [*encoders] if vectors is None else [vectors, *encoders]
    progress.stage("associating", len(sources) * len(methods) * len(tests))
    for source in sources:
        for result in _run(tests, methods, source, options):
            results.append(result)
            progress.advance()
    return results


def _run(
    tests: Sequence[AssociationTest],
    methods: Sequence[str],
    source: Any,
    options: Options,
) -> Iterator[Association]:
    predictor = None
    for method in methods:
        statistics = options.statistics
        if options.published:
            statistics = as_published(method, statistics)
        for test in tests:
            if method == "weat":
                yield weat(test, source, statistics)
            elif method == "ceat":
                encoding = options.encoding or "word-average"
                contexts, settings = embed_contexts(
                    test, source, options.contexts, encoding, options.layer
                )
                yield ceat(
                    test,
                    contexts,
                    source.info,
                    statistics,
                    draws=options.ceat_draws,
                    variance=options.variance,
                    settings=settings,
                )
            elif method == "lpbs":
                predictor = predictor or load_predictor(source.info, source.source, options.kind)
                pool: Pool = options.pool or ("sum" if options.published else "mean")
                yield lpbs(test, predictor, statistics, words=options.words, pool=pool)
            else:
                fits = options.encoding and options.encoding.startswith("word") == (
                    method == "w-seat"
                )
                yield seat(
                    test,
                    source,
                    "w-seat" if method == "w-seat" else "s-seat",
                    statistics,
                    encoding=options.encoding if fits else None,
                    layer=options.layer,
                )


def records(results: Sequence[Association]) -> list[dict[str, Any]]:
    """The results as rows for JSON, with p-values corrected over this family: `p_holm` and `p_bh`,
    from the permutation p-value where a result has one."""
    p = [result.test_p.value for result in results]
    corrected = zip(results, holm(p), benjamini_hochberg(p), strict=True)
    return [
        result.record() | {"p_holm": float(h), "p_bh": float(b), "family": len(results)}
        for result, h, b in corrected
    ]
