"""The result of an association test: its figures, and everything they depend on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kgbias.errors import DataError, UsageError, no_such
from kgbias.evidence.indicators import MIN_WORDS
from kgbias.graph.types import canonical_json
from kgbias.ids import content_id
from kgbias.methods.associations.effect import (
    Array,
    SpreadKind,
    effect_estimate,
)
from kgbias.methods.associations.permutation import (
    DEFAULT_SAMPLES,
    PermutationMethod,
    PValue,
    Tails,
    permutation_test,
)
from kgbias.methods.associations.sets import ROLES, AssociationTest
from kgbias.models.base import ModelInfo
from kgbias.stats.estimate import Estimate

INTERVAL_LEVEL = 0.95
"""The coverage of every interval."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """The conventions of one test, each named. The defaults are the sound ones.

    `spread` selects the standard deviation under d (see `effect_size`), `how`, `samples` and
    `strict` the permutation test (see `permutation_test`). `tails` None is the method's own: one
    for WEAT and SEAT, two for CEAT and LPBS. `unit` is what is exchanged and counted when a word
    stands in several sentences: "word" (its associations are averaged first) or "sentence" (each
    counts as an independent observation, as in May et al. 2019, Tan and Celis 2019 and Kurita et
    al. 2019; this takes repetitions for evidence, and p is far too small). See
    `published_statistics`.
    """

    spread: SpreadKind = "sample"
    tails: Tails | None = None
    how: PermutationMethod = "auto"
    samples: int = DEFAULT_SAMPLES
    strict: bool = False
    unit: str = "word"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.unit not in ("word", "sentence"):
            raise UsageError(no_such("unit", self.unit, ("word", "sentence")))
        if self.samples < 1:
            raise UsageError("samples must be at least 1")


def published_statistics(method: str, statistics: Statistics | None = None) -> Statistics:
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
class SetUsage:
    """A set as it was used: the words used, those that the model does not know, and those found
    under another spelling (word -> entry)."""

    known: tuple[str, ...]
    missing: tuple[str, ...] = ()
    respelled: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContextVectors:
    """The vectors of one set of words in their contexts: one table [n_contexts, d] per word."""

    words: tuple[str, ...]
    tables: tuple[Array, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Association:
    """The outcome of one test by one method on one model.

    `effect` is d with its interval, over target words (see `effect_estimate`; for CEAT, the range
    of its draws), `p_value` its p-value, `statistic` the difference of the means.
    `permutation_p_value` is a permutation p-value if `p_value` itself is not one (CEAT). `settings`
    is everything that could change the figures; `details` are further figures.
    """

    test: AssociationTest
    method: str
    model: ModelInfo
    effect: Estimate
    p_value: PValue
    statistic: float
    sets: Mapping[str, SetUsage]
    settings: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    permutation_p_value: PValue | None = None

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
    def has_few_words(self) -> bool:
        """Whether a set was left with fewer than 8 stimuli (Caliskan et al. 2017)."""
        return any(len(use.known) < MIN_WORDS for use in self.sets.values())

    @property
    def test_p_value(self) -> PValue:
        """The p-value to correct over a family: the permutation one."""
        return self.permutation_p_value or self.p_value

    def record(self) -> dict[str, Any]:
        """One flat row for JSON: the figures, then what they depend on."""
        row: dict[str, Any] = {
            "test": self.test.name,
            "method": self.method,
            "model": self.model.title,
            "effect_size": self.effect_size,
            "p_value": self.p_value.value,
            "low": self.effect.low,
            "high": self.effect.high,
            "level": INTERVAL_LEVEL,
            "statistic": self.statistic,
            **self.details,
            "tails": self.p_value.tails,
            "p_method": self.p_value.method,
            "partitions": self.p_value.partitions,
            "at_least": self.p_value.at_least,
        }
        if self.permutation_p_value:
            row |= {
                "p_permutation": self.permutation_p_value.value,
                "p_permutation_method": self.permutation_p_value.method,
                "p_permutation_partitions": self.permutation_p_value.partitions,
            }
        sizes = {role: len(self.sets[role].known) for role in ROLES}
        return row | {
            "n": sizes,
            "unequal": sizes["x"] != sizes["y"],
            "few_stimuli": self.has_few_words,
            "missing": {role: list(self.sets[role].missing) for role in ROLES},
            "other_forms": {role: dict(self.sets[role].respelled) for role in ROLES},
            "settings": dict(self.settings),
            "title": self.test.title,
            "source": self.test.source,
            "model_revision": self.model.revision,
            "id": self.id,
        }


def spread_sizes(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with a number by itself for the size of each word set, for a table."""
    row: dict[str, Any] = {}
    for name, value in record.items():
        row |= {f"n_{role}": n for role, n in value.items()} if name == "n" else {name: value}
    return row


def build_association(
    test: AssociationTest,
    method: str,
    model: ModelInfo,
    x: Array,
    y: Array,
    sets: Mapping[str, SetUsage],
    statistics: Statistics,
    *,
    tails: Tails = "one",
    settings: Mapping[str, Any] | None = None,
    details: Mapping[str, Any] | None = None,
) -> Association:
    """Effect size, interval and permutation p-value of the units x [n_x] and y [n_y]; `tails` is
    the method's default."""
    tails = statistics.tails or tails
    p_value = permutation_test(
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
        p_value=p_value,
        statistic=float(x.mean() - y.mean()),
        sets=sets,
        settings=statistics_settings(statistics, tails) | dict(settings or {}),
        details=details or {},
    )


def statistics_settings(statistics: Statistics, tails: Tails) -> dict[str, Any]:
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


def check_words(test: AssociationTest, sets: Mapping[str, SetUsage], model: ModelInfo) -> None:
    """Raise DataError if a set is left without words."""
    for role in ROLES:
        if not sets[role].known:
            concept = test.sets[role].concept
            raise DataError(
                f"{test.name}: {model.title} knows none of the {len(sets[role].missing)} words of "
                f"{role.upper()} ({concept}), for example {', '.join(sets[role].missing[:3])}"
            )
