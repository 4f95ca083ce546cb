"""What probes add up to, in the form in which the graph keeps it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from kgbias.graph.sofa import (
    ProbePart,
    ProbeSet,
    ProbeStatement,
    SofaCategory,
    SofaGroup,
    SofaResult,
    SofaStatement,
)
from kgbias.graph.store import Store
from kgbias.graph.types import Group
from kgbias.models.base import Settings
from kgbias.probe.result import ScoredBy, Statement, Took
from kgbias.probe.sofa import Bias, CategoryBias, measure_for

_QUANTILES = np.linspace(0, 1, 101)


def run_set(
    name: str, parts: Iterable[tuple[str, Sequence[Group], Sequence[Statement]]]
) -> ProbeSet:
    """The groups and statements of a run, category by category, as a set of its name."""
    return ProbeSet(
        name,
        tuple(
            ProbePart(
                category,
                tuple(group.name for group in groups),
                tuple(ProbeStatement(s.id, s.text) for s in statements),
            )
            for category, groups, statements in parts
        ),
    )


def sofa_result(
    probe_set: ProbeSet,
    model: ScoredBy,
    bias: Bias,
    *,
    measure: str | None = None,
    settings: Settings | None = None,
    seed: int = 0,
    took: Took | None = None,
) -> SofaResult:
    """SoFa of a model on a set, whose groups and statements are those of `bias`, in its order.

    `measure` is what `likeliest` went by (None: the default of the model's kind), `settings` what
    it was asked with where that is more than the model's own, `took` what the probes took."""
    statements = {part.category: part.statements for part in probe_set.parts}
    return SofaResult(
        probe_set.id,
        model.info,
        model.settings if settings is None else settings,
        measure or measure_for(model.convention.kind),
        bias.score,
        tuple(_category(part, statements[part.category]) for part in bias.categories),
        {"tier": model.convention.tier, "seed": seed, **_taken(took)},
    )


def keep(store: Store, run_id: str | None, probe_set: ProbeSet, result: SofaResult) -> None:
    """Write a result with its set. Of a set that is there, what is known of it stays; so does what
    a result took, where nothing was computed anew."""
    if all(known.id != probe_set.id for known in store.probe_sets()):
        store.save_probe_set(probe_set)
    elif "seconds" not in result.record:
        before = next((r.record for r in store.sofa() if r.id == result.id), {})
        result = replace(result, record={**before, **result.record})
    store.save_sofa(run_id, [result])


def _taken(took: Took | None) -> dict[str, float]:
    if took is None:
        return {}
    known = {} if math.isnan(took.seconds) else {"seconds": round(took.seconds, 3)}
    return {"tokens": took.tokens, **known}


def _category(part: CategoryBias, statements: Sequence[ProbeStatement]) -> SofaCategory:
    star = part.star
    lowest = star == star.min(axis=0)
    return SofaCategory(
        part.category,
        part.score,
        tuple(np.quantile(star, _QUANTILES).tolist()),
        tuple(SofaGroup(group, part.shares[group], part.likeliest[group]) for group in part.groups),
        tuple(
            SofaStatement(
                s.id,
                s.text,
                float(part.dds[n]),
                float(star[:, n].var(ddof=1)),
                float(star[:, n].mean()),
                tuple(g for g, first in zip(part.groups, lowest[:, n], strict=True) if first),
            )
            for n, s in enumerate(statements)
        ),
    )
