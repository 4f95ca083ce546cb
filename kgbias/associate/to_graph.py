"""Results of association tests as nodes of the graph."""

import math
from collections.abc import Sequence
from typing import Any

from kgbias.associate.from_graph import RegardAgreement
from kgbias.associate.indicators import Indicators, shipped
from kgbias.associate.result import Association
from kgbias.associate.sets import AssociationTest
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import AssociationEdge, AssociationNode, GroupScore, Run, Topic, node_id

MEASURE = "sc_weat"
SHARED = 3
"""How many words of a topic an attribute set holds at least to be about it."""


def save(
    store: Store,
    run: Run | None,
    results: Sequence[Association],
    rows: Sequence[dict[str, Any]],
    indicators: Indicators | None = None,
) -> None:
    """Write results to the graph, tied to `run` where there is one; `rows` are their records.

    Of the nodes that are in the graph, a test gets an edge to each group that a word or concept of
    a set names, or that `indicators` (None: the shipped ones) say the concept is about: TARGET
    where the set is X or Y, ATTRIBUTE where it is A or B (the male terms of WEAT 7). It gets an
    ATTRIBUTE edge to each object whose text is an attribute word, and to each topic of the run that
    shares at least `SHARED` words with an attribute set.
    """
    nodes = [
        AssociationNode(
            id=result.id,
            test=result.test.name,
            method=result.method,
            model=result.model,
            effect_size=result.effect_size,
            p_value=result.test_p.value,
            low=result.effect.low,
            high=result.effect.high,
            record=row,
            edges=edges(store, run, result.test, indicators),
            p_published=result.p.value if result.calibrated else math.nan,
            p_holm=row["p_holm"],
            p_bh=row["p_bh"],
            n_x=len(result.sets["x"].used),
            n_y=len(result.sets["y"].used),
        )
        for result, row in zip(results, rows, strict=True)
    ]
    store.save_associations(run.id if run else None, nodes)


def save_groups(run: StoredRun, agreement: RegardAgreement) -> None:
    """Write each group's single-category association as a figure of the group."""
    method = (
        f"SC-WEAT on {agreement.model.name}, {agreement.a.concept} against {agreement.b.concept}; "
        "noncentral t over attribute words"
    )
    run.save_group_scores(
        [GroupScore.of(g.group.id, MEASURE, g.effect, method) for g in agreement.groups]
    )


def edges(
    store: Store, run: Run | None, test: AssociationTest, indicators: Indicators | None = None
) -> tuple[AssociationEdge, ...]:
    """The edges of a test to what the graph holds now (see `save`)."""
    topics = [topic for model in store.topics(run.id) for topic in model.topics] if run else []
    declared = indicators or shipped()
    found = [AssociationEdge(side, "topic", id) for side, id in sorted(_topics(test, topics))]
    for side, words in test.sets.items():
        named = {words.concept, *declared.named_by(words.concept)}
        texts = {"group": named | (set(words.words) if side in ("x", "y") else set())}
        if side in ("a", "b"):
            texts["object"] = set(words.words)
        for kind, those in texts.items():
            ids = store.known_nodes(kind, [node_id(kind, text) for text in those])
            found += [AssociationEdge(side, kind, id) for id in sorted(ids)]
    return tuple(found)


def _topics(test: AssociationTest, topics: Sequence[Topic]) -> set[tuple[str, str]]:
    """The attribute sides that are about a topic, with its id: a side that holds `SHARED` of its
    words, all of them, or all but those that the topic of the other side has too
    (`from_graph.topic_sets`)."""
    a, b = set(test.a.words), set(test.b.words)
    found: set[tuple[str, str]] = set()
    for topic in topics:
        words = set(topic.words)
        found |= {
            (side, topic.id)
            for side, own in (("a", a), ("b", b))
            if own == words or len(own & words) >= SHARED
        }
        if a < words:
            for other in topics:
                rest = set(other.words) - b
                if rest and rest == words - a and b < set(other.words):
                    found |= {("a", topic.id), ("b", other.id)}
    return found
