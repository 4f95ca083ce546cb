"""Results of association tests as nodes of the graph."""

from collections.abc import Sequence
from typing import Any

from kgbias.associate.from_graph import RegardAgreement
from kgbias.associate.result import Association
from kgbias.associate.sets import AssociationTest
from kgbias.graph.store import Store
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import AssociationEdge, AssociationNode, GroupScore, Run, Topic, node_id

MEASURE = "sc_weat"


def save(
    store: Store, run: Run | None, results: Sequence[Association], rows: Sequence[dict[str, Any]]
) -> None:
    """Write results to the graph, tied to `run` where there is one; `rows` are their records.

    A test gets a TARGET edge to each group that a target word or set names, an ATTRIBUTE edge to
    each object whose text is an attribute word, of those that are in the graph, and one to each
    topic of the run whose words an attribute set holds.
    """
    topics = [topic for model in store.topics(run.id) for topic in model.topics] if run else []
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
            edges=_edges(store, result.test, topics),
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


def _edges(
    store: Store, test: AssociationTest, topics: Sequence[Topic]
) -> tuple[AssociationEdge, ...]:
    edges = [AssociationEdge(side, "topic", id) for side, id in sorted(_topics(test, topics))]
    for side, words in test.sets.items():
        kind, texts = "object", set(words.words)
        if side in ("x", "y"):
            kind, texts = "group", {words.concept, *words.words}
        ids = store.known_nodes(kind, [node_id(kind, text) for text in texts])
        edges += [AssociationEdge(side, kind, id) for id in sorted(ids)]
    return tuple(edges)


def _topics(test: AssociationTest, topics: Sequence[Topic]) -> set[tuple[str, str]]:
    """The attribute sides that hold a topic's words, with the topic's id: all of its words, or all
    but those that the topic of the other side has too (`from_graph.topic_sets`)."""
    a, b = set(test.a.words), set(test.b.words)
    found: set[tuple[str, str]] = set()
    for topic in topics:
        words = set(topic.words)
        found |= {(side, topic.id) for side, own in (("a", a), ("b", b)) if own == words}
        if a < words:
            for other in topics:
                rest = set(other.words) - b
                if rest and rest == words - a and b < set(other.words):
                    found |= {("a", topic.id), ("b", other.id)}
    return found
