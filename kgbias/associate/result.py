"""The result of an association test: its figures, and everything they depend on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kgbias.associate.effect import (
    DRAWS,
    Array,
    Spread,
    effect_estimate,
)
from kgbias.associate.permutation import SAMPLES, How, PValue, Tails, permutation_test
from kgbias.associate.sets import FEW, ROLES, AssociationTest
from kgbias.errors import DataError, UsageError, no_such
from kgbias.graph.types import canonical_json
from kgbias.ids import content_id
from kgbias.models.base import ModelInfo
from kgbias.stats.estimate import Estimate

LEVEL = 0.95
"""The coverage of every interval."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """The conventions of one test, each named. The defaults are the sound ones.

    `spread` selects the standard deviation under d (see `effect_size`), `how`, `samples` and
    `strict` the permutation test (see `permutation_test`); `bootstrap_draws` is the number of draws
    for the intervals of scores. `tails` None is the method's own: one for WEAT and SEAT, two for
    CEAT and LPBS. `unit` is what is exchanged and counted when a word stands in several sentences:
    "word" (its associations are averaged first) or "sentence" (each counts as an independent
    observation, as in May et al. 2019, Tan and Celis 2019 and Kurita et al. 2019; this takes
    repetitions for evidence, and p is far too small). See `as_published`.
    """

    spread: Spread = "sample"
    tails: Tails | None = None
    how: How = "auto"
    samples: int = SAMPLES
    strict: bool = False
    unit: str = "word"
    bootstrap_draws: int = DRAWS
    seed: int = 0

    def __post_init__(self) -> None:
        if self.unit not in ("word", "sentence"):
            raise UsageError(no_such("unit", self.unit, ("word", "sentence")))
        if self.samples < 1 or self.bootstrap_draws < 1:
            raise UsageError("samples and bootstrap_draws must be at least 1")


def as_published(method: str, statistics: Statistics | None = None) -> Statistics:
    """The statistics of the method's paper, or of its code.

    - weat (Caliskan et al. 2017): one tail, >, a normal curve fitted to sampled partitions.
    - s-seat, w-seat (May et al. 2019, Tan and Celis 2019): one tail, >=, each sentence a stimulus;
      exact up to 100,000 partitions in their code, wherever feasible here.
    - ceat (Guo and Caliskan 2021): one tail, as in their code; the paper's formula is two-tailed.
    - ceat-lpbs (Mind Your Bias 2022): two tails.
    - lpbs (Kurita et al. 2019): two tails, >, sampled partitions, each sentence an observation.
    """
    base = statistics or Statistics()
    changes: dict[str, dict[str, Any]] = {
        "weat": {"tails": "one", "strict": True, "how": "normal"},
        "s-seat": {"tails": "one", "unit": "sentence"},
        "w-seat": {"tails": "one", "unit": "sentence"},
        "ceat": {"tails": "one"},
        "lpbs": {"tails": "two", "strict": True, "how": "sampled", "unit": "sentence"},
        "ceat-lpbs": {"tails": "two"},
        # no p-value, and only one convention
        **{name: {} for name in ("rnd", "rnsb", "mac", "ect", "ripa")},
    }
    if method not in changes:
        raise UsageError(no_such("method", method, changes))
    return replace(base, **changes[method])


@dataclass(frozen=True, slots=True)
class SetUse:
    """A set as it was used: the words used, those that the model does not know, and those found
    under another spelling (word -> entry)."""

    used: tuple[str, ...]
    missing: tuple[str, ...] = ()
    other_forms: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contexts:
    """The vectors of one set of words in their contexts: one table [n_contexts, d] per word."""

    words: tuple[str, ...]
    tables: tuple[Array, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Association:
    """The outcome of one test by one method on one model.

    `effect` is d with its interval, over target words (see `effect_estimate`; for CEAT, the range
    of its draws), `p` its p-value, `statistic` the difference of the means. `calibrated` is a
    permutation p-value if `p` itself is not one (CEAT). `settings` is everything that could change
    the figures; `details` are further figures.
    """

    test: AssociationTest
    method: str
    model: ModelInfo
    effect: Estimate
    p: PValue
    statistic: float
    sets: Mapping[str, SetUse]
    settings: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    calibrated: PValue | None = None

    @property
    def effect_size(self) -> float:
        """d: positive ties X to A and Y to B."""
        return self.effect.value

    @property
    def id(self) -> str:
        return content_id(
            "association",
            self.test.id,
            self.method,
            self.model.id,
            canonical_json(dict(self.settings)),
        )

    @property
    def few(self) -> bool:
        """Whether a set was left with fewer than 8 stimuli (Caliskan et al. 2017)."""
        return any(len(use.used) < FEW for use in self.sets.values())

    @property
    def test_p(self) -> PValue:
        """The p-value to correct over a family: the permutation one."""
        return self.calibrated or self.p

    def record(self) -> dict[str, Any]:
        """One flat row for JSON: the figures, then what they depend on."""
        row: dict[str, Any] = {
            "test": self.test.name,
            "method": self.method,
            "model": self.model.title,
            "effect_size": self.effect_size,
            "p_value": self.p.value,
            "low": self.effect.low,
            "high": self.effect.high,
            "level": LEVEL,
            "statistic": self.statistic,
            **self.details,
            "tails": self.p.tails,
            "p_method": self.p.method,
            "partitions": self.p.partitions,
            "at_least": self.p.at_least,
        }
        if self.calibrated:
            row |= {
                "p_permutation": self.calibrated.value,
                "p_permutation_method": self.calibrated.method,
                "p_permutation_partitions": self.calibrated.partitions,
            }
        sizes = {role: len(self.sets[role].used) for role in ROLES}
        return row | {
            "n": sizes,
            "unequal": sizes["x"] != sizes["y"],
            "few_stimuli": self.few,
            "missing": {role: list(self.sets[role].missing) for role in ROLES},
            "other_forms": {role: dict(self.sets[role].other_forms) for role in ROLES},
            "settings": dict(self.settings),
            "title": self.test.title,
            "source": self.test.source,
            "model_revision": self.model.revision,
            "id": self.id,
        }


def conclude(
    test: AssociationTest,
    method: str,
    model: ModelInfo,
    x: Array,
    y: Array,
    sets: Mapping[str, SetUse],
    statistics: Statistics,
    *,
    tails: Tails = "one",
    settings: Mapping[str, Any] | None = None,
    details: Mapping[str, Any] | None = None,
) -> Association:
    """Effect size, interval and permutation p-value of the units x [n_x] and y [n_y]; `tails` is
    the method's default."""
    tails = statistics.tails or tails
    p = permutation_test(
        x,
        y,
        tails=tails,
        how=statistics.how,
        samples=statistics.samples,
        seed=statistics.seed,
        strict=statistics.strict,
    )
    return Association(
        test=test,
        method=method,
        model=model,
        effect=effect_estimate(x, y, statistics.spread),
        p=p,
        statistic=float(x.mean() - y.mean()),
        sets=sets,
        settings=described(statistics, tails) | dict(settings or {}),
        details=details or {},
    )


def described(statistics: Statistics, tails: Tails) -> dict[str, Any]:
    """The statistics in the form of a result's settings."""
    return {
        "spread": statistics.spread,
        "ddof": {"sample": 1, "population": 0, "pooled": 2}[statistics.spread],
        "tails": tails,
        "p": statistics.how,
        "comparison": ">" if statistics.strict else ">=",
        "samples": statistics.samples,
        "seed": statistics.seed,
    }


def need_words(test: AssociationTest, sets: Mapping[str, SetUse], model: ModelInfo) -> None:
    """Raise DataError if a set is left without words."""
    for role in ROLES:
        if not sets[role].used:
            concept = test.sets[role].concept
            raise DataError(
                f"{test.name}: {model.title} knows none of the {len(sets[role].missing)} words of "
                f"{role.upper()} ({concept}), for example {', '.join(sets[role].missing[:3])}"
            )
