"""What an export for Neo4j holds of SoFa: sets of probes, and models' results on them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.types import canonical_json, node_id
from kgbias.stats.estimate import Estimate

_Nodes = Iterator[tuple[str, Iterable[dict[str, Any]]]]
_Ends = tuple[str, str, dict[str, Any]]
_Edges = Iterator[tuple[str, str, str, Iterable[_Ends]]]


def sofa_nodes(results: Sequence[SofaResult], sets: Sequence[ProbeSet]) -> _Nodes:
    """The results and the sets that they are of."""
    yield (
        "ProbeSet",
        (
            {
                "uid": p.id,
                "name": p.name,
                "groups": p.groups,
                "statements": p.statements,
                "probes": p.probes,
                "record": canonical_json(dict(p.record)),
            }
            for p in sets
        ),
    )
    yield (
        "SofaResult",
        (
            {
                "uid": r.id,
                "model": r.model.name,
                "settings": canonical_json(r.settings),
                "measure": r.measure,
                "record": canonical_json(dict(r.record)),
                **_figure("score", r.score),
            }
            for r in results
        ),
    )


def sofa_edges(
    run_id: str, results: Sequence[SofaResult], sets: Sequence[ProbeSet], groups: Collection[str]
) -> _Edges:
    """The edges of both; of those to groups, the ones that are in the export."""
    yield "TESTED", "Run", "SofaResult", ((run_id, r.id, {}) for r in results)
    yield "OF", "SofaResult", "Model", ((r.id, r.model.id, {}) for r in results)
    yield "ON", "SofaResult", "ProbeSet", ((r.id, r.probe_set, {}) for r in results)
    asked = [(p.id, part) for p in sets for part in p.parts]
    yield (
        "ASKS",
        "ProbeSet",
        "SocialGroup",
        _among(
            groups,
            (
                (id, node_id("group", g), {"category": part.category, "text": g})
                for id, part in asked
                for g in part.groups
            ),
        ),
    )
    yield (
        "ASKS",
        "ProbeSet",
        "Statement",
        (
            (
                id,
                s.id,
                {
                    "category": part.category,
                    "text": s.text,
                    "words": s.words,
                    "hate": s.hate,
                    "cluster": s.cluster,
                },
            )
            for id, part in asked
            for s in part.statements
        ),
    )
    found = [(r.id, c) for r in results for c in r.categories]
    yield (
        "SCORES",
        "SofaResult",
        "Category",
        (
            (id, c.category, {**_figure("score", c.score), "quantiles": c.quantiles})
            for id, c in found
        ),
    )
    yield (
        "PUTS_FIRST",
        "SofaResult",
        "SocialGroup",
        _among(
            groups,
            (
                (
                    id,
                    node_id("group", g.group),
                    {
                        "category": c.category,
                        **_figure("first", g.first),
                        "likeliest": g.likeliest.value,
                        "likeliest_low": g.likeliest.low,
                        "likeliest_high": g.likeliest.high,
                    },
                )
                for id, c in found
                for g in c.groups
            ),
        ),
    )
    yield (
        "DISPARITY",
        "SofaResult",
        "Statement",
        (
            (
                id,
                s.id,
                {
                    "category": c.category,
                    "dds": s.dds,
                    "variance": s.variance,
                    "mean": s.mean,
                    "first": s.first,
                },
            )
            for id, c in found
            for s in c.statements
        ),
    )


def _among(groups: Collection[str], rows: Iterable[_Ends]) -> Iterator[_Ends]:
    return (row for row in rows if row[1] in groups)


def _figure(name: str, e: Estimate) -> dict[str, Any]:
    return {name: e.value, "low": e.low, "high": e.high, "n": e.n}
