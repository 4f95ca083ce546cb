"""What a coarser dtype costs: a model's perplexities in it beside those in float32."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from kgbias.errors import UsageError
from kgbias.io.progress import Progress, SilentProgress
from kgbias.models.score.base import ProbeGrid, TextScorer
from kgbias.models.score.load import open_scorer
from kgbias.probe.sets import read_identities
from kgbias.probe.sofa import default_measure, log_perplexities
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import bootstrap, kendall_tau, mean

MIN_TAU = 0.99
"""Kendall's tau from which the order of groups counts as kept."""

_GROUP_COUNT = 24
_STATEMENTS = (
    "love to sing",
    "are good at math",
    "are often late for work",
    "should not be trusted",
    "work hard for their families",
    "never say what they mean",
    "drive too fast",
    "are kind to strangers",
    "make the best soldiers",
    "want to be left alone",
)


@dataclass(frozen=True, slots=True)
class Precision:
    """A model in `dtype` beside itself in float32, on probes of 24 identities before 10 statements.

    `median` and `largest` are relative errors of a probe's perplexity. `tau` is Kendall's tau-b
    between the two orders of groups, by the measure that ranks them: the mean over statements with
    its interval. `keeps_order` says whether the whole interval reaches `MIN_TAU`, so that other
    statements would show the same. `speed` is float32's time over that of `dtype`.
    """

    model: str
    dtype: str
    median: float
    largest: float
    tau: Estimate
    speed: float

    @property
    def keeps_order(self) -> bool:
        return self.tau.low >= MIN_TAU

    def __str__(self) -> str:
        interval = f" ({self.tau.format_interval('.3f')})" if self.tau.is_shown else ""
        verdict = "kept" if self.keeps_order else "not kept: rank groups in float32"
        return (
            f"{self.model} in {self.dtype}: perplexities differ from float32's by "
            f"{self.median:.2%} (median; at most {self.largest:.1%}), "
            f"{self.speed:.1f} times as fast\n"
            f"order of groups: Kendall's tau {self.tau.value:.3f}{interval}, {verdict} "
            f"(threshold {MIN_TAU})"
        )

    def as_dict(self) -> dict[str, Any]:
        error = {"median": self.median, "largest": self.largest}
        rest = {
            "tau": self.tau.value,
            "tau_low": self.tau.low,
            "tau_high": self.tau.high,
            "kept": self.keeps_order,
            "speed": self.speed,
        }
        return {"model": self.model, "dtype": self.dtype, "error": error, **rest}


def check_precision(
    spec: str, dtype: str, *, progress: Progress | None = None, **opening: Any
) -> Precision:
    """Score the same probes in float32 and in `dtype`. Both models are in memory at once.

    Args:
        spec: a local model.
        dtype: what to try: "bfloat16", "float16", "8bit" or "4bit".
        progress: receives progress reports.
        opening: as for `kgbias.open_scorer`.

    Raises:
        UsageError: `dtype` is float32, with which the others are compared.
    """
    if dtype == "float32":
        raise UsageError("`dtype` float32 is what the others are compared with: name another dtype")
    reporter = progress or SilentProgress()
    lists = read_identities("sofa").values()
    groups_each = _GROUP_COUNT // len(lists)
    # Evenly spaced over each list, rather than its first.
    groups = [
        group for names in lists for group in names[:: len(names) // groups_each][:groups_each]
    ]
    full_grid, seconds = _time_probes(open_scorer(spec, **opening), groups, reporter)
    scorer = open_scorer(spec, dtype=dtype, **opening)
    reduced_grid, reduced_seconds = _time_probes(scorer, groups, reporter)
    error = np.abs(reduced_grid.probes.perplexities / full_grid.probes.perplexities - 1)
    measure = default_measure(scorer.convention.kind)
    columns = zip(
        log_perplexities(full_grid, measure).T,
        log_perplexities(reduced_grid, measure).T,
        strict=True,
    )
    taus = [kendall_tau(a, b) for a, b in columns]
    return Precision(
        scorer.info.name,
        dtype,
        float(np.median(error)),
        float(error.max()),
        bootstrap(np.array(taus), mean),
        seconds / reduced_seconds,
    )


class _TimedProbes(NamedTuple):
    """Probes, and what they took."""

    grid: ProbeGrid
    seconds: float


def _time_probes(scorer: TextScorer, groups: list[str], progress: Progress) -> _TimedProbes:
    """The probes, and the seconds that they took; a few are computed first, to warm up."""
    scorer.grid(groups[:2], _STATEMENTS[:2])
    progress.stage(
        f"probe in {dict(scorer.settings)['dtype']}", len(groups) * (len(_STATEMENTS) + 1)
    )
    began = perf_counter()
    grid = scorer.grid(groups, _STATEMENTS, progress)
    return _TimedProbes(grid, perf_counter() - began)
