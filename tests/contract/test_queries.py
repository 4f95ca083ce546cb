"""Every query of the library on a graph small enough to answer by hand, and on every store."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgbias.errors import RunNotFound, UsageError
from kgbias.graph.decisions import Decision
from kgbias.graph.labels import Label
from kgbias.graph.push import push_run
from kgbias.graph.sofa import (
    ProbeSet,
    SofaCategory,
    SofaGroup,
    SofaResult,
    SofaStatement,
)
from kgbias.graph.stereotypes import (
    Stereotype,
    StereotypeCount,
    StereotypeMatch,
    StereotypeMatches,
    StereotypeTable,
)
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.structure import measure_structure
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    BeliefRun,
    BelievedEdge,
    BenchmarkItem,
    Flag,
    FlagTable,
    Generation,
    Group,
    GroupName,
    GroupScore,
    ItemScore,
    Metric,
    NameProbe,
    ProbedEdge,
    ProbeRun,
    Run,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    Triple,
    WordSetEdge,
)
from kgbias.models.base import ModelInfo
from kgbias.query import load_query, query_names
from kgbias.stats.estimate import Estimate
from tests.arms_data import arms_run
from tests.hostile import HOSTILE_TEXTS
from tests.report_data import measured_run

pytestmark = pytest.mark.skipif(not find_spec("kglite"), reason="kglite is not installed")

MODEL = ModelInfo("test", "r1")
GROUPS = tuple(Group(name, "peoples") for name in ("Elves", "Orcs", "Ents", "Dwarves"))
RUN = Run("middle", MODEL, {"seed": 0}, GROUPS)
# group, predicate, object, count, regard, toxicity
SAID = [
    ("Elves", "love", "songs", 3, 0.9, 0.1),
    ("Elves", "hate", "smoke", 1, -0.5, 0.4),
    ("Orcs", "love", "smoke", 2, -0.25, 0.5),
    ("Orcs", "are", "cruel", 2, -0.75, 0.9),
    ("Ents", "hate", "smoke", 1, -0.4, 0.2),
    ("Ents", "love", "water", 1, 0.8, 0.05),
    ("Dwarves", "dig", "water", 1, 0.1, 0.3),
]

FLAGS = {
    "test": (Flag("Elves", "tall", "body", 0.0, -3.0), Flag("Orcs", "loud", "", 0.25, -2.4)),
    "other": (Flag("elves", "tall", "body", 0.125, -2.5),),
}


class Axes:
    """An encoder of three axes: about smoke, about wood, or neither."""

    name, version, size = "axes", "1", 3

    def __init__(self, *_: object) -> None: ...

    def forget(self) -> None: ...

    def embed(self, texts: list[str]) -> Any:
        axis = [0 if "smok" in t or "fire" in t else 1 if "wood" in t else 2 for t in texts]
        return np.eye(3)[axis]


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbias.measure.semantic_search.MiniLM", Axes)


@pytest.fixture
def middle(store: Store) -> Store:
    store.begin_run(RUN)
    triples = [Triple(*row[:3]) for row in SAID]
    generations = [
        Generation(
            RUN.id,
            f"none/object/{n}",
            triple.group_id,
            "none",
            "object",
            1,
            0,
            "ok",
            template="object@1",
            prompt=f"Q: {triple.group} # {triple.predicate}\nA:",
            answer_key=f"k{n}",
            triple=triple,
            count=row[3],
            shown=(triples[6].id, triples[5].id) if n == 0 else (),
        )
        for n, (triple, row) in enumerate(zip(triples, SAID, strict=True))
    ]
    refused = Generation(RUN.id, "no", GROUPS[1].id, "none", "object", 1, 0, "refused")
    store.keep_answers([Answer("k0", MODEL.id, " songs.\n", "stop")])
    store.record_round(RUN.id, "none", 1, [*generations, refused])
    sneer = Triple("Orcs", "are", "fair")
    store.add_decisions(
        RUN.id,
        [
            Decision(refused.id, "restore", "Ana", "2026-11-22T10:00:00+00:00", sneer),
            Decision(refused.id, "reject", "Ben", "2026-11-22T11:00:00+00:00"),
        ],
    )
    smoke, songs = triples[1].id, triples[0].id
    store.add_labels(
        [
            Label(id, "regard", label, rater, kind, "regard@1", f"2026-11-2{day}", False, "")
            for day, (id, label, rater, kind) in enumerate(
                [
                    (smoke, "positive", "Ana", "person"),
                    (smoke, "negative", "Ana", "person"),  # in the place of the first
                    (smoke, "neutral", "Ben", "person"),
                    (smoke, "negative", "Cem", "person"),
                    (smoke, "", "Dan", "person"),
                    (smoke, "other", "gpt", "model"),
                    (songs, "positive", "Ana", "person"),
                    (songs, "negative", "Ben", "person"),
                    (songs, "undo", "Ben", "person"),  # so nobody disagrees with Ana
                ]
            )
        ]
    )
    for place, measure in ((4, "regard"), (5, "toxicity")):
        values = [(t.id, float(row[place])) for t, row in zip(triples, SAID, strict=True)]  # type: ignore[arg-type]
        scores = [
            Score(id, v, "positive" if v > 0 else "negative" if v < 0 else "neutral")
            for id, v in values
        ]
        store.save_scores(RUN.id, Metric(measure, "rule", "1"), scores)
    store.put(
        RUN.id,
        GroupScore,
        [GroupScore(2.0, -1.0, 4.0, 4, GROUPS[0].id, "overall_regard", "bootstrap")],
    )
    targets = (
        WordSetEdge("x", "group", GROUPS[0].id),
        WordSetEdge("y", "group", GROUPS[1].id),
    )
    figures = ("songs", "ceat", MODEL, -1.25, 0.0312, -1.5, -1.0, {}, targets, 0.0, 0.0624, 0.05)
    tests = [AssociationNode("t1", *figures, 8, 9), AssociationNode("t2", *figures, 1, 8)]
    store.save_associations(RUN.id, tests)
    for name, flags in FLAGS.items():
        store.save_flags(FlagTable(name, name, "r1", (), 0.01, 40, flags))
    store.set_status(RUN.id, "complete")
    store.save_centralities(RUN.id, measure_structure(store.triples(RUN.id)))
    add_topics_and_probes(store)
    read = ItemScore(BenchmarkItem("i1", "bbq", "Age 7", "Age"), (-1.5, -2.25, -4.0), 31, 0.25)
    store.save_item_scores(
        MODEL, (), [read, replace(read, item=BenchmarkItem("i2", "bbq", "7", "SES"))]
    )
    store.save_item_scores(ModelInfo("other"), (), [replace(read, scores=(-2.0, -1.0, -3.0))])
    for score, model in ((0.5, "one"), (0.75, "two")):
        probe_set = ProbeSet.from_texts(
            "asked", {"peoples": (("Elves", "Orcs"), ("are kind", "love songs"))}
        )
        store.save_probe_set(probe_set)
        store.save_sofa_results(None, [sofa_of(probe_set, score, model)])
    add_recorded(store)
    return store


def add_recorded(store: Store) -> None:
    """A table that records cruelty of Orcs, which one statement says and one comes near; what is
    said of Ents is new to it, and the others are not in it."""
    table, rough = StereotypeTable("tales"), Stereotype("tales", "Orc", "brutal", "", 2.5, 1)
    ids = [Triple(*row[:3]).id for row in SAID]
    marks = (
        StereotypeMatch(ids[2], rough.uid(table.id), "related", "meaning", 0.61),
        StereotypeMatch(ids[3], rough.uid(table.id), "known", "meaning", 0.9),
        StereotypeMatch(ids[4], None, "new"),
        StereotypeMatch(ids[5], None, "new"),
    )
    store.save_stereotype_matches(
        RUN.id, StereotypeMatches(table, {}, (StereotypeCount(rough, "Orcs", 1, 0.0),), marks)
    )


def sofa_of(probe_set: ProbeSet, score: float, model: str) -> SofaResult:
    """Elves first before one of two statements by PPL*, before none by what was asked for."""
    (part,) = probe_set.parts
    own = Estimate(score, 0.25, 1.0, 2)
    groups = tuple(
        SofaGroup(g, Estimate(0.5, 0.0, 1.0, 2), Estimate(float(g == "Orcs"), 0.0, 1.0, 2))
        for g in part.groups
    )
    statements = tuple(
        SofaStatement(s.id, s.text, score + n, score, 0.0, (part.groups[n],))
        for n, s in enumerate(part.statements)
    )
    category = SofaCategory("peoples", own, (0.0, 1.0), groups, statements)
    return SofaResult(probe_set.id, ModelInfo(model), (), "conditional", own, (category,))


def add_topics_and_probes(store: Store) -> None:
    """Three statements about two topics; three statements probed with some groups, and after names.
    Orcs, who were refused one answer of three, are believed to love songs, Dwarves to hate
    smoke."""
    smoke, loved, cruel = (Triple(*SAID[n][:3]) for n in (1, 2, 3))
    topics = (Topic("c", 0, ("smoke", "air"), 2), Topic("c", 1, ("cruelty",), 1))
    about = tuple(
        TopicAssignment(t.id, topic.id, 0.5)
        for t, topic in ((smoke, topics[0]), (loved, topics[0]), (cruel, topics[1]))
    )
    store.save_topics(RUN.id, [TopicModel("c", topics, about, {})])
    elves, orcs, ents, dwarves = (group.id for group in GROUPS)
    songs = Triple(*SAID[0][:3])
    probed = [  # statement, group, log-likelihood, rank, lift, cosine, association
        (cruel, orcs, -6.0, 1, 1.5, 0.75, 0.5),
        (cruel, elves, -8.0, 2, -1.5, 0.25, -0.5),
        (smoke, dwarves, -5.0, 1, 2.5, None, None),
        (smoke, elves, -7.0, 2, 3.5, None, None),
        (smoke, ents, -7.5, 1, 0.75, None, None),
        (songs, orcs, -4.0, 1, 4.5, None, None),
        (songs, elves, -4.0, 1, 2.0, None, None),
    ]
    store.put(
        RUN.id,
        ProbedEdge,
        [
            ProbedEdge(
                statement.predicate_id,
                statement.object_id,
                group,
                likelihood,
                4,
                likelihood + 1,
                3,
                -1.0,
                1,
                rank,
                (),
                (),
                *rest,
            )
            for statement, group, likelihood, rank, *rest in probed
        ],
        asking=ProbeRun(MODEL),
    )
    believed = [  # statement, group, lift, verdict
        (cruel, orcs, 1.5, "believed"),
        (songs, orcs, 4.5, "believed"),
        (smoke, orcs, -1.0, ""),
        (smoke, dwarves, 2.5, "believed"),
        (songs, dwarves, -2.0, ""),
        (smoke, elves, 3.5, "bound to a word"),
        (songs, elves, 2.0, ""),
        (smoke, ents, 0.75, "leaning"),
    ]
    asked = BeliefRun(MODEL, (), {"floor": {}})
    store.put(
        RUN.id,
        BelievedEdge,
        [
            BelievedEdge(
                s.predicate_id,
                s.object_id,
                group,
                lift,
                lift - 0.5,
                lift + 0.5,
                8,
                0.01,
                0.02,
                0.001,
                0.002,
                lift - 0.25,
                "Uruks",
                verdict,
            )
            for s, group, lift, verdict in believed
        ],
        asking=asked,
    )
    names = (
        GroupName("orc folk", orcs, "{} folk", "orc"),
        GroupName("Uruks", orcs, "{}s", "uruk"),
        GroupName("Goblins", orcs, "{}s", "goblin", "narrower"),
        GroupName("Velms", "", "{}s", "velm"),
    )
    store.save_names(names)
    means = ((-4, -5, -9), (-6, -3, -6), (-8, -8, -5), (-7, -7, -7))
    store.put(
        RUN.id,
        NameProbe,
        [
            NameProbe(s.predicate_id, s.object_id, name.id, (mean - 0.5, mean + 0.5))
            for name, own in zip(names, means, strict=True)
            for s, mean in zip((cruel, songs, smoke), own, strict=True)
        ],
        asking=asked,
    )
    store.put(RUN.id, BeliefRun, [asked])


def alike(one: Any, other: Any) -> bool:
    """Equal, or means that differ in their last printed digit: engines add in any order."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, abs=1.01e-4)
    return bool(one == other)


def ask(store: Store, name: str, **given: object) -> list[tuple[Any, ...]]:
    return load_query(name).run(store, {k: str(v) for k, v in given.items()}).rows


HATED = Triple("Elves", "hate", "smoke").id
# name, parameters, rows
ANSWERS: list[tuple[str, dict[str, object], list[tuple[object, ...]]]] = [
    (
        "neighbourhood",
        {"group": "Elves"},
        [("love", "songs", 3, 0.9, 0.1, "none"), ("hate", "smoke", 1, -0.5, 0.4, "none")],
    ),
    ("shared", {"group": "Elves", "other": "Orcs"}, [("smoke", ["hate"], 1, ["love"], 2, "none")]),
    (
        "same_object",
        {"triples": f"{HATED},x"},
        [
            (HATED, "Orcs", "love", "smoke", 2, "none", Triple("Orcs", "love", "smoke").id),
            (HATED, "Ents", "hate", "smoke", 1, "none", Triple("Ents", "hate", "smoke").id),
        ],
    ),
    (  # "cruel" by its word, "smoke" because it is near "fire"
        "similar",
        {"about": "cruel fire"},
        [
            ("Orcs", "are", "cruel", 2, "by words", 0.0, "none"),
            ("Elves", "hate", "smoke", 1, "by meaning", 1.0, "none"),
            ("Ents", "hate", "smoke", 1, "by meaning", 1.0, "none"),
            ("Orcs", "love", "smoke", 2, "by meaning", 1.0, "none"),
        ],
    ),
    ("similar", {"about": "wood"}, []),
    ("only", {"group": "Ents", "other": "Elves"}, [("love", "water", 1, 0.8, 0.05, "none")]),
    (
        "predicates",
        {},
        [
            ("Elves", "love", 3, 1, 0.9, "none"),
            ("Orcs", "are", 2, 1, -0.75, "none"),
            ("Orcs", "love", 2, 1, -0.25, "none"),
        ],
    ),
    (
        "most_negative",
        {"limit": 2},
        [("Orcs", "are", "cruel", -0.75, 2, "none"), ("Elves", "hate", "smoke", -0.5, 1, "none")],
    ),
    (
        "most_toxic",
        {"limit": 2},
        [("Orcs", "are", "cruel", 0.9, 2, "none"), ("Orcs", "love", "smoke", 0.5, 2, "none")],
    ),
    (
        "most_repeated",
        {"limit": 2},
        [
            ("Elves", "love", "songs", 3, 0.9, 0.1, "none"),
            ("Orcs", "are", "cruel", 2, -0.75, 0.9, "none"),
        ],
    ),
    (
        "bridges",
        {},
        [
            ("smoke", 3, 4, ["Elves", "Ents", "Orcs"], "none"),
            ("water", 2, 2, ["Dwarves", "Ents"], "none"),
        ],
    ),
    ("path", {"group": "Elves", "other": "Orcs"}, [(2, ["Elves", "smoke", "Orcs"])]),
    (
        "path",
        {"group": "Elves", "other": "Dwarves"},
        [(4, ["Elves", "smoke", "Ents", "water", "Dwarves"])],
    ),
    (
        "lineage",
        {"group": "Elves", "predicate": "love", "object": "songs"},
        [
            (
                "middle",
                "object",
                1,
                0,
                "object@1",
                "Q: Elves # love\nA:",
                " songs.\n",
                ["Dwarves dig water", "Ents love water"],
            )
        ],
    ),
    (
        "decisions",
        {"limit": 9},
        [
            ("2026-11-22T10:00:00+00:00", "Ana", "restore", "Orcs", "are", "fair", "refused", None),
            ("2026-11-22T11:00:00+00:00", "Ben", "reject", "Orcs", None, None, "refused", None),
        ],
    ),
    ("disputed", {}, [("Elves", "Elves hate smoke", ["negative", "neutral"], [2, 1])]),
    ("disputed", {"kind": "model"}, []),
    ("disputed", {"measure": "toxicity"}, []),
    (
        "refusals",
        {},
        [
            ("Dwarves", 1, 1, 0, 0, 0, 0, 0, "none"),
            ("Elves", 2, 2, 0, 0, 0, 0, 0, "none"),
            ("Ents", 2, 2, 0, 0, 0, 0, 0, "none"),
            ("Orcs", 3, 2, 1, 0, 0, 0, 0, "none"),
        ],
    ),
    ("asked", {}, [(8, 8, 0, 0, 8, 7, 1, 0, 0, 0, 0)]),
    (
        "refused_prompts",
        {},
        [("Dwarves", 1, 0.0), ("Elves", 2, 0.0), ("Ents", 2, 0.0), ("Orcs", 3, 33.3)],
    ),
    ("figures", {}, [("overall_regard", "Elves", 2.0, -1.0, 4.0, 4, "")]),
    (
        "groups_by_effect",
        {},
        # the test with one word a side is not among them
        [
            ("Elves", "x", "songs", "ceat", "test", 17, -1.25, 0.0312, 0.0624, 0.05, 0.0),
            ("Orcs", "y", "songs", "ceat", "test", 17, -1.25, 0.0312, 0.0624, 0.05, 0.0),
        ],
    ),
    (
        "benchmark_items",
        {"category": "Age"},
        [
            ("bbq", "Age", "Age 7", "other", [-2.0, -1.0, -3.0], 31),
            ("bbq", "Age", "Age 7", "test", [-1.5, -2.25, -4.0], 31),
        ],
    ),
    (
        "flagged",
        {},
        [
            ("other", "Elves", "tall", "body", -2.5, 0.125, 40),
            ("test", "Elves", "tall", "body", -3.0, 0.0, 40),
            ("test", "Orcs", "loud", "", -2.4, 0.25, 40),
        ],
    ),
    ("flagged", {"group": "Orcs"}, [("test", "Orcs", "loud", "", -2.4, 0.25, 40)]),
    (
        "structure",
        {},
        # Elves-songs, Elves-smoke, Orcs-smoke, Orcs-cruel, Ents-smoke, Ents-water, Dwarves-water:
        # a tree of 8 nodes, so 21 pairs of others at each; on paths, by the branches cut apart.
        # Communities by size: Dwarves water Ents, Orcs smoke cruel (ties by id), Elves songs.
        [
            ("group", "Ents", 2, 0.4762, 0, 3),
            ("group", "Elves", 4, 0.2857, 2, 2),
            ("group", "Orcs", 4, 0.2857, 1, 2),
            ("group", "Dwarves", 1, 0.0, 0, 1),
            ("object", "smoke", 4, 0.7619, 1, 3),
            ("object", "water", 2, 0.2857, 0, 2),
        ],
    ),
    (
        "topic_shares",
        {},
        [
            ("Elves", "smoke air", 1, 1.0, "none"),
            ("Orcs", "cruelty", 2, 0.5, "none"),
            ("Orcs", "smoke air", 2, 0.5, "none"),
        ],
    ),
    (
        "believed",
        {},
        [
            ("Orcs", "love", "songs", 4.5, 4.0, 5.0, 8, "believed", 0, "test"),
            ("Dwarves", "hate", "smoke", 2.5, 2.0, 3.0, 8, "believed", 0, "test"),
            ("Orcs", "are", "cruel", 1.5, 1.0, 2.0, 8, "believed", 2, "test"),
        ],
    ),
    (
        "believed_by_language",
        {"group": "orcs"},
        [
            ("Orcs", "en", "Orcs", "love songs", 4.5, 4.0, 5.0, "middle", "test"),
            ("Orcs", "en", "Orcs", "are cruel", 1.5, 1.0, 2.0, "middle", "test"),
        ],
    ),
    (
        "believed",
        {"group": "ELVES", "verdict": "bound to a word"},
        [("Elves", "hate", "smoke", 3.5, 3.0, 4.0, 8, "bound to a word", 1, "test")],
    ),
    (
        "believed",
        {"arm": "none", "limit": 1, "group": "Orcs", "model": "test"},
        [("Orcs", "love", "songs", 4.5, 4.0, 5.0, 8, "believed", 0, "test")],
    ),
    (
        "believed_worse",
        # Regard of cruelty -0.75, of songs 0.9; that of smoke is the mean of -0.5 and -0.4, its
        # toxicity that of 0.4 and 0.2. Orcs were asked for all three, Dwarves not for cruelty.
        {},
        [
            ("Dwarves", "test", 1, -0.45, 0.225, 0.3, 0.2),
            ("Orcs", "test", 2, 0.075, -0.1, 0.5, 0.4333),
        ],
    ),
    ("believed_worse", {"verdict": "leaning"}, [("Ents", "test", 1, -0.45, -0.45, 0.3, 0.3)]),
    (
        "name_effects",
        # Beyond their means over cruelty, songs and smoke (-6, -5, -7), the names have 2, 1, -3,
        # and -1, 2, -1, and the one with a mark -1, -1, 2: the first two .5 of cruelty and 1.5 of
        # songs.
        {},
        [
            ("Orcs", "Uruks", "{}s", "", 2, 2.5, 3.0, 3.5, "test"),
            ("Orcs", "orc folk", "{} folk", "", 2, 3.5, 3.0, 2.5, "test"),
            ("Orcs", "Goblins", "{}s", "narrower", 2, 1.0, 3.0, 3.0, "test"),
        ],
    ),
    (
        "probable_negative",
        {},
        [("Orcs", "are", "cruel", 2, -0.75, "test", 1.5, 1.0, 2.0, "none")],
    ),
    (
        "said_and_believed",
        {},
        [("Orcs", "are", "cruel", 2, -0.75, "test", 1.5, 1.0, 2.0, 8, 0.02, "none")],
    ),
    (
        "only_said",
        {},
        [
            ("Elves", "love", "songs", 3, 0.9, "test", 2.0, 1.5, 2.5, 8, "", "none"),
            ("Ents", "hate", "smoke", 1, -0.4, "test", 0.75, 0.25, 1.25, 8, "leaning", "none"),
            (
                "Elves",
                "hate",
                "smoke",
                1,
                -0.5,
                "test",
                3.5,
                3.0,
                4.0,
                8,
                "bound to a word",
                "none",
            ),
        ],
    ),
    (
        "believed_never_said",  # of two groups, whose regard is -0.5 and -0.4
        {},
        [("Dwarves", "hate", "smoke", 2, 0.0, -0.45, "test", 2.5, 2.0, 3.0, 8, 0.02)],
    ),
    (
        "refused_but_believed",
        {},
        [("Orcs", "love", "songs", 1, 0.3333, 0.9, "test", 4.5, 4.0, 5.0, 8, 0.02)],
    ),
    (
        "recorded",
        {},
        [("Orcs", "are", "cruel", 2, "tales", "Orc", "brutal", "meaning", 0.9, 2.5, 1, "none")],
    ),
    (
        "recorded",
        {"mark": "related", "group": "Orcs"},
        [("Orcs", "love", "smoke", 2, "tales", "Orc", "brutal", "meaning", 0.61, 2.5, 1, "none")],
    ),
    (
        "recorded",
        {"mark": "new"},
        [
            ("Ents", "hate", "smoke", 1, "tales", *[None] * 6, "none"),
            ("Ents", "love", "water", 1, "tales", *[None] * 6, "none"),
        ],
    ),
    (
        "sofa_scores",
        {"probes": "asked"},
        [
            ("asked", "two", "conditional", 0.75, "peoples", 0.75, 0.25, 1.0, 2),
            ("asked", "one", "conditional", 0.5, "peoples", 0.5, 0.25, 1.0, 2),
        ],
    ),
    (
        "shared_stereotypes",
        {"limit": 3},
        [
            ("peoples", "are kind", "one", 0.5, 0.5, ["Elves"]),
            ("peoples", "are kind", "two", 0.75, 0.75, ["Elves"]),
            ("peoples", "love songs", "one", 1.5, 0.5, ["Orcs"]),
        ],
    ),
    (
        "shared_stereotypes",
        {"min_dds": 1.75},
        [("peoples", "love songs", "two", 1.75, 0.75, ["Orcs"])],
    ),
    (
        "first_groups",
        {"limit": 3},
        [
            ("peoples", "Elves", "one", 0.5, 0.0, 1.0, 0.0, 2),
            ("peoples", "Elves", "two", 0.5, 0.0, 1.0, 0.0, 2),
            ("peoples", "Orcs", "one", 0.5, 0.0, 1.0, 1.0, 2),
        ],
    ),
]


def pictured(rows: list[Any]) -> list[tuple[str, ...]]:
    """Each path of a picture as what a reader sees: names, and the caption and type of its edge."""
    return [
        (path[0]["name"], path[1][":type"], path[1]["predicate"], path[2]["name"])
        for (path,) in rows
    ]


def test_the_library_answers_as_worked_out_by_hand(middle: Store) -> None:
    for name, given, rows in ANSWERS:
        assert ask(middle, name, **given) == rows, name
    ((path,),) = ask(middle, "picture", group="Elves", limit=1)
    assert [path[0]["name"], path[1]["predicate"], path[2]["text"]] == ["Elves", "love", "songs"]
    assert pictured(ask(middle, "picture", group="Elves")) == [
        ("Elves", "STEREOTYPE", *row[:2]) for row in ask(middle, "neighbourhood", group="Elves")
    ]
    tones = {row[:2]: row[3] for row in ask(middle, "neighbourhood", group="Elves")}
    found = pictured(ask(middle, "picture_by_regard", group="Elves"))
    assert {(p, o): tone for _, tone, p, o in found} == {
        of: "POSITIVE" if regard > 0 else "NEGATIVE" if regard < 0 else "NEUTRAL"
        for of, regard in tones.items()
        if regard is not None
    }
    pictures = {"picture", "picture_by_regard"}
    assert {name for name, *_ in ANSWERS} | pictures == set(query_names())


def test_no_query_adds_up_arms_or_counts_nonsense(store: Store) -> None:
    """Arms: none and prefix; "Orcs smoke murderer 4000" has an acceptability of 0.1."""
    run = arms_run(store)
    assert ask(store, "most_repeated", limit=3) == [
        ("Orcs", "are", "cruel", 4, -0.9, 0.9, "prefix"),
        ("Elves", "love", "songs", 3, 0.8, 0.1, "none"),
        ("Elves", "hate", "smoke", 1, 0.0, 0.2, "none"),
    ]
    assert ask(store, "neighbourhood", group="Elves", arm="prefix") == [
        ("love", "songs", 1, 0.8, 0.1, "prefix")
    ]
    assert ask(store, "predicates", min_count=1, min_acceptability=0, arm="prefix") == [
        ("Elves", "love", 1, 1, 0.8, "prefix"),
        ("Orcs", "are", 4, 1, -0.9, "prefix"),
        ("Orcs", "smoke", 1, 1, -0.7, "prefix"),
    ]
    assert ask(store, "shared", group="Elves", other="Orcs") == [
        ("songs", ["love"], 3, ["love"], 1, "none")
    ]
    assert [row[1:] for row in ask(store, "only", group="Elves", other="Orcs")] == [
        ("smoke", 1, 0.0, 0.2, "none"),
        ("songs", 1, 0.8, 0.1, "prefix"),
    ]
    assert ask(store, "bridges") == [("songs", 2, 4, ["Elves", "Orcs"], "none")]
    assert ask(store, "path", group="Elves", other="Orcs") == [(2, ["Elves", "songs", "Orcs"])]
    assert ask(store, "path", group="Elves", other="Orcs", arm="prefix") == []
    assert [row[0] for row in ask(store, "most_negative", limit=1)] == ["Orcs"]
    assert [row[:4] for row in ask(store, "most_toxic", min_acceptability=0, limit=1)] == [
        ("Orcs", "smoke", "murderer 4000", 0.95)
    ]
    assert [row[1:3] for row in ask(store, "refusals", arm="prefix")] == [(1, 1), (2, 2)]
    assert len(ask(store, "picture", group="Elves")) == 3
    assert run.name == store.find_run().name


def test_a_prompt_counts_once_and_attempts_by_why_they_were_made(middle: Store) -> None:
    """The same prompt at two places, refused twice at one of them; another one, not readable and
    then refused, which was not asked again."""
    run = Run("tries", MODEL, {"seed": 2}, GROUPS)
    middle.begin_run(run)
    tries = [
        ("a", "p", ("refused", "refused", "unparsable")),
        ("b", "p", ("echo",)),
        ("c", "q", ("unparsable", "refused")),
    ]
    generations = [
        Generation(
            run.id, f"{place}#{n}", GROUPS[0].id, "none", "object", 0, n, outcome, prompt=prompt
        )
        for place, prompt, outcomes in tries
        for n, outcome in enumerate(outcomes)
    ]
    middle.record_round(run.id, "none", 0, generations)
    middle.set_status(run.id, "complete")
    assert ask(middle, "asked", run="tries") == [(2, 3, 3, 2, 6, 0, 3, 2, 1, 0, 0)]
    assert ask(middle, "refused_prompts", run="tries") == [("Elves", 2, 25.0)]


def test_a_refusal_that_is_asked_again_makes_no_group_refused_more(middle: Store) -> None:
    before = ask(middle, "refused_but_believed")
    retries = [
        Generation(RUN.id, f"no#{n}", GROUPS[1].id, "none", "object", 2, n, "refused")
        for n in (1, 2, 3)
    ]
    middle.record_round(RUN.id, "none", 2, retries)
    assert before and ask(middle, "refused_but_believed") == before


def test_a_query_sees_only_its_run(middle: Store) -> None:
    other = Run("other", MODEL, {"seed": 1}, GROUPS)
    middle.begin_run(other)
    middle.set_status(other.id, "complete")
    assert ask(middle, "most_repeated", run="other") == []
    assert middle.find_run().name == "middle"  # the newest of those with generations
    assert len(ask(middle, "most_repeated")) == len(SAID)
    with pytest.raises(RunNotFound, match="choose from middle, other"):
        ask(middle, "bridges", run="nowhere")


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("shared", {"group": "Elve", "other": "Orcs"}, r"no group 'Elve' in run .* mean Elves\?"),
        ("path", {"group": "Elves", "other": "Orks"}, r"no group 'Orks' in run .* mean Orcs\?"),
        ("bridges", {"arm": "prefix"}, "no arm 'prefix' in run 'middle'"),
        (
            "believed",
            {"model": "tset"},
            r"no model 'tset' asked .* mean test\?",
        ),
        ("believed", {"verdict": "belived"}, r"no verdict 'belived' .did you mean believed"),
        (
            "lineage",
            {"group": "Elves", "predicate": "lov", "object": "songs"},
            "no predicate 'lov'",
        ),
        ("lineage", {"group": "Elves", "predicate": "love", "object": "song"}, "no object 'song'"),
        ("lineage", {"group": "Elfs", "predicate": "love", "object": "songs"}, "no group 'Elfs'"),
        ("recorded", {"mark": "knwon"}, "no mark 'knwon' .did you mean known"),
        ("benchmark_items", {"benchmark": "bbc"}, "no benchmark 'bbc' in the store"),
        ("sofa_scores", {"probes": "mine"}, "no probes 'mine' in the store"),
    ],
)
def test_names_that_are_not_there_are_refused(
    middle: Store, name: str, given: dict[str, str], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        ask(middle, name, **given)


def test_what_a_query_takes(middle: Store) -> None:
    with pytest.raises(
        UsageError, match="neighbourhood needs the parameter group: the group's name"
    ):
        ask(middle, "neighbourhood")
    with pytest.raises(
        UsageError,
        match=r"no parameter 'grup' of .*did you mean group.*choose from arm, group, limit, min_",
    ):
        ask(middle, "neighbourhood", grup="Elves")
    with pytest.raises(UsageError, match="limit must be a whole number, not 'many'"):
        ask(middle, "bridges", limit="many")
    with pytest.raises(UsageError, match="limit must be at least 0, not -1"):
        ask(middle, "bridges", limit="-1")
    with pytest.raises(UsageError, match="no query 'nothing'; choose from asked, believed, "):
        load_query("nothing")


@pytest.mark.parametrize(
    "text",
    [
        "LOAD CSV FROM 'file:///etc/passwd' AS row RETURN row",
        "CALL { LOAD /* a file */ CSV FROM 'file:///etc/passwd' AS row RETURN row } RETURN row",
        "\\u004cOAD CSV FROM 'http://localhost:1/' AS row RETURN row",
        "CALL apoc.load.json('file:///etc/passwd') YIELD value RETURN value",
        "MATCH (n) WITH n LIMIT 1 // x\rLOAD CSV FROM 'file:///etc/passwd' AS r RETURN r",
        "RETURN 1 // x\u2028LOAD CSV FROM 'file:///etc/passwd' AS r RETURN r",
        "CALL db.clearQueryCaches()",
        "TERMINATE TRANSACTIONS 'neo4j-transaction-1'",
        "SHOW USERS",
    ],
)
def test_a_query_reads_the_graph_alone(store: Store, text: str) -> None:
    with pytest.raises(UsageError, match="a query may only read the graph"):
        store.query(text, {})
    assert store.query("RETURN 'LOAD CSV' AS said", {}).rows == [("LOAD CSV",)]
    text = "RETURN 'it\\'s // \\\\' AS a, \"'\" AS b /* not */, $c AS c // no more"
    assert store.query(text, {"c": 1}).rows == [("it's // \\", "'", 1)]


def test_no_rows_say_what_makes_them_if_nothing_did(middle: Store) -> None:
    """A run in which nothing is of the kind asked for, and one that has it: an empty answer."""
    bare = replace(RUN, name="bare", config={"seed": 1})
    middle.begin_run(bare)
    for name, run, needs in (
        ("topic_shares", "bare", "run.measure(topics=True)"),
        ("recorded", "bare", "run.known(TABLE)"),
        ("believed", "bare", "run.evidence(MODEL)"),
        ("refusals", "bare", ""),
        ("topic_shares", "middle", ""),
        ("believed", "middle", ""),
    ):
        told = load_query(name).explain_no_rows(middle, {"run": run})
        why = f"no rows: run {run} has nothing of this kind yet; {name} needs {needs}"
        assert told == (why if needs else "")


def test_a_view_of_what_a_query_reads_is_enough(middle: Store) -> None:
    for name in query_names():
        query = load_query(name)
        given = {p.name: p.default for p in query.parameters} | {
            "group": "Elves",
            "other": "Orcs",
            "predicate": "love",
            "object": "songs",
            "run": "middle",
            "limit": 9,
            "min_count": 1,
            "min_words": 1,
            "min_dds": 0.0,
            "regard": 0.0,
            "verdict": "believed",
        }
        assert middle.query(query.text, given) == middle.query(query.text, given, names=query.kinds)


@pytest.mark.slow
@pytest.mark.integration
def test_both_stores_give_the_same_rows_for_a_hostile_run(tmp_path: Path, empty_neo4j: str) -> None:
    embedded = open_store(str(tmp_path / "kgbias.db"))
    objects = [text for text in HOSTILE_TEXTS if len(text) < 200]
    run = measured_run(embedded, GROUPS, objects, per_group=60)  # type: ignore[arg-type]
    embedded.save_centralities(run.id, measure_structure(embedded.triples(run.id)))
    server = open_store(empty_neo4j)
    assert push_run(StoredRun(embedded, run), server) == 240
    assert push_run(StoredRun(embedded, run), server) == 0
    assert server.triples(run.id) == embedded.triples(run.id)
    assert sorted(server.generations(run.id), key=lambda g: g.id) == sorted(
        embedded.generations(run.id), key=lambda g: g.id
    )
    given = {
        "group": "Elves",
        "other": "Orcs",
        "predicate": "love",
        "object": "true",
        "about": "true fire",
        "limit": "500",
        "triples": ",".join(t.id for t in embedded.triples(run.id)[:20]),
    }
    asked = 0
    for name in query_names():
        query = load_query(name)
        values = {p.name: given[p.name] for p in query.parameters if p.name in given}
        here, there = query.run(embedded, values), query.run(server, values)
        assert here.columns == there.columns
        assert len(here.rows) == len(there.rows), name
        for ours, theirs in zip(here.rows, there.rows, strict=True):
            assert all(map(alike, ours, theirs)), name
        asked += len(here.rows)
    assert asked > 500
    assert server.centralities(run.id) == embedded.centralities(run.id) != []
    back = open_store(str(tmp_path / "back.db"))
    push_run(StoredRun(server, run), back)
    assert back.triples(run.id) == embedded.triples(run.id)
