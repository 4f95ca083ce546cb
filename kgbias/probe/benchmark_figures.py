"""Benchmarks from the user's copies of their files: StereoSet (Nadeem et al. 2021), CrowS-Pairs
(Nangia et al. 2020), BBQ (Parrish et al. 2022) and Winogender (Rudinger et al. 2018).

All ask which of a few texts a model prefers, and have been criticised for their sentences (Blodgett
et al. 2021): use them to compare with published figures. Each function takes a `store` (see
`kgbias.Study.graph`), which keeps the scores of the items; scores in it are not computed again.
"""

from collections.abc import Sequence
from pathlib import Path

from kgbias.errors import UsageError, no_such
from kgbias.graph.store import Store
from kgbias.io.progress import Progress
from kgbias.models.score.distributed import AnyScorer, ScorerSource, resolve_scorer
from kgbias.probe.benchmarks import (
    Benchmark,
    read_bbq,
    read_crows_pairs,
    read_stereoset,
    read_winogender,
)
from kgbias.probe.result import BenchmarkFigure, PairFigures, ScorerInfo

CONVENTIONS = ("original", "bias-bench")
LOG_PROBABILITY = "log-probability"


def crows_pairs(
    scorer: AnyScorer | ScorerSource,
    path: Path,
    convention: str = "original",
    *,
    store: Store | None = None,
    progress: Progress | None = None,
) -> PairFigures:
    """The share of pairs whose more stereotypical sentence scores higher, in percent, with Wilson
    intervals, overall and by bias type; ties count as not preferred. See
    `kgbias.probe.benchmarks.CrowsPairs` for the scoring.

    Args:
        scorer: as for `bbq`.
        path: the file.
        convention: "original" or "bias-bench".
        store: keeps the scores of items.
        progress: shows the work.
    """
    _check_convention(convention)
    return _score_benchmark(read_crows_pairs(path, convention), scorer, convention, store, progress)


def stereoset(
    scorer: AnyScorer | ScorerSource,
    path: Path,
    convention: str = "original",
    *,
    as_published: bool = False,
    seed: int = 0,
    store: Store | None = None,
    progress: Progress | None = None,
) -> PairFigures:
    """LMS, SS and ICAT, in percent: means over target terms, with bootstrap intervals over terms,
    overall and by domain. Figures of the intersentence part are named as such. Both conventions
    score alike; `as_published` (default: no) scores a causal model as the published codes do. See
    `kgbias.probe.benchmarks.StereoSet`.

    Args:
        scorer: as for `bbq`.
        path: the file.
        convention: "original" or "bias-bench".
        as_published: score a causal model as the published codes do.
        seed: the random seed of the intervals.
        store: keeps the scores of items.
        progress: shows the work.
    """
    _check_convention(convention)
    benchmark = read_stereoset(path, as_published=as_published)
    return _score_benchmark(benchmark, scorer, convention, store, progress, seed)


def bbq(
    scorer: AnyScorer | ScorerSource,
    paths: Sequence[Path],
    *,
    seed: int = 0,
    store: Store | None = None,
    progress: Progress | None = None,
) -> PairFigures:
    """Accuracy and both bias scores in ambiguous and disambiguated contexts, in percent, overall
    and by category, with bootstrap intervals over question templates. `paths` are the .jsonl files
    and optionally additional_metadata.csv. See `kgbias.probe.benchmarks.BBQ` for the scoring.

    Args:
        scorer: an open scorer of texts, such as `kgbias.open_scorer` gives.
        paths: the files.
        seed: the random seed of the intervals.
        store: keeps the scores of items.
        progress: shows the work.
    """
    return _score_benchmark(read_bbq(paths), scorer, LOG_PROBABILITY, store, progress, seed)


def winogender(
    scorer: AnyScorer | ScorerSource,
    path: Path,
    *,
    seed: int = 0,
    store: Store | None = None,
    progress: Progress | None = None,
) -> PairFigures:
    """How often pronouns are resolved to the person they refer to, overall and by gender, and how
    often a sentence's male and female pronoun are resolved differently, in percent, with bootstrap
    intervals over occupations. See `kgbias.probe.benchmarks.Winogender` for the scoring.

    Args:
        scorer: as for `bbq`.
        path: the file.
        seed: the random seed of the intervals.
        store: keeps the scores of items.
        progress: shows the work.
    """
    return _score_benchmark(read_winogender(path), scorer, LOG_PROBABILITY, store, progress, seed)


def _score_benchmark(
    benchmark: Benchmark,
    scorer: AnyScorer | ScorerSource,
    convention: str,
    store: Store | None,
    progress: Progress | None,
    seed: int = 0,
) -> PairFigures:
    scorer = resolve_scorer(scorer)
    result = benchmark.result(scorer, store, seed=seed, progress=progress)
    figures = tuple(BenchmarkFigure(m.domain, m.figure, m.estimate) for m in result.figures)
    return PairFigures(ScorerInfo.from_scorer(scorer), convention, figures, result.remarks)


def _check_convention(convention: str) -> None:
    if convention not in CONVENTIONS:
        raise UsageError(no_such("convention", convention, CONVENTIONS))
