"""Results of association tests as nodes of the graph."""

from collections.abc import Sequence
from typing import Any

from kgbias.associate.from_graph import RegardAgreement
from kgbias.associate.result import Association
from kgbias.graph.store import Store
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import AssociationEdge, AssociationNode, GroupScore, Run, node_id

MEASURE = "sc_weat"


def save(
    store: Store, run: Run | None, results: Sequence[Association], rows: Sequence[dict[str, Any]]
) -> None:
    """Write results to the graph, tied to `run` where there is one; `rows` are their records.

    A test gets a TARGET edge to each group that a target word or set names, and an ATTRIBUTE edge
    to each object whose text is an attribute word, of those that are in the graph.
    """
    nodes = [
        AssociationNode(
            id=result.id,
            test=result.test.name,
            method=result.method,
            model=result.model,
            effect_size=result.effect_size,
            p_value=result.p.value,
            low=result.effect.low,
            high=result.effect.high,
            record=row,
            edges=_edges(store, result),
        )
        for result, row in zip(results, rows, strict=True)
    ]
    store.save_associations(run.id if run else None, nodes)


def save_groups(run: StoredRun, agreement: RegardAgreement) -> None:
    """Write each group's single-category association as a figure of the group."""
    method = (
        f"SC-WEAT on {agreement.model.name}, words of positive against negative regard; "
        "percentile bootstrap over attribute words"
    )
    run.save_group_scores(
        [GroupScore.of(g.group.id, MEASURE, g.effect, method) for g in agreement.groups]
    )


def _edges(store: Store, result: Association) -> tuple[AssociationEdge, ...]:
    edges = []
    for side, words in result.test.sets.items():
        kind, texts = "object", set(words.words)
        if side in ("x", "y"):
            kind, texts = "group", {words.concept, *words.words}
        ids = store.known_nodes(kind, [node_id(kind, text) for text in texts])
        edges += [AssociationEdge(side, kind, id) for id in sorted(ids)]
    return tuple(edges)
