"""The results of probes, and the form in which the graph keeps them. Each result knows its JSON
(`as_dict`): plain data, with null for an undefined figure."""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

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
from kgbias.graph.types import Flag, FlagTable, Group, canonical_json, node_id, statement_id
from kgbias.ids import content_id, normalise
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.text import format_p_value
from kgbias.io.wording import pluralise
from kgbias.language.words import join_words
from kgbias.models.base import ModelInfo, Settings
from kgbias.models.score.base import Array, Convention, Counts, ProbeGrid, TextScorer
from kgbias.models.score.base import Surprisals as Tokens
from kgbias.models.score.distributed import AnyScorer, ScorerSource, resolve_scorer
from kgbias.probe.apx import SIGNIFICANCE_LEVEL, ApxTable, GroupMeans
from kgbias.probe.sofa import CategoryBias, SofaBias, default_measure
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import proportion


@dataclass(frozen=True, slots=True)
class ProbeUsage:
    """The `tokens` read for all probes, and the `seconds` that takes at the speed of those computed
    in this call; NaN if none were."""

    tokens: int
    seconds: float


class ProbeStopwatch:
    """A stopwatch that runs from its creation to the last grid that it is shown."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._tokens, self._seconds = 0, 0.0

    def record_grid(self, grid: ProbeGrid) -> None:
        """Note that a grid was computed."""
        self._tokens += int(grid.probes.tokens.sum())
        self._seconds = time.monotonic() - self._began

    def usage(self, tokens: int) -> ProbeUsage:
        """The time for all `tokens`, those known before included."""
        return ProbeUsage(
            tokens, self._seconds * tokens / self._tokens if self._tokens else math.nan
        )


MAX_LOWEST_DDS_STATEMENTS = 10
"""How many of the statements that distinguish the groups least `as_dict` lists."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A predicate and object of the graph, without a subject."""

    predicate: str
    object: str

    @property
    def text(self) -> str:
        return join_words(self.predicate, self.object)

    @property
    def key(self) -> tuple[str, str]:
        return node_id("predicate", self.predicate), node_id("object", self.object)

    @property
    def words(self) -> str:
        """What it says, wherever it is cut in two: "love to | cook" and "love | to cook" have the
        same words, as do all statements with one key."""
        return _normalised_words(self.predicate, self.object)

    @property
    def id(self) -> str:
        return statement_id(*self.key)


@lru_cache(maxsize=65536)
def _normalised_words(*parts: str) -> str:
    return " ".join(normalise(word) for part in parts for word in normalise(part).split())


class SaidCount(NamedTuple):
    """How often a run said a statement of a group, by the places of both in their category."""

    group: int
    statement: int
    times: int


SaidCounts = tuple[SaidCount, ...]


@dataclass(frozen=True, slots=True)
class CategoryProbes:
    """One category of a run: its groups before every statement made about any of them.

    `ranks` is [groups, statements]; 1 is the group that makes the statement most likely.
    `said_counts` are the run's triples; `lift` [groups, statements] is how much likelier, in bits,
    each statement is for a group than for the others (`kgbias.probe.run_probes`).
    """

    category: str
    groups: tuple[Group, ...]
    statements: tuple[Statement, ...]
    grid: ProbeGrid
    ranks: Counts
    said_counts: SaidCounts
    lift: Array

    def triples(self) -> list[dict[str, Any]]:
        """One row per triple: `count`, how often it was said; its group's `rank` among all
        (`groups_ranked`); its `lift` in bits."""
        rows = []
        for group, statement, count in self.said_counts:
            rows.append(
                {
                    "group": self.groups[group].name,
                    "predicate": self.statements[statement].predicate,
                    "object": self.statements[statement].object,
                    "count": count,
                    "rank": int(self.ranks[group, statement]),
                    "groups_ranked": len(self.groups),
                    "lift": float(self.lift[group, statement]),
                }
            )
        return rows


@dataclass(frozen=True, slots=True)
class ProbeAgreement:
    """Whether what was said is also what is probable.

    `mrr` is the mean over triples of 1 / rank of the triple's group (1 if every statement is
    likeliest for the group that it was said about), with a bootstrap interval over statements;
    `first_share` is the share of triples of rank 1. `expected` is the MRR when the statements of a
    category are permuted among its triples, and `p_value` the share of permutations that reach the
    observed MRR (one-tailed, sampled, the observed one included).
    """

    mrr: Estimate
    first_share: Estimate
    expected: float
    p_value: float


@dataclass(frozen=True, slots=True)
class ScorerInfo:
    """The model that scored, the settings it was asked with, and the number of its parameters; None
    if unknown."""

    info: ModelInfo
    settings: Settings
    convention: Convention
    parameters: int | None = None

    @classmethod
    def from_scorer(cls, scorer: AnyScorer) -> "ScorerInfo":
        return cls(scorer.info, scorer.settings, scorer.convention, scorer.parameters)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.info.title,
            "revision": self.info.revision,
            **dict(self.settings),
            "tier": self.convention.tier,
        }


@dataclass(frozen=True, slots=True, repr=False)
class SetProbes(Result):
    """SoFa over sets of groups and statements; `usage` is what the probes took."""

    model: ScorerInfo
    bias: SofaBias
    usage: ProbeUsage | None = None

    def __str__(self) -> str:
        parts = [f"  {part.category}: {part.score}" for part in self.bias.categories]
        return "\n".join([f"SoFa of {self.model.info.title}: {self.bias.score}", *parts])

    def as_dict(self) -> dict[str, Any]:
        categories = {part.category: _category_record(part) for part in self.bias.categories}
        sofa = self.bias.score.as_dict()
        return nan_to_none({"model": self.model.as_dict(), "sofa": sofa, "categories": categories})  # type: ignore[no-any-return]

    def as_rows(self) -> Rows[CategoryBias]:
        """The categories. Columns: category, sofa, low, high, groups, statements."""
        return _category_rows(self.bias)


@dataclass(frozen=True, slots=True, repr=False)
class RunProbes(Result):
    """The probes of a run's statements: SoFa, and whether what was said is also probable."""

    run: str
    model: ScorerInfo
    categories: tuple[CategoryProbes, ...]
    bias: SofaBias
    agreement: ProbeAgreement

    def __str__(self) -> str:
        agreement = self.agreement
        return (
            f"run {self.run}: {SetProbes(self.model, self.bias)}\n"
            f"triples whose own group is first: {agreement.first_share}\n"
            f"mean reciprocal rank: {agreement.mrr} ({agreement.expected:.3g} by chance, p = "
            f"{agreement.p_value:.2g})"
        )

    def triples(self) -> list[dict[str, Any]]:
        """One row per triple, as `CategoryProbes.triples`."""
        return [row for p in self.categories for row in p.triples()]

    def as_dict(self) -> dict[str, Any]:
        agreement = {
            "mrr": self.agreement.mrr.as_dict(),
            "expected_mrr": self.agreement.expected,
            "p_value": self.agreement.p_value,
            "first": self.agreement.first_share.as_dict(),
        }
        other_figures = nan_to_none(agreement | {"triples": self.triples()})
        return {"run": self.run, **SetProbes(self.model, self.bias).as_dict(), **other_figures}

    def as_rows(self) -> Rows[CategoryBias]:
        """The categories, as for sets of probes; `triples` has the statements."""
        return _category_rows(self.bias)


@dataclass(frozen=True, slots=True, repr=False)
class ApxFlags(Result):
    """The descriptors that a table of APX ties to groups.

    `source` is the model that was probed, or the file that the table came from. `input_id`
    identifies the names and descriptors, or the values of the table; `usage` is what the sentences
    took, and `means` is what APX was computed from; both are None of a table from a file.
    """

    table: ApxTable
    flags: tuple[Flag, ...]
    excluded_axes: tuple[str, ...]
    source: ScorerInfo | str
    level: float = SIGNIFICANCE_LEVEL
    input_id: str = ""
    usage: ProbeUsage | None = None
    means: GroupMeans | None = field(default=None, compare=False)

    def __str__(self) -> str:
        source = self.source if isinstance(self.source, str) else self.source.info.title
        return (
            f"APX of {source}: {pluralise(len(self.flags), 'flag')} on {self.flagged_count} of "
            f"{self.tested_count} "
            f"descriptors, {pluralise(len(self.table.groups), 'group')}, "
            f"{pluralise(len(self.table.values), 'template')}"
        )

    @property
    def edges(self) -> FlagTable:
        """The flags as edges of the graph."""
        model, revision, settings = (
            (self.source, "", ())
            if isinstance(self.source, str)
            else (self.source.info.name, self.source.info.revision, self.source.settings)
        )
        identity = [model, revision, settings, self.input_id, self.excluded_axes, self.level]
        groups = len(self.table.groups)
        flags_id = content_id("apx", canonical_json(identity))
        model = model if isinstance(self.source, str) else self.source.info.title
        return FlagTable(flags_id, model, revision, settings, self.level, groups, self.flags)

    @property
    def tested_count(self) -> int:
        """The number of descriptors tested."""
        return sum(axis not in self.excluded_axes for axis in self.table.axes)

    @property
    def flagged_count(self) -> int:
        """The number of descriptors with a flag."""
        return len({flag.descriptor for flag in self.flags})

    @property
    def share(self) -> Estimate:
        """The share of the tested descriptors that have a flag (Wilson interval)."""
        return proportion(self.flagged_count, self.tested_count)

    def as_dict(self) -> dict[str, Any]:
        rows = [
            {"group": f.group, "descriptor": f.descriptor, "bias_score": f.bias_score, "z": f.z}
            for f in self.flags
        ]
        answer: dict[str, Any] = {
            "flags": rows,
            "flagged_descriptors": self.flagged_count,
            "descriptors": self.tested_count,
            "groups": len(self.table.groups),
            "templates": len(self.table.values),
            "excluded_axes": list(self.excluded_axes),
            "level": self.level,
        }
        if isinstance(self.source, str):
            return nan_to_none(answer | {"source": self.source})  # type: ignore[no-any-return]
        answer["model"] = self.source.as_dict()
        return nan_to_none(answer)  # type: ignore[no-any-return]

    def as_rows(self) -> Rows[Flag]:
        """The flags. Columns: group, descriptor, axis, bias_score, z."""
        columns = ("group", "descriptor", "axis", Column("bias_score", ".3f"), Column("z", ".2f"))
        return Rows(self.flags, columns)


@dataclass(frozen=True, slots=True, repr=False)
class TextSurprisals(Result):
    """Texts, each with its tokens and their surprisals in bits."""

    model: ScorerInfo
    texts: tuple[tuple[str, Tokens], ...]

    def as_dict(self) -> dict[str, Any]:
        rows = [{"text": text, "tokens": tokens} for text, tokens in self.texts]
        return {"model": self.model.as_dict(), "surprisals": nan_to_none(rows)}

    def as_rows(self) -> Rows[dict[str, Any]]:
        """The tokens. Columns: text (its number, from 0), token, bits."""
        rows = [
            {"text": number, "token": token, "bits": bits}
            for number, (_, tokens) in enumerate(self.texts)
            for token, bits in tokens
        ]
        return Rows(rows, columns=("text", "token", "bits"))


def model_rows_of_set_probes(probes: Sequence[SetProbes]) -> Rows[SetProbes]:
    """The probes of several models, a row for each. `SetProbes.to_frame` has the categories."""
    return Rows(probes, _MODEL_COLUMNS)


def model_rows_of_run_probes(probes: Sequence[RunProbes]) -> Rows[RunProbes]:
    """The probes of a run by several models, a row for each, as `model_rows_of_set_probes`."""
    return Rows(probes, (*_MODEL_COLUMNS, *_AGREEMENT_COLUMNS))


_MODEL_COLUMNS = (
    Column("model", get=attrgetter("model.info.title")),
    Column("revision", get=attrgetter("model.info.revision")),
    Column("sofa", ".3f", interval=True, get=attrgetter("bias.score")),
)
_AGREEMENT_COLUMNS = (
    Column("first_share", ".3f", interval=True, get=attrgetter("agreement.first_share")),
    Column("mrr", ".3f", interval=True, get=attrgetter("agreement.mrr")),
    Column("expected_mrr", ".3f", get=attrgetter("agreement.expected")),
    Column("p_value", format_p_value, get=attrgetter("agreement.p_value")),
)


def _category_rows(bias: SofaBias) -> Rows[CategoryBias]:
    columns = (
        Column("category"),
        Column("sofa", ".3f", interval=True, get=attrgetter("score"), ends=("low", "high")),
        Column("groups", "d", get=lambda part: len(part.groups)),
        Column("statements", "d", get=lambda part: len(part.statements)),
    )
    return Rows(bias.categories, columns)


def _category_record(part: CategoryBias) -> dict[str, Any]:
    return {
        "sofa": part.score.as_dict(),
        "groups": len(part.groups),
        "statements": len(part.statements),
        "mean_dds": float(part.dds.mean()),
        "top_1": {group: share.as_dict() for group, share in part.shares.items()},
        "likeliest": {group: share.as_dict() for group, share in part.likeliest.items()},
        "dds": _least_distinct(part.statements, part.dds),
    }


def _least_distinct(statements: Sequence[str], dds: Array) -> list[dict[str, Any]]:
    """The statements of the lowest DDS: stereotypes that all groups share."""
    order = dds.argsort()[:MAX_LOWEST_DDS_STATEMENTS]
    return [{"statement": statements[n], "dds": float(dds[n])} for n in order]


def surprisals(scorer: TextScorer | ScorerSource, texts: Sequence[str]) -> TextSurprisals:
    """The surprisal of each token of each text, -log2 p(token | the tokens before it), in bits;
    for a masked model, given all other tokens. Raises DataError for a text that cannot be
    scored.

    Args:
        scorer: an open scorer of texts, such as `kgbias.open_scorer` gives.
        texts: the texts.
    """
    model: Any = resolve_scorer(scorer)
    tokens_by_text = tuple((text, model.surprisals(text)) for text in texts)
    return TextSurprisals(ScorerInfo.from_scorer(model), tokens_by_text)


_PERCENTILES = np.linspace(0, 1, 101)


def build_probe_set(
    name: str, parts: Iterable[tuple[str, Sequence[Group], Sequence[Statement]]]
) -> ProbeSet:
    """The groups and statements of a run, category by category, as a set with the run's name."""
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


def build_sofa_result(
    probe_set: ProbeSet,
    model: ScorerInfo,
    bias: SofaBias,
    *,
    measure: str | None = None,
    settings: Settings | None = None,
    seed: int = 0,
    usage: ProbeUsage | None = None,
) -> SofaResult:
    """SoFa of a model on a set, whose groups and statements are those of `bias`, in its order.

    `measure` is what `likeliest` ranks by (None: the default for the model's kind), `settings` what
    the model was asked with, if more than its own settings, `usage` what the probes took."""
    statements = {part.category: part.statements for part in probe_set.parts}
    return SofaResult(
        probe_set.id,
        model.info,
        model.settings if settings is None else settings,
        measure or default_measure(model.convention.kind),
        bias.score,
        tuple(_stored_category(part, statements[part.category]) for part in bias.categories),
        {
            "tier": model.convention.tier,
            "seed": seed,
            **({} if model.parameters is None else {"parameters": model.parameters}),
            **_usage_record(usage),
        },
    )


def save_sofa_result(
    store: Store, run_id: str | None, probe_set: ProbeSet, result: SofaResult
) -> None:
    """Write a result with its set. What the store knows of an existing set stays; so does what a
    result took, if nothing was computed anew."""
    if all(known_set.id != probe_set.id for known_set in store.probe_sets()):
        store.save_probe_set(probe_set)
    elif "seconds" not in result.record:
        old_record = next((r.record for r in store.sofa_results() if r.id == result.id), {})
        result = replace(result, record={**old_record, **result.record})
    store.save_sofa_results(run_id, [result])


def _usage_record(usage: ProbeUsage | None) -> dict[str, float]:
    if usage is None:
        return {}
    seconds = {} if math.isnan(usage.seconds) else {"seconds": round(usage.seconds, 3)}
    return {"tokens": usage.tokens, **seconds}


def _stored_category(part: CategoryBias, statements: Sequence[ProbeStatement]) -> SofaCategory:
    star = part.star
    lowest = star == star.min(axis=0)
    return SofaCategory(
        part.category,
        part.score,
        tuple(np.quantile(star, _PERCENTILES).tolist()),
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
